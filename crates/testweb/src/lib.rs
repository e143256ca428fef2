//! A deterministic synthetic web on loopback: for the demo, the tests and the benchmarks of a crawler.
//!
//! [`World`] is the model: hosts, pages, links, robots rules and the pages a polite crawler fetches, all computed from a
//! seed. [`TestWeb`] serves it over real HTTP with real-looking host names (a client connects to one address whatever the
//! name, as with `--connect-to ::127.0.0.1:PORT`) and logs what clients did. [`judge()`] reads that log and lists every rule
//! a crawl broke. It shares no code with the crawler it judges.
//!
//! ```
//! use trawl_testweb::{Config, TestWeb};
//! let web = TestWeb::start(Config { domains: 20, seeds: 2, pages: 100, ..Config::default() })?;
//! let expected = web.world().expected_pages(3);
//! assert!(expected.contains(&web.world().seeds()[0]));
//! web.stop()?;
//! # Ok::<(), trawl_testweb::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod character;
mod config;
mod date;
mod dice;
mod error;
mod judge;
mod log;
mod names;
mod profiles;
mod server;
mod settings;
mod words;
mod world;

pub use character::{Axis, Character, Shares};
pub use config::{Addresses, Config};
pub use error::{Error, Result};
pub use judge::{Kind, LogFault, Verdict, Violation, judge, judge_reader};
pub use log::{Event, LogReader, Record};
pub use profiles::Profile;
pub use server::{NameService, Running, TestWeb};
pub use settings::CrawlSettings;
pub use world::{
    CharacterCount, Description, Expectation, Form, Group, Host, HostId, Link, Node, Outcome, PageId, Resource, Robots,
    RobotsReply, Rule, Want, World,
};
