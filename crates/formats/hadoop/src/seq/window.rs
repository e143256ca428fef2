//! A moving view of a file: bytes that follow each other, read in large pieces.

use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;
use trawl_io::ReadAt;

/// Reads begin and end at multiples of this, so that whole checksum chunks and whole pages are read.
const ALIGN: u64 = 4096;
/// The same for small pieces, which a lookup takes: what lies before a record on its page is of no use to it.
const SMALL_ALIGN: u64 = 512;

pub(super) struct Window {
    file: Arc<dyn ReadAt>,
    buffer: Vec<u8>,
    /// Offset in the file of `buffer`'s first byte.
    start: u64,
    /// The cursor, in `buffer`.
    at: usize,
    /// Bytes read at once.
    piece: u64,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({}@{})", self.file.name().display(), self.position())
    }
}

impl Window {
    pub fn new(file: Arc<dyn ReadAt>, piece: u64) -> Self {
        Window { file, buffer: Vec::new(), start: 0, at: 0, piece }
    }

    pub fn file(&self) -> &Arc<dyn ReadAt> {
        &self.file
    }

    /// Offset of the cursor in the file.
    #[inline]
    pub fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Bytes between cursor and end of file.
    #[inline]
    pub fn left(&self) -> u64 {
        self.file.len().saturating_sub(self.position())
    }

    /// Moves the cursor. What is buffered is kept if the new place lies in it.
    pub fn seek(&mut self, position: u64) {
        match position.checked_sub(self.start) {
            Some(at) if at <= self.buffer.len() as u64 => self.at = at as usize,
            _ => {
                self.buffer.clear();
                self.start = position - position % self.align();
                self.at = (position - self.start) as usize;
            }
        }
    }

    fn align(&self) -> u64 {
        if self.piece < ALIGN { SMALL_ALIGN } else { ALIGN }
    }

    /// How much the next read takes beyond what it must, until told otherwise.
    pub fn set_piece(&mut self, bytes: u64) {
        self.piece = bytes;
    }

    /// The next `n` bytes; the cursor stays. The file's length is checked before memory is taken.
    #[inline]
    pub fn peek(&mut self, n: usize, what: &'static str) -> Result<&[u8]> {
        if self.buffer.len() < self.at + n {
            self.fill(n, what)?;
        }
        Ok(self.buffer.get(self.at..self.at + n).unwrap_or_default())
    }

    /// Bytes that `peek` showed.
    #[inline]
    pub fn shown(&self, offset: usize, len: usize) -> &[u8] {
        self.buffer.get(self.at + offset..self.at + offset + len).unwrap_or_default()
    }

    #[inline]
    pub fn advance(&mut self, n: usize) {
        self.at += n;
    }

    #[cold]
    fn fill(&mut self, n: usize, what: &'static str) -> Result<()> {
        let left = self.left();
        if (n as u64) > left {
            let found = format!("{left} bytes before the end of the file");
            return Err(Error::corrupt(self.file.name(), self.position(), format!("{what} ({n} bytes)"), found));
        }
        // Bytes before the cursor go, down to a multiple of the alignment.
        let keep = self.position() - self.position() % self.align();
        let drop = keep.saturating_sub(self.start).min(self.buffer.len() as u64) as usize;
        self.buffer.drain(..drop);
        self.at -= drop;
        self.start += drop as u64;
        let from = self.start + self.buffer.len() as u64;
        let wanted = (self.position() + n as u64).max(from + self.piece);
        let to = wanted.div_ceil(self.align()).saturating_mul(self.align()).min(self.file.len());
        let have = self.buffer.len();
        self.buffer.resize(have + (to - from) as usize, 0);
        let target = self.buffer.get_mut(have..).unwrap_or_default();
        if let Err(e) = self.file.read_at(from, target) {
            self.buffer.truncate(have);
            return self.fill_exactly(n, e.into());
        }
        Ok(())
    }

    /// The next `n` bytes and no others: a checked read fails as a whole, and damage before or behind a record must not cost
    /// the record.
    fn fill_exactly(&mut self, n: usize, error: Error) -> Result<()> {
        if !error.is_damage() {
            return Err(error);
        }
        let from = self.position();
        let mut wanted = vec![0; n];
        self.file.read_at(from, &mut wanted)?;
        (self.buffer, self.start, self.at) = (wanted, from, 0);
        Ok(())
    }
}
