//! Settings of a frontier, with their price. One table for all policies.

use crate::identity::{Identity, QueueBy};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Makes rules of the text of a robots.txt.
pub type ParseRobots = Arc<dyn Fn(&str) -> Arc<dyn crate::Rules> + Send + Sync>;

/// Settings of a [`crate::Frontier`].
#[derive(Clone)]
pub struct Config {
    /// What makes two URLs the same.
    pub identity: Identity,
    /// What stands in one queue.
    pub queue: QueueBy,
    /// Links followed from a seed; 0 fetches the seeds and nothing else; 65,535 and more for no limit. A frontier that turned
    /// links away is opened with a larger one only if `reopens` says so.
    pub max_depth: u32,
    /// Whether the caller offers again what pages at the limit lead to, once the limit has grown: see
    /// [`crate::Frontier::reopening`].
    pub reopens: bool,
    /// Redirects followed in a row, at most 65,534.
    pub max_hops: u32,
    /// Pages fetched in all; `None` for no limit. What is over it waits, and is taken up when the limit grows.
    pub max_pages: Option<u64>,
    /// Pages fetched of one queue; `None` for no limit. Likewise.
    pub max_pages_per_host: Option<u64>,
    /// Fetches in flight per queue.
    pub per_host: u32,
    /// Fetches in flight per address, `None` for no limit.
    pub per_ip: Option<u32>,
    /// Addresses to which `per_ip` does not apply: front ends that many hosts share.
    pub exempt: Vec<IpAddr>,
    /// Hosts whose address may be looked up at a time ([`crate::Frontier::wanted`]), so that the limit per address holds from
    /// the first request on; 0 to learn addresses from the first fetch instead.
    pub lookups: usize,
    /// From the end of a fetch to the start of the next of the same queue.
    pub delay: Duration,
    /// The longest crawl-delay of a robots.txt that is honoured; a longer one counts as this.
    pub crawl_delay_cap: Duration,
    /// How often a URL is tried at most, up to 255. Attempts that reached no server do not count: see `give_up_after`.
    pub max_attempts: u32,
    /// First wait after 429, 503 or a failure, doubled each time; of a host that does not answer, too.
    pub backoff: Duration,
    /// The longest wait, also when a server asks for more.
    pub backoff_cap: Duration,
    /// The longest interval that a host gets which keeps asking us to slow down, once its backoff is over.
    pub slow_cap: Duration,
    /// How long a host may stay away (refused connections, no answer, a name that does not resolve) before it counts as dead
    /// for the run.
    pub give_up_after: Duration,
    /// Whether robots.txt is asked.
    pub robots: RobotsPolicy,
    /// How long a robots.txt is believed; RFC 9309 says at most 24 hours.
    pub robots_ttl: Duration,
    /// How often a robots.txt is tried before the pages of its origin are given up.
    pub robots_attempts: u32,
    /// Reads the rules of a robots.txt again after a restart.
    pub parse_robots: ParseRobots,
    /// Sites whose rules are kept in memory; those of others are read again from disk when they are needed.
    pub rules_kept: usize,
    /// Links of a kind that a trap makes (calendar pages far ahead, session ids, combined filters) that one host may have before
    /// further ones are parked. 0 switches the detector off. Seeds are never parked.
    pub trap_threshold: u8,
    /// Pages after which a queue stands back: each doubling of this many lets others of the next lower priority go first.
    /// Nothing is dropped. 0 for never.
    pub share: u32,
    /// One lease in this many goes to the queue that has been ready for longest, whatever its priority.
    pub fair_every: u32,
    /// A URL that has waited for this long is taken for one of the best priority.
    pub starved_after: Duration,
    /// How long a lease may be out; `None` for ever (the caller then answers for each).
    pub lease_ttl: Option<Duration>,
    /// Memory for all but hosts, which come on top with about 400 bytes each; see the shares below. Up to 28 MiB are needed
    /// beside it, whatever it says: pages of files that are merged, zstd's tables, and what the allocator keeps.
    pub memory_bytes: usize,
    /// When a batch is durable.
    pub durability: Durability,
    /// Whether flushes and merges run on a thread of their own.
    pub background: bool,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("identity", &self.identity).field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identity: Identity::Key,
            queue: QueueBy::Host,
            max_depth: 0,
            reopens: false,
            max_hops: 10,
            max_pages: None,
            max_pages_per_host: None,
            per_host: 1,
            per_ip: Some(8),
            exempt: Vec::new(),
            lookups: 0,
            delay: Duration::from_secs(1),
            crawl_delay_cap: Duration::from_secs(60),
            max_attempts: 3,
            backoff: Duration::from_secs(60),
            backoff_cap: Duration::from_secs(86_400),
            slow_cap: Duration::from_secs(300),
            give_up_after: Duration::from_secs(3600),
            robots: RobotsPolicy::Honour,
            robots_ttl: Duration::from_secs(86_400),
            robots_attempts: 3,
            parse_robots: Arc::new(|_| Arc::new(crate::AllowAll)),
            rules_kept: 65_536,
            trap_threshold: 16,
            share: 10_000,
            fair_every: 32,
            starved_after: Duration::from_secs(168 * 3600),
            lease_ttl: None,
            memory_bytes: 512 << 20,
            durability: Durability::Explicit,
            background: true,
        }
    }
}

/// The shares of [`Config::memory_bytes`]: known URLs a half, recent changes two eighths, windows an eighth, and an eighth for
/// what is written and read aside.
///
/// | eighths | what | beyond it |
/// | --- | --- | --- |
/// | 4 | fingerprints of known URLs | they are looked up in the files |
/// | 1 | rows and hosts changed since the last flush, with their places | they are flushed |
/// | 1 | the same, of the flush that is under way | changes wait for it |
/// | 1 | the best rows of hosts that may soon be asked | further ones wait on disk |
/// | 1 | half of it for a flush, half for a merge; a quarter for the log on its way to disk | files in between, waiting |
impl Config {
    /// Changes that make a flush due.
    pub(crate) fn changes_bytes(&self) -> usize {
        self.memory_bytes / 8
    }

    /// Rows in windows.
    pub(crate) fn window_bytes(&self) -> usize {
        self.memory_bytes / 8
    }

    /// Fingerprints of known URLs.
    pub(crate) fn seen_bytes(&self) -> usize {
        self.memory_bytes / 2
    }

    /// One writer of a file.
    pub(crate) fn writer_bytes(&self) -> usize {
        (self.memory_bytes / 16).clamp(1 << 20, 64 << 20)
    }

    /// Batches of the log that were handed in and are not written.
    pub(crate) fn log_bytes(&self) -> usize {
        (self.memory_bytes / 32).clamp(1 << 20, 64 << 20)
    }

    /// Whether pages are limited, so that seeds have to go first.
    pub(crate) fn limits_pages(&self) -> bool {
        self.max_pages.is_some() || self.max_pages_per_host.is_some()
    }

    /// Whether a shorter way to a page, found late, can bring further pages within reach.
    pub(crate) fn depth_matters(&self) -> bool {
        self.max_depth > 0 && self.max_depth < u32::from(u16::MAX)
    }
}

/// Whether robots.txt is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsPolicy {
    /// Before anything else of a site.
    Honour,
    /// Never: the owner of the sites said so.
    Ignore,
}

/// When what a call reported is safe from a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When `offer`, `settle` or an order returns.
    EachBatch,
    /// At most this long after it returned, if the frontier is called at all.
    Interval(Duration),
    /// When a [`crate::Ticket`] of [`crate::Frontier::commit`] was waited for.
    Explicit,
}
