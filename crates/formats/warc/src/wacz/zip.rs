//! ZIP files, as far as WACZ needs them: the central directory, stored and deflated entries, ZIP64.
//!
//! ```text
//! end of central directory, in the last 64 KiB      50 4b 05 06, … entries, size, offset, comment
//! ZIP64: 20 bytes before it                         50 4b 06 07, disk, offset of 50 4b 06 06 …
//! central entry, 46 bytes                           50 4b 01 02, … method@10 crc@16 stored@20 size@24 name@28 extra@30
//!                                                   comment@32 … local header@42, then name, extra, comment
//! local header, 30 bytes                            50 4b 03 04, … name@26 extra@28, then name, extra, data
//! ```

use crate::error::{At, Error, Result, shown};
use bytes::Bytes;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::Cursor;

/// Entries a file may have.
const MAX_ENTRIES: u64 = 1 << 20;
/// Bytes its central directory may have.
const MAX_DIRECTORY: u64 = 256 << 20;

/// One file in a ZIP file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its path, with slashes.
    pub name: String,
    /// 0 stored, 8 deflated.
    pub method: u16,
    /// CRC-32 of its contents.
    pub crc: u32,
    /// Bytes in the ZIP file.
    pub stored: u64,
    /// Bytes of its contents.
    pub size: u64,
    /// Where its local header is.
    pub header: u64,
}

/// A ZIP file opened for reading.
#[derive(Clone)]
pub struct ZipArchive {
    file: Arc<dyn ReadAt>,
    entries: Arc<Vec<ZipEntry>>,
    /// The numbers of the entries, in the order of their names.
    by_name: Arc<Vec<usize>>,
    /// Where the central directory is, and where its entries end.
    directory: Range<u64>,
    directory_used: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|b| u64::from_le_bytes(*b))
}

impl ZipArchive {
    /// Reads the central directory.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let name: Arc<str> = file.name().to_string_lossy().into();
        let at = |offset| At { file: name.clone(), offset, inside: 0 };
        let (count, directory) = find_directory(&*file, &at)?;
        let size = directory.end - directory.start;
        if count > MAX_ENTRIES || size > MAX_DIRECTORY {
            let what = "ZIP central directory";
            return Err(Error::OverLimit { at: at(directory.start), what, claimed: size, limit: MAX_DIRECTORY });
        }
        let bytes = file.read_range(directory.clone())?;
        let mut entries = Vec::new();
        let mut rest = &bytes[..];
        for _ in 0..count {
            let offset = directory.start + (bytes.len() - rest.len()) as u64;
            let (entry, after) = parse_entry(rest)
                .ok_or_else(|| Error::corrupt(at(offset), "an entry of a ZIP central directory", shown(rest)))?;
            if entry.header.saturating_add(entry.stored) > file.len() {
                return Err(Error::corrupt(at(offset), "an entry inside the file", entry.name));
            }
            entries.push(entry);
            rest = after;
        }
        let directory_used = directory.start + (bytes.len() - rest.len()) as u64;
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        // Stable: of two entries with one name the first stays in front.
        by_name.sort_by_key(|at| entries.get(*at).map(|entry| &entry.name));
        Ok(ZipArchive { file, entries: Arc::new(entries), by_name: Arc::new(by_name), directory, directory_used })
    }

    /// The entries, in the order of the directory.
    pub fn entries(&self) -> &[ZipEntry] {
        &self.entries
    }

    /// The entry called `name`; the first, if there are several.
    pub fn entry(&self, name: &str) -> Option<&ZipEntry> {
        // By bisection: packages ask for every file they list, and there may be a hundred thousand.
        let named = |at: &usize| self.entries.get(*at).map(|entry| &*entry.name);
        let first = self.by_name.partition_point(|at| named(at) < Some(name));
        self.by_name.get(first).and_then(|at| self.entries.get(*at)).filter(|entry| entry.name == name)
    }

    /// The place in the ZIP file, for messages.
    pub(super) fn start(&self) -> At {
        At { file: self.file.name().to_string_lossy().into(), offset: 0, inside: 0 }
    }

    pub(super) fn at(&self, entry: &ZipEntry) -> At {
        At { file: self.file.name().to_string_lossy().into(), offset: entry.header, inside: 0 }
    }

    /// Which bytes of the file belong to what: entries with their headers, the directory, the end. In the order of the file,
    /// where they begin, where they end, and what they are.
    pub(super) fn extents(&self) -> Result<Vec<(Range<u64>, String)>> {
        let mut all = Vec::new();
        for entry in self.entries() {
            let data = self.data_range(entry)?;
            all.push((entry.header..data.end + self.descriptor(entry, data.end)?, entry.name.clone()));
        }
        all.push((self.directory.start..self.directory_used, "the central directory".to_owned()));
        let mut at = self.directory.end;
        let tail = self.file.read_range(at..self.file.len().min(at.saturating_add(1 << 17)))?;
        let mut rest = &tail[..];
        while let Some(size) = end_record(rest) {
            let size = size.min(rest.len() as u64);
            all.push((at..at + size, "the end of the directory".to_owned()));
            at += size;
            rest = rest.get(usize::try_from(size).unwrap_or(usize::MAX)..).unwrap_or_default();
        }
        all.sort_by_key(|(range, _)| (range.start, range.end));
        Ok(all)
    }

    /// The length of the data descriptor behind the data of an entry: what wrote the entry may not have known its length before.
    fn descriptor(&self, entry: &ZipEntry, at: u64) -> Result<u64> {
        let head = self.file.read_range(entry.header..entry.header.saturating_add(8))?;
        if u16_at(&head, 6).is_none_or(|flags| flags & 8 == 0) {
            return Ok(0);
        }
        let bytes = self.file.read_range(at..self.file.len().min(at.saturating_add(24)))?;
        let mark = if bytes.starts_with(b"PK\x07\x08") { 4 } else { 0 };
        // The lower half of a wide length looks like a narrow one, so both lengths have to fit.
        let fits = |wide: bool| match wide {
            false => u32_at(&bytes, mark + 4).map(u64::from) == Some(entry.stored),
            true => (u64_at(&bytes, mark + 4), u64_at(&bytes, mark + 12)) == (Some(entry.stored), Some(entry.size)),
        };
        if u32_at(&bytes, mark) != Some(entry.crc) {
            return Ok(0);
        }
        let mark = mark as u64;
        Ok(if fits(true) {
            mark + 20
        } else if fits(false) {
            mark + 12
        } else {
            0
        })
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    fn data_range(&self, entry: &ZipEntry) -> Result<Range<u64>> {
        let bad = |found: &[u8]| Error::corrupt(self.at(entry), "a local ZIP header", shown(found));
        let header = self.file.read_range(entry.header..entry.header.saturating_add(30))?;
        let lengths = (|| Some((u16_at(&header, 26)?, u16_at(&header, 28)?)))();
        let (true, Some((name, extra))) = (header.starts_with(b"PK\x03\x04"), lengths) else {
            return Err(bad(&header));
        };
        let named = self.file.read_range(entry.header + 30..entry.header + 30 + u64::from(name))?;
        if named != entry.name.as_bytes() {
            return Err(Error::corrupt(self.at(entry), "the name the directory states", shown(&named)));
        }
        let start = entry.header + 30 + u64::from(name) + u64::from(extra);
        let end = start.saturating_add(entry.stored);
        if end > self.file.len() { Err(bad(&header)) } else { Ok(start..end) }
    }

    /// A stored entry as something with offsets of its own.
    pub fn stored(&self, entry: &ZipEntry) -> Result<Arc<dyn ReadAt>> {
        if entry.method != 0 {
            let found = format!("method {}", entry.method);
            return Err(Error::corrupt(self.at(entry), "an entry that is stored, not compressed", found));
        }
        let range = self.data_range(entry)?;
        Ok(Arc::new(Slice { file: self.file.clone(), range, name: PathBuf::from(&entry.name) }))
    }

    /// An entry with offsets of its own: in place if it is stored, in memory, up to `limit` bytes, if it must be inflated first.
    pub fn at_hand(&self, entry: &ZipEntry, limit: u64) -> Result<Arc<dyn ReadAt>> {
        if entry.method == 0 {
            return self.stored(entry);
        }
        let bytes = self.read(entry, limit)?;
        let range = 0..bytes.len() as u64;
        Ok(Arc::new(Slice { file: Arc::new(bytes), range, name: PathBuf::from(&entry.name) }))
    }

    /// Reads an entry of at most `limit` bytes and checks its checksum.
    pub fn read(&self, entry: &ZipEntry, limit: u64) -> Result<Bytes> {
        if entry.size > limit {
            return Err(Error::OverLimit { at: self.at(entry), what: "ZIP entry", claimed: entry.size, limit });
        }
        let mut out = Vec::new();
        let bad = |e: std::io::Error| Error::corrupt(self.at(entry), "an entry that can be read", e.to_string());
        self.stream(entry)?.take(limit + 1).read_to_end(&mut out).map_err(bad)?;
        if out.len() as u64 != entry.size || crc32fast::hash(&out) != entry.crc {
            let found = format!("{} bytes with crc32 {:08x}", out.len(), crc32fast::hash(&out));
            return Err(Error::corrupt(self.at(entry), "the length and crc32 the directory states", found));
        }
        Ok(out.into())
    }

    /// The contents of an entry as a stream, inflated if need be. The checksum is the reader's business.
    pub fn stream(&self, entry: &ZipEntry) -> Result<Box<dyn Read + Send>> {
        let range = self.data_range(entry)?;
        let slice = Slice { file: self.file.clone(), range, name: PathBuf::from(&entry.name) };
        let reader = std::io::BufReader::with_capacity(64 << 10, Cursor::new(slice));
        match entry.method {
            0 => Ok(Box::new(reader)),
            8 => Ok(Box::new(flate2::bufread::DeflateDecoder::new(reader))),
            other => {
                Err(Error::corrupt(self.at(entry), "an entry that is stored or deflated", format!("method {other}")))
            }
        }
    }
}

/// Entry count and range of the central directory.
fn find_directory(file: &dyn ReadAt, at: &dyn Fn(u64) -> At) -> Result<(u64, Range<u64>)> {
    let len = file.len();
    let tail_start = len.saturating_sub(22 + 65_535 + 20);
    let tail = file.read_range(tail_start..len)?;
    let bad = |offset: u64, found: &[u8]| Error::corrupt(at(offset), "the end of a ZIP file", shown(found));
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06").ok_or_else(|| bad(tail_start, &tail))?;
    let record = tail.get(end..).unwrap_or_default();
    let fields = (|| Some((u16_at(record, 10)?, u32_at(record, 12)?, u32_at(record, 16)?)))();
    let (count, size, offset) = fields.ok_or_else(|| bad(tail_start + end as u64, record))?;
    let (mut count, mut size, mut offset) = (u64::from(count), u64::from(size), u64::from(offset));
    let locator = end.checked_sub(20).and_then(|at| tail.get(at..end)).filter(|l| l.starts_with(b"PK\x06\x07"));
    if let Some(wide) = locator.and_then(|l| u64_at(l, 8)) {
        let record = file.read_range(wide..wide.saturating_add(56))?;
        let fields = (|| Some((u64_at(&record, 32)?, u64_at(&record, 40)?, u64_at(&record, 48)?)))();
        match fields.filter(|_| record.starts_with(b"PK\x06\x06")) {
            Some(wide) => (count, size, offset) = wide,
            None => return Err(bad(wide, &record)),
        }
    }
    let last = offset.saturating_add(size);
    if last > len { Err(bad(offset, record)) } else { Ok((count, offset..last)) }
}

/// The length of a record behind the central directory.
fn end_record(bytes: &[u8]) -> Option<u64> {
    match bytes.first_chunk::<4>()? {
        b"PK\x05\x06" => Some(22 + u64::from(u16_at(bytes, 20)?)),
        b"PK\x06\x06" => u64_at(bytes, 4)?.checked_add(12),
        b"PK\x06\x07" => Some(20),
        _ => None,
    }
}

pub(super) fn parse_entry(bytes: &[u8]) -> Option<(ZipEntry, &[u8])> {
    if !bytes.starts_with(b"PK\x01\x02") {
        return None;
    }
    let name_len = usize::from(u16_at(bytes, 28)?);
    let extra_len = usize::from(u16_at(bytes, 30)?);
    let comment_len = usize::from(u16_at(bytes, 32)?);
    let name = bytes.get(46..46 + name_len)?;
    let mut extra = bytes.get(46 + name_len..46 + name_len + extra_len)?;
    let rest = bytes.get(46 + name_len + extra_len + comment_len..)?;
    let (mut stored, mut size, mut header) =
        (u64::from(u32_at(bytes, 20)?), u64::from(u32_at(bytes, 24)?), u64::from(u32_at(bytes, 42)?));
    while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let body = extra.get(4..4 + usize::from(len))?;
        if id == 1 {
            // The fields that did not fit are listed here, in this order.
            let mut at = 0;
            for slot in [&mut size, &mut stored, &mut header] {
                if *slot == u64::from(u32::MAX) {
                    *slot = u64_at(body, at)?;
                    at += 8;
                }
            }
        }
        extra = extra.get(4 + usize::from(len)..)?;
    }
    let entry = ZipEntry {
        name: String::from_utf8_lossy(name).into_owned(),
        method: u16_at(bytes, 10)?,
        crc: u32_at(bytes, 16)?,
        stored,
        size,
        header,
    };
    Some((entry, rest))
}

/// A part of something with offsets.
struct Slice {
    file: Arc<dyn ReadAt>,
    range: Range<u64>,
    name: PathBuf,
}

impl ReadAt for Slice {
    fn name(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        trawl_io::read_at::check_range(&self.name, ReadAt::len(self), &(offset..end))?;
        self.file.read_at(self.range.start + offset, buf)
    }
}
