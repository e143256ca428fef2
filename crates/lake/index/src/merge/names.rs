//! Walks the names of a segment in order.

use crate::lines::{Block, Lines};
use crate::{Result, Segment, Slot};
use std::sync::Arc;

/// A place in a dictionary.
pub(super) struct NameCursor<'a> {
    lines: &'a Lines,
    index: usize,
    block: Option<Arc<Block>>,
    line: usize,
}

impl<'a> NameCursor<'a> {
    pub fn new(segment: &'a Segment) -> Result<Self> {
        let lines = segment.dictionary();
        let block = (lines.block_count() > 0).then(|| lines.block(0)).transpose()?;
        Ok(Self { lines, index: 0, block, line: 0 })
    }

    /// The name here; `None` past the last.
    pub fn name(&self) -> Option<&str> {
        self.block.as_ref().and_then(|block| block.line(self.line))
    }

    pub fn slot(&self) -> Slot {
        Slot(self.block.as_ref().map_or(0, |block| block.first_line()) + self.line as u64)
    }

    pub fn advance(&mut self) -> Result<()> {
        self.line += 1;
        if self.block.as_ref().is_some_and(|block| self.line >= block.len()) {
            self.index += 1;
            self.line = 0;
            self.block = (self.index < self.lines.block_count()).then(|| self.lines.block(self.index)).transpose()?;
        }
        Ok(())
    }
}
