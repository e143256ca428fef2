//! Response heads: found, understood and stored.
//!
//! One pass over the lines gives both what a head means and where each line lies, so that the stored head is the
//! received one, byte for byte, except for the lines that would contradict the stored body. (A strict parser would give
//! the meaning of good heads only, and the places of none.)
//!
//! ```text
//! head    = *( CR | LF ) status *line empty        lines end in LF or CRLF, mixed as they like
//! status  = "HTTP/" version SP code [ SP reason ]      any version; what does not begin like this no archive reader takes for HTTP
//! line    = name *SP ":" value, folded lines belong to the one before; a line without a colon is kept, and means nothing
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Range;

/// The end of the head that starts at the front of `buf`, one past its empty line. `from` is where an earlier, shorter
/// look ended.
pub(crate) fn end_of_head(buf: &[u8], from: usize) -> Option<usize> {
    let start = buf.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let mut at = from.saturating_sub(3).max(start);
    while let Some(lf) = buf.get(at..)?.iter().position(|b| *b == b'\n') {
        at += lf + 1;
        match buf.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

#[derive(Debug, Clone)]
struct Line {
    /// The whole line with its end, folded lines included.
    whole: Range<usize>,
    name: Range<usize>,
    value: Vec<u8>,
}

/// A response head.
#[derive(Debug, Clone)]
pub struct Head {
    raw: Bytes,
    status: u16,
    /// Of a version that closes connections unless said otherwise.
    http10: bool,
    lines: Vec<Line>,
}

impl Head {
    /// Understands a head, from its status line through its empty line; `None` when it is not HTTP.
    pub fn parse(raw: Bytes) -> Option<Self> {
        let start = raw.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let raw = raw.slice(start..);
        let mut lines = line_ranges(&raw);
        let (status, http10) = status_line(raw.get(lines.next()?)?)?;
        let mut parsed: Vec<Line> = Vec::new();
        for whole in lines {
            let line = raw.get(whole.clone())?;
            if matches!(line, b"\n" | b"\r\n") {
                break;
            }
            let text = line.trim_ascii_end();
            if matches!(line.first(), Some(b' ' | b'\t')) {
                if let Some(previous) = parsed.last_mut() {
                    previous.whole.end = whole.end;
                    previous.value.push(b' ');
                    previous.value.extend_from_slice(text.trim_ascii_start());
                }
                continue;
            }
            let colon = text.iter().position(|b| *b == b':');
            let (name, value) = match colon {
                Some(colon) => text.split_at(colon),
                None => text.split_at(0),
            };
            let name = whole.start..whole.start + name.trim_ascii_end().len();
            let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii().to_vec();
            parsed.push(Line { whole, name, value });
        }
        Some(Self { status, http10, lines: parsed, raw })
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The head as received, from the status line through the empty line.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Every value of a header, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.lines
            .iter()
            .filter(move |line| {
                self.raw.get(line.name.clone()).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
            })
            .map(|line| line.value.as_slice())
    }

    /// The first value of a header, as text: bytes that are not UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.all(name).next().map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// `http/1.1` or `http/1.0`.
    pub(crate) fn protocol(&self) -> &'static str {
        if self.http10 { "http/1.0" } else { "http/1.1" }
    }

    /// Whether `token` stands in a comma-separated header.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|v| v.split(|b| *b == b','))
            .any(|t| t.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Whether the server means to keep the connection.
    pub(crate) fn keeps_alive(&self) -> bool {
        if self.has_token("connection", "close") {
            return false;
        }
        !self.http10 || self.has_token("connection", "keep-alive")
    }

    /// The head to store beside a body of `stored` bytes: `Transfer-Encoding` and a `Content-Length` that says something
    /// else get `X-Crawler-` in front, and the true length follows. A head that contradicts nothing stays as it is.
    pub(crate) fn stored(&self, stored: u64) -> Bytes {
        let is = |line: &Line, name: &str| {
            self.raw.get(line.name.clone()).is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
        };
        let lengths: Vec<_> = self.lines.iter().filter(|line| is(line, "content-length")).collect();
        let chunked = self.lines.iter().any(|line| is(line, "transfer-encoding"));
        let says_so = |line: &Line| line.value == stored.to_string().as_bytes();
        let right = match lengths.as_slice() {
            [] => !chunked,
            [only] => says_so(only),
            _ => false,
        };
        if right && !chunked {
            return self.raw.clone();
        }
        let mut out = BytesMut::with_capacity(self.raw.len() + 96);
        let mut at = 0;
        let put = |from: usize, to: usize, out: &mut BytesMut| {
            out.put_slice(self.raw.get(from..to).unwrap_or_default());
        };
        let mut told = right && !lengths.is_empty();
        for line in &self.lines {
            let length = is(line, "content-length") && !right;
            if !length && !is(line, "transfer-encoding") {
                continue;
            }
            put(at, line.whole.start, &mut out);
            // An old value equal to the stored length (one of several) need not be told twice.
            if !length || !says_so(line) {
                out.put_slice(b"X-Crawler-");
                put(line.whole.start, line.whole.end, &mut out);
            }
            at = line.whole.end;
            if !told {
                told = true;
                out.put_slice(format!("Content-Length: {stored}").as_bytes());
                out.put_slice(self.line_end(line));
            }
        }
        put(at, self.raw.len(), &mut out);
        out.freeze()
    }

    fn line_end(&self, line: &Line) -> &'static [u8] {
        let whole = self.raw.get(line.whole.clone()).unwrap_or_default();
        if whole.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }
    }
}

/// Each line of `raw` with its end.
fn line_ranges(raw: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    raw.split_inclusive(|b| *b == b'\n').map(move |line| {
        let range = at..at + line.len();
        at = range.end;
        range
    })
}

/// The code in a status line, and whether the version is one that closes connections by default.
fn status_line(line: &[u8]) -> Option<(u16, bool)> {
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let version = words.next()?.strip_prefix(b"HTTP/")?;
    let code = words.next()?;
    let digits = code.get(..3)?;
    // "200OK" is seen; "2000" is something else.
    if !digits.iter().all(u8::is_ascii_digit) || code.get(3).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let code = digits.iter().fold(0u16, |n, d| n * 10 + u16::from(d - b'0'));
    let old = matches!(version, b"1.0" | b"0.9");
    (code >= 100).then_some((code, old))
}

#[cfg(test)]
mod tests;
