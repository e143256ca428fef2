//! Settings of a frontier, with their price.

use crate::identity::Identity;
use std::time::Duration;

/// Settings of a [`crate::Frontier`].
#[derive(Debug, Clone)]
pub struct Config {
    /// What makes two URLs the same.
    pub identity: Identity,
    /// Links followed from a seed; 0 fetches the seeds and nothing else.
    pub max_depth: u32,
    /// Redirects followed in a row.
    pub max_hops: u32,
    /// URLs known at most, done ones included; further ones are counted and forgotten. About 40 bytes each, and 200 more
    /// plus the URL itself while it waits. Once half of them are known, a host that has a tenth gets no more: a trap must
    /// not take the room of everybody else.
    pub max_known: usize,
    /// Pages admitted in all; `None` for no limit. Further ones are counted and forgotten.
    pub max_pages: Option<u64>,
    /// Pages admitted of one host; `None` for no limit.
    pub max_pages_per_host: Option<u64>,
    /// Fetches in flight per host.
    pub per_host: u32,
    /// Fetches in flight per address, `None` for no limit.
    pub per_ip: Option<u32>,
    /// Hosts whose address may be looked up at a time ([`crate::Next::Lookup`]), so that the limit per address holds from the
    /// first request on; 0 to learn addresses from the first fetch instead.
    pub lookups: usize,
    /// From the end of a fetch to the start of the next of the same host.
    pub delay: Duration,
    /// The longest crawl-delay of a robots.txt that is honoured; a longer one counts as this.
    pub crawl_delay_cap: Duration,
    /// How often a URL is tried at most. Attempts that found nobody at home do not count: see `give_up_after`.
    pub max_attempts: u32,
    /// First wait after 429, 503 or a failure, doubled each time; of a host that does not answer, too.
    pub backoff: Duration,
    /// The longest wait, also when a server asks for more.
    pub backoff_cap: Duration,
    /// How long a host may stay away (refused connections, no answer, a name that does not resolve) before it counts as dead
    /// for the run.
    pub give_up_after: Duration,
    /// Whether robots.txt is asked.
    pub robots: RobotsPolicy,
    /// How long a robots.txt is believed; RFC 9309 says at most 24 hours.
    pub robots_ttl: Duration,
    /// How often a robots.txt is tried before the pages of its origin are given up.
    pub robots_attempts: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identity: Identity::Key,
            max_depth: 0,
            max_hops: 10,
            max_known: 5_000_000,
            max_pages: None,
            max_pages_per_host: None,
            per_host: 1,
            per_ip: Some(8),
            lookups: 0,
            delay: Duration::from_secs(1),
            crawl_delay_cap: Duration::from_secs(60),
            max_attempts: 3,
            backoff: Duration::from_secs(60),
            backoff_cap: Duration::from_secs(86_400),
            give_up_after: Duration::from_secs(3600),
            robots: RobotsPolicy::Honour,
            robots_ttl: Duration::from_secs(86_400),
            robots_attempts: 3,
        }
    }
}

/// Whether robots.txt is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsPolicy {
    /// It decides.
    Honour,
    /// It is neither fetched nor honoured: only where the operator may decide that.
    Ignore,
}
