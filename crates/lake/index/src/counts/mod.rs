//! `counts.bin`: for each (slot, dataset) how many rows, how many different URLs, from when to when, and the paths with
//! most rows.
//!
//! A body with [page checksums](crate::paged). Slots come in blocks of 64, found by a table; the datasets of a slot are
//! those of `domain_to_datasets.roar`, in order, and are not repeated here. Little-endian; uvarint is LEB128, ivarint
//! its zigzag form.
//!
//! ```text
//!  off size field
//!   0   4   magic "TCNT"
//!   4   4   version, now 1
//!   8   -   blocks, one after another:
//!             ivarint  b, the block's earliest time in milliseconds since 1970; 0 if it has none
//!             uvarint  u, milliseconds in a unit of its times: 1000 if all are whole seconds, else 1
//!             per slot:
//!               uvarint  length of the rest
//!               per dataset:
//!                 uvarint  rows * 8 + flags
//!                 uvarint  if flag 1: (rows - distinct) * 2 + 1 if distinct is only a bound; else all rows are distinct
//!                 uvarint  if flag 2: (first time - b) / u
//!                 uvarint  if flag 2: (last time - first time) / u
//!                 if flag 4: uvarint number of paths, at most 8, then each:
//!                   uvarint length, at most 128, the path's bytes; uvarint rows
//!   t  8B   offset of each block
//!      8    slots
//!      8    pairs, over all slots
//!      8    t
//! ```

mod block;
mod reader;
mod writer;

pub use reader::Counts;
pub use writer::CountsWriter;

use trawl_model::UnixMillis;

const MAGIC: [u8; 4] = *b"TCNT";
const VERSION: u32 = 1;
const HEADER: u64 = 4 + 4;
const FOOTER: u64 = 8 + 8 + 8;
const _: () = assert!(HEADER == 8 && FOOTER == 24);
/// Slots in a block. A lookup passes over 32 on average, a byte or two each.
const BLOCK_SLOTS: u64 = 64;
/// Longest block that is read.
const MAX_BLOCK: u64 = 1 << 30;
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
    /// Earliest and latest time of its rows, where any has one.
    pub times: Option<(UnixMillis, UnixMillis)>,
    /// First path segments with most rows, most first. Empty for small pairs.
    pub paths: Vec<(String, u64)>,
}

#[cfg(test)]
mod tests;
