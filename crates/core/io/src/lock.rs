//! One process at a time: a lock file that says who holds it.
//!
//! The lock is the system's (`flock`), so a dead process frees it whatever is left in the file; the contents only
//! describe the holder. The file stays when the lock is given back.

use crate::fs::{File, Fs, Mode, RealFs};
use crate::publish::still_named;
use crate::{Advice, Error, Result};
use std::path::{Path, PathBuf};

/// The most that is read of a holder's description.
const HOLDER_LIMIT: usize = 1024;

/// Why a lock was not given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process, or another handle of this one, has it.
    #[error("{}: held by {holder}", .path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder said of itself.
        holder: String,
    },
    /// The lock file could not be opened, locked or written.
    #[error(transparent)]
    Io(#[from] Error),
}

impl LockError {
    /// What the caller may do: a held lock may be free later.
    pub fn advice(&self) -> Advice {
        match self {
            LockError::Held { .. } => Advice::Retry,
            LockError::Io(e) => e.advice(),
        }
    }
}

/// A held lock; dropping it gives the lock back.
#[derive(Debug)]
pub struct LockFile {
    file: Box<dyn File>,
}

impl LockFile {
    /// Takes the lock at `path`, leaving `holder` there for whoever is refused; see [`describe_holder`].
    pub fn acquire(path: &Path, holder: &str) -> Result<Self, LockError> {
        Self::acquire_in(&RealFs, path, holder)
    }

    /// The same on any file system.
    pub fn acquire_in(fs: &dyn Fs, path: &Path, holder: &str) -> Result<Self, LockError> {
        loop {
            let file = fs.open(path, Mode::OpenOrCreate)?;
            if !file.try_lock()? {
                return Err(LockError::Held { path: path.into(), holder: describe(&*file)? });
            }
            // Whoever removes lock files (see `release_and_remove`) may have done so since we opened this one.
            if still_named(fs, path, &*file)? {
                file.set_len(0)?;
                file.write_at(0, holder.as_bytes())?;
                return Ok(LockFile { file });
            }
        }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Removes the lock file, then gives the lock back: for locks that name one passing thing.
    pub fn release_and_remove(self, fs: &dyn Fs) -> Result<()> {
        fs.remove_file(self.file.path())
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // The description of a holder that left would mislead a reader; the lock itself goes with the handle.
        let _ = self.file.set_len(0);
    }
}

/// Reads what the holder wrote. It may be empty for an instant: the holder locks first and writes then.
fn describe(file: &dyn File) -> Result<String> {
    let mut buf = [0; HOLDER_LIMIT];
    let n = file.read_at(0, &mut buf)?;
    let text = String::from_utf8_lossy(buf.get(..n).unwrap_or_default()).trim().to_owned();
    Ok(if text.is_empty() { "an unnamed process".to_owned() } else { text })
}

/// `program (pid 4711 on host, since 2026-11-03T10:00:00Z)`: the usual description of a holder. The time is the
/// caller's.
pub fn describe_holder(program: &str, since: &str) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{program} (pid {} on {host}, since {since})", std::process::id())
}
