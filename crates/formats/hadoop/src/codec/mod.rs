//! Codecs: each record value or block buffer is one complete stream.
//!
//! | class in `org.apache.hadoop.io.compress.` | stream |
//! | --- | --- |
//! | `DefaultCodec`, `DeflateCodec` | one zlib stream |
//! | `GzipCodec` | one or more gzip members |
//! | `BZip2Codec` | a bzip2 stream |
//! | `ZStandardCodec` | a zstd frame |
//! | `SnappyCodec`, `Lz4Codec` | raw blocks in Hadoop's own framing, see `framed` |

mod framed;

use std::io::{Read, Write};

/// A codec by the class that a header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// zlib: what Hadoop uses unless told otherwise.
    Default,
    /// zlib under its other name.
    Deflate,
    /// gzip.
    Gzip,
    /// bzip2.
    BZip2,
    /// zstd.
    Zstd,
    /// Snappy in Hadoop's framing.
    Snappy,
    /// LZ4 in Hadoop's framing.
    Lz4,
}

/// Why a stream could not be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// More came out than the limit allows.
    #[error("more than the limit of {limit} bytes")]
    OverLimit {
        /// The most that is accepted.
        limit: u64,
    },
    /// The stream breaks the rules of its codec.
    #[error("{0}")]
    Bad(String),
}

const PACKAGE: &str = "org.apache.hadoop.io.compress.";

impl Codec {
    /// Every codec.
    pub const ALL: [Codec; 7] =
        [Codec::Default, Codec::Deflate, Codec::Gzip, Codec::BZip2, Codec::Zstd, Codec::Snappy, Codec::Lz4];

    /// The name behind the package.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Default => "DefaultCodec",
            Codec::Deflate => "DeflateCodec",
            Codec::Gzip => "GzipCodec",
            Codec::BZip2 => "BZip2Codec",
            Codec::Zstd => "ZStandardCodec",
            Codec::Snappy => "SnappyCodec",
            Codec::Lz4 => "Lz4Codec",
        }
    }

    /// The full class name.
    pub fn class(self) -> String {
        format!("{PACKAGE}{}", self.name())
    }

    /// The codec of a class name; `None` for one that is not known here.
    pub fn of_class(class: &str) -> Option<Self> {
        let name = class.strip_prefix(PACKAGE)?;
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// A buffer for what comes out of a stream, kept from one stream to the next.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// As long as the longest so far: growing it costs zeroing it.
    buffer: Vec<u8>,
    len: usize,
    /// How much the last stream grew, times 16: a first guess for the next one.
    growth: usize,
}

impl Unpacked {
    /// What came out of the last stream.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Forgets the last stream.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// Packs and unpacks streams of one codec, keeping its tables from one stream to the next.
pub struct Coder {
    codec: Codec,
    inflate: libdeflater::Decompressor,
    /// For short and for long inputs.
    deflate: [Option<libdeflater::Compressor>; 2],
}

/// Below this, libdeflate gets a higher level: at level 6 it stores inputs up to 31 bytes as they are, which made files of small
/// records 3 % larger than Java's. On so few bytes the level costs nothing.
const SHORT: usize = 512;

impl std::fmt::Debug for Coder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coder").field("codec", &self.codec).finish_non_exhaustive()
    }
}

impl Coder {
    /// For streams of `codec`.
    pub fn new(codec: Codec) -> Self {
        Coder { codec, inflate: libdeflater::Decompressor::new(), deflate: [None, None] }
    }

    /// Unpacks a whole stream of which at most `limit` bytes may come.
    pub fn unpack(&mut self, stream: &[u8], limit: usize, out: &mut Unpacked) -> Result<(), CodecError> {
        out.len = 0;
        match self.codec {
            Codec::Default | Codec::Deflate => return self.inflate(stream, limit, out),
            Codec::Gzip => read_all(flate2::read::MultiGzDecoder::new(stream), limit, out)?,
            Codec::BZip2 => read_all(bzip2::read::MultiBzDecoder::new(stream), limit, out)?,
            Codec::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(stream).map_err(bad)?;
                read_all(decoder, limit, out)?;
            }
            Codec::Snappy => framed::unpack(stream, limit, &mut out.buffer, framed::snappy)?,
            Codec::Lz4 => framed::unpack(stream, limit, &mut out.buffer, framed::lz4)?,
        }
        out.len = out.buffer.len();
        Ok(())
    }

    /// libdeflate unpacks zlib streams in one go, about twice as fast as a streaming inflate, and wants the room
    /// beforehand. The stream does not say how much: guess by the last one, and double.
    fn inflate(&mut self, stream: &[u8], limit: usize, out: &mut Unpacked) -> Result<(), CodecError> {
        let mut room = (stream.len().saturating_mul(out.growth.max(64)) / 16 + 64).min(limit);
        loop {
            if out.buffer.len() < room {
                out.buffer.resize(room, 0);
            }
            // All of the buffer may be used, but never more than the limit.
            let space = out.buffer.len().min(limit);
            let target = out.buffer.get_mut(..space).unwrap_or_default();
            match self.inflate.zlib_decompress(stream, target) {
                Ok(n) => {
                    out.len = n;
                    out.growth = n * 16 / stream.len().max(1) + 4;
                    return Ok(());
                }
                Err(libdeflater::DecompressionError::InsufficientSpace) if space < limit => {
                    room = space.saturating_mul(2).min(limit);
                }
                Err(libdeflater::DecompressionError::InsufficientSpace) => {
                    return Err(CodecError::OverLimit { limit: limit as u64 });
                }
                Err(libdeflater::DecompressionError::BadData) => {
                    return Err(CodecError::Bad("a damaged zlib stream".into()));
                }
            }
        }
    }

    /// Packs `bytes` as one stream, appended to `out`.
    pub fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self.codec {
            // Sizes compare with those of zlib's default level, which Java uses.
            Codec::Default | Codec::Deflate => self.deflate(bytes, out, false)?,
            Codec::Gzip => self.deflate(bytes, out, true)?,
            Codec::BZip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(&mut *out, bzip2::Compression::best());
                encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(bad)?;
            }
            Codec::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(&mut *out, 3).map_err(bad)?;
                encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(bad)?;
            }
            Codec::Snappy => framed::pack(bytes, out, framed::SNAPPY_CHUNK, framed::snappy_pack)?,
            Codec::Lz4 => framed::pack(bytes, out, framed::LZ4_CHUNK, framed::lz4_pack)?,
        }
        Ok(())
    }

    fn deflate(&mut self, bytes: &[u8], out: &mut Vec<u8>, gzip: bool) -> Result<(), CodecError> {
        let [short, long] = &mut self.deflate;
        let (slot, level) = if bytes.len() < SHORT { (short, 9) } else { (long, 6) };
        let level = libdeflater::CompressionLvl::new(level).unwrap_or_default();
        let compressor = slot.get_or_insert_with(|| libdeflater::Compressor::new(level));
        let start = out.len();
        let bound = if gzip {
            compressor.gzip_compress_bound(bytes.len())
        } else {
            compressor.zlib_compress_bound(bytes.len())
        };
        out.resize(start + bound, 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let packed =
            if gzip { compressor.gzip_compress(bytes, target) } else { compressor.zlib_compress(bytes, target) };
        out.truncate(start + packed.map_err(|e| CodecError::Bad(e.to_string()))?);
        Ok(())
    }
}

fn bad(error: std::io::Error) -> CodecError {
    CodecError::Bad(error.to_string())
}

fn read_all(reader: impl Read, limit: usize, out: &mut Unpacked) -> Result<(), CodecError> {
    out.buffer.clear();
    // One byte past the limit decides between "just fits" and "too long".
    reader.take(limit as u64 + 1).read_to_end(&mut out.buffer).map_err(bad)?;
    if out.buffer.len() > limit {
        return Err(CodecError::OverLimit { limit: limit as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
