//! A host's rows, and one URL.

use super::MeguriFile;
use super::column::{open_page, page_values};
use super::row::Row;
use crate::error::Result;
use crate::footer::{ColumnEntry, PageEntry};
use crate::schema::Table;
use std::ops::Range;
use trawl_url::key::UrlKey;

const HOST_KEY: u16 = 0;
const PATH_KEY: u16 = 1;

impl MeguriFile {
    /// The rows of a range of host keys, both ends included. At most two pages of host keys are read, none if the
    /// header or the zone maps exclude the range.
    pub fn rows_of_hosts(&self, lo: u64, hi: u64) -> Result<Range<u64>> {
        let column = self.column(Table::Urls, HOST_KEY)?;
        let zone = |page: &PageEntry| page.zone.unwrap_or((0, u64::MAX));
        let first = column.pages.partition_point(|page| zone(page).1 < lo);
        let after = column.pages.partition_point(|page| zone(page).0 <= hi);
        let Some(pages) = column.pages.get(first..after).filter(|pages| !pages.is_empty() && lo <= hi) else {
            return Ok(0..0);
        };
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { return Ok(0..0) };
        // Pages in between hold nothing else; the outer ones may begin or end with other hosts.
        let mut wanted: Vec<&PageEntry> = Vec::new();
        wanted.extend((zone(first).0 < lo).then_some(first));
        wanted.extend((zone(last).1 > hi).then_some(last));
        wanted.dedup_by_key(|page| page.offset);
        let read = self.pages_values(&column, &wanted)?;
        let place = |page: &PageEntry, before: &dyn Fn(u64) -> bool| {
            let values = read.iter().find(|(entry, _)| entry.offset == page.offset).map(|(_, values)| values);
            values.map(|values| page.first_row + values.partition_point(|v| before(*v)) as u64)
        };
        let start = if zone(first).0 < lo { place(first, &|v| v < lo) } else { None };
        let end = if zone(last).1 > hi { place(last, &|v| v <= hi) } else { None };
        let rows = start.unwrap_or(first.first_row)..end.unwrap_or(last.rows().end);
        Ok(if rows.is_empty() { 0..0 } else { rows })
    }

    /// The rows of one host key.
    pub fn rows_of_host(&self, host_key: u64) -> Result<Range<u64>> {
        self.rows_of_hosts(host_key, host_key)
    }

    /// The row of a key, if the file has it. Reads key columns only.
    pub fn find(&self, key: UrlKey) -> Result<Option<u64>> {
        let rows = self.rows_of_host(key.host)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let column = self.column(Table::Urls, PATH_KEY)?;
        // Within the host path keys ascend, so of the pages that lie inside it one at most can have the key; on its
        // first and last page other hosts widen the zone.
        let may = |page: &&PageEntry| {
            let overlaps = page.first_row < rows.end && page.rows().end > rows.start;
            overlaps && page.zone.is_none_or(|(min, max)| min <= key.path && key.path <= max)
        };
        let wanted: Vec<&PageEntry> = column.pages.iter().filter(may).collect();
        for (entry, values) in self.pages_values(&column, &wanted)? {
            let from = rows.start.saturating_sub(entry.first_row) as usize;
            let to = (rows.end - entry.first_row).min(entry.num_values) as usize;
            let Some(part) = values.get(from..to) else { continue };
            let place = part.partition_point(|v| *v < key.path);
            if part.get(place) == Some(&key.path) {
                return Ok(Some(entry.first_row + (from + place) as u64));
            }
        }
        Ok(None)
    }

    /// The row of a key with its texts.
    pub fn get(&self, key: UrlKey) -> Result<Option<Row>> {
        match self.find(key)? {
            Some(row) => Ok(self.read_rows(&[row])?.pop()),
            None => Ok(None),
        }
    }

    fn pages_values<'a>(
        &self,
        column: &ColumnEntry,
        pages: &[&'a PageEntry],
    ) -> Result<Vec<(&'a PageEntry, Vec<u64>)>> {
        let ranges: Vec<_> = pages.iter().map(|p| p.offset..p.offset.saturating_add(p.byte_length)).collect();
        let mut found = Vec::new();
        for (entry, bytes) in pages.iter().zip(self.src.read_ranges(&ranges)?) {
            let page = open_page(&self.src, entry, Some(bytes))?;
            found.push((*entry, page_values(&page, entry, column.width)?));
        }
        Ok(found)
    }
}
