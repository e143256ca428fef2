//! Lines of a stream, within bounded memory.

use crate::BadItem;
use std::io::{self, BufRead};

/// Longest line that is read; a longer one is rejected and passed over.
pub(crate) const MAX_LINE: usize = 4 << 20;
pub(crate) const BUFFER: usize = 256 << 10;
/// Bytes at the beginning of a text by which its format is recognised.
pub(crate) const HEAD: usize = 4096;
/// U+FEFF, which some programs put before a UTF-8 text. It is not part of the first line.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its bytes, without what ends it.
    Whole(&'a [u8]),
    /// Longer than [`MAX_LINE`]; it was passed over, and this is how it begins.
    TooLong(&'a [u8]),
}

/// Cuts a stream into lines. A line feed ends one, and a carriage return, which no URL holds, or both.
pub(crate) struct LineReader<R> {
    inner: R,
    line: Vec<u8>,
    /// Where the next line begins.
    pub offset: u64,
}

impl<R: BufRead> LineReader<R> {
    /// Reads a stream whose first byte is at `offset` of the list.
    pub fn new(inner: R, offset: u64) -> Self {
        Self { inner, line: Vec::new(), offset }
    }

    /// Passes over a line feed that belongs to a carriage return.
    fn skip_line_feed(&mut self) -> io::Result<()> {
        loop {
            match self.inner.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                chunk => {
                    if chunk?.first() == Some(&b'\n') {
                        self.inner.consume(1);
                        self.offset += 1;
                    }
                    return Ok(());
                }
            }
        }
    }

    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let chunk = match self.inner.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr2(b'\n', b'\r', chunk);
            let used = end.map_or(chunk.len(), |at| at + 1);
            // One byte more than is allowed shows that the line is too long, whatever else comes.
            let room = (MAX_LINE + 1).saturating_sub(self.line.len());
            self.line.extend(chunk.iter().take(end.unwrap_or(used).min(room)));
            too_long |= self.line.len() > MAX_LINE;
            let is_return = end.and_then(|at| chunk.get(at)) == Some(&b'\r');
            self.inner.consume(used);
            self.offset += used as u64;
            if is_return {
                self.skip_line_feed()?;
            }
            if end.is_some() {
                break;
            }
        }
        Ok(match (any, too_long) {
            (false, _) => None,
            (true, false) => Some(Line::Whole(&self.line)),
            (true, true) => Some(Line::TooLong(self.line.get(..BadItem::MAX_TEXT).unwrap_or(&self.line))),
        })
    }
}

/// How a text begins, behind blank lines and comments, however many there are: its first line, and what follows it, as much as
/// is needed to tell what it is. Without other lines it is empty.
pub(crate) fn first_lines(stream: impl BufRead) -> io::Result<Vec<u8>> {
    let mut lines = LineReader::new(stream, 0);
    let mut head = Vec::new();
    while head.len() < HEAD {
        let at = lines.offset;
        let Some(Line::Whole(line) | Line::TooLong(line)) = lines.next_line()? else { break };
        let line = if at == 0 { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        let blank = line.trim_ascii().is_empty() || line.starts_with(b"#");
        if !blank || !head.is_empty() && line.starts_with(b"#") {
            head.extend(line);
            head.push(b'\n');
        }
    }
    head.truncate(HEAD);
    Ok(head.trim_ascii().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_lines(bytes: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut reader = LineReader::new(bytes, 0);
        let mut out = Vec::new();
        loop {
            let at = reader.offset;
            match reader.next_line().unwrap() {
                None => return out,
                Some(Line::Whole(line)) => out.push((at, Some(line.to_vec()))),
                Some(Line::TooLong(head)) => {
                    assert_eq!(head, [b'x'; BadItem::MAX_TEXT]);
                    out.push((at, None));
                }
            }
        }
    }

    #[test]
    fn lines_and_their_offsets() {
        assert_eq!(all_lines(b""), []);
        let line = |at, text: &[u8]| (at, Some(text.to_vec()));
        assert_eq!(all_lines(b"a\r\n\nbc"), [line(0, b"a"), line(3, b""), line(4, b"bc")]);
        assert_eq!(all_lines(b"a\rb\r"), [line(0, b"a"), line(2, b"b")]);
        assert_eq!(all_lines(b"a\n"), [line(0, b"a")]);
        let long = vec![b'x'; MAX_LINE * 3];
        let text = [b"a\n", &long[..], b"\nb\n", &long[..]].concat();
        let after = MAX_LINE as u64 * 3 + 3;
        assert_eq!(all_lines(&text), [line(0, b"a"), (2, None), line(after, b"b"), (after + 2, None)]);
    }

    #[test]
    fn a_first_line_is_found_behind_any_number_of_comments() {
        let late = format!("\u{feff}# c\n{} x \n# z\ny", "\n# y\n".repeat(50_000));
        assert_eq!(first_lines(late.as_bytes()).unwrap(), b"x \n# z\ny");
        assert_eq!(first_lines(&b"\xef\xbb\xbf# nothing\r\n  \n"[..]).unwrap(), b"");
        assert_eq!(first_lines(&[b'x'; 100_000][..]).unwrap().len(), BadItem::MAX_TEXT.max(HEAD));
    }
}
