//! Content codings, taken off within a limit.

use std::io::{self, BufRead, BufReader, Read};
use trawl_io::limits::CappedReader;

/// More codings than this on one body is an attack, not a server.
const MAX_CODINGS: usize = 4;

/// Takes content codings off `body`; yields at most `limit` bytes, then an error. Memory is that of one window per coding.
pub fn decode_content<'a>(body: impl Read + 'a, codings: &[String], limit: u64) -> io::Result<Box<dyn Read + 'a>> {
    if codings.len() > MAX_CODINGS {
        return Err(unknown(&codings.join(", ")));
    }
    let mut reader: Box<dyn Read + 'a> = Box::new(body);
    for coding in codings.iter().rev() {
        reader = match coding.as_str() {
            "gzip" | "x-gzip" => Box::new(flate2::read::MultiGzDecoder::new(reader)),
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
        assert!(decode_content(&b""[..], &["lzma".into()], 1).is_err());
    }
}
