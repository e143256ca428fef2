//! `paths.bin`: for each (slot, dataset) the first path segments with most rows.
//!
//! [Records by slot](crate::slots), magic "TTOP", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`, in order. A block is one zstd frame, since datasets of a domain have the same paths; uvarint
//! is LEB128.
//!
//! ```text
//! block, empty if none of its slots has a path; else a frame of:
//!   per slot:
//!     uvarint  length of the rest
//!     per dataset:
//!       uvarint  number of paths, at most 8, then each:
//!         uvarint  length, at most 128, the path's bytes
//!         uvarint  rows
//! ```

mod reader;
mod record;
mod writer;

pub use reader::Paths;
pub use writer::PathsWriter;

const MAGIC: [u8; 4] = *b"TTOP";
const VERSION: u32 = 1;
/// Longest block that is decompressed: 64 domains of some thousands of datasets each, all their paths long.
const MAX_RAW: u64 = 256 << 20;

#[cfg(test)]
mod tests;
