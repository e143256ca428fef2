//! The counts of one slot.

use super::{Count, MAX_PATH_LEN, MAX_PATHS};
use crate::slots::BlockError;
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

const BOUND: u64 = 1;
const PATHS: u64 = 2;

/// Appends the counts of a slot.
pub(super) fn encode(counts: &[Count], out: &mut Vec<u8>) {
    let mut record = Vec::new();
    for count in counts {
        let bound = count.distinct != count.rows || !count.exact;
        let flags = if bound { BOUND } else { 0 } | if count.paths.is_empty() { 0 } else { PATHS };
        put_uvarint(&mut record, count.rows << 2 | flags);
        if bound {
            put_uvarint(&mut record, (count.rows - count.distinct) << 1 | u64::from(!count.exact));
        }
        if !count.paths.is_empty() {
            put_uvarint(&mut record, count.paths.len() as u64);
            for (path, rows) in &count.paths {
                put_uvarint(&mut record, path.len() as u64);
                record.extend_from_slice(path.as_bytes());
                put_uvarint(&mut record, *rows);
            }
        }
    }
    put_uvarint(out, record.len() as u64);
    out.extend_from_slice(&record);
}

/// Decodes the counts of the slot at `place` of a block; it must have `pairs` of them.
/// Without `paths` those are passed over.
pub(super) fn slot(block: &[u8], at: u64, place: u64, pairs: usize, paths: bool) -> Result<Vec<Count>, BlockError> {
    let mut r = SliceReader::at(block, at);
    for _ in 0..place {
        r.prefixed(usize::MAX, "counts of a slot")?;
    }
    let mut record = record(&mut r)?;
    let counts = (0..pairs).map(|_| pair(&mut record, paths)).collect::<Result<_, _>>()?;
    if !record.is_empty() {
        return Err(BlockError::Value("more pairs than the membership has"));
    }
    Ok(counts)
}

/// Decodes all `slots` slots of a block, pairs until each record ends.
pub(super) fn all(block: &[u8], at: u64, slots: u64) -> Result<Vec<Vec<Count>>, BlockError> {
    let mut r = SliceReader::at(block, at);
    let mut all = Vec::new();
    for _ in 0..slots {
        let mut record = record(&mut r)?;
        let mut counts = Vec::new();
        while !record.is_empty() {
            counts.push(pair(&mut record, true)?);
        }
        all.push(counts);
    }
    if r.is_empty() { Ok(all) } else { Err(BlockError::Value("bytes after the last slot")) }
}

fn record<'a>(r: &mut SliceReader<'a>) -> Result<SliceReader<'a>, BlockError> {
    let bytes = r.prefixed(usize::MAX, "counts of a slot")?;
    Ok(SliceReader::at(bytes, r.offset().saturating_sub(bytes.len() as u64)))
}

fn pair(r: &mut SliceReader<'_>, wanted: bool) -> Result<Count, BlockError> {
    let head = r.uvarint("rows")?;
    let rows = head >> 2;
    let (mut distinct, mut exact) = (rows, true);
    if head & BOUND != 0 {
        let value = r.uvarint("repeated rows")?;
        distinct = rows.checked_sub(value >> 1).ok_or(BlockError::Value("more repeats than rows"))?;
        exact = value & 1 == 0;
    }
    if rows == 0 || distinct == 0 {
        return Err(BlockError::Value("a pair without rows or urls"));
    }
    let mut paths = Vec::new();
    if head & PATHS != 0 {
        let count = r.uvarint("path count")?;
        if count == 0 || count > MAX_PATHS as u64 {
            return Err(BlockError::Value("no paths, or more than 8"));
        }
        for _ in 0..count {
            let path = r.prefixed(MAX_PATH_LEN, "path")?;
            let rows = r.uvarint("rows of a path")?;
            if wanted {
                let path = std::str::from_utf8(path).map_err(|_| BlockError::Value("a path that is no text"))?;
                paths.push((path.to_owned(), rows));
            }
        }
    }
    Ok(Count { rows, distinct, exact, times: None, paths })
}
