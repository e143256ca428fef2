//! Reads the set of one slot.

use super::arrays;
use super::{ENTRY, HEADER, MAGIC, MAX_BITMAP, VERSION};
use crate::paged::PagedReader;
use crate::{Blob, Error, Result};
use roaring::RoaringBitmap;
use trawl_io::slice::SliceReader;

/// An open file.
pub struct Membership {
    file: PagedReader,
    slots: u64,
    index_at: u64,
}

impl Membership {
    /// Reads the header.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        let file = PagedReader::open(source)?;
        let header = file.read(0..HEADER.min(file.len()))?;
        let name = file.name();
        let mut r = SliceReader::new(&header);
        let parse = || Ok((r.array("magic")?, r.u32("version")?, r.u64("domain count")?, r.u64("index offset")?));
        let (magic, version, slots, index_at) = file.parsed(parse)?;
        if magic != MAGIC {
            return Err(Error::corrupt(name, 0, "magic \"DTDR\"", format!("{magic:02x?}")));
        }
        if version != VERSION {
            return Err(Error::corrupt(name, 4, "version 1", version));
        }
        let end = slots.checked_mul(ENTRY).and_then(|len| index_at.checked_add(len));
        if index_at < HEADER || end != Some(file.len()) {
            let found = format!("{slots} entries at {index_at} of {} bytes", file.len());
            return Err(Error::corrupt(name, 8, "an index that ends the body", found));
        }
        Ok(Self { file, slots, index_at })
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The file beneath.
    pub fn file(&self) -> &PagedReader {
        &self.file
    }

    /// The datasets of `slot`, in order.
    pub fn datasets(&self, slot: u64) -> Result<Vec<u32>> {
        if slot >= self.slots {
            return Err(Error::corrupt(self.file.name(), 8, "a slot of this segment", slot));
        }
        let at = self.index_at + slot * ENTRY;
        let entry = self.file.piece(at..at + ENTRY)?;
        let mut r = SliceReader::at(&entry, at);
        let (start, len) = self.file.parsed(|| Ok((r.u64("bitmap start")?, r.u32("bitmap length")?)))?;
        let end = start.checked_add(u64::from(len)).filter(|end| *end <= self.index_at);
        let Some(end) = end.filter(|_| start >= HEADER && len <= MAX_BITMAP) else {
            let found = format!("{len} bytes at {start}");
            return Err(Error::corrupt(self.file.name(), at, "a bitmap between header and index", found));
        };
        self.bitmap(start, &self.file.piece(start..end)?)
    }

    fn bitmap(&self, at: u64, mut bytes: &[u8]) -> Result<Vec<u32>> {
        if let Some(datasets) = arrays::decode(bytes) {
            return Ok(datasets);
        }
        let bitmap = RoaringBitmap::deserialize_from(&mut bytes)
            .map_err(|e| Error::corrupt(self.file.name(), at, "a portable roaring bitmap", e))?;
        if bitmap.is_empty() || !bytes.is_empty() {
            return Err(Error::corrupt(self.file.name(), at, "a bitmap with members, of its own length", bytes.len()));
        }
        Ok(bitmap.into_iter().collect())
    }
}
