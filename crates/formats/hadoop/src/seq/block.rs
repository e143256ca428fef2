//! One block of a BLOCK-compressed file.

use super::window::Window;
use crate::codec::{CodecError, Coder, Unpacked};
use crate::decode::Decoder;
use crate::{Error, Limits, Result, ValueError};
use std::path::Path;

/// The four streams of a block, in their order.
const BUFFERS: [&str; 4] = ["key lengths", "keys", "value lengths", "values"];

#[derive(Debug, Default)]
pub(super) struct Block {
    /// Offset of its escape.
    pub offset: u64,
    /// Records in it.
    count: u32,
    /// Records taken so far.
    taken: u32,
    key_lengths: Unpacked,
    keys: Unpacked,
    value_lengths: Unpacked,
    values: Unpacked,
    /// Cursors into the four, in the same order.
    cursors: [usize; 4],
    /// Where the current key and value lie in `keys` and `values`.
    key: (usize, usize),
    value: (usize, usize),
    /// Where the streams of value lengths and values lie in the file, while they are not unpacked.
    packed_values: Option<[(u64, usize); 2]>,
    /// Records whose value lengths were read.
    values_taken: u32,
}

impl Block {
    /// Reads the block behind its escape; values are unpacked when the first of them is asked for.
    pub fn read(&mut self, offset: u64, w: &mut Window, coder: &mut Coder, limits: &Limits) -> Result<()> {
        self.reset(offset);
        let file = w.file().name().to_owned();
        let count = vint(w, "number of records")?;
        let claimed = |n: i64| Error::corrupt(&file, offset, "a block with records", format!("{n} records"));
        let count = u32::try_from(count).ok().filter(|n| *n > 0).ok_or_else(|| claimed(count))?;
        let lengths = stream(w, BUFFERS[0], limits)?;
        unpack(w, lengths, BUFFERS[0], coder, limits, &mut self.key_lengths)?;
        // Each length takes a byte at least.
        if count as usize > self.key_lengths.bytes().len() {
            let found = format!("{} bytes of them", self.key_lengths.bytes().len());
            return Err(Error::corrupt(&file, offset, format!("{count} key lengths"), found));
        }
        let keys = stream(w, BUFFERS[1], limits)?;
        unpack(w, keys, BUFFERS[1], coder, limits, &mut self.keys)?;
        self.packed_values = Some([stream(w, BUFFERS[2], limits)?, stream(w, BUFFERS[3], limits)?]);
        self.value_lengths.clear();
        self.values.clear();
        self.count = count;
        Ok(())
    }

    /// A block at `offset` without records; the buffers stay for the next one.
    pub fn reset(&mut self, offset: u64) {
        self.offset = offset;
        self.count = 0;
        self.taken = 0;
        self.values_taken = 0;
        self.cursors = [0; 4];
        self.packed_values = None;
    }

    /// Which record of the block is current, from 0.
    pub fn index(&self) -> u32 {
        self.taken.saturating_sub(1)
    }

    /// Whether a record is current.
    pub fn has_record(&self) -> bool {
        self.taken > 0
    }

    /// Moves to the next record; false when the block has no more.
    #[inline]
    pub fn advance(&mut self, file: &Path) -> Result<bool> {
        if self.taken == self.count {
            if self.count > 0 {
                self.exhausted(file)?;
            }
            return Ok(false);
        }
        let [lengths, at, ..] = &mut self.cursors;
        let len =
            length(self.key_lengths.bytes(), lengths).map_err(|e| self_error(file, self.offset, BUFFERS[0], e))?;
        let end = at.saturating_add(len);
        if end > self.keys.bytes().len() {
            let found = format!("a key of {len} bytes at {at} of {}", self.keys.bytes().len());
            return Err(Error::corrupt(file, self.offset, "keys within their buffer", found));
        }
        self.key = (*at, end);
        *at = end;
        self.taken += 1;
        Ok(true)
    }

    pub fn key(&self) -> &[u8] {
        self.keys.bytes().get(self.key.0..self.key.1).unwrap_or_default()
    }

    /// Makes the value of the current record available.
    pub fn load_value(&mut self, w: &mut Window, coder: &mut Coder, limits: &Limits) -> Result<()> {
        if let Some([lengths, values]) = self.packed_values.take() {
            let after = w.position();
            unpack(w, lengths, BUFFERS[2], coder, limits, &mut self.value_lengths)?;
            unpack(w, values, BUFFERS[3], coder, limits, &mut self.values)?;
            w.seek(after);
        }
        let path = w.file().name();
        while self.values_taken < self.taken {
            let [_, _, lengths, at] = &mut self.cursors;
            let len = length(self.value_lengths.bytes(), lengths)
                .map_err(|e| self_error(path, self.offset, BUFFERS[2], e))?;
            let end = at.saturating_add(len);
            if end > self.values.bytes().len() {
                let found = format!("a value of {len} bytes at {at} of {}", self.values.bytes().len());
                return Err(Error::corrupt(path, self.offset, "values within their buffer", found));
            }
            self.value = (*at, end);
            *at = end;
            self.values_taken += 1;
        }
        Ok(())
    }

    pub fn value(&self) -> &[u8] {
        self.values.bytes().get(self.value.0..self.value.1).unwrap_or_default()
    }

    /// After the last record nothing may be left over.
    fn exhausted(&self, file: &Path) -> Result<()> {
        let all = [&self.key_lengths, &self.keys, &self.value_lengths, &self.values];
        // Values count only if every one of them was asked for.
        let known = if self.values_taken == self.count { 4 } else { 2 };
        for ((buffer, cursor), name) in all.into_iter().zip(self.cursors).zip(BUFFERS).take(known) {
            let left = buffer.bytes().len() - cursor;
            if left > 0 {
                let expected = format!("{name} for {} records", self.count);
                return Err(Error::corrupt(file, self.offset, expected, format!("{left} bytes more")));
            }
        }
        Ok(())
    }
}

fn self_error(file: &Path, offset: u64, what: &'static str, e: ValueError) -> Error {
    Error::corrupt(file, offset, format!("{} in {what}", e.expected), e.found)
}

/// A length at `cursor`.
#[inline]
fn length(bytes: &[u8], cursor: &mut usize) -> Result<usize, ValueError> {
    let rest = bytes.get(*cursor..).unwrap_or_default();
    // Nearly all keys are shorter than 128 bytes.
    if let [n @ 0..=127, ..] = rest {
        *cursor += 1;
        return Ok(usize::from(*n));
    }
    let mut d = Decoder::new(rest);
    let len = d.vlong("a length")?;
    let len = usize::try_from(len).map_err(|_| d.error("a length", len.to_string()))?;
    *cursor += d.at();
    Ok(len)
}

/// A VInt at the cursor of the file.
fn vint(w: &mut Window, what: &'static str) -> Result<i64> {
    let at = w.position();
    let most = w.left().min(9) as usize;
    let mut d = Decoder::new(w.peek(most, what)?);
    let value = d.vlong(what);
    let used = d.at();
    let value = value.map_err(|e| Error::corrupt(w.file().name(), at, e.expected, e.found))?;
    w.advance(used);
    Ok(value)
}

/// The place of a stream in the file; the cursor moves behind it.
fn stream(w: &mut Window, what: &'static str, limits: &Limits) -> Result<(u64, usize)> {
    let at = w.position();
    let claimed = vint(w, what)?;
    let path = w.file().name();
    let len = match u64::try_from(claimed) {
        Ok(n) if n > limits.stored_bytes => {
            let (path, limit) = (path.into(), limits.stored_bytes);
            return Err(trawl_io::Error::OverLimit { path, offset: at, what, claimed: n, limit }.into());
        }
        Ok(n) if n > w.left() => {
            let found = format!("{} bytes before the end of the file", w.left());
            return Err(Error::corrupt(path, at, format!("{n} bytes of {what}"), found));
        }
        Ok(n) => n as usize,
        Err(_) => return Err(Error::corrupt(path, at, format!("a length of {what}"), claimed.to_string())),
    };
    let start = w.position();
    w.seek(start + len as u64);
    Ok((start, len))
}

fn unpack(
    w: &mut Window,
    (start, len): (u64, usize),
    what: &'static str,
    coder: &mut Coder,
    limits: &Limits,
    out: &mut Unpacked,
) -> Result<()> {
    w.seek(start);
    let packed = w.peek(len, what)?;
    let unpacked = coder.unpack(packed, limits.unpacked_bytes, out);
    w.advance(len);
    unpacked.map_err(|e| stream_error(w.file().name(), start, what, e))
}

/// A stream that cannot be undone, as an error of its file.
pub(super) fn stream_error(file: &Path, offset: u64, what: &'static str, error: CodecError) -> Error {
    Error::corrupt(file, offset, format!("a stream of {what}"), error.to_string())
}
