//! The judge: reads a request log and lists every rule a crawl broke.
//!
//! It knows the web from the model and the crawl only from the server's log; it shares no code with any crawler.
//!
//! ```text
//! log ─► lines ─► each request on its own: host, agent, method, server name     (intake)
//!                   └─► fetches by host, by time ─► concurrency, spacing, delays (politeness)
//!                                                 ├─► robots.txt                 (robots)
//!                                                 └─► fetches by URL ─► coverage, repeats, traps, validators (coverage)
//! ```

mod coverage;
mod intake;
mod politeness;
mod robots;
mod verdict;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub use verdict::{Kind, LogFault, Verdict, Violation};

use crate::error::{Error, Result};
use crate::settings::CrawlSettings;
use crate::world::{HostId, Node, Resource, World};

/// What is kept of a request to a host of this web.
#[derive(Debug, Clone)]
struct Fetch {
    line: u64,
    start_us: u64,
    end_us: u64,
    /// The server's end of the connection, for limits by address.
    address: Option<std::net::IpAddr>,
    host: HostId,
    secure: bool,
    /// What was asked for; `None` for a path that names nothing.
    node: Option<Node>,
    status: u16,
    bytes: u64,
    whole: bool,
    /// HEAD requests count for politeness, not as fetches.
    with_body: bool,
    conditions: Option<Box<Conditions>>,
}

/// What a crawler must read of a robots.txt; it may leave the rest.
const ROBOTS_BYTES: u64 = 500 << 10;

impl Fetch {
    /// Whether this is a request for a robots.txt, or for a file that one redirects to.
    fn is_robots(&self) -> bool {
        matches!(self.node.map(|n| n.what), Some(Resource::Robots | Resource::RobotsHop(_)))
    }

    /// Whether this was answered before the other one began. An answer within a microsecond is not before itself.
    fn is_before(&self, other: &Fetch) -> bool {
        self.end_us <= other.start_us && self.line != other.line
    }

    /// Whether as much of a robots.txt was sent as a crawler has to read.
    fn is_enough_robots(&self) -> bool {
        self.is_robots() && (self.whole || self.bytes >= ROBOTS_BYTES)
    }
}

/// The validators a request carried.
#[derive(Debug, Clone, Default)]
struct Conditions {
    if_none_match: Option<String>,
    if_modified_since: Option<String>,
}

/// Judges the log at `path`: did a crawl with these settings keep the rules in this web?
pub fn judge(path: &Path, world: &World, settings: &CrawlSettings) -> Result<Verdict> {
    let fail = |what| move |source| Error::Log { path: path.to_owned(), what, source };
    let file = File::open(path).map_err(fail("cannot open the log"))?;
    judge_reader(BufReader::with_capacity(1 << 20, file), world, settings).map_err(fail("cannot read the log"))
}

/// Judges a log that is read from `input`.
pub fn judge_reader(input: impl BufRead, world: &World, settings: &CrawlSettings) -> std::io::Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut log = intake::read(input, world, settings, &mut verdict)?;
    log.fetches.sort_by_key(|f| (f.host, f.start_us, f.line));
    for of_host in log.fetches.chunk_by(|a, b| a.host == b.host) {
        politeness::host(of_host, world, settings, &mut verdict);
        if settings.obey_robots {
            robots::host(of_host, world, settings, &mut verdict);
        }
    }
    coverage::check(&log, world, settings, &mut verdict);
    if settings.ip_in_flight > 0 || settings.ip_interval_ms > 0 {
        log.fetches.sort_by_key(|f| (f.address, f.start_us, f.line));
        for of_address in log.fetches.chunk_by(|a, b| a.address == b.address) {
            politeness::address(of_address, world, settings, &mut verdict);
        }
    }
    verdict.finish();
    Ok(verdict)
}
