//! Writes lines.

use super::{MAX_LINE, index::Index};
use crate::seekable::SeekableWriter;
use crate::{Error, Result};
use std::io::Write;

/// How lines are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// By content: lines must come sorted, no two equal.
    Sorted,
    /// By number.
    None,
}

/// Writes lines, each whole within a frame.
pub struct LinesWriter<W: Write> {
    out: SeekableWriter<W>,
    what: &'static str,
    keys: Keys,
    index: Index,
    first: Vec<u8>,
    in_frame: u64,
    last: Vec<u8>,
}

impl<W: Write> LinesWriter<W> {
    /// Writes to `out` in frames of at most `frame_limit` bytes.
    pub fn new(out: W, what: &'static str, keys: Keys, level: i32, frame_limit: usize) -> Result<Self> {
        let out = SeekableWriter::new(out, what, level, frame_limit.max(MAX_LINE))?;
        Ok(Self { out, what, keys, index: Index::default(), first: Vec::new(), in_frame: 0, last: Vec::new() })
    }

    /// Appends a line, given without its end. Tells whether it begins a frame.
    pub fn push(&mut self, line: &str) -> Result<bool> {
        let refuse = |expected| Error::Input {
            at: format!("{}, line {}", self.what, self.index.lines() + self.in_frame),
            expected,
            found: line.chars().take(100).collect(),
        };
        if line.is_empty() || line.len() >= MAX_LINE || line.contains('\n') {
            return Err(refuse("a line of text, not empty, shorter than 4096 bytes"));
        }
        if self.keys == Keys::Sorted {
            if !self.last.is_empty() && self.last.as_slice() >= line.as_bytes() {
                return Err(refuse("lines in order, no two equal"));
            }
            self.last.clear();
            self.last.extend_from_slice(line.as_bytes());
        }
        if !self.out.fits(line.len() + 1) {
            self.end_frame()?;
        }
        let begins = self.in_frame == 0;
        if begins && self.keys == Keys::Sorted {
            self.first = line.as_bytes().to_vec();
        }
        self.in_frame += 1;
        // The frame limit is no smaller than a line, and a full frame is ended above: neither call cuts a line.
        self.out.write(line.as_bytes())?;
        self.out.write(b"\n")?;
        if self.out.at_frame_start() {
            self.note_frame();
        }
        Ok(begins)
    }

    /// Lines so far.
    pub fn lines(&self) -> u64 {
        self.index.lines() + self.in_frame
    }

    /// Ends the file; gives also the hash of its seek table.
    pub fn finish(mut self) -> Result<(W, u64)> {
        self.end_frame()?;
        self.out.finish(Some(&self.index.encode()))
    }

    fn end_frame(&mut self) -> Result<()> {
        self.out.cut()?;
        self.note_frame();
        Ok(())
    }

    fn note_frame(&mut self) {
        if self.in_frame > 0 {
            self.index.push(self.in_frame, &self.first);
            self.in_frame = 0;
        }
    }
}
