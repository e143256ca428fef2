//! hindex: a hash table on disk that leads from keys to entries of a container.
//!
//! ```text
//! superblock | cell 0 | cell 1 | ... | cell HTSIZE-1          cell i at SBSIZE + 8*CELLSZ*i
//!
//! CELLSZ 1:  pointer                    0: free    2^64-1: deleted    else: pointer to the entry
//! CELLSZ 2:  pointer | hash             hash: first 64 bits of the MD5 of the key; 0 in free and deleted cells
//! ```
//! A key's search starts at its home, hash mod HTSIZE, and goes from cell to cell until a free one. The last free cell
//! is never given away. Keys are not stored here: they are compared in the container ([`Keys`]), so that an index never
//! gives a wrong answer, only, if it is broken, none.
//!
//! ```text
//! closed, SYNCSIZE = FILESIZE --first change--> in use, SYNCSIZE = 0 (durable before any cell) --checkpoint--> closed
//!                                                 `--crash--> rebuilt from the container, never repaired in place
//! any --container about to be exchanged--> astray, SYNCSIZE = 1 (durable before the exchange) --rebuild--> closed
//! ```

mod build;
mod cells;
mod create;
mod probe;
#[cfg(test)]
mod tests;
mod verify;

pub use build::{Rebuilt, rebuild};
pub(crate) use build::{build, expect_index, mark, rebuild_aside};
pub use create::CreateHindex;
pub(crate) use create::roomy;
pub(crate) use probe::Found;
pub(crate) use verify::side_by_side;
pub use verify::{IndexFindings, verify};

use crate::file::SbFile;
use crate::kvseq::lock_path;
use crate::num::{index, signed};
use crate::superblock::Name;
use crate::{Access, Error, Kind, Kvseq, Result, Settings, Superblock, design, lock};
use cells::Cells;
use std::path::Path;
use trawl_io::Hint;

/// An entry of a container as an index is about it.
#[derive(Debug, Clone, Copy)]
pub struct Keyed<'a> {
    /// Where it starts.
    pub ptr: u64,
    /// Whether it is marked deleted.
    pub deleted: bool,
    /// Its key.
    pub key: &'a [u8],
    /// Of equal keys the one of the highest rank counts, of equal ranks the last.
    pub rank: u64,
}

/// What the cells of an index point to: entries of a kvseq by their keys, files by their names, captures by their URLs.
pub trait Keys {
    /// The kvseq that holds them.
    fn container(&self) -> &Kvseq;

    /// Whether the entry at `ptr` has this key. A pointer that cannot be right has none.
    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool>;

    /// The key of the entry at `ptr`.
    fn key_at(&self, ptr: u64) -> Result<Vec<u8>>;

    /// Hands over every entry that has a key, in the order of the container.
    fn each(&self, take: &mut dyn FnMut(Keyed<'_>) -> Result<()>) -> Result<()>;

    /// Whether the key of every entry not deleted must be found. (An entry that a later one of the same key replaces needs
    /// no cell, but is worth a warning.)
    fn are_all_found(&self) -> bool;
}

impl Keys for Kvseq {
    fn container(&self) -> &Kvseq {
        self
    }

    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Kvseq::has_key(self, ptr, key)
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        self.key(ptr)
    }

    fn each(&self, take: &mut dyn FnMut(Keyed<'_>) -> Result<()>) -> Result<()> {
        let mut scan = self.scan().with_deleted().keys_only();
        while let Some(item) = scan.next_entry()? {
            take(Keyed { ptr: item.ptr, deleted: item.deleted, key: item.key, rank: 0 })?;
        }
        Ok(())
    }

    fn are_all_found(&self) -> bool {
        true
    }
}

/// An open hash table.
#[derive(Debug)]
pub struct Hindex {
    pub(crate) file: SbFile,
    shape: Shape,
    cells: Cells,
    /// Cells not free, and cells in use.
    entries: u64,
    live: u64,
    /// The file says that it is in use.
    in_use: bool,
    /// The file says that its pointers may be those of another container.
    astray: bool,
}

/// What the superblock says of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub htsize: u64,
    pub cellsz: u64,
    pub end: u64,
}

impl Shape {
    /// Reads and checks HTSIZE, CELLSZ, HTALGO and the length that follows from them, for a file of `room` bytes.
    pub fn of(sb: &Superblock, room: u64) -> Result<Self> {
        sb.expect_md5()?;
        let cellsz = sb.required(Name::CELLSZ, "the variable CELLSZ")?;
        let htsize = sb.required(Name::HTSIZE, "the variable HTSIZE")?;
        let cellsz = match cellsz {
            1 => 1,
            2 => 2,
            _ => return Err(sb.fault(Name::CELLSZ, "CELLSZ 1 or 2")),
        };
        let htsize = u64::try_from(htsize).ok().filter(|n| *n >= design::MIN_HTSIZE);
        let htsize = htsize.ok_or_else(|| sb.fault(Name::HTSIZE, "a HTSIZE of at least 2"))?;
        let end = Self::end(sb.sbsize(), htsize, cellsz);
        let end = end.ok_or_else(|| sb.fault(Name::HTSIZE, "a HTSIZE whose cells fit into 2^63 bytes"))?;
        let claimed = sb.logical_end(room)?;
        // Without FILESIZE the file's own length counts, and must do.
        if sb.value(Name::FILESIZE).is_some() && claimed != end || claimed < end {
            return Err(sb.fault(Name::FILESIZE, "FILESIZE = SBSIZE + 8 * CELLSZ * HTSIZE"));
        }
        Ok(Shape { htsize, cellsz, end })
    }

    /// Where a table ends, if a file can be that long.
    fn end(sbsize: u64, htsize: u64, cellsz: u64) -> Option<u64> {
        let end = htsize.checked_mul(8 * cellsz)?.checked_add(sbsize)?;
        i64::try_from(end).is_ok().then_some(end)
    }
}

impl Hindex {
    /// Opens an index. A writer takes the lock beside it and refuses one that was in use when its writer died; so does a
    /// reader, unless the writer lives.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let lock = match access {
            Access::Write => lock_path(path),
            Access::Read => crate::inspect::writer_lock(path, settings)?,
        };
        let (mut index, locks) = lock::open(settings, access, &lock, &[], |writer_lives| {
            let index = Self::open_as(path, access, settings, writer_lives)?;
            let why = "its container was exchanged, and the index not rebuilt yet";
            if index.astray { Err(Error::NeedsCheck { path: path.into(), why }) } else { Ok(index) }
        })?;
        index.file.locks = locks;
        Ok(index)
    }

    /// The same for a caller that takes care of the lock, and knows whether another process writes. An index that was led
    /// astray is opened for reading beside its writer: see [`Hindex::is_astray`].
    pub(crate) fn open_as(path: &Path, access: Access, settings: &Settings, writer_lives: bool) -> Result<Self> {
        let index = Self::open_anyway(path, access, settings)?;
        if index.in_use && !writer_lives {
            return Err(Error::NeedsCheck { path: path.into(), why: "the index was in use and not closed" });
        }
        Ok(index)
    }

    /// Opens whatever state it is in.
    pub(crate) fn open_anyway(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let mut file = SbFile::open(path, Kind::Hindex, access, settings)?;
        let shape = Shape::of(&file.sb, file.store.room())?;
        file.ends_at(shape.end);
        let body = file.sb.sbsize();
        let mut cells = Cells::new(body, shape.htsize, index(8 * shape.cellsz), settings.index_memory_bytes);
        if settings.buffer_index {
            cells.load_all(file.store.file())?;
        } else {
            // A hint: searches go here and there.
            let _ = file.store.file().advise(body..shape.end, Hint::Random);
        }
        let mut index = Hindex { file, shape, cells, entries: 0, live: 0, in_use: false, astray: false };
        index.read_state()?;
        Ok(index)
    }

    /// What the superblock says of the state and counts. A table without counters is counted, so that it never fills up
    /// unnoticed.
    fn read_state(&mut self) -> Result<()> {
        let sb = &self.file.sb;
        (self.in_use, self.astray) = match sb.length(Name::SYNCSIZE)? {
            None => (false, false),
            Some(n) if n == self.shape.end => (false, false),
            Some(design::SYNC_IN_USE) => (true, false),
            Some(design::SYNC_ASTRAY) => (true, true),
            Some(_) => return Err(sb.fault(Name::SYNCSIZE, "SYNCSIZE equal to FILESIZE, or 0, or 1")),
        };
        (self.entries, self.live) = match (sb.length(Name::ENTRIES)?, sb.length(Name::AENTRIES)?) {
            (Some(entries), Some(live)) if live <= entries && entries <= self.shape.htsize => (entries, live),
            (Some(_), Some(_)) => return Err(sb.fault(Name::ENTRIES, "AENTRIES <= ENTRIES <= HTSIZE")),
            _ => self.count()?,
        };
        Ok(())
    }

    fn count(&self) -> Result<(u64, u64)> {
        let (mut entries, mut live) = (0, 0);
        self.for_each_cell(&mut |_, first, _| {
            entries += u64::from(first != design::FREE_CELL);
            live += u64::from(first != design::FREE_CELL && first != design::DELETED_CELL);
            Ok(())
        })?;
        Ok((entries, live))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The variables as they are now.
    pub fn superblock(&self) -> &Superblock {
        &self.file.sb
    }

    /// Where a cell lies in the file.
    fn offset(&self, cell: u64) -> u64 {
        self.file.sb.sbsize() + 8 * self.shape.cellsz * cell
    }

    /// Cells.
    pub fn htsize(&self) -> u64 {
        self.shape.htsize
    }

    /// 64-bit words of a cell: 2 with stored hashes.
    pub fn cellsz(&self) -> u64 {
        self.shape.cellsz
    }

    /// Cells that are not free: keys and deleted ones.
    pub fn used_cells(&self) -> u64 {
        self.entries
    }

    /// Keys.
    pub fn keys(&self) -> u64 {
        self.live
    }

    /// Whether the file says that it is in use, or said so when it was opened.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use
    }

    /// Whether the file said, when it was opened, that its pointers may be those of another container. A search in it
    /// would compare keys at any place of that; the container itself has to be searched.
    #[inline]
    pub(crate) fn is_astray(&self) -> bool {
        self.astray
    }

    /// For a reader: looks whether the writer has replaced the file, and at its counters.
    pub fn refresh(&mut self) -> Result<()> {
        if self.file.access == Access::Write {
            return Ok(());
        }
        if self.file.settings.buffer_index || !self.file.is_current()? {
            *self = Self::open_anyway(self.path(), Access::Read, &self.file.settings)?;
            return Ok(());
        }
        self.file.sb = self.file.reread()?;
        self.read_state()
    }

    /// Hands every key's pointer to `each`, in the order of cells, with its stored hash (0 where there is none).
    pub fn for_each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.for_each_cell(&mut |_, first, second| match first {
            design::FREE_CELL | design::DELETED_CELL => Ok(()),
            ptr => each(ptr, second),
        })
    }

    pub(crate) fn for_each_cell(&self, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        self.cells.for_each(self.file.store.file(), each)
    }

    /// Says in the file, durably, that it is in use: from now on a crash means a rebuild. To be called before the
    /// container is changed.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        if self.in_use { Ok(()) } else { self.mark_in_use() }
    }

    #[cold]
    fn mark_in_use(&mut self) -> Result<()> {
        self.file.writable()?;
        if self.file.sb.value(Name::SYNCSIZE).is_some() {
            self.file.mark(design::SYNC_IN_USE)?;
        }
        self.in_use = true;
        Ok(())
    }

    /// Says in the file, durably, that its pointers must not be followed any more: its container is about to be
    /// exchanged. What is left is a rebuild.
    pub(crate) fn lead_astray(&mut self) -> Result<()> {
        (self.in_use, self.astray) = (true, true);
        self.file.mark(design::SYNC_ASTRAY)
    }

    /// Sets a variable of the superblock; it is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.file.set_variable(name, value)
    }

    /// Hands changed cells and counters to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.write_cells()?;
        if self.file.stale { self.file.flush() } else { Ok(()) }
    }

    fn write_cells(&mut self) -> Result<()> {
        self.file.writable()?;
        if self.cells.is_dirty() {
            self.begin()?;
            self.cells.write_back(self.file.store.file())?;
        }
        self.file.sb.update(Name::ENTRIES, signed(self.entries));
        self.file.sb.update(Name::AENTRIES, signed(self.live));
        Ok(())
    }

    /// Makes everything durable and declares the table whole.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.file.writable()?;
        if !self.in_use && !self.file.stale && !self.cells.is_dirty() {
            return Ok(());
        }
        self.write_cells()?;
        self.file.checkpoint()?;
        self.in_use = false;
        if !self.file.settings.index_caching {
            self.file.store.file().advise(0..self.shape.end, Hint::Done)?;
        }
        Ok(())
    }

    /// Syncs and closes; the lock file goes too.
    pub fn close(mut self) -> Result<()> {
        if self.file.access == Access::Write {
            self.checkpoint()?;
        }
        self.file.close()
    }
}
