//! Writes the sets in slot order.

use super::{ENTRY, FILE, HEADER, MAGIC, MAX_BITMAP, VERSION};
use crate::paged::PagedWriter;
use crate::scratch::{Scratch, pour};
use crate::{Error, Result};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::io::Write;
use trawl_io::SpoolWriter;

/// Bitmaps remembered so that a repeat is stored once: some 10 MiB.
const REMEMBERED: usize = 1 << 16;
/// Bitmaps longer than this repeat too seldom to be remembered.
const REMEMBERED_LEN: usize = 128;

/// Takes the dataset ids of each slot. The header holds totals, so bitmaps and index wait in spools until the end.
pub struct MembershipWriter {
    bitmaps: SpoolWriter,
    index: SpoolWriter,
    slots: u64,
    known: HashMap<Vec<u8>, [u8; ENTRY as usize]>,
}

impl MembershipWriter {
    /// An empty file.
    pub fn new(scratch: &Scratch) -> Self {
        Self { bitmaps: scratch.spool(), index: scratch.spool(), slots: 0, known: HashMap::new() }
    }

    /// Adds the next slot: ids in order, no two equal, at least one.
    pub fn push(&mut self, datasets: &[u32]) -> Result<()> {
        let refuse = |expected, found: String| {
            Err(Error::Input { at: format!("membership of slot {}", self.slots), expected, found })
        };
        let Ok(bitmap) = RoaringBitmap::from_sorted_iter(datasets.iter().copied()) else {
            return refuse("dataset ids in order", format!("{datasets:?}"));
        };
        if datasets.is_empty() {
            return refuse("at least one dataset", "none".into());
        }
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        bitmap.serialize_into(&mut bytes).map_err(Error::write("membership bitmap"))?;
        let Some(len) = u32::try_from(bytes.len()).ok().filter(|len| *len <= MAX_BITMAP) else {
            return refuse("a bitmap of at most 1 MiB", format!("{} bytes", bytes.len()));
        };
        self.slots += 1;
        if let Some(entry) = self.known.get(&bytes) {
            return Ok(self.index.put(entry)?);
        }
        let mut entry = [0; ENTRY as usize];
        let (start, length) = entry.split_at_mut(8);
        start.copy_from_slice(&(HEADER + self.bitmaps.len()).to_le_bytes());
        length.copy_from_slice(&len.to_le_bytes());
        self.bitmaps.put(&bytes)?;
        self.index.put(&entry)?;
        if bytes.len() <= REMEMBERED_LEN && self.known.len() < REMEMBERED {
            self.known.insert(bytes, entry);
        }
        Ok(())
    }

    /// Writes the file.
    pub fn finish<W: Write>(self, out: W) -> Result<W> {
        let mut out = PagedWriter::new(out, FILE);
        out.write(&MAGIC)?;
        out.write(&VERSION.to_le_bytes())?;
        out.write(&self.slots.to_le_bytes())?;
        out.write(&(HEADER + self.bitmaps.len()).to_le_bytes())?;
        pour(self.bitmaps, FILE, |bytes| out.write(bytes))?;
        pour(self.index, FILE, |bytes| out.write(bytes))?;
        out.finish()
    }
}
