//! How many files and sockets a crawl may have open: shares of what this process is allowed.
//!
//! ```text
//! limit ─ 32 for archive, log, indexes, seeds, runtime     ─┬─ 1/3 fetches under way, a socket each
//!       ─ up to 160 for the frontier's files                │
//!                                                           ├─ 1/6 idle connections
//!                                                           ├─ 1/6 bodies in files, two each while they are archived
//!                                                           └─ 1/4 lookups, two sockets each
//! ```

use crate::config::Config;
use crate::error::Error;
use rustix::process::{Resource, getrlimit};

/// What the crawl itself holds: archive, log, indexes, seeds, terminal, runtime.
const OWN: u64 = 32;
/// What the frontier may hold: base, runs, and while it flushes and merges a temporary file for each column. Small frontiers keep
/// columns in memory, so where files are few it gets a quarter.
const FRONTIER: u64 = 160;
/// Below this nothing can be shared out.
const LEAST: u64 = OWN + 12;

/// Lowers the settings of a crawl to what this process may have open.
pub(crate) fn bound(config: &mut Config) -> Result<(), Error> {
    let limit = config.descriptors.or_else(|| getrlimit(Resource::Nofile).current).unwrap_or(u64::MAX);
    if limit < LEAST {
        let expected = format!("at least {LEAST} open files");
        return Err(Error::Setting { setting: "open files (ulimit -n)", expected, found: limit.to_string() });
    }
    let rest = limit - OWN - ((limit - OWN) / 4).min(FRONTIER);
    let share = |parts: u64| usize::try_from(rest / parts).unwrap_or(usize::MAX).max(1);
    config.workers = config.workers.min(share(3));
    config.fetch.pool.total = config.fetch.pool.total.min(share(6));
    config.fetch.limits.spools = config.fetch.limits.spools.min(share(12));
    config.fetch.dns.concurrent = config.fetch.dns.concurrent.min(share(8));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_limit() {
        for limit in [LEAST, 64, 256, 1024, 1 << 20, u64::MAX] {
            let mut config = Config::new("out", Vec::new());
            config.descriptors = Some(limit);
            bound(&mut config).unwrap();
            let (fetch, dns) = (&config.fetch, &config.fetch.dns);
            let open = config.workers + fetch.pool.total + 2 * fetch.limits.spools + 2 * dns.concurrent;
            assert!(open as u64 + OWN <= limit, "{limit}: {open}");
        }
        let mut config = Config::new("out", Vec::new());
        config.descriptors = Some(LEAST - 1);
        assert!(bound(&mut config).unwrap_err().to_string().contains("ulimit -n"));
        let mut config = Config::new("out", Vec::new());
        config.descriptors = Some(1 << 20);
        bound(&mut config).unwrap();
        assert_eq!(config.workers, 256, "a high limit changes nothing");
    }
}
