//! Reading a file, as little of it as a question needs.
//!
//! ```text
//! open            header; footer and trailer                             2 reads
//! one column      its pages
//! one host        zone maps in the footer; two pages of host keys        the host's rows
//! one URL         the above; one to three pages of path keys; one page of each other column; one arena frame
//! due rows        the schedule index as far as it is due; key pages of those rows
//! ```
//! Every part that is read is checked: header, footer, pages, frames of the arena. Only [`crate::Partition::decode`] and
//! [`crate::verify`] read everything, and then check the regions first.

mod check;
pub(crate) mod column;
mod cursor;
mod due;
mod find;
mod hosts;
mod row;
mod scan;

pub use cursor::{RowCursor, UrlRow};
pub use due::DueRow;
pub(crate) use due::FEW;
pub use hosts::{HostCursor, HostRow};
pub use row::Row;
pub use scan::Scan;

use crate::arena::Arena;
use crate::diff::hex;
use crate::error::{At, Error, Result};
use crate::filter::Filter;
use crate::footer::{ColumnEntry, Footer, Region, RegionId, TRAILER_LEN};
use crate::header::{HEADER_LEN, Header};
use crate::keys::{HOST_GROUP, KeyPolicy};
use crate::page::{Kind, Page};
use crate::schedule::Schedule;
use crate::schema::{Extension, Table, extension};
use crate::settings::{ArenaFrames, Settings};
use column::ColumnStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{Fs, ReadAt, RealFs};
use trawl_url::SuffixList;
use trawl_url::key::{HostGroup, UrlKey};

pub(crate) use check::{Fault, structure};

/// What a reader may use, and what it believes.
#[derive(Debug, Clone)]
pub struct ReadSettings {
    /// The longest footer that is read.
    pub footer_bytes: u64,
    /// The longest filter that is read.
    pub filter_bytes: u32,
    /// Where an arena that can only be unpacked as a whole goes while it is read.
    pub temp: PathBuf,
    /// The file system of `temp`.
    pub fs: Arc<dyn Fs>,
}

impl Default for ReadSettings {
    fn default() -> Self {
        ReadSettings { footer_bytes: 1 << 30, filter_bytes: 1 << 30, temp: std::env::temp_dir(), fs: Arc::new(RealFs) }
    }
}

/// Rows that a file of `len` bytes may claim. A row has a 64-bit hash, which takes bytes however rows are packed; a file
/// that claims more is made to waste time.
pub(crate) fn most_rows(len: u64) -> u64 {
    len.saturating_mul(64).saturating_add(1 << 20).min(u64::from(u32::MAX))
}

/// An open file: header and footer are read and sound.
#[derive(Clone)]
pub struct MeguriFile {
    pub(crate) src: Arc<dyn ReadAt>,
    pub(crate) settings: ReadSettings,
    header: Header,
    footer: Arc<Footer>,
}

impl std::fmt::Debug for MeguriFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeguriFile")
            .field("path", &self.src.name())
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl MeguriFile {
    /// Opens a file of the machine.
    pub fn open_path(path: &Path) -> Result<Self> {
        Self::open(Arc::new(trawl_io::read_at::FileReader::open(path)?), ReadSettings::default())
    }

    /// Opens a file: two reads.
    pub fn open(src: Arc<dyn ReadAt>, settings: ReadSettings) -> Result<Self> {
        let (header, footer) = read_ends(&*src, &settings)?;
        let mut first = None;
        structure(&header, &footer, src.len(), &mut |fault| {
            first.get_or_insert(fault);
        });
        if let Some(Fault { offset, expected, found }) = first {
            return Err(At::new(src.name(), offset).corrupt(expected, found));
        }
        Ok(MeguriFile { src, settings, header, footer: Arc::new(footer) })
    }

    /// The file's name, for messages.
    pub fn path(&self) -> &Path {
        self.src.name()
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.src.len()
    }

    /// Never: a file has a header.
    pub fn is_empty(&self) -> bool {
        self.src.is_empty()
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Rows of a table.
    pub fn rows(&self, table: Table) -> u64 {
        match table {
            Table::Urls => self.header.url_count,
            Table::Hosts => self.header.host_count,
        }
    }

    /// How the keys were made.
    pub fn key_policy(&self) -> KeyPolicy {
        KeyPolicy::of(&self.footer.metadata)
    }

    /// What counts as one host in the keys, which are of no use for another grouping.
    pub(crate) fn host_group(&self) -> HostGroup {
        match self.footer.metadata.get(HOST_GROUP).map(Vec::as_slice) {
            Some(b"full_host") => HostGroup::FullHost,
            Some(b"registrable") => HostGroup::Registrable,
            _ => self.key_policy().default_group(),
        }
    }

    /// What is wrong with the URL of a row: the file says how keys are made, and this row's was made of another URL. A row
    /// found by its key would answer for a page that it does not tell of. Files that do not say how are not judged: the
    /// reference makes keys in several ways.
    pub fn key_fault(&self, row: u64, key: UrlKey, url: &[u8]) -> Option<Error> {
        let policy = KeyPolicy::stated(&self.footer.metadata)?;
        if url.is_empty() || policy.fits_bytes(key, url, SuffixList::builtin()) {
            return None;
        }
        let offset = self.footer.column(Table::Urls, 1).map_or(0, |column| column.range().start);
        let found = format!("row {row} with {} and {:?}", hex(key), String::from_utf8_lossy(url));
        Some(self.at(offset).corrupt("a row with the key of its URL", found))
    }

    /// The error of a row whose key is below the one before: merges and comparisons walk over rows side by side.
    pub(crate) fn unsorted(&self, row: u64, before: UrlKey, found: UrlKey) -> Error {
        let offset = self.footer.column(Table::Urls, 0).map_or(0, |column| column.range().start);
        let found = format!("row {row} with {} behind {}", hex(found), hex(before));
        self.at(offset).corrupt("rows in the order of their keys", found)
    }

    /// How the file was written, if it says so.
    pub fn settings(&self) -> Option<Settings> {
        Settings::from_metadata(&self.footer.metadata).map(|(settings, _)| settings)
    }

    fn arena_frames(&self) -> Option<ArenaFrames> {
        Settings::from_metadata(&self.footer.metadata).and_then(|(_, frames)| frames)
    }

    /// The columns beside the fixed ones that are readable here, by id.
    pub fn extensions(&self, table: Table) -> Vec<Extension> {
        let known = |c: &Arc<ColumnEntry>| {
            let id = u16::try_from(c.id).ok().filter(|id| (extension::FIRST..=extension::LAST).contains(id))?;
            let fits = matches!(c.width, 1 | 2 | 4 | 8) && (!extension::is_reference(id) || c.width == 8);
            fits.then_some(Extension { id, width: c.width })
        };
        let mut found: Vec<_> = self.footer.columns(table).iter().filter_map(known).collect();
        found.sort_unstable();
        found
    }

    /// A column's entry; a fixed one is always there.
    pub(crate) fn column(&self, table: Table, id: u16) -> Result<Arc<ColumnEntry>> {
        match self.footer.column(table, id) {
            Some(entry) => Ok(entry.clone()),
            None => Err(self.at(self.header.footer_offset).corrupt("a column", format!("no column {id}"))),
        }
    }

    pub(crate) fn at(&self, offset: u64) -> At<'_> {
        At::new(self.src.name(), offset)
    }

    /// The values of a column from `row` on.
    pub(crate) fn stream(&self, table: Table, id: u16, row: u64) -> Result<ColumnStream> {
        ColumnStream::new(self.src.clone(), self.column(table, id)?, row)
    }

    /// One whole column. 16-byte columns have no numbers: see [`MeguriFile::hosts`].
    pub fn read_column(&self, table: Table, id: u16) -> Result<Vec<u64>> {
        let mut values = Vec::new();
        let mut stream = self.stream(table, id, 0)?;
        let mut left = self.rows(table);
        while left > 0 {
            let some = left.min(1 << 16);
            stream.next(some as usize, &mut values)?;
            left -= some;
        }
        Ok(values)
    }

    pub(crate) fn region_page(&self, id: RegionId, kind: Kind) -> Result<Option<Page>> {
        let Some(Region { offset, length, .. }) = self.footer.region(id) else { return Ok(None) };
        Page::open(&self.src, *offset, *length, kind).map(Some)
    }

    /// The seen filter, if the file has one.
    pub fn filter(&self) -> Result<Option<Filter>> {
        let Some(page) = self.region_page(RegionId::Seen, Kind::Filter)? else { return Ok(None) };
        if u64::from(page.header.num_values) != self.header.url_count || page.header.base != 0 {
            return Err(page.at().corrupt("a filter of all URL rows", page.header.num_values));
        }
        let blob = page.payload(self.settings.filter_bytes)?;
        Filter::decode(blob).map(Some).map_err(|e| e.at(page.at()))
    }

    /// The schedule index, if the file has one.
    pub fn schedule(&self) -> Result<Option<Schedule>> {
        let Some(page) = self.region_page(RegionId::Schedule, Kind::Schedule)? else { return Ok(None) };
        Schedule::open(&page, self.settings().is_some(), self.header.url_count).map(Some)
    }

    /// The texts.
    pub fn arena(&self) -> Result<Arena> {
        let Some(page) = self.region_page(RegionId::Arena, Kind::Blob)? else {
            return Ok(Arena::empty(self.src.name().to_owned()));
        };
        Arena::open(&self.src, &page, self.arena_frames(), &self.settings.fs, &self.settings.temp)
    }
}

/// Header and footer, checked on their own.
pub(crate) fn read_ends(src: &dyn ReadAt, settings: &ReadSettings) -> Result<(Header, Footer)> {
    let start = At::new(src.name(), 0);
    let least = (HEADER_LEN + TRAILER_LEN) as u64;
    if src.len() < least {
        return Err(start.corrupt("a .meguri file, which has at least 76 bytes", format!("{} bytes", src.len())));
    }
    let header = Header::decode(&src.read_range(0..HEADER_LEN as u64)?, src.name())?;
    let begin = header.footer_offset;
    let at = At::new(src.name(), begin);
    if begin < HEADER_LEN as u64 || begin > src.len() - TRAILER_LEN as u64 {
        return Err(At::new(src.name(), 48).corrupt("a footer inside the file", begin));
    }
    let length = src.len() - begin;
    if length > settings.footer_bytes {
        return Err(at.over_limit("the footer", length, settings.footer_bytes));
    }
    let footer = Footer::decode(&src.read_range(begin..src.len())?, at)?;
    Ok((header, footer))
}
