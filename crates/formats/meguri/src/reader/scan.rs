//! Some columns at rows that ascend: each page is unpacked once, however many hosts or keys lie on it.

use super::MeguriFile;
use super::column::{open_page, page_values};
use crate::arena::Arena;
use crate::error::Result;
use crate::footer::{ColumnEntry, PageEntry};
use crate::schema::Table;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use trawl_url::key::UrlKey;

const HOST_KEY: u16 = 0;
const PATH_KEY: u16 = 1;

/// Reads columns of the URL table at ascending rows. Going back is possible and costs the page again.
pub struct Scan {
    file: MeguriFile,
    hosts: Column,
    paths: Column,
    columns: Vec<Column>,
    arena: Option<Arena>,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("file", &self.file).finish_non_exhaustive()
    }
}

/// A column and the page of it that was read last.
struct Column {
    /// Absent where the file has no such column: then all values are 0.
    entry: Option<Arc<ColumnEntry>>,
    /// The value of every row, if the zone map says so: such a page may claim all rows of the file.
    constant: Option<u64>,
    first_row: u64,
    values: Vec<u64>,
}

impl Column {
    fn new(file: &MeguriFile, id: u16) -> Self {
        let entry = file.footer().column(Table::Urls, id).cloned();
        let constant = match &entry {
            None => Some(0),
            Some(entry) => entry.zone.filter(|(min, max)| min == max).map(|(min, _)| min),
        };
        Column { entry, constant, first_row: 0, values: Vec::new() }
    }

    fn pages(&self) -> &[PageEntry] {
        self.entry.as_ref().map_or(&[], |entry| &entry.pages)
    }

    /// The values of a page.
    fn load(&mut self, file: &MeguriFile, number: usize) -> Result<&[u64]> {
        if let Some(entry) = self.entry.clone()
            && let Some(page) = entry.pages.get(number)
            && (self.values.is_empty() || self.first_row != page.first_row)
        {
            let opened = open_page(&file.src, page, None)?;
            self.values = page_values(&opened, page, entry.width)?;
            self.first_row = page.first_row;
        }
        Ok(&self.values)
    }

    fn value(&mut self, file: &MeguriFile, row: u64) -> Result<u64> {
        if let Some(value) = self.constant {
            return Ok(value);
        }
        let place = |first: u64| row.checked_sub(first).and_then(|n| usize::try_from(n).ok());
        if let Some(value) = place(self.first_row).and_then(|n| self.values.get(n)) {
            return Ok(*value);
        }
        let number = self.entry.as_ref().and_then(|entry| entry.page_of(row));
        if let Some(number) = number {
            self.load(file, number)?;
        }
        let found = number.and_then(|_| place(self.first_row)).and_then(|n| self.values.get(n));
        found.copied().ok_or_else(|| file.at(file.header().footer_offset).corrupt("a row of the table", row))
    }
}

impl MeguriFile {
    /// Starts to read the columns `ids`. One that the file lacks reads as 0.
    pub fn scan(&self, ids: &[u16]) -> Scan {
        Scan {
            file: self.clone(),
            hosts: Column::new(self, HOST_KEY),
            paths: Column::new(self, PATH_KEY),
            columns: ids.iter().map(|id| Column::new(self, *id)).collect(),
            arena: None,
        }
    }
}

fn zone(page: &PageEntry) -> (u64, u64) {
    page.zone.unwrap_or((0, u64::MAX))
}

impl Scan {
    /// The file's name, for messages.
    pub fn path_of_file(&self) -> &std::path::Path {
        self.file.path()
    }

    /// The rows of a host.
    pub fn rows_of_host(&mut self, key: u64) -> Result<Range<u64>> {
        let pages = self.hosts.pages();
        let first = pages.partition_point(|page| zone(page).1 < key);
        let last = pages.partition_point(|page| zone(page).0 <= key);
        if first >= last {
            return Ok(0..0);
        }
        let values = self.hosts.load(&self.file, first)?;
        let from = values.partition_point(|v| *v < key) as u64;
        let start = self.hosts.first_row + from;
        let values = self.hosts.load(&self.file, last - 1)?;
        let to = values.partition_point(|v| *v <= key) as u64;
        let end = self.hosts.first_row + to;
        Ok(if start < end { start..end } else { 0..0 })
    }

    /// The row of a key.
    pub fn find(&mut self, key: UrlKey) -> Result<Option<u64>> {
        let rows = self.rows_of_host(key.host)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let pages = self.paths.pages();
        let first = pages.partition_point(|page| page.rows().end <= rows.start);
        let last = pages.partition_point(|page| page.first_row < rows.end);
        for number in first..last {
            let wanted = |page: &PageEntry| zone(page).0 <= key.path && key.path <= zone(page).1;
            let Some(page) = self.paths.pages().get(number).filter(|page| wanted(page)) else { continue };
            let from = rows.start.saturating_sub(page.first_row) as usize;
            let to = (rows.end - page.first_row).min(page.num_values) as usize;
            let values = self.paths.load(&self.file, number)?;
            let Some(part) = values.get(from..to) else { continue };
            let place = part.partition_point(|v| *v < key.path);
            if part.get(place) == Some(&key.path) {
                return Ok(Some(self.paths.first_row + (from + place) as u64));
            }
        }
        Ok(None)
    }

    /// The path key of a row.
    pub fn path(&mut self, row: u64) -> Result<u64> {
        self.paths.value(&self.file, row)
    }

    /// The value of the `column`-th of the columns that were asked for.
    pub fn value(&mut self, column: usize, row: u64) -> Result<u64> {
        match self.columns.get_mut(column) {
            Some(column) => column.value(&self.file, row),
            None => Ok(0),
        }
    }

    /// The text of a reference; empty for none and for one that leads nowhere.
    pub fn text(&mut self, reference: u64) -> Result<Bytes> {
        if reference == 0 {
            return Ok(Bytes::new());
        }
        let arena = match self.arena.take() {
            Some(arena) => arena,
            None => self.file.arena()?,
        };
        let text = self.arena.insert(arena).get(reference)?;
        Ok(match text {
            crate::arena::Text::Some(bytes) => bytes,
            crate::arena::Text::None | crate::arena::Text::Dangling => Bytes::new(),
        })
    }

    /// Hands over every key in order with the value of the first column that was asked for.
    pub fn keys(&mut self, each: &mut dyn FnMut(UrlKey, u64)) -> Result<()> {
        for row in 0..self.file.header().url_count {
            let key = UrlKey { host: self.hosts.value(&self.file, row)?, path: self.paths.value(&self.file, row)? };
            let value = self.value(0, row)?;
            each(key, value);
        }
        Ok(())
    }
}
