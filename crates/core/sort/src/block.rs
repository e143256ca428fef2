//! Blocks: the unit in which runs are written and read.
//!
//! ```text
//! head    0  4  stored length
//!         4  4  raw length
//!         8  4  codec: 0 none, 1 zstd
//!        12  4  crc32c of bytes 0..12 and of the stored bytes
//! stored bytes; unpacked they are records:
//!   uvarint key bytes shared with the record before (0 for the first of a block)
//!   uvarint key bytes that follow,  uvarint value length,  key bytes,  value
//! ```

use crate::Compression;
use std::path::Path;
use trawl_io::crc::crc32c_of;
use trawl_io::varint::{put_uvarint, uvarint};
use trawl_io::{Error, File, Op};

pub(crate) const HEAD: usize = 16;
const CODEC_NONE: u32 = 0;
const CODEC_ZSTD: u32 = 1;

/// Packs blocks.
pub(crate) struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// Head and stored bytes of the last block.
    out: Vec<u8>,
}

impl Packer {
    pub fn new(compression: Compression) -> Result<Self, std::io::Error> {
        let zstd = match compression {
            Compression::None => None,
            Compression::Zstd(level) => Some(zstd::bulk::Compressor::new(level)?),
        };
        Ok(Packer { zstd, out: Vec::new() })
    }

    /// Head and stored bytes of a block.
    pub fn pack(&mut self, raw: &[u8]) -> Result<&[u8], std::io::Error> {
        let mut codec = CODEC_NONE;
        self.out.clear();
        self.out.resize(HEAD, 0);
        if let Some(zstd) = &mut self.zstd {
            let stored = zstd.compress(raw)?;
            if stored.len() < raw.len() {
                codec = CODEC_ZSTD;
                self.out.extend_from_slice(&stored);
            }
        }
        if codec == CODEC_NONE {
            self.out.extend_from_slice(raw);
        }
        let (head, stored) = self.out.split_at_mut(HEAD);
        head.copy_from_slice(&head_of(raw.len(), codec, &[stored]));
        Ok(&self.out)
    }
}

/// The head of a block stored in pieces.
fn head_of(raw_len: usize, codec: u32, stored: &[&[u8]]) -> [u8; HEAD] {
    let stored_len: usize = stored.iter().map(|piece| piece.len()).sum();
    // Blocks are bounded by the largest record, which is far below 4 GiB.
    let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = [stored_len as u32, raw_len as u32, codec].map(u32::to_le_bytes);
    let words = [a, b, c, d, e, f, g, h, i, j, k, l];
    let mut pieces: Vec<&[u8]> = vec![&words];
    pieces.extend_from_slice(stored);
    let [m, n, o, p] = crc32c_of(&pieces).to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

/// Head and lengths of a block that holds one record as it is; key and value follow. Large records are written so,
/// without being copied together first.
pub(crate) fn single(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut lengths = Vec::new();
    for n in [0, key.len(), value.len()] {
        put_uvarint(&mut lengths, n as u64);
    }
    let pieces = [lengths.as_slice(), key, value];
    let mut out = head_of(pieces.iter().map(|p| p.len()).sum(), CODEC_NONE, &pieces).to_vec();
    out.extend_from_slice(&lengths);
    out
}

/// Reads and unpacks blocks.
pub(crate) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    stored: Vec<u8>,
}

impl Unpacker {
    pub fn new() -> Result<Self, std::io::Error> {
        Ok(Unpacker { zstd: zstd::bulk::Decompressor::new()?, stored: Vec::new() })
    }

    /// Unpacks the block at `offset` into `raw` and tells where the next one begins. `limit` is the largest raw length
    /// the run was written with.
    pub fn read(&mut self, file: &dyn File, offset: u64, limit: usize, raw: &mut Vec<u8>) -> Result<u64, Error> {
        let corrupt = |expected, found| Error::Corrupt { path: file.path().into(), offset, expected, found };
        let (head, [stored_len, raw_len, codec, crc]) = head_at(file, offset)?;
        if raw_len as usize > limit || stored_len > raw_len || codec > CODEC_ZSTD {
            return Err(corrupt(
                "the head of a sort block",
                format!("lengths {stored_len} and {raw_len}, codec {codec}"),
            ));
        }
        // Large records are stored as they are, so what needs unpacking is small.
        let target = if codec == CODEC_NONE { &mut *raw } else { &mut self.stored };
        fit(target, stored_len as usize);
        target.resize(stored_len as usize, 0);
        file.read_exact_at(offset + HEAD as u64, target)?;
        let computed = crc32c_of(&[head.get(..12).unwrap_or_default(), target]);
        if computed != crc {
            return Err(corrupt("matching block crc", format!("{crc:08x}, computed {computed:08x}")));
        }
        if codec == CODEC_ZSTD {
            fit(raw, raw_len as usize);
            self.zstd
                .decompress_to_buffer(&self.stored, raw)
                .map_err(|e| Error::io_at(Op::Read, file.path(), offset, e))?;
        }
        if raw.len() != raw_len as usize {
            return Err(corrupt("a block of its raw length", format!("{} of {raw_len} bytes", raw.len())));
        }
        Ok(offset + (HEAD as u64) + u64::from(stored_len))
    }
}

/// Empties `buffer` and gives it room for exactly `len` bytes if it has less.
fn fit(buffer: &mut Vec<u8>, len: usize) {
    buffer.clear();
    if buffer.capacity() < len {
        *buffer = Vec::with_capacity(len);
    }
}

/// A block's head, as bytes and as its four numbers.
fn head_at(file: &dyn File, offset: u64) -> Result<([u8; HEAD], [u32; 4]), Error> {
    let mut head = [0; HEAD];
    file.read_exact_at(offset, &mut head)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = head;
    let words = [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]];
    Ok((head, words.map(u32::from_le_bytes)))
}

/// Where the block after the one at `offset` begins.
pub(crate) fn skip(file: &dyn File, offset: u64) -> Result<u64, Error> {
    let (_, [stored_len, ..]) = head_at(file, offset)?;
    Ok(offset + (HEAD as u64) + u64::from(stored_len))
}

/// Appends a record to a raw block; `shared` key bytes are those of the record before.
#[inline]
pub(crate) fn put_record(raw: &mut Vec<u8>, key: &[u8], value: &[u8], shared: usize) {
    let rest = key.get(shared..).unwrap_or_default();
    put_uvarint(raw, shared as u64);
    put_uvarint(raw, rest.len() as u64);
    put_uvarint(raw, value.len() as u64);
    raw.extend_from_slice(rest);
    raw.extend_from_slice(value);
}

/// A record in a raw block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRecord {
    pub shared: usize,
    /// Where its key bytes, its value, and the next record begin.
    pub key_at: usize,
    pub value_at: usize,
    pub end: usize,
}

/// The record at `at`; `None` if the bytes are not one.
#[inline]
pub(crate) fn record_at(raw: &[u8], at: usize) -> Option<RawRecord> {
    let head = raw.get(at..)?;
    let (shared, rest, value, used) = match *head {
        [a @ 0..=127, b @ 0..=127, c @ 0..=127, ..] => (usize::from(a), usize::from(b), usize::from(c), 3),
        _ => {
            let (shared, a) = uvarint(head).ok()?;
            let (rest, b) = uvarint(head.get(a..)?).ok()?;
            let (value, c) = uvarint(head.get(a + b..)?).ok()?;
            (usize::try_from(shared).ok()?, usize::try_from(rest).ok()?, usize::try_from(value).ok()?, a + b + c)
        }
    };
    let key_at = at + used;
    let value_at = key_at.checked_add(rest)?;
    let end = value_at.checked_add(value)?;
    (end <= raw.len()).then_some(RawRecord { shared, key_at, value_at, end })
}

/// The error for a block whose checksum holds and whose contents do not.
pub(crate) fn malformed(path: &Path, offset: u64) -> Error {
    Error::Corrupt { path: path.into(), offset, expected: "records in a sort block", found: "something else".into() }
}
