//! Reading files.

use super::{FileHandle, Filesys};
use crate::hindex::Found;
use crate::num::index;
use crate::{Error, Result};
use std::io::{self, Read};

impl Filesys {
    /// Reads from `offset` on; fewer bytes than `buf` holds at the end of the file.
    pub fn read_file(&self, file: &FileHandle, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = index(file.size().saturating_sub(offset)).min(buf.len());
        let mut done = 0;
        let first = file.extents.partition_point(|e| e.start + e.len <= offset);
        for extent in file.extents.iter().skip(first) {
            let Some(rest) = buf.get_mut(done..wanted).filter(|rest| !rest.is_empty()) else { break };
            let inside = (offset + done as u64).saturating_sub(extent.start);
            let n = index(extent.len - inside).min(rest.len());
            self.data.read_raw(extent.at + inside, rest.split_at_mut(n).0)?;
            done += n;
        }
        Ok(done)
    }

    /// A whole file, if it is not above the limit of the settings.
    pub fn read_all(&self, name: &[u8]) -> Result<Vec<u8>> {
        let file = self.open_file(name, "")?;
        self.read_handle(&file)
    }

    pub(crate) fn read_handle(&self, file: &FileHandle) -> Result<Vec<u8>> {
        let (len, limit) = (file.size(), self.settings.max_value_bytes);
        if len > limit {
            return Err(Error::TooLong { path: self.paths.data(), what: "file", len, limit });
        }
        let mut contents = vec![0; index(len)];
        let n = self.read_file(file, 0, &mut contents)?;
        contents.truncate(n);
        Ok(contents)
    }

    /// Reads an open file from front to back.
    pub fn reader(&self, file: FileHandle) -> FileReader<'_> {
        FileReader { fs: self, at: 0, end: file.size(), file }
    }

    /// What is known of a file without opening it.
    pub fn stat(&self, name: &[u8]) -> Result<super::FileInfo> {
        match self.find(name)? {
            Found::Here { what, .. } => Ok(what.into()),
            Found::Absent { .. } | Found::Full => Err(self.not_found(name)),
        }
    }
}

/// Reads the bytes of an open file.
#[derive(Debug)]
pub struct FileReader<'a> {
    fs: &'a Filesys,
    file: FileHandle,
    at: u64,
    end: u64,
}

impl FileReader<'_> {
    /// Only `len` bytes from `offset` on, as far as there are so many.
    #[must_use]
    pub fn range(mut self, offset: u64, len: u64) -> Self {
        self.end = offset.saturating_add(len).min(self.file.size());
        self.at = offset.min(self.end);
        self
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wanted = index(self.end - self.at).min(buf.len());
        let n = self.fs.read_file(&self.file, self.at, buf.split_at_mut(wanted).0).map_err(io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}
