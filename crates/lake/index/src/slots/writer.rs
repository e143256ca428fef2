//! Writes blocks and their table.

use super::{BLOCK_SLOTS, HEADER, LEVEL, Record, VERSION, encode};
use crate::counts::Count;
use crate::paged::PagedWriter;
use crate::{Error, Result};
use std::io::Write;
use std::marker::PhantomData;

/// Takes blocks in order. Holds 8 bytes for each.
pub(crate) struct SlotWriter<R, W: Write> {
    out: PagedWriter<W>,
    table: Vec<u8>,
    slots: u64,
    pairs: u64,
    record: PhantomData<R>,
}

impl<R: Record, W: Write> SlotWriter<R, W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let mut out = PagedWriter::new(out, R::FILE);
        out.write(&R::MAGIC)?;
        out.write(&VERSION.to_le_bytes())?;
        debug_assert!(out.position() == HEADER);
        Ok(Self { out, table: Vec::new(), slots: 0, pairs: 0, record: PhantomData })
    }

    /// Adds the next slots, one count a dataset in the order of the datasets: [`BLOCK_SLOTS`] of them, but for the last block.
    pub fn block(&mut self, slots: &[Vec<Count>]) -> Result<()> {
        debug_assert!(slots.len() <= BLOCK_SLOTS && self.slots.is_multiple_of(BLOCK_SLOTS as u64));
        for slot in slots {
            for count in slot {
                R::check(count).map_err(|expected| {
                    let at = format!("{}, slot {}", R::FILE, self.slots);
                    Error::Input { at, expected, found: format!("{count:?}") }
                })?;
            }
            self.slots += 1;
            self.pairs += slot.len() as u64;
        }
        let mut bytes = Vec::new();
        encode::<R>(slots, &mut bytes);
        if R::PACKED && !bytes.is_empty() {
            bytes = zstd::bulk::compress(&bytes, LEVEL).map_err(Error::write(R::FILE))?;
        }
        self.table.extend_from_slice(&self.out.position().to_le_bytes());
        self.out.write(&bytes)
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        let table_at = self.out.position();
        self.out.write(&self.table)?;
        for number in [self.slots, self.pairs, table_at] {
            self.out.write(&number.to_le_bytes())?;
        }
        self.out.finish()
    }
}
