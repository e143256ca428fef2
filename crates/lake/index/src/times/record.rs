//! One block: the times of up to 64 slots.

use crate::counts::Count;
use crate::slots::{BlockError, nth};
use trawl_io::slice::SliceReader;
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::UnixMillis;

/// Rows and times of a pair.
pub(super) type Pair = (u64, Option<(UnixMillis, UnixMillis)>);

/// Appends a block.
pub(super) fn encode(slots: &[Vec<Pair>], out: &mut Vec<u8>) {
    let times = || slots.iter().flatten().filter_map(|pair| pair.1);
    let Some(base) = times().map(|(first, _)| first.0).min() else { return };
    let whole = times().all(|(first, last)| first.0 % 1000 == 0 && last.0 % 1000 == 0);
    let unit = if whole { 1000 } else { 1 };
    put_ivarint(out, base);
    put_uvarint(out, unit);
    let mut record = Vec::new();
    for slot in slots {
        record.clear();
        for (rows, times) in slot {
            let Some((first, last)) = times else {
                record.push(0);
                continue;
            };
            put_uvarint(&mut record, first.0.abs_diff(base) / unit + 1);
            if *rows > 1 {
                put_uvarint(&mut record, last.0.abs_diff(first.0) / unit);
            }
        }
        put_uvarint(out, record.len() as u64);
        out.extend_from_slice(&record);
    }
}

/// Fills in the times of the slot at `place` of a block.
pub(super) fn slot(block: &[u8], at: u64, place: u64, counts: &mut [Count]) -> Result<(), BlockError> {
    if block.is_empty() {
        return Ok(());
    }
    let mut r = SliceReader::at(block, at);
    let (base, unit) = (r.ivarint("earliest time")?, r.uvarint("time unit")?);
    if unit != 1 && unit != 1000 {
        return Err(BlockError::Value("a time unit other than 1 and 1000"));
    }
    let record = nth(r.rest(), place).ok_or(BlockError::Value("records that do not fill their block"))?;
    let mut r = SliceReader::at(record, at);
    for count in counts {
        let out_of_range = BlockError::Value("a time out of range");
        let later = |from: i64, steps: u64| steps.checked_mul(unit).and_then(|ms| from.checked_add_unsigned(ms));
        let Some(steps) = r.uvarint("first time")?.checked_sub(1) else { continue };
        let Some(first) = later(base, steps) else { return Err(out_of_range) };
        let more = if count.rows > 1 { r.uvarint("last time")? } else { 0 };
        let Some(last) = later(first, more) else { return Err(out_of_range) };
        count.times = Some((UnixMillis(first), UnixMillis(last)));
    }
    if r.is_empty() { Ok(()) } else { Err(BlockError::Value("more pairs than the membership has")) }
}
