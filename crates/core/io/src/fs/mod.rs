//! The file layer: the few operations Trawl needs, so that tests can lose unsynced writes or fail on demand.
//!
//! Files are addressed by offset and have no position of their own; [`FileWriter`] adds one. Neither creating, renaming
//! nor removing a name is durable before [`Fs::sync_dir`] on its directory, and no write before [`File::sync_data`]:
//! [`crate::fault::FaultFs`] holds callers to that, [`RealFs`] passes it to the system.

mod real;
mod tree;
mod writer;

pub use real::RealFs;
pub use tree::{create_dir_all_synced, remove_tree};
pub use writer::FileWriter;

use crate::{Error, Result};
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a file is opened. Every mode but `Read` allows reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, contents kept.
    Write,
    /// A new file; an error of kind `AlreadyExists` if the name is taken.
    CreateNew,
    /// Created when absent, contents kept otherwise (to append: write at `len`).
    OpenOrCreate,
    /// Created when absent, emptied otherwise.
    Truncate,
}

/// What a caller is about to do with a range of a file, so that the system can keep its cache for what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Reads from front to back.
    Sequential,
    /// Reads here and there: no read-ahead.
    Random,
    /// No reads soon. Pages already on disk leave the cache; for others write-back starts, and a second call drops them.
    Done,
}

/// Tells files apart independently of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes (of a directory: unspecified).
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a file with bytes, not a directory, pipe or device.
    pub is_file: bool,
    /// Which file it is, whatever its name.
    pub id: FileId,
    /// When its bytes were last changed, in nanoseconds since 1970, where the file system says so.
    pub modified_ns: Option<i64>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, without the directory.
    pub name: OsString,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// A file system. Object-safe; use it as `&dyn Fs` or `Arc<dyn Fs>`.
pub trait Fs: Send + Sync + fmt::Debug {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>>;

    /// Renames, replacing `to` in one step if it exists.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Renames in one step unless `to` exists, which gives an error of kind `AlreadyExists`; of several racing callers
    /// exactly one succeeds.
    fn rename_new(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name. Open handles stay usable.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Creates one directory; an error of kind `AlreadyExists` if the name is taken.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Creates a directory and its missing parents; already there is fine.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> Result<Vec<Entry>>;

    /// Length, kind and identity of what `path` names.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Makes the names in `dir` durable: what was created, renamed or removed there.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Whether `path` names something; an error only if that cannot be found out.
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether `path` names a symbolic link. A file system without links has none.
    fn is_link(&self, path: &Path) -> Result<bool> {
        self.metadata(path).map(|_| false)
    }

    /// `path` from the root on, without `.` and `..`. A file system that has no current directory gives it back.
    fn whole_path(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// A whole file that is at most `limit` bytes long.
    fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let file = self.open(path, Mode::Read)?;
        let len = file.len()?;
        if len > limit {
            return Err(Error::OverLimit { path: path.into(), offset: 0, what: "file", claimed: len, limit });
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }
}

/// An open file.
pub trait File: Send + Sync + fmt::Debug {
    /// The path it was opened under, for messages.
    fn path(&self) -> &Path;

    /// Reads up to `buf.len()` bytes; 0 means the offset is at or past the end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Writes all of `buf` at `offset`; a gap past the old end reads as zeros. After an error any part may be written.
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()>;

    /// Cuts the file or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Makes contents and length durable. After an error, what was written since the last success may be lost even if
    /// a later sync succeeds: abandon the file or rewrite it.
    fn sync_data(&self) -> Result<()>;

    /// Length, kind and identity.
    fn metadata(&self) -> Result<Metadata>;

    /// Takes an exclusive advisory lock, held until the handle is dropped. `false`: another handle has it.
    fn try_lock(&self) -> Result<bool>;

    /// Takes a lock that other shared holders may have too, held until the handle is dropped. `false`: another handle
    /// has it exclusively.
    fn try_lock_shared(&self) -> Result<bool>;

    /// Gives the lock back early.
    fn unlock(&self) -> Result<()>;

    /// Tells the system what will be done with a range. Changes no contents; a system that cannot use it ignores it.
    fn advise(&self, range: Range<u64>, hint: Hint) -> Result<()> {
        let _ = (range, hint);
        Ok(())
    }

    /// Makes the file at least `len` bytes long, with room on the disk where the system can reserve it. New bytes are
    /// zeros.
    fn allocate(&self, len: u64) -> Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }

    /// The length in bytes.
    fn len(&self) -> Result<u64> {
        Ok(self.metadata()?.len)
    }

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Writes at the end and tells where. Not atomic between writers: hold a lock.
    fn append(&self, buf: &[u8]) -> Result<u64> {
        let end = self.len()?;
        self.write_at(end, buf)?;
        Ok(end)
    }

    /// Fills `buf`; fewer bytes before the end is [`Error::Short`].
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let wanted = buf.len();
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_at(offset.saturating_add(done as u64), rest)? {
                0 => {
                    let (wanted, found) = (wanted as u64, done as u64);
                    return Err(Error::Short { path: self.path().into(), offset, wanted, found });
                }
                n => done += n,
            }
        }
        Ok(())
    }
}

/// The directory of `path`: `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        Some(_) => Path::new("."),
        None => path,
    }
}
