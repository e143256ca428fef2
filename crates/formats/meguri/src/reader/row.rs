//! Single rows, wherever they are.

use super::MeguriFile;
use super::column::{ColumnStream, open_page, page_values};
use crate::arena::{Arena, Text};
use crate::error::Result;
use crate::footer::ColumnEntry;
use crate::schema::{Extension, Table, UrlRecord, extension};
use bytes::Bytes;
use std::ops::Range;
use trawl_url::key::UrlKey;

/// One URL with its texts. A text that is not there is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Its number in the file.
    pub number: u64,
    /// The fixed columns; references are those of the file it came from.
    pub record: UrlRecord,
    /// The URL.
    pub url: Bytes,
    /// The ETag of the last fetch.
    pub etag: Bytes,
    /// Where it redirects.
    pub redirect: Bytes,
    /// Extension columns of numbers, by id.
    pub numbers: Vec<(u16, u64)>,
    /// Extension columns of texts, by id.
    pub texts: Vec<(u16, Bytes)>,
}

impl Row {
    /// Its key.
    pub fn key(&self) -> UrlKey {
        UrlKey { host: self.record.host_key, path: self.record.path_key }
    }
}

/// Rows answered at a time, so that many rows on many pages stay within memory.
const BATCH: usize = 256;
/// Pages longer than this are streamed, not read with the rest of a batch.
const LONG_PAGE: u64 = 4 << 20;

impl MeguriFile {
    /// Reads rows by number; the numbers must ascend. Pages of all columns are asked for in one round a batch.
    pub fn read_rows(&self, numbers: &[u64]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut arena = self.arena()?;
        for batch in numbers.chunks(BATCH) {
            self.read_batch(batch, &mut arena, &mut rows)?;
        }
        Ok(rows)
    }

    fn read_batch(&self, numbers: &[u64], arena: &mut Arena, rows: &mut Vec<Row>) -> Result<()> {
        let extensions = self.extensions(Table::Urls);
        let ids: Vec<u16> =
            Table::Urls.columns().iter().map(|def| def.id).chain(extensions.iter().map(|e| e.id)).collect();
        let columns = self.read_values(Table::Urls, &ids, numbers)?;
        let mut records = vec![UrlRecord::default(); numbers.len()];
        for (id, values) in ids.iter().zip(&columns).take(Table::Urls.columns().len()) {
            UrlRecord::scatter(&mut records, *id, values.iter().copied());
        }
        let extra = columns.get(Table::Urls.columns().len()..).unwrap_or_default();
        for (place, (number, record)) in numbers.iter().zip(records).enumerate() {
            let mut row = Row { number: *number, record, ..Row::default() };
            row.url = owned(arena.get(record.url_ref)?);
            row.etag = owned(arena.get(record.etag_ref)?);
            row.redirect = owned(arena.get(record.redirect_ref)?);
            for (Extension { id, .. }, values) in extensions.iter().zip(extra) {
                let value = values.get(place).copied().unwrap_or(0);
                if extension::is_reference(*id) {
                    row.texts.push((*id, owned(arena.get(value)?)));
                } else {
                    row.numbers.push((*id, value));
                }
            }
            rows.push(row);
        }
        Ok(())
    }

    /// The values of some columns at some rows, in one round of reads.
    pub(crate) fn read_values(&self, table: Table, ids: &[u16], numbers: &[u64]) -> Result<Vec<Vec<u64>>> {
        let mut columns = Vec::new();
        for &id in ids {
            columns.push(self.column(table, id)?);
        }
        let plans: Vec<Vec<usize>> = columns.iter().map(|column| pages_of(column, numbers)).collect();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (column, pages) in columns.iter().zip(&plans) {
            let entries = pages.iter().filter_map(|p| column.pages.get(*p)).filter(|p| p.byte_length <= LONG_PAGE);
            ranges.extend(entries.map(|p| p.offset..p.offset + p.byte_length));
        }
        let mut read = self.src.read_ranges(&ranges)?.into_iter();
        let mut answers = Vec::new();
        for (column, pages) in columns.iter().zip(&plans) {
            let mut values = Vec::with_capacity(numbers.len());
            let mut rest = numbers;
            for entry in pages.iter().filter_map(|p| column.pages.get(*p)) {
                let here = rest.partition_point(|row| *row < entry.rows().end);
                let (wanted, after) = rest.split_at(here);
                rest = after;
                if entry.byte_length <= LONG_PAGE {
                    let page = open_page(&self.src, entry, read.next())?;
                    let all = page_values(&page, entry, column.width)?;
                    let at = |row: &u64| all.get((row - entry.first_row) as usize).copied();
                    values.extend(wanted.iter().filter_map(at));
                } else {
                    for row in wanted {
                        ColumnStream::new(self.src.clone(), column.clone(), *row)?.next(1, &mut values)?;
                    }
                }
            }
            if values.len() != numbers.len() {
                let found = format!("{} of {} rows", values.len(), numbers.len());
                return Err(self.at(self.header().footer_offset).corrupt("rows of the table, ascending", found));
            }
            answers.push(values);
        }
        Ok(answers)
    }
}

/// The numbers of the pages that have some of the rows, each once.
fn pages_of(column: &ColumnEntry, rows: &[u64]) -> Vec<usize> {
    let mut pages: Vec<usize> = rows.iter().filter_map(|row| column.page_of(*row)).collect();
    pages.dedup();
    pages
}

/// A text that outlives its frame: it keeps no more memory than it needs.
pub(crate) fn owned(text: Text) -> Bytes {
    Bytes::copy_from_slice(text.bytes())
}
