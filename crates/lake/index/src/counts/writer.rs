//! Writes counts in slot order.

use super::{BLOCK_SLOTS, Count, MAGIC, MAX_PATH_LEN, MAX_PATHS, VERSION, block};
use crate::paged::{PagedWriter, Written};
use crate::{Error, Result};
use std::io::Write;

/// Takes the counts of each slot. Holds one block and 8 bytes for every block before.
pub struct CountsWriter<W: Write> {
    out: PagedWriter<W>,
    block: Vec<Vec<Count>>,
    table: Vec<u8>,
    slots: u64,
    pairs: u64,
}

impl<W: Write> CountsWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let mut out = PagedWriter::new(out, "counts.bin");
        out.write(&MAGIC)?;
        out.write(&VERSION.to_le_bytes())?;
        Ok(Self { out, block: Vec::new(), table: Vec::new(), slots: 0, pairs: 0 })
    }

    /// Adds the next slot: one count a dataset, in the order of the datasets.
    pub fn push(&mut self, counts: Vec<Count>) -> Result<()> {
        let sound = |c: &Count| {
            (1..=c.rows).contains(&c.distinct)
                && c.rows < 1 << 60
                && c.times.is_none_or(|(first, last)| first <= last)
                && c.paths.len() <= MAX_PATHS
                && c.paths.iter().all(|(path, _)| path.len() <= MAX_PATH_LEN)
        };
        if let Some(bad) = counts.iter().find(|c| !sound(c)) {
            let at = format!("counts of slot {}", self.slots);
            return Err(Error::Input { at, expected: "counts that agree with each other", found: format!("{bad:?}") });
        }
        self.slots += 1;
        self.pairs += counts.len() as u64;
        self.block.push(counts);
        if self.block.len() as u64 == BLOCK_SLOTS {
            self.end_block()?;
        }
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(W, Written)> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let table_at = self.out.position();
        self.out.write(&self.table)?;
        for number in [self.slots, self.pairs, table_at] {
            self.out.write(&number.to_le_bytes())?;
        }
        self.out.finish()
    }

    fn end_block(&mut self) -> Result<()> {
        self.table.extend_from_slice(&self.out.position().to_le_bytes());
        let mut bytes = Vec::new();
        block::encode(&self.block, &mut bytes);
        self.block.clear();
        self.out.write(&bytes)
    }
}
