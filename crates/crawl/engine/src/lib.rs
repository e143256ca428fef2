//! The crawl loop: frontier, fetch, archive, journal.
//!
//! [`run`] crawls a list of seeds into a directory. Everything it acknowledges survives a killed process and a power cut:
//! see the commit order in `docs/crawling.md`.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod archive;
mod commit;
mod config;
mod crawl;
mod derived;
mod digests;
mod error;
mod layout;
mod open;
mod page;
mod pages;
mod record;
mod report;
mod run;
mod scope;
mod seeds;
mod state;
mod stop;
mod writer;

pub use config::{Config, Format, Start};
pub use digests::{DigestStore, Digests, Earlier};
pub use error::Error;
pub use pages::{PagesSink, Stamped};
pub use report::{Counts, FileEntry, Progress, Report};
pub use run::{run, run_in};
pub use scope::Scope;
pub use seeds::{SeedIdentity, SeedInput};
pub use stop::Stop;
pub use trawl_model::Clock;
pub use trawl_warc::IdSource;
