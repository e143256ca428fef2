//! `domain_to_datasets.roar`: for each slot the set of datasets that hold the domain.
//!
//! The drawing, with widths and meanings pinned; little-endian:
//!
//! ```text
//!  off size field
//!   0   4   magic "DTDR"
//!   4   4   version, now 1
//!   8   8   N_domains
//!  16   8   index_offset
//!  24   -   bitmaps, one after another, each distinct one once: Roaring's portable serialisation of dataset ids
//!   i  12N  index, at index_offset, one entry a slot in slot order:
//!             0 8 bitmap_start, from the start of the file      8 4 bitmap_len
//! ```
//! followed by the [page checksums](crate::paged), which a reader of the drawing alone does not see.
//! Invariants: the index ends the body; every bitmap lies between byte 24 and the index; none is empty.

mod arrays;
mod reader;
mod writer;

pub use reader::Membership;
pub use writer::MembershipWriter;

/// Its name in a segment.
pub(crate) const FILE: &str = "domain_to_datasets.roar";
const MAGIC: [u8; 4] = *b"DTDR";
const VERSION: u32 = 1;
const HEADER: u64 = 4 + 4 + 8 + 8;
const ENTRY: u64 = 8 + 4;
const _: () = assert!(HEADER == 24 && ENTRY == 12);
/// Longest bitmap that is read: every dataset id of a lake with half a million datasets.
const MAX_BITMAP: u32 = 1 << 20;

#[cfg(test)]
mod tests;
