//! `times.bin`: for each (slot, dataset) the earliest and the latest time of its rows.
//!
//! [Records by slot](crate::slots), magic "TTIM", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`; which have a single row is known from `counts.bin`. uvarint is LEB128, ivarint its zigzag
//! form.
//!
//! ```text
//! block, empty if none of its slots has a time:
//!   ivarint  b, the block's earliest time in milliseconds since 1970
//!   uvarint  u, milliseconds in a unit of its times: 1000 if all are whole seconds, else 1
//!   per slot:
//!     uvarint  length of the rest
//!     per dataset:
//!       uvarint  0 if it has no time, else (first - b) / u + 1
//!       uvarint  if it has a time and more than one row: (last - first) / u
//! ```

mod reader;
mod record;
mod writer;

pub use reader::Times;
pub use writer::TimesWriter;

const MAGIC: [u8; 4] = *b"TTIM";
const VERSION: u32 = 1;

#[cfg(test)]
mod tests;
