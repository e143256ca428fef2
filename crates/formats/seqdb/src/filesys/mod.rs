//! filesys: many files in a few large ones.
//!
//! | file | what it is |
//! | --- | --- |
//! | `NAME.data` | a kvseq: one inode per file, and its contents in data entries |
//! | `NAME.idx` | a hindex from names to inodes |
//! | `NAME.time` | append-only variant: where files of a time begin |
//! | `NAME.lock` | who writes; empty when no process does |
//!
//! A name is any string of bytes; there are no directories. A file is read and written in parts and grows; space is not
//! used again before a [`compact()`]ion. The append-only variant never touches what it has written except to mark it
//! deleted: a file is created, written while it is the last one, and can be iterated over in the order of time.
//!
//! One process writes, others may read beside it and see whole files. Before a writer changes anything it marks the index
//! as in use, durably; after a crash that mark asks for a [`repair()`], which takes the data back to its last sync and
//! rebuilds the rest.

mod check;
mod compact;
mod create;
mod handle;
pub(crate) mod inode;
mod iter;
mod names;
mod remove;
mod repair;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_beside;
mod time;
mod write;

pub(crate) use check::verify_index;
pub use check::{FsFindings, verify};
pub use compact::{Compacted, compact};
pub(crate) use create::LockedFs;
pub use create::{Base, CreateFilesys};
pub use handle::{FileHandle, FileReader, WriteFlags};
pub use iter::{FileInfo, Files};
pub use names::FsPaths;
pub(crate) use repair::cut;
pub use repair::{FsRepair, rebuild_index, repair};
pub(crate) use write::Contents;

use crate::lock::{self, Locks};
use crate::superblock::Name;
use crate::together::Together;
use crate::{Access, Error, Hindex, Kvseq, Repr, Result, Settings, Superblock, design};
use inode::Names;
use names::OpenNames;
use std::path::Path;
use std::sync::Arc;
use time::Timefile;

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
    pub(crate) settings: Settings,
    access: Access,
    paths: FsPaths,
    pub(crate) data: Kvseq,
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
    open: Arc<OpenNames>,
    _locks: Locks,
}

impl Filesys {
    /// Opens a filesys. A writer takes its lock; it refuses one that was not closed properly, as does a reader unless the
    /// writer lives.
    pub fn open(paths: &FsPaths, access: Access, settings: &Settings) -> Result<Self> {
        paths.expect_data(settings)?;
        let open = |writer_lives| Self::open_as(paths, access, settings, writer_lives);
        let (fs, locks) = lock::open(settings, access, &paths.lock(), &[], open)?;
        Ok(Filesys { _locks: locks, ..fs })
    }

    /// The same for a caller that takes care of the lock, and knows whether another process writes.
    pub(crate) fn open_as(paths: &FsPaths, access: Access, settings: &Settings, writer_lives: bool) -> Result<Self> {
        let data = Kvseq::open_as(&paths.data(), access, settings, writer_lives)?;
        check_data(&data)?;
        let sb = data.superblock();
        let flag = |name| sb.value(name) == Some(1);
        let (append_only, have_dups, isz) = (flag(Name::HAVEAO), flag(Name::HAVEDUPS), inode_area(sb)?);
        let index = open_index(&data, &paths.index(), writer_lives, MISSING)?;
        let time = if append_only {
            let opened = Timefile::open(&paths.time(), access, settings, writer_lives);
            let time = missing_is_unclean(opened, MISSING)?;
            expect_generation(sb, time.kv.superblock())?;
            Some(time)
        } else {
            None
        };
        let mut fs = Filesys {
            settings: settings.clone(),
            access,
            paths: paths.clone(),
            data,
            index,
            time,
            isz,
            have_dups,
            append_only,
            dtot: 0,
            itot: 0,
            last_mtime: None,
            open: Arc::default(),
            _locks: Locks::default(),
        };
        fs.read_totals();
        Ok(fs)
    }

    /// The totals as the superblock has them, which may be anything; 0 where it has none.
    fn read_totals(&mut self) {
        let total = |name| self.data.superblock().value(name).unwrap_or(0);
        (self.dtot, self.itot) = (total(Name::DTOTSZ), total(Name::ITOTSZ));
    }

    /// Where its files are.
    pub fn paths(&self) -> &FsPaths {
        &self.paths
    }

    /// For a reader: whether it was being written when it was opened.
    fn is_being_written(&self) -> bool {
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
            self.isz = inode_area(self.data.superblock())?;
        }
        Ok(())
    }

    /// Numbers.
    pub fn stats(&self) -> FsStats {
        let total_bytes = self.data.end() - self.data.superblock().sbsize();
        let used_bytes = self.dtot.saturating_add(self.itot).max(0).cast_unsigned();
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

    /// To be called before anything is changed: from here on a crash means a repair.
    fn begin(&mut self) -> Result<()> {
        match self.access {
            Access::Write => self.index.begin(),
            Access::Read => Err(Error::ReadOnly(self.paths.data())),
        }
    }

    /// To be called before a file is added: from here on a crash means a repair, and there is a cell for its name.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        self.begin()?;
        self.index.make_room(&Names(&self.data))
    }

    /// To be called when an operation is complete.
    fn settle(&mut self) -> Result<()> {
        if self.settle_data()? { self.sync() } else { Ok(()) }
    }

    /// The same but for a sync; says whether one is due.
    pub(crate) fn settle_data(&mut self) -> Result<bool> {
        self.data.update_variable(Name::DTOTSZ, self.dtot);
        self.data.update_variable(Name::ITOTSZ, self.itot);
        self.data.settle()?;
        Ok(self.data.interval_is_over())
    }

    /// The data, and what leads to it, an index by URL too if there is one. The mark of the index by name goes last: as
    /// long as it is there, the rest is rebuilt too.
    pub(crate) fn together<'a>(&'a mut self, urls: Option<&'a mut Hindex>) -> Together<'a> {
        let pairs = self.time.as_mut().map(|time| &mut time.kv);
        Together { data: &mut self.data, pairs, indexes: urls.into_iter().chain([&mut self.index]).collect() }
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.together(None).flush()
    }

    /// Makes everything durable, as far as the settings want it.
    pub fn sync(&mut self) -> Result<()> {
        self.together(None).sync()
    }

    /// Syncs and closes. The lock file stays.
    pub fn close(mut self) -> Result<()> {
        self.together(None).close()
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        // The index last: if it says that no process writes, nothing of the data is half done.
        self.data.refresh()?;
        if let Some(time) = &mut self.time {
            time.kv.refresh()?;
        }
        self.index.refresh()?;
        // Asked last: a compaction puts another data file in its place first, then the rest.
        if !self.is_current_with(&self.index)? {
            let open = self.open.clone();
            *self = Filesys { open, ..Self::open(&self.paths, Access::Read, &self.settings)? };
        }
        self.read_totals();
        Ok(())
    }

    /// Whether a reader has the data file that its name leads to, and `index` is an index of that.
    pub(crate) fn is_current_with(&self, index: &Hindex) -> Result<bool> {
        let fits = expect_generation(self.data.superblock(), index.superblock()).is_ok();
        Ok(self.access == Access::Write || fits && self.data.file.is_current()?)
    }

    /// Flushes, then gives back all descriptors and the lock; [`Parked::resume`] takes them again. Open handles stay
    /// usable if no other process wrote meanwhile.
    pub fn dispose(self) -> Result<Parked> {
        let (paths, settings) = (self.paths.clone(), self.settings.clone());
        let parked = Parked { paths, access: self.access, settings, open: self.open.clone() };
        self.close()?;
        Ok(parked)
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
        Ok(Filesys { open: self.open, ..Filesys::open(&self.paths, self.access, &self.settings)? })
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
pub(crate) fn inode_area(sb: &Superblock) -> Result<u64> {
    let isz = sb.length(Name::ISZ)?.unwrap_or(design::DEFAULT_ISZ);
    if is_inode_area(isz) { Ok(isz) } else { Err(sb.fault(Name::ISZ, "an ISZ, a multiple of 8 from 16")) }
}

fn is_inode_area(bytes: u64) -> bool {
    (design::MIN_ISZ..=inode::MAX_AREA).contains(&bytes) && bytes.is_multiple_of(8)
}

/// Opens an index over a data file, as that was opened. If there is none, `why` says what that means.
pub(crate) fn open_index(data: &Kvseq, path: &Path, writer_lives: bool, why: &'static str) -> Result<Hindex> {
    let (access, settings) = (data.file.access, &data.file.settings);
    let index = missing_is_unclean(Hindex::open_as(path, access, settings, writer_lives), why)?;
    expect_generation(data.superblock(), index.superblock())?;
    Ok(index)
}

/// Whether another file of the filesys has the FSGEN of the data file, of whose superblock `data` is.
fn expect_generation(data: &Superblock, other: &Superblock) -> Result<()> {
    let [expected, found] = [data, other].map(|sb| sb.value(Name::FSGEN));
    if found == expected {
        return Ok(());
    }
    let (expected, found) = (expected.unwrap_or(0), found.unwrap_or(0));
    Err(Error::GenerationMismatch { path: other.path().into(), expected, found })
}

const MISSING: &str = "it is missing, though its data file is there";

fn missing_is_unclean<T>(opened: Result<T>, why: &'static str) -> Result<T> {
    match opened {
        Err(Error::Io(e)) if e.is_not_found() => Err(Error::NeedsCheck { path: e.path().into(), why }),
        other => other,
    }
}
