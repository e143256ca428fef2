//! Searching, inserting, deleting: linear probing.

use super::{Hindex, Keys};
use crate::design::{DELETED_CELL, LOAD_DEN, LOAD_NUM};
use crate::{Error, Result, h64};

/// Where a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// The key's cell, its pointer, and what the caller made of it.
    Here { cell: u64, ptr: u64, what: T },
    /// No such key; it would go to this cell, which is free or deleted.
    Absent { cell: u64, free: bool },
    /// No such key, and no cell for it.
    Full,
}

impl<T> Found<T> {
    /// What the caller made of the key's entry, if there is one.
    #[inline]
    pub fn what(self) -> Option<T> {
        match self {
            Found::Here { what, .. } => Some(what),
            Found::Absent { .. } | Found::Full => None,
        }
    }
}

impl Hindex {
    /// The pointer of `key`.
    pub fn find(&self, keys: &(impl Keys + ?Sized), key: &[u8]) -> Result<Option<u64>> {
        Ok(self.search(h64(key), |ptr| Ok(keys.has_key(ptr, key)?.then_some(ptr)))?.what())
    }

    /// Where the cell of `key` is, or would be.
    #[inline]
    pub(crate) fn place(&self, keys: &(impl Keys + ?Sized), hash: u64, key: &[u8]) -> Result<Found<()>> {
        self.search(hash, |ptr| Ok(keys.has_key(ptr, key)?.then_some(())))
    }

    /// Searches for a key with this hash; `is_it` looks whether an entry is the one and may bring something back.
    #[inline]
    pub(crate) fn search<T>(&self, hash: u64, is_it: impl FnMut(u64) -> Result<Option<T>>) -> Result<Found<T>> {
        self.cells.search(self.file.store.file(), hash, is_it)
    }

    /// Enters a new key.
    pub fn insert(&mut self, keys: &impl Keys, key: &[u8], ptr: u64) -> Result<()> {
        let hash = h64(key);
        match self.place(keys, hash, key)? {
            Found::Here { .. } => Err(Error::KeyExists(self.path().into())),
            absent => self.occupy(absent, hash, ptr),
        }
    }

    /// Enters a key, new or not, and returns the pointer it had.
    pub fn replace(&mut self, keys: &impl Keys, key: &[u8], ptr: u64) -> Result<Option<u64>> {
        let hash = h64(key);
        let place = self.place(keys, hash, key)?;
        self.enter(place, hash, ptr)
    }

    /// The same where the search ended at `place`.
    #[inline]
    pub(crate) fn enter<T>(&mut self, place: Found<T>, hash: u64, ptr: u64) -> Result<Option<u64>> {
        if let Found::Here { cell, ptr: old, .. } = place {
            self.redirect(cell, hash, ptr)?;
            return Ok(Some(old));
        }
        self.occupy(place, hash, ptr).map(|()| None)
    }

    /// Deletes a key and returns the pointer it had.
    pub fn remove(&mut self, keys: &impl Keys, key: &[u8]) -> Result<Option<u64>> {
        match self.place(keys, h64(key), key)? {
            Found::Here { cell, ptr, .. } => self.clear(cell).map(|()| Some(ptr)),
            Found::Absent { .. } | Found::Full => Ok(None),
        }
    }

    /// Whether a change where a search ended would write changed cells to the file, for want of memory. Who replaces
    /// entries makes sure first that readers can follow the cells to the new ones: the old would be lost to them.
    pub(crate) fn would_write<T>(&self, place: &Found<T>) -> bool {
        match place {
            Found::Here { cell, .. } | Found::Absent { cell, .. } => self.cells.is_crowded_out(*cell),
            Found::Full => false,
        }
    }

    /// Gives the cell where a search ended to a new key.
    pub(crate) fn occupy<T>(&mut self, place: Found<T>, hash: u64, ptr: u64) -> Result<()> {
        let Found::Absent { cell, free } = place else { return Err(self.full()) };
        if free && self.entries + 1 >= self.shape.htsize {
            return Err(self.full());
        }
        self.set(cell, ptr, hash)?;
        self.entries += u64::from(free);
        self.live += 1;
        Ok(())
    }

    /// Lets a key's cell point elsewhere.
    pub(crate) fn redirect(&mut self, cell: u64, hash: u64, ptr: u64) -> Result<()> {
        self.set(cell, ptr, hash)
    }

    /// Makes a key's cell a deleted one.
    pub(crate) fn clear(&mut self, cell: u64) -> Result<()> {
        self.set(cell, DELETED_CELL, 0)?;
        self.live = self.live.saturating_sub(1);
        Ok(())
    }

    fn set(&mut self, cell: u64, ptr: u64, hash: u64) -> Result<()> {
        self.file.writable()?;
        self.begin()?;
        self.file.stale = true;
        self.cells.set(self.file.store.file(), cell, ptr, hash)
    }

    /// Whether the table should be made larger, or rid of deleted cells, before another key is entered; and its new size.
    #[inline]
    pub(crate) fn wants_resize(&self) -> Option<u64> {
        // The second condition is for tiny tables, whose last free cell comes before the load does.
        if LOAD_DEN * self.entries < LOAD_NUM * self.shape.htsize && self.entries + 1 < self.shape.htsize {
            return None;
        }
        Some(if 2 * self.live >= self.shape.htsize { 2 * self.shape.htsize + 1 } else { self.shape.htsize })
    }

    fn full(&self) -> Error {
        Error::TableFull { path: self.path().into(), htsize: self.shape.htsize }
    }
}
