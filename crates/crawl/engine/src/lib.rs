//! The crawl loop: frontier, fetch, archive, journal.
//!
//! [`run`] crawls a list of seeds into a directory. Everything it acknowledges survives a killed process and a power cut:
//! see the commit order in `docs/crawling.md`.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod commit;
mod config;
mod crawl;
mod derived;
mod error;
mod layout;
mod open;
mod page;
mod record;
mod report;
mod run;
mod scope;
mod seeds;
mod state;
mod stop;
mod writer;

pub use config::{Config, Start};
pub use error::Error;
pub use report::{Counts, FileEntry, Progress, Report};
pub use run::{run, run_in};
pub use scope::Scope;
pub use seeds::{SeedIdentity, SeedInput};
pub use stop::Stop;
