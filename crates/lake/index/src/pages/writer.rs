//! Writes page tables, file after file.

use super::{HEADER, MAGIC, VERSION};
use crate::paged::PagedWriter;
use crate::{Error, Result};
use std::io::Write;

/// Takes the tables of each file, in `file_id` order. Holds 8 bytes a row group.
pub struct PagesWriter<W: Write> {
    out: PagedWriter<W>,
    starts: Vec<u8>,
    files: Vec<u8>,
    file_count: u32,
    groups: u32,
}

impl<W: Write> PagesWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        let mut out = PagedWriter::new(out, "pages.bin");
        out.write(&MAGIC)?;
        out.write(&VERSION.to_le_bytes())?;
        debug_assert!(out.position() == HEADER);
        Ok(Self { out, starts: Vec::new(), files: 0u32.to_le_bytes().to_vec(), file_count: 0, groups: 0 })
    }

    /// Adds the next file.
    pub fn push(&mut self, tables: &[impl AsRef<[u8]>]) -> Result<()> {
        let too_many = |found: u32| Error::Input {
            at: "pages.bin".into(),
            expected: "fewer than 2^32 files and row groups",
            found: found.to_string(),
        };
        for table in tables {
            self.starts.extend_from_slice(&self.out.position().to_le_bytes());
            self.out.write(table.as_ref())?;
            self.groups = self.groups.checked_add(1).ok_or_else(|| too_many(self.groups))?;
        }
        self.files.extend_from_slice(&self.groups.to_le_bytes());
        self.file_count = self.file_count.checked_add(1).ok_or_else(|| too_many(self.file_count))?;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        let end = self.out.position();
        self.starts.extend_from_slice(&end.to_le_bytes());
        self.out.write(&self.starts)?;
        self.out.write(&self.files)?;
        self.out.write(&end.to_le_bytes())?;
        self.out.write(&self.file_count.to_le_bytes())?;
        self.out.write(&self.groups.to_le_bytes())?;
        self.out.finish()
    }
}
