//! Writes ZIP files of stored entries.

use crate::error::Result;
use crate::writer::spool_error;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trawl_io::{AtomicFile, Fs, Hasher};

/// What one entry turned out to be.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) crc: u32,
    pub(super) header: u64,
    /// SHA-256, lower-case hex.
    pub(super) sha256: String,
}

/// A ZIP file being written; it appears when finished.
pub(super) struct ZipWriter {
    file: AtomicFile,
    entries: Vec<Written>,
}

const WIDE: u64 = u32::MAX as u64;
/// 1980-01-01, the first day ZIP knows: the same contents give the same bytes.
const DOS_DATE: u16 = 0x21;

fn low(n: u64) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes()
}

impl ZipWriter {
    pub(super) fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        Ok(ZipWriter { file: AtomicFile::create(fs, path)?, entries: Vec::new() })
    }

    /// Adds a file of `size` bytes.
    pub(super) fn add(
        &mut self,
        name: &str,
        size: u64,
        from: &mut dyn Read,
        told: &mut dyn FnMut(u64),
    ) -> Result<&Written> {
        let header = self.file.position();
        self.file.put(&local_header(name, size, 0))?;
        let mut crc = crc32fast::Hasher::new();
        let mut sha = Hasher::sha256();
        let mut buf = vec![0; 256 << 10];
        let mut left = size;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
            let n = from.read(buf.get_mut(..want).unwrap_or_default()).map_err(spool_error)?;
            let bytes = buf.get(..n).unwrap_or_default();
            if bytes.is_empty() {
                return Err(spool_error(std::io::ErrorKind::UnexpectedEof.into()));
            }
            crc.update(bytes);
            sha.update(bytes);
            self.file.put(bytes)?;
            left -= n as u64;
            told(n as u64);
        }
        let crc = crc.finalize();
        // The checksum stands before the data: filled in afterwards.
        self.file.flushed()?.write_at(header + 14, &crc.to_le_bytes())?;
        let sha256 = sha.finish().hex();
        self.entries.push(Written { name: name.into(), size, crc, header, sha256 });
        self.entries.last().ok_or_else(|| spool_error(std::io::ErrorKind::Other.into()))
    }

    /// Adds a small file.
    pub(super) fn add_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<&Written> {
        self.add(name, bytes.len() as u64, &mut &*bytes, &mut |_| {})
    }

    pub(super) fn entries(&self) -> &[Written] {
        &self.entries
    }

    /// Writes the directory and publishes the file; says how long it is.
    pub(super) fn finish(mut self) -> Result<u64> {
        let start = self.file.position();
        for entry in &self.entries {
            self.file.put(&central_entry(entry))?;
        }
        let size = self.file.position() - start;
        let count = self.entries.len() as u64;
        if count >= 0xffff || size >= WIDE || start >= WIDE {
            let wide = self.file.position();
            let mut record = b"PK\x06\x06".to_vec();
            record.extend_from_slice(&44u64.to_le_bytes());
            record.extend_from_slice(&[45, 3, 45, 0]);
            record.extend_from_slice(&[0; 8]);
            for n in [count, count, size, start] {
                record.extend_from_slice(&n.to_le_bytes());
            }
            record.extend_from_slice(b"PK\x06\x07\0\0\0\0");
            record.extend_from_slice(&wide.to_le_bytes());
            record.extend_from_slice(&1u32.to_le_bytes());
            self.file.put(&record)?;
        }
        let short = u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
        let end = [b"PK\x05\x06\0\0\0\0".as_slice(), &short, &short, &low(size), &low(start), &[0, 0]].concat();
        self.file.put(&end)?;
        let length = self.file.position();
        self.file.publish()?;
        Ok(length)
    }
}

fn local_header(name: &str, size: u64, crc: u32) -> Vec<u8> {
    let wide = size >= WIDE;
    let mut extra = Vec::new();
    if wide {
        extra.extend_from_slice(&[1, 0, 16, 0]);
        extra.extend_from_slice(&size.to_le_bytes());
        extra.extend_from_slice(&size.to_le_bytes());
    }
    let mut out = b"PK\x03\x04".to_vec();
    out.extend_from_slice(&[if wide { 45 } else { 20 }, 0, 0, 8, 0, 0, 0, 0]);
    out.extend_from_slice(&DOS_DATE.to_le_bytes());
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&low(size));
    out.extend_from_slice(&low(size));
    out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&u16::try_from(extra.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&extra);
    out
}

pub(super) fn central_entry(entry: &Written) -> Vec<u8> {
    let mut extra = Vec::new();
    if entry.size >= WIDE {
        extra.extend_from_slice(&entry.size.to_le_bytes());
        extra.extend_from_slice(&entry.size.to_le_bytes());
    }
    if entry.header >= WIDE {
        extra.extend_from_slice(&entry.header.to_le_bytes());
    }
    if !extra.is_empty() {
        let len = u16::try_from(extra.len()).unwrap_or(0).to_le_bytes();
        extra = [&[1, 0], len.as_slice(), &extra].concat();
    }
    let needs = if extra.is_empty() { 20 } else { 45 };
    let mut out = b"PK\x01\x02".to_vec();
    out.extend_from_slice(&[45, 3, needs, 0, 0, 8, 0, 0, 0, 0]);
    out.extend_from_slice(&DOS_DATE.to_le_bytes());
    out.extend_from_slice(&entry.crc.to_le_bytes());
    out.extend_from_slice(&low(entry.size));
    out.extend_from_slice(&low(entry.size));
    out.extend_from_slice(&u16::try_from(entry.name.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(&u16::try_from(extra.len()).unwrap_or(0).to_le_bytes());
    // No comment, first disk, binary, an ordinary file that its owner may write and all may read.
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&(0o100_644u32 << 16).to_le_bytes());
    out.extend_from_slice(&low(entry.header));
    out.extend_from_slice(entry.name.as_bytes());
    out.extend_from_slice(&extra);
    out
}
