//! Locks, and replacing a generation of a database.

use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{Fs, Mode, remove_tree};

/// `.locked` in a database's directory, while it is held. Nutch's jobs and this crate respect each other's.
#[derive(Debug)]
pub struct Lock {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of the database in `dir`; fails if somebody has it. A job that died leaves it behind: whoever is sure
    /// of that removes the file.
    pub fn take(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Self> {
        let path = dir.join(".locked");
        match fs.open(&path, Mode::CreateNew) {
            Ok(_) => Ok(Lock { fs: fs.clone(), path }),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Error::refused(&path, "the database is locked by another job; remove this file if none is running"))
            }
            Err(e) => Err(e.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock that cannot be removed stays, and the next job says so.
        let _ = self.fs.remove_file(&self.path);
    }
}

/// Makes `new`, a directory inside `db`, the current generation.
///
/// ```text
/// current -> old (an earlier old goes)   new -> current   old goes, unless keep_old
/// ```
/// Between the two renames there is no `current`; what it was is `old`.
pub fn install(fs: &dyn Fs, db: &Path, new: &Path, keep_old: bool) -> Result<()> {
    let (current, old) = (db.join("current"), db.join("old"));
    if fs.exists(&current)? {
        remove_tree(fs, &old)?;
        fs.rename(&current, &old)?;
        fs.sync_dir(db)?;
    }
    fs.rename(new, &current)?;
    fs.sync_dir(db)?;
    if !keep_old {
        remove_tree(fs, &old)?;
        fs.sync_dir(db)?;
    }
    Ok(())
}
