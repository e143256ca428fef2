//! The crawl loop: frontier, fetch, archive.
//!
//! [`run`] crawls a list of seeds into a directory. Everything it acknowledges survives a killed process and a power cut:
//! see the commit order in `docs/crawling.md`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use trawl_engine::{Config, SeedInput, Stop};
//! use trawl_model::{Clock, UnixMillis};
//! # use std::io::{Read, Write};
//! # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let at = server.local_addr()?;
//! # std::thread::spawn(move || {
//! #     for stream in server.incoming() {
//! #         let mut stream = stream.unwrap();
//! #         let _ = stream.read(&mut [0; 4096]);
//! #         stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").unwrap();
//! #     }
//! # });
//! # let dir = tempfile::tempdir()?;
//! let mut config = Config::new(dir.path(), vec![SeedInput::Url(format!("http://{at}/"))]);
//! config.fetch.user_agent = "my-crawler/1.0".into();
//! // A server on this machine, which has a private address.
//! config.fetch.allow_private = vec!["127.0.0.1".into()];
//! config.frontier.delay = std::time::Duration::ZERO;
//! let next = std::sync::atomic::AtomicU64::new(0);
//! let ids = move || u128::from(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).to_be_bytes();
//! let report = trawl_engine::run(config, Clock::fixed(UnixMillis(0)), Arc::new(ids), &Stop::new(), &mut |_| {})?;
//! assert_eq!((report.counts.robots_files, report.counts.statuses[&200]), (1, 2));
//! assert!(dir.path().join("captures.parquet").exists());
//! # Ok(()) }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod commit;
mod config;
mod crawl;
mod derived;
mod descriptors;
mod dispatch;
mod error;
mod governor;
mod guess;
mod hashed;
mod heritrix_log;
mod hosts;
mod layout;
mod lease;
mod look;
mod message;
mod open;
mod page;
mod pool;
mod prior;
mod record;
mod report;
mod rules;
mod run;
mod scope;
mod seeds;
mod sitemaps;
mod spool;
mod state;
mod stop;
mod writer;

pub use config::{Budget, Config, Start};
pub use error::Error;
pub use guess::speaks_https;
pub use report::{Counts, FileEntry, GIVEN_UP_NAMES, Leg, Progress, Report, UrlSums, Waiting};
pub use rules::{LinkRules, Rule, Shard, Surts};
pub use run::{run, run_in, settings_of};
pub use scope::Scope;
pub use seeds::{Retry, SeedIdentity, SeedInput};
pub use stop::Stop;
