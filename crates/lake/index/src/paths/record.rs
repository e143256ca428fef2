//! The paths of one slot.

use crate::counts::{Count, MAX_PATH_LEN, MAX_PATHS};
use crate::slots::{BlockError, nth};
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

/// Appends the paths of a slot.
pub(super) fn encode(counts: &[Count], out: &mut Vec<u8>) {
    let mut record = Vec::new();
    for count in counts {
        put_uvarint(&mut record, count.paths.len() as u64);
        for (path, rows) in &count.paths {
            put_uvarint(&mut record, path.len() as u64);
            record.extend_from_slice(path.as_bytes());
            put_uvarint(&mut record, *rows);
        }
    }
    put_uvarint(out, record.len() as u64);
    out.extend_from_slice(&record);
}

/// Fills in the paths of the slot at `place` of a block.
pub(super) fn slot(block: &[u8], at: u64, place: u64, counts: &mut [Count]) -> Result<(), BlockError> {
    if block.is_empty() {
        return Ok(());
    }
    let record = nth(block, place).ok_or(BlockError::Value("records that do not fill their block"))?;
    let mut r = SliceReader::at(record, at);
    for count in counts {
        let paths = r.uvarint("path count")?;
        if paths > MAX_PATHS as u64 {
            return Err(BlockError::Value("more than 8 paths"));
        }
        for _ in 0..paths {
            let path = std::str::from_utf8(r.prefixed(MAX_PATH_LEN, "path")?);
            let path = path.map_err(|_| BlockError::Value("a path that is no text"))?;
            count.paths.push((path.to_owned(), r.uvarint("rows of a path")?));
        }
    }
    if r.is_empty() { Ok(()) } else { Err(BlockError::Value("more pairs than the membership has")) }
}
