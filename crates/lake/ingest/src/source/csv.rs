//! Comma- or tab-separated files with a header line (RFC 4180: quoted fields may hold separators, quotes and line ends).

use super::BadItem;
use super::fields::{Fields, Names, Value};
use super::text::{BOM, MAX_LINE, SourceFile};
use std::io::{BufRead, BufReader, Read};
use trawl_model::{Advice, DoorError, Grown, Items, SourceIdentity, Split, Stamp, UrlSource};

/// A separated file. A line end may be inside a field, so it is one split.
#[derive(Debug)]
pub(crate) struct CsvSource {
    pub file: SourceFile,
    pub separator: u8,
}

impl UrlSource for CsvSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.file.stamp
    }

    fn grown(&self) -> Option<&Grown> {
        self.file.grown.as_ref()
    }

    fn known_by_name(&self) -> Option<&[SourceIdentity]> {
        self.file.known_by_name.as_deref()
    }

    fn splits(&self, _target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.file.identity.size }])
    }

    fn read(&self, _split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut each = self.file.fresh(each);
        let stop = |at: u64, error: &str| DoorError::new(Advice::Stop, error.to_owned()).at(self.file.place(at, 0));
        let mut inner = BufReader::new(self.file.reader(0)?);
        // A mark of the byte order goes before a quoted name is looked for.
        let mut head = Vec::new();
        inner.by_ref().take(BOM.len() as u64).read_to_end(&mut head).map_err(|e| stop(0, &e.to_string()))?;
        let offset = if head == BOM { std::mem::take(&mut head).len() as u64 } else { 0 };
        let mut rows = Rows { inner: head.as_slice().chain(inner), separator: self.separator, offset, raw: Vec::new() };
        let mut row = Vec::new();
        let names = match rows.next(&mut row).map_err(|e| stop(0, &e))? {
            Next::Row => row.iter().map(|name| name.trim().to_owned()).collect(),
            Next::End | Next::TooLong => Vec::new(),
        };
        if !names.iter().any(|name| name.eq_ignore_ascii_case("url")) {
            let bad = BadItem::new("no_url", "expected a header line with a column \"url\"", b"");
            return Err(bad.ends(self.file.place(0, 0)));
        }
        loop {
            let at = rows.offset;
            let next = rows.next(&mut row).map_err(|e| stop(at, &e))?;
            let bad =
                |code, message: &str| BadItem::new(code, message, rows.raw.trim_ascii_end()).at(self.file.place(at, 0));
            match next {
                Next::End => return Ok(()),
                Next::TooLong => each(at, Err(bad("line_too_long", "expected a row of at most 4 MiB")))?,
                Next::Row if row.iter().all(String::is_empty) => {}
                Next::Row if row.len() > names.len() => {
                    each(at, Err(bad("columns", "expected as many fields as the header has, found more")))?;
                }
                Next::Row => {
                    let mut fields = Fields::default();
                    for (name, text) in names.iter().zip(&row).filter(|(_, text)| !text.is_empty()) {
                        fields.take(Names::General, name, Value::Text(text));
                    }
                    each(at, fields.finish().ok_or_else(|| bad("no_url", "expected a url in the row, found none")))?;
                }
            }
        }
    }
}

enum Next {
    Row,
    TooLong,
    End,
}

struct Rows<R> {
    inner: R,
    separator: u8,
    offset: u64,
    /// The row as it is written, as much of it as a rejected item keeps.
    raw: Vec<u8>,
}

impl<R: BufRead> Rows<R> {
    /// Reads one row into `out`. A row above the limit is read to its end and dropped.
    fn next(&mut self, out: &mut Vec<String>) -> Result<Next, String> {
        out.clear();
        self.raw.clear();
        let (mut field, mut quoted, mut was_quoted, mut any, mut len) = (Vec::new(), false, false, false, 0usize);
        let mut end_field = |field: &mut Vec<u8>, keep: bool| {
            if keep {
                out.push(String::from_utf8_lossy(field).into_owned());
            }
            field.clear();
        };
        loop {
            let Some(byte) = self.byte()? else {
                if !any {
                    return Ok(Next::End);
                }
                if quoted {
                    return Err("expected the end of a quoted field, found the end of the file".into());
                }
                end_field(&mut field, len <= MAX_LINE);
                break;
            };
            any = true;
            len += 1;
            match byte {
                b'"' if quoted => {
                    if self.peek()? == Some(b'"') {
                        self.byte()?;
                        field.push(b'"');
                    } else {
                        quoted = false;
                    }
                }
                b'"' if field.is_empty() && !was_quoted => (quoted, was_quoted) = (true, true),
                _ if quoted => field.push(byte),
                b'\n' => {
                    if field.last() == Some(&b'\r') {
                        field.pop();
                    }
                    end_field(&mut field, len <= MAX_LINE);
                    break;
                }
                byte if byte == self.separator => {
                    was_quoted = false;
                    end_field(&mut field, len <= MAX_LINE);
                }
                _ => field.push(byte),
            }
            if len > MAX_LINE {
                field.clear();
            }
        }
        Ok(if len > MAX_LINE { Next::TooLong } else { Next::Row })
    }

    fn peek(&mut self) -> Result<Option<u8>, String> {
        Ok(self.inner.fill_buf().map_err(|e| e.to_string())?.first().copied())
    }

    fn byte(&mut self) -> Result<Option<u8>, String> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            if self.raw.len() < BadItem::MAX_TEXT {
                self.raw.push(byte);
            }
            self.inner.consume(1);
            self.offset += 1;
        }
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
        let mut rows = Rows { inner: text.as_bytes(), separator: b',', offset: 0, raw: Vec::new() };
        let (mut row, mut out) = (Vec::new(), Vec::new());
        while let Next::Row = rows.next(&mut row)? {
            out.push(row.clone());
        }
        Ok(out)
    }

    #[test]
    fn fields_quotes_and_line_ends() {
        assert_eq!(rows("").unwrap(), Vec::<Vec<String>>::new());
        assert_eq!(rows("a,b\r\n1,2").unwrap(), [["a", "b"], ["1", "2"]]);
        assert_eq!(rows("\"a,\"\"b\"\"\nc\",,d\"e\n").unwrap(), [["a,\"b\"\nc", "", "d\"e"]]);
        assert_eq!(rows("\n").unwrap(), [[""]]);
        assert!(rows("\"a").is_err());
    }

    #[test]
    fn a_row_too_long_is_dropped_and_the_next_one_read() {
        let text = format!("a\n{}\nb\n", "x".repeat(MAX_LINE * 2));
        let mut rows = Rows { inner: text.as_bytes(), separator: b',', offset: 0, raw: Vec::new() };
        let mut row = Vec::new();
        assert!(matches!(rows.next(&mut row), Ok(Next::Row)));
        assert!(matches!(rows.next(&mut row), Ok(Next::TooLong)));
        assert_eq!(rows.raw, [b'x'; BadItem::MAX_TEXT]);
        assert!(matches!(rows.next(&mut row), Ok(Next::Row)));
        assert_eq!(row, ["b"]);
    }
}
