//! Records by slot: what `counts.bin`, `times.bin` and `paths.bin` have in common.
//!
//! A body with [page checksums](crate::paged). Slots come in blocks of 64, found by a table. Little-endian.
//!
//! ```text
//!  off size field
//!   0   4   magic of the file
//!   4   4   version of the file
//!   8   -   blocks, one after another, as the file draws them; an empty one says nothing of its slots
//!   t  8B   offset of each block
//!      8    slots
//!      8    pairs, over all slots
//!      8    t
//! ```

mod reader;
mod writer;

pub(crate) use reader::SlotReader;
pub(crate) use writer::SlotWriter;

const HEADER: u64 = 4 + 4;
const FOOTER: u64 = 8 + 8 + 8;
const _: () = assert!(HEADER == 8 && FOOTER == 24);
/// Slots in a block. A lookup passes over 32 on average, a byte or two each.
pub(crate) const BLOCK_SLOTS: u64 = 64;
/// Longest block that is read.
const MAX_BLOCK: u64 = 1 << 30;

/// Why bytes are no block.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockError {
    #[error(transparent)]
    Slice(#[from] trawl_io::slice::SliceError),
    #[error("{0}")]
    Value(&'static str),
}

/// Record `place` of a block of records with their lengths in front. `None`: the block ends before, or a length is
/// wrong. Some thirty records are passed over on average, so this is most of a lookup's work.
#[inline]
pub(crate) fn nth(block: &[u8], place: u64) -> Option<&[u8]> {
    let mut rest = block;
    for _ in 0..place {
        rest = skip(rest)?;
    }
    let (len, used) = trawl_io::varint::uvarint(rest).ok()?;
    rest.get(used..)?.get(..usize::try_from(len).ok()?)
}

/// What follows a record that has its length in front.
#[inline]
pub(crate) fn skip(rest: &[u8]) -> Option<&[u8]> {
    let (len, used) = trawl_io::varint::uvarint(rest).ok()?;
    rest.get(used..)?.get(usize::try_from(len).ok()?..)
}
