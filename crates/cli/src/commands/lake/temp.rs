//! Temporary files: sorted runs, and standard input in a file. A lock beside each tells whether its process lives.

use crate::system;
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};
use trawl_io::{LockError, LockFile, RealFs};

/// Below the lake, unless another directory is wanted.
const TEMP: &str = "tmp";
/// How the names of files begin that hold standard input, and how those of their locks end.
const SPOOL: &str = "stdin-";
const LOCK: &str = ".lock";

/// Where temporary files go: the lake's own directory unless another is wanted. What killed processes left there goes.
pub(super) fn temp_dir(lake: &Path, wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let dir = wanted.map_or_else(|| lake.join(TEMP), Path::to_owned);
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    // Others may use the same directory, and their files may be out of reach: work goes on beside them.
    let _ = clean(&dir, true);
    Ok(dir)
}

/// Removes what killed processes left in the lake's own directory, or only counts it.
pub(super) fn clean_lake(lake: &Path, remove: bool) -> anyhow::Result<u64> {
    let dir = lake.join(TEMP);
    if !dir.is_dir() {
        return Ok(0);
    }
    clean(&dir, remove).with_context(|| format!("cannot clear {}", dir.display()))
}

fn clean(dir: &Path, remove: bool) -> anyhow::Result<u64> {
    let runs = if remove { trawl_sort::clean_leftovers } else { trawl_sort::find_leftovers };
    let mut found = runs(&RealFs, dir)?.len() as u64;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(SPOOL) {
            names.insert(name.strip_suffix(LOCK).unwrap_or(&name).to_owned());
        }
    }
    for name in names {
        let lock = match LockFile::acquire(&dir.join(format!("{name}{LOCK}")), "clean") {
            Ok(lock) => lock,
            Err(LockError::Held { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        found += 1;
        if remove {
            match fs::remove_file(dir.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
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
    /// Reads standard input, or what else can be read only once, to its end.
    pub fn read(temp: &Path, input: &mut dyn io::Read) -> anyhow::Result<Self> {
        let path = temp.join(format!("{SPOOL}{}", system::nonce()?));
        let cannot = || format!("cannot keep standard input in {}", path.display());
        // The lock is there before the file and goes after it.
        let lock = LockFile::acquire(&path.with_extension("lock"), "standard input").with_context(cannot)?;
        let spool = Self { path: path.clone(), lock: Some(lock) };
        let mut file = fs::File::create_new(&path).with_context(cannot)?;
        io::copy(input, &mut file).with_context(cannot)?;
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
        let lake = scratch.path();
        assert_eq!(clean_lake(lake, true).unwrap(), 0, "there is nothing yet");
        let dir = temp_dir(lake, None).unwrap();
        for name in ["stdin-dead", "stdin-cut.lock", "stdin-live", "other", "trawl-sort-7-0.lock"] {
            fs::write(dir.join(name), "x").unwrap();
        }
        fs::create_dir(dir.join("trawl-sort-7-0")).unwrap();
        fs::write(dir.join("trawl-sort-7-0/run-000000"), "x").unwrap();
        let living = LockFile::acquire(&dir.join("stdin-live.lock"), "test").unwrap();
        assert_eq!(clean_lake(lake, false).unwrap(), 3);
        assert!(dir.join("stdin-dead").exists() && dir.join("trawl-sort-7-0/run-000000").exists());
        assert_eq!(clean_lake(lake, true).unwrap(), 3);
        let left = || {
            let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(left(), ["other", "stdin-live", "stdin-live.lock"]);
        drop(living);
        temp_dir(lake, Some(&dir)).unwrap();
        assert_eq!(left(), ["other"], "every writer clears its directory");
    }
}
