//! The side frame: first line number and first key of every frame.

use super::{MAGIC, MAX_LINE, VERSION};
use crate::{Error, Result};
use std::path::Path;
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

/// First line number and first key of every frame, in memory: some 30 bytes a frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Per frame: lines before it.
    first_lines: Vec<u64>,
    /// Per frame: where its key begins in `keys`; and the end of the last one.
    key_starts: Vec<u32>,
    keys: Vec<u8>,
    lines: u64,
}

impl Index {
    /// Adds a frame.
    pub fn push(&mut self, lines: u64, key: &[u8]) {
        if self.key_starts.is_empty() {
            self.key_starts.push(0);
        }
        self.first_lines.push(self.lines);
        self.lines += lines;
        self.keys.extend_from_slice(key);
        self.key_starts.push(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
    }

    pub fn frames(&self) -> usize {
        self.first_lines.len()
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Number of the first line of frame `index`; past the last frame, the number of lines.
    pub fn first_line(&self, index: usize) -> u64 {
        self.first_lines.get(index).copied().unwrap_or(self.lines)
    }

    pub fn key(&self, index: usize) -> &[u8] {
        let start = self.key_starts.get(index).copied().unwrap_or(0) as usize;
        let end = self.key_starts.get(index + 1).copied().unwrap_or(0) as usize;
        self.keys.get(start..end).unwrap_or_default()
    }

    /// The frame with line `line`, which must exist.
    pub fn frame_of_line(&self, line: u64) -> usize {
        self.first_lines.partition_point(|first| *first <= line).saturating_sub(1)
    }

    /// The last frame whose key is not after `key`: the only one that can hold it.
    pub fn frame_of_key(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.frames());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.lines.to_le_bytes());
        let mut before: &[u8] = &[];
        for frame in 0..self.frames() {
            let key = self.key(frame);
            let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
            let rest = key.get(shared..).unwrap_or_default();
            put_uvarint(&mut out, self.first_line(frame + 1) - self.first_line(frame));
            put_uvarint(&mut out, shared as u64);
            put_uvarint(&mut out, rest.len() as u64);
            out.extend_from_slice(rest);
            before = key;
        }
        out
    }

    /// Decodes the index of a file with `frames` frames; keys must be sorted, or all be empty.
    pub fn decode(name: &Path, bytes: &[u8], frames: usize) -> Result<Self> {
        let fault = |expected, found: String| Error::corrupt(name, 0, expected, found);
        let mut r = SliceReader::new(bytes);
        let magic = r.array::<4>("line index magic").map_err(|e| e.in_file(name))?;
        if magic != MAGIC {
            return Err(fault("line index magic \"TLIX\"", format!("{magic:02x?}")));
        }
        let version = r.u32("line index version").map_err(|e| e.in_file(name))?;
        if version != VERSION {
            return Err(fault("line index version 1", version.to_string()));
        }
        let lines = r.u64("line count").map_err(|e| e.in_file(name))?;
        let mut index = Self::default();
        let mut key = Vec::new();
        for frame in 0..frames {
            let in_frame = r.uvarint("lines of a frame").map_err(|e| e.in_file(name))?;
            let shared = r.uvarint("shared bytes").map_err(|e| e.in_file(name))?;
            let rest = r.prefixed(MAX_LINE, "first key").map_err(|e| e.in_file(name))?;
            let shared = usize::try_from(shared).ok().filter(|s| *s <= key.len());
            let Some(shared) = shared else {
                return Err(fault("no more shared bytes than the key before has", format!("frame {frame}")));
            };
            key.truncate(shared);
            key.extend_from_slice(rest);
            let in_order = frame == 0 || index.key(frame - 1) < key.as_slice() || key.is_empty();
            if !in_order
                || key.len() >= MAX_LINE
                || in_frame == 0
                || in_frame > super::super::seekable::MAX_FRAME as u64
            {
                return Err(fault("frames with lines, keys in order", format!("frame {frame}")));
            }
            index.push(in_frame, &key);
        }
        if !r.is_empty() || index.lines != lines {
            return Err(fault("an index of all lines and nothing else", format!("{} of {lines}", index.lines)));
        }
        Ok(index)
    }
}
