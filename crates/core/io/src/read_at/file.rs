//! Ranged reads of an open file.

use super::{ReadAt, check_range};
use crate::fs::{File, Fs, Mode};
use crate::{RealFs, Result};
use std::path::Path;

/// A file whose length is taken when it is opened; later growth is not seen.
#[derive(Debug)]
pub struct FileReader {
    file: Box<dyn File>,
    len: u64,
}

impl FileReader {
    /// Opens a file of the machine.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_in(&RealFs, path)
    }

    /// Opens a file of any file system.
    pub fn open_in(fs: &dyn Fs, path: &Path) -> Result<Self> {
        Self::new(fs.open(path, Mode::Read)?)
    }

    /// Reads an open file.
    pub fn new(file: Box<dyn File>) -> Result<Self> {
        let len = file.len()?;
        Ok(FileReader { file, len })
    }

    /// The first `len_bytes` of an open file, or all of it if it is shorter.
    pub fn up_to(file: Box<dyn File>, len_bytes: u64) -> Result<Self> {
        let len = file.len()?.min(len_bytes);
        Ok(FileReader { file, len })
    }
}

impl ReadAt for FileReader {
    fn name(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.name(), self.len, &(offset..offset.saturating_add(buf.len() as u64)))?;
        self.file.read_exact_at(offset, buf)
    }
}
