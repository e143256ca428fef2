//! Ranged reads of a mapped file. One of the two files with `unsafe`.

use super::{ReadAt, check_range, copy_from};
use crate::{Error, Op, Result};
use bytes::Bytes;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file mapped into memory: ranges are slices of the map, nothing is copied.
///
/// Only for files that no longer change (everything Trawl publishes). Cutting a mapped file short ends the
/// process with a bus error at the next access; for files others may touch use [`super::FileReader`].
#[derive(Debug, Clone)]
pub struct MapReader {
    path: PathBuf,
    bytes: Bytes,
}

impl MapReader {
    /// Maps a file of the machine.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(Op::Open, path, e))?;
        let len = file.metadata().map_err(|e| Error::io(Op::Metadata, path, e))?.len();
        // An empty file cannot be mapped.
        let bytes = if len == 0 { Bytes::new() } else { Bytes::from_owner(map(&file, path)?) };
        Ok(MapReader { path: path.into(), bytes })
    }

    /// Bytes that are in memory already, under the name of what they are.
    pub fn of_bytes(name: impl Into<PathBuf>, bytes: Bytes) -> Self {
        MapReader { path: name.into(), bytes }
    }

    /// The whole file.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

#[allow(unsafe_code)]
fn map(file: &File, path: &Path) -> Result<memmap2::Mmap> {
    // SAFETY: the map is read-only and private to this handle. Its soundness needs that no one changes or cuts the file
    // while it is mapped; `MapReader` is documented for published files only, which this project never modifies in
    // place (they are written aside and renamed, and removal keeps a mapped inode alive).
    unsafe { memmap2::Mmap::map(file) }.map_err(|e| Error::io(Op::Map, path, e))
}

impl ReadAt for MapReader {
    fn name(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        copy_from(&self.path, &self.bytes, offset, buf)
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = check_range(&self.path, self.len(), &range)?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(start..start + wanted))
    }
}
