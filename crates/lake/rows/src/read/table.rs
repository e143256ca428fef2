//! The page table of one row group: where each page lies and what its bytes sum to, so that a reader needs no footer.
//!
//! Little-endian. The index stores tables as they are and looks into them without decoding.
//!
//! ```text
//!  off size field
//!   0   1   version, now 1
//!   1   1   columns, C
//!   2   2   zero
//!   4   4   rows of the row group
//!   8  32C  column heads
//!           0   1   column id
//!           1   3   zero
//!           4   4   pages, P
//!           8   8   offset of its first data page in the file
//!          16   8   offset of its dictionary page, 0 if it has none
//!          24   4   length of its dictionary page, 0 if it has none
//!          28   4   crc32c of its dictionary page, 0 if it has none
//!   …  12P  for each column in turn its data pages, one after the other in the file
//!           0   4   first row, counted in the row group
//!           4   4   end of the page, counted from the column's first data page
//!           8   4   crc32c of the page, header included
//! ```

use crate::{Column, Columns};
use std::ops::Range;
use trawl_io::crc::crc32c;
use trawl_store::{Error, Result};

const VERSION: u8 = 1;
const HEAD: usize = 8;
const COLUMN_HEAD: usize = 32;
const PAGE: usize = 12;

/// The table of one row group, read in place.
#[derive(Debug, Clone, Copy)]
pub struct GroupTable<'a> {
    bytes: &'a [u8],
    columns: usize,
    rows: u32,
}

/// Where the data pages of a column lie that hold some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnPages {
    pub column: Column,
    /// Bytes in the file and checksum of the dictionary page, if the column has one.
    pub dictionary: Option<(Range<u64>, u32)>,
    /// Bytes in the file: the pages lie next to each other.
    pub range: Range<u64>,
    /// Length, checksum and rows of each page.
    pub pages: Vec<(usize, u32, usize)>,
    /// Row of the group at which the first of them begins.
    pub first_row: u32,
}

struct ColumnHead {
    column: Option<Column>,
    pages: usize,
    start: u64,
    dictionary: Option<(Range<u64>, u32)>,
    /// Where its pages stand in the table.
    at: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn corrupt(path: &str, expected: &'static str, found: impl ToString) -> Error {
    Error::Corrupt { path: path.to_owned(), offset: 0, expected, found: found.to_string() }
}

impl<'a> GroupTable<'a> {
    /// A table over its bytes, which must be its length exactly. `path` is the Parquet file, for messages.
    pub fn new(path: &str, bytes: &'a [u8]) -> Result<Self> {
        let (Some([version, columns, 0, 0]), Some(rows)) = (bytes.first_chunk::<4>(), u32_at(bytes, 4)) else {
            return Err(corrupt(path, "a page table", format!("{} bytes", bytes.len())));
        };
        if *version != VERSION {
            return Err(corrupt(path, "a page table of version 1", version));
        }
        let table = Self { bytes, columns: usize::from(*columns), rows };
        let heads = HEAD + table.columns * COLUMN_HEAD;
        let pages = (0..table.columns).map(|i| u32_at(bytes, HEAD + i * COLUMN_HEAD + 4).unwrap_or(u32::MAX) as usize);
        let len = pages.fold(heads, |sum, pages| sum.saturating_add(pages.saturating_mul(PAGE)));
        if len != bytes.len() {
            return Err(corrupt(path, "a page table as long as its head says", bytes.len()));
        }
        Ok(table)
    }

    /// Rows of the row group.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The columns the file has.
    pub fn columns(&self) -> Columns {
        let ids = (0..self.columns).filter_map(|i| self.bytes.get(HEAD + i * COLUMN_HEAD).copied());
        ids.filter_map(Column::from_id).fold(Columns::NONE, |set, column| set.and(Columns::of(&[column])))
    }

    fn heads(&self) -> impl Iterator<Item = Option<ColumnHead>> {
        let bytes = self.bytes;
        let mut at = HEAD + self.columns * COLUMN_HEAD;
        (0..self.columns).map(move |i| {
            let head = bytes.get(HEAD + i * COLUMN_HEAD..)?;
            let pages = u32_at(head, 4)? as usize;
            let (start, dict_at, dict_len) = (u64_at(head, 8)?, u64_at(head, 16)?, u32_at(head, 24)?);
            let dictionary = match dict_len {
                0 => None,
                len => Some((dict_at..dict_at.checked_add(u64::from(len))?, u32_at(head, 28)?)),
            };
            let here = at;
            at = at.checked_add(pages * PAGE)?;
            Some(ColumnHead { column: Column::from_id(*head.first()?), pages, start, dictionary, at: here })
        })
    }

    /// For each of `wanted` that the file has: the pages that hold `rows`.
    pub(crate) fn find(&self, path: &str, rows: Range<u32>, wanted: Columns) -> Result<Vec<ColumnPages>> {
        if rows.start > rows.end || rows.end > self.rows {
            let found = format!("{rows:?}");
            return Err(corrupt(path, "rows inside the row group", found));
        }
        let mut out = Vec::new();
        for head in self.heads() {
            let head = head.ok_or_else(|| corrupt(path, "a whole page table", "a short one"))?;
            let Some(column) = head.column.filter(|c| wanted.has(*c)) else { continue };
            if rows.is_empty() {
                continue;
            }
            let found = self.pages(&head, column, &rows);
            out.push(found.ok_or_else(|| corrupt(path, "pages that cover the row group in order", column.name()))?);
        }
        Ok(out)
    }

    fn pages(&self, head: &ColumnHead, column: Column, rows: &Range<u32>) -> Option<ColumnPages> {
        let table = self.bytes.get(head.at..head.at + head.pages * PAGE)?;
        let (entries, _) = table.as_chunks::<PAGE>();
        let first_row = |entry: &[u8; PAGE]| u32_at(entry, 0).unwrap_or(u32::MAX);
        let first = entries.partition_point(|e| first_row(e) <= rows.start).checked_sub(1)?;
        let end = entries.partition_point(|e| first_row(e) < rows.end);
        let mut at = match first.checked_sub(1) {
            Some(before) => u32_at(entries.get(before)?, 4)?,
            None => 0,
        };
        let start = head.start.checked_add(u64::from(at))?;
        let mut pages = Vec::with_capacity(end.saturating_sub(first));
        for i in first..end {
            let entry = entries.get(i)?;
            let (page_end, crc) = (u32_at(entry, 4)?, u32_at(entry, 8)?);
            let next_row = entries.get(i + 1).map_or(self.rows, first_row);
            let rows = next_row.checked_sub(first_row(entry))?;
            pages.push((page_end.checked_sub(at)? as usize, crc, rows as usize));
            at = page_end;
        }
        Some(ColumnPages {
            column,
            dictionary: head.dictionary.clone(),
            range: start..head.start.checked_add(u64::from(at))?,
            pages,
            first_row: first_row(entries.get(first)?),
        })
    }
}

/// A column of a table being made.
pub(crate) struct NewColumn<'a> {
    pub column: Column,
    /// Offset and bytes of the dictionary page.
    pub dictionary: Option<(u64, &'a [u8])>,
    /// Offset of the first data page.
    pub start: u64,
    /// First row and bytes of each data page.
    pub pages: Vec<(u32, &'a [u8])>,
}

/// Writes a table. `None`: some number does not fit its field.
pub(crate) fn encode(rows: u32, columns: &[NewColumn<'_>]) -> Option<Vec<u8>> {
    let mut out = vec![VERSION, u8::try_from(columns.len()).ok()?, 0, 0];
    out.extend(rows.to_le_bytes());
    for column in columns {
        out.extend([column.column as u8, 0, 0, 0]);
        out.extend(u32::try_from(column.pages.len()).ok()?.to_le_bytes());
        out.extend(column.start.to_le_bytes());
        let (at, bytes) = column.dictionary.unwrap_or((0, &[]));
        out.extend(at.to_le_bytes());
        out.extend(u32::try_from(bytes.len()).ok()?.to_le_bytes());
        out.extend(if bytes.is_empty() { [0; 4] } else { crc32c(bytes).to_le_bytes() });
    }
    for column in columns {
        let mut end = 0u32;
        for (first_row, bytes) in &column.pages {
            end = end.checked_add(u32::try_from(bytes.len()).ok()?)?;
            out.extend(first_row.to_le_bytes());
            out.extend(end.to_le_bytes());
            out.extend(crc32c(bytes).to_le_bytes());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let host =
            NewColumn { column: Column::Host, dictionary: None, start: 100, pages: vec![(0, b"aaa"), (4, b"bb")] };
        let scheme = NewColumn {
            column: Column::Scheme,
            dictionary: Some((4, b"dict")),
            start: 8,
            pages: vec![(0, b"p"), (3, b"qq"), (6, b"rrr")],
        };
        encode(10, &[host, scheme]).unwrap()
    }

    #[test]
    fn the_drawing() {
        let bytes = sample();
        assert_eq!(bytes.len(), HEAD + 2 * COLUMN_HEAD + 5 * PAGE);
        assert_eq!(bytes[..8], [1, 2, 0, 0, 10, 0, 0, 0]);
        assert_eq!(bytes[8..16], [5, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[40..56], [4, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[64..68], [4, 0, 0, 0]);
        assert_eq!(bytes[72..80], [0, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[80..84], crc32c(b"aaa").to_le_bytes());
    }

    #[test]
    fn only_the_pages_that_hold_the_rows() {
        let bytes = sample();
        let table = GroupTable::new("f", &bytes).unwrap();
        assert_eq!(table.rows(), 10);
        assert_eq!(table.columns(), Columns::of(&[Column::Host, Column::Scheme]));
        let all = Columns::ALL;
        let found = table.find("f", 4..6, all).unwrap();
        assert_eq!(found[0].range, 103..105);
        assert_eq!(found[0].pages, [(2, crc32c(b"bb"), 6)]);
        assert_eq!(found[0].first_row, 4);
        assert_eq!(found[1].range, 9..11);
        assert_eq!(found[1].first_row, 3);
        assert_eq!(found[1].dictionary, Some((4..8, crc32c(b"dict"))));
        let found = table.find("f", 2..7, Columns::of(&[Column::Scheme, Column::Ts])).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].range.clone(), found[0].first_row), (8..14, 0));
        assert!(table.find("f", 3..3, all).unwrap().is_empty());
        assert!(table.find("f", 0..11, all).is_err());
    }

    #[test]
    fn cut_and_flipped_tables_give_errors_or_values() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert!(GroupTable::new("f", &bytes[..cut]).is_err());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(table) = GroupTable::new("f", &bytes) {
                for row in 0..10 {
                    let _ = table.find("f", row..row + 1, Columns::ALL);
                }
                let _ = table.columns();
            }
        }
    }
}
