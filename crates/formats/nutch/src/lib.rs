//! Apache Nutch's data without a JVM: CrawlDb, LinkDb, segments, web graph and host db of 1.x, and the layouts of 0.4 to
//! 0.9.
//!
//! | what | where |
//! | --- | --- |
//! | values, every version read, the current one written | [`types`] |
//! | values and layouts of 0.4 to 0.7 | [`legacy`] |
//! | variants without a version, records of any class as JSON | [`Dialect`], [`RecordPrinter`] |
//!
//! The containers beneath (SequenceFile, MapFile) are those of [`trawl_hadoop`]. Not here: the jobs that make one database
//! from another.
//!
//! ```
//! use trawl_nutch::types::{CrawlDatum, Status, encoded, whole};
//!
//! let datum = CrawlDatum::new(Status::DB_UNFETCHED, 1_794_728_646_103, 1.0);
//! let bytes = encoded(|out| datum.encode(out));
//! assert_eq!(bytes.len(), 29);
//! assert_eq!(whole(&bytes, CrawlDatum::decode).unwrap().status().name(), "db_unfetched");
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod class;
pub mod db;
mod dialect;
mod doors;
mod json;
pub mod legacy;
pub mod segment;
pub mod tools;
pub mod types;

pub use dialect::{Dialect, RecordPrinter};
pub use doors::NutchFormat;
pub use trawl_hadoop::{Error, Result, ValueError};
