//! Building a table anew: from its container, or in another size.
//!
//! Keys are sorted by home, so that the table is filled from front to back: each goes to its home or, if that is taken, to
//! the next free cell, around the end if need be, as a search will.

use super::cells::Cells;
use super::{CreateHindex, Found, Hindex, Keys};
use crate::design::{DELETED_CELL, FREE_CELL};
use crate::file::SbFile;
use crate::kvseq::lock_path;
use crate::lock::Locks;
use crate::num::index;
use crate::progress::telling;
use crate::sorting::{Sort, number, pair};
use crate::{Access, Error, Kind, Kvseq, OnProgress, Result, Settings, aside, h64};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

/// Keys held in memory to tell apart those with one hash.
const MAX_GROUP_BYTES: usize = 64 << 20;

/// Collects hashes and pointers, then writes the table.
pub(crate) struct Builder<'a> {
    create: CreateHindex,
    path: PathBuf,
    settings: &'a Settings,
    sort: Sort<'a>,
    progress: OnProgress<'a>,
    pushed: u64,
}

impl<'a> Builder<'a> {
    pub fn new(create: CreateHindex, path: &Path, settings: &'a Settings, progress: OnProgress<'a>) -> Self {
        let sort = Sort::new(settings, aside::dir_of(path), 1);
        Builder { create, path: path.into(), settings, sort, progress, pushed: 0 }
    }

    /// Takes a key's hash and pointer. Of equal keys the one of the highest rank is kept, of equal ranks the last.
    pub fn push(&mut self, hash: u64, ptr: u64, rank: u64) -> Result<()> {
        if ptr == FREE_CELL || ptr == DELETED_CELL {
            return Err(Error::BadPointer { path: self.path.clone(), ptr });
        }
        self.pushed += 1;
        self.sort.push(&pair(hash % self.create.htsize, hash), &pair(ptr, rank))
    }

    /// Writes the table, puts it in place and returns how many keys it has. With `keys`, equal keys are found and
    /// `superseded` gets the pointers that lost; without it, the caller knows that there are none. A table that is not
    /// `whole` is in use.
    pub fn finish(self, keys: Option<&dyn Keys>, whole: bool, superseded: &mut dyn FnMut(u64)) -> Result<u64> {
        let Builder { create, path, settings, sort, progress, pushed } = self;
        let htsize = create.htsize;
        let (sb, end) = create.superblock(&path, settings, false, 0)?;
        let mut file = aside::empty(&sb, end, settings)?;
        let mut cells = Cells::new(create.sbsize, htsize, index(8 * create.cellsz), settings.index_memory_bytes);
        let (mut placed, mut done) = (0, 0u64);
        let mut place = |hash, ptr| {
            placed += 1;
            match cells.search(file.flushed()?, hash, |_| Ok(None::<()>))? {
                Found::Absent { cell, .. } if placed < htsize => cells.set(file.flushed()?, cell, ptr, hash),
                _ => Err(Error::TableFull { path: path.clone(), htsize }),
            }
        };
        let mut sorted = sort.finish()?;
        let mut tell = telling(progress, "writing index", pushed);
        let mut read = || -> Result<Option<(u64, u64, u64)>> {
            done += 1;
            tell(done);
            Ok(sorted.next_record()?.map(|(key, value)| (number(key, 1), number(value, 0), number(value, 1))))
        };
        let mut next = read()?;
        while let Some((hash, ptr, rank)) = next {
            next = read()?;
            let Some(keys) = keys.filter(|_| next.is_some_and(|next| next.0 == hash)) else {
                place(hash, ptr)?;
                continue;
            };
            let key = keys.key_at(ptr)?;
            let mut bytes = key.len();
            let mut newest = HashMap::from([(key, (ptr, rank))]);
            while let Some((_, ptr, rank)) = next.filter(|next| next.0 == hash) {
                next = read()?;
                match newest.entry(keys.key_at(ptr)?) {
                    Entry::Occupied(kept) if kept.get().1 > rank => superseded(ptr),
                    Entry::Occupied(mut kept) => superseded(kept.insert((ptr, rank)).0),
                    Entry::Vacant(other) => {
                        bytes += other.key().len();
                        other.insert((ptr, rank));
                    }
                }
                if bytes > MAX_GROUP_BYTES {
                    let (len, limit) = (bytes as u64, MAX_GROUP_BYTES as u64);
                    return Err(Error::TooLong { path, what: "group of keys with one hash", len, limit });
                }
            }
            // In the order of the container, so that the same input gives the same table.
            let mut survivors: Vec<u64> = newest.into_values().map(|(ptr, _)| ptr).collect();
            survivors.sort_unstable();
            survivors.into_iter().try_for_each(|ptr| place(hash, ptr))?;
        }
        // The cells first: a table that says it is whole must be.
        cells.write_back(file.flushed()?)?;
        file.flushed()?.sync_data()?;
        let (sb, _) = create.superblock(&path, settings, whole, placed)?;
        file.flushed()?.write_at(0, &sb.encode())?;
        file.publish()?;
        Ok(placed)
    }
}

/// What a rebuild found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebuilt {
    /// Keys in the new table.
    pub keys: u64,
    /// Entries not deleted whose key appears again later in the container.
    pub superseded: u64,
    /// Cells of the new table.
    pub htsize: u64,
}

/// Lets the index at `path` say that it is in use, or `astray`: that its pointers must not be followed any more. A crash
/// before it is rebuilt does not go unnoticed then. One that cannot even be read says so by itself.
pub(crate) fn mark(path: &Path, astray: bool, settings: &Settings) -> Result<()> {
    match Hindex::open_anyway(path, Access::Write, settings) {
        Ok(mut index) if astray => index.lead_astray(),
        Ok(mut index) => index.begin(),
        Err(Error::Io(e)) if !e.is_not_found() => Err(e.into()),
        Err(locked @ Error::LockFailed(_)) => Err(locked),
        Err(_) => Ok(()),
    }
}

/// Refuses to put an index in the place of anything else.
pub(crate) fn expect_index(path: &Path, settings: &Settings) -> Result<()> {
    match SbFile::open(path, Kind::Hindex, Access::Read, settings) {
        Err(Error::Io(e)) if e.is_not_found() => Ok(()),
        opened => opened.map(|_| ()),
    }
}

/// Rebuilds the index at `path` from `container`: of equal keys the last entry not deleted counts. The parameters of an
/// index that is there are kept, unless `htsize` or `cellsz` say otherwise. Takes the locks of both files.
pub fn rebuild(
    path: &Path,
    container: &Kvseq,
    htsize: Option<u64>,
    cellsz: Option<u64>,
    settings: &Settings,
    progress: OnProgress<'_>,
) -> Result<Rebuilt> {
    // A handle that writes has its lock. Another is opened again: somebody may have changed the file before the lock was
    // ours.
    let others = (container.file.access == Access::Read).then(|| container.path());
    let mut locks = Locks::take(settings, others.into_iter().chain([path]).map(lock_path))?;
    expect_index(path, settings)?;
    let again = others.map(|file| Kvseq::open_as(file, Access::Read, settings, false)).transpose()?;
    let container = again.as_ref().unwrap_or(container);
    let mut create = create_for(path, container, settings)?;
    create.htsize = htsize.unwrap_or(create.htsize);
    create.cellsz = cellsz.unwrap_or(create.cellsz);
    let (done, _) = build(create, path, container, None, true, settings, progress)?;
    locks.release(settings)?;
    Ok(done)
}

/// The same for a caller that holds the locks of both. The index at `path` is rebuilt beside it; one that is not `whole`
/// stays in use. Returns the superseded entries, too.
pub(crate) fn rebuild_aside(
    path: &Path,
    container: &Kvseq,
    whole: bool,
    settings: &Settings,
    progress: OnProgress<'_>,
) -> Result<(Rebuilt, Vec<u64>)> {
    let create = create_for(path, container, settings)?;
    build(create, &aside::copy_of(path), container, None, whole, settings, progress)
}

/// The parameters of an index over all of `container`.
fn create_for(path: &Path, container: &Kvseq, settings: &Settings) -> Result<CreateHindex> {
    // Numbers that a file claims are believed only if it is large enough for them: a table is written as large as said.
    let keys = match container.live_entries().filter(|n| *n <= container.end().saturating_sub(container.first()) / 2) {
        Some(n) => n,
        None => crate::kvseq::walk(container, &mut |_| Ok(()))?.live.unsigned_abs(),
    };
    Ok(CreateHindex::default().in_place_of(path, keys, settings))
}

/// Builds a table of `keys`, or of those that `known_to` leads to. One that is not `whole` is in use. Returns the entries,
/// as many as fit into memory, that others of the same key supersede.
pub(crate) fn build(
    create: CreateHindex,
    to: &Path,
    keys: &dyn Keys,
    known_to: Option<&Hindex>,
    whole: bool,
    settings: &Settings,
    progress: OnProgress<'_>,
) -> Result<(Rebuilt, Vec<u64>)> {
    let (htsize, total) = (create.htsize, keys.container().end());
    let mut builder = Builder::new(create, to, settings, progress);
    let mut tell = telling(progress, "reading keys", total);
    keys.each(&mut |entry| {
        tell(entry.ptr);
        if entry.deleted {
            return Ok(());
        }
        match known_to {
            Some(index) if index.find(keys, entry.key)? != Some(entry.ptr) => Ok(()),
            _ => builder.push(h64(entry.key), entry.ptr, entry.rank),
        }
    })?;
    let room = settings.sort_memory_bytes / 8;
    let (mut superseded, mut list) = (0, Vec::new());
    let keys = builder.finish(Some(keys), whole, &mut |ptr| {
        superseded += 1;
        if list.len() < room {
            list.push(ptr);
        }
    })?;
    Ok((Rebuilt { keys, superseded, htsize }, list))
}

impl Hindex {
    /// Changes the number of cells, and whether hashes are stored. Deleted cells go. The new table takes the old one's
    /// place in one step.
    pub fn resize(&mut self, htsize: u64, cellsz: u64, keys: &impl Keys) -> Result<()> {
        self.file.writable()?;
        if self.live + 1 >= htsize {
            return Err(Error::TableFull { path: self.path().into(), htsize });
        }
        let create = CreateHindex::like(&self.file.sb, htsize, cellsz);
        let (path, settings) = (self.path().to_owned(), self.file.settings.clone());
        let fits = self.shape.cellsz == 2 && htsize.saturating_mul(8 * cellsz) <= settings.index_memory_bytes;
        // Keys that were flushed are there for readers, and must not go away even for a moment.
        let seen = self.file.sb.value(crate::Name::AENTRIES).is_none_or(|keys| keys > 0);
        if fits && !seen {
            // The file is only made larger here; cells reach it with the next flush. It is in use until then.
            create.replace_in_use(&path, &settings)?;
            let mut new = Self::open_anyway(&path, Access::Write, &settings)?;
            self.for_each(&mut |ptr, hash| {
                let place = new.search(hash, |_| Ok(None::<()>))?;
                new.occupy(place, hash, ptr)
            })?;
            self.become_other(new);
            return Ok(());
        }
        let mut builder = Builder::new(create, &path, &settings, &crate::progress::silent);
        if self.shape.cellsz == 2 {
            self.for_each(&mut |ptr, hash| builder.push(hash, ptr, 0))?;
        } else {
            // Every key is read, in the order of the container, so that its pages are read once.
            let mut sort = Sort::new(&settings, aside::dir_of(&path), 2);
            self.for_each(&mut |ptr, _| sort.push(&ptr.to_be_bytes(), b""))?;
            let mut sorted = sort.finish()?;
            while let Some((key, _)) = sorted.next_record()? {
                let ptr = number(key, 0);
                builder.push(h64(&keys.key_at(ptr)?), ptr, 0)?;
            }
        }
        builder.finish(None, !self.in_use, &mut |_| ())?;
        self.become_other(Self::open_anyway(&path, Access::Write, &settings)?);
        Ok(())
    }

    fn become_other(&mut self, mut new: Hindex) {
        new.file.locks = std::mem::take(&mut self.file.locks);
        *self = new;
    }

    /// Resizes if another key would fill it too much.
    #[inline]
    pub(crate) fn make_room(&mut self, keys: &impl Keys) -> Result<()> {
        match self.wants_resize() {
            None => Ok(()),
            Some(htsize) => self.resize(htsize, self.shape.cellsz, keys),
        }
    }
}
