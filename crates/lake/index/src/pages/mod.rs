//! `pages.bin`: the page tables of all Parquet files, so that reading rows needs no footer.
//!
//! A body with [page checksums](crate::paged) that stores [`trawl_rows::GroupTable`]s as they are. Little-endian.
//!
//! ```text
//!  off size  field
//!   0   4    magic "TPGS"
//!   4   4    version, now 1
//!   8   -    tables, one a row group, file after file
//!   g  8G+8  offset of each table, and the end of the last
//!   f  4F+4  per file in file_id order: row groups in files before it; and the sum
//!      8     g
//!      4     F, files
//!      4     G, row groups
//! ```

mod reader;
mod writer;

pub use reader::Pages;
pub use writer::PagesWriter;

const MAGIC: [u8; 4] = *b"TPGS";
const VERSION: u32 = 1;
const HEADER: u64 = 4 + 4;
const FOOTER: u64 = 8 + 4 + 4;
const _: () = assert!(HEADER == 8 && FOOTER == 16);
/// Longest table that is read: over a million pages.
const MAX_TABLE: u64 = 16 << 20;

#[cfg(test)]
mod tests;
