//! How containers are opened: the file layer, the clock, buffers, page cache and syncing. Nothing here is stored.

use std::sync::Arc;
use trawl_io::{Fs, RealFs};
use trawl_model::Clock;

/// What a container is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading, beside a writer or without one. Sees what the writer has flushed; after a crash, what was synced.
    Read,
    /// Reading and writing; one process at a time. Refuses a file that was not closed properly.
    Write,
}

/// What a sync makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Data and indexes: after a crash nothing has to be rebuilt if nothing was written since.
    #[default]
    Full,
    /// Data only; indexes follow when the container is closed. Fewer waits for the disk while writing; after a crash the
    /// indexes are rebuilt from the data.
    Data,
    /// Nothing: the system writes when it likes. For loads that are repeated after a crash.
    Off,
}

/// Settings of an open container.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file layer.
    pub fs: Arc<dyn Fs>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Who writes, for processes that are refused; see `trawl_io::describe_holder`.
    pub holder: String,
    /// Appended bytes gathered before a write.
    pub buffer_bytes: usize,
    /// Bytes read at once by an iteration.
    pub chunk_bytes: usize,
    /// Iterations read 4 MiB at once and tell the system so.
    pub big_readahead: bool,
    /// Whether data may stay in the page cache. If not, ranges are dropped once written or iterated over.
    pub data_caching: bool,
    /// Whether indexes may stay in the page cache.
    pub index_caching: bool,
    /// Memory for cells of one index while writing. A table that fits stays in memory until it is flushed.
    pub index_memory_bytes: u64,
    /// Reads the whole index into memory when it is opened, whatever its size.
    pub buffer_index: bool,
    /// What a sync makes durable.
    pub sync: SyncPolicy,
    /// Seconds between automatic syncs, looked at when something is added; negative: only when asked.
    pub sync_every: i64,
    /// Flushes after so many additions; 0: when the buffer is full.
    pub flush_every: u64,
    /// Longest key that is read into memory.
    pub max_key_bytes: u64,
    /// Longest value that is read into memory as a whole.
    pub max_value_bytes: u64,
    /// Memory for sorting when an index is built or a perm grouped.
    pub sort_memory_bytes: usize,
}

impl Settings {
    /// The defaults, on the machine's file system.
    pub fn new(clock: Clock, holder: impl Into<String>) -> Self {
        Settings {
            fs: Arc::new(RealFs),
            clock,
            holder: holder.into(),
            buffer_bytes: 1 << 20,
            chunk_bytes: 1 << 20,
            big_readahead: false,
            data_caching: true,
            index_caching: true,
            index_memory_bytes: 256 << 20,
            buffer_index: false,
            sync: SyncPolicy::Full,
            sync_every: -1,
            flush_every: 0,
            max_key_bytes: 16 << 20,
            max_value_bytes: 1 << 30,
            sort_memory_bytes: 64 << 20,
        }
    }

    /// The same on another file layer.
    #[must_use]
    pub fn on(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// Bytes one read of an iteration asks for.
    pub(crate) fn scan_bytes(&self) -> usize {
        if self.big_readahead { 4 << 20 } else { self.chunk_bytes.max(4096) }
    }
}
