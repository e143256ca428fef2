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
use crate::reader::WarcReader;
use std::fmt::Write as _;
use trawl_model::UnixMillis;

/// What a reader remembers of an ARC file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArcState;

/// A line in front of an ARC record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArcLine {
    url: String,
    ip: String,
    date: UnixMillis,
    content_type: String,
    length: u64,
}

impl ArcLine {
    /// Parses a line without its line end. URLs and media types with blanks in them exist, so the date after the address is
    /// the anchor.
    fn parse(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(line);
        let words: Vec<&str> = text.trim_end_matches('\r').split(' ').collect();
        let date_at = (2..words.len()).find(|i| {
            let date =
                words.get(*i).is_some_and(|w| (8..=17).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_digit()));
            let ip = words.get(i - 1).is_some_and(|w| {
                *w == "-"
                    || w.contains(['.', ':']) && w.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':'))
            });
            date && ip
        })?;
        let url = words.get(..date_at - 1)?.join(" ");
        // A URL has a scheme; without that check any log line would do.
        let scheme = url.split(':').next().unwrap_or_default();
        if scheme.len() == url.len() || !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let rest = words.get(date_at + 1..)?;
        let (length, rest) = rest.split_last()?;
        // Version 2 has five more fields between the type and the length.
        let types = if rest.len() >= 6 { rest.len() - 5 } else { rest.len() };
        let date = words.get(date_at)?;
        let date = UnixMillis::parse(date).or_else(|_| UnixMillis::parse(date.get(..14).unwrap_or("?"))).ok()?;
        Some(ArcLine {
            url,
            ip: words.get(date_at - 1)?.to_string(),
            date,
            content_type: rest.get(..types)?.join(" "),
            length: length.parse().ok()?,
        })
    }

    /// The header a WARC record of the same thing would have; it has no id, because ARC knows none.
    fn to_header(&self, is_http: bool) -> Vec<u8> {
        let kind = match () {
            () if self.url.starts_with("filedesc:") => "warcinfo",
            () if is_http => "response",
            () => "resource",
        };
        let content_type = if is_http { "application/http; msgtype=response" } else { &self.content_type };
        let mut out = format!("WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\n", self.url);
        let _ = write!(out, "WARC-Date: {}\r\n", self.date.rfc3339_seconds());
        if self.ip != "-" && self.ip != "0.0.0.0" {
            let _ = write!(out, "WARC-IP-Address: {}\r\n", self.ip);
        }
        let _ = write!(out, "Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", self.length);
        out.into_bytes()
    }
}

impl WarcReader {
    /// Whether the first record of the file begins with an ARC line.
    pub(crate) fn looks_like_arc(&mut self) -> Result<bool> {
        if self.member_was_warc() {
            return Ok(false);
        }
        if self.arc_container().fill(5)?.starts_with(b"WARC/") {
            return Ok(false);
        }
        if self.arc_line_follows()? {
            self.set_arc();
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether an ARC line is next.
    pub(crate) fn arc_line_follows(&mut self) -> Result<bool> {
        Ok(self.arc_line()?.is_some_and(|line| ArcLine::parse(&line).is_some()))
    }

    /// The next line, without its end and without taking it; `None` if it is longer than a header may be.
    fn arc_line(&mut self) -> Result<Option<Vec<u8>>> {
        let limit = self.limits().header_bytes;
        let container = self.arc_container();
        let mut want = 1;
        loop {
            let data = container.fill(want)?;
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
        let parsed = line.as_deref().and_then(ArcLine::parse);
        let (Some(line), Some(parsed)) = (line.as_deref(), parsed) else {
            let found = shown(line.as_deref().unwrap_or(self.arc_container().data()));
            return Err(Error::corrupt(at, "an ARC record line: url, address, date, type, length", found));
        };
        let used = line.len() + 1;
        let container = self.arc_container();
        container.consume(used);
        let is_http = parsed.length >= 5 && container.fill(5)?.starts_with(b"HTTP/");
        self.set_arc_header(&parsed.to_header(is_http), parsed.length)?;
        Ok(true)
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
        let one = ArcLine::parse(b"http://a.example/x y 192.0.2.1 20080430204826 text/html 275").unwrap();
        assert_eq!(
            (one.url.as_str(), one.content_type.as_str(), one.length),
            ("http://a.example/x y", "text/html", 275)
        );
        let two = ArcLine::parse(b"http://a.example/ ::1 20080430204826 text/html 200 - - 0 n.arc 275\r").unwrap();
        assert_eq!((two.ip.as_str(), two.content_type.as_str(), two.length), ("::1", "text/html", 275));
        let odd = ArcLine::parse(b"http://a.example/ 192.0.2.1 20080430204826 text/html; charset=utf-8 275").unwrap();
        assert_eq!(odd.content_type, "text/html; charset=utf-8");
        for line in
            ["", "x", "GET / HTTP/1.1", "192.0.2.1 20080430204826 text/html 1", "a: 192.0.2.1 99999999999999 t 1"]
        {
            assert_eq!(ArcLine::parse(line.as_bytes()), None, "{line}");
        }
    }
}
