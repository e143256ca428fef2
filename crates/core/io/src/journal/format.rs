//! Header and frame as bytes; no I/O.

use crate::crc::{crc32c, crc32c_of};
use crate::slice::SliceReader;
use crate::{Error, Result, varint};
use bytes::Bytes;
use std::path::Path;

pub(super) const MAGIC: [u8; 8] = *b"TRWLJNL\n";
pub(super) const VERSION: u16 = 1;
pub(super) const FIXED_HEADER: usize = 8 + 2 + 2 + 8;
pub(super) const FRAME_HEADER: usize = 4 + 8 + 4;
const _: () = assert!(FIXED_HEADER == 20 && FRAME_HEADER == 16);

/// The longest tag a journal's header holds.
pub const MAX_TAG_BYTES: usize = 1024;

/// What the head of a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 1 for a new journal, one more after each rotation.
    pub generation: u64,
    /// The user's tag.
    pub tag: Vec<u8>,
}

impl Header {
    pub(super) fn encode(&self, path: &Path) -> Result<Vec<u8>> {
        let len = u16::try_from(self.tag.len()).ok().filter(|&n| usize::from(n) <= MAX_TAG_BYTES);
        let len = len.ok_or_else(|| Error::Refused {
            path: path.into(),
            reason: format!("journal tag of {} bytes, limit {MAX_TAG_BYTES}", self.tag.len()),
        })?;
        let mut out = Vec::with_capacity(FIXED_HEADER + self.tag.len() + 4);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(&crc32c(&out).to_le_bytes());
        Ok(out)
    }

    /// Decodes the head of a file and tells its length and checksum.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<(Header, Frames)> {
        let corrupt = |offset, expected, found| Error::Corrupt { path: path.into(), offset, expected, found };
        let mut r = SliceReader::new(bytes);
        let in_file = |e: crate::slice::SliceError| e.in_file(path);
        let magic: [u8; 8] = r.array("journal magic").map_err(in_file)?;
        if magic != MAGIC {
            return Err(corrupt(0, "journal magic \"TRWLJNL\\n\"", format!("\"{}\"", magic.escape_ascii())));
        }
        let version = r.u16("journal version").map_err(in_file)?;
        if version != VERSION {
            return Err(corrupt(8, "journal version 1", format!("version {version}")));
        }
        let tag_len = r.u16("journal tag length").map_err(in_file)?;
        if usize::from(tag_len) > MAX_TAG_BYTES {
            let (claimed, limit) = (u64::from(tag_len), MAX_TAG_BYTES as u64);
            return Err(Error::OverLimit { path: path.into(), offset: 10, what: "journal tag", claimed, limit });
        }
        let generation = r.u64("journal generation").map_err(in_file)?;
        let tag = r.take(usize::from(tag_len), "journal tag").map_err(in_file)?.to_vec();
        let crc_at = r.offset();
        let crc = r.u32("journal header crc").map_err(in_file)?;
        let computed = crc32c(bytes.get(..FIXED_HEADER + tag.len()).unwrap_or_default());
        if crc != computed {
            return Err(corrupt(crc_at, "matching journal header crc", format!("{crc:08x}, computed {computed:08x}")));
        }
        Ok((Header { generation, tag }, Frames { salt: crc, start: r.offset() }))
    }
}

/// What all frames of one file share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames {
    /// The header's checksum, which is part of every frame's.
    pub salt: u32,
    /// Offset of the first frame.
    pub start: u64,
}

/// The first bytes of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    pub len: u32,
    pub durable: u64,
    pub crc: u32,
}

impl Frames {
    fn crc(&self, offset: u64, len: u32, durable: u64, payload: &[u8]) -> u32 {
        let mut place = [0; 24];
        let (salt, rest) = place.split_at_mut(4);
        salt.copy_from_slice(&self.salt.to_le_bytes());
        let (at, rest) = rest.split_at_mut(8);
        at.copy_from_slice(&offset.to_le_bytes());
        let (length, synced) = rest.split_at_mut(4);
        length.copy_from_slice(&len.to_le_bytes());
        synced.copy_from_slice(&durable.to_le_bytes());
        crc32c_of(&[&place, payload])
    }

    /// Appends the frame that stands at `offset`.
    pub fn encode(&self, out: &mut Vec<u8>, offset: u64, durable: u64, len: u32, payload: &[u8]) {
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        out.extend_from_slice(&self.crc(offset, len, durable, payload).to_le_bytes());
        out.extend_from_slice(payload);
    }

    /// Decodes a frame's head; whether it can be one is for [`Frames::plausible`] to say.
    pub fn head(bytes: &[u8; FRAME_HEADER]) -> FrameHead {
        let [l0, l1, l2, l3, d0, d1, d2, d3, d4, d5, d6, d7, c0, c1, c2, c3] = *bytes;
        FrameHead {
            len: u32::from_le_bytes([l0, l1, l2, l3]),
            durable: u64::from_le_bytes([d0, d1, d2, d3, d4, d5, d6, d7]),
            crc: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    /// Whether a head at `offset` could be of a frame that ends within `file_len`.
    pub fn plausible(&self, head: &FrameHead, offset: u64, file_len: u64) -> bool {
        head.len > 0
            && (self.start..=offset).contains(&head.durable)
            && offset + FRAME_HEADER as u64 + u64::from(head.len) <= file_len
    }

    /// Whether the payload belongs to the head at `offset`.
    pub fn matches(&self, head: &FrameHead, offset: u64, payload: &[u8]) -> bool {
        head.crc == self.crc(offset, head.len, head.durable, payload)
    }
}

/// The payload of a batch of records.
pub(super) fn encode_records<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    for record in records {
        varint::put_uvarint(&mut payload, record.len() as u64);
        payload.extend_from_slice(record);
    }
    payload
}

/// One batch as it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub(super) offset: u64,
    pub(super) payload: Bytes,
}

impl Batch {
    /// Checks that the payload is a list of records.
    pub(super) fn new(offset: u64, payload: Bytes, path: &Path) -> Result<Self> {
        let mut r = SliceReader::at(&payload, offset + FRAME_HEADER as u64);
        while !r.is_empty() {
            r.prefixed(payload.len(), "journal record").map_err(|e| e.in_file(path))?;
        }
        Ok(Batch { offset, payload })
    }

    /// Where its frame begins in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where its frame ends.
    pub fn end(&self) -> u64 {
        self.offset + FRAME_HEADER as u64 + self.payload.len() as u64
    }

    /// The records, in the order they were given.
    pub fn records(&self) -> Records<'_> {
        Records { rest: SliceReader::new(&self.payload) }
    }
}

/// Iterates over the records of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: SliceReader<'a>,
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // `Batch::new` has checked the whole payload.
        if self.rest.is_empty() { None } else { self.rest.prefixed(usize::MAX, "journal record").ok() }
    }
}
