//! Writes a body and its page checksums.

use super::{MAGIC, PAGE};
use crate::{Error, Result};
use std::io::Write;
use trawl_io::crc::crc32c;

/// Passes a body through and appends its checksums. The first bytes may be given last: headers hold totals.
pub struct PagedWriter<W: Write> {
    out: W,
    what: &'static str,
    page: Vec<u8>,
    sums: Vec<u8>,
    body_len: u64,
}

impl<W: Write> PagedWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W, what: &'static str) -> Self {
        Self { out, what, page: Vec::with_capacity(PAGE), sums: Vec::new(), body_len: 0 }
    }

    /// Appends to the body.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.body_len += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at_checked(PAGE - self.page.len()).unwrap_or((bytes, &[]));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE {
                self.end_page()?;
            }
        }
        Ok(())
    }

    /// The offset at which the next byte goes.
    pub fn position(&self) -> u64 {
        self.body_len
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        self.end_page()?;
        let mut tail = std::mem::take(&mut self.sums);
        tail.extend_from_slice(&self.body_len.to_le_bytes());
        tail.extend_from_slice(&crc32c(&tail).to_le_bytes());
        tail.extend_from_slice(&MAGIC);
        self.out.write_all(&tail).map_err(Error::write(self.what))?;
        Ok(self.out)
    }

    fn end_page(&mut self) -> Result<()> {
        if !self.page.is_empty() {
            self.sums.extend_from_slice(&crc32c(&self.page).to_le_bytes());
            self.out.write_all(&self.page).map_err(Error::write(self.what))?;
            self.page.clear();
        }
        Ok(())
    }
}
