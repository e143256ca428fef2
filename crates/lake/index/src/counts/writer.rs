//! Writes counts in slot order.

use super::{Count, MAGIC, VERSION, record};
use crate::paged::Written;
use crate::slots::{BLOCK_SLOTS, SlotWriter};
use crate::{Error, Result};
use std::io::Write;

/// Takes the counts of each slot; times and paths are left to [`crate::times`] and [`crate::paths`].
pub struct CountsWriter<W: Write> {
    out: SlotWriter<W>,
    block: Vec<u8>,
    slots: u64,
    pairs: u64,
}

impl<W: Write> CountsWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let out = SlotWriter::new(out, "counts.bin", MAGIC, VERSION)?;
        Ok(Self { out, block: Vec::new(), slots: 0, pairs: 0 })
    }

    /// Adds the next slot: one count a dataset, in the order of the datasets.
    pub fn push(&mut self, counts: &[Count]) -> Result<()> {
        let sound = |c: &Count| (1..=c.rows).contains(&c.distinct) && c.rows < 1 << 60;
        if let Some(bad) = counts.iter().find(|c| !sound(c)) {
            let at = format!("counts of slot {}", self.slots);
            return Err(Error::Input { at, expected: "counts that agree with each other", found: format!("{bad:?}") });
        }
        record::encode(counts, &mut self.block);
        self.slots += 1;
        self.pairs += counts.len() as u64;
        if self.slots.is_multiple_of(BLOCK_SLOTS) { self.end_block() } else { Ok(()) }
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(W, Written)> {
        if !self.slots.is_multiple_of(BLOCK_SLOTS) {
            self.end_block()?;
        }
        self.out.finish(self.slots, self.pairs)
    }

    fn end_block(&mut self) -> Result<()> {
        self.out.block(&self.block)?;
        self.block.clear();
        Ok(())
    }
}
