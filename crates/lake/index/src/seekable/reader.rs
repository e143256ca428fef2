//! Reads seekable zstd, frame by frame.

use super::{
    DESCRIPTOR, ENTRY, FOOTER, FOOTER_MAGIC, MAX_FRAME, MAX_FRAMES, SIDE_MAGIC, SKIPPABLE_HEADER, TABLE_MAGIC, checksum,
};
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use trawl_io::crc::crc32c;
use trawl_io::slice::SliceReader;
use trawl_io::{ReadAt, limits::Claim};

/// First read of a file: its last bytes, which for most files hold table and side frame.
const TAIL: u64 = 64 * 1024;

/// An open file: its table in memory, its frames read on demand.
#[derive(Clone)]
pub struct Seekable {
    source: Blob,
    frames: Vec<Frame>,
    end: Frame,
    side: Option<Bytes>,
    table_hash: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    at: u64,
    content_at: u64,
    checksum: u32,
}

impl Seekable {
    /// Reads the table and the side frame: one read, or two where they are large.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        let source = source.into();
        let len = source.len();
        let mut tail = Tail { source: &*source, at: len.saturating_sub(TAIL), bytes: Bytes::new() };
        tail.bytes = source.read_range(tail.at..len)?;
        let name = source.name();
        let footer_at = len.checked_sub(FOOTER as u64).ok_or_else(|| short(name, FOOTER as u64, len))?;
        let footer = tail.get(footer_at..len)?;
        let mut r = SliceReader::at(&footer, footer_at);
        let count = u64::from(r.u32("frame count").map_err(|e| e.in_file(name))?);
        let descriptor = r.u8("descriptor").map_err(|e| e.in_file(name))?;
        let magic = r.u32("seek table magic").map_err(|e| e.in_file(name))?;
        if magic != FOOTER_MAGIC {
            return Err(Error::corrupt(name, footer_at + 5, "seek table magic 0x8f92eab1", format!("{magic:#010x}")));
        }
        if descriptor != DESCRIPTOR {
            return Err(Error::corrupt(name, footer_at + 4, "descriptor 0x80", format!("{descriptor:#04x}")));
        }
        Claim { path: name, offset: footer_at, what: "seek table" }.check(count, MAX_FRAMES)?;
        let payload_len = count * ENTRY as u64 + FOOTER as u64;
        let table_at = len
            .checked_sub(payload_len + SKIPPABLE_HEADER as u64)
            .ok_or_else(|| short(name, payload_len + SKIPPABLE_HEADER as u64, len))?;
        let table = tail.get(table_at..len)?;
        let payload = skippable(name, &table, table_at, TABLE_MAGIC)?;
        let table_hash = xxhash_rust::xxh3::xxh3_64(payload);
        let (frames, end, side_range) = entries(name, payload, table_at, count)?;
        let side = side_range.map(|range| side(name, &mut tail, range)).transpose()?;
        drop(tail);
        Ok(Self { source, frames, end, side, table_hash })
    }

    /// Bytes the file decompresses to.
    pub fn len(&self) -> u64 {
        self.end.content_at
    }

    /// Whether it decompresses to nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.source.name()
    }

    /// Number of frames, without the side frame.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The side frame's bytes.
    pub fn side(&self) -> Option<&Bytes> {
        self.side.as_ref()
    }

    /// xxh3_64 of the seek table's payload.
    pub fn table_hash(&self) -> u64 {
        self.table_hash
    }

    /// Where frame `index` begins and ends in the decompressed bytes; empty past the last frame.
    pub fn content_range(&self, index: usize) -> Range<u64> {
        self.frame(index).content_at..self.frame(index.saturating_add(1)).content_at
    }

    /// Where frame `index` lies in the file; empty past the last frame.
    pub fn stored_range(&self, index: usize) -> Range<u64> {
        self.frame(index).at..self.frame(index.saturating_add(1)).at
    }

    /// The frame that holds decompressed byte `offset`; the number of frames if none does.
    pub fn frame_of(&self, offset: u64) -> usize {
        if offset >= self.len() {
            return self.frames.len();
        }
        self.frames.partition_point(|f| f.content_at <= offset).saturating_sub(1)
    }

    /// Reads and decompresses frame `index`.
    pub fn read_frame(&self, index: usize) -> Result<Vec<u8>> {
        self.decode(index, &self.source.read_range(self.stored_range(index))?)
    }

    /// Decompresses frame `index` from its stored bytes.
    pub fn decode(&self, index: usize, stored: &[u8]) -> Result<Vec<u8>> {
        let Frame { at, checksum: expected, .. } = self.frame(index);
        let range = self.content_range(index);
        let wanted = usize::try_from(range.end - range.start).unwrap_or(MAX_FRAME).min(MAX_FRAME);
        let content = zstd::bulk::decompress(stored, wanted)
            .map_err(|e| Error::corrupt(self.name(), at, "a zstd frame of the size in the seek table", e))?;
        if content.len() != wanted {
            let found = format!("{} bytes, table says {wanted}", content.len());
            return Err(Error::corrupt(self.name(), at, "a zstd frame of the size in the seek table", found));
        }
        let found = checksum(&content);
        if found != expected {
            let found = format!("{found:#010x}, table says {expected:#010x}");
            return Err(Error::corrupt(self.name(), at, "a frame with the checksum in the seek table", found));
        }
        Ok(content)
    }

    /// The file beneath.
    pub fn source(&self) -> &Blob {
        &self.source
    }

    fn frame(&self, index: usize) -> Frame {
        self.frames.get(index).copied().unwrap_or(self.end)
    }
}

/// The end of a file, read once; more is fetched only when asked for.
struct Tail<'a> {
    source: &'a dyn ReadAt,
    at: u64,
    bytes: Bytes,
}

impl Tail<'_> {
    fn get(&mut self, range: Range<u64>) -> Result<Bytes> {
        if range.start < self.at {
            return Ok(self.source.read_range(range)?);
        }
        let start = usize::try_from(range.start - self.at).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end - self.at).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(start..end.min(self.bytes.len())))
    }
}

fn short(name: &Path, wanted: u64, found: u64) -> Error {
    trawl_io::Error::Short { path: name.into(), offset: 0, wanted, found }.into()
}

/// The payload of a skippable frame that fills `bytes`.
fn skippable<'a>(name: &Path, bytes: &'a [u8], at: u64, magic: u32) -> Result<&'a [u8]> {
    let mut r = SliceReader::at(bytes, at);
    let found = r.u32("skippable frame magic").map_err(|e| e.in_file(name))?;
    if found != magic {
        return Err(Error::corrupt(name, at, "the magic of its skippable frame", format!("{found:#010x}")));
    }
    let len = r.u32("skippable frame length").map_err(|e| e.in_file(name))?;
    if len as usize != r.rest().len() {
        let found = format!("{len}, place for {}", r.rest().len());
        return Err(Error::corrupt(name, at + 4, "the length of its skippable frame", found));
    }
    Ok(r.rest())
}

type Entries = (Vec<Frame>, Frame, Option<Range<u64>>);

fn entries(name: &Path, payload: &[u8], table_at: u64, count: u64) -> Result<Entries> {
    let mut r = SliceReader::at(payload, table_at + SKIPPABLE_HEADER as u64);
    let mut frames = Vec::new();
    let mut next = Frame::default();
    let mut side = None;
    for index in 0..count {
        let at = r.offset();
        let field = |r: &mut SliceReader<'_>| r.u32("seek table entry").map_err(|e| e.in_file(name));
        let (stored, content) = (field(&mut r)?, field(&mut r)?);
        next.checksum = field(&mut r)?;
        if content as usize > MAX_FRAME {
            return Err(Error::corrupt(name, at + 4, "a frame of at most 64 KiB", content));
        }
        if content == 0 {
            if index + 1 != count || next.checksum != checksum(b"") {
                return Err(Error::corrupt(name, at, "no empty frame but a last one with the empty checksum", index));
            }
            side = Some(next.at..next.at + u64::from(stored));
        } else {
            frames.push(next);
        }
        next.at += u64::from(stored);
        next.content_at += u64::from(content);
    }
    if next.at != table_at {
        let found = format!("{} bytes of frames before a table at {table_at}", next.at);
        return Err(Error::corrupt(name, table_at, "frames that fill the file up to the table", found));
    }
    let end = Frame { at: side.as_ref().map_or(next.at, |s| s.start), ..next };
    Ok((frames, end, side))
}

fn side(name: &Path, tail: &mut Tail<'_>, range: Range<u64>) -> Result<Bytes> {
    let frame = tail.get(range.clone())?;
    skippable(name, &frame, range.start, SIDE_MAGIC)?;
    let payload = frame.slice(SKIPPABLE_HEADER..);
    let Some((bytes, crc)) = payload.split_last_chunk::<4>() else {
        return Err(short(name, range.start + 12, range.end));
    };
    let (expected, found) = (u32::from_le_bytes(*crc), crc32c(bytes));
    if found != expected {
        let found = format!("{found:#010x}, file says {expected:#010x}");
        return Err(Error::corrupt(name, range.start, "a side frame with its crc32c", found));
    }
    Ok(payload.slice(..payload.len() - 4))
}
