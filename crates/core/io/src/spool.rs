//! Bytes that stay in memory while they are few and move to an unnamed file when they are many.

use crate::Result;
use crate::fs::{File, Fs};
use crate::publish::create_temp;
use crate::read_at::{self, Cursor, ReadAt};
use bytes::Bytes;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Takes bytes; [`SpoolWriter::finish`] makes them readable any number of times.
///
/// The file's name is removed as soon as the file exists, so nothing is left behind however the process ends.
#[derive(Debug)]
pub struct SpoolWriter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    threshold: usize,
    memory: Vec<u8>,
    file: Option<Box<dyn File>>,
    /// Bytes already in `file`.
    spilled: u64,
}

impl SpoolWriter {
    /// Gathers bytes for the file before each write to it.
    const WRITE_BYTES: usize = 256 * 1024;

    /// Keeps up to `threshold` bytes in memory; past that, all of them go to a file in `dir`.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path, threshold: usize) -> Self {
        SpoolWriter { fs, dir: dir.into(), threshold, memory: Vec::new(), file: None, spilled: 0 }
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.spilled + self.memory.len() as u64
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the bytes have moved to a file.
    pub fn is_spilled(&self) -> bool {
        self.file.is_some()
    }

    /// Takes all of `bytes`, with this crate's error.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let room = if self.file.is_some() { self.threshold.min(Self::WRITE_BYTES) } else { self.threshold };
        if self.memory.len() + bytes.len() > room {
            self.spill()?;
            if bytes.len() >= Self::WRITE_BYTES {
                return self.write_out(bytes);
            }
        }
        self.memory.extend_from_slice(bytes);
        if self.file.is_some() && self.memory.len() > room {
            self.spill()?;
        }
        Ok(())
    }

    /// Ends writing.
    pub fn finish(mut self) -> Result<Spool> {
        if self.file.is_some() {
            self.spill()?;
        }
        Ok(match self.file.take() {
            None => Spool { inner: Arc::new(Inner::Memory(std::mem::take(&mut self.memory).into())) },
            Some(file) => Spool { inner: Arc::new(Inner::File { file, len: self.spilled }) },
        })
    }

    fn spill(&mut self) -> Result<()> {
        let memory = std::mem::take(&mut self.memory);
        self.write_out(&memory)?;
        // Past the threshold the buffer only gathers; a large one is not needed again.
        self.memory = memory;
        self.memory.clear();
        self.memory.shrink_to(Self::WRITE_BYTES);
        Ok(())
    }

    fn write_out(&mut self, bytes: &[u8]) -> Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let (path, file) = create_temp(&*self.fs, &self.dir, OsStr::new("spool"))?;
                self.fs.remove_file(&path)?;
                file
            }
        };
        let file = self.file.insert(file);
        file.write_at(self.spilled, bytes)?;
        self.spilled += bytes.len() as u64;
        Ok(())
    }
}

impl Write for SpoolWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.put(buf)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
enum Inner {
    Memory(Bytes),
    File { file: Box<dyn File>, len: u64 },
}

/// Finished bytes; clones share them. A file behind it goes with the last clone.
#[derive(Debug, Clone)]
pub struct Spool {
    inner: Arc<Inner>,
}

impl Spool {
    /// A spool of bytes that already are in memory.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Spool { inner: Arc::new(Inner::Memory(bytes)) }
    }

    /// Reads from the start; any number of readers may exist at once.
    pub fn reader(&self) -> SpoolReader {
        Cursor::new(self.clone())
    }

    /// The bytes themselves if they are in memory.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &*self.inner {
            Inner::Memory(bytes) => Some(bytes),
            Inner::File { .. } => None,
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        ReadAt::len(self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ReadAt for Spool {
    fn name(&self) -> &Path {
        match &*self.inner {
            Inner::Memory(_) => Path::new("(spool)"),
            Inner::File { file, .. } => file.path(),
        }
    }

    fn len(&self) -> u64 {
        match &*self.inner {
            Inner::Memory(bytes) => bytes.len() as u64,
            Inner::File { len, .. } => *len,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match &*self.inner {
            Inner::Memory(bytes) => read_at::copy_from(self.name(), bytes, offset, buf),
            Inner::File { file, .. } => file.read_exact_at(offset, buf),
        }
    }
}

/// Reads a [`Spool`] from the start.
pub type SpoolReader = Cursor<Spool>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealFs;
    use crate::fault::{Failure, Fault, FaultFs};
    use proptest::prelude::*;
    use std::io::{Read, Seek, SeekFrom};

    fn read_all(spool: &Spool) -> Vec<u8> {
        let mut out = Vec::new();
        spool.reader().read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn spills_past_the_threshold_and_leaves_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = SpoolWriter::new(Arc::new(RealFs), dir.path(), 10);
        writer.write_all(b"0123456789").unwrap();
        assert!(!writer.is_spilled());
        writer.write_all(b"a").unwrap();
        assert!(writer.is_spilled());
        assert_eq!(writer.len(), 11);
        let spool = writer.finish().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(spool.as_bytes().is_none());
        let clone = spool.clone();
        drop(spool);
        assert_eq!(read_all(&clone), b"0123456789a");
        assert_eq!(read_all(&clone), b"0123456789a", "any number of times");
        let mut reader = clone.reader();
        reader.seek(SeekFrom::End(-2)).unwrap();
        let mut two = String::new();
        reader.read_to_string(&mut two).unwrap();
        assert_eq!(two, "9a");
    }

    #[test]
    fn small_ones_never_touch_the_disk() {
        let disk = FaultFs::new();
        let mut writer = SpoolWriter::new(disk.shared(), Path::new("/"), 10);
        assert!(writer.is_empty());
        writer.put(b"small").unwrap();
        let spool = writer.finish().unwrap();
        assert_eq!(spool.as_bytes().unwrap(), &b"small"[..]);
        assert_eq!((spool.len(), spool.is_empty(), disk.counts().ops), (5, false, 0));
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_nothing() {
        let disk = FaultFs::new();
        disk.fail(Fault::new(Failure::NoSpace).on(crate::Op::Write));
        let mut writer = SpoolWriter::new(disk.shared(), Path::new("/"), 10);
        let err = writer.write_all(&[0; 100]).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::StorageFull);
        drop(writer);
        assert!(disk.files().is_empty());
    }

    #[test]
    fn memory_stays_near_the_threshold() {
        let disk = FaultFs::new();
        let mut writer = SpoolWriter::new(disk.shared(), Path::new("/"), 1000);
        for _ in 0..1000 {
            writer.put(&[7; 100]).unwrap();
            assert!(writer.memory.capacity() <= 2000, "{}", writer.memory.capacity());
        }
        assert_eq!(writer.finish().unwrap().len(), 100_000);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..20),
            threshold in 0usize..2000,
        ) {
            let mut writer = SpoolWriter::new(FaultFs::new().shared(), Path::new("/"), threshold);
            for piece in &pieces {
                writer.put(piece).unwrap();
            }
            let whole = pieces.concat();
            prop_assert_eq!(writer.is_spilled(), whole.len() > threshold);
            let spool = writer.finish().unwrap();
            prop_assert_eq!(spool.len(), whole.len() as u64);
            prop_assert_eq!(read_all(&spool), whole);
        }
    }
}
