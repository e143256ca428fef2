//! Turns a record into one compressed member, whole in memory if it is small, through a spool if it is large.

use crate::container::Compression;
use crate::error::{At, Error, Result};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_io::{Fs, Spool, SpoolWriter};

/// Records up to this size are compressed in one call, which is several times as fast; longer ones stream, so that memory
/// stays bounded. Which way is taken depends on the length alone, so the same record always gives the same bytes.
const WHOLE_BYTES: u64 = 4 << 20;
/// Compressed bytes of a long record kept in memory before they go to a file.
const SPOOL_BYTES: usize = 1 << 20;

/// A member ready to be appended.
#[derive(Debug)]
pub(crate) enum Stored {
    /// In memory.
    Memory(Vec<u8>),
    /// In a temporary file.
    Spooled(Spool),
}

impl Stored {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Stored::Memory(bytes) => bytes.len() as u64,
            Stored::Spooled(spool) => spool.len(),
        }
    }

    pub(crate) fn reader(&self) -> Box<dyn Read + '_> {
        match self {
            Stored::Memory(bytes) => Box::new(bytes.as_slice()),
            Stored::Spooled(spool) => Box::new(spool.reader()),
        }
    }
}

/// How hard a record is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Effort {
    /// As the setting says.
    #[default]
    Usual,
    /// As little as can be: its body is compressed already, and compressing it again gains next to nothing.
    Least,
}

/// Compresses records. Shared by all threads that prepare events.
pub(crate) struct Encoder {
    compression: Compression,
    level: i32,
    fs: Arc<dyn Fs>,
    spool_dir: PathBuf,
    /// Setting up a compressor costs more than compressing a small record. For each effort.
    gzips: [Mutex<Vec<libdeflater::Compressor>>; 2],
    zstds: [Mutex<Vec<zstd::bulk::Compressor<'static>>>; 2],
}

impl Encoder {
    /// Gzip level unless told otherwise: within a few percent of zlib's best at several times its speed.
    pub(crate) const DEFAULT_GZIP_LEVEL: i32 = 6;
    /// Gzip level of a crawl unless told otherwise. Of 394 pages of HTML, 30 KB on average, level 1 takes 0.43 s of CPU for
    /// 84 MB and leaves 27.9 % of the bytes, level 4 0.77 s and 27.0 %, level 6 1.02 s and 26.4 %. Compressing is most of what a
    /// crawl does: a sixteenth more disk costs less than twice the machines.
    pub(crate) const CRAWL_GZIP_LEVEL: i32 = 1;
    /// The level for bodies that came compressed: gzip stores them as they are, which takes a hundredth of the CPU of level 1
    /// and not a byte more (both leave 100.3 %); zstd has no such level, and is quick to notice.
    const LEAST_LEVEL: i32 = 0;
    /// Zstd level unless told otherwise.
    pub(crate) const DEFAULT_ZSTD_LEVEL: i32 = 3;

    pub(crate) fn new(compression: Compression, level: Option<i32>, fs: Arc<dyn Fs>, spool_dir: &Path) -> Self {
        let level = match compression {
            Compression::None => 0,
            Compression::Gzip => level.unwrap_or(Self::DEFAULT_GZIP_LEVEL).clamp(1, 12),
            Compression::Zstd => level.unwrap_or(Self::DEFAULT_ZSTD_LEVEL).clamp(1, 19),
        };
        Encoder {
            compression,
            level,
            fs,
            spool_dir: spool_dir.into(),
            gzips: Default::default(),
            zstds: Default::default(),
        }
    }

    pub(crate) fn spool(&self, threshold: usize) -> SpoolWriter {
        SpoolWriter::new(self.fs.clone(), &self.spool_dir, threshold)
    }

    fn level(&self, effort: Effort) -> i32 {
        match effort {
            Effort::Usual => self.level,
            Effort::Least if self.compression == Compression::Gzip => Self::LEAST_LEVEL,
            Effort::Least => self.level.min(1),
        }
    }

    /// One member: `pieces`, then `body_len` bytes of `body`, then `end`.
    pub(crate) fn member(
        &self,
        effort: Effort,
        pieces: &[&[u8]],
        body: &mut dyn Read,
        body_len: u64,
        end: &[u8],
    ) -> Result<Stored> {
        let front: usize = pieces.iter().map(|p| p.len()).sum();
        let total = (front + end.len()) as u64 + body_len;
        if total > WHOLE_BYTES {
            return self.stream(effort, pieces, body, body_len, end);
        }
        let mut plain = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
        for piece in pieces {
            plain.extend_from_slice(piece);
        }
        let got = body.take(body_len).read_to_end(&mut plain).map_err(spool_error)? as u64;
        check_len(got, body_len)?;
        plain.extend_from_slice(end);
        self.whole(effort, plain)
    }

    fn whole(&self, effort: Effort, plain: Vec<u8>) -> Result<Stored> {
        Ok(Stored::Memory(match self.compression {
            Compression::None => plain,
            Compression::Gzip => self.gzip(effort, &plain)?,
            Compression::Zstd => self.zstd(effort, &plain).map_err(spool_error)?,
        }))
    }

    fn gzip(&self, effort: Effort, plain: &[u8]) -> Result<Vec<u8>> {
        let [usual, least] = &self.gzips;
        let pool = if effort == Effort::Usual { usual } else { least };
        let pooled = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut compressor = pooled.unwrap_or_else(|| {
            let level = libdeflater::CompressionLvl::new(self.level(effort)).unwrap_or_default();
            libdeflater::Compressor::new(level)
        });
        let mut out = vec![0; compressor.gzip_compress_bound(plain.len())];
        let n = compressor.gzip_compress(plain, &mut out).map_err(|e| spool_error(io::Error::other(e.to_string())))?;
        pool.lock().unwrap_or_else(PoisonError::into_inner).push(compressor);
        out.truncate(n);
        out.shrink_to_fit();
        Ok(out)
    }

    /// A frame with its size and a checksum, as warc-zstd advises.
    fn zstd(&self, effort: Effort, plain: &[u8]) -> io::Result<Vec<u8>> {
        let [usual, least] = &self.zstds;
        let pool = if effort == Effort::Usual { usual } else { least };
        let pooled = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut compressor = match pooled {
            Some(compressor) => compressor,
            None => {
                let mut compressor = zstd::bulk::Compressor::new(self.level(effort))?;
                compressor.include_checksum(true)?;
                compressor
            }
        };
        let out = compressor.compress(plain)?;
        pool.lock().unwrap_or_else(PoisonError::into_inner).push(compressor);
        Ok(out)
    }

    fn stream(
        &self,
        effort: Effort,
        pieces: &[&[u8]],
        body: &mut dyn Read,
        body_len: u64,
        end: &[u8],
    ) -> Result<Stored> {
        let spool = self.spool(SPOOL_BYTES);
        let mut copy = |to: &mut dyn Write| -> io::Result<u64> {
            for piece in pieces {
                to.write_all(piece)?;
            }
            let got = io::copy(&mut body.take(body_len), &mut &mut *to)?;
            to.write_all(end)?;
            Ok(got)
        };
        let (got, spool) = match self.compression {
            Compression::None => {
                let mut spool = spool;
                (copy(&mut spool).map_err(spool_error)?, spool)
            }
            Compression::Gzip => {
                let level = flate2::Compression::new(u32::try_from(self.level(effort).min(9)).unwrap_or(6));
                let mut encoder = flate2::write::GzEncoder::new(spool, level);
                let got = copy(&mut encoder).map_err(spool_error)?;
                (got, encoder.finish().map_err(spool_error)?)
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(spool, self.level(effort)).map_err(spool_error)?;
                encoder.include_checksum(true).map_err(spool_error)?;
                let got = copy(&mut encoder).map_err(spool_error)?;
                (got, encoder.finish().map_err(spool_error)?)
            }
        };
        check_len(got, body_len)?;
        Ok(Stored::Spooled(spool.finish()?))
    }

    /// The same record with `old` in its header replaced by `new`, which has the same length.
    pub(crate) fn rebind(&self, effort: Effort, stored: &Stored, total: u64, old: &str, new: &str) -> Result<Stored> {
        let mut plain: Box<dyn Read + '_> = match self.compression {
            Compression::None => stored.reader(),
            Compression::Gzip => Box::new(flate2::read::GzDecoder::new(stored.reader())),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(stored.reader()).map_err(spool_error)?),
        };
        let mut header = Vec::new();
        while memchr::memmem::rfind(&header, b"\r\n\r\n").is_none() {
            let mut piece = [0; 1024];
            let n = plain.read(&mut piece).map_err(spool_error)?;
            if n == 0 {
                break;
            }
            header.extend_from_slice(piece.get(..n).unwrap_or_default());
        }
        let end = memchr::memmem::find(&header, b"\r\n\r\n").unwrap_or(0);
        let found = header.get(..end).and_then(|h| memchr::memmem::find(h, old.as_bytes()));
        if let Some(place) = found.and_then(|at| header.get_mut(at..at + new.len())) {
            place.copy_from_slice(new.as_bytes());
        }
        let left = total - (header.len() as u64).min(total);
        self.member(effort, &[&header], &mut plain, left, b"")
    }
}

fn check_len(got: u64, wanted: u64) -> Result<()> {
    if got == wanted {
        return Ok(());
    }
    Err(Error::Truncated { at: At::default(), expected: "a body as long as it said", found: got })
}

/// A failure to read a body or to write the spool: the error of the spool names its file.
pub(crate) fn spool_error(e: io::Error) -> Error {
    match e.downcast::<trawl_io::Error>() {
        Ok(own) => Error::File(own),
        Err(e) => Error::from_io(At::default(), e),
    }
}
