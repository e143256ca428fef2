//! Writes blocks and their table.

use super::HEADER;
use crate::Result;
use crate::paged::{PagedWriter, Written};
use std::io::Write;

/// Takes blocks in order. Holds 8 bytes for each.
pub(crate) struct SlotWriter<W: Write> {
    out: PagedWriter<W>,
    table: Vec<u8>,
}

impl<W: Write> SlotWriter<W> {
    pub fn new(out: W, what: &'static str, magic: [u8; 4], version: u32) -> Result<Self> {
        let mut out = PagedWriter::new(out, what);
        out.write(&magic)?;
        out.write(&version.to_le_bytes())?;
        debug_assert!(out.position() == HEADER);
        Ok(Self { out, table: Vec::new() })
    }

    pub fn block(&mut self, bytes: &[u8]) -> Result<()> {
        self.table.extend_from_slice(&self.out.position().to_le_bytes());
        self.out.write(bytes)
    }

    pub fn finish(mut self, slots: u64, pairs: u64) -> Result<(W, Written)> {
        let table_at = self.out.position();
        self.out.write(&self.table)?;
        for number in [slots, pairs, table_at] {
            self.out.write(&number.to_le_bytes())?;
        }
        self.out.finish()
    }
}
