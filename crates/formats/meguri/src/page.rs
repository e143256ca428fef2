//! A page: 32 bytes that say what follows, then the payload as stored.
//!
//! ```text
//!  off size field
//!   0   1   kind: 0 data, 3 blob, 4 filter, 5 schedule (1 and 2 are unused)
//!   1   1   encoding (data pages; 0 otherwise)
//!   2   1   codec of this payload: 0 or 2
//!   3   1   flags, 0
//!   4   4   num_values: rows; arena bytes; URL rows; scheduled rows
//!   8   4   uncompressed_size
//!  12   4   compressed_size: bytes after this header
//!  16   4   first_row_index
//!  20   8   page_base
//!  28   4   crc32c of the stored payload
//! ```
//! Nothing covers this header but the checksums of its column and region. A reader of one page therefore compares all
//! of it with the footer: kind, encoding, rows and length with the directory, sizes with what is unpacked, and the base
//! with the zone map, which the decoded values must have as their smallest and largest.

use crate::codec::{self, Codec, crc_of_range, section, unpack_stream};
use crate::encoding::{Decoder, Encoding, Payload};
use crate::error::{At, Error, Malformed, Result};
use bytes::Bytes;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};

/// Bytes of a page header.
pub const PAGE_HEADER_LEN: usize = 4 + 4 * 4 + 8 + 4;
const _: () = assert!(PAGE_HEADER_LEN == 32);

/// Payloads up to this many bytes are unpacked in memory, longer ones as a stream.
pub(crate) const IN_MEMORY: u32 = 16 << 20;

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Data = 0,
    Blob = 3,
    Filter = 4,
    Schedule = 5,
}

/// The 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    pub kind: u8,
    pub encoding: u8,
    pub codec: u8,
    pub num_values: u32,
    pub uncompressed_size: u32,
    pub compressed_size: u32,
    pub first_row: u32,
    pub base: u64,
    pub crc: u32,
}

impl PageHeader {
    pub fn encode(&self) -> [u8; PAGE_HEADER_LEN] {
        let mut out = Vec::with_capacity(PAGE_HEADER_LEN);
        out.extend_from_slice(&[self.kind, self.encoding, self.codec, 0]);
        for value in [self.num_values, self.uncompressed_size, self.compressed_size, self.first_row] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        let mut bytes = [0; PAGE_HEADER_LEN];
        bytes.copy_from_slice(&out);
        bytes
    }

    /// Reads the bytes of a header and checks what stands in them alone.
    pub fn decode(bytes: &[u8], at: At<'_>) -> Result<PageHeader> {
        let (page, flags) = fields(&mut SliceReader::at(bytes, at.offset)).map_err(|e| at.short(e))?;
        if flags != 0 {
            return Err(at.corrupt("a page without flags", flags));
        }
        Ok(page)
    }

    /// Fails unless this is a page of `kind` whose payload fills `stored` bytes.
    pub fn expect(&self, kind: Kind, stored: u64, at: At<'_>) -> Result<()> {
        if self.kind != kind as u8 {
            return Err(at.corrupt("a page of another kind", self.kind));
        }
        if u64::from(self.compressed_size) != stored {
            return Err(
                at.corrupt("a page as long as the footer says", format!("{} of {stored} bytes", self.compressed_size))
            );
        }
        if self.codec == Codec::None as u8 && self.compressed_size != self.uncompressed_size {
            return Err(at.corrupt("equal sizes of a payload stored as it is", self.uncompressed_size));
        }
        Ok(())
    }

    pub fn codec(&self, at: At<'_>) -> Result<Codec> {
        Codec::from_id(self.codec).ok_or_else(|| at.unsupported("block codec", u64::from(self.codec)))
    }

    pub fn encoding(&self, at: At<'_>) -> Result<Encoding> {
        Encoding::from_id(self.encoding).ok_or_else(|| at.unsupported("encoding", u64::from(self.encoding)))
    }
}

fn fields(r: &mut SliceReader<'_>) -> Result<(PageHeader, u8), SliceError> {
    let [kind, encoding, codec, flags] = r.array("a page header")?;
    let page = PageHeader {
        kind,
        encoding,
        codec,
        num_values: r.u32("a page's number of values")?,
        uncompressed_size: r.u32("a page's uncompressed size")?,
        compressed_size: r.u32("a page's size")?,
        first_row: r.u32("a page's first row")?,
        base: r.u64("a page's base")?,
        crc: r.u32("a page's checksum")?,
    };
    Ok((page, flags))
}

/// Frames a payload.
pub(crate) fn frame(
    kind: Kind,
    codec: Codec,
    num_values: u32,
    base: u64,
    uncompressed: u64,
    stored: &[u8],
) -> Result<PageHeader> {
    let size = |n: u64, what: &str| {
        u32::try_from(n).map_err(|_| Error::Refused(format!("{what} of {n} bytes does not fit a page (4 GiB)")))
    };
    Ok(PageHeader {
        kind: kind as u8,
        encoding: 0,
        codec: codec as u8,
        num_values,
        uncompressed_size: size(uncompressed, "a payload")?,
        compressed_size: size(stored.len() as u64, "a stored payload")?,
        first_row: 0,
        base,
        crc: crc32c(stored),
    })
}

/// A page of a file: its header, checked, and where its payload lies.
#[derive(Clone)]
pub(crate) struct Page {
    src: Arc<dyn ReadAt>,
    /// Of the header.
    pub offset: u64,
    pub header: PageHeader,
    /// The stored payload, where it was read together with the header.
    stored: Option<Bytes>,
}

impl Page {
    /// A page read as a whole: `bytes` are those at `offset`, header included. Checks header and payload checksum.
    pub fn new(src: &Arc<dyn ReadAt>, offset: u64, bytes: Bytes, kind: Kind) -> Result<Page> {
        let at = At::new(src.name(), offset);
        let header = PageHeader::decode(&bytes, at)?;
        let stored = bytes.slice(PAGE_HEADER_LEN.min(bytes.len())..);
        header.expect(kind, stored.len() as u64, at)?;
        at.check_crc("page payload", header.crc, crc32c(&stored))?;
        Ok(Page { src: src.clone(), offset, header, stored: Some(stored) })
    }

    /// A page of `len` bytes at `offset`, of which only the header is read now.
    pub fn open(src: &Arc<dyn ReadAt>, offset: u64, len: u64, kind: Kind) -> Result<Page> {
        let at = At::new(src.name(), offset);
        let Some(stored) = len.checked_sub(PAGE_HEADER_LEN as u64) else {
            return Err(at.corrupt("a page header", format!("{len} bytes")));
        };
        let header = PageHeader::decode(&src.read_range(offset..offset + PAGE_HEADER_LEN as u64)?, at)?;
        header.expect(kind, stored, at)?;
        Ok(Page { src: src.clone(), offset, header, stored: None })
    }

    pub fn at(&self) -> At<'_> {
        At::new(self.src.name(), self.offset)
    }

    /// Where the stored payload lies.
    pub fn stored_range(&self) -> std::ops::Range<u64> {
        let start = self.offset + PAGE_HEADER_LEN as u64;
        start..start + u64::from(self.header.compressed_size)
    }

    /// The payload in memory. A caller with a payload above its limit uses [`Page::stream`].
    pub fn payload(&self, limit: u32) -> Result<Bytes> {
        let at = self.at();
        if self.header.uncompressed_size > limit {
            return Err(at.over_limit("a page's payload", u64::from(self.header.uncompressed_size), u64::from(limit)));
        }
        let stored = match &self.stored {
            Some(stored) => stored.clone(),
            None => {
                let stored = self.src.read_range(self.stored_range())?;
                at.check_crc("page payload", self.header.crc, crc32c(&stored))?;
                stored
            }
        };
        codec::unpack(self.header.codec(at)?, stored, self.header.uncompressed_size as usize).map_err(|e| e.at(at))
    }

    /// The payload, unpacked as it is asked for; its checksum is checked first, in a reading of its own.
    pub fn stream(&self) -> Result<Box<dyn std::io::Read + Send>> {
        let at = self.at();
        if self.stored.is_none() {
            at.check_crc("page payload", self.header.crc, crc_of_range(&*self.src, self.stored_range())?)?;
        }
        unpack_stream(
            self.header.codec(at)?,
            self.src.clone(),
            self.stored_range(),
            u64::from(self.header.uncompressed_size),
        )
    }

    /// The stored payload, read as it is asked for; nothing is checked.
    pub fn section(&self) -> Box<dyn std::io::Read + Send> {
        section(self.src.clone(), self.stored_range())
    }

    /// Decodes the values of a data page.
    pub fn decoder(&self, width: u8) -> Result<Decoder> {
        let at = self.at();
        let payload = if self.header.uncompressed_size <= IN_MEMORY {
            Payload::memory(self.payload(IN_MEMORY)?)
        } else {
            Payload::stream(self.stream()?, self.src.name())
        };
        let encoding = self.header.encoding(at)?;
        if matches!(encoding, Encoding::Raw | Encoding::Dict | Encoding::Rle) && self.header.base != 0 {
            return Err(at.corrupt("no base in a page of this encoding", self.header.base));
        }
        let bad = |e: Malformed| e.at(at);
        Decoder::new(encoding, payload, u64::from(self.header.num_values), width, self.header.base).map_err(bad)
    }
}
