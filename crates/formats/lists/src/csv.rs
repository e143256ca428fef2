//! Separated files with a header line (RFC 4180: quoted fields may hold separators, quotes and line ends).

use crate::fields::{Fields, Value};
use crate::file::text_of;
use crate::lines::{BOM, MAX_LINE};
use crate::source::failed;
use crate::{BadItem, Names};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::io::{self, BufRead};
use trawl_model::{DoorError, Items, Place};

/// Reads a separated file from its beginning.
pub(crate) fn read(
    uri: &str,
    separator: u8,
    names: Names,
    stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let mut rows = Rows::new(stream, separator).map_err(|e| failed(uri, 0, e))?;
    let next = |rows: &mut Rows<_>| rows.next().map_err(|e| failed(uri, rows.at, e));
    let header: Vec<String> = match next(&mut rows)? {
        Some(Row::Whole) => rows.fields().map(|name| text_of(name).trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    if !header.iter().any(|name| names.is_url(name)) {
        let bad = BadItem::new("no_url", "expected a header line with a column \"url\"", b"");
        return Err(bad.ends(Place::new(uri, 0, 0)));
    }
    while let Some(row) = next(&mut rows)? {
        let bad =
            |code, message| Err(BadItem::new(code, message, rows.raw.trim_ascii_end()).at(Place::new(uri, rows.at, 0)));
        let item = match row {
            Row::TooLong => bad("line_too_long", "expected a row of at most 4 MiB"),
            Row::Whole if rows.fields().all(<[u8]>::is_empty) => continue,
            Row::Whole if rows.count > header.len() => {
                bad("columns", "expected as many fields as the header has, found more")
            }
            Row::Whole => {
                let mut fields = Fields::new(names);
                for (name, value) in header.iter().zip(rows.fields()).filter(|(_, value)| !value.is_empty()) {
                    fields.take(name, Value::Text(&text_of(value)));
                }
                fields.finish().map_or_else(|| bad("no_url", "expected a url in the row, found none"), Ok)
            }
        };
        each(rows.at, item)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
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
