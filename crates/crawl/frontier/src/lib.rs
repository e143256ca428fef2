//! What to fetch next, when, and how politely. Larger than memory; what was acknowledged survives a power cut.
//!
//! A [`Frontier`] takes URLs by [`Frontier::offer`], hands them out by [`Frontier::lease`], and takes what came of them by
//! [`Frontier::released`] (the fetch ended: gates open) and [`Frontier::settle`] (its capture is durable: the URL is settled).
//! [`Frontier::commit`] makes one batch of the log of all that happened since the last one.
//!
//! Hosts are in memory, URLs on disk, in files and a log; see the page of `store`. Time is an argument and never goes
//! back, so a day of politeness is tested in a millisecond.
//!
//! ```
//! use trawl_frontier::{Answer, Candidate, Config, Frontier, Next, Outcome, RobotsPolicy, Work, LeaseId};
//! use trawl_model::UnixMillis;
//! use trawl_url::WebUrl;
//!
//! let mut frontier = Frontier::in_memory(Config { robots: RobotsPolicy::Ignore, ..Config::default() });
//! let identity = frontier.config().identity;
//! let urls = ["http://example.org/a", "http://example.org/b"].map(WebUrl::parse).into_iter().collect::<Result<Vec<_>, _>>()?;
//! let seeds: Vec<_> = urls.into_iter().map(|url| Candidate::seed(identity, url, None)).collect();
//! frontier.offer(UnixMillis(0), &seeds)?;
//! let mut work = Vec::new();
//! // The host has a request in flight: its other page waits.
//! assert_eq!(frontier.lease(UnixMillis(0), 9, &mut work)?, Next::Blocked);
//! let [Work::Fetch(lease)] = &work[..] else { panic!("a page may be fetched") };
//! assert_eq!(lease.url(), "http://example.org/a");
//! let LeaseId::Page(id) = lease.id else { panic!("a page") };
//! frontier.settle(UnixMillis(80), &[Outcome { id, answer: Answer::status(200), note: None }])?;
//! assert!(matches!(frontier.lease(UnixMillis(80), 9, &mut Vec::new())?, Next::WaitUntil(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod absence;
mod candidate;
mod config;
pub mod conformance;
mod control;
mod dispatch;
mod error;
mod frontier;
mod giving_up;
mod host;
mod identity;
mod index;
mod intake;
mod memtable;
mod outcome;
mod place;
mod policy;
mod queue;
mod recrawl;
mod refill;
mod reopen;
mod robots;
mod row;
mod seen;
mod spelling;
mod store;
#[cfg(test)]
mod tests;

pub use candidate::{
    Address, Admission, AllowAll, Answer, Candidate, DEFAULT_PRIORITY, HostId, Lease, LeaseId, Next, Outcome,
    RobotsAnswer, Rules, Settled, Source, Wanted, Work,
};
pub use config::{Config, Durability, RobotsPolicy};
pub use control::HostReport;
pub use error::{Error, Result};
pub use frontier::Frontier;
pub use giving_up::Forgotten;
pub use identity::{Identity, QueueBy, UrlId};
pub use policy::priority::bucket_of;
pub use recrawl::Recrawl;
pub use reopen::{AtLimit, Reopening};
pub use store::{StoreStats, Ticket};
