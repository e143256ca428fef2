//! `counts.bin`: for each (slot, dataset) how many rows, and how many different URLs.
//!
//! Records by slot, magic "TCNT", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`, in order, and are not repeated here. uvarint is LEB128.
//!
//! ```text
//! block, per slot:
//!   uvarint  length of the rest
//!   per dataset:
//!     uvarint  rows * 2 + flag
//!     uvarint  if flag 1: (rows - distinct) * 2 + 1 if distinct is only a bound; else all rows are distinct
//! ```

use crate::slots::{BlockError, Record};
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;
use trawl_model::UnixMillis;

/// Most paths kept for a pair.
pub const MAX_PATHS: usize = 8;
/// Longest path that is kept.
pub const MAX_PATH_LEN: usize = 128;

/// What is known of a (slot, dataset): each of the files of records by slot has a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Rows: exact.
    pub rows: u64,
    /// Different URLs.
    pub distinct: u64,
    /// Whether `distinct` is exact; else it is an upper bound.
    pub exact: bool,
    /// Earliest and latest time of its rows, where any has one: see `times`.
    pub times: Option<(UnixMillis, UnixMillis)>,
    /// First path segments with most rows, most first: see `paths`. Empty for small pairs.
    pub paths: Vec<(String, u64)>,
}

impl Count {
    /// Adds what is known of other rows. All paths are kept, in no order; `distinct` is the sum, and a bound unless the
    /// caller knows better.
    pub fn add(&mut self, more: Count) {
        self.rows += more.rows;
        self.distinct = self.distinct.saturating_add(more.distinct);
        self.exact = false;
        self.times = match (self.times, more.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        for (path, rows) in more.paths {
            match self.paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, sum)) => *sum += rows,
                None => self.paths.push((path, rows)),
            }
        }
    }

    /// Puts the paths with most rows first, then by name, and forgets those beyond [`MAX_PATHS`].
    pub fn rank_paths(&mut self) {
        rank(&mut self.paths, MAX_PATHS);
    }
}

/// Most rows first, then by path; cut to `keep`.
pub(crate) fn rank(paths: &mut Vec<(String, u64)>, keep: usize) {
    paths.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    paths.truncate(keep);
}

const BOUND: u64 = 1;

/// Rows and different URLs.
pub(crate) struct Counts;

impl Record for Counts {
    type Head = ();
    const MAGIC: [u8; 4] = *b"TCNT";
    const FILE: &'static str = "counts.bin";
    const WHAT: &'static str = "magic \"TCNT\", version 1, blocks of counts";

    fn check(count: &Count) -> Result<(), &'static str> {
        let sound = (1..=count.rows).contains(&count.distinct) && count.rows < 1 << 60;
        if sound { Ok(()) } else { Err("counts that agree with each other") }
    }

    fn head(_: &[Vec<Count>]) -> Option<()> {
        Some(())
    }

    fn put((): (), count: &Count, out: &mut Vec<u8>) {
        let bound = count.distinct != count.rows || !count.exact;
        put_uvarint(out, count.rows << 1 | if bound { BOUND } else { 0 });
        if bound {
            put_uvarint(out, (count.rows - count.distinct) << 1 | u64::from(!count.exact));
        }
    }

    fn take((): (), r: &mut SliceReader<'_>, count: &mut Count) -> Result<(), BlockError> {
        let head = r.uvarint("rows")?;
        (count.rows, count.distinct, count.exact) = (head >> 1, head >> 1, true);
        if head & BOUND != 0 {
            let value = r.uvarint("repeated rows")?;
            let distinct = count.rows.checked_sub(value >> 1);
            count.distinct = distinct.ok_or(BlockError::Value("more repeats than rows"))?;
            count.exact = value & 1 == 0;
        }
        if count.rows == 0 || count.distinct == 0 {
            return Err(BlockError::Value("a pair without rows or urls"));
        }
        Ok(())
    }
}
