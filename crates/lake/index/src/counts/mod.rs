//! `counts.bin`: for each (slot, dataset) how many rows, and how many different URLs.
//!
//! [Records by slot](crate::slots), magic "TCNT", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`, in order, and are not repeated here. uvarint is LEB128.
//!
//! ```text
//! block, per slot:
//!   uvarint  length of the rest
//!   per dataset:
//!     uvarint  rows * 2 + flag
//!     uvarint  if flag 1: (rows - distinct) * 2 + 1 if distinct is only a bound; else all rows are distinct
//! ```

mod reader;
mod record;
mod writer;

pub use reader::Counts;
pub use writer::CountsWriter;

use trawl_model::UnixMillis;

const MAGIC: [u8; 4] = *b"TCNT";
const VERSION: u32 = 1;
/// Most paths kept for a pair.
pub const MAX_PATHS: usize = 8;
/// Longest path that is kept.
pub const MAX_PATH_LEN: usize = 128;

/// What is known of a (slot, dataset).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Rows: exact.
    pub rows: u64,
    /// Different URLs.
    pub distinct: u64,
    /// Whether `distinct` is exact; else it is an upper bound.
    pub exact: bool,
    /// Earliest and latest time of its rows, where any has one. Not part of `counts.bin`: see [`crate::times`].
    pub times: Option<(UnixMillis, UnixMillis)>,
    /// First path segments with most rows, most first. Empty for small pairs. Not part of `counts.bin`: see
    /// [`crate::paths`].
    pub paths: Vec<(String, u64)>,
}

#[cfg(test)]
mod tests;
