//! Separated files (RFC 4180: quoted fields may hold separators, quotes and line ends), with a header line or without.
//!
//! A first row without a name that is known (`url`, `domain`, …) is a row by itself if one of its fields looks like a URL or a
//! host: `1,google.com`, as the lists of popular sites are. Its columns are then called `column_1`, `column_2`, …

use crate::fields::{Fields, Role, Roles, Value, may_be_url};
use crate::file::text_of;
use crate::lines::{BOM, MAX_LINE};
use crate::source::failed;
use crate::{BadItem, Options};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::borrow::Cow;
use std::io::{self, BufRead};
use trawl_model::{DoorError, Items, Place};

/// What may separate fields, the most usual first.
const SEPARATORS: &[u8] = b",;\t|";
/// Bytes of a row of names that an error shows.
const SHOWN: usize = 200;

/// Reads a separated file from its beginning.
pub(crate) fn read(
    uri: &str,
    separator: Option<u8>,
    options: &Options,
    mut stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let fail = |e| failed(uri, 0, e);
    let separator = match options.separator.or(separator) {
        Some(separator) => separator,
        None => separator_of(stream.fill_buf().map_err(fail)?).unwrap_or(b','),
    };
    let mut rows = Rows::new(stream, separator).map_err(fail)?;
    let next = |rows: &mut Rows<_>| rows.next().map_err(|e| failed(uri, rows.at, e));
    let first = next(&mut rows)?;
    let Some(header) = first.filter(|row| *row == Row::Whole).and_then(|_| Header::of(options, &rows)) else {
        let shown = text_of(rows.raw.get(..SHOWN).unwrap_or(&rows.raw).trim_ascii()).into_owned();
        let expected = options.url_column.as_deref().unwrap_or("url");
        let message = format!("expected a header line with a column {expected:?}, found {shown:?}");
        return Err(BadItem::new("no_url", message, b"").ends(Place::new(uri, 0, 0)));
    };
    let mut row = first.filter(|_| header.is_row);
    loop {
        if let Some(row) = row {
            let blank = row == Row::Whole && rows.fields().all(|field| field.trim_ascii().is_empty());
            if !blank {
                let bad = |bad: BadItem| bad.at(Place::new(uri, rows.at, 0));
                each(rows.at, header.record(row, &rows).map_err(bad))?;
            }
        }
        row = next(&mut rows)?;
        if row.is_none() {
            return Ok(());
        }
    }
}

/// What separates the fields of a first line: of the usual characters the one that is there most often, outside quotes.
pub(crate) fn separator_of(text: &[u8]) -> Option<u8> {
    let mut counts = [0u32; SEPARATORS.len()];
    let mut quoted = false;
    for byte in text.iter().skip_while(|b| b.is_ascii_whitespace()) {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if quoted => {}
            byte => {
                let found = SEPARATORS.iter().position(|separator| separator == byte);
                if let Some(count) = found.and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    counts.iter().position(|count| *count == most).and_then(|at| SEPARATORS.get(at)).copied()
}

/// Whether a first line is that of a table with URLs: with a known name in its header, or with a host behind a number.
pub(crate) fn looks_like_table(line: &[u8]) -> Option<HasHeader> {
    let separator = separator_of(line)?;
    let fields: Vec<Cow<'_, str>> = line.split(|b| *b == separator).map(|field| text_of(field.trim_ascii())).collect();
    let name = |field: &Cow<'_, str>| may_be_url(field.trim_matches('"'));
    match &fields[..] {
        fields if fields.iter().any(name) && !fields.iter().any(|field| field.contains("://")) => Some(HasHeader(true)),
        [rank, host] if rank.bytes().all(|b| b.is_ascii_digit()) && looks_like_host(host) => Some(HasHeader(false)),
        _ => None,
    }
}

/// Whether the first row of a table holds names.
pub(crate) struct HasHeader(pub bool);

/// Whether a field is a host name: labels, the last of which is not a number.
fn looks_like_host(text: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_name = |last: &str| last.len() > 1 && !last.starts_with(|c: char| c.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && text.rsplit_once('.').is_some_and(|(_, last)| is_name(last))
}

/// What the columns of a table are.
struct Header {
    names: Vec<String>,
    roles: Roles,
    /// Whether the first row holds values, not names.
    is_row: bool,
}

impl Header {
    /// By the first row of a table; `None` if none of its columns holds URLs.
    fn of<R: BufRead>(options: &Options, rows: &Rows<R>) -> Option<Self> {
        let names: Vec<String> = rows.fields().map(|name| text_of(name).trim().to_owned()).collect();
        let roles = Roles::of(options, false, names.iter().map(|name| &**name));
        if roles.has_url() {
            return Some(Self { names, roles, is_row: false });
        }
        let has_scheme =
            |field: &String| field.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', ' ']));
        let is_host = |field: &String| looks_like_host(field);
        let (at, role) = match &options.url_column {
            // A column may be named by its number.
            Some(column) => {
                let at = column.parse::<usize>().ok()?.checked_sub(1)?;
                (at, if names.get(at)?.contains("://") { Role::Url } else { Role::Host })
            }
            None => names
                .iter()
                .position(has_scheme)
                .map(|at| (at, Role::Url))
                .or_else(|| names.iter().position(is_host).map(|at| (at, Role::Host)))?,
        };
        // A column that was named by its number may have a name all the same.
        let is_row = names.get(at).is_some_and(|field| has_scheme(field) || is_host(field));
        let mut each = vec![Role::Extra; names.len()];
        *each.get_mut(at)? = role;
        let by_number = |column: &String| column.parse::<usize>().ok()?.checked_sub(1);
        if let Some(slot) = options.time_column.as_ref().and_then(by_number).and_then(|at| each.get_mut(at)) {
            *slot = Role::Ts;
        }
        let numbered = (1..=names.len()).map(|n| format!("column_{n}")).collect();
        let names = if is_row { numbered } else { names };
        Some(Self { names, roles: Roles::guessed(options, each), is_row })
    }

    fn record<R: BufRead>(&self, row: Row, rows: &Rows<R>) -> Result<trawl_model::UrlRecord, BadItem> {
        let bad = |code, message| BadItem::new(code, message, rows.raw.trim_ascii_end());
        if row == Row::TooLong {
            return Err(bad("line_too_long", "expected a row of at most 4 MiB"));
        }
        if rows.count > self.names.len() {
            return Err(bad("columns", "expected as many fields as the header has, found more"));
        }
        let mut fields: Fields = self.roles.fields();
        let cells = self.names.iter().zip(&self.roles.each).zip(rows.fields());
        for ((name, role), value) in cells.filter(|(_, value)| !value.is_empty()) {
            fields.put(*role, name, Value::Text(&text_of(value)));
        }
        fields.finish().ok_or_else(|| bad("no_url", "expected a url in the row, found none"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Whole,
    /// Longer than [`MAX_LINE`]; it was passed over.
    TooLong,
}

/// Cuts a stream into rows, and rows into fields.
struct Rows<R> {
    inner: R,
    reader: Reader,
    /// Room for the fields of a row one after the other, and for the end of each.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// How many fields the row has.
    count: usize,
    /// The row as it is written, as much of it as a rejected item keeps.
    raw: Vec<u8>,
    /// Where the row begins, and where the next one does.
    at: u64,
    offset: u64,
}

impl<R: BufRead> Rows<R> {
    fn new(mut inner: R, separator: u8) -> io::Result<Self> {
        let offset = if inner.fill_buf()?.starts_with(BOM) { BOM.len() } else { 0 };
        inner.consume(offset);
        // Only a line feed ends a row: a lone carriage return is data, as elsewhere in lists.
        let reader = ReaderBuilder::new().delimiter(separator).terminator(Terminator::Any(b'\n')).build();
        let (at, offset) = (offset as u64, offset as u64);
        let (text, ends) = (vec![0; 1024], vec![0; 64]);
        Ok(Self { inner, reader, text, ends, count: 0, raw: Vec::new(), at, offset })
    }

    /// The fields of the row.
    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).take(self.count).map(|(start, end)| self.text.get(start..*end).unwrap_or_default())
    }

    /// Reads a row; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Row>> {
        self.raw.clear();
        (self.at, self.count) = (self.offset, 0);
        let (mut len, mut too_long) = (0, false);
        loop {
            let chunk = self.inner.fill_buf()?;
            let at_end = chunk.is_empty();
            // A line end behind the last byte completes the last row, unless a quoted field takes it.
            let input = if at_end { b"\n" } else { chunk };
            let (room, ends) = (self.text.get_mut(len..), self.ends.get_mut(self.count..));
            let (result, used, written, ended) =
                self.reader.read_record(input, room.unwrap_or_default(), ends.unwrap_or_default());
            if at_end && written > 0 {
                let error = "expected the end of a quoted field, found the end of the file";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, error));
            }
            let taken = input.get(..used).unwrap_or_default();
            if !at_end {
                if self.raw.is_empty() {
                    // The reader passes over blank lines in front of a row.
                    self.at += taken.iter().take_while(|b| **b == b'\n').count() as u64;
                }
                let blank = usize::try_from(self.at.saturating_sub(self.offset)).unwrap_or(usize::MAX);
                let room = BadItem::MAX_TEXT - self.raw.len();
                self.raw.extend(taken.iter().skip(blank).take(room));
                self.offset += used as u64;
                self.inner.consume(used);
            }
            (len, self.count) = (len + written, self.count + ended);
            if self.offset - self.at > MAX_LINE as u64 {
                // The rest is read to its end, in the room there is.
                (too_long, len, self.count) = (true, 0, 0);
            }
            match result {
                ReadRecordResult::Record => break,
                ReadRecordResult::InputEmpty if at_end => return Ok(None),
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        }
        if too_long {
            return Ok(Some(Row::TooLong));
        }
        let last = self.count.checked_sub(1).and_then(|last| self.ends.get_mut(last));
        if let Some(last) = last.filter(|_| self.text.get(..len).is_some_and(|text| text.ends_with(b"\r"))) {
            *last -= 1;
        }
        Ok(Some(Row::Whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> io::Result<Vec<Vec<String>>> {
        let mut rows = Rows::new(text.as_bytes(), b',')?;
        let mut out = Vec::new();
        while rows.next()?.is_some() {
            out.push(rows.fields().map(|field| String::from_utf8(field.to_vec()).unwrap()).collect());
        }
        Ok(out)
    }

    #[test]
    fn fields_quotes_and_line_ends() {
        assert_eq!(rows("").unwrap(), Vec::<Vec<String>>::new());
        assert_eq!(rows("a,b\r\n1,2").unwrap(), [["a", "b"], ["1", "2"]]);
        assert_eq!(rows("\"a,\"\"b\"\"\nc\",,d\"e\n").unwrap(), [["a,\"b\"\nc", "", "d\"e"]]);
        assert_eq!(rows("\n\r\n\na,\n").unwrap(), [vec![""], vec!["a", ""]]);
        assert_eq!(rows("\"a\"\r\n\"b\n\"").unwrap(), [["a"], ["b\n"]]);
        assert_eq!(rows("a\rb\n").unwrap(), [["a\rb"]]);
        for open in ["\"a", "\"", "a,\"b\n", "\"a\"\"", "a\n\"\n\n\n"] {
            assert_eq!(rows(open).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{open:?}");
        }
        let wide = vec!["x"; 1000].join(",");
        assert_eq!(rows(&wide).unwrap()[0].len(), 1000);
    }

    /// A URL and its extras, or why there is none.
    type Read = Result<(String, String), &'static str>;

    fn read_text(options: &Options, text: &str) -> Result<Vec<Read>, String> {
        let mut out = Vec::new();
        let mut each = |_, item: Result<trawl_model::UrlRecord, DoorError>| {
            out.push(match item {
                Ok(record) => Ok((record.url, record.extras.unwrap_or_default())),
                Err(error) => Err(error.source.downcast::<BadItem>().unwrap().code),
            });
            Ok(())
        };
        read("x", None, options, text.as_bytes(), &mut each).map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn separators_are_found() {
        for (text, expected) in [
            ("a,b", Some(b',')),
            ("a;b;\"c,d,e,f\"", Some(b';')),
            ("a\tb,c\td\n,,,,,", Some(b'\t')),
            ("a|b", Some(b'|')),
            ("\n\na;b", Some(b';')),
            ("a\nb,c", None),
            ("", None),
        ] {
            assert_eq!(separator_of(text.as_bytes()), expected, "{text:?}");
        }
        let expected = Ok(vec![Ok(("http://a.com/?a,b".to_owned(), r#"{"n":"1"}"#.to_owned()))]);
        for text in ["n;url\n1;http://a.com/?a,b\n", "n\turl\n1\thttp://a.com/?a,b", "n|url\r\n1|http://a.com/?a,b\r\n"]
        {
            assert_eq!(read_text(&Options::default(), text), expected, "{text:?}");
        }
        let asked = Options { separator: Some(b'~'), ..Options::default() };
        assert_eq!(read_text(&asked, "n~url\n1~http://a.com/?a,b"), expected);
    }

    #[test]
    fn tables_without_a_header() {
        let row = |url: &str, extras: &str| Ok((url.to_owned(), extras.to_owned()));
        let expected = [row("google.com", r#"{"column_1":"1"}"#), row("youtube.com", r#"{"column_1":"2"}"#)];
        assert_eq!(read_text(&Options::default(), "1,google.com\r\n2,youtube.com\r\n").unwrap(), expected);
        let crawl = Options::crawl();
        assert_eq!(read_text(&crawl, "1,google.com\n").unwrap(), [row("http://google.com/", r#"{"column_1":"1"}"#)]);
        let urls = read_text(&Options::default(), "x;http://a.com/;b.com\ny;http://c.com/\n,,\n");
        let expected = [
            row("http://a.com/", r#"{"column_1":"x","column_3":"b.com"}"#),
            row("http://c.com/", r#"{"column_1":"y"}"#),
            Err("no_url"),
        ];
        assert_eq!(urls.unwrap(), expected);
        let second = Options { url_column: Some("2".into()), time_column: Some("1".into()), ..Options::default() };
        assert_eq!(read_text(&second, "2026,a\n2026,b.com\n").unwrap(), [row("b.com", "")]);
        assert_eq!(read_text(&second, "2026,a.com\n").unwrap(), [row("a.com", "")]);
        for (options, text) in [(&crawl, "a,b\n1,2\n"), (&crawl, ""), (&crawl, "1,2.5\n"), (&second, "a\n")] {
            let error = read_text(options, text).unwrap_err();
            assert!(error.contains("expected a header line with a column"), "{error}");
        }
        let error = read_text(&Options::default(), "id,link\n1,2\n").unwrap_err();
        assert!(error.contains(r#"found "id,link""#), "{error}");
    }

    #[test]
    fn a_domain_or_host_alone_is_enough() {
        let found = read_text(&Options::default(), "GlobalRank,TldRank,Domain\n1,1,google.com\n");
        let extras = r#"{"GlobalRank":"1","TldRank":"1"}"#;
        assert_eq!(found.unwrap(), [Ok(("google.com".to_owned(), extras.to_owned()))]);
    }

    #[test]
    fn tables_are_told_from_lines() {
        let of = |line: &str| looks_like_table(line.as_bytes()).map(|has| has.0);
        for line in ["url,ts", "id;\"URL\";x", "GlobalRank,Domain", "n\turl"] {
            assert_eq!(of(line), Some(true), "{line}");
        }
        assert_eq!(of("1,google.com"), Some(false));
        for line in ["url", "http://a.com/,x", "url,http://a.com/", "a,b", "1,2", "1,a b.com", "com,a)/ 2026 {}"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn rows_know_where_they_begin() {
        let mut rows = Rows::new(&b"\xef\xbb\xbf\n\na,\"b\nc\"\n\nd\n"[..], b',').unwrap();
        let mut found = Vec::new();
        while rows.next().unwrap().is_some() {
            found.push((rows.at, String::from_utf8(rows.raw.clone()).unwrap()));
        }
        assert_eq!(found, [(5, "a,\"b\nc\"\n".to_owned()), (14, "d\n".to_owned())]);
    }

    #[test]
    fn a_row_too_long_is_dropped_and_the_next_one_read() {
        let text = format!("a\n{}\nb\n", "x".repeat(MAX_LINE * 2));
        let mut rows = Rows::new(text.as_bytes(), b',').unwrap();
        assert_eq!(rows.next().unwrap(), Some(Row::Whole));
        assert_eq!(rows.next().unwrap(), Some(Row::TooLong));
        assert_eq!(rows.raw, [b'x'; BadItem::MAX_TEXT]);
        assert_eq!(rows.next().unwrap(), Some(Row::Whole));
        assert_eq!(rows.fields().collect::<Vec<_>>(), [b"b"]);
    }
}
