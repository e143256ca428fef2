//! One decompressed frame, cut into its lines.

use super::MAX_LINE;
use bytes::Bytes;

/// The lines of one frame.
#[derive(Debug)]
pub struct Block {
    /// Number of the first line in the file.
    first_line: u64,
    text: Bytes,
    /// Where each line begins, and the end of the last one. A frame has at most 64 KiB, so its end does not fit a u16.
    starts: Vec<u32>,
}

impl Block {
    /// Cuts `text` into `lines` lines. The error says what is wrong, and where in the text.
    pub(crate) fn new(first_line: u64, text: Bytes, lines: u64) -> Result<Self, (u64, String)> {
        let mut starts = vec![0];
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &text) {
            let line = text.get(start..end).unwrap_or_default();
            if line.is_empty() || line.len() >= MAX_LINE || std::str::from_utf8(line).is_err() {
                return Err((start as u64, "a line that is empty, too long or no text".into()));
            }
            start = end + 1;
            starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        }
        if start != text.len() {
            return Err((start as u64, "a last line without its end".into()));
        }
        if starts.len() as u64 - 1 != lines {
            return Err((0, format!("{} lines, index says {lines}", starts.len() - 1)));
        }
        Ok(Self { first_line, text, starts })
    }

    /// Number of the first line in the file.
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no lines; no written block is so.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Line `index` of this block, without its end.
    pub fn line(&self, index: usize) -> Option<&str> {
        let start = *self.starts.get(index)? as usize;
        let end = *self.starts.get(index.checked_add(1)?)? as usize;
        // Checked when the block was cut.
        std::str::from_utf8(self.text.get(start..end.checked_sub(1)?)?).ok()
    }

    /// All lines from `index` on.
    pub fn lines_from(&self, index: usize) -> impl Iterator<Item = &str> {
        (index..self.len()).filter_map(|i| self.line(i))
    }

    /// The first line that is not before `key`, in a block whose lines are sorted.
    pub fn lower_bound(&self, key: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.line(middle).is_some_and(|line| line < key) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> u64 {
        self.text.len() as u64 + 4 * self.starts.len() as u64
    }
}
