//! Directories as a whole.

use super::{Fs, parent};
use crate::Result;
use std::path::Path;

/// Creates a directory and its missing parents, durably: each directory that gained a name is synced.
pub fn create_dir_all_synced(fs: &dyn Fs, path: &Path) -> Result<()> {
    let mut missing = Vec::new();
    let mut at = path;
    while !at.as_os_str().is_empty() && !fs.exists(at)? {
        missing.push(at);
        match at.parent() {
            Some(p) => at = p,
            None => break,
        }
    }
    fs.create_dir_all(path)?;
    for dir in missing.into_iter().rev() {
        fs.sync_dir(parent(dir))?;
    }
    Ok(())
}

/// Removes a directory with everything in it. A name that vanished meanwhile is fine.
pub fn remove_tree(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let entries = match fs.list(dir) {
        Err(e) if e.is_not_found() => return Ok(()),
        listed => listed?,
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            remove_tree(fs, &path)?;
        } else {
            gone_is_fine(fs.remove_file(&path))?;
        }
    }
    gone_is_fine(fs.remove_dir(dir))
}

pub(crate) fn gone_is_fine(result: Result<()>) -> Result<()> {
    match result {
        Err(e) if e.is_not_found() => Ok(()),
        other => other,
    }
}
