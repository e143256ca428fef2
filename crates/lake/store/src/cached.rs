//! A store whose immutable objects are kept on this machine, in blocks, once they were read.
//!
//! A block is a range as somebody asked for it, in a file of its own below the cache's directory:
//!
//! ```text
//!  off size field
//!   0   8   magic "TRAWLBK1"
//!   8   8   xxh3_64 of everything after it, little-endian
//!  16   4   length of the key, then the key: place, path, first byte, end
//!   …       the bytes
//! ```
//! A block is believed only if its checksum and its key are right, so that nothing a crash leaves can be answered; it is
//! written aside and renamed, and never synced: a lost block is read again from the server. What came damaged from the server
//! is kept like all else: a reader that finds it out says so ([`Store::forget`]), or it would stay damaged here for ever.

use crate::{Created, Listed, RangeRead, Result, Store, Upload};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"TRAWLBK1";
/// Longer ranges are not kept: they are whole files that somebody copies or rebuilds from.
const MAX_BLOCK: u64 = 4 << 20;

/// Blocks on this machine, at most so many bytes.
#[derive(Debug)]
pub struct BlockCache {
    dir: PathBuf,
    limit: u64,
    state: Mutex<State>,
    hits: AtomicU64,
    misses: AtomicU64,
    bad: AtomicU64,
    temporary: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Name of a block → its length and when it was used last, counted in uses.
    blocks: HashMap<u128, (u64, u64)>,
    by_use: BTreeMap<u64, u128>,
    uses: u64,
    bytes: u64,
}

/// What a cache did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Ranges answered from it.
    pub hits: u64,
    /// Ranges that had to be read.
    pub misses: u64,
    /// Blocks that were damaged, and dropped.
    pub bad: u64,
    /// Bytes it has now.
    pub bytes: u64,
}

impl BlockCache {
    /// A cache of at most `limit` bytes in a directory of its own. Blocks of earlier processes are found again, the oldest
    /// counting as used first; a name that is no block's is left alone.
    pub fn open(dir: impl Into<PathBuf>, limit: u64) -> std::io::Result<Self> {
        let dir = dir.into();
        std::fs::create_dir_all(&dir)?;
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(temporary) = name.strip_prefix(".block-") {
                // Of a process that was cut: one that lives writes it again.
                let _ = temporary.ends_with(".tmp").then(|| std::fs::remove_file(entry.path()));
                continue;
            }
            let key = name.strip_suffix(".block").filter(|name| name.len() == 32);
            let Some(key) = key.and_then(|name| u128::from_str_radix(name, 16).ok()) else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            found.push((metadata.modified().ok(), key, metadata.len()));
        }
        found.sort_unstable();
        let mut state = State::default();
        for (_, key, len) in found {
            state.insert(key, len);
        }
        let counters = [const { AtomicU64::new(0) }; 4];
        let [hits, misses, bad, temporary] = counters;
        let cache = Self { dir, limit, state: Mutex::new(state), hits, misses, bad, temporary };
        cache.evict();
        Ok(cache)
    }

    /// What it did so far.
    pub fn usage(&self) -> CacheUsage {
        let [hits, misses, bad] = [&self.hits, &self.misses, &self.bad].map(|count| count.load(Relaxed));
        CacheUsage { hits, misses, bad, bytes: self.lock().bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two of its maps leaves a block counted that is not there: found out when it is read.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, name: u128) -> PathBuf {
        self.dir.join(format!("{name:032x}.block"))
    }

    fn get(&self, key: &str) -> Option<Bytes> {
        let name = name_of(key);
        let known = self.lock().touch(name);
        let read = known.then(|| std::fs::read(self.file(name)).ok()).flatten();
        let block = read.map(|bytes| parse(key, Bytes::from(bytes)));
        match &block {
            Some(Some(_)) => self.hits.fetch_add(1, Relaxed),
            Some(None) => {
                self.bad.fetch_add(1, Relaxed);
                self.forget(name);
                self.misses.fetch_add(1, Relaxed)
            }
            None => {
                if known {
                    self.lock().remove(name);
                }
                self.misses.fetch_add(1, Relaxed)
            }
        };
        block.flatten()
    }

    fn forget(&self, name: u128) {
        self.lock().remove(name);
        let _ = std::fs::remove_file(self.file(name));
    }

    /// Drops the blocks of the object that a key is of.
    fn forget_object(&self, key: &str) -> bool {
        let object = name_of(key) >> 64;
        let names: Vec<u128> = self.lock().blocks.keys().copied().filter(|name| name >> 64 == object).collect();
        names.iter().for_each(|name| self.forget(*name));
        !names.is_empty()
    }

    /// Keeps a block if it can: a cache that cannot be written serves nothing, and is no reason to fail.
    fn put(&self, key: &str, bytes: &[u8]) {
        let name = name_of(key);
        let Ok(key_len) = u32::try_from(key.len()) else { return };
        let mut body = Vec::with_capacity(bytes.len() + key.len() + 4);
        body.extend_from_slice(&key_len.to_le_bytes());
        body.extend_from_slice(key.as_bytes());
        body.extend_from_slice(bytes);
        let number = self.temporary.fetch_add(1, Relaxed);
        let aside = self.dir.join(format!(".block-{}-{number}.tmp", std::process::id()));
        let written = write_block(&aside, &body).and_then(|()| std::fs::rename(&aside, self.file(name)));
        if written.is_err() {
            let _ = std::fs::remove_file(aside);
            return;
        }
        self.lock().insert(name, body.len() as u64 + 16);
        self.evict();
    }

    fn evict(&self) {
        loop {
            let oldest = {
                let mut state = self.lock();
                let oldest = state.by_use.first_key_value().map(|(_, name)| *name);
                let Some(oldest) = oldest.filter(|_| state.bytes > self.limit) else { return };
                state.remove(oldest);
                oldest
            };
            let _ = std::fs::remove_file(self.file(oldest));
        }
    }
}

impl State {
    fn touch(&mut self, name: u128) -> bool {
        let Some((len, _)) = self.blocks.get(&name).copied() else { return false };
        self.insert(name, len);
        true
    }

    fn insert(&mut self, name: u128, len: u64) {
        self.remove(name);
        self.uses += 1;
        self.blocks.insert(name, (len, self.uses));
        self.by_use.insert(self.uses, name);
        self.bytes += len;
    }

    fn remove(&mut self, name: u128) {
        if let Some((len, used)) = self.blocks.remove(&name) {
            self.by_use.remove(&used);
            self.bytes -= len;
        }
    }
}

/// The name of a block: which object, then which part of it.
fn name_of(key: &str) -> u128 {
    let (object, part) = key.rsplit_once('\n').unwrap_or((key, ""));
    (u128::from(xxh3_64(object.as_bytes())) << 64) | u128::from(xxh3_64(part.as_bytes()))
}

fn write_block(path: &Path, body: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(MAGIC)?;
    file.write_all(&xxh3_64(body).to_le_bytes())?;
    file.write_all(body)
}

/// The bytes of a block, if it is whole and the one asked for.
fn parse(key: &str, block: Bytes) -> Option<Bytes> {
    let rest = block.strip_prefix(MAGIC)?;
    let (checksum, body) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*checksum) != xxh3_64(body) {
        return None;
    }
    let (len, rest) = body.split_first_chunk::<4>()?;
    let (found, bytes) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    (found == key.as_bytes()).then(|| block.slice(block.len() - bytes.len()..))
}

/// A store with a cache in front of it. Only what never changes is kept: index segments, Parquet files, suffix lists and
/// checkpoints; all else is asked of the store each time.
#[derive(Debug, Clone)]
pub struct CachedStore {
    inner: Arc<dyn Store>,
    cache: Arc<BlockCache>,
    place: String,
}

impl CachedStore {
    /// Puts `cache` in front of `inner`.
    pub fn new(inner: Arc<dyn Store>, cache: Arc<BlockCache>) -> Self {
        let place = inner.place();
        Self { inner, cache, place }
    }

    fn key(&self, path: &str, part: &str) -> String {
        format!("{}\n{path}\n{part}", self.place)
    }

    fn range_key(&self, read: &RangeRead) -> String {
        self.key(&read.path, &format!("{}-{}", read.range.start, read.range.end))
    }
}

impl Store for CachedStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        if !crate::layout::never_changes(path) {
            return self.inner.get(path, limit);
        }
        let key = self.key(path, "whole");
        if let Some(bytes) = self.cache.get(&key).filter(|bytes| bytes.len() as u64 <= limit) {
            return Ok(bytes);
        }
        let bytes = self.inner.get(path, limit)?;
        if bytes.len() as u64 <= MAX_BLOCK {
            self.cache.put(&key, &bytes);
        }
        Ok(bytes)
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        let keeps = |read: &RangeRead| {
            crate::layout::never_changes(&read.path) && read.range.end.saturating_sub(read.range.start) <= MAX_BLOCK
        };
        let found: Vec<Option<Bytes>> =
            reads.iter().map(|read| keeps(read).then(|| self.cache.get(&self.range_key(read))).flatten()).collect();
        let missing: Vec<RangeRead> =
            reads.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(read, _)| read.clone()).collect();
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let got = self.inner.get_batch(&missing)?;
        for (read, bytes) in missing.iter().zip(&got).filter(|(read, _)| keeps(read)) {
            self.cache.put(&self.range_key(read), bytes);
        }
        let mut got = got.into_iter();
        Ok(found.into_iter().filter_map(|found| found.or_else(|| got.next())).collect())
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.inner.len(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put(path, bytes)
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        self.inner.create(path, bytes)
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.inner.upload(path)
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.inner.list(dir)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.inner.delete(path)
    }

    fn open_local(&self, path: &str) -> Option<PathBuf> {
        self.inner.open_local(path)
    }

    fn forget(&self, path: &str) -> bool {
        self.cache.forget_object(&self.key(path, ""))
    }

    fn sweep(&self) -> Result<u64> {
        self.inner.sweep()
    }

    fn prune(&self) -> Result<u64> {
        self.inner.prune()
    }

    fn poll_every(&self) -> Duration {
        self.inner.poll_every()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemStore;

    const PATH: &str = "index/s1/counts.bin";

    fn read(path: &str, range: std::ops::Range<u64>) -> RangeRead {
        RangeRead { path: path.into(), range }
    }

    fn cached(dir: &Path, limit: u64) -> (MemStore, CachedStore, Arc<BlockCache>) {
        let memory = MemStore::new();
        memory.put(PATH, &(0..=255u8).collect::<Vec<_>>()).unwrap();
        memory.put("index/manifest.json", b"old").unwrap();
        let cache = Arc::new(BlockCache::open(dir, limit).unwrap());
        (memory.clone(), CachedStore::new(Arc::new(memory), cache.clone()), cache)
    }

    #[test]
    fn what_never_changes_is_read_once_also_by_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, store, cache) = cached(dir.path(), 1 << 20);
        let reads = [read(PATH, 3..9), read(PATH, 100..101)];
        let first = store.get_batch(&reads).unwrap();
        assert_eq!(store.get("index/manifest.json", 9).unwrap(), "old");
        memory.delete(PATH).unwrap();
        memory.put("index/manifest.json", b"new").unwrap();
        assert_eq!(store.get_batch(&reads).unwrap(), first);
        assert_eq!(store.get("index/manifest.json", 9).unwrap(), "new");
        assert_eq!((cache.usage().hits, cache.usage().misses), (2, 2));
        drop((store, cache));
        let next = CachedStore::new(Arc::new(memory), Arc::new(BlockCache::open(dir.path(), 1 << 20).unwrap()));
        assert_eq!(next.get_batch(&reads).unwrap(), first);
    }

    #[test]
    fn a_damaged_block_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let (_, store, cache) = cached(dir.path(), 1 << 20);
        let reads = [read(PATH, 3..9)];
        let good = store.get_batch(&reads).unwrap();
        let file = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            let mut turned = bytes.clone();
            turned[at] ^= 1;
            std::fs::write(&file, &turned).unwrap();
            assert_eq!(store.get_batch(&reads).unwrap(), good, "byte {at}");
            std::fs::write(&file, &bytes[..at]).unwrap();
            assert_eq!(store.get_batch(&reads).unwrap(), good, "cut at {at}");
        }
        assert_eq!(cache.usage().bad, 2 * bytes.len() as u64);
    }

    #[test]
    fn an_object_is_forgotten_with_all_its_blocks_and_no_other_is() {
        let dir = tempfile::tempdir().unwrap();
        let (memory, store, cache) = cached(dir.path(), 1 << 20);
        const OTHER: &str = "index/s1/times.bin";
        memory.put(OTHER, &[7; 100]).unwrap();
        let reads = [read(PATH, 3..9), read(PATH, 100..101), read(OTHER, 0..50)];
        store.get_batch(&reads).unwrap();
        store.get(PATH, 1 << 10).unwrap();
        memory.put(PATH, &[1; 256]).unwrap();
        memory.delete(OTHER).unwrap();
        assert_eq!(store.get_batch(&reads).unwrap()[0], [3, 4, 5, 6, 7, 8][..]);
        assert!(store.forget(PATH) && !store.forget(PATH));
        let again = store.get_batch(&reads).unwrap();
        assert_eq!((&again[0][..], &again[1][..], again[2].len()), (&[1; 6][..], &[1][..], 50));
        assert_eq!(store.get(PATH, 1 << 10).unwrap(), [1; 256][..]);
        drop((store, cache));
        let next = CachedStore::new(Arc::new(memory), Arc::new(BlockCache::open(dir.path(), 1 << 20).unwrap()));
        assert!(next.forget(PATH) && next.forget(OTHER), "blocks of earlier processes too");
    }

    #[test]
    fn it_keeps_to_its_size_and_drops_what_was_used_longest_ago() {
        let dir = tempfile::tempdir().unwrap();
        let (_, store, cache) = cached(dir.path(), 500);
        for at in 0..100 {
            store.get_batch(&[read(PATH, at..at + 10), read(PATH, 0..10)]).unwrap();
            assert!(cache.usage().bytes <= 500);
        }
        let on_disk: u64 = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert!(on_disk <= 500, "{on_disk}");
        assert_eq!(cache.usage().misses, 101, "the one in use stays");
    }
}
