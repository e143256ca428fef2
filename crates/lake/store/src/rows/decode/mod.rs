//! From pages to values: the part of Parquet that URL files use, decoded in place of the library.
//!
//! Data pages of version 1, zstd, no repetition; encodings PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED,
//! DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY. The library allocates every value of a page by itself; here a page becomes
//! one buffer, which makes a reading of a few rows several times faster, and no damaged file can make it panic.

mod bits;
mod delta;
mod header;
mod page;

#[cfg(test)]
mod tests;

use super::rows::{Texts, Values};
use super::{Column, Kind};
use page::{Dictionary, Page};
use std::ops::Range;

/// What was found instead of what was expected.
pub(super) type Found<T> = Result<T, String>;

/// Largest page after decompression. Writers stay below 1 MiB, but for single long values.
const MAX_PAGE_BYTES: usize = 64 << 20;

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
        Ok(Self { zstd: zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?, raw: Vec::new() })
    }

    /// The values of the rows wanted, an entry for each.
    pub fn column(&mut self, pages: &Pages<'_>) -> Found<Values> {
        let column = pages.column;
        let named = |e: String| format!("{}: {e}", column.name());
        let rows = pages.window.len();
        let dictionary = match pages.dictionary {
            Some(bytes) => Some(self.dictionary(column, bytes).map_err(named)?),
            None => None,
        };
        let mut values = match column.kind() {
            Kind::Int32 | Kind::Int64 | Kind::UInt64 | Kind::Millis => Values::Numbers(Vec::with_capacity(rows)),
            Kind::Text => Values::Texts(Texts::with_capacity(rows)),
        };
        let mut at = 0;
        for (bytes, rows) in &pages.pages {
            let window = pages.window.start.saturating_sub(at)..pages.window.end.saturating_sub(at).min(*rows);
            self.page(column, bytes, *rows, window, dictionary.as_ref(), &mut values).map_err(named)?;
            at += rows;
        }
        let found = match &mut values {
            Values::Numbers(numbers) => numbers.len(),
            Values::Texts(texts) => texts.check().map_err(named)?,
        };
        if found != rows {
            return Err(named(format!("{found} rows instead of {rows}")));
        }
        Ok(values)
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
        out: &mut Values,
    ) -> Found<()> {
        let (header, body) = header::read(bytes)?;
        let Some((count, encoding)) = header.data else { return Err("no data page of version 1".into()) };
        if count != rows {
            return Err(format!("a page of {count} rows instead of {rows}"));
        }
        self.unpack(header.raw_len, body)?;
        Page { column, rows, encoding, dictionary }.decode(&self.raw, window, out)
    }

    fn unpack(&mut self, raw_len: usize, packed: &[u8]) -> Found<()> {
        if raw_len > MAX_PAGE_BYTES {
            return Err(format!("a page of {raw_len} bytes, limit {MAX_PAGE_BYTES}"));
        }
        self.raw.clear();
        // A page without any bytes is not compressed either.
        if raw_len == 0 {
            return Ok(());
        }
        self.raw.reserve(raw_len);
        let found = self.zstd.decompress_to_buffer(packed, &mut self.raw).map_err(|e| e.to_string())?;
        if found != raw_len {
            return Err(format!("a page of {found} bytes instead of {raw_len}"));
        }
        Ok(())
    }
}
