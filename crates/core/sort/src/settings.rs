//! Settings of a sorter.

use crate::plan::Plan;
use crate::{Result, Sorter};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Fs, RealFs};

/// Memory budget unless told otherwise: 256 MiB.
pub const DEFAULT_MEMORY_BYTES: usize = 256 << 20;
/// Worker threads unless told otherwise.
pub const DEFAULT_THREADS: usize = 2;
/// The smallest budget that can be worked in, for each worker thread and one more: 1 MiB.
pub const MIN_MEMORY_BYTES: usize = 1 << 20;

/// How runs are stored. Keys are always stored without what they share with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    None,
    /// zstd at this level; negative levels are faster and compress less.
    Zstd(i32),
}

/// What a sorter is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Taking records; `records` of them so far.
    Pushing,
    /// Merging runs into fewer; `records` of `total` in the current merge.
    Merging,
    /// Handing records out; `records` of `total` so far.
    Reading,
}

/// How far a sorter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Records done in this phase.
    pub records: u64,
    /// Records there are, if known.
    pub total: Option<u64>,
    /// Runs on disk.
    pub runs: u64,
    /// Bytes written to temporary files so far.
    pub spilled_bytes: u64,
}

/// Called now and then, from a thread that calls the sorter.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Builds a [`Sorter`].
#[must_use]
pub struct Builder {
    pub(crate) dir: PathBuf,
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) memory_bytes: usize,
    pub(crate) threads: usize,
    pub(crate) compression: Compression,
    pub(crate) max_fan_in: usize,
    pub(crate) holder: String,
    pub(crate) on_progress: Option<OnProgress>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("dir", &self.dir)
            .field("memory_bytes", &self.memory_bytes)
            .field("threads", &self.threads)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Builder {
            dir,
            fs: Arc::new(RealFs),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            threads: DEFAULT_THREADS,
            compression: Compression::Zstd(1),
            max_fan_in: 128,
            holder: "trawl sort".into(),
            on_progress: None,
        }
    }

    /// All memory the sorter may use: records, index, blocks.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Threads that sort and write runs beside the one that pushes; at least 1.
    pub fn threads(mut self, n: usize) -> Self {
        self.threads = n.max(1);
        self
    }

    /// How runs are stored; zstd level 1 unless told otherwise.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The most runs merged at once, 128 unless told otherwise and at least 2; the budget may allow fewer.
    pub fn max_fan_in(mut self, n: usize) -> Self {
        self.max_fan_in = n.max(2);
        self
    }

    /// Who sorts: for a process that finds the lock beside the temporary files.
    pub fn holder(mut self, holder: impl Into<String>) -> Self {
        self.holder = holder.into();
        self
    }

    /// The file system of the temporary files; tests use one that fails.
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// Called with the progress of the work, at every run and every so many records.
    pub fn on_progress(mut self, f: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(f));
        self
    }

    /// The sorter. Nothing is written before memory is full.
    pub fn build(self) -> Result<Sorter> {
        let plan = Plan::new(self.memory_bytes, self.threads, self.max_fan_in)?;
        Ok(Sorter::new(self, plan))
    }
}
