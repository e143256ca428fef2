//! Cuts a stream into rows, and rows into fields.
//!
//! A row ends at a line feed, a carriage return or both, unless a quoted field is open. RFC 4180 comes first: a quoted field that
//! closes in front of a separator or a line end, in a row with as many fields as rows have, is one field, whatever its lines look
//! like. Only where that reading fails is the quote data, and the row ends with its line:
//!
//! ```text
//!  1,"a text↵over lines",http://a.example/        closed in front of a separator, three fields: one row of two lines
//!  2,"5 inch,http://b.example/↵                   the next quote is followed by `x`: the quote of row 2 is data
//!  3,"x",http://c.example/
//! ```
//!
//! The lines that such a reading went over are *doubtful*: they may be rows, or lines of a text whose quotes are wrong. Each is a
//! row of its own all the same, so that none vanishes uncounted, but only with something in it that looks like a URL.

use super::looks_like_url;
use crate::BadItem;
use crate::file::text_of;
use crate::lines::{BOM, Line, LineReader, MAX_LINE};
use std::collections::VecDeque;
use std::io::{self, BufRead};

/// Bytes that may be read twice because of unclosed quotes, beside as many as the file has: a file made for it could
/// otherwise have most of it read again for each of its lines. From then on no field goes over several lines.
const MAX_AGAIN: u64 = 64 << 20;

/// What keeping a line costs beside its bytes.
const KEPT_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    Whole,
    /// A line at or behind a quote that does not match: a row only if it looks like one.
    Doubtful,
    /// Longer than [`MAX_LINE`]; it was passed over.
    TooLong,
    /// The file ends in a quoted field, and no line of it looks like a row: it may have been cut.
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

/// What the header says of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// How many fields a row has.
    pub columns: usize,
    /// Which of them is the URL.
    pub url: usize,
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
    /// Fields of the last row that left no doubt: in some files all rows are shorter than the header.
    width: usize,
    /// Lines up to here are doubtful.
    doubtful: Option<u64>,
    again: u64,
}

impl<R: BufRead> Rows<R> {
    pub fn new(inner: R, separator: u8) -> Self {
        let lines = LineReader::new(inner, 0);
        let (ahead, fields, raw) = (VecDeque::new(), Fields::default(), Vec::new());
        Self { lines, ahead, separator, fields, raw, at: 0, shape: None, width: 0, doubtful: None, again: 0 }
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
        let Some(quote) = open else {
            if self.doubtful.is_some_and(|until| first.at <= until) {
                return Ok(Some(Row::Doubtful));
            }
            self.width = self.count();
            return Ok(Some(Row::Whole));
        };
        // A URL in front of the quote is one whatever becomes of the quote.
        let has_url = self.shape.is_none_or(|shape| self.count() > shape.url);
        let joined = self.join()?;
        if joined != Joined::Closed {
            self.fields.clear();
            self.fields.feed(&first.bytes, self.separator, Some(quote));
        }
        Ok(Some(match joined {
            Joined::Ended => Row::Cut,
            Joined::Data if !has_url => Row::Doubtful,
            Joined::Closed | Joined::Data => Row::Whole,
        }))
    }

    /// Goes on with a row whose last field is open, over as many lines as it has; nothing is taken unless it is closed.
    fn join(&mut self) -> io::Result<Joined> {
        if self.again > MAX_AGAIN.saturating_add(self.lines.offset) {
            return Ok(Joined::Data);
        }
        let (mut used, mut bytes) = (0, 0u64);
        let mut last = self.at;
        let closed = loop {
            if self.ahead.len() == used {
                let Some(line) = self.read_line()? else {
                    // Text alone follows: the file may have been cut in it, and then the row is not whole.
                    if !self.ahead.iter().take(used).any(|line| self.is_row(line)) {
                        self.take_ahead(used);
                        return Ok(Joined::Ended);
                    }
                    break false;
                };
                self.ahead.push_back(line);
            }
            let Some(line) = self.ahead.get(used) else { break false };
            last = line.at;
            bytes += (line.bytes.len() + KEPT_BYTES) as u64;
            if line.too_long || bytes > MAX_LINE as u64 {
                break false;
            }
            used += 1;
            // The line end is data; which one it was does not matter to anybody.
            self.fields.text.push(b'\n');
            match self.fields.resume(&line.bytes, self.separator) {
                Resumed::Closed => break self.is_as_wide(),
                Resumed::Open if self.is_too_wide() => break false,
                Resumed::Open => {}
                Resumed::Broken => break false,
            }
        };
        if !closed {
            self.again += bytes;
            self.doubtful = self.doubtful.max(Some(last));
            return Ok(Joined::Data);
        }
        self.take_ahead(used);
        Ok(Joined::Closed)
    }

    /// Makes lines part of the row.
    fn take_ahead(&mut self, count: usize) {
        for line in self.ahead.drain(..count) {
            let room = BadItem::MAX_TEXT.saturating_sub(self.raw.len());
            self.raw.extend(b"\n".iter().chain(&line.bytes).take(room));
        }
    }

    /// Whether a line alone has something like a URL where rows have theirs.
    fn is_row(&self, line: &Kept) -> bool {
        let Some(shape) = self.shape else { return true };
        let mut fields = Fields::default();
        if let Some(quote) = fields.feed(&line.bytes, self.separator, None) {
            fields.clear();
            fields.feed(&line.bytes, self.separator, Some(quote));
        }
        fields.iter().nth(shape.url).is_some_and(|field| looks_like_url(&text_of(field.trim_ascii())))
    }

    /// Whether a row that was closed has as many fields as rows have. The header may have any number.
    fn is_as_wide(&self) -> bool {
        self.shape.is_none_or(|shape| self.count() == shape.columns || self.count() == self.width)
    }

    /// Whether a row has more fields than any row has.
    fn is_too_wide(&self) -> bool {
        self.shape.is_some_and(|shape| self.count() >= shape.columns.max(self.width))
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

    const SHAPE: Option<Shape> = Some(Shape { columns: 3, url: 2 });

    #[test]
    fn a_field_that_is_closed_is_one_whatever_its_lines_look_like() {
        let inside = "7,t,http://c.example/\nsee\n8,u,http://d.example/\n".repeat(50);
        let text = format!("1,\"{inside}\",http://a.example/\n2,x,http://b.example/\n");
        let found = rows_of(&text, SHAPE);
        assert_eq!(found, [["1", &*inside, "http://a.example/"], ["2", "x", "http://b.example/"]]);
        // All rows may be shorter than the header, or longer.
        let text = "1,http://a.example/\n2,\"x\n3,http://b.example/\"\n";
        assert_eq!(rows_of(text, SHAPE), [["1", "http://a.example/"], ["2", "x\n3,http://b.example/"]]);
        let text = "1,2,3,4\n2,\"x\n3\",4,5\n";
        assert_eq!(rows_of(text, SHAPE), [["1", "2", "3", "4"], ["2", "x\n3", "4", "5"]]);
    }

    #[test]
    fn a_field_that_makes_a_row_too_short_or_too_wide_is_data() {
        let text = "1,\"a\nb\",http://a.example/\nx\",,\"\nx\",,\"\nx\",,\"\n2,x,http://b.example/\n";
        assert_eq!(rows_of(text, SHAPE).len(), 5);
        let text = "1,\"a,http://a.example/\n2,b\n3,c\"\n";
        assert_eq!(rows_of(text, SHAPE), [vec!["1", "\"a", "http://a.example/"], vec!["2", "b"], vec!["3", "c\""]]);
    }

    #[test]
    fn lines_behind_a_quote_that_does_not_match_are_doubtful() {
        let kinds = |text: &str| {
            let mut rows = Rows::new(text.as_bytes(), b',');
            rows.shape = SHAPE;
            let mut kinds = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                kinds.push(row);
            }
            kinds
        };
        use Row::{Cut, Doubtful, Whole};
        assert_eq!(kinds("1,2,3\n1,\"2,3\n4,5,6\n7,\"8\",9\n1,2,3\n"), [Whole, Doubtful, Doubtful, Doubtful, Whole]);
        // A fourth field is one too many, so that only the next line was looked at.
        assert_eq!(kinds("1,2,3,\"4\n5\n6"), [Whole, Doubtful, Whole]);
        assert_eq!(kinds("1,2,3\n1,\"2\n"), [Whole, Cut]);
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
