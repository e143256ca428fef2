//! From pages to values: the part of Parquet that URL files use, decoded in place of the library.
//!
//! Data pages of version 1, zstd, no repetition; encodings PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED,
//! DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY. The library allocates every value of a page by itself; here a page becomes
//! one buffer, which makes a reading of a few rows several times faster, and no damaged file can make it panic.

use super::page::{Dictionary, Page};
use crate::column::Column;
use crate::page::{Found, header};
use crate::values::{Gathering, Values};
use std::ops::Range;

/// Largest page after decompression. Writers stay below 1 MiB, but for single long values.
pub(super) const MAX_PAGE_BYTES: usize = 64 << 20;

/// Decodes pages; keeps what is worth keeping between them.
pub(super) struct Decoder {
    zstd: zstd::bulk::Decompressor<'static>,
    /// The page at hand, decompressed.
    raw: Vec<u8>,
}

/// Pages of one column, next to each other.
pub(super) struct Pages<'a> {
    pub column: Column,
    pub dictionary: Option<&'a [u8]>,
    /// Bytes and rows of each page.
    pub pages: Vec<(&'a [u8], usize)>,
    /// The rows wanted, counted from the first page's first.
    pub window: Range<usize>,
}

impl Decoder {
    pub fn new() -> Found<Self> {
        Ok(Self { zstd: zstd::bulk::Decompressor::new()?, raw: Vec::new() })
    }

    /// The values of the rows wanted, an entry for each.
    pub fn column(&mut self, pages: &Pages<'_>) -> Found<Values> {
        self.values(pages).map_err(|found| format!("{}: {found}", pages.column.name()).into())
    }

    fn values(&mut self, pages: &Pages<'_>) -> Found<Values> {
        let (column, window) = (pages.column, &pages.window);
        let dictionary = pages.dictionary.map(|bytes| self.dictionary(column, bytes)).transpose()?;
        let mut values = Gathering::new(column, window.len());
        let mut at = 0;
        for (bytes, rows) in &pages.pages {
            let window = window.start.saturating_sub(at)..window.end.saturating_sub(at).min(*rows);
            self.page(column, bytes, *rows, window, dictionary.as_ref(), &mut values)?;
            at += rows;
        }
        if values.len() != window.len() {
            return Err(format!("{} rows instead of {}", values.len(), window.len()).into());
        }
        values.finish()
    }

    fn dictionary(&mut self, column: Column, bytes: &[u8]) -> Found<Dictionary> {
        let (header, body) = header::read(bytes)?;
        let Some(count) = header.dictionary_values else { return Err("no dictionary page".into()) };
        self.unpack(header.raw_len, body)?;
        Dictionary::new(column, &self.raw, count)
    }

    fn page(
        &mut self,
        column: Column,
        bytes: &[u8],
        rows: usize,
        window: Range<usize>,
        dictionary: Option<&Dictionary>,
        out: &mut Gathering,
    ) -> Found<()> {
        let (header, body) = header::read(bytes)?;
        let Some((count, encoding)) = header.data else { return Err("no data page of version 1".into()) };
        if count != rows {
            return Err(format!("a page of {count} rows instead of {rows}").into());
        }
        self.unpack(header.raw_len, body)?;
        Page { column, rows, encoding, dictionary }.decode(&self.raw, window, out)
    }

    fn unpack(&mut self, raw_len: usize, packed: &[u8]) -> Found<()> {
        if raw_len > MAX_PAGE_BYTES {
            return Err(format!("a page of {raw_len} bytes, limit {MAX_PAGE_BYTES}").into());
        }
        self.raw.clear();
        // A page without any bytes is not compressed either.
        if raw_len == 0 {
            return Ok(());
        }
        self.raw.reserve(raw_len);
        let found = self.zstd.decompress_to_buffer(packed, &mut self.raw)?;
        if found != raw_len {
            return Err(format!("a page of {found} bytes instead of {raw_len}").into());
        }
        Ok(())
    }
}
