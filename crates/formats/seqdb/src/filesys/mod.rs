//! filesys: many files in a few large ones.
//!
//! | file | what it is |
//! | --- | --- |
//! | `NAME.data` | a kvseq: one inode per file, and its contents in data entries |
//! | `NAME.idx` | a hindex from names to inodes |
//! | `NAME.time` | append-only variant: where files of a time begin |
//! | `NAME.lock` | who writes; empty when nobody does |
//!
//! A name is any string of bytes; there are no directories. A file is read and written in parts and grows; space is not
//! used again before a [`compact()`]ion. The append-only variant never touches what it has written except to mark it
//! deleted: a file is created, written while it is the last one, and can be iterated over in the order of time.
//!
//! One process writes, others may read beside it and see whole files. Before a writer changes anything it marks the index
//! as in use, durably; after a crash that mark asks for a [`repair()`], which takes the data back to its last sync and
//! rebuilds the rest.

mod base;
#[cfg(test)]
mod beside;
mod check;
mod compact;
mod create;
mod handle;
pub(crate) mod inode;
mod iter;
mod names;
mod read;
mod remove;
mod repair;
#[cfg(test)]
mod tests;
mod time;
mod write;

pub use base::Base;
pub(crate) use base::{lock_alone, lock_existing};
pub use check::{FsFindings, verify};
pub(crate) use compact::compact_locked;
pub use compact::{Compacted, compact};
pub use create::CreateFilesys;
pub use handle::{FileHandle, WriteFlags};
pub use iter::{FileInfo, Files};
pub use names::FsPaths;
pub use repair::{FsRepair, rebuild_index, repair};
pub(crate) use repair::{cut_locked, repair_locked};

use crate::open::{self, Guard};
use crate::superblock::Name;
use crate::{Access, Error, Hindex, Kvseq, Repr, Result, Settings, SyncPolicy, design};
use inode::Names;
use names::OpenNames;
use std::collections::BTreeSet;
use std::sync::Arc;
use time::Timefile;
use trawl_io::LockFile;

/// Replaced inodes that may wait for their delete flag; then a sync is made.
const MAX_DEFERRED: usize = 1 << 16;

/// Numbers about a filesys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FsStats {
    /// Files.
    pub files: u64,
    /// Cells of the index.
    pub cells: u64,
    /// Cells used, by files or deleted ones.
    pub used_cells: u64,
    /// Cells of deleted files.
    pub deleted_cells: u64,
    /// Bytes of the data file after its superblock.
    pub total_bytes: u64,
    /// Of these, contents and inodes of existing files.
    pub used_bytes: u64,
    /// The rest: deleted files, and what each data entry costs.
    pub dead_bytes: u64,
}

/// An open filesys.
#[derive(Debug)]
pub struct Filesys {
    settings: Settings,
    access: Access,
    paths: FsPaths,
    data: Kvseq,
    index: Hindex,
    time: Option<Timefile>,
    isz: u64,
    have_dups: bool,
    append_only: bool,
    /// Bytes of contents and of inodes of existing files.
    dtot: i64,
    itot: i64,
    /// The mtime of the last file; known once something was created.
    last_mtime: Option<i64>,
    /// Replaced inodes to be marked deleted once what replaces them is durable.
    deferred: BTreeSet<u64>,
    open: Arc<OpenNames>,
    last_sync: i64,
    lock: Option<LockFile>,
}

impl Filesys {
    /// Opens a filesys. A writer takes its lock; it refuses one that was not closed properly, as does a reader unless the
    /// writer lives.
    pub fn open(paths: &FsPaths, access: Access, settings: &Settings) -> Result<Self> {
        if !settings.fs.exists(&paths.data())? {
            return Err(Error::FilesysNotFound { path: paths.data() });
        }
        let open = |writer_lives| Self::open_guarded(paths, access, settings, Guard::Owner { writer_lives });
        match access {
            Access::Read => open::beside(settings, &paths.lock(), open),
            Access::Write => {
                let lock = open::lock(settings, &paths.lock())?;
                Ok(Filesys { lock: Some(lock), ..open(false)? })
            }
        }
    }

    /// The same for a caller that takes care of the lock.
    pub(crate) fn open_guarded(paths: &FsPaths, access: Access, settings: &Settings, guard: Guard<'_>) -> Result<Self> {
        let data = Kvseq::open_guarded(&paths.data(), access, settings, guard)?;
        check_data(&data)?;
        let append_only = data.superblock().value(Name::HAVEAO) == Some(1);
        let index = missing_is_unclean(Hindex::open_guarded(&paths.index(), access, settings, guard))?;
        let fsgen = data.superblock().value(Name::FSGEN);
        expect_generation(fsgen, index.superblock())?;
        let time = if append_only {
            let time = missing_is_unclean(Timefile::open(&paths.time(), access, settings, guard))?;
            expect_generation(fsgen, time.kv.superblock())?;
            Some(time)
        } else {
            None
        };
        let sb = data.superblock();
        let isz = inode_area(sb)?;
        let number = |name| sb.value(name).unwrap_or(0);
        Ok(Filesys {
            access,
            paths: paths.clone(),
            isz,
            have_dups: number(Name::HAVEDUPS) == 1,
            append_only,
            dtot: number(Name::DTOTSZ),
            itot: number(Name::ITOTSZ),
            last_mtime: None,
            deferred: BTreeSet::new(),
            open: Arc::default(),
            last_sync: settings.clock.seconds(),
            lock: None,
            settings: settings.clone(),
            data,
            index,
            time,
        })
    }

    /// Where its files are.
    pub fn paths(&self) -> &FsPaths {
        &self.paths
    }

    /// For a reader: whether it was being written when it was opened. Then the index may be behind the data file: a file
    /// that it does not know may yet come up in [`Filesys::files`].
    pub fn is_being_written(&self) -> bool {
        let sb = self.index.superblock();
        self.access == Access::Read && sb.value(Name::SYNCSIZE) != sb.value(Name::FILESIZE)
    }

    /// Whether it is append-only.
    pub fn is_append_only(&self) -> bool {
        self.append_only
    }

    /// The data file, to look at.
    pub fn data(&self) -> &Kvseq {
        &self.data
    }

    /// The index, to look at.
    pub fn index(&self) -> &Hindex {
        &self.index
    }

    /// Sets a variable of the data file's superblock, ISZ of files to come for example.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.begin()?;
        self.data.set_variable(name, value)?;
        if name == "ISZ" {
            self.isz = u64::try_from(value).unwrap_or(self.isz);
        }
        Ok(())
    }

    /// Numbers.
    pub fn stats(&self) -> FsStats {
        let total_bytes = self.data.end() - self.data.superblock().sbsize();
        let used_bytes = u64::try_from(self.dtot.saturating_add(self.itot)).unwrap_or(0);
        FsStats {
            files: self.index.keys(),
            cells: self.index.htsize(),
            used_cells: self.index.used_cells(),
            deleted_cells: self.index.used_cells() - self.index.keys(),
            total_bytes,
            used_bytes,
            dead_bytes: total_bytes.saturating_sub(used_bytes),
        }
    }

    /// Sets a variable of the data file if it exists.
    pub(crate) fn note(&mut self, name: Name, value: i64) {
        self.data.update_variable(name, value);
    }

    fn names(&self) -> Names<'_> {
        Names(&self.data)
    }

    /// To be called before anything is changed: from here on a crash means a repair.
    fn begin(&mut self) -> Result<()> {
        match self.access {
            Access::Write => self.index.begin(),
            Access::Read => Err(Error::ReadOnly { path: self.paths.data() }),
        }
    }

    /// To be called before a file is added: from here on a crash means a repair, and there is a cell for its name.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        self.begin()?;
        self.index.make_room(&Names(&self.data))
    }

    /// To be called when an operation is complete.
    fn settle(&mut self) -> Result<()> {
        self.data.update_variable(Name::DTOTSZ, self.dtot);
        self.data.update_variable(Name::ITOTSZ, self.itot);
        self.data.settle()?;
        if self.deferred.len() >= MAX_DEFERRED {
            self.sync_data()?;
        }
        if self.settings.sync_every >= 0
            && self.settings.clock.seconds().saturating_sub(self.last_sync) >= self.settings.sync_every
        {
            self.sync()?;
        }
        Ok(())
    }

    /// Marks a replaced inode deleted: now if the last sync does not know it, else after the next.
    fn retire(&mut self, old: u64) -> Result<()> {
        if self.have_dups {
            return Ok(());
        }
        if self.data.synced_end().is_some_and(|synced| old >= synced) {
            return self.data.delete(old);
        }
        self.deferred.insert(old);
        Ok(())
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.data.flush()?;
        self.index.flush()?;
        self.time.as_mut().map_or(Ok(()), |time| time.kv.flush())
    }

    pub(crate) fn flush_data(&mut self) -> Result<()> {
        self.data.flush()
    }

    pub(crate) fn sync_data(&mut self) -> Result<()> {
        self.data.checkpoint()?;
        if !self.deferred.is_empty() {
            for old in std::mem::take(&mut self.deferred) {
                self.data.delete(old)?;
            }
            self.data.checkpoint()?;
        }
        Ok(())
    }

    /// Makes everything durable, as far as the settings want it: data, then times, then the index.
    pub fn sync(&mut self) -> Result<()> {
        self.last_sync = self.settings.clock.seconds();
        self.sync_data()?;
        if self.settings.sync == SyncPolicy::Data {
            return Ok(());
        }
        self.sync_rest()
    }

    pub(crate) fn sync_rest(&mut self) -> Result<()> {
        // The mark of the index goes last: as long as it is there, the timefile is rebuilt too.
        if let Some(time) = &mut self.time {
            time.kv.checkpoint()?;
        }
        self.index.checkpoint()
    }

    /// Syncs and closes.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.sync_data()?;
            self.sync_rest()?;
        }
        Ok(())
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        // The index last: if it says that nobody writes, nothing of the data is half done.
        self.data.refresh()?;
        self.index.refresh()?;
        if let Some(time) = &mut self.time {
            time.kv.refresh()?;
        }
        // Asked last: a compaction puts another data file in its place first, then the rest.
        if self.access == Access::Read && !self.data.is_current()? {
            let open = self.open.clone();
            *self = Filesys { open, ..Self::open(&self.paths, Access::Read, &self.settings)? };
            return Ok(());
        }
        self.dtot = self.data.superblock().value(Name::DTOTSZ).unwrap_or(0);
        self.itot = self.data.superblock().value(Name::ITOTSZ).unwrap_or(0);
        Ok(())
    }

    /// Flushes, then gives back all descriptors and the lock; [`Parked::resume`] takes them again. Open handles stay
    /// usable if nobody else wrote meanwhile.
    pub fn dispose(self) -> Result<Parked> {
        let (paths, access, settings, open) =
            (self.paths.clone(), self.access, self.settings.clone(), self.open.clone());
        self.close()?;
        Ok(Parked { paths, access, settings, open })
    }
}

/// A filesys without open files.
#[derive(Debug)]
pub struct Parked {
    paths: FsPaths,
    access: Access,
    settings: Settings,
    open: Arc<OpenNames>,
}

impl Parked {
    /// Opens it again.
    pub fn resume(self) -> Result<Filesys> {
        let mut fs = Filesys::open(&self.paths, self.access, &self.settings)?;
        fs.open = self.open;
        Ok(fs)
    }
}

/// What every data file of a filesys has.
pub(crate) fn check_data(data: &Kvseq) -> Result<()> {
    let (sb, layout) = (data.superblock(), data.layout());
    if sb.purpose().to_string() != design::PURPOSE_DATA {
        return Err(sb.fault(Name::PURPOSE, "PURPOSE FSYSDATA"));
    }
    if layout.key != Repr::Int8 || layout.value != Repr::Int64 || !layout.delflag || layout.align != 1 {
        return Err(sb.fault(Name::KEYREPR, "KEYREPR 0, VALREPR 3, KVDELFL 1 and no ALIGN"));
    }
    Ok(())
}

/// The inode area that a data file wants for new files.
pub(crate) fn inode_area(sb: &crate::Superblock) -> Result<u64> {
    let isz = sb.length(Name::ISZ)?.unwrap_or(design::DEFAULT_ISZ);
    if isz < design::MIN_ISZ || !isz.is_multiple_of(8) || isz > inode::MAX_AREA {
        return Err(sb.fault(Name::ISZ, "an ISZ, a multiple of 8 from 16"));
    }
    Ok(isz)
}

fn expect_generation(expected: Option<i64>, sb: &crate::Superblock) -> Result<()> {
    let found = sb.value(Name::FSGEN);
    if found == expected {
        return Ok(());
    }
    let (expected, found) = (expected.unwrap_or(0), found.unwrap_or(0));
    Err(Error::GenerationMismatch { path: sb.path().into(), expected, found })
}

fn missing_is_unclean<T>(opened: Result<T>) -> Result<T> {
    match opened {
        Err(Error::Io(e)) if e.is_not_found() => {
            Err(Error::NeedsCheck { path: e.path().into(), why: "it is missing, though its data file is there" })
        }
        other => other,
    }
}
