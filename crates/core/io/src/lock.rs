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
    /// Takes the lock at `path`, leaving `holder` there for processes that are refused; see [`describe_holder`].
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
            // Another process may have removed the lock file (see `release_and_remove`) since we opened it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultFs;

    #[test]
    fn the_refusal_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let holder = describe_holder("trawl crawl", "2026-11-03T10:00:00Z");
        assert!(holder.starts_with(&format!("trawl crawl (pid {} on ", std::process::id())), "{holder}");
        assert!(holder.ends_with(", since 2026-11-03T10:00:00Z)"), "{holder}");
        let lock = LockFile::acquire(&path, &holder).unwrap();
        let refused = LockFile::acquire(&path, "another").unwrap_err();
        assert_eq!(refused.to_string(), format!("{}: held by {holder}", path.display()));
        assert_eq!(refused.advice(), Advice::Retry);
        drop(lock);
        let lock = LockFile::acquire(&path, "b").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b", "a shorter description leaves nothing of the longer");
        lock.release_and_remove(&RealFs).unwrap();
        assert!(!path.exists());
        LockFile::acquire(&path, "c").unwrap();
    }

    /// Names the lock file in the process that the next test starts.
    const HOLD: &str = "TRAWL_TEST_HOLD_LOCK";

    /// The other process of the next test is this program running only this; in an ordinary run it has nothing to do.
    #[test]
    fn hold_a_lock_when_told_to() {
        let Some(path) = std::env::var_os(HOLD) else { return };
        let _lock = LockFile::acquire(Path::new(&path), "somebody").unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
    }

    #[test]
    fn a_dead_process_frees_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::tests::hold_a_lock_when_told_to"])
            .env(HOLD, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The name is written after the lock is taken, so a process that reads it finds the lock held.
        while !std::fs::read_to_string(&path).is_ok_and(|name| name == "somebody") {
            assert!(child.try_wait().unwrap().is_none(), "the holder ended early");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(LockFile::acquire(&path, "us").unwrap_err().to_string().ends_with("held by somebody"));
        child.kill().unwrap();
        child.wait().unwrap();
        LockFile::acquire(&path, "us").unwrap();
    }

    #[test]
    fn a_failure_is_not_a_refusal() {
        let fs = FaultFs::new();
        let missing = LockFile::acquire_in(&fs, Path::new("/no/lock"), "us").unwrap_err();
        assert!(matches!(&missing, LockError::Io(e) if e.is_not_found()), "{missing}");
        let held = LockFile::acquire_in(&fs, Path::new("/lock"), "").unwrap();
        let refused = LockFile::acquire_in(&fs, Path::new("/lock"), "us").unwrap_err();
        assert_eq!(refused.to_string(), "/lock: held by an unnamed process");
        assert_eq!(held.path(), Path::new("/lock"));
    }

    #[test]
    fn locks_that_are_removed_still_exclude() {
        const THREADS: u64 = 6;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let inside = std::sync::atomic::AtomicU64::new(0);
        let entered = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let Ok(lock) = LockFile::acquire(&path, "racer") else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "two hold it");
                        entered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        lock.release_and_remove(&RealFs).unwrap();
                    }
                });
            }
        });
        assert!(entered.into_inner() > 0);
    }
}
