//! `WritableUtils`: strings with 32-bit lengths, arrays of them, and gzip members inside values.

use crate::decode::{Decoded, Decoder};
use crate::{Encode, Text, ValueError};
use std::io::Read;

/// A gzip member inside a value may grow to this: 64 MiB, more than any page that Nutch's own limits let through.
pub const MAX_INFLATED_BYTES: u64 = 64 << 20;

/// A string array; elements can be null.
pub type Strings<'a> = Vec<Option<Text<'a>>>;

impl<'a> Decoder<'a> {
    /// A plain string array: count, then strings with 32-bit lengths. A count of -1 is `None`.
    pub fn strings(&mut self, what: &'static str) -> Decoded<Option<Strings<'a>>> {
        let Some(count) = self.optional_count(4, what)? else { return Ok(None) };
        (0..count).map(|_| Ok(self.optional_bytes(what)?.map(Text::new))).collect::<Decoded<_>>().map(Some)
    }

    /// A string array whose elements are gzip members.
    pub fn compressed_strings(&mut self, what: &'static str) -> Decoded<Option<Strings<'static>>> {
        let Some(count) = self.optional_count(4, what)? else { return Ok(None) };
        (0..count).map(|_| self.compressed_string(what)).collect::<Decoded<_>>().map(Some)
    }

    /// A string stored as a gzip member; -1 as its length is `None`.
    pub fn compressed_string(&mut self, what: &'static str) -> Decoded<Option<Text<'static>>> {
        Ok(self.compressed_bytes(what)?.map(Text::from))
    }

    /// Bytes stored as a gzip member; -1 as its length is `None`.
    pub fn compressed_bytes(&mut self, what: &'static str) -> Decoded<Option<Vec<u8>>> {
        let at = self.at();
        self.optional_bytes(what)?.map(|member| gunzip(member).map_err(|found| gzip_error(at, found))).transpose()
    }
}

fn gzip_error(at: usize, found: String) -> ValueError {
    ValueError { at, expected: "a gzip member".into(), found }
}

fn gunzip(member: &[u8]) -> Result<Vec<u8>, String> {
    inflate(flate2::read::MultiGzDecoder::new(member))
}

/// Undoes one zlib stream inside a value: `CompressedWritable`.
pub fn inflate_zlib(stream: &[u8]) -> Result<Vec<u8>, String> {
    inflate(flate2::read::ZlibDecoder::new(stream))
}

fn inflate(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut capped = trawl_io::limits::CappedReader::new(reader, MAX_INFLATED_BYTES, "the inflated value");
    capped.read_to_end(&mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

/// Appends string arrays and gzip members to a buffer.
pub trait EncodeStrings: Encode {
    /// A plain string array; `None` is a count of -1.
    fn put_strings(&mut self, strings: Option<&[Option<Text<'_>>]>) {
        let Some(strings) = strings else { return self.put_i32(-1) };
        self.put_len(strings.len());
        for s in strings {
            match s {
                Some(s) => self.put_bytes(s.as_bytes()),
                None => self.put_i32(-1),
            }
        }
    }

    /// Bytes as one gzip member with its length before it.
    fn put_compressed(&mut self, bytes: &[u8]) {
        self.put_bytes(&gzip(bytes));
    }
}

impl EncodeStrings for Vec<u8> {}

/// One gzip member at zlib's default level, with the operating system byte of Java before 16.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; compressor.gzip_compress_bound(bytes.len())];
    // The bound is the library's own promise; a member of no bytes would be refused by every reader.
    let len = compressor.gzip_compress(bytes, &mut out).unwrap_or(0);
    out.truncate(len);
    if let Some(os) = out.get_mut(9) {
        *os = 0;
    }
    out
}
