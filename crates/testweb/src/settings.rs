//! The rules a crawl was told to keep: what its log is judged by.

use serde::{Deserialize, Serialize};

/// How a crawl was set up. The defaults are those of a patient crawler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlSettings {
    /// Product token of the crawler, lower case: it must stand in `User-Agent`, and chooses the robots.txt group.
    pub agent: String,
    /// Where the crawl started; empty means [`crate::World::seeds`].
    pub seeds: Vec<String>,
    /// Links may be followed this many steps from a seed; a redirect is no step.
    pub depth: u32,
    /// Whether robots.txt had to be obeyed.
    pub obey_robots: bool,
    /// Whether `nofollow` of a page had to be obeyed.
    pub obey_nofollow: bool,
    /// A robots.txt may be relied on this long, seconds.
    pub robots_max_age_s: u64,
    /// A robots.txt that was answered must not be asked for again sooner than this, seconds.
    pub robots_min_age_s: u64,
    /// Requests in flight at one host.
    pub host_in_flight: u32,
    /// Time between the starts of two requests to one host, milliseconds.
    pub host_interval_ms: u64,
    /// Requests in flight at one address; 0 means no limit. Only for webs whose hosts have addresses of their own.
    pub ip_in_flight: u32,
    /// Time between the starts of two requests to one address, milliseconds; as above.
    pub ip_interval_ms: u64,
    /// Crawl delays are honoured up to this much, milliseconds.
    pub max_crawl_delay_ms: u64,
    /// Redirects that may be followed in a row.
    pub max_redirects: u32,
    /// Further attempts at a URL that failed.
    pub retries: u32,
    /// URLs of one trap that may be fetched on one host; of session ids, for each page.
    pub trap_budget: u32,
    /// The depth given to pages that a sitemap lists; without it sitemaps need not be read.
    pub sitemap_depth: Option<u32>,
    /// Whether the crawl refuses hosts with faulty certificates.
    pub verify_tls: bool,
    /// Whether pages may be fetched again, and then with their validators.
    pub recrawl: bool,
    /// Most body bytes that may be read of one response.
    pub max_body_bytes: u64,
    /// Whether the crawl came to its end, so that what is missing is missing for good.
    pub complete: bool,
    /// How much earlier than allowed a request may seem to arrive, milliseconds: the server sees times blurred by the way.
    pub tolerance_ms: u64,
    /// How long the server may take to notice that a client has left, milliseconds: a busy one learns of it late.
    pub notice_ms: u64,
}

impl Default for CrawlSettings {
    fn default() -> Self {
        Self {
            agent: "trawl".to_owned(),
            seeds: Vec::new(),
            depth: u32::MAX,
            obey_robots: true,
            obey_nofollow: true,
            robots_max_age_s: 86_400,
            robots_min_age_s: 60,
            host_in_flight: 1,
            host_interval_ms: 1_000,
            ip_in_flight: 0,
            ip_interval_ms: 0,
            max_crawl_delay_ms: 300_000,
            max_redirects: 10,
            retries: 3,
            trap_budget: 100,
            sitemap_depth: None,
            verify_tls: false,
            recrawl: false,
            max_body_bytes: 64 << 20,
            complete: true,
            tolerance_ms: 20,
            notice_ms: 20,
        }
    }
}
