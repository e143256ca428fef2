//! Reads lines by number or by content.

use super::{Block, index::Index};
use crate::cache::{Caches, FileKey};
use crate::seekable::Seekable;
use crate::{Blob, Error, Result};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An open file of lines: its index in memory, its blocks read on demand through a cache.
pub struct Lines {
    file: Seekable,
    index: Index,
    key: FileKey,
    caches: Arc<Caches>,
}

impl Lines {
    /// Reads table and index.
    pub fn open(source: impl Into<Blob>, caches: Arc<Caches>) -> Result<Self> {
        let file = Seekable::open(source)?;
        let side = file.side().ok_or_else(|| Error::corrupt(file.name(), 0, "a line index", "none"))?;
        let index = Index::decode(file.name(), side, file.frame_count())?;
        Ok(Self { file, index, key: FileKey::new(), caches })
    }

    /// Lines in the file.
    pub fn len(&self) -> u64 {
        self.index.lines()
    }

    /// Whether the file has no lines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.file.name()
    }

    /// Blocks in the file.
    pub fn block_count(&self) -> usize {
        self.index.frames()
    }

    /// Numbers of the lines in block `index`; empty past the last block.
    pub fn block_lines(&self, index: usize) -> Range<u64> {
        self.index.first_line(index)..self.index.first_line(index.saturating_add(1))
    }

    /// The only block that can hold `line`, in a sorted file. No read.
    pub fn block_of(&self, line: &str) -> Option<usize> {
        self.index.frame_of_key(line.as_bytes())
    }

    /// Block `index`, read or from the cache.
    pub fn block(&self, index: usize) -> Result<Arc<Block>> {
        self.caches.lines.get_or_insert_with(&(self.key, index), || Ok(Arc::new(self.read_block(index)?)))
    }

    fn read_block(&self, index: usize) -> Result<Block> {
        let text = self.file.read_frame(index)?;
        let lines = self.block_lines(index);
        let at = self.file.content_range(index).start;
        let block = Block::new(lines.start, text.into(), lines.end - lines.start).map_err(|(offset, found)| {
            Error::corrupt(self.name(), at + offset, "lines as the index has them", found)
        })?;
        if !self.index.key(index).is_empty() && block.line(0).map(str::as_bytes) != Some(self.index.key(index)) {
            return Err(Error::corrupt(self.name(), at, "the first line as the index has it", "another line"));
        }
        Ok(block)
    }

    /// The line with number `line`: one block read.
    pub fn line(&self, line: u64) -> Result<Option<String>> {
        if line >= self.len() {
            return Ok(None);
        }
        let block = self.block(self.index.frame_of_line(line))?;
        let index = usize::try_from(line - block.first_line()).unwrap_or(usize::MAX);
        Ok(block.line(index).map(str::to_owned))
    }

    /// The number of `line` in a sorted file, by search: one block read.
    pub fn find(&self, line: &str) -> Result<Option<u64>> {
        let Some(index) = self.block_of(line) else { return Ok(None) };
        let block = self.block(index)?;
        let at = block.lower_bound(line);
        Ok((block.line(at) == Some(line)).then(|| block.first_line() + at as u64))
    }

    /// Goes through the lines of a sorted file from the first that is not before `from`, until `each` says stop.
    pub fn walk_from(&self, from: &str, each: &mut dyn FnMut(u64, &str) -> bool) -> Result<()> {
        let start = self.block_of(from).unwrap_or(0);
        for index in start..self.block_count() {
            let block = self.block(index)?;
            let skip = if index == start { block.lower_bound(from) } else { 0 };
            for (i, line) in block.lines_from(skip).enumerate() {
                if !each(block.first_line() + (skip + i) as u64, line) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The framing beneath.
    pub fn file(&self) -> &Seekable {
        &self.file
    }
}
