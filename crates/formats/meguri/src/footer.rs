//! The footer: a sequence of sections, each `uvarint tag`, `uvarint length`, bytes; then twelve bytes to find it by.
//!
//! ```text
//! tag section                                          written
//!  1  region directory                                 always
//!  2  URL column directory                             always
//!  3  host column directory                            always
//!  7  stats, 68 bytes                                  always
//!  8  metadata                                         when there is any
//!
//! region directory   uvarint n, n x { u8 id, u64 offset, u64 length, u32 crc32c of the region, u8 flags 0 }
//! column directory   uvarint n, n x { uvarint id, u64 first_page_offset, u64 total_compressed, u64 total_uncompressed,
//!                    uvarint num_values, uvarint num_pages, u8 width, u8 encoding of page 0, u8 codec,
//!                    u64 uncompressed_size, u32 crc32c of all pages, u8 flags (bit 0: zone), u64 min, u64 max, pages }
//!        pages       num_pages <= 1: u64 0
//!                    else num_pages x { u64 first_row, u64 num_values, u64 byte_length, u8 encoding, u8 flags,
//!                    u64 min, u64 max }
//! stats              u64 url_count, host_count, hostkey_lo, hostkey_hi, scheduled_count; u32 due_min, due_max;
//!                    u64 total_compressed, total_uncompressed; f32 bytes_per_url
//! metadata           uvarint n, n x { uvarint length, key, uvarint length, value }, by key
//! trailer            u32 length of the footer, u32 crc32c of it, "MEG1"
//! ```
//! Unknown tags are skipped by their length. A repeated tag replaces the earlier one.

use crate::error::{At, Result};
use crate::header::MAGIC;
use crate::page::PAGE_HEADER_LEN;
use crate::schema::Table;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;

/// Bytes of the trailer.
pub const TRAILER_LEN: usize = 12;
const REGION_LEN: usize = 1 + 8 + 8 + 4 + 1;
const _: () = assert!(REGION_LEN == 22);
/// Bytes of a column's entry whose varints are shortest.
const COLUMN_LEN: usize = 1 + 3 * 8 + 1 + 1 + 3 + 8 + 4 + 1 + 2 * 8;
const PAGE_LEN: usize = 3 * 8 + 2 + 2 * 8;
const _: () = assert!(PAGE_LEN == 42);
const TAG_REGIONS: u64 = 1;
const TAG_URLS: u64 = 2;
const TAG_HOSTS: u64 = 3;
const TAG_STATS: u64 = 7;
const TAG_METADATA: u64 = 8;

/// Which region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum RegionId {
    /// The URL table.
    Urls = 0,
    /// The host table.
    Hosts = 1,
    /// The schedule index.
    Schedule = 2,
    /// The seen filter.
    Seen = 3,
    /// The arena of texts.
    Arena = 4,
}

/// Where a region lies.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Region {
    /// See [`RegionId`]; unknown ones are carried.
    pub id: u8,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Of all of them.
    pub crc: u32,
}

impl Region {
    /// Its bytes' places; the end saturates.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

/// Smallest and largest value.
pub type Zone = Option<(u64, u64)>;

/// One page of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PageEntry {
    /// Row of its first value.
    pub first_row: u64,
    /// Rows.
    pub num_values: u64,
    /// Absolute offset of its header.
    pub offset: u64,
    /// Bytes, header included.
    pub byte_length: u64,
    /// By number.
    pub encoding: u8,
    /// Smallest and largest value, where the column has them.
    pub zone: Zone,
}

impl PageEntry {
    /// Its rows.
    pub fn rows(&self) -> Range<u64> {
        self.first_row..self.first_row.saturating_add(self.num_values)
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ColumnEntry {
    /// Its number in the schema.
    pub id: u64,
    /// Stored payload bytes of all pages, without their headers.
    pub total_compressed: u64,
    /// Rows times width.
    pub total_uncompressed: u64,
    /// Rows.
    pub num_values: u64,
    /// Bytes of a value.
    pub width: u8,
    /// The file's codec, by number.
    pub codec: u8,
    /// Of all its pages, headers included.
    pub crc: u32,
    /// Smallest and largest value, where the column has them.
    pub zone: Zone,
    /// Its pages, at least one.
    pub pages: Vec<PageEntry>,
}

impl ColumnEntry {
    /// The bytes of all its pages; the end saturates.
    pub fn range(&self) -> Range<u64> {
        let start = self.pages.first().map_or(0, |p| p.offset);
        let end = self.pages.last().map_or(start, |p| p.offset.saturating_add(p.byte_length));
        start..end
    }

    /// The number of the page that has `row`.
    pub fn page_of(&self, row: u64) -> Option<usize> {
        let after = self.pages.partition_point(|page| page.first_row <= row);
        let number = after.checked_sub(1)?;
        self.pages.get(number).filter(|page| page.rows().contains(&row)).map(|_| number)
    }
}

/// Totals.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Stats {
    /// Rows of the URL table.
    pub url_count: u64,
    /// Rows of the host table.
    pub host_count: u64,
    /// As in the header.
    pub hostkey_lo: u64,
    /// As in the header.
    pub hostkey_hi: u64,
    /// Rows with a `next_due`; the reference always writes 0.
    pub scheduled_count: u64,
    /// Smallest `next_due` that is not 0; 0 if none is.
    pub due_min: u32,
    /// Largest `next_due`.
    pub due_max: u32,
    /// Over all columns.
    pub total_compressed: u64,
    /// Over all columns.
    pub total_uncompressed: u64,
    /// Bytes before the footer for each URL, in `f32` arithmetic.
    pub bytes_per_url: f32,
}

/// Texts by name. Keys and values are any bytes.
pub type Metadata = BTreeMap<Vec<u8>, Vec<u8>>;

/// The whole footer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Footer {
    /// Where the regions lie.
    pub regions: Vec<Region>,
    /// Columns of the URL table; shared, as a large file's page lists are long and every reader of a column holds one.
    pub urls: Vec<Arc<ColumnEntry>>,
    /// Columns of the host table.
    pub hosts: Vec<Arc<ColumnEntry>>,
    /// Totals.
    pub stats: Stats,
    /// Texts by name.
    pub metadata: Metadata,
    /// Tags of sections that were skipped.
    pub skipped: Vec<u64>,
}

impl Footer {
    /// The columns of a table.
    pub fn columns(&self, table: Table) -> &[Arc<ColumnEntry>] {
        match table {
            Table::Urls => &self.urls,
            Table::Hosts => &self.hosts,
        }
    }

    /// A column of a table.
    pub fn column(&self, table: Table, id: u16) -> Option<&Arc<ColumnEntry>> {
        self.columns(table).iter().find(|c| c.id == u64::from(id))
    }

    /// A region.
    pub fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.iter().find(|r| r.id == id as u8)
    }

    /// Footer and trailer as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut section = |tag, bytes: Vec<u8>| {
            put_uvarint(&mut out, tag);
            put_uvarint(&mut out, bytes.len() as u64);
            out.extend_from_slice(&bytes);
        };
        section(TAG_REGIONS, encode_regions(&self.regions));
        section(TAG_URLS, encode_columns(&self.urls));
        section(TAG_HOSTS, encode_columns(&self.hosts));
        section(TAG_STATS, encode_stats(&self.stats));
        if !self.metadata.is_empty() {
            let mut bytes = Vec::new();
            put_uvarint(&mut bytes, self.metadata.len() as u64);
            for text in self.metadata.iter().flat_map(|(key, value)| [key, value]) {
                put_uvarint(&mut bytes, text.len() as u64);
                bytes.extend_from_slice(text);
            }
            section(TAG_METADATA, bytes);
        }
        let (length, crc) = (out.len() as u32, crc32c(&out));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Reads footer and trailer, which begin at `at` and end with the file. Checks the trailer and the framing; what the
    /// sections say of the file is checked by [`crate::verify`] and when a file is opened.
    pub(crate) fn decode(bytes: &[u8], at: At<'_>) -> Result<Footer> {
        let Some((body, trailer)) = bytes.split_last_chunk::<TRAILER_LEN>() else {
            return Err(at.corrupt("a trailer of 12 bytes", format!("{} bytes", bytes.len())));
        };
        let end = At::new(at.path, at.offset + body.len() as u64);
        let mut r = SliceReader::at(trailer, end.offset);
        let (length, crc, magic) = trailer_fields(&mut r).map_err(|e| end.short(e))?;
        if magic != MAGIC {
            return Err(end.corrupt("the magic \"MEG1\" at the end", format!("{:?}", String::from_utf8_lossy(&magic))));
        }
        if u64::from(length) != body.len() as u64 {
            let found = format!("{length} of {} bytes", body.len());
            return Err(end.corrupt("the length of the footer that the header points at", found));
        }
        at.check_crc("footer", crc, crc32c(body))?;
        sections(body, at)
    }
}

fn trailer_fields(r: &mut SliceReader<'_>) -> Result<(u32, u32, [u8; 4]), SliceError> {
    Ok((r.u32("the footer's length")?, r.u32("the footer's checksum")?, r.array("the magic")?))
}

fn sections(body: &[u8], at: At<'_>) -> Result<Footer> {
    let mut footer = Footer::default();
    let mut r = SliceReader::at(body, at.offset);
    while !r.is_empty() {
        let section = |r: &mut SliceReader<'_>| Ok((r.uvarint("a section's tag")?, r.uvarint("a section's length")?));
        let (tag, length) = section(&mut r).map_err(|e: SliceError| at.short(e))?;
        let start = r.offset();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = r.take(length, "a section").map_err(|e| at.short(e))?;
        let mut inside = SliceReader::at(bytes, start);
        let inside_r = &mut inside;
        let read = match tag {
            TAG_REGIONS => decode_regions(inside_r).map(|v| footer.regions = v),
            TAG_URLS => decode_columns(inside_r).map(|v| footer.urls = v),
            TAG_HOSTS => decode_columns(inside_r).map(|v| footer.hosts = v),
            TAG_STATS => decode_stats(inside_r).map(|v| footer.stats = v),
            TAG_METADATA => decode_metadata(inside_r).map(|v| footer.metadata = v),
            other => {
                footer.skipped.push(other);
                continue;
            }
        };
        read.map_err(|e| at.short(e))?;
        if !inside.is_empty() {
            let place = At::new(at.path, inside.offset());
            return Err(place.corrupt("the end of the section", format!("{} more bytes", inside.rest().len())));
        }
    }
    Ok(footer)
}

/// A count that may not be more than the bytes left can hold.
fn count(r: &mut SliceReader<'_>, each: usize, what: &'static str) -> Result<usize, SliceError> {
    let at = r.offset();
    let claimed = r.uvarint(what)?;
    let limit = r.rest().len() / each;
    match usize::try_from(claimed) {
        Ok(n) if n <= limit => Ok(n),
        _ => Err(SliceError::OverLimit { at, what, claimed, limit: limit as u64 }),
    }
}

fn encode_regions(regions: &[Region]) -> Vec<u8> {
    let mut out = Vec::new();
    put_uvarint(&mut out, regions.len() as u64);
    for region in regions {
        out.push(region.id);
        out.extend_from_slice(&region.offset.to_le_bytes());
        out.extend_from_slice(&region.length.to_le_bytes());
        out.extend_from_slice(&region.crc.to_le_bytes());
        out.push(0);
    }
    out
}

fn decode_regions(r: &mut SliceReader<'_>) -> Result<Vec<Region>, SliceError> {
    let n = count(r, REGION_LEN, "regions")?;
    (0..n)
        .map(|_| {
            let id = r.u8("a region's id")?;
            let (offset, length) = (r.u64("a region's offset")?, r.u64("a region's length")?);
            let crc = r.u32("a region's checksum")?;
            r.u8("a region's flags")?;
            Ok(Region { id, offset, length, crc })
        })
        .collect()
}

fn put_zone(out: &mut Vec<u8>, zone: Zone) {
    out.push(u8::from(zone.is_some()));
    let (min, max) = zone.unwrap_or((0, 0));
    out.extend_from_slice(&min.to_le_bytes());
    out.extend_from_slice(&max.to_le_bytes());
}

fn zone(r: &mut SliceReader<'_>) -> Result<Zone, SliceError> {
    let flags = r.u8("zone flags")?;
    let (min, max) = (r.u64("a zone's minimum")?, r.u64("a zone's maximum")?);
    Ok((flags & 1 == 1).then_some((min, max)))
}

fn encode_columns(columns: &[Arc<ColumnEntry>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_uvarint(&mut out, columns.len() as u64);
    for column in columns {
        put_uvarint(&mut out, column.id);
        out.extend_from_slice(&column.range().start.to_le_bytes());
        out.extend_from_slice(&column.total_compressed.to_le_bytes());
        out.extend_from_slice(&column.total_uncompressed.to_le_bytes());
        put_uvarint(&mut out, column.num_values);
        put_uvarint(&mut out, column.pages.len() as u64);
        let encoding = column.pages.first().map_or(0, |p| p.encoding);
        out.extend_from_slice(&[column.width, encoding, column.codec]);
        out.extend_from_slice(&column.total_uncompressed.to_le_bytes());
        out.extend_from_slice(&column.crc.to_le_bytes());
        put_zone(&mut out, column.zone);
        if column.pages.len() <= 1 {
            out.extend_from_slice(&[0; 8]);
            continue;
        }
        for page in &column.pages {
            for value in [page.first_row, page.num_values, page.byte_length] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            out.push(page.encoding);
            put_zone(&mut out, page.zone);
        }
    }
    out
}

fn decode_columns(r: &mut SliceReader<'_>) -> Result<Vec<Arc<ColumnEntry>>, SliceError> {
    let n = count(r, COLUMN_LEN, "columns")?;
    (0..n).map(|_| decode_column(r).map(Arc::new)).collect()
}

fn decode_column(r: &mut SliceReader<'_>) -> Result<ColumnEntry, SliceError> {
    let id = r.uvarint("a column's id")?;
    let first = r.u64("a column's first page")?;
    let (total_compressed, total_uncompressed) = (r.u64("a column's size")?, r.u64("a column's uncompressed size")?);
    let num_values = r.uvarint("a column's number of values")?;
    let at = r.offset();
    let num_pages = r.uvarint("a column's number of pages")?;
    let [width, encoding, codec] = r.array("a column's width, encoding and codec")?;
    r.u64("a column's uncompressed size again")?;
    let crc = r.u32("a column's checksum")?;
    let zone_of_all = zone(r)?;
    let mut pages = Vec::new();
    if num_pages <= 1 {
        r.u64("an empty page index")?;
        let byte_length = total_compressed.saturating_add(PAGE_HEADER_LEN as u64);
        let page = PageEntry { first_row: 0, num_values, offset: first, byte_length, encoding, zone: zone_of_all };
        pages.extend((num_pages == 1).then_some(page));
    } else {
        let limit = (r.rest().len() / PAGE_LEN) as u64;
        if num_pages > limit {
            return Err(SliceError::OverLimit { at, what: "pages", claimed: num_pages, limit });
        }
        let mut offset = first;
        for _ in 0..num_pages {
            let (first_row, num_values) = (r.u64("a page's first row")?, r.u64("a page's number of values")?);
            let byte_length = r.u64("a page's length")?;
            let encoding = r.u8("a page's encoding")?;
            pages.push(PageEntry { first_row, num_values, offset, byte_length, encoding, zone: zone(r)? });
            offset = offset.saturating_add(byte_length);
        }
    }
    let zone = zone_of_all;
    Ok(ColumnEntry { id, total_compressed, total_uncompressed, num_values, width, codec, crc, zone, pages })
}

fn encode_stats(stats: &Stats) -> Vec<u8> {
    let mut out = Vec::new();
    for value in [stats.url_count, stats.host_count, stats.hostkey_lo, stats.hostkey_hi, stats.scheduled_count] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&stats.due_min.to_le_bytes());
    out.extend_from_slice(&stats.due_max.to_le_bytes());
    out.extend_from_slice(&stats.total_compressed.to_le_bytes());
    out.extend_from_slice(&stats.total_uncompressed.to_le_bytes());
    out.extend_from_slice(&stats.bytes_per_url.to_le_bytes());
    out
}

fn decode_stats(r: &mut SliceReader<'_>) -> Result<Stats, SliceError> {
    Ok(Stats {
        url_count: r.u64("stats: URLs")?,
        host_count: r.u64("stats: hosts")?,
        hostkey_lo: r.u64("stats: lowest host key")?,
        hostkey_hi: r.u64("stats: highest host key")?,
        scheduled_count: r.u64("stats: scheduled rows")?,
        due_min: r.u32("stats: first due hour")?,
        due_max: r.u32("stats: last due hour")?,
        total_compressed: r.u64("stats: compressed bytes")?,
        total_uncompressed: r.u64("stats: uncompressed bytes")?,
        bytes_per_url: f32::from_le_bytes(r.array("stats: bytes per URL")?),
    })
}

fn decode_metadata(r: &mut SliceReader<'_>) -> Result<Metadata, SliceError> {
    let n = count(r, 2, "metadata")?;
    let mut metadata = Metadata::new();
    for _ in 0..n {
        let key = r.prefixed(usize::MAX, "a metadata key")?.to_vec();
        metadata.insert(key, r.prefixed(usize::MAX, "a metadata value")?.to_vec());
    }
    Ok(metadata)
}
