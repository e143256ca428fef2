//! `captures.parquet`: one row per fetch, pointing back into the archive.
//!
//! ```text
//! Capture + Place ──CaptureRow::from_capture──► CaptureRow ──CapturesWriter──► captures.parquet ──CapturesReader──► rows
//! ```
//!
//! The archive is the truth, the index can be rebuilt from it: crawl and rebuild make rows by the same function.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod columns;
mod derive;
mod error;
mod reader;
mod row;
mod writer;

pub use columns::REQUIRED;
pub use error::{Error, Result};
pub use reader::CapturesReader;
pub use row::CaptureRow;
pub use writer::{CapturesWriter, ROW_GROUP_ROWS, VERSION, VERSION_KEY};

#[cfg(test)]
mod tests;
