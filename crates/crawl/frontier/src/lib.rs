//! What to fetch next, when, and how politely.
//!
//! A [`Frontier`] is a state machine: URLs go in by [`Frontier::discover`], leases come out of [`Frontier::next`], and what
//! came of them goes back by [`Frontier::released`] (the fetch ended: gates) and [`Frontier::acknowledged`] (its capture is
//! durable: the URL is settled). It does no I/O and asks neither clock nor dice, so a day of politeness is tested in a
//! millisecond, and replaying a journal of the same calls gives the same state.
//!
//! This stage keeps everything in memory, up to [`Config::max_known`] URLs, past which it refuses by name.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod candidate;
mod config;
mod dispatch;
mod error;
mod frontier;
mod host;
mod identity;
mod outcome;
mod politeness;
mod site;
#[cfg(test)]
mod tests;

pub use candidate::{Admission, AllowAll, Answer, Candidate, Lease, LeaseId, Next, RobotsAnswer, Rules, Source};
pub use config::{Config, RobotsPolicy, Scope};
pub use error::Error;
pub use frontier::Frontier;
pub use identity::{Identity, UrlId};
pub use site::Site;
