//! What a file is: by its first bytes where those are certain, then by its name, then by what its first line looks like.

use crate::cdx::Legend;
use crate::csv::{looks_like_table, table_of_urls};
use crate::file::ListFile;
use crate::lines::first_lines;
use crate::{Error, Result, foreign};
use std::io::BufReader;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use trawl_io::{Compression, Fs, Op};
use trawl_model::SourceIdentity;

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A URL a line, or a JSON object that has one.
    Lines,
    /// A JSON object a line.
    Jsonl,
    /// A JSON list, or JSON objects over many lines.
    Json,
    /// A CDX index with JSON.
    Cdxj,
    /// A CDX index in columns.
    Cdx,
    /// A table whose separator is found out.
    Csv,
    /// A table separated by tabs.
    Tsv,
    /// Parquet with a column `url`.
    Parquet,
    /// What a browser asked for.
    Har,
    /// Bookmarks as browsers export them.
    Bookmarks,
    /// A sitemap, an index of sitemaps, or an RSS or Atom feed.
    Sitemap,
}

/// Each with its name and the endings of file names that say so.
const FORMATS: &[(Format, &str, &[&str])] = &[
    (Format::Lines, "lines", &["txt", "urls", "lst", "list", "seeds"]),
    (Format::Jsonl, "jsonl", &["jsonl", "ndjson"]),
    (Format::Json, "json", &["json"]),
    (Format::Cdxj, "cdxj", &["cdxj"]),
    (Format::Cdx, "cdx", &["cdx"]),
    (Format::Csv, "csv", &["csv"]),
    (Format::Tsv, "tsv", &["tsv", "tab"]),
    (Format::Parquet, "parquet", &["parquet"]),
    (Format::Har, "har", &["har"]),
    (Format::Bookmarks, "bookmarks", &[]),
    (Format::Sitemap, "sitemap", &["xml", "rss", "atom"]),
];

/// The elements that a sitemap or feed may begin with.
const ROOTS: &[&[u8]] = &[b"<urlset", b"<sitemapindex", b"<rss", b"<rdf:rdf", b"<feed"];

impl Format {
    /// The names of all, for messages.
    pub fn known() -> String {
        FORMATS.iter().map(|row| row.1).collect::<Vec<_>>().join(", ")
    }

    /// Its name, which [`str::parse`] reads.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// Whether its items are lines: then a plain file can be read from the beginning of any of them on.
    pub fn is_lines(self) -> bool {
        matches!(self, Format::Lines | Format::Jsonl | Format::Cdxj | Format::Cdx)
    }

    fn of_extension(extension: &str) -> Option<Self> {
        FORMATS.iter().find(|row| row.2.contains(&extension)).map(|row| row.0)
    }

    /// By how a text begins, behind blank lines and comments: which format it is, and whether no name would say otherwise.
    pub(crate) fn of_head(head: &[u8]) -> Option<(Self, bool)> {
        // An index of captures may begin with header lines.
        let mut lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
        let line = lines.find(|line| !line.starts_with(b"!")).unwrap_or_default();
        match line.first()? {
            b'<' => return Self::of_markup(head),
            b'[' => return Some((Format::Json, true)),
            b'{' if is_har(head) => return Some((Format::Har, true)),
            b'{' => return Some(Self::of_object(line, head.len() > line.len())),
            _ => {}
        }
        let first = line.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let text = first.iter().all(|b| *b > b' ' && *b != 0x7f);
        match line {
            _ if line.starts_with(b"PAR1") => Some((Format::Parquet, true)),
            _ if !text => None,
            _ if first.contains(&b')') && line.contains(&b'{') => Some((Format::Cdxj, true)),
            _ if Legend::of_header(line).or_else(|| Legend::usual(line)).is_some() => Some((Format::Cdx, true)),
            _ if looks_like_table(line) => Some((Format::Csv, true)),
            _ if memchr::memmem::find(first, b"://").is_none() => None,
            // Rows without names, as `sqlite3` prints them: as a line, each would be one URL of all its fields.
            _ if table_of_urls(head).is_some() => Some((Format::Csv, false)),
            _ => Some((Format::Lines, false)),
        }
    }

    fn of_markup(head: &[u8]) -> Option<(Self, bool)> {
        let lower = head.to_ascii_lowercase();
        if lower.starts_with(b"<!doctype netscape-bookmark-file") {
            return Some((Format::Bookmarks, true));
        }
        let has_root = ROOTS.iter().any(|root| memchr::memmem::find(&lower, root).is_some());
        has_root.then_some((Format::Sitemap, true))
    }

    /// Whether a first line that begins an object is all of it.
    fn of_object(line: &[u8], has_more: bool) -> (Self, bool) {
        match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
            // An object that goes on behind the line was printed over several; if it is only cut, its name may say so.
            Err(e) if e.is_eof() && has_more => (Format::Json, line == b"{"),
            // Several of them in one line are not lines of JSON.
            Err(_) if is_several(line) => (Format::Json, false),
            _ => (Format::Jsonl, false),
        }
    }
}

/// Whether a line holds more than one value.
fn is_several(line: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(line).into_iter::<serde::de::IgnoredAny>();
    values.next().is_some_and(|first| first.is_ok())
        && line.get(values.byte_offset()..).is_some_and(|rest| rest.trim_ascii().starts_with(b"{"))
}

/// Whether JSON is an object with a member `"log": {`, and is not by another member the object of a list.
fn is_har(head: &[u8]) -> bool {
    let (mut depth, mut at) = (0u32, 0);
    while let Some(byte) = head.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let text = head.get(at + 1..).unwrap_or_default();
                let Some(end) = end_of_text(text) else { return false };
                let behind = text.get(end + 1..).unwrap_or_default().trim_ascii_start();
                let name = text.get(..end).filter(|_| depth == 1);
                if let Some(value) = behind.strip_prefix(b":") {
                    match name {
                        Some(b"url") => return false,
                        Some(b"log") => return value.trim_ascii_start().starts_with(b"{"),
                        _ => {}
                    }
                }
                at += end + 1;
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Where the quote is that ends a JSON text.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = FORMATS.iter().find(|row| row.1 == text).map(|row| row.0);
        found.ok_or_else(|| format!("expected one of {}, found {text:?}", Format::known()))
    }
}

/// What can be seen of a file without reading it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// Its format, if it can be recognised; `None` for an ambiguous text, too.
    pub format: Option<Format>,
    /// How it is compressed.
    pub compression: Compression,
    /// How it begins, unpacked, behind blank lines and comments; empty if there is nothing else.
    pub head: Vec<u8>,
}

impl Looks {
    /// What the file is, for messages of those who expected something else.
    pub fn describe(&self) -> String {
        let packed = match self.compression {
            Compression::None => "",
            Compression::Gzip => "gzip of ",
            Compression::Zstd => "zstd of ",
        };
        let found = self.format.map(|format| format!("a list of URLs ({})", format.name()));
        format!("{packed}{}", found.unwrap_or_else(|| foreign::describe(&self.head)))
    }

    /// The format; a text that says nothing is an empty list.
    pub fn format_of(&self, path: &str) -> Result<Format> {
        match self.format {
            Some(format) => Ok(format),
            None if self.head.is_empty() => Ok(Format::Lines),
            None => Err(Error::UnknownFormat { path: path.to_owned(), known: Format::known(), found: self.describe() }),
        }
    }
}

/// The ending of a file's name, in lower case, without that of a compression.
pub fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let bare = [".gz", ".zst", ".zstd"].iter().find_map(|ext| name.strip_suffix(ext)).unwrap_or(&name);
    bare.rsplit_once('.').map(|(_, extension)| extension.to_owned())
}

/// Looks at a file.
pub fn look(fs: &Arc<dyn Fs>, path: &Path) -> Result<Looks> {
    // What a file is does not depend on which one it is, so it need not be hashed.
    let identity = SourceIdentity { uri: path.display().to_string(), size: u64::MAX, tag: String::new() };
    let file = ListFile::known(fs, path, identity)?;
    let compression = file.compression;
    let by_name = extension(path).and_then(|extension| Format::of_extension(&extension));
    let head = match first_lines(BufReader::new(file.reader(0)?)) {
        Ok(head) => head,
        // A damaged file of a known name is reported when it is read, with the place of the damage.
        Err(_) if by_name.is_some() => return Ok(Looks { format: by_name, compression, head: Vec::new() }),
        Err(e) => return Err(trawl_io::Error::io(Op::Read, path, e).into()),
    };
    let by_content = Format::of_head(&head);
    let format = match (by_content, by_name) {
        (Some((format, true)), _) => Some(format),
        // A document may be read as lines, but not the other way round.
        (Some((Format::Jsonl, _)), Some(Format::Json)) => Some(Format::Jsonl),
        (_, Some(Format::Sitemap)) => Some(Format::Sitemap),
        _ if foreign::by_magic(&head).is_some() => None,
        (_, Some(format)) => Some(format),
        (content, None) => content.map(|(format, _)| format),
    };
    Ok(Looks { format, compression, head })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{file_of, gzip};

    #[test]
    fn content_that_is_certain_then_names_then_content() {
        let of = |name: &str, bytes: &[u8]| {
            let file = file_of(name, bytes);
            look(&file.fs, &file.path).unwrap().format
        };
        let cdxj = b"com,a)/ 20260624010203 {\"url\":\"http://a.com/\"}\n";
        let cdx = b"com,a)/ 20080430204825 http://a.com/ text/html 200 3I42 - - 10 5 x.warc.gz\n";
        for (name, bytes, format) in [
            ("x.txt", &b"a.com\n"[..], Some(Format::Lines)),
            ("x.TXT.gz", b"a.com\n", Some(Format::Lines)),
            ("x.txt", cdxj, Some(Format::Cdxj)),
            ("x", cdxj, Some(Format::Cdxj)),
            ("x", b"!meta 0 {}\ncom,a)/ 2026 {}\n", Some(Format::Cdxj)),
            ("x.gz", cdx, Some(Format::Cdx)),
            ("x.cdx", cdxj, Some(Format::Cdxj)),
            ("x", b" CDX N b a m s k r M S V g\n", Some(Format::Cdx)),
            ("x", b"# c\n\n{\"url\":1}", Some(Format::Jsonl)),
            ("x.txt", b"{\"url\":1}", Some(Format::Lines)),
            ("x.json", b"{\"url\":1}\n", Some(Format::Jsonl)),
            ("x.json", b"{\"url\":\n1}\n", Some(Format::Json)),
            ("x.json", b"{\"url\":1}{\"url\":2}", Some(Format::Json)),
            ("x", b"{\"url\":1} {\"url\":2}\n", Some(Format::Json)),
            ("x.jsonl", b"{\"url\":1} {\"url\":2}\n", Some(Format::Jsonl)),
            ("x.txt.gz", &gzip(&gzip(b"a.com\n")), None),
            ("x.jsonl", b"{\"url\":\n1}\n", Some(Format::Jsonl)),
            ("x.jsonl", b"{\n\"url\": 1}\n", Some(Format::Json)),
            ("x.txt", b"[\n{\"url\":1}]", Some(Format::Json)),
            ("x", b"{ \"log\" : {\"entries\":[]}}", Some(Format::Har)),
            ("x.csv", b"http://a.com/,x\n", Some(Format::Csv)),
            ("x", b"http://a.com/,x\n", Some(Format::Lines)),
            ("x", b"http://a.com/,x\nhttp://b.com/,y\n", Some(Format::Csv)),
            ("x", b"http://a.com/x|3\nhttp://b.com/y|12", Some(Format::Csv)),
            ("x.gz", &gzip(b"3;http://a.com/x\n12;http://b.com/y\n"), Some(Format::Csv)),
            ("x.txt", b"http://a.com/x|3\nhttp://b.com/y|12\n", Some(Format::Lines)),
            ("x", b"http://a.com/x,y\nhttp://b.com/\n", Some(Format::Lines)),
            ("x", b"http://a.com/x\t2026-01-01\nhttp://b.com/y\t2026-01-02\n", Some(Format::Lines)),
            ("x", b"http://a.com/x;v=1\nhttp://b.com/y;v=2\n", Some(Format::Lines)),
            ("x.txt", b"ts;url\n", Some(Format::Csv)),
            ("x", b"1,google.com\n", Some(Format::Csv)),
            ("x.txt", b"1,google.com\n", Some(Format::Csv)),
            ("x.txt", b"1\tgoogle.com\n2\tyoutube.com\n", Some(Format::Csv)),
            ("x.txt", b"http://a.com/\t2026-01-01\n", Some(Format::Lines)),
            ("x.json", b"{\"creator\": {\"log\":1}, \"a\":\"\\\"log\", \"log\": {\"entries\":[]}}", Some(Format::Har)),
            ("x.json", b"{\"creator\": {\"log\":{}}}", Some(Format::Jsonl)),
            ("x.json", b"{\"url\":\"http://a.com/\",\"log\":{\"x\":1}}", Some(Format::Jsonl)),
            ("x.parquet", b"", Some(Format::Parquet)),
            ("x.txt", b"PAR1\0", Some(Format::Parquet)),
            ("x.html", b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n", Some(Format::Bookmarks)),
            ("x", b"<?xml version=\"1.0\"?>\n<!-- c -->\n<urlset xmlns=\"x\">", Some(Format::Sitemap)),
            ("x", b"<rss version='2.0'>", Some(Format::Sitemap)),
            ("x.html", b"<html>", None),
            ("x.txt", b"\x04\x22\x4d\x18x", None),
            ("x", b"", None),
            ("x", b"a.com\n", None),
            ("x", b"#\n\0\x01\x02", None),
        ] {
            assert_eq!(of(name, bytes), format, "{name} {}", String::from_utf8_lossy(bytes));
        }
        assert_eq!("jsonl".parse(), Ok(Format::Jsonl));
        assert!("xls".parse::<Format>().unwrap_err().contains("lines, jsonl"));
    }

    #[test]
    fn an_error_names_what_was_found() {
        for (bytes, found) in [
            (b"\x04\x22\x4d\x18x".to_vec(), "found an lz4 file"),
            (gzip(b"<html><p>"), "found gzip of an HTML page"),
            (b"hello world".to_vec(), "found a first line \"hello world\""),
        ] {
            let file = file_of("x", &bytes);
            let error = look(&file.fs, &file.path).unwrap().format_of("x").unwrap_err().to_string();
            assert!(error.starts_with("x: expected a format") && error.contains(found), "{error}");
        }
    }
}
