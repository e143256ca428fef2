//! `captures.parquet`: one row per fetch, pointing back into the archive.
//!
//! ```text
//! Capture + Place ──CaptureRow::from_capture──► CaptureRow ──CapturesWriter──► captures.parquet ──CapturesReader──► rows
//! ```
//!
//! The archive is the truth, the index can be rebuilt from it: crawl and rebuild make rows by the same function.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trawl_captures::{CaptureRow, CapturesReader, CapturesWriter};
//! # let dir = tempfile::tempdir()?;
//! # let fs: std::sync::Arc<dyn trawl_io::Fs> = std::sync::Arc::new(trawl_io::RealFs);
//! let path = dir.path().join("captures.parquet");
//! let mut writer = CapturesWriter::create(&fs, &path)?;
//! writer.push(CaptureRow { url: "http://a.example/".into(), status: 200, ..CaptureRow::default() })?;
//! assert_eq!(writer.finish()?, 1);
//! let rows: Vec<CaptureRow> = CapturesReader::open(&path)?.collect::<Result<_, _>>()?;
//! assert_eq!((rows[0].url.as_str(), rows[0].status), ("http://a.example/", 200));
//! # Ok(()) }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod columns;
mod common_crawl;
mod concat;
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
pub use concat::concat;
pub use derive::sha1;
pub use error::{Error, Result};
pub use format::{CapturesFormat, RowSums};
pub use reader::{CapturesReader, archives_of};
pub use rebuild::{OtherRows, RebuildReport, rebuild};
pub use row::CaptureRow;
pub use verify::{IndexReport, IndexVerifier, RowFinding};
pub use writer::{ARCHIVES_KEY, CapturesWriter, Covered, ROW_GROUP_ROWS, VERSION, VERSION_KEY};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_foreign;
