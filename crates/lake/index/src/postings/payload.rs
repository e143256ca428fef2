//! One payload: the runs of a (slot, dataset).

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

/// Appends a payload. The runs must rise by (file, row group) and hold rows; the error is the first that does not.
pub(super) fn encode(runs: &[Run], out: &mut Vec<u8>) -> Result<(), PayloadError> {
    if runs.is_empty() {
        return Err(PayloadError::Empty);
    }
    let mut body = Vec::new();
    put_uvarint(&mut body, runs.len() as u64);
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
        put_uvarint(&mut body, u64::from(file));
        put_uvarint(&mut body, u64::from(group));
        put_uvarint(&mut body, run.first_row);
        put_uvarint(&mut body, run.row_count);
        before = Some(*run);
    }
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
    if count == 0 {
        return Err(PayloadError::Empty);
    }
    let mut runs: Vec<Run> = Vec::new();
    for index in 0..count {
        let file = r.uvarint("file id")?;
        let group = r.uvarint("row group")?;
        let (first_row, row_count) = (r.uvarint("first row")?, r.uvarint("row count")?);
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
