//! Single records by their place.

use super::{ReaderBuilder, Record, WarcReader};
use crate::error::{Error, Result};
use crate::limits::Limits;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_model::{Place, Reopen};

/// A file whose records are read by offset.
#[derive(Clone)]
pub struct RecordFile {
    file: Arc<dyn ReadAt>,
    limits: Limits,
    lenient: bool,
}

impl RecordFile {
    /// Reads records of `file`.
    pub fn new(file: Arc<dyn ReadAt>) -> Self {
        RecordFile { file, limits: Limits::default(), lenient: false }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts oddities.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// A reader that stands at the record at `offset`, or at the `index`-th record of the member there.
    pub fn reader_at(&self, offset: u64, index: u32) -> Result<WarcReader> {
        let options = ReaderBuilder { limits: self.limits, lenient: self.lenient, on_warning: None };
        let mut reader = options.over_from(self.file.clone(), offset);
        reader.prepare_for_offset(offset)?;
        for _ in 0..index {
            if reader.next_record()?.is_none() {
                break;
            }
        }
        Ok(reader)
    }

    /// Reads the record at `offset` (the `index`-th of the member there) and gives it to `each`.
    pub fn record_at<T>(&self, offset: u64, index: u32, each: impl FnOnce(Record<'_>) -> Result<T>) -> Result<T> {
        let mut reader = self.reader_at(offset, index)?;
        let at = reader.container.at();
        match reader.next_record()? {
            Some(record) => each(record),
            None => Err(Error::corrupt(at, "a record", "the end of the file")),
        }
    }

    /// The part of a block from `skip` on, readable any number of times without being held.
    pub(crate) fn reopen(&self, place: &Place, skip: u64, len_bytes: u64) -> Arc<dyn Reopen> {
        Arc::new(BlockPart { file: self.clone(), offset: place.offset, index: place.index, skip, len_bytes })
    }
}

struct BlockPart {
    file: RecordFile,
    offset: u64,
    index: u32,
    skip: u64,
    len_bytes: u64,
}

impl Reopen for BlockPart {
    fn open(&self) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        let mut reader = self.file.reader_at(self.offset, self.index).map_err(Error::into_io)?;
        {
            let mut record = match reader.next_record().map_err(Error::into_io)? {
                Some(record) => record,
                None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            };
            std::io::copy(&mut std::io::Read::take(&mut record, self.skip), &mut std::io::sink())?;
        }
        Ok(Box::new(OwnedBlock { reader, left: self.len_bytes }))
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

/// A reader in the middle of a block.
struct OwnedBlock {
    reader: WarcReader,
    left: u64,
}

impl std::io::Read for OwnedBlock {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let got = Record { reader: &mut self.reader }.read(buf.get_mut(..n).unwrap_or_default())?;
        self.left -= got as u64;
        Ok(got)
    }
}

impl WarcReader {
    /// In the middle of a zstd file the dictionary, if there is one, is at the front.
    fn prepare_for_offset(&mut self, offset: u64) -> Result<()> {
        if offset > 0 && self.container.needs_front()? {
            self.container.read_front()?;
            self.container.seek(offset);
        }
        Ok(())
    }
}
