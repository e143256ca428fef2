//! `times.bin`: for each (slot, dataset) the earliest and the latest time of its rows.
//!
//! [Records by slot](crate::slots), magic "TTIM", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`; which have a single row is known from `counts.bin`. uvarint is LEB128, ivarint its zigzag
//! form.
//!
//! ```text
//! block, empty if none of its slots has a time:
//!   ivarint  b, the block's earliest time in milliseconds since 1970
//!   uvarint  u, milliseconds in a unit of its times: 1000 if all are whole seconds, else 1
//!   per slot:
//!     uvarint  length of the rest
//!     per dataset:
//!       uvarint  0 if it has no time, else (first - b) / u + 1
//!       uvarint  if it has a time and more than one row: (last - first) / u
//! ```

use crate::counts::Count;
use crate::slots::{BlockError, Record};
use trawl_io::slice::SliceReader;
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::UnixMillis;

/// Earliest and latest times.
pub(crate) struct Times;

impl Record for Times {
    /// The block's earliest time, and milliseconds in a unit.
    type Head = (i64, u64);
    const MAGIC: [u8; 4] = *b"TTIM";
    const FILE: &'static str = "times.bin";
    const WHAT: &'static str = "magic \"TTIM\", version 1, blocks of times";

    fn check(count: &Count) -> Result<(), &'static str> {
        let sound = count.times.is_none_or(|(first, last)| first < last && count.rows > 1 || first == last);
        if sound { Ok(()) } else { Err("a first time not after the last, and the same for a single row") }
    }

    fn head(slots: &[Vec<Count>]) -> Option<Self::Head> {
        let times = || slots.iter().flatten().filter_map(|count| count.times);
        let base = times().map(|(first, _)| first.0).min()?;
        let whole = times().all(|(first, last)| first.0 % 1000 == 0 && last.0 % 1000 == 0);
        Some((base, if whole { 1000 } else { 1 }))
    }

    fn put_head((base, unit): Self::Head, out: &mut Vec<u8>) {
        put_ivarint(out, base);
        put_uvarint(out, unit);
    }

    fn take_head(r: &mut SliceReader<'_>) -> Result<Self::Head, BlockError> {
        let (base, unit) = (r.ivarint("earliest time")?, r.uvarint("time unit")?);
        if unit != 1 && unit != 1000 {
            return Err(BlockError::Value("a time unit other than 1 and 1000"));
        }
        Ok((base, unit))
    }

    fn put((base, unit): Self::Head, count: &Count, out: &mut Vec<u8>) {
        let Some((first, last)) = count.times else { return out.push(0) };
        put_uvarint(out, first.0.abs_diff(base) / unit + 1);
        if count.rows > 1 {
            put_uvarint(out, last.0.abs_diff(first.0) / unit);
        }
    }

    fn take((base, unit): Self::Head, r: &mut SliceReader<'_>, count: &mut Count) -> Result<(), BlockError> {
        let later = |from: i64, steps: u64| {
            let time = steps.checked_mul(unit).and_then(|ms| from.checked_add_unsigned(ms));
            time.ok_or(BlockError::Value("a time out of range"))
        };
        let Some(steps) = r.uvarint("first time")?.checked_sub(1) else { return Ok(()) };
        let first = later(base, steps)?;
        let last = later(first, if count.rows > 1 { r.uvarint("last time")? } else { 0 })?;
        count.times = Some((UnixMillis(first), UnixMillis(last)));
        Ok(())
    }
}
