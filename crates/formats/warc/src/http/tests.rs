use super::*;
use std::io::Read;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1;\r\n b=2\r\nno colon here\r\ncontent-length:  5 \r\n\r\nhello";

#[test]
fn heads_are_settled_only_where_they_disagree() {
    let head = &RESPONSE[..RESPONSE.len() - 5];
    assert!(matches!(settle_head(head, 5), std::borrow::Cow::Borrowed(_)));
    let cut = settle_head(head, 3).into_owned();
    let text = String::from_utf8(cut.clone()).unwrap();
    assert!(text.ends_with("X-Crawler-content-length:  5 \r\nContent-Length: 3\r\n\r\n"), "{text}");
    assert_eq!(settle_head(&cut, 3), cut.as_slice());
    let chunked = settle_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n", 7).into_owned();
    let expected: &[u8] =
        b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nA: b\r\nContent-Length: 7\r\n\r\n";
    assert_eq!(chunked, expected);
    assert!(matches!(settle_head(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", 7), std::borrow::Cow::Borrowed(_)));
    let twice = settle_head(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 2).into_owned();
    assert_eq!(String::from_utf8(twice).unwrap().matches("\r\nContent-Length: 2\r\n").count(), 1);
}

fn dechunk(data: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    Dechunk::new(data).read_to_end(&mut out)?;
    Ok(out)
}

#[test]
fn chunks_are_joined() {
    assert_eq!(dechunk(b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n").unwrap(), b"hello world");
    assert_eq!(dechunk(b"0\r\n\r\n").unwrap(), b"");
    assert_eq!(dechunk(b"1\na\n0\n").unwrap(), b"a");
    for bad in ["", "x\r\n", "5\r\nhell", "5\r\nhello!!\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "1\r\na\r\n"] {
        assert!(dechunk(bad.as_bytes()).is_err(), "{bad:?}");
    }
    assert!(Dechunk::<&[u8]>::may_begin(b"1a\r\nabc"));
    assert!(!Dechunk::<&[u8]>::may_begin(b"<html>\r\n"));
}

#[test]
fn codings_are_taken_off_within_the_limit() {
    use std::io::Write;
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
    let head = Head::new(b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP, identity\r\nContent-Encoding: br\r\n\r\n");
    assert_eq!(content_codings(&head), ["gzip", "br"]);
}
