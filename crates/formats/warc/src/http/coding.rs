//! Content codings, taken off on request and within a limit.

use super::Head;
use std::io::{self, BufRead, BufReader, Read};
use trawl_io::limits::CappedReader;

/// The content codings of a head, in the order they were applied, in lower case; `identity` is none.
pub fn content_codings(head: &Head<'_>) -> Vec<String> {
    head.fields()
        .filter(|(n, _)| n.eq_ignore_ascii_case(b"Content-Encoding"))
        .flat_map(|(_, v)| v.split(|b| *b == b','))
        .map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect()
}

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
