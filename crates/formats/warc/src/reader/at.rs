//! Single records by their place.

use super::{ReaderBuilder, Record, State, WarcReader};
use crate::container::Compression;
use crate::error::{At, Error, Result};
use crate::header::{BEGINNING_BYTES, begins_record};
use crate::limits::Limits;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_io::ReadAt;
use trawl_model::Reopen;

/// Inflated bytes of a member in front of a record from which on a reader is kept for the next record.
const FAR_BYTES: u64 = 1 << 20;
/// Readers that are kept: a body may be read more than once before the next one.
const MAX_PARKED: usize = 2;

/// A file whose records are read by offset.
#[derive(Clone)]
pub struct RecordFile {
    file: Arc<dyn ReadAt>,
    limits: Limits,
    lenient: bool,
    parked: Parked,
}

/// Readers that stand behind a block that was read. Without them each long body of a member with many records would cost
/// inflating everything in front of it.
type Parked = Arc<Mutex<Vec<WarcReader>>>;

impl RecordFile {
    /// Reads records of `file`.
    pub fn new(file: Arc<dyn ReadAt>) -> Self {
        RecordFile { file, limits: Limits::default(), lenient: false, parked: Parked::default() }
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

    /// A reader that stands at the record whose first byte is at `at`.
    fn reader_inside(&self, at: &At) -> Result<WarcReader> {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let stands = |reader: &WarcReader| {
            let here = reader.container.at();
            (here.offset == at.offset).then_some(here.inside).filter(|inside| *inside <= at.inside)
        };
        let nearest = parked.iter().enumerate().filter_map(|(n, reader)| Some((stands(reader)?, n))).max();
        let (skip, mut reader) = match nearest {
            Some((inside, n)) => (at.inside - inside, parked.remove(n)),
            None => (at.inside, self.reader_from(at.offset)?),
        };
        drop(parked);
        reader.skip_inside(skip)?;
        Ok(reader)
    }

    /// Keeps a reader for the next record.
    fn park(&self, mut reader: WarcReader) {
        if reader.compression() == Compression::None || reader.container.at().inside < FAR_BYTES {
            return;
        }
        reader.state = State::Between;
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() == MAX_PARKED {
            parked.remove(0);
        }
        parked.push(reader);
    }

    fn reader_from(&self, offset: u64) -> Result<WarcReader> {
        let options = ReaderBuilder { limits: self.limits, lenient: self.lenient, on_warning: None };
        let mut reader = options.over_from(self.file.clone(), offset);
        reader.prepare_for_offset(offset)?;
        Ok(reader)
    }

    /// A reader that stands at the record at `offset`, or at the `index`-th record that begins in the member there. Where a member
    /// begins in the middle of a record, the first line in it that reads like the start of one is taken for that.
    pub fn reader_at(&self, offset: u64, index: u32) -> Result<WarcReader> {
        let mut reader = self.reader_from(offset)?;
        if offset > 0 && reader.begins_inside_record()? {
            // Lines of an ARC record are known for certain in an ARC file only.
            let mut front = self.reader_from(0)?;
            if matches!(front.next_record(), Ok(Some(_))) && front.is_arc() {
                reader.set_arc();
            }
            if !reader.skip_to_record()? {
                return self.reader_from(offset);
            }
        }
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
    pub(crate) fn reopen(&self, record: &At, skip: u64, len_bytes: u64) -> Arc<dyn Reopen> {
        Arc::new(BlockPart { file: self.clone(), record: record.clone(), skip, len_bytes })
    }
}

struct BlockPart {
    file: RecordFile,
    record: At,
    skip: u64,
    len_bytes: u64,
}

impl Reopen for BlockPart {
    fn open(&self) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        let mut reader = self.file.reader_inside(&self.record).map_err(Error::into_io)?;
        {
            let mut record = match reader.next_record().map_err(Error::into_io)? {
                Some(record) => record,
                None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            };
            std::io::copy(&mut std::io::Read::take(&mut record, self.skip), &mut std::io::sink())?;
        }
        Ok(Box::new(OwnedBlock { file: self.file.clone(), reader: Some(reader), left: self.len_bytes }))
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

/// A reader in the middle of a block.
struct OwnedBlock {
    file: RecordFile,
    /// `None` after an error.
    reader: Option<WarcReader>,
    left: u64,
}

impl Drop for OwnedBlock {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.file.park(reader);
        }
    }
}

impl std::io::Read for OwnedBlock {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let Some(reader) = &mut self.reader else { return Err(std::io::ErrorKind::InvalidData.into()) };
        let read = Record { reader }.read(buf.get_mut(..n).unwrap_or_default());
        match &read {
            Ok(got) => self.left -= *got as u64,
            Err(_) => self.reader = None,
        }
        read
    }
}

impl WarcReader {
    /// Opens the next member; whether it begins with something else than a record.
    fn begins_inside_record(&mut self) -> Result<bool> {
        Ok(self.container.next_member()?
            && self.compression() != Compression::None
            && !begins_record(self.fill(BEGINNING_BYTES)?)
            && !self.arc_record_follows()?)
    }

    /// Passes over `n` inflated bytes; opens the next member if none is open.
    fn skip_inside(&mut self, mut n: u64) -> Result<()> {
        if n > 0 && !self.container.is_open() && !self.container.next_member()? {
            return Ok(());
        }
        while n > 0 {
            let here = self.fill(1)?.len();
            if here == 0 {
                break;
            }
            let step = usize::try_from(n).map_or(here, |n| n.min(here));
            self.container.consume(step);
            n -= step as u64;
        }
        Ok(())
    }

    /// In the middle of a zstd file the dictionary, if there is one, is at the front.
    fn prepare_for_offset(&mut self, offset: u64) -> Result<()> {
        if offset > 0 && self.container.needs_front()? {
            self.container.read_front()?;
            self.container.seek(offset);
        }
        Ok(())
    }
}
