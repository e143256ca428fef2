//! The counts of one slot.

use super::Count;
use crate::slots::{BlockError, nth};
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

const BOUND: u64 = 1;

/// Appends the counts of a slot.
pub(super) fn encode(counts: &[Count], out: &mut Vec<u8>) {
    let mut record = Vec::new();
    for count in counts {
        let bound = count.distinct != count.rows || !count.exact;
        put_uvarint(&mut record, count.rows << 1 | if bound { BOUND } else { 0 });
        if bound {
            put_uvarint(&mut record, (count.rows - count.distinct) << 1 | u64::from(!count.exact));
        }
    }
    put_uvarint(out, record.len() as u64);
    out.extend_from_slice(&record);
}

/// Decodes the counts of the slot at `place` of a block; it must have `pairs` of them.
pub(super) fn slot(block: &[u8], at: u64, place: u64, pairs: usize) -> Result<Vec<Count>, BlockError> {
    let record = nth(block, place).ok_or(BlockError::Value("records that do not fill their block"))?;
    let mut record = SliceReader::at(record, at);
    let counts = (0..pairs).map(|_| pair(&mut record)).collect::<Result<_, _>>()?;
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
            counts.push(pair(&mut record)?);
        }
        all.push(counts);
    }
    if r.is_empty() { Ok(all) } else { Err(BlockError::Value("bytes after the last slot")) }
}

fn record<'a>(r: &mut SliceReader<'a>) -> Result<SliceReader<'a>, BlockError> {
    let bytes = r.prefixed(usize::MAX, "counts of a slot")?;
    Ok(SliceReader::at(bytes, r.offset().saturating_sub(bytes.len() as u64)))
}

fn pair(r: &mut SliceReader<'_>) -> Result<Count, BlockError> {
    let head = r.uvarint("rows")?;
    let rows = head >> 1;
    let (mut distinct, mut exact) = (rows, true);
    if head & BOUND != 0 {
        let value = r.uvarint("repeated rows")?;
        distinct = rows.checked_sub(value >> 1).ok_or(BlockError::Value("more repeats than rows"))?;
        exact = value & 1 == 0;
    }
    if rows == 0 || distinct == 0 {
        return Err(BlockError::Value("a pair without rows or urls"));
    }
    Ok(Count { rows, distinct, exact, times: None, paths: Vec::new() })
}
