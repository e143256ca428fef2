//! `captures.parquet`: one row per fetch, pointing back into the archive.
//!
//! ```text
//! Capture + Place ──CaptureRow::from_capture──► CaptureRow ──CapturesWriter──► captures.parquet ──CapturesReader──► rows
//! ```
//!
//! The archive is the truth, the index can be rebuilt from it: crawl and rebuild make rows by the same function.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod columns;
mod common_crawl;
mod derive;
mod error;
mod format;
mod reader;
mod rebuild;
mod row;
mod verify;
mod writer;

pub use columns::REQUIRED;
pub use common_crawl::export_common_crawl;
pub use error::{Error, Result};
pub use format::{CapturesFormat, RowSums};
pub use reader::CapturesReader;
pub use rebuild::{RebuildReport, rebuild};
pub use row::CaptureRow;
pub use verify::{IndexReport, IndexVerifier, RowFinding};
pub use writer::{CapturesWriter, ROW_GROUP_ROWS, VERSION, VERSION_KEY};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_foreign;
