//! A directory of filesys.

use super::{CreateFilesys, Filesys, FsPaths};
use crate::design::{DATA_SUFFIX, GLOBAL_LOCK, NEW_SUFFIX};
use crate::lock::Locks;
use crate::{Access, Result, Settings};
use std::path::{Path, PathBuf};
use trawl_io::{File, LockError, Mode};

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
