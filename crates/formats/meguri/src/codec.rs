//! The block codec: a payload as it is, or as zstd frames.

use crate::error::{At, Error, Malformed, Result};
use bytes::Bytes;
use std::cell::RefCell;
use std::io::{self, Read};
use std::sync::Arc;
use trawl_io::ReadAt;
use zstd::zstd_safe::CParameter;

/// The level of the reference's encoder.
pub const REFERENCE_LEVEL: i32 = 3;
/// Frames that ask for a larger window than this (2^27 bytes) are refused.
const MAX_WINDOW_LOG: u32 = 27;

/// A block codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Codec {
    /// Payloads as they are.
    None = 0,
    /// zstd.
    Zstd = 2,
}

impl Codec {
    /// By its number in a file; 1 and 3 are reserved.
    pub fn from_id(id: u8) -> Option<Codec> {
        [Codec::None, Codec::Zstd].into_iter().find(|c| *c as u8 == id)
    }
}

/// Compresses payloads, one after another.
pub(crate) struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// At the fastest level, for comparisons; made when first used.
    fast: Option<zstd::bulk::Compressor<'static>>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("zstd", &self.zstd.is_some()).finish()
    }
}

fn zstd_failed(error: io::Error) -> Error {
    Error::Refused(format!("zstd cannot compress a payload: {error}"))
}

impl Packer {
    /// `checksum` puts a checksum of the content into every frame.
    pub fn new(codec: Codec, level: i32, checksum: bool) -> Result<Self> {
        let zstd = match codec {
            Codec::None => None,
            Codec::Zstd => {
                let mut zstd = zstd::bulk::Compressor::new(level).map_err(zstd_failed)?;
                zstd.set_parameter(CParameter::ChecksumFlag(checksum)).map_err(zstd_failed)?;
                Some(zstd)
            }
        };
        Ok(Packer { zstd, fast: None })
    }

    pub fn codec(&self) -> Codec {
        if self.zstd.is_some() { Codec::Zstd } else { Codec::None }
    }

    /// The payload in the file's codec. An empty one has no frame.
    pub fn pack(&mut self, payload: Vec<u8>) -> Result<(Codec, Vec<u8>)> {
        match &mut self.zstd {
            Some(zstd) if !payload.is_empty() => Ok((Codec::Zstd, zstd.compress(&payload).map_err(zstd_failed)?)),
            Some(_) => Ok((Codec::Zstd, payload)),
            None => Ok((Codec::None, payload)),
        }
    }

    /// How long a payload would be, `exact` or about.
    pub fn trial(&mut self, payload: &[u8], exact: bool) -> Result<usize> {
        let Some(zstd) = &mut self.zstd else { return Ok(payload.len()) };
        if exact {
            return zstd.compress(payload).map(|packed| packed.len()).map_err(zstd_failed);
        }
        let fast = match &mut self.fast {
            Some(fast) => fast,
            empty => empty.insert(zstd::bulk::Compressor::new(1).map_err(zstd_failed)?),
        };
        fast.compress(payload).map(|packed| packed.len()).map_err(zstd_failed)
    }

    /// As [`Packer::pack`], unless the payload is no longer as it is. Readers follow the codec of each page, and
    /// hashes (a third of a file) are then neither compressed nor decompressed in vain.
    pub fn pack_or_keep(&mut self, payload: Vec<u8>) -> Result<(Codec, Vec<u8>)> {
        // No frame is shorter than its head.
        if payload.len() <= 12 {
            return Ok((Codec::None, payload));
        }
        let Some(zstd) = &mut self.zstd else { return Ok((Codec::None, payload)) };
        let packed = zstd.compress(&payload).map_err(zstd_failed)?;
        Ok(if packed.len() < payload.len() { (Codec::Zstd, packed) } else { (Codec::None, payload) })
    }
}

thread_local! {
    /// Kept between pages: making one costs more than unpacking a small page.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Decompresses a payload of exactly `len` bytes. `len` is a claim: the caller has checked it against a limit.
pub(crate) fn unpack(codec: Codec, stored: Bytes, len: usize) -> Result<Bytes, Malformed> {
    let payload = match codec {
        Codec::None => stored,
        Codec::Zstd if stored.is_empty() => stored,
        Codec::Zstd => {
            let unpacked = DECOMPRESSOR.with_borrow_mut(|zstd| match zstd {
                Some(zstd) => zstd.decompress(&stored, len),
                None => zstd.insert(zstd::bulk::Decompressor::new()?).decompress(&stored, len),
            });
            unpacked.map_err(|e| Malformed::new("zstd frames", e))?.into()
        }
    };
    if payload.len() != len {
        return Err(Malformed::new("a payload of the stated length", format!("{} of {len} bytes", payload.len())));
    }
    Ok(payload)
}

/// Decompresses bytes `start..end` of a file as they are asked for; ends after `len` bytes, and fails if there are fewer
/// or more.
pub(crate) fn unpack_stream(
    codec: Codec,
    src: Arc<dyn ReadAt>,
    range: std::ops::Range<u64>,
    len: u64,
) -> Result<Box<dyn Read + Send>> {
    let path = src.name().to_owned();
    let at = At::new(&path, range.start);
    let stored = io::BufReader::with_capacity(64 * 1024, Section { src, at: range.start, end: range.end });
    let inner: Box<dyn Read + Send> = match codec {
        Codec::None => Box::new(stored),
        Codec::Zstd => {
            let mut zstd = zstd::stream::read::Decoder::with_buffer(stored)
                .map_err(|e| Malformed::new("a zstd decoder", e).at(at))?;
            zstd.window_log_max(MAX_WINDOW_LOG).map_err(|e| Malformed::new("a zstd decoder", e).at(at))?;
            Box::new(zstd)
        }
    };
    Ok(Box::new(Exact { inner, left: len }))
}

/// A part of a file, read in order.
pub(crate) fn section(src: Arc<dyn ReadAt>, range: std::ops::Range<u64>) -> Box<dyn Read + Send> {
    Box::new(Section { src, at: range.start, end: range.end })
}

/// `Read` over a part of a file.
struct Section {
    src: Arc<dyn ReadAt>,
    at: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let n = buf.len().min(left);
        if let Some(part) = buf.get_mut(..n).filter(|part| !part.is_empty()) {
            self.src.read_at(self.at, part)?;
            self.at += n as u64;
        }
        Ok(n)
    }
}

/// Fails if the bytes beneath are fewer or more than promised.
struct Exact<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if buf.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => wrong("the payload is longer than its page says"),
            };
        }
        let n = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        match self.inner.read(buf.get_mut(..n).unwrap_or_default())? {
            0 => wrong("the payload is shorter than its page says"),
            n => {
                self.left -= n as u64;
                Ok(n)
            }
        }
    }
}

/// The checksum of a part of a file, in little memory.
pub(crate) fn crc_of_range(src: &dyn ReadAt, range: std::ops::Range<u64>) -> Result<u32> {
    let mut crc = trawl_io::crc::Crc32c::new();
    let mut at = range.start;
    let mut buf = vec![0; usize::try_from((range.end.saturating_sub(at)).min(1 << 20)).unwrap_or(0)];
    while at < range.end {
        let n = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buf.len());
        let part = buf.get_mut(..n).unwrap_or_default();
        src.read_at(at, part)?;
        crc.update(part);
        at += n as u64;
    }
    Ok(crc.value())
}
