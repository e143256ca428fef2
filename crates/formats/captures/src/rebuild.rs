//! Makes the index anew from the archive, through the door that every container has.

use crate::row::CaptureRow;
use crate::writer::CapturesWriter;
use trawl_model::{Advice, CaptureSource, DoorError, Entry};

/// What a rebuild found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct RebuildReport {
    /// Rows written.
    pub rows: u64,
    /// Rows of failed fetches among them.
    pub failures: u64,
    /// Entries that are no captures.
    pub others: u64,
    /// Entries that could not be read.
    pub skipped: u64,
}

/// Adds a row for every capture of `source`. An entry that cannot be read is told to `on_skip` and left out; anything worse
/// is an error. `progress` hears the number of rows so far now and then.
pub fn rebuild(
    source: &mut dyn CaptureSource,
    writer: &mut CapturesWriter,
    on_skip: &mut dyn FnMut(DoorError),
    progress: &mut dyn FnMut(u64),
) -> Result<RebuildReport, DoorError> {
    let mut report = RebuildReport::default();
    loop {
        let (entry, place) = match source.next_entry() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(report),
            Err(e) if e.advice == Advice::Skip => {
                report.skipped += 1;
                on_skip(e);
                continue;
            }
            Err(e) => return Err(e),
        };
        match entry {
            Entry::Other(_) => report.others += 1,
            Entry::Capture(mut capture) => {
                let row = CaptureRow::from_capture(&mut capture, Some(&place))?;
                report.failures += u64::from(row.is_failure());
                writer.push(row)?;
                report.rows += 1;
                if report.rows.is_multiple_of(1024) {
                    progress(report.rows);
                }
            }
        }
    }
}
