//! Settings of a synthetic web: what it contains, where it listens, how fast it answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Everything about a synthetic web; two equal values (apart from where it listens and logs) give the same web.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// All facts of the web follow from this number.
    pub seed: u64,
    /// Registrable domains; some carry a second host (`blog.`, `shop.` …).
    pub domains: u32,
    /// Pages over all hosts, about; the exact number is [`crate::World::page_count`].
    pub pages: u32,
    /// Exponent of the Zipf law of page counts per host; 0 gives every host the same number.
    pub zipf: f64,
    /// No host has more pages than this.
    pub max_pages_per_host: u32,
    /// How many hosts a crawl starts from.
    pub seeds: u32,
    /// Smallest HTML page in bytes, about.
    pub min_page_bytes: u32,
    /// Largest HTML page in bytes, about.
    pub max_page_bytes: u32,
    /// Loopback address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve.
    pub threads: u32,
    /// Wait before each response, milliseconds.
    pub latency_ms: u64,
    /// Where requests are logged; nothing is logged without it.
    pub log: Option<PathBuf>,
}

impl Default for Config {
    /// The small, well-behaved web of the demo: a few hundred hosts, three thousand pages.
    fn default() -> Self {
        Self {
            seed: 1,
            domains: 240,
            pages: 3_000,
            zipf: 0.8,
            max_pages_per_host: 120,
            seeds: 8,
            min_page_bytes: 1_000,
            max_page_bytes: 60_000,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            threads: 1,
            latency_ms: 0,
            log: None,
        }
    }
}

/// Largest number of domains: the model keeps about 100 bytes for each.
const MAX_DOMAINS: u32 = 2_000_000;
/// Largest number of pages; an expectation keeps two bytes for each.
const MAX_PAGES: u32 = 200_000_000;
/// Largest HTML page.
const MAX_PAGE_BYTES: u32 = 16 << 20;
/// Most serving threads.
const MAX_THREADS: u32 = 256;

impl Config {
    /// Checks every setting against its range.
    pub fn validate(&self) -> Result<()> {
        let within = |setting, value: u32, expected, lo: u32, hi: u32| {
            if (lo..=hi).contains(&value) { Ok(()) } else { Err(refuse(setting, expected, &value)) }
        };
        within("domains", self.domains, "1 to 2000000", 1, MAX_DOMAINS)?;
        within("pages", self.pages, "1 to 200000000", 1, MAX_PAGES)?;
        within("max_pages_per_host", self.max_pages_per_host, "1 to 200000000", 1, MAX_PAGES)?;
        within("seeds", self.seeds, "at least 1, at most domains", 1, self.domains)?;
        within("min_page_bytes", self.min_page_bytes, "256 to max_page_bytes", 256, self.max_page_bytes)?;
        within("max_page_bytes", self.max_page_bytes, "at most 16777216", 256, MAX_PAGE_BYTES)?;
        within("threads", self.threads, "1 to 256", 1, MAX_THREADS)?;
        if !(0.0..=4.0).contains(&self.zipf) {
            return Err(refuse("zipf", "0 to 4", &self.zipf));
        }
        if !self.listen.ip().is_loopback() {
            return Err(refuse("listen", "a loopback address", &self.listen));
        }
        Ok(())
    }
}

fn refuse(setting: &'static str, expected: &'static str, found: &dyn std::fmt::Display) -> Error {
    Error::Setting { setting, expected, found: found.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        assert!(Config::default().validate().is_ok());
        let bad = [
            (Config { domains: 0, ..Config::default() }, "domains"),
            (Config { pages: 0, ..Config::default() }, "pages"),
            (Config { seeds: 1_000, ..Config::default() }, "seeds"),
            (Config { zipf: f64::NAN, ..Config::default() }, "zipf"),
            (Config { threads: 0, ..Config::default() }, "threads"),
            (Config { min_page_bytes: 70_000, ..Config::default() }, "min_page_bytes"),
            (Config { listen: SocketAddr::from(([192, 0, 2, 1], 80)), ..Config::default() }, "listen"),
        ];
        for (config, name) in bad {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
