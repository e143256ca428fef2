//! Sorts lines within a memory budget and writes them.

use super::line::CdxjLine;
use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;
use trawl_sort::{Sorted, Sorter};

/// Takes lines in any order; hands them out sorted, equal lines once.
pub struct CdxjSorter {
    sorter: Sorter,
}

impl CdxjSorter {
    /// Sorts within `memory_bytes`; what does not fit goes to temporary files in `temp_dir`.
    pub fn new(temp_dir: &Path, memory_bytes: usize) -> Result<Self> {
        let memory_bytes = memory_bytes.max(trawl_sort::MIN_MEMORY_BYTES);
        let sorter = Sorter::builder(temp_dir).memory_bytes(memory_bytes).threads(1).build().map_err(sort_error)?;
        Ok(CdxjSorter { sorter })
    }

    /// Takes a line.
    pub fn push(&mut self, line: &CdxjLine) -> Result<()> {
        self.sorter.push(line.to_text().as_bytes(), b"").map_err(sort_error)
    }

    /// Gives each line, in order, to `each`; says how many there were.
    pub fn finish(self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let mut sorted: Sorted = self.sorter.finish().map_err(sort_error)?;
        let mut last: Vec<u8> = Vec::new();
        let mut count = 0;
        while let Some(record) = sorted.next_record().map_err(sort_error)? {
            if record.key != last {
                each(record.key)?;
                last.clear();
                last.extend_from_slice(record.key);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Writes the sorted lines as text.
    pub fn write(self, out: &mut dyn Write) -> Result<u64> {
        self.finish(&mut |line| write_lines(out, &[line]))
    }
}

/// Writes lines with their line ends.
pub fn write_lines(out: &mut dyn Write, lines: &[&[u8]]) -> Result<()> {
    for line in lines {
        out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(crate::writer::spool_error)?;
    }
    Ok(())
}

pub(crate) fn sort_error(e: trawl_sort::Error) -> Error {
    match e {
        trawl_sort::Error::Io(e) => Error::File(e),
        other => Error::Refused { file: "sort".into(), reason: other.to_string() },
    }
}
