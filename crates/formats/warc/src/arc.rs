//! ARC files, WARC's predecessor, read as if they were WARC.
//!
//! ```text
//! filedesc://name.arc 0.0.0.0 20080430204825 text/plain 76 LF    the first record: version and field names
//! 1 0 InternetArchive LF URL IP-address Archive-date Content-type Archive-length LF LF
//! http://a.example/ 192.0.2.1 20080430204826 text/html 275 LF     version 1: five fields
//! HTTP/1.1 200 OK …                                               275 bytes, then LF
//! http://a.example/ 192.0.2.1 20080430204826 text/html 200 - - 0 name.arc 275 LF    version 2: ten fields
//! ```

use crate::container::Compression;
use crate::error::{Error, Result, shown};
use crate::header::may_begin_record;
use crate::reader::WarcReader;
use std::fmt::Write as _;
use trawl_model::UnixMillis;
use trawl_url::text_of;

/// What a reader remembers of an ARC file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArcState;

/// The field that tells a header made up here from one that was read: who writes WARC adds to it what WARC demands.
pub(crate) const ARC_FIELD: &str = "ARC-Record";

/// A line in front of an ARC record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArcLine {
    /// Bytes that are not UTF-8 escaped.
    url: String,
    /// Empty if it is not one.
    ip: String,
    /// As it can be understood: of the odd ones some cannot.
    date: Option<UnixMillis>,
    content_type: String,
    /// `None`: negative, or no number.
    length: Option<u64>,
}

impl ArcLine {
    /// Parses a line without its line end. URLs and media types with blanks in them exist, so the date after the address is
    /// the anchor. A `certain` line has such an anchor and a length; in a file that is known to be ARC anything with a URL and
    /// enough fields is a record, as warcio has it, because nothing else can stand there.
    fn parse(line: &[u8], certain: bool) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let is_date = |w: &[u8]| (8..=18).contains(&w.len()) && w.iter().all(u8::is_ascii_digit);
        let anchor = (2..words.len().saturating_sub(1)).find(|i| {
            let at = |i: usize| words.get(i).copied().unwrap_or_default();
            is_date(at(*i)) && is_address(at(i - 1)) || !certain && is_date(at(i - 1)) && is_address(at(*i)) && *i > 2
        });
        let is_version_2 = || {
            let file = words.len().checked_sub(2).and_then(|i| words.get(i)).copied().unwrap_or_default();
            file.ends_with(b".arc") || file.ends_with(b".arc.gz")
        };
        let date_at = match anchor {
            Some(found) => found,
            None if certain => return None,
            None => words.len().checked_sub(if is_version_2() && words.len() >= 10 { 8 } else { 3 })?,
        };
        let url = words.get(..date_at.checked_sub(1)?)?.join(&b' ');
        // A URL has a scheme; without that check any log line would do.
        let colon = memchr::memchr(b':', &url)?;
        if !url.first().is_some_and(u8::is_ascii_alphabetic) || colon == 0 {
            return None;
        }
        let (length, rest) = words.get(date_at + 1..)?.split_last()?;
        let length = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok());
        if certain && length.is_none() {
            return None;
        }
        // Version 2 has five more fields between the type and the length.
        let types = if rest.len() >= 6 { rest.len() - 5 } else { rest.len() };
        let (mut ip, mut date) = (*words.get(date_at - 1)?, *words.get(date_at)?);
        if is_date(ip) && is_address(date) {
            std::mem::swap(&mut ip, &mut date);
        }
        // A date and a type in each other's place are known by what they are.
        let swapped = (!certain && arc_date(date).is_none())
            .then(|| rest.first().copied().filter(|word| is_date(word) && arc_date(word).is_some()))
            .flatten();
        let kind = swapped.map(|_| date);
        let date = arc_date(swapped.unwrap_or(date));
        if certain && date.is_none() {
            return None;
        }
        let ip = if ip.contains(&b'.') || ip.contains(&b':') { text_of(ip).into_owned() } else { String::new() };
        let content_type = match kind {
            Some(kind) => text_of(kind).into_owned(),
            None => text_of(&rest.get(..types)?.join(&b' ')).into_owned(),
        };
        Some(ArcLine { url: text_of(&url).into_owned(), ip, date, content_type, length })
    }

    /// Whether it begins the file.
    fn is_version_block(&self) -> bool {
        self.url.starts_with("filedesc:")
    }

    /// The header a WARC record of the same thing would have; it has no id, because ARC knows none.
    fn to_header(&self, is_http: bool, length: u64) -> Vec<u8> {
        let kind = match () {
            () if self.is_version_block() => "warcinfo",
            () if is_http => "response",
            () => "resource",
        };
        let content_type = if is_http { "application/http; msgtype=response" } else { &self.content_type };
        let mut out = format!("WARC/1.1\r\nWARC-Type: {kind}\r\n{ARC_FIELD}: 1\r\nWARC-Target-URI: {}\r\n", self.url);
        if let Some(date) = self.date {
            let _ = write!(out, "WARC-Date: {}\r\n", date.rfc3339_seconds());
        }
        if !self.ip.is_empty() && self.ip != "0.0.0.0" {
            let _ = write!(out, "WARC-IP-Address: {}\r\n", self.ip);
        }
        let _ = write!(out, "Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n");
        out.into_bytes()
    }
}

/// What the line of an ARC record begins with, behind the end of the line before.
pub(crate) const ARC_LINES: [&[u8]; 3] = [b"\nhttp", b"\ndns:", b"\nfiledesc:"];

/// Schemes of the URLs that crawlers archived as ARC.
const SCHEMES: [&[u8]; 8] = [b"http", b"https", b"ftp", b"dns", b"filedesc", b"whois", b"gopher", b"news"];

/// Whether bytes begin with a whole line that is that of an ARC record.
pub(crate) fn arc_line_begins(bytes: &[u8]) -> bool {
    memchr::memchr(b'\n', bytes).and_then(|lf| bytes.get(..lf)).is_some_and(is_whole_line)
}

/// Whether a line is that of an ARC record for certain, and not the rest of one (`p://a.example/ …`).
fn is_whole_line(line: &[u8]) -> bool {
    let scheme = line.split(|b| *b == b':').next().unwrap_or_default();
    SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)) && ArcLine::parse(line, true).is_some()
}

fn is_address(word: &[u8]) -> bool {
    let digits = |w: &[u8]| w.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':'));
    matches!(word, b"-" | b"None") || (word.contains(&b'.') || word.contains(&b':')) && digits(word)
}

/// A date of 14 digits, or fewer, or more of which the first 14 count. Of an odd number the last one is half a number.
fn arc_date(word: &[u8]) -> Option<UnixMillis> {
    let text = std::str::from_utf8(word).ok()?;
    let is_odd = text.len() < 14 && text.len() % 2 == 1;
    let even = text.get(..if is_odd { text.len() - 1 } else { 14 });
    let even = even.filter(|even| even.len() >= 8 && even.bytes().all(|b| b.is_ascii_digit()));
    UnixMillis::parse(text).ok().or_else(|| UnixMillis::parse(even?).ok())
}

impl WarcReader {
    /// Whether the first record of the file begins with an ARC line.
    pub(crate) fn looks_like_arc(&mut self) -> Result<bool> {
        if self.member_was_warc() {
            return Ok(false);
        }
        let start = self.fill(9)?;
        if start.len() >= 5 && may_begin_record(start) {
            return Ok(false);
        }
        // Whatever follows: no other file begins so.
        if start.starts_with(b"filedesc:") || self.arc_line_follows()? {
            self.set_arc();
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether the line of an ARC record is next, where the line may have begun before.
    pub(crate) fn arc_record_follows(&mut self) -> Result<bool> {
        Ok(self.arc_line()?.is_some_and(|line| is_whole_line(&line)))
    }

    /// Whether an ARC line is next, for certain.
    fn arc_line_follows(&mut self) -> Result<bool> {
        Ok(self.arc_line()?.is_some_and(|line| ArcLine::parse(&line, true).is_some()))
    }

    /// The next line, without its end and without taking it; `None` if it is longer than a header may be.
    fn arc_line(&mut self) -> Result<Option<Vec<u8>>> {
        let limit = self.limits().header_bytes;
        let mut want = 1;
        loop {
            let data = self.fill(want)?;
            if let Some(lf) = memchr::memchr(b'\n', data) {
                return Ok(data.get(..lf).map(<[u8]>::to_vec));
            }
            if data.len() < want || data.len() >= limit {
                return Ok(None);
            }
            want = data.len() * 2;
        }
    }

    /// Reads an ARC line and makes up the header of a WARC record for it.
    pub(crate) fn arc_record(&mut self) -> Result<bool> {
        let at = self.arc_container().at();
        let line = self.arc_line()?;
        let parsed =
            line.as_deref().and_then(|line| ArcLine::parse(line, true).or_else(|| ArcLine::parse(line, false)));
        let (Some(line), Some(parsed)) = (line.as_deref(), parsed) else {
            let found = shown(line.as_deref().unwrap_or(self.arc_container().data()));
            return Err(Error::corrupt(at, "an ARC record line: url, address, date, type, length", found));
        };
        if ArcLine::parse(line, true).is_none() {
            self.warn(at, "an ARC record line with an odd address, date or length");
        }
        self.arc_container().consume(line.len() + 1);
        let length = match parsed.length {
            Some(length) => length,
            None if parsed.is_version_block() => self.version_block()?,
            // What follows is found to be damage, unless it is a record.
            None => 0,
        };
        let is_http = length >= 5 && self.fill(5)?.starts_with(b"HTTP/");
        self.set_arc_header(&parsed.to_header(is_http, length), length)?;
        Ok(true)
    }

    /// Length of a version block that does not state it: the line of the version and that of the field names.
    fn version_block(&mut self) -> Result<u64> {
        let data = self.fill(4096)?;
        Ok(memchr::memchr_iter(b'\n', data).nth(1).map_or(0, |lf| lf as u64 + 1))
    }
}

/// Whether a file of this name is an ARC file, for those who only have names.
pub fn is_arc_name(name: &str) -> bool {
    [Compression::None, Compression::Gzip, Compression::Zstd]
        .iter()
        .any(|c| name.to_ascii_lowercase().ends_with(&format!(".arc{}", c.suffix())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        let parse = |line: &[u8]| ArcLine::parse(line, true).unwrap();
        let one = parse(b"http://a.example/x y 192.0.2.1 20080430204826 text/html 275");
        assert_eq!(
            (one.url.as_str(), one.content_type.as_str(), one.length),
            ("http://a.example/x y", "text/html", Some(275))
        );
        let two = parse(b"http://a.example/ ::1 20080430204826 text/html 200 - - 0 n.arc 275\r");
        assert_eq!((two.ip.as_str(), two.content_type.as_str(), two.length), ("::1", "text/html", Some(275)));
        let odd = parse(b"http://a.example/ 192.0.2.1 20080430204826 text/html; charset=utf-8 275");
        assert_eq!(odd.content_type, "text/html; charset=utf-8");
        for line in
            ["", "x", "GET / HTTP/1.1", "192.0.2.1 20080430204826 text/html 1", "a: 192.0.2.1 99999999999999 t 1"]
        {
            assert_eq!(ArcLine::parse(line.as_bytes(), true), None, "{line}");
        }
    }

    #[test]
    fn odd_lines_are_records_of_a_file_that_is_known() {
        let date = UnixMillis::parse("20080430204826").unwrap();
        for (line, url, ip, date, length) in [
            (
                &b"http://a.example/\xe9 None 20080430204826 text/html 1"[..],
                "http://a.example/%E9",
                "",
                Some(date),
                Some(1),
            ),
            (
                b"http://a.example/ 192.0.2.1 200804302048260000 text/html -1",
                "http://a.example/",
                "192.0.2.1",
                Some(date),
                None,
            ),
            (
                b"http://a.example/ 192.0.2.1 a0d1fdddf3165d0447 text/html 7",
                "http://a.example/",
                "192.0.2.1",
                None,
                Some(7),
            ),
            (
                b"http://a.example/ 20080430204826 192.0.2.1 text/html 7",
                "http://a.example/",
                "192.0.2.1",
                Some(date),
                Some(7),
            ),
            (b"http://a.example/ 192.0.2.1 20083004204826 text/html abc", "http://a.example/", "192.0.2.1", None, None),
            (
                b"http://a.example/ 192.0.2.1 text/html 20080430204826 50",
                "http://a.example/",
                "192.0.2.1",
                Some(date),
                Some(50),
            ),
            (
                b"http://a.example/ 192.0.2.1 2008043020482 text/html 50",
                "http://a.example/",
                "192.0.2.1",
                UnixMillis::parse("200804302048").ok(),
                Some(50),
            ),
            (b"filedesc:// - - - 76", "filedesc://", "", None, Some(76)),
        ] {
            let found = ArcLine::parse(line, false).unwrap();
            let shown = line.escape_ascii();
            assert_eq!(
                (found.url.as_str(), found.ip.as_str(), found.date, found.length),
                (url, ip, date, length),
                "{shown}"
            );
        }
        assert_eq!(ArcLine::parse(b"no url here at all 1", false), None);
    }

    /// Nothing but the address of a record in its own member tells how long it is.
    #[test]
    fn packed_records_have_lengths_and_a_damaged_one_does_not_hide_the_next() {
        use crate::WarcReader;
        use std::io::Write;
        let records: [&[u8]; 4] = [
            b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 24\n1 0 test\nURL IP-address\n\n",
            b"http://a.example/1 192.0.2.1 20080430204826 text/html 5\nHTTP/\n",
            b"http://a.example/2 192.0.2.1 20080430204826 text/html -1\nlost\n",
            b"http://a.example/3 192.0.2.1 20080430204826 text/html 2\nok\n\n",
        ];
        let gzip = |bytes: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(bytes).unwrap();
            gz.finish().unwrap()
        };
        let members: Vec<_> = records.iter().map(|r| gzip(r)).collect();
        let mut reader =
            WarcReader::builder().lenient(true).over(std::sync::Arc::new(bytes::Bytes::from(members.concat())));
        let (mut found, mut gaps) = (Vec::new(), Vec::new());
        loop {
            match reader.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => {
                    let offset = record.at().offset;
                    found.push((offset, record.finish().unwrap().length));
                }
                Err(_) => gaps.extend(reader.recover().unwrap()),
            }
        }
        let mut at = 0;
        let places = members.iter().map(|m| {
            (at, {
                at += m.len() as u64;
                m.len() as u64
            })
        });
        assert_eq!(found, places.collect::<Vec<_>>());
        assert_eq!(gaps.len(), 1, "{gaps:?}");
    }

    /// Lines and blocks go on in the next member, wherever those are cut.
    #[test]
    fn records_are_read_across_members() {
        use crate::{RecordFile, WarcReader};
        use std::io::Write;
        let mut plain = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 24\n1 0 test\nURL IP-address\n\n".to_vec();
        let body = |n: usize| format!("HTTP/1.1 200 OK\r\n\r\n{}", "page ".repeat(n));
        for n in 0..30 {
            let (url, body) = (format!("http://a.example/{n}"), body(n));
            plain.extend(format!("{url} 192.0.2.1 20080430204826 text/html {}\n{body}\n", body.len()).bytes());
        }
        for length in [1, 37, 100, 333, 1000] {
            let mut bytes = Vec::new();
            for part in plain.chunks(length) {
                let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gz.write_all(part).unwrap();
                bytes.extend(gz.finish().unwrap());
            }
            let file: std::sync::Arc<dyn trawl_io::ReadAt> = std::sync::Arc::new(bytes::Bytes::from(bytes));
            let mut reader = WarcReader::builder().lenient(true).over(file.clone());
            assert!(reader.next_record().unwrap().is_some());
            for n in 0..30 {
                let mut record = reader.next_record().unwrap().unwrap();
                assert_eq!(record.header().target_uri().unwrap(), format!("http://a.example/{n}"), "{length}");
                let place = record.place();
                assert_eq!(record.read_block(1 << 20).unwrap(), body(n), "{length}");
                let alone = RecordFile::new(file.clone()).lenient(true);
                let alone = alone.record_at(place.offset, place.index, |mut r| r.read_block(1 << 20));
                assert_eq!(alone.unwrap(), body(n), "{length}");
            }
            assert!(reader.next_record().unwrap().is_none());
        }
    }
}
