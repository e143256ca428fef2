//! Reads the table of one row group.

use super::{FOOTER, HEADER, MAGIC, MAX_TABLE, VERSION};
use crate::paged::PagedReader;
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::ops::Range;
use trawl_io::slice::SliceReader;

/// An open file.
pub struct Pages {
    file: PagedReader,
    starts_at: u64,
    files_at: u64,
    files: u32,
    groups: u32,
}

impl Pages {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        let what = "magic \"TPGS\", version 1";
        let (file, footer_at, footer) = PagedReader::open_framed(source, MAGIC, VERSION, what, FOOTER)?;
        let mut r = SliceReader::at(&footer, footer_at);
        let numbers = || Ok((r.u64("offset of the offsets")?, r.u32("file count")?, r.u32("row group count")?));
        let (starts_at, files, groups) = file.parsed(numbers)?;
        let files_at = starts_at.checked_add((u64::from(groups) + 1) * 8);
        let end = files_at.and_then(|at| at.checked_add((u64::from(files) + 1) * 4));
        let Some(files_at) = files_at.filter(|_| starts_at >= HEADER && end == Some(footer_at)) else {
            let found = format!("{groups} groups of {files} files at {starts_at} of {} bytes", file.len());
            return Err(Error::corrupt(file.name(), footer_at, "tables of offsets before the footer", found));
        };
        Ok(Self { file, starts_at, files_at, files, groups })
    }

    /// Files it has tables of.
    pub fn files(&self) -> u32 {
        self.files
    }

    /// The file beneath.
    pub fn file(&self) -> &PagedReader {
        &self.file
    }

    /// The page tables of row groups, given as (file, row group), in the order asked.
    pub fn tables(&self, wanted: &[(u32, u32)]) -> Result<Vec<Bytes>> {
        let files: Vec<_> = wanted.iter().map(|(file, _)| self.file_entry(*file)).collect::<Result<_>>()?;
        let mut starts = Vec::with_capacity(wanted.len());
        for ((file_id, group), bytes) in wanted.iter().zip(self.file.read_many(&files)?) {
            let groups = self.groups(&bytes)?;
            let index = groups.start.checked_add(*group).filter(|index| groups.contains(index));
            let Some(index) = index else {
                let found = format!("row group {group} of file {file_id}");
                return Err(Error::corrupt(self.file.name(), self.files_at, "a row group of the segment", found));
            };
            let at = self.starts_at + u64::from(index) * 8;
            starts.push(at..at + 16);
        }
        let mut ranges = Vec::with_capacity(wanted.len());
        for (range, bytes) in starts.iter().zip(self.file.read_many(&starts)?) {
            let mut r = SliceReader::at(&bytes, range.start);
            let (start, end) = self.file.parsed(|| Ok((r.u64("table offset")?, r.u64("table offset")?)))?;
            if start < HEADER || end < start || end > self.starts_at || end - start > MAX_TABLE {
                let found = format!("{start}..{end}");
                return Err(Error::corrupt(self.file.name(), range.start, "tables in order after the header", found));
            }
            ranges.push(start..end);
        }
        self.file.read_many(&ranges)
    }

    /// Row groups of a file.
    pub fn groups_of(&self, file_id: u32) -> Result<u32> {
        let Range { start, end } = self.groups(&self.file.read(self.file_entry(file_id)?)?)?;
        Ok(end - start)
    }

    /// The row groups of a file, counted over all files, by its entry.
    fn groups(&self, entry: &[u8]) -> Result<Range<u32>> {
        let mut r = SliceReader::new(entry);
        let (first, next) = self.file.parsed(|| Ok((r.u32("first row group")?, r.u32("first row group")?)))?;
        if next < first || next > self.groups {
            let found = format!("{first}, {next}");
            return Err(Error::corrupt(
                self.file.name(),
                self.files_at,
                "row groups that rise from file to file",
                found,
            ));
        }
        Ok(first..next)
    }

    fn file_entry(&self, file_id: u32) -> Result<Range<u64>> {
        if file_id >= self.files {
            let found = format!("file {file_id} of {}", self.files);
            return Err(Error::corrupt(self.file.name(), self.files_at, "a file of the segment", found));
        }
        let at = self.files_at + u64::from(file_id) * 4;
        Ok(at..at + 8)
    }
}
