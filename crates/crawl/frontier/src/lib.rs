//! What to fetch next, when, and how politely.
//!
//! A [`Frontier`] is a state machine: URLs go in by [`Frontier::discover`], leases come out of [`Frontier::next`], and what
//! came of them goes back by [`Frontier::released`] (the fetch ended: gates) and [`Frontier::acknowledged`] (its capture is
//! durable: the URL is settled). It does no I/O and asks neither clock nor dice, so a day of politeness is tested in a
//! millisecond, and replaying a journal of the same calls gives the same state.
//!
//! This stage keeps everything in memory, up to [`Config::max_known`] URLs; what is offered past that is counted and forgotten.
//!
//! ```
//! use trawl_frontier::{Answer, Candidate, Config, Frontier, LeaseId, Next, RobotsPolicy};
//! use trawl_model::UnixMillis;
//! use trawl_url::WebUrl;
//!
//! let mut frontier = Frontier::new(Config { robots: RobotsPolicy::Ignore, ..Config::default() });
//! let identity = frontier.config().identity;
//! for url in ["http://example.org/a", "http://example.org/b"] {
//!     frontier.discover(Candidate::seed(identity, WebUrl::parse(url)?, None));
//! }
//! let Next::Lease(lease) = frontier.next(UnixMillis(0)) else { panic!("a page may be fetched") };
//! assert_eq!(lease.url.as_str(), "http://example.org/a");
//! // The host has a request in flight: its other page waits.
//! assert!(matches!(frontier.next(UnixMillis(0)), Next::Blocked));
//! frontier.released(UnixMillis(80), lease.id, Answer::status(200), None);
//! assert!(matches!(frontier.next(UnixMillis(80)), Next::WaitUntil(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod candidate;
mod config;
mod dispatch;
mod frontier;
mod giving_up;
mod host;
mod identity;
mod outcome;
mod politeness;
#[cfg(test)]
mod tests;

pub use candidate::{
    Admission, AllowAll, Answer, Candidate, Lease, LeaseId, LookupId, Next, RobotsAnswer, Rules, Source,
};
pub use config::{Config, RobotsPolicy};
pub use frontier::Frontier;
pub use identity::{Identity, UrlId};
