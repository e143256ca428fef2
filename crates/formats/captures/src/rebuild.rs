//! Makes the index anew from the archive, through the door that every container has.

use crate::row::CaptureRow;
use crate::writer::CapturesWriter;
use std::collections::BTreeMap;
use trawl_model::{Advice, CaptureSource, DoorError, Entry, Place, RawRecord};

/// What a rebuild found.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct RebuildReport {
    /// Rows written.
    pub rows: u64,
    /// Rows of failed fetches among them.
    pub failures: u64,
    /// Records that have no row, by type: with these and `skipped`, every record is counted once.
    pub not_captures: BTreeMap<String, u64>,
    /// Entries that could not be read.
    pub skipped: u64,
}

impl RebuildReport {
    /// Adds what was found in another archive.
    pub fn add(&mut self, other: RebuildReport) {
        self.rows += other.rows;
        self.failures += other.failures;
        self.skipped += other.skipped;
        for (kind, count) in other.not_captures {
            *self.not_captures.entry(kind).or_default() += count;
        }
    }

    fn count(&mut self, kind: &str) {
        *self.not_captures.entry(kind.to_owned()).or_default() += 1;
    }
}

/// The row of a record that is not an exchange, or the name under which it is counted instead: this crate knows no header of a
/// container, its caller does.
pub type OtherRows<'a> = dyn FnMut(&mut RawRecord<'_>, &Place) -> Result<CaptureRow, &'static str> + 'a;

/// Adds a row for every capture of `source`, and for every other record of which `other` makes one. An entry that cannot be read
/// is reported to `on_skip` and left out; anything worse is an error. `progress` gets the number of rows so far now and then.
pub fn rebuild(
    source: &mut dyn CaptureSource,
    writer: &mut CapturesWriter,
    other: &mut OtherRows<'_>,
    on_skip: &mut dyn FnMut(DoorError),
    progress: &mut dyn FnMut(u64),
) -> Result<RebuildReport, DoorError> {
    let mut report = RebuildReport::default();
    loop {
        let row = match source.next_entry() {
            Ok(Some((Entry::Capture(mut capture), place))) => Ok(CaptureRow::from_capture(&mut capture, Some(&place))?),
            Ok(Some((Entry::Other(mut record), place))) => other(&mut record, &place),
            Ok(None) => return Ok(report),
            Err(e) if e.advice == Advice::Skip => {
                report.skipped += 1;
                on_skip(e);
                continue;
            }
            Err(e) => return Err(e),
        };
        match row {
            Err(kind) => report.count(kind),
            Ok(row) => {
                report.failures += u64::from(row.is_failure());
                writer.push(row)?;
                report.rows += 1;
                source.beside().iter().for_each(|kind| report.count(kind));
                if report.rows.is_multiple_of(1024) {
                    progress(report.rows);
                }
            }
        }
    }
}
