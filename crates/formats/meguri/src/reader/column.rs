//! Values of a column: of one page, or of many rows in order.

use crate::encoding::Decoder;
use crate::error::{At, Result};
use crate::footer::{ColumnEntry, PageEntry};
use crate::page::{Kind, Page};
use bytes::Bytes;
use std::sync::Arc;
use trawl_io::ReadAt;

/// Pages up to this many stored bytes are read in one piece.
const ONE_READ: u64 = 4 << 20;

/// Opens a page of a column and compares its header with the directory. `bytes` are the page's, if they were read already.
pub(crate) fn open_page(src: &Arc<dyn ReadAt>, entry: &PageEntry, bytes: Option<Bytes>) -> Result<Page> {
    let page = match bytes {
        Some(bytes) => Page::new(src, entry.offset, bytes, Kind::Data)?,
        None if entry.byte_length <= ONE_READ => {
            let bytes = src.read_range(entry.offset..entry.offset.saturating_add(entry.byte_length))?;
            Page::new(src, entry.offset, bytes, Kind::Data)?
        }
        None => Page::open(src, entry.offset, entry.byte_length, Kind::Data)?,
    };
    let header = &page.header;
    let found = (u64::from(header.first_row), u64::from(header.num_values), header.encoding);
    let stated = (entry.first_row, entry.num_values, entry.encoding);
    if found != stated {
        return Err(page
            .at()
            .corrupt("rows and encoding as the footer states them", format!("{found:?} where {stated:?}")));
    }
    Ok(page)
}

/// Checks decoded values against a zone map, piece by piece: a page's base has no other checksum.
struct ZoneCheck {
    zone: Option<(u64, u64)>,
    seen: (u64, u64),
}

impl ZoneCheck {
    fn new(entry: &PageEntry) -> Self {
        ZoneCheck { zone: entry.zone, seen: (u64::MAX, 0) }
    }

    fn take(&mut self, values: &[u64], at: At<'_>) -> Result<()> {
        let Some((min, max)) = self.zone else { return Ok(()) };
        let (a, b) = values.iter().fold(self.seen, |(a, b), &v| (a.min(v), b.max(v)));
        self.seen = (a, b);
        if a < min || b > max {
            return Err(at.corrupt("values within the zone map", format!("{a} to {b} outside {min} to {max}")));
        }
        Ok(())
    }

    fn finish(&self, at: At<'_>) -> Result<()> {
        match self.zone {
            Some(zone) if zone != self.seen && self.seen.0 <= self.seen.1 => {
                let found = format!("{:?} where {zone:?} is stated", self.seen);
                Err(at.corrupt("values that reach both ends of the zone map", found))
            }
            _ => Ok(()),
        }
    }
}

/// All values of one page.
pub(crate) fn page_values(page: &Page, entry: &PageEntry, width: u8) -> Result<Vec<u64>> {
    let at = page.at();
    let n =
        usize::try_from(entry.num_values).map_err(|_| at.over_limit("a page", entry.num_values, usize::MAX as u64))?;
    let mut values = Vec::new();
    let mut decoder = page.decoder(width)?;
    decoder.next(n, &mut values).and_then(|()| decoder.finish()).map_err(|e| e.at(at))?;
    let mut zone = ZoneCheck::new(entry);
    zone.take(&values, at)?;
    zone.finish(at)?;
    Ok(values)
}

/// Hands out the values of a column in order, a piece at a time: in little memory, however long its pages are.
pub(crate) struct ColumnStream {
    src: Arc<dyn ReadAt>,
    entry: Arc<ColumnEntry>,
    /// The next page to open.
    next_page: usize,
    current: Option<Current>,
}

struct Current {
    page: Page,
    decoder: Decoder,
    zone: ZoneCheck,
    left: u64,
}

impl ColumnStream {
    /// Starts at `row`, which may be the one past the last.
    pub fn new(src: Arc<dyn ReadAt>, entry: Arc<ColumnEntry>, row: u64) -> Result<Self> {
        let next_page = entry.page_of(row).unwrap_or(entry.pages.len());
        let skip = entry.pages.get(next_page).map_or(0, |page| row - page.first_row);
        let mut stream = ColumnStream { src, entry, next_page, current: None };
        stream.skip(skip)?;
        Ok(stream)
    }

    fn skip(&mut self, mut n: u64) -> Result<()> {
        let mut ignored = Vec::new();
        while n > 0 {
            ignored.clear();
            let some = n.min(1 << 16);
            self.next(some as usize, &mut ignored)?;
            n -= some;
        }
        Ok(())
    }

    /// Appends the next `n` values. More than there are is an error.
    pub fn next(&mut self, n: usize, out: &mut Vec<u64>) -> Result<()> {
        let mut n = n as u64;
        while n > 0 {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => self.open()?,
            };
            let at = current.page.at();
            let some = n.min(current.left);
            let from = out.len();
            current.decoder.next(some as usize, out).map_err(|e| e.at(at))?;
            current.zone.take(out.get(from..).unwrap_or_default(), at)?;
            n -= some;
            current.left -= some;
            if current.left > 0 {
                self.current = Some(current);
            } else {
                // A stream that began inside the page has decoded the rest of it as well.
                current.zone.finish(at)?;
                current.decoder.finish().map_err(|e| e.at(at))?;
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<Current> {
        let end = At::new(self.src.name(), self.entry.range().end);
        let Some(entry) = self.entry.pages.get(self.next_page) else {
            return Err(end.corrupt("another page of the column", "the end of the column"));
        };
        self.next_page += 1;
        let page = open_page(&self.src, entry, None)?;
        let decoder = page.decoder(self.entry.width)?;
        Ok(Current { zone: ZoneCheck::new(entry), decoder, page, left: entry.num_values })
    }
}

/// The raw bytes of a column of 16-byte values, a piece at a time.
pub(crate) struct BytesStream {
    src: Arc<dyn ReadAt>,
    entry: Arc<ColumnEntry>,
    next_page: usize,
    source: Option<Box<dyn std::io::Read + Send>>,
    left: u64,
}

impl BytesStream {
    pub fn new(src: Arc<dyn ReadAt>, entry: Arc<ColumnEntry>) -> Self {
        BytesStream { src, entry, next_page: 0, source: None, left: 0 }
    }

    /// Appends the next `n` values of 16 bytes.
    pub fn next(&mut self, n: usize, out: &mut Vec<[u8; 16]>) -> Result<()> {
        for _ in 0..n {
            while self.left == 0 {
                self.open()?;
            }
            let mut value = [0; 16];
            if let Some(source) = &mut self.source {
                let bad = |e| crate::error::Malformed::new("values of 16 bytes", e);
                let at = At::new(self.src.name(), self.entry.range().start);
                source.read_exact(&mut value).map_err(|e| bad(e).at(at))?;
            }
            out.push(value);
            self.left -= 1;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let end = At::new(self.src.name(), self.entry.range().end);
        let Some(entry) = self.entry.pages.get(self.next_page) else {
            return Err(end.corrupt("another page of the column", "the end of the column"));
        };
        self.next_page += 1;
        let page = open_page(&self.src, entry, None)?;
        let (header, at) = (&page.header, page.at());
        if header.encoding != 0 || header.base != 0 || u64::from(header.uncompressed_size) != entry.num_values * 16 {
            return Err(at.corrupt("values of 16 bytes as they are", format!("{} bytes", header.uncompressed_size)));
        }
        self.left = entry.num_values;
        self.source = Some(std::io::BufReader::with_capacity(1 << 16, page.stream()?)).map(|r| Box::new(r) as _);
        Ok(())
    }
}
