//! A map on disk: a kvseq, and an index over it.
//!
//! `NAME.kvseq` holds the pairs, `NAME.hindex` leads to them. A new value is a new entry; the old one is marked deleted,
//! but only once the new one is durable, so that a power cut leaves one of the two. A crash leaves the index marked as
//! in use; [`repair()`] takes the kvseq back to its last sync and rebuilds the index from it.

mod repair;
#[cfg(test)]
mod tests;

pub use repair::{MapRepair, repair, verify};

use crate::hindex::Found;
use crate::kvseq::lock_path;
use crate::open::{self, Guard, Locks, with_suffix};
use crate::{Access, CreateHindex, CreateKvseq, Error, Hindex, Kvseq, Result, Settings, SyncPolicy, design, h64};
use std::path::{Path, PathBuf};

/// Old entries that may wait for their delete flag; then a sync is made.
const MAX_DEFERRED: usize = 1 << 20;

/// Where the two files of a map are.
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

    /// Both, in the order they are locked.
    pub(crate) fn both(&self) -> [&Path; 2] {
        [&self.kvseq, &self.hindex]
    }
}

/// An open map.
#[derive(Debug)]
pub struct Map {
    kv: Kvseq,
    index: Hindex,
    /// Replaced entries to be marked deleted once what replaces them is durable.
    deferred: Vec<u64>,
    locks: Option<Locks>,
    settings: Settings,
    files: MapFiles,
}

impl Map {
    /// Creates both files and opens the map for writing.
    pub fn create(files: &MapFiles, kvseq: &CreateKvseq, hindex: &CreateHindex, settings: &Settings) -> Result<Self> {
        kvseq.publish(&files.kvseq, settings)?;
        hindex.publish(&files.hindex, settings)?;
        Self::open(files, Access::Write, settings)
    }

    /// Opens a map. A writer takes the locks of both files and refuses a map that was not closed properly.
    pub fn open(files: &MapFiles, access: Access, settings: &Settings) -> Result<Self> {
        match access {
            Access::Read => open::beside(settings, &lock_path(&files.kvseq), |writer_lives| {
                let map = Self::open_locked(files, access, settings, writer_lives, None)?;
                map.kv.expect_current()?;
                Ok(map)
            }),
            Access::Write => {
                let locks = open::lock_all(settings, files.both())?;
                Self::open_locked(files, access, settings, false, Some(locks))
            }
        }
    }

    pub(crate) fn open_locked(
        files: &MapFiles,
        access: Access,
        settings: &Settings,
        writer_lives: bool,
        locks: Option<Locks>,
    ) -> Result<Self> {
        let guard = Guard::Owner { writer_lives };
        let kv = Kvseq::open_guarded(&files.kvseq, access, settings, guard)?;
        let index = Hindex::open_guarded(&files.hindex, access, settings, guard)?;
        let (deferred, settings, files) = (Vec::new(), settings.clone(), files.clone());
        Ok(Map { kv, index, deferred, locks, settings, files })
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.index.is_astray() {
            return self.kv.lookup(key)?.map(|ptr| Ok(self.kv.get(ptr)?.value)).transpose();
        }
        match self.index.search(h64(key), |ptr| self.kv.value_if(ptr, key))? {
            Found::Here { what, .. } => Ok(Some(what)),
            Found::Absent { .. } | Found::Full => Ok(None),
        }
    }

    /// The pointer of `key`'s entry.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        if self.index.is_astray() { self.kv.lookup(key) } else { self.index.find(&self.kv, key) }
    }

    /// Keys.
    pub fn len(&self) -> u64 {
        self.index.keys()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.begin()?;
        let hash = h64(key);
        let found = self.index.search(hash, |ptr| Ok(self.kv.has_key(ptr, key)?.then_some(())))?;
        self.make_way(&found)?;
        let ptr = self.kv.append(key, value)?;
        match found {
            Found::Here { cell, ptr: old, .. } => {
                self.index.redirect(cell, hash, ptr)?;
                self.retire(old)?;
            }
            absent => self.index.occupy(absent, hash, ptr)?,
        }
        self.settle()
    }

    /// Enters `key` only if it is new; says whether it was.
    pub fn put_new(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.begin()?;
        let hash = h64(key);
        match self.index.search(hash, |ptr| Ok(self.kv.has_key(ptr, key)?.then_some(())))? {
            Found::Here { .. } => Ok(false),
            absent => {
                self.make_way(&absent)?;
                let ptr = self.kv.append(key, value)?;
                self.index.occupy(absent, hash, ptr)?;
                self.settle()?;
                Ok(true)
            }
        }
    }

    /// Takes `key` away; says whether it was there. Refused where entries have no delete flags: a rebuild of the index
    /// would bring it back.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        if !self.kv.layout().delflag {
            return Err(Error::NoDelflag { path: self.kv.path().into() });
        }
        self.begin()?;
        let found = self.index.search(h64(key), |ptr| Ok(self.kv.has_key(ptr, key)?.then_some(())))?;
        self.make_way(&found)?;
        match found {
            Found::Here { cell, ptr, .. } => {
                self.index.clear(cell)?;
                self.kv.delete(ptr)?;
                Ok(true)
            }
            Found::Absent { .. } | Found::Full => Ok(false),
        }
    }

    /// From here on a crash means a rebuild of the index; and there is a cell for another key.
    #[inline]
    fn begin(&mut self) -> Result<()> {
        self.index.begin()?;
        if self.index.wants_resize().is_some() {
            self.kv.flush()?;
        }
        self.index.make_room(&self.kv)
    }

    /// Cells must not reach the file before the entries they lead to: see [`Hindex::would_write`].
    #[inline]
    fn make_way(&mut self, place: &Found<()>) -> Result<()> {
        if self.index.would_write(place) { self.kv.flush() } else { Ok(()) }
    }

    /// Marks a replaced entry deleted: now if nobody has seen it, else once what replaces it is durable.
    fn retire(&mut self, old: u64) -> Result<()> {
        if !self.kv.layout().delflag {
            return Ok(());
        }
        if !self.kv.is_announced(old) {
            return self.kv.delete(old);
        }
        self.deferred.push(old);
        if self.deferred.len() >= MAX_DEFERRED { self.sync_data() } else { Ok(()) }
    }

    #[inline]
    fn settle(&mut self) -> Result<()> {
        self.kv.settle()?;
        if self.kv.sync_is_due() { self.sync() } else { Ok(()) }
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.kv.flush()?;
        self.index.flush()
    }

    fn sync_data(&mut self) -> Result<()> {
        self.kv.checkpoint()?;
        for old in std::mem::take(&mut self.deferred) {
            self.kv.delete(old)?;
        }
        self.kv.checkpoint()
    }

    /// Makes everything durable, as far as the settings want it.
    pub fn sync(&mut self) -> Result<()> {
        self.sync_data()?;
        if self.settings.sync == SyncPolicy::Data { Ok(()) } else { self.index.checkpoint() }
    }

    /// Syncs and closes; the lock files go too.
    pub fn close(mut self) -> Result<()> {
        let Some(locks) = self.locks.take() else { return Ok(()) };
        self.sync_data()?;
        self.index.checkpoint()?;
        locks.release(&self.settings)
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        // The index later: what it says of itself is true of the pairs then.
        self.kv.refresh()?;
        self.index.refresh()?;
        // Asked last: a compaction puts another kvseq in its place first, then rebuilds the index.
        if self.locks.is_none() && !self.kv.is_current()? {
            *self = Self::open(&self.files, Access::Read, &self.settings)?;
        }
        Ok(())
    }

    /// The pairs; entries that were replaced since the last sync are still among them.
    pub fn kvseq(&self) -> &Kvseq {
        &self.kv
    }

    /// The index.
    pub fn hindex(&self) -> &Hindex {
        &self.index
    }

    /// Where the files are.
    pub fn files(&self) -> &MapFiles {
        &self.files
    }
}
