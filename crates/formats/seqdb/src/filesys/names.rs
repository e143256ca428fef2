//! Where the files of a filesys are, and which names are open in this process.

use super::inode::MAX_NAME;
use crate::aside::dir_of;
use crate::design::{
    DATA_SUFFIX, GLOBAL_LOCK, INDEX_SUFFIX, LOCK_SUFFIX, MAX_FILESYS_NAME, NEW_SUFFIX, TIME_SUFFIX, URL_INDEX_SUFFIX,
};
use crate::error::shown;
use crate::{Error, Result, Settings};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The paths of one filesys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsPaths {
    base: PathBuf,
    name: String,
}

impl FsPaths {
    /// The filesys `name` in the directory `base`.
    pub fn new(base: &Path, name: &str) -> Result<Self> {
        let legal = (1..=MAX_FILESYS_NAME).contains(&name.len())
            && !name.starts_with('.')
            && !name.contains(['/', '\0'])
            && !name.ends_with(NEW_SUFFIX);
        let paths = FsPaths { base: base.into(), name: name.into() };
        if legal { Ok(paths) } else { Err(Error::BadName(paths.data())) }
    }

    /// The filesys that `path` names: `BASE/NAME`, with or without `.data`.
    pub fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_str();
        // A name made fit would be another filesys.
        let name = name.ok_or_else(|| Error::BadName(path.into()))?;
        let name = name.strip_suffix(&format!(".{DATA_SUFFIX}")).unwrap_or(name);
        Self::new(dir_of(path), name)
    }

    pub(crate) fn file(&self, suffix: &str) -> PathBuf {
        self.base.join(format!("{}.{suffix}", self.name))
    }

    /// The directory.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `NAME.data`: inodes and contents.
    pub fn data(&self) -> PathBuf {
        self.file(DATA_SUFFIX)
    }

    /// `NAME.idx`: from names to inodes.
    pub fn index(&self) -> PathBuf {
        self.file(INDEX_SUFFIX)
    }

    /// `NAME.time`: from times to places, if append-only.
    pub fn time(&self) -> PathBuf {
        self.file(TIME_SUFFIX)
    }

    /// `NAME.lock`: who writes.
    pub fn lock(&self) -> PathBuf {
        self.file(LOCK_SUFFIX)
    }

    /// `NAME.urls`: from URLs to captures, if it is a container of those.
    pub(crate) fn urls(&self) -> PathBuf {
        self.file(URL_INDEX_SUFFIX)
    }

    /// All of them but the lock, in the order in which they take the place of others.
    pub(crate) fn all(&self) -> [PathBuf; 4] {
        [self.data(), self.index(), self.time(), self.urls()]
    }

    /// The files that a compaction makes beside them.
    pub(crate) fn copies(&self) -> Vec<PathBuf> {
        let aside = self.aside();
        aside.all().into_iter().chain([aside.lock()]).collect()
    }

    /// An error if there is no such filesys.
    pub(crate) fn expect_data(&self, settings: &Settings) -> Result<()> {
        match settings.fs.exists(&self.data())? {
            true => Ok(()),
            false => Err(Error::FilesysNotFound(self.data())),
        }
    }

    /// `GLOBAL.lock` of the base.
    pub fn global_lock(&self) -> PathBuf {
        self.base.join(GLOBAL_LOCK)
    }

    /// The paths under which a compaction builds.
    pub(crate) fn aside(&self) -> Self {
        FsPaths { base: self.base.clone(), name: format!("{}{NEW_SUFFIX}", self.name) }
    }
}

impl super::Filesys {
    /// Refuses what cannot be the name of a file.
    pub(super) fn expect_name(&self, name: &[u8]) -> Result<()> {
        let (path, what, len) = (self.paths.data(), "file name", name.len() as u64);
        match name.len() {
            0 => Err(Error::TooShort { path, what, len, least: 1 }),
            1..=MAX_NAME => Ok(()),
            _ => Err(Error::TooLong { path, what, len, limit: MAX_NAME as u64 }),
        }
    }
}

/// Names open in this process: how many readers, or the one writer.
#[derive(Debug, Default)]
pub(crate) struct OpenNames(Mutex<HashMap<Vec<u8>, Users>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Users {
    Readers(u32),
    Writer,
}

impl OpenNames {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Users>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a user of `name`; refused if a writer has it, or if a writer wants what somebody has.
    pub fn enter(self: &Arc<Self>, paths: &FsPaths, name: &[u8], write: bool) -> Result<OpenName> {
        let mut names = self.lock();
        let users = match (names.get(name), write) {
            (None, true) => Users::Writer,
            (None, false) => Users::Readers(1),
            (Some(Users::Readers(n)), false) => Users::Readers(n + 1),
            _ => return Err(Error::AlreadyOpen(paths.data(), shown(name))),
        };
        names.insert(name.to_vec(), users);
        Ok(OpenName { names: self.clone(), name: name.to_vec() })
    }

    /// Refuses if `name` is open.
    pub fn expect_closed(&self, paths: &FsPaths, name: &[u8]) -> Result<()> {
        match self.lock().get(name) {
            None => Ok(()),
            Some(_) => Err(Error::AlreadyOpen(paths.data(), shown(name))),
        }
    }
}

/// A place in the table of open names; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct OpenName {
    names: Arc<OpenNames>,
    name: Vec<u8>,
}

impl Drop for OpenName {
    fn drop(&mut self) {
        let mut names = self.names.lock();
        match names.get_mut(&self.name) {
            Some(Users::Readers(n)) if *n > 1 => *n -= 1,
            _ => {
                names.remove(&self.name);
            }
        }
    }
}
