//! Which bytes a reading needs, before any are read: many plans make one round.

use super::decode::{Decoder, Pages};
use super::table::{ColumnPages, GroupTable};
use crate::{Columns, Rows};
use bytes::Bytes;
use std::ops::Range;
use trawl_io::crc::crc32c;
use trawl_store::{Error, RangeRead, Result, Store};

/// A reading of some rows of one row group.
#[derive(Debug, Clone)]
pub struct Plan {
    path: String,
    rows: Range<u32>,
    columns: Vec<ColumnPages>,
    reads: Vec<RangeRead>,
}

impl Plan {
    /// Plans to read `rows` (counted in the row group) of the columns of `wanted` that the file `path` has.
    pub fn new(path: &str, table: &GroupTable<'_>, rows: Range<u32>, wanted: Columns) -> Result<Self> {
        let columns = table.find(path, rows.clone(), wanted)?;
        let read = |range: &Range<u64>| RangeRead { path: path.to_owned(), range: range.clone() };
        let mut reads = Vec::with_capacity(columns.len() * 2);
        for column in &columns {
            // A dictionary page that touches the first data page wanted comes with it.
            match &column.dictionary {
                Some((dictionary, _)) if dictionary.end == column.range.start => {
                    reads.push(read(&(dictionary.start..column.range.end)));
                }
                Some((dictionary, _)) => reads.extend([read(dictionary), read(&column.range)]),
                None => reads.push(read(&column.range)),
            }
        }
        Ok(Self { path: path.to_owned(), rows, columns, reads })
    }

    /// The bytes to fetch.
    pub fn reads(&self) -> &[RangeRead] {
        &self.reads
    }

    /// Decodes the rows from what [`Plan::reads`] brought, in that order. Every page's checksum is checked first.
    pub fn finish(&self, fetched: &[Bytes]) -> Result<Rows> {
        let mut fetched = fetched.iter();
        let mut next = |offset: u64| {
            fetched.next().ok_or_else(|| self.corrupt(offset, "one answer for each read", "fewer".into()))
        };
        let mut rows = Rows::new(self.rows.len());
        let mut decoder = Decoder::new().map_err(|found| self.corrupt(0, "a zstd decoder", found.to_string()))?;
        for column in &self.columns {
            let at = column.range.start;
            let short = |found: usize| self.corrupt(at, "the bytes asked for", format!("{found} bytes"));
            let (dictionary, data): (Option<(&[u8], u32)>, &[u8]) = match &column.dictionary {
                None => (None, next(at)?),
                Some((dictionary, crc)) if dictionary.end == at => {
                    let both = next(at)?;
                    let len = usize::try_from(dictionary.end - dictionary.start).unwrap_or(usize::MAX);
                    let (dictionary, data) = both.split_at_checked(len).ok_or_else(|| short(both.len()))?;
                    (Some((dictionary, *crc)), data)
                }
                Some((_, crc)) => (Some((&next(at)?[..], *crc)), next(at)?),
            };
            if let Some((bytes, crc)) = dictionary {
                self.check(at, bytes, crc)?;
            }
            let mut rest = data;
            let mut pages = Vec::with_capacity(column.pages.len());
            for (len, crc, rows) in &column.pages {
                let (page, after) = rest.split_at_checked(*len).ok_or_else(|| short(data.len()))?;
                self.check(at, page, *crc)?;
                pages.push((page, *rows));
                rest = after;
            }
            let first = usize::try_from(self.rows.start - column.first_row).unwrap_or(usize::MAX);
            let pages = Pages {
                column: column.column,
                dictionary: dictionary.map(|(bytes, _)| bytes),
                pages,
                window: first..first.saturating_add(self.rows.len()),
            };
            let values = decoder.column(&pages);
            let failed = |found: Box<dyn std::error::Error + Send + Sync>| {
                self.corrupt(at, "pages of a known column", found.to_string())
            };
            rows.set(column.column, values.map_err(failed)?);
        }
        Ok(rows)
    }

    fn check(&self, offset: u64, bytes: &[u8], crc: u32) -> Result<()> {
        let found = crc32c(bytes);
        if found == crc {
            return Ok(());
        }
        Err(self.corrupt(offset, "the checksum of the page table", format!("{found:08x} instead of {crc:08x}")))
    }

    fn corrupt(&self, offset: u64, expected: &'static str, found: String) -> Error {
        Error::Corrupt { path: self.path.clone(), offset, expected, found }
    }
}

/// Reads what all `plans` need in one round, and decodes it.
pub fn read(store: &dyn Store, plans: &[Plan]) -> Result<Vec<Rows>> {
    let reads: Vec<_> = plans.iter().flat_map(|plan| plan.reads.iter().cloned()).collect();
    let fetched = store.get_batch(&reads)?;
    let mut rest = &fetched[..];
    let mut out = Vec::with_capacity(plans.len());
    for plan in plans {
        let (mine, others) = rest.split_at_checked(plan.reads.len()).unwrap_or((rest, &[]));
        out.push(plan.finish(mine)?);
        rest = others;
    }
    Ok(out)
}
