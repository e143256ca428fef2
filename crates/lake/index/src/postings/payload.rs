//! One payload: the runs of a (slot, dataset), in the two forms there are.
//!
//! Version 2 stands alone and has a checksum of its own. In version 3 a payload may say where it begins by where the
//! dataset's rows before it ended, which is known to who decodes the payloads of its group in order; its frame's checksum
//! guards it.

use std::ops::Range;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;

/// Consecutive rows of one row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Line number in `files.tsv.zst`.
    pub file_id: u32,
    /// Row group of the file.
    pub row_group: u32,
    /// First row within the row group.
    pub first_row: u64,
    /// Rows.
    pub row_count: u64,
}

impl Run {
    /// Its rows as row groups count them; `None` if no row group is that long, which only damage makes. Numbers cut to the
    /// largest one would be an empty range, and rows would be missing without a word.
    pub fn rows(&self) -> Option<Range<u32>> {
        let end = self.first_row.checked_add(self.row_count)?;
        Some(u32::try_from(self.first_row).ok()?..u32::try_from(end).ok()?)
    }
}

/// Why bytes are no payload.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    #[error("crc32c {found:#010x}, stored {stored:#010x}")]
    Crc { stored: u32, found: u32 },
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error("run {0} is empty, out of order or out of range")]
    Run(u64),
    #[error("{0} bytes after the last run")]
    Trailing(usize),
    #[error("no runs")]
    Empty,
}

/// Where the rows of each dataset ended, as far as the payloads of a group have told.
#[derive(Debug, Default)]
pub(super) struct Ends(Vec<(u32, Run)>);

impl Ends {
    /// The last run of a dataset.
    fn of(&self, dataset_id: u32) -> Option<&Run> {
        self.0.iter().find(|(id, _)| *id == dataset_id).map(|(_, run)| run)
    }

    fn set(&mut self, dataset_id: u32, last: Run) {
        match self.0.iter_mut().find(|(id, _)| *id == dataset_id) {
            Some((_, run)) => *run = last,
            None => self.0.push((dataset_id, last)),
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Appends a payload of version 3; `ends` is what the payloads before it in its group left. Runs as for [`encode`].
pub(super) fn encode_near(
    runs: &[Run],
    dataset_id: u32,
    ends: &mut Ends,
    out: &mut Vec<u8>,
) -> Result<(), PayloadError> {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Err(PayloadError::Empty) };
    let gap = ends.of(dataset_id).and_then(|before| {
        let same = (before.file_id, before.row_group) == (first.file_id, first.row_group);
        first.first_row.checked_sub(before.first_row + before.row_count).filter(|_| same)
    });
    put_uvarint(out, (runs.len() as u64) << 1 | u64::from(gap.is_some()));
    put_runs(runs, gap, out)?;
    ends.set(dataset_id, *last);
    Ok(())
}

/// Decodes a payload of version 3, all of `bytes`; memory grows with the bytes there are.
pub(super) fn decode_near(bytes: &[u8], dataset_id: u32, ends: &mut Ends) -> Result<Vec<Run>, PayloadError> {
    let mut r = SliceReader::new(bytes);
    let head = r.uvarint("run count")?;
    let before = match head & 1 {
        0 => None,
        _ => Some(*ends.of(dataset_id).ok_or(PayloadError::Run(0))?),
    };
    let runs = take_runs(&mut r, head >> 1, before)?;
    if let Some(last) = runs.last() {
        ends.set(dataset_id, *last);
    }
    Ok(runs)
}

/// Appends a payload. The runs must rise by (file, row group) and hold rows; the error is the first that does not.
pub(super) fn encode(runs: &[Run], out: &mut Vec<u8>) -> Result<(), PayloadError> {
    if runs.is_empty() {
        return Err(PayloadError::Empty);
    }
    let mut body = Vec::new();
    put_uvarint(&mut body, runs.len() as u64);
    put_runs(runs, None, &mut body)?;
    out.extend_from_slice(&crc32c(&body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// Decodes a payload; memory grows with the bytes there are, not with the number they claim.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Run>, PayloadError> {
    let mut r = SliceReader::new(bytes);
    let stored = r.u32("payload crc32c")?;
    let found = crc32c(r.rest());
    if stored != found {
        return Err(PayloadError::Crc { stored, found });
    }
    let count = r.uvarint("run count")?;
    take_runs(&mut r, count, None)
}

/// Appends runs, the first one without its place if it begins `gap` rows after rows that are known.
fn put_runs(runs: &[Run], gap: Option<u64>, out: &mut Vec<u8>) -> Result<(), PayloadError> {
    let mut before: Option<Run> = None;
    for (index, run) in (0u64..).zip(runs) {
        let (file, group) = match before {
            None => (run.file_id, run.row_group),
            Some(b) if b.file_id == run.file_id && b.row_group < run.row_group => (0, run.row_group - b.row_group),
            Some(b) if b.file_id < run.file_id => (run.file_id - b.file_id, run.row_group),
            Some(_) => return Err(PayloadError::Run(index)),
        };
        if run.row_count == 0 || run.first_row.checked_add(run.row_count).is_none() {
            return Err(PayloadError::Run(index));
        }
        match gap.filter(|_| index == 0) {
            Some(gap) => put_uvarint(out, gap),
            None => {
                put_uvarint(out, u64::from(file));
                put_uvarint(out, u64::from(group));
                put_uvarint(out, run.first_row);
            }
        }
        put_uvarint(out, run.row_count);
        before = Some(*run);
    }
    Ok(())
}

/// Reads `count` runs to the end of `r`; with `near` the first begins some rows after it.
fn take_runs(r: &mut SliceReader<'_>, count: u64, near: Option<Run>) -> Result<Vec<Run>, PayloadError> {
    if count == 0 {
        return Err(PayloadError::Empty);
    }
    let mut runs: Vec<Run> = Vec::new();
    for index in 0..count {
        let (file, group, first_row) = match near.filter(|_| index == 0) {
            Some(near) => {
                let end = near.first_row.checked_add(near.row_count);
                let first_row = end.and_then(|end| r.uvarint("gap").ok()?.checked_add(end));
                (u64::from(near.file_id), u64::from(near.row_group), first_row.ok_or(PayloadError::Run(index))?)
            }
            None => (r.uvarint("file id")?, r.uvarint("row group")?, r.uvarint("first row")?),
        };
        let row_count = r.uvarint("row count")?;
        let run = || {
            let (file_id, row_group) = match runs.last() {
                None => (file, group),
                Some(b) if file == 0 && group > 0 => (u64::from(b.file_id), u64::from(b.row_group).checked_add(group)?),
                Some(b) if file > 0 => (u64::from(b.file_id).checked_add(file)?, group),
                Some(_) => return None,
            };
            first_row.checked_add(row_count).filter(|_| row_count > 0)?;
            let (file_id, row_group) = (u32::try_from(file_id).ok()?, u32::try_from(row_group).ok()?);
            Some(Run { file_id, row_group, first_row, row_count })
        };
        runs.push(run().ok_or(PayloadError::Run(index))?);
    }
    match r.rest().len() {
        0 => Ok(runs),
        left => Err(PayloadError::Trailing(left)),
    }
}
