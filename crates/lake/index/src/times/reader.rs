//! Reads the times of one slot.

use super::{MAGIC, VERSION, record};
use crate::counts::Count;
use crate::slots::SlotReader;
use crate::{Blob, Error, Result};

/// An open file.
pub struct Times(SlotReader);

impl Times {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        Ok(Self(SlotReader::open(source, MAGIC, VERSION, "magic \"TTIM\", version 1, blocks of times")?))
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.0.slots()
    }

    /// Fills in the times of `slot`, whose counts are known.
    pub fn fill(&self, slot: u64, counts: &mut [Count]) -> Result<()> {
        let (block, at, place) = self.0.find(slot)?;
        record::slot(&block, at, place, counts).map_err(|e| self.0.bad(at, &e))
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.0.check_pages(each);
    }
}
