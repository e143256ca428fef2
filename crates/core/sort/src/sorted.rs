//! The sorted records.

use crate::Result;
use crate::merge::{Merge, REPORT_EVERY};
use crate::settings::{OnProgress, Phase, Progress};
use crate::source::{MemorySource, Source};
use crate::tree::Tree;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One record, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it is ordered by.
    pub key: &'a [u8],
    /// What was pushed with it.
    pub value: &'a [u8],
    /// How many bytes the key shares with the one before: for writers of front-coded formats.
    pub shared: usize,
}

/// What sorting took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records pushed.
    pub records: u64,
    /// Their keys and values.
    pub bytes: u64,
    /// Runs written while pushing; 0 when everything stayed in memory.
    pub runs: u64,
    /// Bytes written to temporary files, passes included.
    pub spilled_bytes: u64,
}

pub(crate) enum Inner {
    Memory(Tree<MemorySource>),
    Runs(Merge),
}

/// Hands out the records in order. Temporary files go when it is dropped.
pub struct Sorted {
    inner: Inner,
    stats: Stats,
    runs: u64,
    on_progress: Option<OnProgress>,
    /// Records handed out by this part, and (in steps) by all parts.
    done: u64,
    done_by_all: Arc<AtomicU64>,
}

impl fmt::Debug for Sorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sorted").field("stats", &self.stats).field("done", &self.done).finish_non_exhaustive()
    }
}

impl Sorted {
    /// Hands out parts of the same records.
    pub(crate) fn parts(inner: Vec<Inner>, stats: Stats, runs: u64, on_progress: Option<OnProgress>) -> Vec<Sorted> {
        let done_by_all = Arc::new(AtomicU64::new(0));
        let part = |inner| {
            let (on_progress, done_by_all) = (on_progress.clone(), done_by_all.clone());
            Sorted { inner, stats, runs, on_progress, done: 0, done_by_all }
        };
        inner.into_iter().map(part).collect()
    }

    /// What sorting took, in all parts together.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The next record, valid until the next call.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        self.done += 1;
        if self.done.is_multiple_of(REPORT_EVERY) {
            let records = self.done_by_all.fetch_add(REPORT_EVERY, Ordering::Relaxed) + REPORT_EVERY;
            if let Some(report) = &self.on_progress {
                let (total, spilled_bytes) = (Some(self.stats.records), self.stats.spilled_bytes);
                report(Progress { phase: Phase::Reading, records, total, runs: self.runs, spilled_bytes });
            }
        }
        Ok(match &mut self.inner {
            Inner::Memory(tree) => tree.advance()?.and_then(|shared| record(tree.current()?, shared)),
            Inner::Runs(merge) => merge.tree.advance()?.and_then(|shared| record(merge.tree.current()?, shared)),
        })
    }

    /// Hands every remaining record to `f`, until it fails.
    pub fn for_each<E: From<crate::Error>>(mut self, mut f: impl FnMut(Record<'_>) -> Result<(), E>) -> Result<(), E> {
        while let Some(record) = self.next_record()? {
            f(record)?;
        }
        Ok(())
    }
}

#[inline]
fn record<S: Source>(source: &S, shared: usize) -> Option<Record<'_>> {
    Some(Record { key: source.key(), value: source.value(), shared })
}
