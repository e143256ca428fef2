//! Reads the counts of one slot.

use super::{BLOCK_SLOTS, Count, FOOTER, HEADER, MAGIC, MAX_BLOCK, VERSION, block};
use crate::paged::PagedReader;
use crate::{Blob, Error, Result};
use std::ops::Range;
use std::path::Path;
use trawl_io::slice::{SliceError, SliceReader};

/// An open file.
pub struct Counts {
    file: PagedReader,
    slots: u64,
    pairs: u64,
    table_at: u64,
}

impl Counts {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        let file = PagedReader::open(source)?;
        let name = file.name();
        let len = file.len();
        let footer_at = len.checked_sub(FOOTER).filter(|at| *at >= HEADER);
        let footer_at = footer_at.ok_or_else(|| Error::corrupt(name, 0, "a header and a footer", len))?;
        let [header, footer] = file.read_many(&[0..HEADER, footer_at..len])?.try_into().unwrap_or_default();
        let mut r = SliceReader::new(&header);
        let found = (r.array::<4>("magic"), r.u32("version"));
        if found != (Ok(MAGIC), Ok(VERSION)) {
            return Err(Error::corrupt(name, 0, "magic \"TCNT\", version 1", format!("{found:02x?}")));
        }
        let (slots, pairs, table_at) = parse_footer(&footer, footer_at).map_err(|e| e.in_file(name))?;
        let end = slots.div_ceil(BLOCK_SLOTS).checked_mul(8).and_then(|len| table_at.checked_add(len));
        if table_at < HEADER || end != Some(footer_at) {
            let found = format!("{slots} slots, table at {table_at}, {len} bytes");
            return Err(Error::corrupt(name, footer_at, "a table of all blocks before the footer", found));
        }
        Ok(Self { file, slots, pairs, table_at })
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Pairs in the file.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.file.name()
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.file.file_len()
    }

    /// The counts of `slot`, which has `datasets` datasets.
    pub fn get(&self, slot: u64, datasets: usize) -> Result<Vec<Count>> {
        if slot >= self.slots {
            return Err(Error::corrupt(self.name(), 0, "a slot of this segment", slot));
        }
        let range = self.block_range(slot / BLOCK_SLOTS)?;
        let bytes = self.file.read(range.clone())?;
        block::slot(&bytes, range.start, slot % BLOCK_SLOTS, datasets)
            .map_err(|e| Error::corrupt(self.name(), range.start, "a block of counts", e))
    }

    /// The counts of all slots, block by block.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<Vec<Count>>>> {
        (0..self.slots.div_ceil(BLOCK_SLOTS)).map(|index| {
            let range = self.block_range(index)?;
            let bytes = self.file.read(range.clone())?;
            block::all(&bytes, range.start, self.slots - index * BLOCK_SLOTS)
                .map_err(|e| Error::corrupt(self.name(), range.start, "a block of counts", e))
        })
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.file.check_all(each);
    }

    fn block_range(&self, index: u64) -> Result<Range<u64>> {
        let at = self.table_at + index * 8;
        // The last block ends where the table begins.
        let last = index + 1 == self.slots.div_ceil(BLOCK_SLOTS);
        let bytes = self.file.read(at..at + if last { 8 } else { 16 })?;
        let mut r = SliceReader::at(&bytes, at);
        let start = r.u64("block offset").map_err(|e| e.in_file(self.name()))?;
        let end = if last { self.table_at } else { r.u64("block offset").map_err(|e| e.in_file(self.name()))? };
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
