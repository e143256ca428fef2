//! The one walk through directories: what names in a directory are, how deep a walk goes, and what it leaves aside.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use trawl_io::Fs;

/// Directories below one another that a walk enters. A tree that is deeper is an error: archives in it must not be passed
/// over silently.
pub const MAX_DEPTH: usize = 64;
/// A directory that only a lake has.
const MANIFESTS: &str = "index/manifests";

/// What a name in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file, or a link to one.
    File,
    /// A directory of its own.
    Dir,
    /// A link to a directory: it may lead in a circle.
    LinkedDir,
    /// A link that cannot be followed.
    BrokenLink,
    /// A pipe, a socket or a device.
    Other,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// What is in a directory, by name, without names that begin with a dot. `depth` is how many directories a walk has entered
/// to come here; a depth above [`MAX_DEPTH`] is an error.
pub fn items(fs: &dyn Fs, dir: &Path, depth: usize) -> Result<Vec<Item>> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep { path: dir.to_owned(), limit: MAX_DEPTH }.into());
    }
    let visible = fs.list(dir)?.into_iter().filter(|entry| !entry.name.as_encoded_bytes().starts_with(b"."));
    let item = |entry: trawl_io::Entry| {
        let path = dir.join(&entry.name);
        let kind = match fs.metadata(&path) {
            Ok(_) if entry.is_dir => Kind::Dir,
            Ok(found) if found.is_dir => Kind::LinkedDir,
            Ok(found) if found.is_file => Kind::File,
            Ok(_) => Kind::Other,
            Err(_) if fs.is_link(&path)? => Kind::BrokenLink,
            Err(error) => return Err(error.into()),
        };
        Ok(Item { path, kind })
    };
    visible.map(item).collect()
}

/// Whether a directory is a lake: its files are neither archives nor lists.
pub fn is_lake(fs: &dyn Fs, dir: &Path) -> bool {
    fs.metadata(&dir.join(MANIFESTS)).is_ok_and(|found| found.is_dir)
}
