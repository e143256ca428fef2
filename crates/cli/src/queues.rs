//! Flags about queues of hosts: the same for a crawl and for a frontier that serves another crawler.

use crate::units::duration;
use std::time::Duration;
use trawl_frontier::Config;

/// How politely hosts are asked, and how much of them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Politeness and amounts")]
pub struct QueueArgs {
    /// How many links away from a seed to go; 0 fetches only the seeds
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub depth: u32,

    /// Fetch at most this many pages; seeds come before links
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,

    /// Fetch at most this many pages of one host
    #[arg(long, value_name = "N")]
    max_pages_per_host: Option<u64>,

    /// Pause between two requests to a host; a longer crawl-delay in its robots.txt wins
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration)]
    delay: Duration,

    /// Requests to a host at once; more than 1 is impolite unless the host is yours
    #[arg(long, default_value_t = 1, value_name = "N")]
    per_host: u32,

    /// Requests to an address at once; 0 for no limit
    #[arg(long, default_value_t = 8, value_name = "N")]
    per_ip: u32,

    /// Try a URL or a robots.txt at most this often; attempts that cannot reach the host do not count
    #[arg(long, default_value_t = 3, value_name = "N")]
    max_attempts: u32,

    /// First pause after 429, 503 or a failure; doubled each time
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    backoff: Duration,
}

impl QueueArgs {
    /// These flags over `config`.
    pub fn apply(&self, config: &mut Config) {
        config.max_depth = self.depth;
        (config.max_pages, config.max_pages_per_host) = (self.max_pages, self.max_pages_per_host);
        (config.delay, config.per_host) = (self.delay, self.per_host);
        config.per_ip = (self.per_ip > 0).then_some(self.per_ip);
        (config.max_attempts, config.robots_attempts) = (self.max_attempts, self.max_attempts);
        config.backoff = self.backoff;
    }
}
