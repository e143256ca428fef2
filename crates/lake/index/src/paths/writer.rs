//! Writes paths in slot order.

use super::{MAGIC, VERSION, record};
use crate::counts::{Count, MAX_PATH_LEN, MAX_PATHS};
use crate::paged::Written;
use crate::slots::{BLOCK_SLOTS, SlotWriter};
use crate::{Error, Result};
use std::io::Write;

/// zstd level: blocks are small, so it costs little.
const LEVEL: i32 = 9;

/// Takes the paths of each slot. Holds one block.
pub struct PathsWriter<W: Write> {
    out: SlotWriter<W>,
    block: Vec<u8>,
    /// Whether any slot of the block has a path.
    any: bool,
    slots: u64,
    pairs: u64,
}

impl<W: Write> PathsWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let out = SlotWriter::new(out, "paths.bin", MAGIC, VERSION)?;
        Ok(Self { out, block: Vec::new(), any: false, slots: 0, pairs: 0 })
    }

    /// Adds the next slot: one count a dataset, in the order of the datasets.
    pub fn push(&mut self, counts: &[Count]) -> Result<()> {
        let fits = |c: &Count| c.paths.len() <= MAX_PATHS && c.paths.iter().all(|(path, _)| path.len() <= MAX_PATH_LEN);
        if let Some(bad) = counts.iter().find(|c| !fits(c)) {
            let at = format!("paths of slot {}", self.slots);
            let expected = "at most 8 paths of at most 128 bytes";
            return Err(Error::Input { at, expected, found: format!("{:?}", bad.paths) });
        }
        record::encode(counts, &mut self.block);
        self.any |= counts.iter().any(|c| !c.paths.is_empty());
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
        let frame = if self.any {
            zstd::bulk::compress(&self.block, LEVEL).map_err(|e| Error::Input {
                at: "paths.bin".into(),
                expected: "bytes that can be compressed",
                found: e.to_string(),
            })?
        } else {
            Vec::new()
        };
        self.block.clear();
        self.any = false;
        self.out.block(&frame)
    }
}
