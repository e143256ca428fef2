//! A map on disk: a kvseq, and an index over it; or several, or none, and a perm.
//!
//! `NAME.kvseq` holds the pairs, `NAME.hindex` leads to them. A new value is a new entry; the old one is marked deleted,
//! but only once the new one is durable, so that a power cut leaves one of the two. A crash leaves the index marked as
//! in use; [`repair()`] takes the kvseq back to its last sync and rebuilds the index from it. Without an index keys may
//! repeat, and a search reads the file.

mod rebuild;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_bundle;

pub use rebuild::{MapRepair, compact, rebuild, repair, rollback, verify};

use crate::aside::with_suffix;
use crate::hindex::Found;
use crate::kvseq::lock_path;
use crate::lock::{self, Locks};
use crate::together::Together;
use crate::{Access, CreateHindex, CreateKvseq, Error, Hindex, KvEntry, Kvseq, Perm, Result, Settings, design, h64};
use std::path::{Path, PathBuf};

/// Where the two files of a usual map are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapFiles {
    /// The pairs.
    pub kvseq: PathBuf,
    /// The index.
    pub hindex: PathBuf,
}

impl MapFiles {
    /// `NAME.kvseq` and `NAME.hindex`.
    pub fn named(stem: &Path) -> Self {
        MapFiles { kvseq: with_suffix(stem, design::KVSEQ_SUFFIX), hindex: with_suffix(stem, design::HINDEX_SUFFIX) }
    }
}

/// Where the files of any map are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFiles {
    /// The entries.
    pub kvseq: PathBuf,
    /// Indexes over their keys. Searches go by the first.
    pub indexes: Vec<PathBuf>,
    /// Pointers to entries.
    pub perm: Option<PathBuf>,
}

impl From<&Path> for BundleFiles {
    /// A kvseq alone.
    fn from(kvseq: &Path) -> Self {
        BundleFiles { kvseq: kvseq.into(), ..Self::default() }
    }
}

impl From<&MapFiles> for BundleFiles {
    fn from(files: &MapFiles) -> Self {
        BundleFiles { kvseq: files.kvseq.clone(), indexes: vec![files.hindex.clone()], perm: None }
    }
}

impl From<&BundleFiles> for BundleFiles {
    fn from(files: &BundleFiles) -> Self {
        files.clone()
    }
}

impl BundleFiles {
    /// The locks of the indexes. (A perm that is open has its own.)
    fn index_locks(&self) -> Vec<PathBuf> {
        self.indexes.iter().map(|path| lock_path(path)).collect()
    }
}

/// An open map.
#[derive(Debug)]
pub struct Map {
    kv: Kvseq,
    indexes: Vec<Hindex>,
    perm: Option<Perm>,
    files: BundleFiles,
    locks: Locks,
}

impl Map {
    /// Creates the files of a usual map and opens it for writing.
    pub fn create(files: &MapFiles, kvseq: &CreateKvseq, hindex: &CreateHindex, settings: &Settings) -> Result<Self> {
        kvseq.publish(&files.kvseq, settings)?;
        hindex.publish(&files.hindex, settings)?;
        Self::open(files, Access::Write, settings)
    }

    /// Opens a map. A writer takes the locks of all files and refuses a map that was not closed properly.
    pub fn open(files: impl Into<BundleFiles>, access: Access, settings: &Settings) -> Result<Self> {
        let files = files.into();
        let (kvseq, others) = (lock_path(&files.kvseq), files.index_locks());
        let (map, locks) = lock::open(settings, access, &kvseq, &others, |writer_lives| {
            let map = Self::open_as(&files, access, settings, writer_lives)?;
            map.kv.expect_current()?;
            Ok(map)
        })?;
        Ok(Map { locks, ..map })
    }

    /// The same for a caller that takes care of the locks, and knows whether another process writes.
    pub(crate) fn open_as(
        files: &BundleFiles,
        access: Access,
        settings: &Settings,
        writer_lives: bool,
    ) -> Result<Self> {
        let kv = Kvseq::open_as(&files.kvseq, access, settings, writer_lives)?;
        let open = |path: &PathBuf| Hindex::open_as(path, access, settings, writer_lives);
        let indexes = files.indexes.iter().map(open).collect::<Result<_>>()?;
        let perm = files.perm.as_ref().map(|path| Perm::open(path, access, settings)).transpose()?;
        Ok(Map { kv, indexes, perm, files: files.clone(), locks: Locks::default() })
    }

    /// The index to search, unless its pointers must not be followed: then all entries are read.
    fn index(&self) -> Option<&Hindex> {
        self.indexes.first().filter(|index| !index.is_astray())
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(index) = self.index() else {
            return self.kv.lookup(key)?.map(|ptr| Ok(self.kv.get(ptr)?.value)).transpose();
        };
        Ok(index.search(h64(key), |ptr| self.kv.value_if(ptr, key))?.what())
    }

    /// The entry of `key`. A reader beside a writer reads all entries before it says that there is none.
    pub fn entry(&self, key: &[u8]) -> Result<Option<KvEntry>> {
        let ptr = match self.index() {
            Some(index) => match index.find(&self.kv, key)? {
                // The index of a live writer may be behind its entries.
                None if self.kv.file.access == Access::Read && index.is_in_use() => self.kv.lookup(key)?,
                found => found,
            },
            None => self.kv.lookup(key)?,
        };
        ptr.map(|ptr| self.kv.get(ptr)).transpose()
    }

    /// Keys that the first index has.
    pub fn len(&self) -> u64 {
        self.indexes.first().map_or(0, Hindex::keys)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(key, value).map(|_| ())
    }

    /// Adds an entry and returns its pointer. With an index it replaces the one the key had.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        let (kv, hash) = (&mut self.kv, h64(key));
        let ptr = match self.indexes.split_first_mut() {
            None => kv.append(key, value)?,
            Some((index, others)) => {
                let place = begin(kv, index, hash, key)?;
                others.iter_mut().try_for_each(Hindex::begin)?;
                let ptr = kv.append(key, value)?;
                let replaced = index.enter(place, hash, ptr)?;
                for index in others {
                    let place = begin(kv, index, hash, key)?;
                    index.enter(place, hash, ptr)?;
                }
                replaced.map_or(Ok(()), |old| kv.retire(old))?;
                ptr
            }
        };
        if let Some(perm) = &mut self.perm {
            perm.append(key, ptr)?;
        }
        self.settle()?;
        Ok(ptr)
    }

    /// Takes `key` away; says whether it was there. Refused where entries have no delete flags: a rebuild of an index
    /// would bring it back.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        if !self.kv.layout().delflag {
            return Err(Error::NoDelflag(self.kv.path().into()));
        }
        let mut found = if self.indexes.is_empty() { self.kv.lookup(key)? } else { None };
        for index in &mut self.indexes {
            if let Found::Here { cell, ptr, .. } = begin(&mut self.kv, index, h64(key), key)? {
                index.clear(cell)?;
                found = Some(ptr);
            }
        }
        found.map_or(Ok(()), |ptr| self.kv.delete(ptr))?;
        Ok(found.is_some())
    }

    #[inline]
    fn settle(&mut self) -> Result<()> {
        // All files together, so that what readers see in one they find by the others.
        if self.kv.flush_is_due() {
            return self.flush();
        }
        if self.kv.is_ahead() {
            self.kv.flush()?;
        }
        if self.kv.sync_is_due() { self.sync() } else { Ok(()) }
    }

    /// The entries, and what leads to them.
    fn together(&mut self) -> Together<'_> {
        let pairs = self.perm.as_mut().map(|perm| &mut perm.kv);
        Together { data: &mut self.kv, pairs, indexes: self.indexes.iter_mut().collect() }
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.together().flush()
    }

    /// Makes everything durable, as far as the settings want it.
    pub fn sync(&mut self) -> Result<()> {
        self.together().sync()
    }

    /// Syncs and closes; the lock files go too.
    pub fn close(mut self) -> Result<()> {
        self.together().close()?;
        self.perm.map_or(Ok(()), Perm::close)?;
        self.locks.release(&self.kv.file.settings)
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        // The indexes later: what they say of themselves is true of the pairs then.
        self.kv.refresh()?;
        self.indexes.iter_mut().try_for_each(Hindex::refresh)?;
        // Asked last: a compaction puts another kvseq in its place first, then rebuilds the indexes.
        if self.kv.file.access == Access::Read && !self.kv.file.is_current()? {
            *self = Self::open(&self.files, Access::Read, &self.kv.file.settings)?;
        }
        Ok(())
    }

    /// The pairs; entries that were replaced since the last sync are still among them.
    pub fn kvseq(&self) -> &Kvseq {
        &self.kv
    }
}

/// From here on a crash means a rebuild of the index, and there is a cell for another key. Finds the place of `key`.
#[inline]
fn begin(kv: &mut Kvseq, index: &mut Hindex, hash: u64, key: &[u8]) -> Result<Found<()>> {
    index.begin()?;
    // Cells must not reach the file before the entries they lead to: see [`Hindex::would_write`].
    if index.wants_resize().is_some() {
        kv.flush()?;
        index.make_room(kv)?;
    }
    let place = index.place(kv, hash, key)?;
    if index.would_write(&place) {
        kv.flush()?;
    }
    Ok(place)
}

/// Opens a kvseq for reading, and by `open` a file that points into it: two that belong together, whatever a writer does
/// meanwhile.
pub fn read_with<T>(kvseq: &Path, settings: &Settings, open: impl Fn() -> Result<T>) -> Result<(Kvseq, T)> {
    lock::beside(settings, &lock_path(kvseq), |writer_lives| {
        let kv = Kvseq::open_as(kvseq, Access::Read, settings, writer_lives)?;
        let other = open()?;
        kv.expect_current()?;
        Ok((kv, other))
    })
}
