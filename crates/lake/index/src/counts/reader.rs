//! Reads the counts of one slot.

use super::{Count, MAGIC, VERSION, record};
use crate::slots::SlotReader;
use crate::{Blob, Error, Result};
use std::path::Path;

/// An open file.
pub struct Counts(SlotReader);

impl Counts {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        Ok(Self(SlotReader::open(source, MAGIC, VERSION, "magic \"TCNT\", version 1, blocks of counts")?))
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.0.slots()
    }

    /// Pairs in the file.
    pub fn pairs(&self) -> u64 {
        self.0.pairs()
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.0.name()
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.0.file_len()
    }

    /// The counts of `slot`, which has `datasets` datasets; without times and paths.
    pub fn get(&self, slot: u64, datasets: usize) -> Result<Vec<Count>> {
        let (block, at, place) = self.0.find(slot)?;
        record::slot(&block, at, place, datasets).map_err(|e| self.0.bad(at, &e))
    }

    /// The counts of all slots, block by block; without times and paths.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<Vec<Count>>>> {
        (0..self.0.blocks()).map(|index| {
            let (block, at) = self.0.block(index)?;
            record::all(&block, at, self.0.slots_in(index)).map_err(|e| self.0.bad(at, &e))
        })
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.0.check_pages(each);
    }
}
