//! The directory of a sorter's temporary files, and what dead sorters left.
//!
//! ```text
//! <dir>/trawl-sort-<pid>-<n>.lock    locked while its sorter lives; says who
//! <dir>/trawl-sort-<pid>-<n>/run-*
//! ```
//! The lock is there before the directory and goes after it.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_io::{Fs, LockError, LockFile, remove_tree};

const PREFIX: &str = "trawl-sort-";
const LOCK: &str = ".lock";

/// Numbers the directories of this process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A locked directory, removed with everything in it when dropped.
#[derive(Debug)]
pub(crate) struct TempDir {
    pub fs: Arc<dyn Fs>,
    path: PathBuf,
    lock: Option<LockFile>,
    runs: AtomicU64,
}

impl TempDir {
    pub fn create(fs: &Arc<dyn Fs>, base: &Path, holder: &str) -> Result<TempDir> {
        loop {
            let name = format!("{PREFIX}{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
            let lock = match LockFile::acquire_in(&**fs, &base.join(format!("{name}{LOCK}")), holder) {
                // Somebody clears away what an earlier process with our number left.
                Err(LockError::Held { .. }) => continue,
                other => other?,
            };
            let dir = TempDir { fs: fs.clone(), path: base.join(name), lock: Some(lock), runs: AtomicU64::new(0) };
            remove_tree(&**fs, &dir.path)?;
            fs.create_dir(&dir.path)?;
            return Ok(dir);
        }
    }

    pub fn next_run(&self) -> PathBuf {
        self.path.join(format!("run-{:06}", self.runs.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // The error cannot be returned from here; `clean_leftovers` removes what could not be removed.
        if remove_tree(&*self.fs, &self.path).is_ok()
            && let Some(lock) = self.lock.take()
        {
            let _ = lock.release_and_remove(&*self.fs);
        }
    }
}

/// Removes what sorters of dead processes left in `dir`, and returns the directories removed. Living ones are spared.
pub fn clean_leftovers(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    each_leftover(fs, dir, |path, lock| {
        remove_tree(fs, path)?;
        Ok(lock.release_and_remove(fs)?)
    })
}

/// The directories that [`clean_leftovers`] would remove.
pub fn find_leftovers(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    each_leftover(fs, dir, |_, _| Ok(()))
}

/// Hands every directory of a dead sorter to `each`, with its lock.
fn each_leftover(fs: &dyn Fs, dir: &Path, mut each: impl FnMut(&Path, LockFile) -> Result<()>) -> Result<Vec<PathBuf>> {
    let mut names = BTreeSet::new();
    for entry in fs.list(dir)? {
        if let Some(name) = entry.name.to_str().filter(|n| n.starts_with(PREFIX)) {
            names.insert(name.strip_suffix(LOCK).unwrap_or(name).to_owned());
        }
    }
    let mut found = Vec::new();
    for name in names {
        match LockFile::acquire_in(fs, &dir.join(format!("{name}{LOCK}")), "clean_leftovers") {
            Ok(lock) => {
                let path = dir.join(&name);
                each(&path, lock)?;
                found.push(path);
            }
            Err(LockError::Held { .. }) => {}
            Err(e) => return Err(Error::from(e)),
        }
    }
    Ok(found)
}
