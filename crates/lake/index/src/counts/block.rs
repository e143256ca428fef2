//! One block: the counts of up to 64 slots.

use super::{BLOCK_SLOTS, Count, MAX_PATH_LEN, MAX_PATHS};
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::UnixMillis;

const BOUND: u64 = 1;
const TIMES: u64 = 2;
const PATHS: u64 = 4;

/// Why bytes are no block.
#[derive(Debug, thiserror::Error)]
pub(super) enum BlockError {
    #[error(transparent)]
    Slice(#[from] SliceError),
    #[error("{0}")]
    Value(&'static str),
}

/// Appends a block.
pub(super) fn encode(slots: &[Vec<Count>], out: &mut Vec<u8>) {
    let times = || slots.iter().flatten().filter_map(|c| c.times);
    let base = times().map(|(first, _)| first.0).min().unwrap_or(0);
    let whole = times().all(|(first, last)| first.0 % 1000 == 0 && last.0 % 1000 == 0) && times().next().is_some();
    let unit = if whole { 1000 } else { 1 };
    put_ivarint(out, base);
    put_uvarint(out, unit);
    let mut record = Vec::new();
    for slot in slots {
        record.clear();
        slot.iter().for_each(|count| pair(count, base, unit, &mut record));
        put_uvarint(out, record.len() as u64);
        out.extend_from_slice(&record);
    }
}

fn pair(count: &Count, base: i64, unit: u64, out: &mut Vec<u8>) {
    let bound = count.distinct != count.rows || !count.exact;
    let flags = if bound { BOUND } else { 0 }
        | if count.times.is_some() { TIMES } else { 0 }
        | if count.paths.is_empty() { 0 } else { PATHS };
    put_uvarint(out, count.rows << 3 | flags);
    if bound {
        put_uvarint(out, (count.rows - count.distinct) << 1 | u64::from(!count.exact));
    }
    if let Some((first, last)) = count.times {
        put_uvarint(out, first.0.abs_diff(base) / unit);
        put_uvarint(out, last.0.abs_diff(first.0) / unit);
    }
    if !count.paths.is_empty() {
        put_uvarint(out, count.paths.len() as u64);
        for (path, rows) in &count.paths {
            put_uvarint(out, path.len() as u64);
            out.extend_from_slice(path.as_bytes());
            put_uvarint(out, *rows);
        }
    }
}

/// Decodes the counts of slot `wanted` of a block whose slots have as many pairs as `pairs` says.
pub(super) fn slot(block: &[u8], at: u64, wanted: u64, pairs: usize) -> Result<Vec<Count>, BlockError> {
    let mut r = SliceReader::at(block, at);
    let (base, unit) = head(&mut r)?;
    for _ in 0..wanted {
        r.prefixed(usize::MAX, "counts of a slot")?;
    }
    let mut record = record(&mut r)?;
    let counts = (0..pairs).map(|_| read_pair(&mut record, base, unit)).collect::<Result<_, _>>()?;
    if !record.is_empty() {
        return Err(BlockError::Value("more pairs than the membership has"));
    }
    Ok(counts)
}

/// Decodes all slots of a block; `slots` of them, pairs until each record ends.
pub(super) fn all(block: &[u8], at: u64, slots: u64) -> Result<Vec<Vec<Count>>, BlockError> {
    let mut r = SliceReader::at(block, at);
    let (base, unit) = head(&mut r)?;
    let mut all = Vec::new();
    for _ in 0..slots.min(BLOCK_SLOTS) {
        let mut record = record(&mut r)?;
        let mut counts = Vec::new();
        while !record.is_empty() {
            counts.push(read_pair(&mut record, base, unit)?);
        }
        all.push(counts);
    }
    if !r.is_empty() {
        return Err(BlockError::Value("bytes after the last slot"));
    }
    Ok(all)
}

fn head(r: &mut SliceReader<'_>) -> Result<(i64, u64), BlockError> {
    let (base, unit) = (r.ivarint("earliest time")?, r.uvarint("time unit")?);
    if unit != 1 && unit != 1000 {
        return Err(BlockError::Value("a time unit other than 1 and 1000"));
    }
    Ok((base, unit))
}

fn record<'a>(r: &mut SliceReader<'a>) -> Result<SliceReader<'a>, BlockError> {
    let bytes = r.prefixed(usize::MAX, "counts of a slot")?;
    Ok(SliceReader::at(bytes, r.offset().saturating_sub(bytes.len() as u64)))
}

fn read_pair(r: &mut SliceReader<'_>, base: i64, unit: u64) -> Result<Count, BlockError> {
    let head = r.uvarint("rows")?;
    let rows = head >> 3;
    let (mut distinct, mut exact) = (rows, true);
    if head & BOUND != 0 {
        let value = r.uvarint("repeated rows")?;
        distinct = rows.checked_sub(value >> 1).ok_or(BlockError::Value("more repeats than rows"))?;
        exact = value & 1 == 0;
    }
    if rows == 0 || distinct == 0 {
        return Err(BlockError::Value("a pair without rows or urls"));
    }
    let mut times = None;
    if head & TIMES != 0 {
        let mut step = |from: i64, what| -> Result<i64, BlockError> {
            let value = r.uvarint(what)?.checked_mul(unit).and_then(|ms| from.checked_add_unsigned(ms));
            value.ok_or(BlockError::Value("a time out of range"))
        };
        let first = step(base, "first time")?;
        times = Some((UnixMillis(first), UnixMillis(step(first, "last time")?)));
    }
    let mut paths = Vec::new();
    if head & PATHS != 0 {
        let count = r.uvarint("path count")?;
        if count == 0 || count > MAX_PATHS as u64 {
            return Err(BlockError::Value("no paths, or more than 8"));
        }
        for _ in 0..count {
            let path = std::str::from_utf8(r.prefixed(MAX_PATH_LEN, "path")?);
            let path = path.map_err(|_| BlockError::Value("a path that is no text"))?;
            paths.push((path.to_owned(), r.uvarint("rows of a path")?));
        }
    }
    Ok(Count { rows, distinct, exact, times, paths })
}
