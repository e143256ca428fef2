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
//! A block is empty, or says something first ([`Record::Head`]) and then has a record for each slot: a uvarint, its length,
//! and one entry after another, a dataset each. The blocks of some files are zstd frames. `ARCHITECTURE.md` says
//! what a new file of this kind needs.

mod reader;
mod writer;

pub(crate) use reader::SlotReader;
pub(crate) use writer::SlotWriter;

use crate::counts::Count;
use trawl_io::slice::{SliceError, SliceReader};

const VERSION: u32 = 1;
const HEADER: u64 = 4 + 4;
const FOOTER: u64 = 8 + 8 + 8;
const _: () = assert!(HEADER == 8 && FOOTER == 24);
/// Slots in a block. A lookup passes over 32 on average, a byte or two each.
pub(crate) const BLOCK_SLOTS: usize = 64;
/// Longest block that is read.
const MAX_BLOCK: u64 = 1 << 30;
/// Longest block after decompression: 64 domains of some thousands of datasets each, all their paths long.
const MAX_RAW: u64 = 256 << 20;
/// zstd level of packed blocks: they are small, so it costs little.
const LEVEL: i32 = 9;

/// The part of a [`Count`] that one file has.
pub(crate) trait Record {
    /// What a block says before its records.
    type Head: Copy + Default;
    const MAGIC: [u8; 4];
    /// The file's name in a segment.
    const FILE: &'static str;
    /// Magic, version and kind of blocks, for messages.
    const WHAT: &'static str;
    /// Whether a block is a zstd frame.
    const PACKED: bool = false;

    /// Refuses a count the file cannot hold; the error is what it expects.
    fn check(count: &Count) -> Result<(), &'static str>;

    /// The head of a block; `None` if there is nothing to say of any of its slots.
    fn head(slots: &[Vec<Count>]) -> Option<Self::Head>;

    fn put_head(_: Self::Head, _: &mut Vec<u8>) {}

    fn take_head(_: &mut SliceReader<'_>) -> Result<Self::Head, BlockError> {
        Ok(Self::Head::default())
    }

    /// Appends the entry of a dataset.
    fn put(head: Self::Head, count: &Count, out: &mut Vec<u8>);

    /// Reads it back into a count; what it was made of before is known.
    fn take(head: Self::Head, r: &mut SliceReader<'_>, count: &mut Count) -> Result<(), BlockError>;
}

/// Why bytes are no block.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockError {
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error("{0}")]
    Value(&'static str),
}

/// Appends a block.
fn encode<R: Record>(slots: &[Vec<Count>], out: &mut Vec<u8>) {
    let Some(head) = R::head(slots) else { return };
    R::put_head(head, out);
    let mut record = Vec::new();
    for slot in slots {
        record.clear();
        slot.iter().for_each(|count| R::put(head, count, &mut record));
        trawl_io::varint::put_uvarint(out, record.len() as u64);
        out.extend_from_slice(&record);
    }
}

/// Fills in what the slot at `place` of a block has.
fn decode<R: Record>(block: &[u8], at: u64, place: u64, counts: &mut [Count]) -> Result<(), BlockError> {
    if block.is_empty() {
        return Ok(());
    }
    let mut r = SliceReader::at(block, at);
    let head = R::take_head(&mut r)?;
    let record = nth(r.rest(), place).ok_or(BlockError::Value("records that do not fill their block"))?;
    let mut r = SliceReader::at(record, at);
    counts.iter_mut().try_for_each(|count| R::take(head, &mut r, count))?;
    if r.is_empty() { Ok(()) } else { Err(BlockError::Value("more pairs than the membership has")) }
}

/// Record `place` of a block of records with their lengths in front. `None`: the block ends before, or a length is
/// wrong. Some thirty records are passed over on average, so this is most of a lookup's work.
#[inline]
fn nth(block: &[u8], place: u64) -> Option<&[u8]> {
    let mut rest = block;
    for left in (0..=place).rev() {
        let (len, used) = trawl_io::varint::uvarint(rest).ok()?;
        let (record, after) = rest.get(used..)?.split_at_checked(usize::try_from(len).ok()?)?;
        if left == 0 {
            return Some(record);
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests;
