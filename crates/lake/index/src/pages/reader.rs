//! Reads the table of one row group.

use super::{FOOTER, HEADER, MAGIC, MAX_TABLE, VERSION};
use crate::paged::PagedReader;
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use trawl_io::slice::{SliceError, SliceReader};

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
        let file = PagedReader::open(source)?;
        let name = file.name();
        let len = file.len();
        let footer_at = len.checked_sub(FOOTER).filter(|at| *at >= HEADER);
        let footer_at = footer_at.ok_or_else(|| Error::corrupt(name, 0, "a header and a footer", len))?;
        let [header, footer] = file.read_many(&[0..HEADER, footer_at..len])?.try_into().unwrap_or_default();
        let mut r = SliceReader::new(&header);
        let found = (r.array::<4>("magic"), r.u32("version"));
        if found != (Ok(MAGIC), Ok(VERSION)) {
            return Err(Error::corrupt(name, 0, "magic \"TPGS\", version 1", format!("{found:02x?}")));
        }
        let (starts_at, files, groups) = parse_footer(&footer, footer_at).map_err(|e| e.in_file(name))?;
        let files_at = starts_at.checked_add((u64::from(groups) + 1) * 8);
        let end = files_at.and_then(|at| at.checked_add((u64::from(files) + 1) * 4));
        let Some(files_at) = files_at.filter(|_| starts_at >= HEADER && end == Some(footer_at)) else {
            let found = format!("{groups} groups of {files} files at {starts_at} of {len} bytes");
            return Err(Error::corrupt(name, footer_at, "tables of offsets before the footer", found));
        };
        Ok(Self { file, starts_at, files_at, files, groups })
    }

    /// Files it has tables of.
    pub fn files(&self) -> u32 {
        self.files
    }

    /// Row groups of all files.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.file.name()
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.file.file_len()
    }

    /// The page tables of row groups, in the order asked.
    pub fn tables(&self, wanted: &[(u32, u32)]) -> Result<Vec<Bytes>> {
        let firsts: Vec<_> = wanted.iter().map(|(file, _)| self.file_entry(*file)).collect::<Result<_>>()?;
        let mut starts = Vec::with_capacity(wanted.len());
        for ((file_id, group), bytes) in wanted.iter().zip(self.file.read_many(&firsts)?) {
            let mut r = SliceReader::new(&bytes);
            let mut number = || r.u32("first row group").map_err(|e| e.in_file(self.name()));
            let (first, next) = (number()?, number()?);
            let index = first.checked_add(*group).filter(|index| *index < next && next <= self.groups);
            let Some(index) = index else {
                let found = format!("row group {group} of file {file_id}");
                return Err(Error::corrupt(self.name(), self.files_at, "a row group of the segment", found));
            };
            let at = self.starts_at + u64::from(index) * 8;
            starts.push(at..at + 16);
        }
        let mut ranges = Vec::with_capacity(wanted.len());
        for (range, bytes) in starts.iter().zip(self.file.read_many(&starts)?) {
            let mut r = SliceReader::at(&bytes, range.start);
            let mut number = || r.u64("table offset").map_err(|e| e.in_file(self.name()));
            let (start, end) = (number()?, number()?);
            if start < HEADER || end < start || end > self.starts_at || end - start > MAX_TABLE {
                let found = format!("{start}..{end}");
                return Err(Error::corrupt(self.name(), range.start, "tables in order after the header", found));
            }
            ranges.push(start..end);
        }
        self.file.read_many(&ranges)
    }

    /// Row groups of a file.
    pub fn groups_of(&self, file_id: u32) -> Result<u32> {
        let bytes = self.file.read(self.file_entry(file_id)?)?;
        let mut r = SliceReader::new(&bytes);
        let mut number = || r.u32("first row group").map_err(|e| e.in_file(self.name()));
        let (first, next) = (number()?, number()?);
        next.checked_sub(first).filter(|_| next <= self.groups).ok_or_else(|| {
            Error::corrupt(
                self.name(),
                self.files_at,
                "row groups that rise from file to file",
                format!("{first}, {next}"),
            )
        })
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.file.check_all(each);
    }

    fn file_entry(&self, file_id: u32) -> Result<Range<u64>> {
        if file_id >= self.files {
            let found = format!("file {file_id} of {}", self.files);
            return Err(Error::corrupt(self.name(), self.files_at, "a file of the segment", found));
        }
        let at = self.files_at + u64::from(file_id) * 4;
        Ok(at..at + 8)
    }
}

fn parse_footer(footer: &[u8], at: u64) -> std::result::Result<(u64, u32, u32), SliceError> {
    let mut r = SliceReader::at(footer, at);
    Ok((r.u64("offset of the offsets")?, r.u32("file count")?, r.u32("row group count")?))
}
