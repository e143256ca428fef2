//! The rows of captures on their way into the capture index, one file for each archive file.
//!
//! ```text
//! record   0  4  payload length n
//!          4  4  crc32c of the payload
//!          8  n  JSON: {"row":{…}, "links":["…"], "to":"…", "hops":1}     links only where a shorter way may be found late
//! ```
//! Rows are appended and synced together with the archive; the frontier's log says how far both are good.

use crate::error::Error;
use crate::record::SpoolRecord;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trawl_io::crc::crc32c;
use trawl_io::read_at::{Cursor, FileReader};
use trawl_io::{File, Fs, Mode, Op};

const HEAD: usize = 8;
/// A record may be this long: a page has at most 16 MiB of links.
const MOST: u32 = 256 << 20;
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Bits of a note that are the offset.
const OFFSET_BITS: u32 = 40;

/// A spool that takes rows.
pub(crate) struct SpoolFile {
    file: Box<dyn File>,
    number: u64,
    end: u64,
    unwritten: Vec<u8>,
}

impl SpoolFile {
    /// Opens a spool that is good up to `end`; the rest is cut off.
    pub fn open(fs: &dyn Fs, path: &Path, number: u64, end: u64) -> Result<Self, Error> {
        let file = fs.open(path, Mode::OpenOrCreate)?;
        let len = file.len()?;
        if len < end {
            let found = format!("{len} bytes where the log has {end}");
            return Err(Error::Spool { path: path.into(), offset: len, expected: "rows that were synced", found });
        }
        if len > end {
            file.set_len(end)?;
        }
        Ok(SpoolFile { file, number, end, unwritten: Vec::new() })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds a record, and tells by which note it is found again.
    pub fn push(&mut self, record: &SpoolRecord) -> u64 {
        let note = self.number << OFFSET_BITS | (self.end + self.unwritten.len() as u64 + 1);
        push_record(&mut self.unwritten, record);
        note
    }

    /// Writes and syncs what was added.
    pub fn sync(&mut self) -> Result<(), Error> {
        if !self.unwritten.is_empty() {
            self.file.write_at(self.end, &self.unwritten)?;
            self.end += self.unwritten.len() as u64;
            self.unwritten.clear();
            self.file.sync_data()?;
        }
        Ok(())
    }
}

fn push_record(out: &mut Vec<u8>, record: &SpoolRecord) {
    // There is nothing in it that JSON has no form for.
    let payload = serde_json::to_vec(record).unwrap_or_default();
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&crc32c(&payload).to_le_bytes());
    out.extend_from_slice(&payload);
}

/// The spool and the offset that a note means.
pub(crate) fn place_of(note: u64) -> (u64, u64) {
    (note >> OFFSET_BITS, (note & ((1 << OFFSET_BITS) - 1)).saturating_sub(1))
}

/// Reads the record at an offset.
pub(crate) fn read_record(fs: &dyn Fs, path: &Path, offset: u64) -> Result<SpoolRecord, Error> {
    let file = fs.open(path, Mode::Read)?;
    let len = file.len()?;
    let (record, _) = record_at(&mut |at, buf| file.read_exact_at(at, buf), path, offset, len)?;
    Ok(record)
}

/// Shows every record of a spool up to `end`.
pub(crate) fn read_all(
    fs: &Arc<dyn Fs>,
    path: &Path,
    end: u64,
    each: &mut dyn FnMut(SpoolRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    let reader = FileReader::open_in(&**fs, path)?;
    let mut source = std::io::BufReader::with_capacity(CHUNK, Cursor::new(reader));
    let mut read = |_, buf: &mut [u8]| source.read_exact(buf).map_err(|e| trawl_io::Error::io(Op::Read, path, e));
    let mut offset = 0;
    while offset < end {
        let (record, next) = record_at(&mut read, path, offset, end)?;
        each(record)?;
        offset = next;
    }
    Ok(())
}

/// The record at an offset of a spool that ends at `end`, and where it ends itself.
fn record_at(
    read: &mut dyn FnMut(u64, &mut [u8]) -> trawl_io::Result<()>,
    path: &Path,
    offset: u64,
    end: u64,
) -> Result<(SpoolRecord, u64), Error> {
    let bad = |found: String| Error::Spool { path: path.into(), offset, expected: "a row", found };
    let mut head = [0; HEAD];
    read(offset, &mut head)?;
    let [a, b, c, d, e, f, g, h] = head;
    let (len, crc) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let next = offset + HEAD as u64 + u64::from(len);
    if len > MOST || next > end {
        return Err(bad(format!("a length of {len} bytes, {} before the end", end.saturating_sub(offset))));
    }
    let mut payload = vec![0; len as usize];
    read(offset + HEAD as u64, &mut payload)?;
    if crc32c(&payload) != crc {
        return Err(bad("a wrong checksum".into()));
    }
    let record = serde_json::from_slice(&payload).map_err(|e| bad(e.to_string()))?;
    Ok((record, next))
}
