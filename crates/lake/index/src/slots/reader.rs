//! Finds the block of a slot.

use super::{BLOCK_SLOTS, BlockError, FOOTER, HEADER, MAX_BLOCK};
use crate::paged::{PagedReader, Piece};
use crate::{Blob, Error, Result};
use std::ops::Range;
use std::path::Path;
use trawl_io::slice::{SliceError, SliceReader};

/// An open file of blocks.
pub(crate) struct SlotReader {
    file: PagedReader,
    slots: u64,
    pairs: u64,
    table_at: u64,
    what: &'static str,
}

impl SlotReader {
    /// Reads header and footer. `what` names magic and version for messages.
    pub fn open(source: impl Into<Blob>, magic: [u8; 4], version: u32, what: &'static str) -> Result<Self> {
        let file = PagedReader::open(source)?;
        let name = file.name();
        let len = file.len();
        let footer_at = len.checked_sub(FOOTER).filter(|at| *at >= HEADER);
        let footer_at = footer_at.ok_or_else(|| Error::corrupt(name, 0, "a header and a footer", len))?;
        let [header, footer] = file.read_many(&[0..HEADER, footer_at..len])?.try_into().unwrap_or_default();
        let mut r = SliceReader::new(&header);
        let found = (r.array::<4>("magic"), r.u32("version"));
        if found != (Ok(magic), Ok(version)) {
            return Err(Error::corrupt(name, 0, what, format!("{found:02x?}")));
        }
        let (slots, pairs, table_at) = parse_footer(&footer, footer_at).map_err(|e| e.in_file(name))?;
        let end = slots.div_ceil(BLOCK_SLOTS).checked_mul(8).and_then(|len| table_at.checked_add(len));
        if table_at < HEADER || end != Some(footer_at) {
            let found = format!("{slots} slots, table at {table_at}, {len} bytes");
            return Err(Error::corrupt(name, footer_at, "a table of all blocks before the footer", found));
        }
        Ok(Self { file, slots, pairs, table_at, what })
    }

    pub fn slots(&self) -> u64 {
        self.slots
    }

    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    pub fn name(&self) -> &Path {
        self.file.name()
    }

    pub fn file_len(&self) -> u64 {
        self.file.file_len()
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.slots.div_ceil(BLOCK_SLOTS)
    }

    /// Slots in block `index`.
    pub fn slots_in(&self, index: u64) -> u64 {
        self.slots.saturating_sub(index.saturating_mul(BLOCK_SLOTS)).min(BLOCK_SLOTS)
    }

    /// The block of `slot`, its offset, and the slot's place in it.
    pub fn find(&self, slot: u64) -> Result<(Piece<'_>, u64, u64)> {
        let (block, place) = self.place(slot)?;
        let (bytes, at) = self.block(block)?;
        Ok((bytes, at, place))
    }

    /// The number of the block of `slot`, and the slot's place in it.
    pub fn place(&self, slot: u64) -> Result<(u64, u64)> {
        if slot >= self.slots {
            return Err(Error::corrupt(self.name(), 0, "a slot of this segment", slot));
        }
        Ok((slot / BLOCK_SLOTS, slot % BLOCK_SLOTS))
    }

    /// Block `index` and its offset.
    pub fn block(&self, index: u64) -> Result<(Piece<'_>, u64)> {
        let range = self.range(index)?;
        Ok((self.file.piece(range.clone())?, range.start))
    }

    /// An error about the block at `at`.
    pub fn bad(&self, at: u64, error: &BlockError) -> Error {
        Error::corrupt(self.name(), at, self.what, error)
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.file.check_all(each);
    }

    fn range(&self, index: u64) -> Result<Range<u64>> {
        let at = self.table_at + index * 8;
        // The last block ends where the table begins.
        let last = index + 1 == self.blocks();
        let bytes = self.file.piece(at..at + if last { 8 } else { 16 })?;
        let mut r = SliceReader::at(&bytes, at);
        let mut number = || r.u64("block offset").map_err(|e| e.in_file(self.name()));
        let start = number()?;
        let end = if last { self.table_at } else { number()? };
        if start < HEADER || end < start || end > self.table_at || end - start > MAX_BLOCK {
            return Err(Error::corrupt(self.name(), at, "blocks in order before the table", format!("{start}..{end}")));
        }
        Ok(start..end)
    }
}

fn parse_footer(footer: &[u8], at: u64) -> std::result::Result<(u64, u64, u64), SliceError> {
    let mut r = SliceReader::at(footer, at);
    Ok((r.u64("slot count")?, r.u64("pair count")?, r.u64("table offset")?))
}
