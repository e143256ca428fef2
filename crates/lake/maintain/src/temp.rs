//! Temporary files: sorted runs, and standard input in a file. A lock beside each tells whether its process lives.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};
use trawl_io::{LockError, LockFile, RealFs};

/// How the names of files begin that hold standard input, and how those of their locks end.
const SPOOL: &str = "stdin-";
const LOCK: &str = ".lock";

/// Makes a directory for temporary files. What killed processes left there goes.
pub fn make_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    // Others may use the same directory, and their files may be out of reach: work goes on beside them.
    let _ = clean(dir, true);
    Ok(())
}

/// Removes what killed processes left in a directory, or only counts it.
pub fn leftovers(dir: &Path, remove: bool) -> Result<u64> {
    if dir.is_dir() { clean(dir, remove) } else { Ok(0) }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Temp { path: path.to_owned(), source }
}

fn lock(path: &Path, holder: &str) -> Result<Option<LockFile>> {
    match LockFile::acquire(path, holder) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { .. }) => Ok(None),
        Err(error) => Err(failed(path)(io::Error::other(error))),
    }
}

fn clean(dir: &Path, remove: bool) -> Result<u64> {
    let runs = if remove { trawl_sort::clean_leftovers } else { trawl_sort::find_leftovers };
    let mut found = runs(&RealFs, dir).map_err(|e| failed(dir)(io::Error::other(e)))?.len() as u64;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let name = entry.map_err(failed(dir))?.file_name().to_string_lossy().into_owned();
        if name.starts_with(SPOOL) {
            names.insert(name.strip_suffix(LOCK).unwrap_or(&name).to_owned());
        }
    }
    for name in names {
        let Some(lock) = lock(&dir.join(format!("{name}{LOCK}")), "clean")? else { continue };
        found += 1;
        if remove {
            let path = dir.join(&name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path)(error)),
                _ => lock.release_and_remove(&RealFs)?,
            }
        }
    }
    Ok(found)
}

/// What came through a pipe in a file, since sources are read more than once. It goes when the work is done; what a killed
/// process leaves, the next one takes.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    lock: Option<LockFile>,
}

impl Spool {
    /// Makes an empty file for what can be read only once. `name` must be one that no other spool has.
    pub fn create(temp: &Path, name: &str) -> Result<(Self, fs::File)> {
        let path = temp.join(format!("{SPOOL}{name}"));
        // The lock is there before the file and goes after it.
        let lock = lock(&path.with_extension("lock"), "standard input")?;
        let spool = Self { path, lock };
        let file = fs::File::create_new(&spool.path).map_err(failed(&spool.path))?;
        Ok((spool, file))
    }

    /// The same, filled with all that `input` gives.
    pub fn read(temp: &Path, name: &str, input: &mut dyn io::Read) -> Result<Self> {
        let (spool, mut file) = Self::create(temp, name)?;
        io::copy(input, &mut file).map_err(failed(&spool.path))?;
        Ok(spool)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next process.
        let _ = fs::remove_file(&self.path);
        if let Some(lock) = self.lock.take() {
            let _ = lock.release_and_remove(&RealFs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dead_processes_left_goes_and_what_living_ones_have_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("tmp");
        assert_eq!(leftovers(&dir, true).unwrap(), 0, "there is nothing yet");
        make_dir(&dir).unwrap();
        for name in ["stdin-dead", "stdin-cut.lock", "stdin-live", "other", "trawl-sort-7-0.lock"] {
            fs::write(dir.join(name), "x").unwrap();
        }
        fs::create_dir(dir.join("trawl-sort-7-0")).unwrap();
        fs::write(dir.join("trawl-sort-7-0/run-000000"), "x").unwrap();
        let living = LockFile::acquire(&dir.join("stdin-live.lock"), "test").unwrap();
        assert_eq!(leftovers(&dir, false).unwrap(), 3);
        assert!(dir.join("stdin-dead").exists() && dir.join("trawl-sort-7-0/run-000000").exists());
        assert_eq!(leftovers(&dir, true).unwrap(), 3);
        let left = || {
            let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(left(), ["other", "stdin-live", "stdin-live.lock"]);
        drop(living);
        make_dir(&dir).unwrap();
        assert_eq!(left(), ["other"], "every writer clears its directory");
    }
}
