//! Cuts a stream into rows, and rows into fields.
//!
//! A row ends at a line feed, a carriage return or both, unless a quoted field is open. Whether an open quote is a field over several
//! lines or a mark that nobody closed shows only further on, so lines that were read for it are kept until that is known:
//!
//! ```text
//!  1,"a text↵over lines",http://a.example/        the quote closes in front of a separator: one row of two lines
//!  2,"5 inch,http://b.example/↵                   it closes elsewhere or not at all, or a line behind it is a row by itself:
//!  3,"x",http://c.example/                        then it is data, and the row ends with its line
//! ```

use super::looks_like_host;
use crate::file::text_of;
use crate::lines::{BOM, Line, LineReader, MAX_LINE};
use crate::{BadItem, fields::Role};
use std::collections::VecDeque;
use std::io::{self, BufRead};

/// Bytes that may be read twice because of quotes that nobody closed, beside as many as the file has: a file made for it could
/// otherwise have most of it read again for each of its lines. From then on no field goes over several lines.
const MAX_AGAIN: u64 = 64 << 20;

/// What keeping a line costs beside its bytes.
const KEPT_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    Whole,
    /// Longer than [`MAX_LINE`]; it was passed over.
    TooLong,
    /// The file ends in a quoted field: it may have been cut.
    Cut,
}

/// What became of a row whose last field was open.
#[derive(PartialEq, Eq)]
enum Joined {
    Closed,
    /// The quote was data.
    Data,
    /// No line follows.
    Ended,
}

/// What a row of the table looks like: by that a line is known for one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub columns: usize,
    pub url: usize,
    pub role: Role,
}

/// A line with its line end.
struct Kept {
    at: u64,
    bytes: Vec<u8>,
    too_long: bool,
}

/// Cuts a stream into rows.
pub(super) struct Rows<R> {
    lines: LineReader<R>,
    /// Lines that were read and are not yet part of a row.
    ahead: VecDeque<Kept>,
    separator: u8,
    fields: Fields,
    /// The row as it is written, as much of it as a rejected item keeps.
    pub raw: Vec<u8>,
    /// Where the row begins.
    pub at: u64,
    pub shape: Option<Shape>,
    again: u64,
}

impl<R: BufRead> Rows<R> {
    pub fn new(inner: R, separator: u8) -> Self {
        let lines = LineReader::new(inner, 0);
        let (ahead, fields, raw) = (VecDeque::new(), Fields::default(), Vec::new());
        Self { lines, ahead, separator, fields, raw, at: 0, shape: None, again: 0 }
    }

    /// The fields of the row.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter()
    }

    /// How many fields the row has.
    pub fn count(&self) -> usize {
        self.fields.ends.len()
    }

    /// Reads a row; `None` at the end. Empty lines are no rows.
    pub fn next(&mut self) -> io::Result<Option<Row>> {
        let first = loop {
            let Some(line) = self.take_line()? else { return Ok(None) };
            if line.too_long || !line.bytes.is_empty() {
                break line;
            }
        };
        self.at = first.at;
        self.raw.clear();
        self.note(&first.bytes);
        self.fields.clear();
        if first.too_long {
            return Ok(Some(Row::TooLong));
        }
        let open = self.fields.feed(&first.bytes, self.separator, None);
        let Some(quote) = open else { return Ok(Some(Row::Whole)) };
        let joined = self.join()?;
        if joined != Joined::Closed {
            self.fields.clear();
            self.fields.feed(&first.bytes, self.separator, Some(quote));
        }
        Ok(Some(if joined == Joined::Ended { Row::Cut } else { Row::Whole }))
    }

    /// Goes on with a row whose last field is open, over as many lines as it has; nothing is taken unless it is closed.
    fn join(&mut self) -> io::Result<Joined> {
        if self.again > MAX_AGAIN.saturating_add(self.lines.offset) {
            return Ok(Joined::Data);
        }
        let (mut used, mut bytes) = (0, 0u64);
        let closed = loop {
            if self.ahead.len() == used {
                let Some(line) = self.read_line()? else {
                    self.again += bytes;
                    // Lines that are not rows by themselves belong to the field: the file was cut in it, and may grow.
                    let is_cut = used == 0 || self.shape.is_some();
                    if is_cut {
                        self.ahead.clear();
                    }
                    return Ok(if is_cut { Joined::Ended } else { Joined::Data });
                };
                self.ahead.push_back(line);
            }
            let Some(line) = self.ahead.get(used) else { break false };
            bytes += (line.bytes.len() + KEPT_BYTES) as u64;
            if line.too_long || bytes > MAX_LINE as u64 || self.is_row(&line.bytes) {
                break false;
            }
            used += 1;
            // The line end is data; which one it was does not matter to anybody.
            self.fields.text.push(b'\n');
            let fed = self.fields.resume(&line.bytes, self.separator);
            match fed {
                _ if self.shape.is_some_and(|shape| self.fields.ends.len() > shape.columns) => break false,
                Resumed::Closed => break true,
                Resumed::Open => {}
                Resumed::Broken => break false,
            }
        };
        if !closed {
            self.again += bytes;
            return Ok(Joined::Data);
        }
        for line in self.ahead.drain(..used) {
            let room = BadItem::MAX_TEXT.saturating_sub(self.raw.len());
            self.raw.extend(b"\n".iter().chain(&line.bytes).take(room));
        }
        Ok(Joined::Closed)
    }

    /// Whether a line is a row by itself: it has as many fields as others, and a URL where they have one.
    fn is_row(&self, line: &[u8]) -> bool {
        let Some(shape) = self.shape else { return false };
        let mut fields = Fields::default();
        let open = fields.feed(line, self.separator, None);
        if open.is_some() {
            fields.end_field();
        }
        let url = fields.iter().nth(shape.url).map(|url| text_of(url.trim_ascii()));
        fields.ends.len() == shape.columns
            && url.is_some_and(|url| match shape.role {
                Role::Host => looks_like_host(&url),
                _ => url.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.len() < 12),
            })
    }

    fn note(&mut self, bytes: &[u8]) {
        self.raw.extend(bytes.iter().take(BadItem::MAX_TEXT));
    }

    fn take_line(&mut self) -> io::Result<Option<Kept>> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.read_line(),
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Kept>> {
        let at = self.lines.offset;
        Ok(self.lines.next_line()?.map(|line| match line {
            Line::TooLong(head) => Kept { at, bytes: head.to_vec(), too_long: true },
            Line::Whole(line) => {
                let bare = line.strip_prefix(BOM).filter(|_| at == 0).unwrap_or(line);
                Kept { at: at + (line.len() - bare.len()) as u64, bytes: bare.to_vec(), too_long: false }
            }
        }))
    }
}

/// The fields of a row, one after the other, and where each ends.
#[derive(Default)]
struct Fields {
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// What became of an open field.
enum Resumed {
    /// It was closed, and the row ends with the line.
    Closed,
    /// It, or one behind it, is still open.
    Open,
    /// Its quote stands where no field ends.
    Broken,
}

impl Fields {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.text.get(start..*end).unwrap_or_default())
    }

    fn end_field(&mut self) {
        self.ends.push(self.text.len());
    }

    /// Takes a line from the beginning of a field on. Gives the place of the quote that is open at its end, if one is; quotes from
    /// `data` on are part of the text.
    fn feed(&mut self, line: &[u8], separator: u8, data: Option<usize>) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = line.get(at..).unwrap_or_default();
            let quote = at + blank(rest, separator);
            if line.get(quote) == Some(&b'"') && data.is_none_or(|data| quote < data) {
                match self.quoted(line, quote + 1) {
                    None => return Some(quote),
                    Some(end) => at = end,
                }
            }
            // What stands behind a quoted field belongs to it, as other programs have it.
            let rest = line.get(at..).unwrap_or_default();
            let end = memchr::memchr(separator, rest);
            let field = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            self.text.extend_from_slice(field);
            self.end_field();
            match end {
                Some(end) => at += end + 1,
                None => return None,
            }
        }
    }

    /// Takes a line into the field that is open.
    fn resume(&mut self, line: &[u8], separator: u8) -> Resumed {
        let Some(end) = self.quoted(line, 0) else { return Resumed::Open };
        let rest = line.get(end..).unwrap_or_default();
        let blank = blank(rest, separator);
        match rest.get(blank) {
            None => {
                self.end_field();
                Resumed::Closed
            }
            Some(byte) if *byte == separator => {
                self.end_field();
                match self.feed(rest.get(blank + 1..).unwrap_or_default(), separator, None) {
                    Some(_) => Resumed::Open,
                    None => Resumed::Closed,
                }
            }
            Some(_) => Resumed::Broken,
        }
    }

    /// Takes what is quoted, from `at` on; gives the place behind the closing quote.
    fn quoted(&mut self, line: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let rest = line.get(at..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'"', rest) else {
                self.text.extend_from_slice(rest);
                return None;
            };
            self.text.extend_from_slice(rest.get(..end).unwrap_or_default());
            at += end + 1;
            if line.get(at) != Some(&b'"') {
                return Some(at);
            }
            self.text.push(b'"');
            at += 1;
        }
    }
}

/// Blanks at the beginning of a text.
fn blank(text: &[u8], separator: u8) -> usize {
    text.iter().take_while(|b| **b == b' ' && separator != b' ').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(text: &str, shape: Option<Shape>) -> Vec<Vec<String>> {
        let mut rows = Rows::new(text.as_bytes(), b',');
        rows.shape = shape;
        let mut out = Vec::new();
        while rows.next().unwrap().is_some() {
            out.push(rows.fields().map(|field| String::from_utf8(field.to_vec()).unwrap()).collect());
        }
        out
    }

    #[test]
    fn fields_quotes_and_line_ends() {
        let rows = |text: &str| rows_of(text, None);
        assert_eq!(rows(""), Vec::<Vec<String>>::new());
        assert_eq!(rows("a,b\r\n1,2"), [["a", "b"], ["1", "2"]]);
        assert_eq!(rows("a,b\r1,2\r"), [["a", "b"], ["1", "2"]], "as a Mac once wrote it");
        assert_eq!(rows("a,b\r1,2\n3,4\r\n5,6\n\r7,8"), [["a", "b"], ["1", "2"], ["3", "4"], ["5", "6"], ["7", "8"]]);
        assert_eq!(rows("\"a,\"\"b\"\"\nc\",,d\"e\n"), [["a,\"b\"\nc", "", "d\"e"]]);
        assert_eq!(rows("\n\r\n\na,\n"), [["a", ""]]);
        assert_eq!(rows("\"a\"\r\n\"b\n\""), [["a"], ["b\n"]]);
        assert_eq!(rows("\"a\r\nb\",c\r\n"), [["a\nb", "c"]]);
        assert_eq!(rows("\"a\" , \"b\",\"\"\n"), [["a ", "b", ""]]);
        assert_eq!(rows("\"a, \"b\" c\",d\n"), [["a, b\" c\"", "d"]]);
        let wide = vec!["x"; 1000].join(",");
        assert_eq!(rows(&wide)[0].len(), 1000);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_data() {
        let rows = |text: &str| rows_of(text, None);
        assert_eq!(rows("\"a"), [["\"a"]]);
        assert_eq!(rows("\""), [["\""]]);
        assert_eq!(rows("a,\"b\n"), [["a", "\"b"]]);
        assert_eq!(rows("a\n\"\n\n\nb"), [["a"], ["\""], ["b"]]);
        assert_eq!(
            rows("1,\"5 inch,x\n2,\"b\",y\n3,c,z\n"),
            [["1", "\"5 inch", "x"], ["2", "b", "y"], ["3", "c", "z"]]
        );
        assert_eq!(rows("\"x\",\"5,y\n6\n"), [vec!["x", "\"5", "y"], vec!["6"]]);
    }

    #[test]
    fn rows_between_two_stray_quotes_stay_rows() {
        let shape = Some(Shape { columns: 3, url: 2, role: Role::Url });
        let line = |n: usize| match n {
            1 => "1,\"x,http://a.example/1\n".to_owned(),
            1001 => "1001,y\",http://a.example/1001\n".to_owned(),
            n => format!("{n},t,http://a.example/{n}\n"),
        };
        let text: String = (0..1002).map(line).collect();
        let found = rows_of(&text, shape);
        assert_eq!(found.len(), 1002);
        assert_eq!(found[1], ["1", "\"x", "http://a.example/1"]);
        assert_eq!(found[1001], ["1001", "y\"", "http://a.example/1001"]);
        // A text over many lines is one field all the same.
        let text =
            format!("1,\"{}\",http://a.example/\n2,x,http://b.example/\n", "see\nhttp://c.example/\n".repeat(50));
        assert_eq!(rows_of(&text, shape).len(), 2);
        // So is one with more fields than there are columns.
        let text = "1,\"a\nb\",http://a.example/\nx\",,\"\nx\",,\"\nx\",,\"\n2,x,http://b.example/\n";
        assert_eq!(rows_of(text, shape).len(), 5);
    }

    #[test]
    fn rows_know_where_they_begin() {
        let mut rows = Rows::new(&b"\xef\xbb\xbf\n\na,\"b\nc\"\n\nd\n"[..], b',');
        let mut found = Vec::new();
        while rows.next().unwrap().is_some() {
            found.push((rows.at, String::from_utf8(rows.raw.clone()).unwrap()));
        }
        assert_eq!(found, [(5, "a,\"b\nc\"".to_owned()), (14, "d".to_owned())]);
    }

    #[test]
    fn a_row_too_long_is_dropped_and_the_next_one_read() {
        let text = format!("a\n{}\nb\n", "x".repeat(MAX_LINE * 2));
        let mut rows = Rows::new(text.as_bytes(), b',');
        assert_eq!(rows.next().unwrap(), Some(Row::Whole));
        assert_eq!(rows.next().unwrap(), Some(Row::TooLong));
        assert_eq!(rows.raw, [b'x'; BadItem::MAX_TEXT]);
        assert_eq!(rows.next().unwrap(), Some(Row::Whole));
        assert_eq!(rows.fields().collect::<Vec<_>>(), [b"b"]);
        // An open quote takes no more than a row may have.
        let text = format!("\"a\n{}b\n", "x\n".repeat(MAX_LINE));
        assert_eq!(rows_of(&text, None).len(), 2 + MAX_LINE);
    }
}
