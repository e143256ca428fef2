//! Files that are written beside those whose place they take.

use crate::findings::Findings;
use crate::{Error, Result, Settings, Superblock};
use std::path::{Path, PathBuf};
use trawl_io::{AtomicFile, Outcome};

/// Puts a new file in place, whole and durable, unless the name is taken. After the superblock there are zeros up to
/// `end`.
pub(crate) fn publish_new(sb: &Superblock, end: u64, settings: &Settings) -> Result<()> {
    match empty(sb, end, settings)?.publish_new()? {
        Outcome::Won => Ok(()),
        Outcome::Lost => Err(Error::refused(sb.path(), "a file of that name exists")),
    }
}

/// An empty file of that superblock, which has no name yet.
pub(crate) fn empty(sb: &Superblock, end: u64, settings: &Settings) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(&settings.fs, sb.path())?;
    file.put(&sb.encode_full())?;
    if end > sb.sbsize() {
        // The cells of a large table are a hole.
        file.flushed()?.set_len(end)?;
    }
    Ok(file)
}

/// Lets `make` write copies, which are removed if it fails, as are those that an earlier process left.
pub(crate) fn make<T>(settings: &Settings, copies: &[PathBuf], make: impl FnOnce() -> Result<T>) -> Result<T> {
    remove_all(settings, copies)?;
    let made = make();
    if made.is_err() {
        // They may be what fills the disk. Whatever stays, a check finds.
        let _ = remove_all(settings, copies);
    }
    made
}

/// Puts copies in the place of the files they were made for, one right after the other: in between readers have to wait.
pub(crate) fn take_place(settings: &Settings, files: &[(PathBuf, PathBuf)]) -> Result<()> {
    files.iter().try_for_each(|(copy, file)| settings.fs.rename(copy, file))?;
    let mut dirs: Vec<_> = files.iter().map(|(_, file)| dir_of(file)).collect();
    dirs.dedup();
    dirs.into_iter().try_for_each(|dir| Ok(settings.fs.sync_dir(dir)?))
}

/// Removes files, as far as they are there.
pub(crate) fn remove_all(settings: &Settings, files: &[PathBuf]) -> Result<()> {
    for path in files {
        match settings.fs.remove_file(path) {
            Err(e) if !e.is_not_found() => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Notes files that a compaction has left which did not come to its end.
pub(crate) fn note_copies(settings: &Settings, files: &[PathBuf], findings: &mut Findings) -> Result<()> {
    for path in files {
        if settings.fs.exists(path)? {
            findings.warning(path, 0, "no file of a compaction that was broken off", "one");
        }
    }
    Ok(())
}

/// Where a compaction, or a rebuild, puts the copy of a file that is no part of a filesys.
pub(crate) fn copy_of(path: &Path) -> PathBuf {
    with_suffix(path, "new")
}

/// The directory of `path`: `.` for a bare name.
pub(crate) fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `path` with a dot and `suffix` after its whole name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}
