//! Rows in order, with their texts.

use super::MeguriFile;
use super::column::ColumnStream;
use super::row::Row;
use crate::arena::{Arena, Text};
use crate::error::Result;
use crate::schema::{Extension, Table, URL_COLUMNS, UrlRecord, extension};
use bytes::Bytes;
use std::ops::Range;
use trawl_url::key::UrlKey;

/// Rows decoded at a time: few, because a merge has a cursor for each of its inputs.
const CHUNK: u64 = 1024;

/// One row as a cursor shows it and a writer takes it. A text that is not there is empty.
#[derive(Debug, Clone, Copy)]
pub struct UrlRow<'a> {
    /// The fixed columns. References mean nothing to a writer.
    pub record: &'a UrlRecord,
    /// The URL.
    pub url: &'a [u8],
    /// The ETag of the last fetch.
    pub etag: &'a [u8],
    /// Where it redirects.
    pub redirect: &'a [u8],
    /// Extension columns of numbers, by id; one that is missing is 0.
    pub numbers: &'a [(u16, u64)],
    /// Extension columns of texts, by id; one that is missing is empty.
    pub texts: &'a [(u16, Bytes)],
}

impl<'a> From<&'a Row> for UrlRow<'a> {
    fn from(row: &'a Row) -> Self {
        let Row { record, url, etag, redirect, numbers, texts, .. } = row;
        UrlRow { record, url, etag, redirect, numbers, texts }
    }
}

impl UrlRow<'_> {
    /// Its key.
    pub fn key(&self) -> UrlKey {
        UrlKey { host: self.record.host_key, path: self.record.path_key }
    }
}

/// Walks over rows of the URL table.
pub struct RowCursor {
    rows: Range<u64>,
    streams: Vec<ColumnStream>,
    extensions: Vec<Extension>,
    /// The chunk: records, and values of the extension columns.
    records: Vec<UrlRecord>,
    extra: Vec<Vec<u64>>,
    first: u64,
    /// The current row's place in the chunk, plus one; 0 before the first.
    at: usize,
    arena: Option<Arena>,
    texts: Texts,
    dangling: u64,
    values: Vec<u64>,
}

/// The texts of the current row.
#[derive(Default)]
struct Texts {
    url: Bytes,
    etag: Bytes,
    redirect: Bytes,
    numbers: Vec<(u16, u64)>,
    more: Vec<(u16, Bytes)>,
}

impl std::fmt::Debug for RowCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowCursor").field("rows", &self.rows).field("at", &self.number()).finish_non_exhaustive()
    }
}

impl MeguriFile {
    /// Walks over all rows.
    pub fn cursor(&self) -> Result<RowCursor> {
        self.cursor_over(0..self.header().url_count)
    }

    /// Walks over some rows, by number.
    pub fn cursor_over(&self, rows: Range<u64>) -> Result<RowCursor> {
        let rows = rows.start.min(self.header().url_count)..rows.end.min(self.header().url_count);
        let extensions = self.extensions(Table::Urls);
        let ids = URL_COLUMNS.iter().map(|def| def.id).chain(extensions.iter().map(|e| e.id));
        let streams = ids.map(|id| self.stream(Table::Urls, id, rows.start)).collect::<Result<Vec<_>>>()?;
        let arena = Some(self.arena()?);
        let extra = vec![Vec::new(); extensions.len()];
        Ok(RowCursor {
            first: rows.start,
            rows,
            streams,
            extensions,
            records: Vec::new(),
            extra,
            at: 0,
            arena,
            texts: Texts::default(),
            dangling: 0,
            values: Vec::new(),
        })
    }
}

impl RowCursor {
    /// Moves to the next row; `false` after the last.
    pub fn advance(&mut self) -> Result<bool> {
        if self.at < self.records.len() {
            self.at += 1;
            return Ok(true);
        }
        let start = self.first + self.records.len() as u64;
        let n = self.rows.end.saturating_sub(start).min(CHUNK) as usize;
        self.first = start;
        self.records.clear();
        self.at = 0;
        if n == 0 {
            return Ok(false);
        }
        self.records.resize(n, UrlRecord::default());
        let fixed = URL_COLUMNS.len().min(self.streams.len());
        let (fixed, more) = self.streams.split_at_mut(fixed);
        for (def, stream) in URL_COLUMNS.iter().zip(fixed) {
            self.values.clear();
            stream.next(n, &mut self.values)?;
            UrlRecord::scatter(&mut self.records, def.id, self.values.iter().copied());
        }
        for (values, stream) in self.extra.iter_mut().zip(more) {
            values.clear();
            stream.next(n, values)?;
        }
        self.at = 1;
        Ok(true)
    }

    /// The number of the current row.
    pub fn number(&self) -> u64 {
        (self.first + self.at as u64).saturating_sub(1)
    }

    /// The fixed columns of the current row; of no row before the first and after the last.
    pub fn record(&self) -> Option<&UrlRecord> {
        self.records.get(self.at.checked_sub(1)?)
    }

    /// The key of the current row.
    pub fn key(&self) -> Option<UrlKey> {
        self.record().map(|r| UrlKey { host: r.host_key, path: r.path_key })
    }

    /// References of rows shown so far that lead to no text.
    pub fn dangling(&self) -> u64 {
        self.dangling
    }

    /// The current row with its texts.
    pub fn row(&mut self) -> Result<Option<UrlRow<'_>>> {
        let Some(place) = self.at.checked_sub(1).filter(|at| *at < self.records.len()) else { return Ok(None) };
        let Some(record) = self.records.get(place) else { return Ok(None) };
        let Some(arena) = &mut self.arena else { return Ok(None) };
        let dangling = &mut self.dangling;
        let mut text = |reference| -> Result<Bytes> {
            Ok(match arena.get(reference)? {
                Text::Some(bytes) => bytes,
                Text::None => Bytes::new(),
                Text::Dangling => {
                    *dangling += 1;
                    Bytes::new()
                }
            })
        };
        let texts = &mut self.texts;
        texts.url = text(record.url_ref)?;
        texts.etag = text(record.etag_ref)?;
        texts.redirect = text(record.redirect_ref)?;
        texts.numbers.clear();
        texts.more.clear();
        for (Extension { id, .. }, values) in self.extensions.iter().zip(&self.extra) {
            let value = values.get(place).copied().unwrap_or(0);
            if extension::is_reference(*id) {
                texts.more.push((*id, text(value)?));
            } else {
                texts.numbers.push((*id, value));
            }
        }
        let Texts { url, etag, redirect, numbers, more } = &self.texts;
        Ok(Some(UrlRow { record, url, etag, redirect, numbers, texts: more }))
    }

    /// The next row, on its own.
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        if self.advance()? { self.owned_row() } else { Ok(None) }
    }

    /// The current row with its texts, as a value of its own.
    pub fn owned_row(&mut self) -> Result<Option<Row>> {
        let number = self.number();
        let Some(row) = self.row()? else { return Ok(None) };
        let own = |text: &[u8]| Bytes::copy_from_slice(text);
        Ok(Some(Row {
            number,
            record: *row.record,
            url: own(row.url),
            etag: own(row.etag),
            redirect: own(row.redirect),
            numbers: row.numbers.to_vec(),
            texts: row.texts.iter().map(|(id, text)| (*id, own(text))).collect(),
        }))
    }
}
