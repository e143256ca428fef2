//! The settings of `trawl frontier run`.

use super::engine::rules;
use crate::queues::QueueArgs;
use crate::units::{bytes, duration};
use clap::ValueEnum;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use trawl_frontier::{Config, Durability, Identity, QueueBy, RobotsPolicy};

/// Settings of a frontier.
#[derive(Debug, clap::Args)]
pub struct SettingArgs {
    #[command(flatten)]
    queues: QueueArgs,

    /// Which URLs are the same: by key, or only if they are spelled the same
    #[arg(long, value_enum, default_value_t = IdentityName::Key)]
    identity: IdentityName,

    /// What gets one request at a time
    #[arg(long, value_enum, default_value_t = QueueName::Host)]
    queue: QueueName,

    /// How long a lease may be out before its page is handed out again
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration)]
    lease_time: Duration,

    /// Lease robots.txt files before pages, as this product token
    #[arg(long, value_name = "TOKEN")]
    pub robots: Option<String>,

    /// Look up so many addresses at a time (`wanted`, `ready`) before their hosts are leased; 0 to learn addresses from what is settled
    #[arg(long, default_value_t = 0, value_name = "N")]
    lookups: usize,

    /// Do not limit requests to this address, which many hosts share
    #[arg(long, value_name = "ADDRESS")]
    exempt: Vec<IpAddr>,

    /// Memory for URLs; the rest are on disk
    #[arg(long, default_value = "512MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IdentityName {
    /// Tracking parameters and the order of different parameters do not count
    Key,
    /// Only the spelling counts
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum QueueName {
    /// Each host name
    Host,
    /// All hosts of a registrable domain
    Domain,
    /// All hosts behind an address
    Ip,
}

impl SettingArgs {
    pub fn config(&self) -> Config {
        let identity = match self.identity {
            IdentityName::Key => Identity::Key,
            IdentityName::Exact => Identity::Exact,
        };
        let queue = match self.queue {
            QueueName::Host => QueueBy::Host,
            QueueName::Domain => QueueBy::Domain,
            QueueName::Ip => QueueBy::Ip,
        };
        let agent = self.robots.clone().unwrap_or_default();
        let mut config = Config {
            identity,
            queue,
            lease_ttl: Some(self.lease_time),
            lookups: self.lookups,
            exempt: self.exempt.clone(),
            robots: if self.robots.is_some() { RobotsPolicy::Honour } else { RobotsPolicy::Ignore },
            parse_robots: Arc::new(move |text| rules(text, &agent)),
            memory_bytes: usize::try_from(self.memory).unwrap_or(usize::MAX),
            durability: Durability::Explicit,
            ..Config::default()
        };
        self.queues.apply(&mut config);
        (config.per_host, config.max_attempts) = (config.per_host.max(1), config.max_attempts.max(1));
        config
    }
}
