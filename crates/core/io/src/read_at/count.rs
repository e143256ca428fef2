//! Counts what a reader asks for, so that tests can hold lookups to a number of reads.

use super::ReadAt;
use crate::Result;
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked of a [`Counting`] reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Calls; a batch of ranges counts once, as it costs one round trip on a store.
    pub rounds: u64,
    /// Ranges read.
    pub ranges: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Passes reads through and counts them.
#[derive(Debug, Default)]
pub struct Counting<R> {
    inner: R,
    rounds: AtomicU64,
    ranges: AtomicU64,
    bytes: AtomicU64,
}

impl<R: ReadAt> Counting<R> {
    /// Counts reads of `inner`.
    pub fn new(inner: R) -> Self {
        Counting { inner, rounds: AtomicU64::new(0), ranges: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Counts since creation or the last [`Counting::take`].
    pub fn reads(&self) -> Reads {
        Reads {
            rounds: self.rounds.load(Ordering::Relaxed),
            ranges: self.ranges.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// The counts, which start again from zero.
    pub fn take(&self) -> Reads {
        Reads {
            rounds: self.rounds.swap(0, Ordering::Relaxed),
            ranges: self.ranges.swap(0, Ordering::Relaxed),
            bytes: self.bytes.swap(0, Ordering::Relaxed),
        }
    }

    fn count(&self, ranges: u64, bytes: u64) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.ranges.fetch_add(ranges, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl<R: ReadAt> ReadAt for Counting<R> {
    fn name(&self) -> &Path {
        self.inner.name()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.count(1, buf.len() as u64);
        self.inner.read_at(offset, buf)
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        self.count(1, range.end.saturating_sub(range.start));
        self.inner.read_range(range)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.count(ranges.len() as u64, ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum());
        self.inner.read_ranges(ranges)
    }
}
