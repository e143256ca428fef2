//! `.NAME.crc` sidecars, which Hadoop's local file system writes and checks.
//!
//! ```text
//!  off size field
//!   0   4   "crc" and a zero byte
//!   4   4   bytes per checksum, 512 unless configured
//!   8   4   CRC-32 (zlib's) of the first so many bytes of the file
//!  12   4   of the next …, one for each started chunk
//! ```
//! A file without a sidecar is read unchecked. A sidecar that does not fit its file makes Java fail, so a writer must
//! replace or remove it.

use crate::{Error, Result};
use bytes::Bytes;
use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_io::read_at::FileReader;
use trawl_io::{AtomicFile, Fs, ReadAt};

const MAGIC: [u8; 4] = *b"crc\0";
const HEADER: u64 = 8;
/// Bytes per checksum that this crate writes: Hadoop's default.
pub const CHUNK: usize = 512;
/// The most bytes per checksum that is believed; a chunk is read whole to be checked.
const MAX_CHUNK: u32 = 16 << 20;

/// The sidecar's path: `.data.crc` beside `data`.
pub fn sidecar(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".crc");
    path.with_file_name(name)
}

/// Sums that are kept together for lookups: those of half a MiB of data, usually.
const SUMS_BYTES: u64 = 4096;
/// So many of those are kept: 4 MiB, the sums of 512 MiB.
const MAX_KEPT: usize = 1024;

/// A file whose every read is checked against its sidecar. Sums are read as they are needed: those of a large file would
/// not fit into memory. Those of small reads are kept, up to a bound: lookups come back, and each would cost two reads.
#[derive(Debug)]
pub struct CheckedFile<R, S> {
    inner: R,
    sums: S,
    chunk: u64,
    kept: Mutex<HashMap<u64, Bytes>>,
}

impl<R: ReadAt, S: ReadAt> CheckedFile<R, S> {
    /// Checks reads of `inner` by its sidecar `sums`.
    pub fn new(inner: R, sums: S) -> Result<Self> {
        let head = sums.read_range(0..HEADER.min(sums.len()))?;
        let chunk = match head.first_chunk::<8>() {
            Some([b'c', b'r', b'c', 0, a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]),
            _ => {
                let expected = "\"crc\" with a zero byte and a chunk size";
                return Err(Error::corrupt(sums.name(), 0, expected, format!("{:02x?}", &*head)));
            }
        };
        if chunk == 0 || chunk > MAX_CHUNK {
            let expected = format!("1 to {MAX_CHUNK} bytes a checksum");
            return Err(Error::corrupt(sums.name(), 4, expected, chunk.to_string()));
        }
        let wanted = HEADER + 4 * inner.len().div_ceil(u64::from(chunk));
        if sums.len() != wanted {
            let expected = format!("{wanted} bytes for a file of {}", inner.len());
            return Err(Error::corrupt(sums.name(), 0, expected, format!("{} bytes", sums.len())));
        }
        Ok(CheckedFile { inner, sums, chunk: u64::from(chunk), kept: Mutex::default() })
    }

    /// Bytes per checksum.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk
    }

    /// Bytes of the sidecar.
    fn sums_in(&self, range: Range<u64>) -> trawl_io::Result<Bytes> {
        let block = range.start / SUMS_BYTES;
        let start = block * SUMS_BYTES;
        if range.end > start + SUMS_BYTES || range.end - range.start > SUMS_BYTES / 16 {
            return self.sums.read_range(range);
        }
        let inside = (range.start - start) as usize..(range.end - start) as usize;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&block).cloned();
        let sums = match kept {
            Some(sums) => sums,
            None => {
                let sums = self.sums.read_range(start..self.sums.len().min(start + SUMS_BYTES))?;
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < MAX_KEPT {
                    kept.insert(block, sums.clone());
                }
                sums
            }
        };
        // A sidecar that got shorter since it was opened.
        if sums.len() < inside.end {
            return self.sums.read_range(range);
        }
        Ok(sums.slice(inside))
    }

    /// Checks whole chunks that begin at `offset`.
    fn check(&self, offset: u64, bytes: &[u8]) -> trawl_io::Result<()> {
        let count = (bytes.len() as u64).div_ceil(self.chunk);
        let first = HEADER + offset / self.chunk * 4;
        let sums = self.sums_in(first..first + count * 4)?;
        let chunks = bytes.chunks(self.chunk as usize).zip(sums.chunks_exact(4));
        for (n, (chunk, sum)) in chunks.enumerate() {
            let actual = crc32fast::hash(chunk);
            if sum != actual.to_be_bytes() {
                return Err(trawl_io::Error::Corrupt {
                    path: self.inner.name().into(),
                    offset: offset + n as u64 * self.chunk,
                    expected: "the checksum of the .crc file",
                    found: format!("{actual:08x} instead of {}", data_encoding::HEXLOWER.encode(sum)),
                });
            }
        }
        Ok(())
    }
}

impl<R: ReadAt, S: ReadAt> ReadAt for CheckedFile<R, S> {
    fn name(&self) -> &Path {
        self.inner.name()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        let whole_end = end.div_ceil(self.chunk).saturating_mul(self.chunk).min(self.len());
        let start = offset - offset % self.chunk;
        if start == offset && (whole_end == end || end > self.len()) {
            self.inner.read_at(offset, buf)?;
            return self.check(offset, buf);
        }
        // A chunk can only be checked whole.
        trawl_io::read_at::check_range(self.name(), self.len(), &(offset..end))?;
        let whole = self.inner.read_range(start..whole_end)?;
        self.check(start, &whole)?;
        let from = (offset - start) as usize;
        if let Some(wanted) = whole.get(from..from + buf.len()) {
            buf.copy_from_slice(wanted);
        }
        Ok(())
    }
}

/// Opens a file, checked if it has a sidecar and `verify` asks for it.
pub fn open(fs: &dyn Fs, path: &Path, verify: bool) -> Result<Arc<dyn ReadAt>> {
    Ok(open_both(fs, path, verify)?.0)
}

/// The file as [`open`] gives it, and the same file unchecked.
pub(crate) fn open_both(fs: &dyn Fs, path: &Path, verify: bool) -> Result<(Arc<dyn ReadAt>, Arc<dyn ReadAt>)> {
    let raw: Arc<dyn ReadAt> = Arc::new(FileReader::open_in(fs, path)?);
    if verify && let Some(sums) = open_sums(fs, path)? {
        return Ok((Arc::new(CheckedFile::new(raw.clone(), sums)?), raw));
    }
    Ok((raw.clone(), raw))
}

fn open_sums(fs: &dyn Fs, path: &Path) -> Result<Option<FileReader>> {
    match FileReader::open_in(fs, &sidecar(path)) {
        Ok(sums) => Ok(Some(sums)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Opens a file with its sidecar; `None` if it has none.
pub fn open_checked(fs: &dyn Fs, path: &Path) -> Result<Option<CheckedFile<FileReader, FileReader>>> {
    let Some(sums) = open_sums(fs, path)? else { return Ok(None) };
    CheckedFile::new(FileReader::open_in(fs, path)?, sums).map(Some)
}

/// A file being written aside, with its sidecar.
#[derive(Debug)]
pub struct CheckedWriter {
    data: AtomicFile,
    sums: Option<AtomicFile>,
    /// Bytes not handed on yet; a whole number of chunks went before them.
    buffer: Vec<u8>,
    fs: Arc<dyn Fs>,
}

/// Bytes gathered before a write, a whole number of chunks.
const BUFFER: usize = 128 * CHUNK;

impl CheckedWriter {
    /// Starts a file that will be published as `path`, with a sidecar unless `sidecar` is false.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, with_sidecar: bool) -> Result<Self> {
        let data = AtomicFile::create(fs, path)?;
        let mut sums = None;
        if with_sidecar {
            let mut file = AtomicFile::create(fs, &sidecar(path))?;
            file.put(&MAGIC)?;
            file.put(&(CHUNK as u32).to_be_bytes())?;
            sums = Some(file);
        }
        Ok(CheckedWriter { data, sums, buffer: Vec::with_capacity(BUFFER), fs: fs.clone() })
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// Bytes written so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.data.position() + self.buffer.len() as u64
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() <= BUFFER {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.put_long(bytes)
    }

    fn put_long(&mut self, mut bytes: &[u8]) -> Result<()> {
        while self.buffer.len() + bytes.len() > BUFFER {
            let (now, later) = bytes.split_at_checked(BUFFER - self.buffer.len()).unwrap_or((bytes, &[]));
            self.buffer.extend_from_slice(now);
            self.flush()?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(sums) = &mut self.sums {
            for chunk in self.buffer.chunks(CHUNK) {
                sums.put(&crc32fast::hash(chunk).to_be_bytes())?;
            }
        }
        self.data.put(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Puts both files in place and returns the length. An old sidecar goes first: between the steps the file has no
    /// sidecar, which every reader accepts, and never one that does not fit.
    pub fn publish(mut self) -> Result<u64> {
        self.flush()?;
        let len = self.data.position();
        match self.fs.remove_file(&sidecar(self.data.path())) {
            Err(e) if !e.is_not_found() => return Err(e.into()),
            _ => {}
        }
        self.data.publish()?;
        if let Some(sums) = self.sums {
            sums.publish()?;
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_io::fault::FaultFs;
    use trawl_io::read_at::Counting;

    fn written(len: usize) -> (Arc<dyn Fs>, Vec<u8>) {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let mut writer = CheckedWriter::create(&fs, Path::new("/data"), true).unwrap();
        for piece in bytes.chunks(777) {
            writer.put(piece).unwrap();
        }
        assert_eq!(writer.publish().unwrap(), len as u64);
        (fs, bytes)
    }

    #[test]
    fn every_range_is_checked() {
        for len in [0, 1, 511, 512, 513, 100_000] {
            let (fs, bytes) = written(len);
            assert_eq!(fs.metadata(Path::new("/.data.crc")).unwrap().len, (8 + 4 * len.div_ceil(512)) as u64);
            let file = open(&*fs, Path::new("/data"), true).unwrap();
            for range in [0..len, len / 3..len / 2, len / 2..len, 0..len.min(512), len..len] {
                let read = file.read_range(range.start as u64..range.end as u64).unwrap();
                assert_eq!(read, bytes[range], "{len}");
            }
            assert!(file.read_range(0..len as u64 + 1).is_err());
        }
    }

    #[test]
    fn small_reads_share_the_sums_they_need() {
        let len = 3_000_000u64;
        let (fs, bytes) = written(len as usize);
        let open = |path: &str| FileReader::open_in(&*fs, Path::new(path)).unwrap();
        let file = CheckedFile::new(open("/data"), Counting::new(open("/.data.crc"))).unwrap();
        for n in 0..2000u64 {
            let at = n.wrapping_mul(2_654_435_761) % (len - 300);
            assert_eq!(file.read_range(at..at + 300).unwrap(), bytes[at as usize..at as usize + 300]);
        }
        // Six blocks of sums; reads across two of them go to the file.
        assert!(file.sums.reads().ranges < 20, "{:?}", file.sums.reads());
    }

    #[test]
    fn a_flipped_bit_is_found_by_whoever_reads_its_chunk() {
        let (fs, bytes) = written(5000);
        let file = fs.open(Path::new("/data"), trawl_io::Mode::Write).unwrap();
        file.write_at(1030, &[bytes[1030] ^ 4]).unwrap();
        let file = open(&*fs, Path::new("/data"), true).unwrap();
        assert!(file.read_range(0..1024).is_ok());
        assert!(file.read_range(1536..5000).is_ok());
        let error = file.read_range(1500..1501).unwrap_err();
        assert!(error.to_string().starts_with("/data@1024: expected the checksum of the .crc file"), "{error}");
        assert!(open(&*fs, Path::new("/data"), false).unwrap().read_range(0..5000).is_ok());
    }

    #[test]
    fn a_sidecar_of_another_length_is_refused() {
        let (fs, _) = written(5000);
        let file = fs.open(Path::new("/data"), trawl_io::Mode::Write).unwrap();
        file.set_len(4000).unwrap();
        let error = open(&*fs, Path::new("/data"), true).err().unwrap();
        assert_eq!(error.to_string(), "/.data.crc@0: expected 40 bytes for a file of 4000, found 48 bytes");
    }
}
