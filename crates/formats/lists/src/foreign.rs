//! What a file is that is not a list: for messages.

use crate::file::text_of;

/// Longest part of a first line that a message shows.
const SHOWN: usize = 60;
/// Bytes behind a mark that are looked at.
const LOOKED: usize = 256;

/// First bytes that leave no doubt.
const MAGICS: &[(&[u8], &str)] = &[
    // One layer is taken off before anybody looks.
    (b"\x1f\x8b\x08", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"\x02\x21\x4c\x18", "an old lz4 file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x1f\x9d", "a file of compress"),
    (b"\x89LZO\0", "an lzop file"),
    (b"\xff\x06\0\0sNaPpY", "a snappy file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"ARROW1", "an Arrow file"),
    (b"SEQ\x06", "a Hadoop SequenceFile"),
    (b"MGM1", "a manifest of partitions, which `trawl frontier map --manifest` reads"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
];

/// What first bytes say for certain. A mark made of letters may begin a list as well (`orca.example`), unless what follows
/// is not text.
pub(crate) fn by_magic(head: &[u8]) -> Option<&'static str> {
    let is_text = |bytes: &[u8]| bytes.iter().all(|b| !b.is_ascii_control() || b.is_ascii_whitespace());
    let behind = |magic: &[u8]| head.get(magic.len()..).map(|rest| rest.get(..LOOKED).unwrap_or(rest));
    // The first entry of a tar archive is a name, filled up with zeros, and this mark.
    let (name, mark) = head.split_at_checked(257).unwrap_or_default();
    if name.contains(&0) && mark.starts_with(b"ustar") {
        return Some("a tar archive");
    }
    let is = |magic: &[u8]| head.starts_with(magic) && !(is_text(magic) && behind(magic).is_none_or(is_text));
    MAGICS.iter().find(|(magic, _)| is(magic)).map(|(_, name)| *name)
}

/// What a text of unknown format is, if its first line is not text. A program has short texts between its bytes, and each would
/// be read as a host. A line with `://` may be a URL with odd bytes around it: then only that line is rejected.
pub(crate) fn binary(head: &[u8]) -> Option<String> {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let odd = |b: &u8| *b < b' ' && !b.is_ascii_whitespace() && *b != 0x0b;
    (line.iter().any(odd) && memchr::memmem::find(line, b"://").is_none()).then(|| describe(head))
}

/// Whether a text is a web page: each of its lines would be rejected.
pub(crate) fn is_html(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
    let lower = line.to_ascii_lowercase();
    lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html")
}

/// What a file that begins so looks like.
pub(crate) fn describe(head: &[u8]) -> String {
    if let Some(known) = by_magic(head) {
        return known.to_owned();
    }
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
    let cut = line.get(..SHOWN).unwrap_or(line);
    if line.iter().any(|b| *b < b' ' && !b.is_ascii_whitespace()) {
        let hex: Vec<String> = cut.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        return format!("bytes {}", hex.join(" "));
    }
    if is_html(head) {
        return "an HTML page".to_owned();
    }
    format!("a first line {:?}", text_of(cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_named() {
        for (head, expected) in [
            (&b"\x04\x22\x4d\x18xyz"[..], "an lz4 file"),
            (b"PK\x03\x04", "a zip archive"),
            (b"<!DOCTYPE HTML>\n<p>", "an HTML page"),
            (b"\0\x01\x02", "bytes 00 01 02"),
            (b"orca.example\n", "a first line \"orca.example\""),
            (b"ORC\n\0\x03", "an ORC file"),
            (b"MGM1\x01\0", "a manifest of partitions, which `trawl frontier map --manifest` reads"),
            (b"hello \xff world\nx", "a first line \"hello %FF world\""),
        ] {
            assert_eq!(describe(head), expected);
        }
        let mut tar = b"list.txt".to_vec();
        tar.resize(257, 0);
        tar.extend(b"ustar  \0root");
        assert_eq!(describe(&tar), "a tar archive");
        assert!(is_html(b"<html lang=en>\nhttp://a.example/") && !is_html(b"http://a.example/\n<html>"));
        assert!(describe(&[b'x'; 4000]).len() < 100);
    }

    #[test]
    fn bytes_are_not_lines() {
        assert_eq!(binary(b"\x7fELF\x02\x01\x01\0\0\nexample.com\n").as_deref(), Some("bytes 7f 45 4c 46 02 01 01 00"));
        for text in [&b""[..], b"example.com\n\0", b"http://a.example/\0", b"a.example\x0bb.example", b"a\tb\x0cc\r\n"]
        {
            assert_eq!(binary(text), None, "{text:?}");
        }
    }
}
