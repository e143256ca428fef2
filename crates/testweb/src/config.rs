//! Settings of a synthetic web: what it contains, where it listens, how fast it answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::character::Shares;
use crate::error::{Error, Result};
use crate::profiles::Profile;

/// Which addresses the hosts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// All hosts are behind the one address listened on.
    #[default]
    One,
    /// Each domain has its own address in 127.0.0.0/8, or shares it with `domains_per_address` others.
    Many,
}

/// Everything about a synthetic web; two values that differ only in where they listen and log give the same web.
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
    /// No host that asks for a crawl delay has more pages than this: a large one would decide how long a crawl takes.
    pub max_pages_of_delayed: u32,
    /// How many hosts a crawl starts from.
    pub seeds: u32,
    /// Smallest HTML page in bytes, about.
    pub min_page_bytes: u32,
    /// Largest HTML page in bytes, about.
    pub max_page_bytes: u32,
    /// How often each character occurs.
    pub shares: Shares,
    /// The product token that robots.txt files name when they single out a crawler, in lower case.
    pub agent: String,
    /// Smallest crawl delay asked for, milliseconds.
    pub min_crawl_delay_ms: u64,
    /// Largest crawl delay asked for, milliseconds.
    pub max_crawl_delay_ms: u64,
    /// What `Retry-After` asks for, seconds.
    pub retry_after_s: u64,
    /// A throttling host answers 429 to requests closer together than this, milliseconds.
    pub throttle_ms: u64,
    /// How late slow hosts answer, and how long a dripping body takes, milliseconds.
    pub slow_ms: u64,
    /// After this many bytes even an endless body ends, so that a careless client cannot run for ever.
    pub endless_bytes: u64,
    /// What a bomb decompresses to, bytes.
    pub bomb_bytes: u64,
    /// Virtual time at the start, Unix seconds: pages change by the virtual clock only.
    pub epoch_s: u64,
    /// Virtual seconds per real second; 0 stops the virtual clock except for [`crate::Running::set_time`].
    pub clock_rate: f64,
    /// Address in 127.0.0.0/8 to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether hosts have addresses of their own.
    pub addresses: Addresses,
    /// Domains behind one address, with [`Addresses::Many`].
    pub domains_per_address: u32,
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
            max_pages_of_delayed: MAX_PAGES,
            seeds: 8,
            min_page_bytes: 1_000,
            max_page_bytes: 60_000,
            shares: Profile::Demo.shares(),
            agent: "trawl".to_owned(),
            min_crawl_delay_ms: 100,
            max_crawl_delay_ms: 400,
            retry_after_s: 1,
            throttle_ms: 20,
            slow_ms: 500,
            endless_bytes: 1 << 30,
            bomb_bytes: 256 << 20,
            epoch_s: 1_750_000_000,
            clock_rate: 0.0,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            addresses: Addresses::One,
            domains_per_address: 1,
            threads: 1,
            latency_ms: 0,
            log: None,
        }
    }
}

/// Largest number of domains: the model keeps about 150 bytes for each.
const MAX_DOMAINS: u32 = 2_000_000;
/// Largest number of pages; an expectation keeps a few bytes for each.
const MAX_PAGES: u32 = 200_000_000;
/// Largest HTML page.
const MAX_PAGE_BYTES: u32 = 16 << 20;
/// Most serving threads.
const MAX_THREADS: u32 = 256;

impl Config {
    /// The settings of a profile, otherwise the defaults.
    pub fn profile(profile: Profile) -> Self {
        Self { shares: profile.shares(), ..Self::default() }
    }

    /// Checks every setting against its range.
    pub fn validate(&self) -> Result<()> {
        let within = |setting, value: u32, expected, lo: u32, hi: u32| {
            if (lo..=hi).contains(&value) { Ok(()) } else { Err(refuse(setting, expected, &value)) }
        };
        within("domains", self.domains, "1 to 2000000", 1, MAX_DOMAINS)?;
        within("pages", self.pages, "1 to 200000000", 1, MAX_PAGES)?;
        within("max_pages_per_host", self.max_pages_per_host, "1 to 200000000", 1, MAX_PAGES)?;
        within("max_pages_of_delayed", self.max_pages_of_delayed, "1 to 200000000", 1, MAX_PAGES)?;
        within("seeds", self.seeds, "at least 1, at most domains", 1, self.domains)?;
        within("min_page_bytes", self.min_page_bytes, "256 to max_page_bytes", 256, self.max_page_bytes)?;
        within("max_page_bytes", self.max_page_bytes, "at most 16777216", 256, MAX_PAGE_BYTES)?;
        within("threads", self.threads, "1 to 256", 1, MAX_THREADS)?;
        within("domains_per_address", self.domains_per_address, "at least 1", 1, MAX_DOMAINS)?;
        if !(0.0..=4.0).contains(&self.zipf) {
            return Err(refuse("zipf", "0 to 4", &self.zipf));
        }
        if !(0.0..=1e9).contains(&self.clock_rate) {
            return Err(refuse("clock_rate", "0 to 1000000000", &self.clock_rate));
        }
        if let Some(axis) = self.shares.overfull() {
            return Err(refuse("shares", "at most 1000 on each axis", &format!("more on {axis:?}")));
        }
        let token = |b: u8| b.is_ascii_lowercase() || b == b'-' || b == b'_';
        if self.agent.is_empty() || !self.agent.bytes().all(token) {
            return Err(refuse("agent", "lower-case letters, - and _", &self.agent));
        }
        if self.min_crawl_delay_ms > self.max_crawl_delay_ms {
            return Err(refuse("min_crawl_delay_ms", "at most max_crawl_delay_ms", &self.min_crawl_delay_ms));
        }
        if !(self.listen.is_ipv4() && self.listen.ip().is_loopback()) {
            return Err(refuse("listen", "an address in 127.0.0.0/8", &self.listen));
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
    use crate::character::Character;

    #[test]
    fn bad_settings_are_named() {
        for profile in Profile::ALL {
            Config::profile(profile).validate().unwrap();
            assert_eq!(profile.name().parse::<Profile>().unwrap(), profile);
        }
        assert!("gentle".parse::<Profile>().is_err());
        let mut overfull = Shares::default();
        overfull.set(Character::Slow, 600).set(Character::Silent, 600);
        let bad = [
            (Config { domains: 0, ..Config::default() }, "domains"),
            (Config { pages: 0, ..Config::default() }, "pages"),
            (Config { seeds: 1_000, ..Config::default() }, "seeds"),
            (Config { zipf: f64::NAN, ..Config::default() }, "zipf"),
            (Config { clock_rate: -1.0, ..Config::default() }, "clock_rate"),
            (Config { threads: 0, ..Config::default() }, "threads"),
            (Config { min_page_bytes: 70_000, ..Config::default() }, "min_page_bytes"),
            (Config { shares: overfull, ..Config::default() }, "shares"),
            (Config { agent: "Trawl/1".into(), ..Config::default() }, "agent"),
            (Config { min_crawl_delay_ms: 9_999, ..Config::default() }, "min_crawl_delay_ms"),
            (Config { listen: SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0)), ..Config::default() }, "listen"),
            (Config { listen: SocketAddr::from(([192, 0, 2, 1], 80)), ..Config::default() }, "listen"),
        ];
        for (config, name) in bad {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn settings_survive_json_and_refuse_strangers() {
        let config = Config::profile(Profile::Hostile);
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        let partial: Config = serde_json::from_str(r#"{"seed":7,"shares":{"gzip":1000}}"#).unwrap();
        assert_eq!(
            (partial.seed, partial.shares.get(Character::Gzip), partial.shares.get(Character::Slow)),
            (7, 1000, 0)
        );
        assert!(serde_json::from_str::<Config>(r#"{"sead":7}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"shares":{"gzipp":1}}"#).is_err());
    }
}
