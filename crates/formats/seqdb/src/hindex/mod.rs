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
mod rebuild;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use build::Builder;
pub use create::CreateHindex;
pub(crate) use probe::Found;
pub(crate) use rebuild::{RebuildPlan, distrust, lead_astray, rebuild_as, rebuild_with, roomy};
pub use rebuild::{Rebuilt, rebuild};
pub use verify::{IndexFindings, verify};
pub(crate) use verify::{Subject, Take, verify_over};

use crate::open::{self, Guard, with_suffix};
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, Superblock, SyncPolicy, design};
use cells::Cells;
use std::path::Path;
use trawl_io::{File, Hint, LockFile};

/// Where an index finds the keys its cells point to.
pub trait Keys {
    /// Whether the entry at `ptr` has this key. A pointer that cannot be right has none.
    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool>;

    /// The key of the entry at `ptr`.
    fn key_at(&self, ptr: u64) -> Result<Vec<u8>>;
}

impl Keys for crate::Kvseq {
    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        crate::Kvseq::has_key(self, ptr, key)
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        self.key(ptr)
    }
}

/// An open hash table.
#[derive(Debug)]
pub struct Hindex {
    settings: Settings,
    access: Access,
    file: Box<dyn File>,
    sb: Superblock,
    htsize: u64,
    cellsz: u64,
    cells: Cells,
    /// Cells not free, and cells in use.
    entries: u64,
    live: u64,
    /// The file says that it is in use.
    in_use: bool,
    /// The file says that its pointers may be those of another container.
    astray: bool,
    stale: bool,
    poisoned: bool,
    lock: Option<LockFile>,
}

/// What the superblock says of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub htsize: u64,
    pub cellsz: u64,
    pub end: u64,
}

impl Shape {
    /// Reads and checks HTSIZE, CELLSZ, HTALGO and the length that follows from them.
    pub fn of(sb: &Superblock, path: &Path, room: u64) -> Result<Self> {
        if sb.required(Name::HTALGO, "the variable HTALGO")? != design::HTALGO_MD5 {
            return Err(sb.fault(Name::HTALGO, "HTALGO 1 (MD5)"));
        }
        let cellsz = match sb.required(Name::CELLSZ, "the variable CELLSZ")? {
            1 => 1,
            2 => 2,
            _ => return Err(sb.fault(Name::CELLSZ, "CELLSZ 1 or 2")),
        };
        sb.required(Name::HTSIZE, "the variable HTSIZE")?;
        let htsize = sb.length(Name::HTSIZE)?.filter(|n| *n >= design::MIN_HTSIZE);
        let htsize = htsize.ok_or_else(|| sb.fault(Name::HTSIZE, "a HTSIZE of at least 2"))?;
        let end = htsize.checked_mul(8 * cellsz).and_then(|n| n.checked_add(sb.sbsize()));
        let end = end.filter(|n| i64::try_from(*n).is_ok());
        let end = end.ok_or_else(|| sb.fault(Name::HTSIZE, "a HTSIZE whose cells fit into 2^63 bytes"))?;
        let claimed = open::logical_end(sb, path, room)?;
        // Without FILESIZE the file's own length counts, and must do.
        if sb.value(Name::FILESIZE).is_some() && claimed != end || claimed < end {
            return Err(sb.fault(Name::FILESIZE, "FILESIZE = SBSIZE + 8 * CELLSZ * HTSIZE"));
        }
        Ok(Shape { htsize, cellsz, end })
    }
}

impl Hindex {
    /// Opens an index. A writer takes the lock beside it and refuses one that was in use when its writer died; so does a
    /// reader, unless the writer lives.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        match access {
            Access::Write => {
                let lock = with_suffix(path, design::LOCK_SUFFIX);
                Self::open_guarded(path, access, settings, Guard::Own(&lock))
            }
            Access::Read => open::beside(settings, &crate::inspect::writer_lock(path, settings)?, |writer_lives| {
                let index = Self::open_guarded(path, access, settings, Guard::Owner { writer_lives })?;
                let why = "its container was exchanged, and the index not rebuilt yet";
                if index.astray { Err(Error::NeedsCheck { path: path.into(), why }) } else { Ok(index) }
            }),
        }
    }

    pub(crate) fn open_guarded(path: &Path, access: Access, settings: &Settings, guard: Guard<'_>) -> Result<Self> {
        let (lock, writer_lives) = guard.enter(settings, access)?;
        let mut index = Self::open_anyway(path, access, settings)?;
        index.lock = lock;
        if index.in_use && !writer_lives {
            return Err(Error::NeedsCheck { path: path.into(), why: "the index was in use and not closed" });
        }
        Ok(index)
    }

    /// Opens whatever state it is in.
    pub(crate) fn open_anyway(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let open::Opened { file, sb, room } = open::open(settings, path, access, Kind::Hindex)?;
        let shape = Shape::of(&sb, path, room)?;
        let (in_use, astray) = match sb.length(Name::SYNCSIZE)? {
            None => (false, false),
            Some(n) if n == shape.end => (false, false),
            Some(design::SYNC_IN_USE) => (true, false),
            Some(design::SYNC_ASTRAY) => (true, true),
            Some(_) => return Err(sb.fault(Name::SYNCSIZE, "SYNCSIZE equal to FILESIZE, or 0, or 1")),
        };
        let width = usize::try_from(8 * shape.cellsz).unwrap_or(16);
        let mut cells = Cells::new(sb.sbsize(), shape.htsize, width, settings.index_memory_bytes);
        if settings.buffer_index {
            cells.load_all(&*file)?;
        } else {
            // A hint: searches go here and there.
            let _ = file.advise(sb.sbsize()..shape.end, Hint::Random);
        }
        let mut index = Hindex {
            access,
            file,
            htsize: shape.htsize,
            cellsz: shape.cellsz,
            cells,
            entries: 0,
            live: 0,
            in_use,
            astray,
            stale: false,
            poisoned: false,
            lock: None,
            settings: settings.clone(),
            sb,
        };
        index.read_counts()?;
        Ok(index)
    }

    /// The counters of the superblock; a table without them is counted, so that it never fills up unnoticed.
    fn read_counts(&mut self) -> Result<()> {
        match (self.sb.length(Name::ENTRIES)?, self.sb.length(Name::AENTRIES)?) {
            (Some(entries), Some(live)) if live <= entries && entries <= self.htsize => {
                (self.entries, self.live) = (entries, live);
            }
            (Some(_), Some(_)) => return Err(self.sb.fault(Name::ENTRIES, "AENTRIES <= ENTRIES <= HTSIZE")),
            _ => (self.entries, self.live) = self.count()?,
        }
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
        &self.sb
    }

    /// Cells.
    pub fn htsize(&self) -> u64 {
        self.htsize
    }

    /// 64-bit words of a cell: 2 with stored hashes.
    pub fn cellsz(&self) -> u64 {
        self.cellsz
    }

    /// Cells that are not free: keys and deleted ones.
    pub fn used_cells(&self) -> u64 {
        self.entries
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

    /// Keys.
    pub fn keys(&self) -> u64 {
        self.live
    }

    /// For a reader: looks whether the writer has replaced the file, and at its counters.
    pub fn refresh(&mut self) -> Result<()> {
        if self.access == Access::Write {
            return Ok(());
        }
        let named = self.settings.fs.metadata(self.path())?;
        if named.id != self.file.metadata()?.id || self.settings.buffer_index {
            let (path, settings) = (self.path().to_owned(), self.settings.clone());
            *self = Self::open_anyway(&path, Access::Read, &settings)?;
            return Ok(());
        }
        self.sb = open::read_superblock(&*self.file, Access::Read)?;
        let synced = self.sb.length(Name::SYNCSIZE)?;
        self.astray = synced == Some(design::SYNC_ASTRAY);
        self.in_use = self.astray || synced == Some(design::SYNC_IN_USE);
        self.read_counts()
    }

    /// Hands every key's pointer to `each`, in the order of cells, with its stored hash (0 where there is none).
    pub fn for_each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.for_each_cell(&mut |_, first, second| {
            if first == design::FREE_CELL || first == design::DELETED_CELL {
                return Ok(());
            }
            each(first, second)
        })
    }

    pub(crate) fn for_each_cell(&self, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        self.cells.for_each(&*self.file, each)
    }

    fn writable(&self) -> Result<()> {
        match self.access {
            Access::Read => Err(Error::ReadOnly { path: self.path().into() }),
            Access::Write if self.poisoned => Err(Error::Poisoned { path: self.path().into() }),
            Access::Write => Ok(()),
        }
    }

    /// Says in the file, durably, that it is in use: from now on a crash means a rebuild. To be called before the
    /// container is changed.
    pub fn begin(&mut self) -> Result<()> {
        if self.in_use {
            return Ok(());
        }
        self.writable()?;
        self.in_use = true;
        if self.sb.update(Name::SYNCSIZE, i64::try_from(design::SYNC_IN_USE).unwrap_or(0)) {
            self.write_superblock()?;
            self.barrier()?;
        }
        Ok(())
    }

    /// Says in the file, durably, that its pointers must not be followed any more: its container is about to be
    /// exchanged. What is left is a rebuild.
    pub(crate) fn lead_astray(&mut self) -> Result<()> {
        self.writable()?;
        (self.in_use, self.astray) = (true, true);
        self.sb.put(Name::SYNCSIZE, i64::try_from(design::SYNC_ASTRAY).unwrap_or(i64::MAX))?;
        self.write_superblock()?;
        self.barrier()
    }

    /// Sets a variable of the superblock; it is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.writable()?;
        self.sb.set(name, value)?;
        self.stale = true;
        Ok(())
    }

    fn write_superblock(&mut self) -> Result<()> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.sb.update(Name::ENTRIES, number(self.entries));
        self.sb.update(Name::AENTRIES, number(self.live));
        self.file.write_at(0, &self.sb.encode())?;
        self.stale = false;
        Ok(())
    }

    fn barrier(&mut self) -> Result<()> {
        if self.settings.sync == SyncPolicy::Off {
            return Ok(());
        }
        self.file.sync_data().inspect_err(|_| self.poisoned = true)?;
        Ok(())
    }

    /// Hands changed cells and counters to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.writable()?;
        if self.cells.is_dirty() {
            self.begin()?;
            self.cells.write_back(&*self.file)?;
        }
        if self.stale { self.write_superblock() } else { Ok(()) }
    }

    /// Makes everything durable and declares the table whole.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.writable()?;
        if !self.in_use && !self.stale && !self.cells.is_dirty() {
            return Ok(());
        }
        self.flush()?;
        self.write_superblock()?;
        self.barrier()?;
        let end = self.sb.sbsize() + 8 * self.cellsz * self.htsize;
        if self.sb.update(Name::SYNCSIZE, i64::try_from(end).unwrap_or(i64::MAX)) {
            self.sb.update(Name::SYNCTIME, self.settings.clock.seconds());
            self.write_superblock()?;
            self.barrier()?;
        }
        self.in_use = false;
        if !self.settings.index_caching {
            self.file.advise(0..end, Hint::Done)?;
        }
        Ok(())
    }

    /// Syncs and closes; the lock file goes too.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.checkpoint()?;
        }
        if let Some(lock) = self.lock.take() {
            lock.release_and_remove(&*self.settings.fs)?;
        }
        Ok(())
    }
}
