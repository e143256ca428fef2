//! Reading files.

use super::{FileHandle, Filesys};
use crate::hindex::Found;
use crate::{Error, Result};

impl Filesys {
    /// Reads from `offset` on; fewer bytes than `buf` holds at the end of the file.
    pub fn read_file(&self, file: &FileHandle, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(file.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buf.len());
        let mut done = 0;
        let first = file.extents.partition_point(|e| e.start + e.len <= offset);
        for extent in file.extents.iter().skip(first) {
            let Some(rest) = buf.get_mut(done..wanted).filter(|rest| !rest.is_empty()) else { break };
            let inside = (offset + done as u64).saturating_sub(extent.start);
            let n = usize::try_from(extent.len - inside).unwrap_or(usize::MAX).min(rest.len());
            self.data.read_raw(extent.at + inside, rest.get_mut(..n).unwrap_or_default())?;
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
        let bytes = usize::try_from(len).ok().filter(|_| len <= limit);
        let bytes = bytes.ok_or_else(|| Error::TooLong { path: self.paths.data(), what: "file", len, limit })?;
        let mut contents = vec![0; bytes];
        let n = self.read_file(file, 0, &mut contents)?;
        contents.truncate(n);
        Ok(contents)
    }

    /// What is known of a file without opening it.
    pub fn stat(&self, name: &[u8]) -> Result<super::FileInfo> {
        match self.find(name)? {
            Found::Here { what, .. } => Ok(what.into()),
            Found::Absent { .. } | Found::Full => Err(self.not_found(name)),
        }
    }
}
