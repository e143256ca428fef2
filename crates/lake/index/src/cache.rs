//! Decompressed blocks that were read a moment ago, within a budget of bytes.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lines::Block;

/// Files opened by this process so far: the first half of a cache key, so that no two files share blocks.
static FILES: AtomicU64 = AtomicU64::new(0);

/// Names an open file in caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileKey(u64);

impl FileKey {
    pub fn new() -> Self {
        Self(FILES.fetch_add(1, Ordering::Relaxed))
    }
}

/// Caches shared by all segments of a lake.
#[derive(Debug)]
pub struct Caches {
    /// Blocks of dictionaries.
    pub(crate) lines: Cache<(FileKey, usize), Arc<Block>, Weight>,
    /// Frames of postings.
    pub(crate) frames: Cache<(FileKey, usize), Bytes, Weight>,
    /// Pages of membership, counts and times where each read is a request, and blocks of paths.
    pub(crate) slices: Cache<(FileKey, usize), Bytes, Weight>,
}

impl Caches {
    /// Caches of at most `budget` bytes together: half for postings, a quarter for dictionary blocks, a quarter for
    /// slices of the files between them.
    pub fn new(budget: u64) -> Self {
        // Blocks are 4 KiB and up; the estimate sizes the hash table only.
        let items = usize::try_from(budget / 32_768).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        Self {
            lines: Cache::with_weighter(items, budget / 4, Weight),
            frames: Cache::with_weighter(items, budget / 2, Weight),
            slices: Cache::with_weighter(items, budget / 4, Weight),
        }
    }
}

/// Memory for caches unless told otherwise: 64 MiB of postings and 32 MiB of bitmaps and counts are the least that the
/// lake's specification names, and dictionaries get 32 MiB.
pub const DEFAULT_CACHE_BYTES: u64 = 128 << 20;

impl Default for Caches {
    /// [`DEFAULT_CACHE_BYTES`].
    fn default() -> Self {
        Self::new(DEFAULT_CACHE_BYTES)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight;

/// What an entry costs beside its bytes.
const OVERHEAD: u64 = 128;

impl Weighter<(FileKey, usize), Arc<Block>> for Weight {
    fn weight(&self, _: &(FileKey, usize), block: &Arc<Block>) -> u64 {
        block.memory() + OVERHEAD
    }
}

impl Weighter<(FileKey, usize), Bytes> for Weight {
    fn weight(&self, _: &(FileKey, usize), bytes: &Bytes) -> u64 {
        bytes.len() as u64 + OVERHEAD
    }
}
