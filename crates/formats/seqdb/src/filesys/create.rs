//! Creating a filesys, and the directory that holds any number of them.

use super::{Filesys, FsPaths, is_inode_area, time};
use crate::design::{DATA_SUFFIX, GLOBAL_LOCK, NEW_SUFFIX};
use crate::hindex::CreateHindex;
use crate::kvseq::CreateKvseq;
use crate::lock::Locks;
use crate::num::signed;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Result, Settings, aside, design};
use std::path::{Path, PathBuf};
use trawl_io::{File, LockError, Mode};

/// What a new filesys is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreateFilesys {
    /// Size of the data file's superblock.
    pub sbsize: u64,
    /// Size of the superblocks of index and timefile.
    pub small_sbsize: u64,
    /// Step in which data file and timefile grow; 0: exactly.
    pub fileincr: i64,
    /// Inode area of a new file: a multiple of 8 from 16. Names longer than that get twice as much, and so on.
    pub isz: u64,
    /// Cells of the index; it grows by itself.
    pub htsize: u64,
    /// 64-bit words of a cell: 1, or 2 with stored hashes.
    pub cellsz: u64,
    /// Deletions are recorded in the index only, so that deleted files stay in the data file as they were.
    pub have_dups: bool,
    /// Append-only, with a time mark every so many seconds.
    pub append_only: Option<i64>,
    /// A random positive number that ties the files together.
    pub fsgen: i64,
    /// Further variables of the data file.
    pub extra: Vec<(Name, i64)>,
}

impl CreateFilesys {
    /// The defaults; `fsgen` is a random positive number.
    pub fn new(fsgen: i64) -> Self {
        CreateFilesys {
            sbsize: design::DEFAULT_SBSIZE,
            small_sbsize: design::DEFAULT_SBSIZE,
            fileincr: design::DEFAULT_FILEINCR,
            isz: design::DEFAULT_ISZ,
            htsize: 1021,
            cellsz: 2,
            have_dups: false,
            append_only: None,
            fsgen,
            extra: Vec::new(),
        }
    }

    /// Creates lock, data, index (and timefile), in this order, and opens the filesys for writing.
    pub fn create(&self, paths: &FsPaths, settings: &Settings) -> Result<Filesys> {
        let locks = Locks::take(settings, [paths.lock()])?;
        self.publish(paths, settings)?;
        Ok(Filesys { _locks: locks, ..Filesys::open_as(paths, Access::Write, settings, false)? })
    }

    /// Only the files.
    pub(crate) fn publish(&self, paths: &FsPaths, settings: &Settings) -> Result<()> {
        if !is_inode_area(self.isz) {
            return Err(Error::refused(&paths.data(), format!("ISZ of {}; it is a multiple of 8 from 16", self.isz)));
        }
        if self.fsgen < 1 {
            return Err(Error::refused(&paths.data(), "FSGEN must be positive"));
        }
        if settings.fs.exists(&paths.data())? {
            return Err(Error::FilesysExists(paths.data()));
        }
        // Leftovers of a creation or compaction that never came to its data file.
        aside::remove_all(settings, &[paths.index(), paths.time()])?;
        self.data().publish(&paths.data(), settings)?;
        self.index().publish(&paths.index(), settings)?;
        self.append_only.map_or(Ok(()), |timemp| {
            let time = time::create(self.small_sbsize, self.fileincr.min(4096), timemp, Some(self.fsgen));
            time.publish(&paths.time(), settings)
        })
    }

    fn data(&self) -> CreateKvseq {
        let mut extra = vec![
            (Name::ISZ, signed(self.isz)),
            (Name::HAVEDUPS, i64::from(self.have_dups)),
            (Name::HAVEAO, i64::from(self.append_only.is_some())),
            (Name::DTOTSZ, 0),
            (Name::ITOTSZ, 0),
            (Name::FSGEN, self.fsgen),
        ];
        extra.extend_from_slice(&self.extra);
        CreateKvseq {
            sbsize: self.sbsize,
            fileincr: self.fileincr,
            purpose: Purpose::fixed(design::PURPOSE_DATA),
            extra,
            ..CreateKvseq::default()
        }
    }

    fn index(&self) -> CreateHindex {
        CreateHindex {
            sbsize: self.small_sbsize,
            purpose: Purpose::fixed(design::PURPOSE_INDEX),
            htsize: self.htsize,
            cellsz: self.cellsz,
            extra: vec![(Name::FSGEN, self.fsgen)],
        }
    }
}

/// A directory that holds any number of filesys.
#[derive(Debug)]
pub struct Base {
    dir: PathBuf,
    settings: Settings,
    lock: Option<Box<dyn File>>,
}

impl Base {
    /// The directory must exist.
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self> {
        settings.fs.list(dir)?;
        Ok(Base { dir: dir.into(), settings: settings.clone(), lock: None })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes a share of the base's lock, which keeps checks and compactions away. An error if there is no
    /// `GLOBAL.lock`, or if one of them is at work.
    pub fn lock(&mut self) -> Result<()> {
        let path = self.dir.join(GLOBAL_LOCK);
        let file = self.settings.fs.open(&path, Mode::Read)?;
        if !file.try_lock_shared()? {
            return Err(LockError::Held { path, holder: "a check or compaction".into() }.into());
        }
        self.lock = Some(file);
        Ok(())
    }

    /// Creates the base's lock file, empty.
    pub fn create_lock(&self) -> Result<()> {
        self.settings.fs.open(&self.dir.join(GLOBAL_LOCK), Mode::OpenOrCreate)?;
        Ok(self.settings.fs.sync_dir(&self.dir)?)
    }

    /// The names of all filesys: one for each `*.data`.
    pub fn names(&self) -> Result<Vec<String>> {
        let entries = self.settings.fs.list(&self.dir)?;
        let names = entries.iter().filter(|e| !e.is_dir).filter_map(|e| {
            let name = e.name.to_str()?.strip_suffix(DATA_SUFFIX)?.strip_suffix('.')?;
            let hidden = name.is_empty() || name.starts_with('.') || name.ends_with(NEW_SUFFIX);
            (!hidden).then(|| name.to_owned())
        });
        Ok(names.collect())
    }

    /// The paths of one of them.
    pub fn paths(&self, name: &str) -> Result<FsPaths> {
        FsPaths::new(&self.dir, name)
    }

    /// Creates a filesys.
    pub fn create_filesys(&self, name: &str, create: &CreateFilesys) -> Result<Filesys> {
        create.create(&self.paths(name)?, &self.settings)
    }

    /// Opens a filesys.
    pub fn filesys(&self, name: &str, access: Access) -> Result<Filesys> {
        Filesys::open(&self.paths(name)?, access, &self.settings)
    }
}

/// The base's lock for a check or compaction, which wants to be alone; nothing if there is no `GLOBAL.lock`.
pub(super) fn lock_alone(paths: &FsPaths, settings: &Settings) -> Result<Option<Box<dyn File>>> {
    let file = match settings.fs.open(&paths.global_lock(), Mode::Read) {
        Err(e) if e.is_not_found() => return Ok(None),
        opened => opened?,
    };
    if file.try_lock()? {
        return Ok(Some(file));
    }
    Err(LockError::Held { path: paths.global_lock(), holder: "users of the base".into() }.into())
}

/// A filesys that no other process uses.
#[derive(Debug)]
pub(crate) struct LockedFs {
    _alone: Option<Box<dyn File>>,
    _writer: Locks,
}

impl LockedFs {
    /// Takes the lock of the base, if there is one, and that of the filesys, which must exist.
    pub fn take(paths: &FsPaths, settings: &Settings) -> Result<Self> {
        let alone = lock_alone(paths, settings)?;
        paths.expect_data(settings)?;
        Ok(LockedFs { _alone: alone, _writer: Locks::take(settings, [paths.lock()])? })
    }
}
