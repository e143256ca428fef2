//! Writing a whole table in one pass, from keys in any order and within a memory budget.
//!
//! Keys are sorted by home; then each goes to its home or, if that is taken, to the next cell: the table is written from
//! front to back. What passes the end goes to the first free cells of the front, as searches do.

use super::cells::words;
use super::{CreateHindex, Keys};
use crate::design::{DELETED_CELL, FREE_CELL};
use crate::file::read_up_to;
use crate::num::index;
use crate::sorting::{Sort, number, pair};
use crate::{Error, OnProgress, Progress, Result, Settings, aside};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use trawl_io::AtomicFile;

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

/// A cell that found no room before the end of the table.
type Late = (u64, u64);

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
        let home = hash % self.create.htsize;
        self.sort.push(&pair(home, hash), &pair(ptr, rank))?;
        self.pushed += 1;
        Ok(())
    }

    /// Writes the table, puts it in place and returns how many keys it has. With `keys`, equal keys are found and
    /// `superseded` is told the pointers that lost; without, the caller knows that there are none. A table that is not
    /// `whole` is in use.
    pub fn finish(self, keys: Option<&dyn Keys>, whole: bool, superseded: Superseded<'_>) -> Result<u64> {
        let Builder { create, path, settings, sort, progress, pushed } = self;
        let (sb, _) = create.superblock(&path, settings, false, 0)?;
        let mut file = AtomicFile::create(&settings.fs, &path)?;
        file.put(&sb.encode_full())?;
        let mut out = Out { file, create: &create, next: 0, keys: 0, late: Vec::new(), path: &path };
        let mut sorted = sort.finish()?;
        let (mut group, mut group_hash, mut done) = (Vec::new(), 0, 0u64);
        while let Some((key, value)) = sorted.next_record()? {
            let hash = number(key, 1);
            if hash != group_hash {
                out.place_group(group_hash, &group, keys, superseded)?;
                group.clear();
                group_hash = hash;
            }
            group.push((number(value, 0), number(value, 1)));
            done += 1;
            if done.is_multiple_of(1 << 16) {
                progress(Progress { stage: "writing index", done, total: pushed });
            }
        }
        out.place_group(group_hash, &group, keys, superseded)?;
        let (mut file, keys) = out.finish(settings)?;
        let (sb, _) = create.superblock(&path, settings, whole, keys)?;
        // The cells first: a table that says it is whole must be.
        file.flushed()?.sync_data()?;
        file.flushed()?.write_at(0, &sb.encode())?;
        file.publish()?;
        Ok(keys)
    }
}

/// Is told the pointers of entries that others of the same key supersede.
pub(crate) type Superseded<'a> = &'a mut dyn FnMut(u64);

struct Out<'a> {
    file: AtomicFile,
    create: &'a CreateHindex,
    path: &'a Path,
    /// The next cell to be written.
    next: u64,
    keys: u64,
    late: Vec<Late>,
}

impl Out<'_> {
    fn width(&self) -> usize {
        if self.create.cellsz == 1 { 8 } else { 16 }
    }

    /// Places pointers of one hash: one each for keys that differ.
    fn place_group(
        &mut self,
        hash: u64,
        group: &[(u64, u64)],
        keys: Option<&dyn Keys>,
        superseded: Superseded<'_>,
    ) -> Result<()> {
        let Some(keys) = keys.filter(|_| group.len() > 1) else {
            return group.iter().try_for_each(|(ptr, _)| self.place(hash, *ptr));
        };
        let mut newest: HashMap<Vec<u8>, (u64, u64)> = HashMap::new();
        let mut bytes = 0;
        for (ptr, rank) in group {
            let key = keys.key_at(*ptr)?;
            bytes += key.len();
            if bytes > MAX_GROUP_BYTES {
                let (path, len, limit) = (self.path.into(), bytes as u64, MAX_GROUP_BYTES as u64);
                return Err(Error::TooLong { path, what: "group of keys with one hash", len, limit });
            }
            match newest.get_mut(&key) {
                Some(kept) if kept.1 > *rank => superseded(*ptr),
                Some(kept) => superseded(std::mem::replace(kept, (*ptr, *rank)).0),
                None => {
                    newest.insert(key, (*ptr, *rank));
                }
            }
        }
        // In the order of the container, so that the same input gives the same table.
        let mut survivors: Vec<u64> = newest.into_values().map(|(ptr, _)| ptr).collect();
        survivors.sort_unstable();
        survivors.iter().try_for_each(|ptr| self.place(hash, *ptr))
    }

    fn place(&mut self, hash: u64, ptr: u64) -> Result<()> {
        self.keys += 1;
        if self.keys >= self.create.htsize {
            return Err(Error::TableFull { path: self.path.into(), htsize: self.create.htsize });
        }
        let home = hash % self.create.htsize;
        if home.max(self.next) >= self.create.htsize {
            self.late.push((hash, ptr));
            return Ok(());
        }
        self.free_up_to(home)?;
        self.file.put(pair(ptr, hash).split_at(self.width()).0)?;
        self.next += 1;
        Ok(())
    }

    /// Writes free cells until `cell` is the next.
    fn free_up_to(&mut self, cell: u64) -> Result<()> {
        let mut bytes = cell.saturating_sub(self.next) * 8 * self.create.cellsz;
        while bytes > 0 {
            let (zeros, _) = [0; 4096].split_at(index(bytes).min(4096));
            self.file.put(zeros)?;
            bytes -= zeros.len() as u64;
        }
        self.next = self.next.max(cell);
        Ok(())
    }

    /// Completes the table; late cells go to the free ones at the front.
    fn finish(mut self, settings: &Settings) -> Result<(AtomicFile, u64)> {
        self.free_up_to(self.create.htsize)?;
        let limit = settings.sort_memory_bytes / 16;
        if self.late.len() > limit {
            let (len, limit) = (self.late.len() as u64, limit as u64);
            return Err(Error::TooLong { path: self.path.into(), what: "cluster at the end of the table", len, limit });
        }
        let (width, mut at) = (self.width(), self.create.sbsize);
        let mut late = std::mem::take(&mut self.late).into_iter();
        let mut next = late.next();
        while let Some((hash, ptr)) = next {
            // There is a free cell: fewer keys than cells were placed.
            let file = self.file.flushed()?;
            let page = read_up_to(file, at, 4096)?;
            if page.len() < width {
                return Err(Error::TableFull { path: self.path.into(), htsize: self.create.htsize });
            }
            match page.chunks_exact(width).position(|cell| words(cell).0 == FREE_CELL) {
                None => at += page.len() as u64,
                Some(i) => {
                    at += (i * width) as u64;
                    file.write_at(at, pair(ptr, hash).split_at(width).0)?;
                    at += width as u64;
                    next = late.next();
                }
            }
        }
        Ok((self.file, self.keys))
    }
}
