//! Writes times in slot order.

use super::{MAGIC, VERSION, record};
use crate::counts::Count;
use crate::paged::Written;
use crate::slots::{BLOCK_SLOTS, SlotWriter};
use crate::{Error, Result};
use std::io::Write;

/// Takes the times of each slot. Holds one block.
pub struct TimesWriter<W: Write> {
    out: SlotWriter<W>,
    block: Vec<Vec<record::Pair>>,
    slots: u64,
    pairs: u64,
}

impl<W: Write> TimesWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let out = SlotWriter::new(out, "times.bin", MAGIC, VERSION)?;
        Ok(Self { out, block: Vec::new(), slots: 0, pairs: 0 })
    }

    /// Adds the next slot: one count a dataset, in the order of the datasets.
    pub fn push(&mut self, counts: &[Count]) -> Result<()> {
        let sound = |c: &Count| c.times.is_none_or(|(first, last)| first < last && c.rows > 1 || first == last);
        if let Some(bad) = counts.iter().find(|c| !sound(c)) {
            let at = format!("times of slot {}", self.slots);
            let expected = "a first time not after the last, and the same for a single row";
            return Err(Error::Input { at, expected, found: format!("{:?} of {} rows", bad.times, bad.rows) });
        }
        self.slots += 1;
        self.pairs += counts.len() as u64;
        self.block.push(counts.iter().map(|c| (c.rows, c.times)).collect());
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
        let mut bytes = Vec::new();
        record::encode(&self.block, &mut bytes);
        self.block.clear();
        self.out.block(&bytes)
    }
}
