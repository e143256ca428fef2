//! Content codings, taken off within a limit.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use trawl_io::limits::CappedReader;

/// The codings that can be undone.
pub(crate) const KNOWN: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];

/// More codings than this on one body is an attack, not a server.
const MAX_CODINGS: usize = 4;

/// Takes content codings off `body`; yields at most `limit` bytes, then an error. Memory is that of one window per coding.
pub fn decode_content<'a>(body: impl Read + 'a, codings: &[String], limit: u64) -> io::Result<Box<dyn Read + 'a>> {
    if codings.len() > MAX_CODINGS {
        return Err(unknown(&codings.join(", ")));
    }
    let mut body = BufReader::new(body);
    // Servers name a coding for bodies that they leave empty, too.
    let codings = if codings.is_empty() || body.fill_buf()?.is_empty() { &[] } else { codings };
    let mut reader: Box<dyn Read + 'a> = Box::new(body);
    for coding in codings.iter().rev() {
        reader = match coding.as_str() {
            "gzip" | "x-gzip" => gzip(reader)?,
            "deflate" => deflate(reader)?,
            "br" => Box::new(brotli::Decompressor::new(reader, 16 << 10)),
            "zstd" => {
                let mut decoder = zstd::stream::read::Decoder::new(reader)?;
                // RFC 9659: a zstd content coding must not need a window above 8 MiB.
                decoder.window_log_max(23)?;
                Box::new(decoder)
            }
            other => return Err(unknown(other)),
        };
    }
    Ok(Box::new(CappedReader::new(reader, limit, "decoded body")))
}

/// As browsers do: members up to where no other one begins, for what comes then is padding. A body that does not begin as gzip
/// is not packed, whatever its head says.
fn gzip<'a>(reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut buffered = BufReader::new(reader);
    Ok(if begins_member(&mut buffered)? {
        Box::new(Members(Some(GzDecoder::new(buffered))))
    } else {
        Box::new(buffered)
    })
}

fn begins_member(reader: &mut impl BufRead) -> io::Result<bool> {
    Ok(reader.fill_buf()?.first() == Some(&0x1f))
}

/// The members of a gzip file. Always there: an option only to put the next one in its place.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(buf)?;
            if n > 0 || buf.is_empty() || !begins_member(member.get_mut())? {
                return Ok(n);
            }
            self.0 = self.0.take().map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// `deflate` means zlib, but many servers send a bare deflate stream.
fn deflate<'a>(reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut buffered = BufReader::new(reader);
    let start = buffered.fill_buf()?;
    let zlib = match start {
        [cmf, flags, ..] => cmf & 0x0f == 8 && u16::from_be_bytes([*cmf, *flags]) % 31 == 0,
        _ => true,
    };
    Ok(if zlib {
        Box::new(flate2::bufread::ZlibDecoder::new(buffered))
    } else {
        Box::new(flate2::bufread::DeflateDecoder::new(buffered))
    })
}

fn unknown(coding: &str) -> io::Error {
    let message = format!("expected a content coding of gzip, deflate, br or zstd, found {:?}", coding);
    io::Error::new(io::ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn codings_are_taken_off_within_the_limit() {
        let body = "content ".repeat(1000).into_bytes();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&body).unwrap();
        let mut zl = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zl.write_all(&body).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        raw.write_all(&body).unwrap();
        let mut br = Vec::new();
        brotli::BrotliCompress(&mut &body[..], &mut br, &Default::default()).unwrap();
        let zst = zstd::encode_all(&body[..], 3).unwrap();
        for (name, bytes) in [
            ("gzip", gz.finish().unwrap()),
            ("deflate", zl.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("br", br),
            ("zstd", zst),
        ] {
            let mut out = Vec::new();
            decode_content(&bytes[..], &[name.into()], 8000).unwrap().read_to_end(&mut out).unwrap();
            assert_eq!(out, body, "{name}");
            let error = decode_content(&bytes[..], &[name.into()], 7999).unwrap().read_to_end(&mut out).unwrap_err();
            assert!(error.to_string().contains("limit of 7999"), "{error}");
        }
        assert!(decode_content(&b"x"[..], &["lzma".into()], 1).is_err());
    }

    #[test]
    fn a_coding_that_is_only_named_does_no_harm() {
        let decode = |bytes: &[u8], coding: &str| {
            let mut out = Vec::new();
            let read = decode_content(bytes, &[coding.into()], 1 << 20).and_then(|mut body| body.read_to_end(&mut out));
            read.map(|_| out).ok()
        };
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(decode(b"", coding).as_deref(), Some(&b""[..]), "{coding}: an empty body is empty");
        }
        let member = |text: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(text).unwrap();
            gz.finish().unwrap()
        };
        let (one, two) = (member(b"one "), [member(b"one "), member(b""), member(b"two")].concat());
        assert_eq!(decode(&two, "gzip").as_deref(), Some(&b"one two"[..]));
        for padding in [&b"\0\0\0"[..], b"\r\n", b"<!-- cached -->"] {
            assert_eq!(decode(&[&one, padding].concat(), "gzip").as_deref(), Some(&b"one "[..]));
        }
        assert_eq!(decode(b"User-agent: *", "gzip").as_deref(), Some(&b"User-agent: *"[..]), "it is not packed");
        assert_eq!(decode(&one[..one.len() - 1], "gzip"), None, "it is cut");
        assert_eq!(decode(&two[..two.len() - 1], "gzip"), None, "it is cut");
    }
}
