//! Who may write, and how readers get along with a writer that comes, goes, or exchanges files.
//!
//! A writer has a lock file beside what it writes, which says who it is, and a lock on the files themselves: a lock file
//! goes by a name, and links give a file several. Readers take no lock; they only look whether a writer lives.

use crate::{Access, Error, Result, Settings};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trawl_io::{File, LockError, LockFile, Mode};

/// How long, and how often, somebody looks again who met another in passing.
const PAUSE: Duration = Duration::from_millis(5);
const LOOKS: usize = 100;
/// So often in a row no writer may be seen before a file that looks abandoned is believed to be.
const QUIET_LOOKS: usize = 3;
/// So often a writer must be seen before another one is refused.
const WRITER_LOOKS: usize = 10;
/// So often a writer tries that meets readers only: a reader may be held up while it has the lock.
const READER_LOOKS: usize = 2000;

/// The locks of files that are written together. Dropped, they are free, and the lock files stay.
#[derive(Debug, Default)]
pub(crate) struct Locks(Vec<LockFile>);

impl Locks {
    /// Takes the locks at `paths`, all or none.
    pub fn take<P: AsRef<Path>>(settings: &Settings, paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let mut locks = Locks::default();
        for path in paths {
            match lock(settings, path.as_ref()) {
                Ok(lock) => locks.0.push(lock),
                Err(refused) => {
                    locks.release(settings)?;
                    return Err(refused);
                }
            }
        }
        Ok(locks)
    }

    /// Gives them back, the last one first, and removes the lock files.
    pub fn release(&mut self, settings: &Settings) -> Result<()> {
        let locks = std::mem::take(&mut self.0);
        locks.into_iter().rev().try_for_each(|lock| Ok(lock.release_and_remove(&*settings.fs)?))
    }
}

/// Opens what `lock`, and `others`, guard. A writer takes the locks; `open` gets whether a writer lives.
pub(crate) fn open<T>(
    settings: &Settings,
    access: Access,
    lock: &Path,
    others: &[PathBuf],
    open: impl Fn(bool) -> Result<T>,
) -> Result<(T, Locks)> {
    match access {
        Access::Read => Ok((beside(settings, lock, open)?, Locks::default())),
        Access::Write => {
            let locks = Locks::take(settings, [lock].into_iter().chain(others.iter().map(PathBuf::as_path)))?;
            Ok((open(false)?, locks))
        }
    }
}

/// Opens files that belong together for reading. Whether a writer lives is asked before; one that comes, goes, or
/// exchanges files meanwhile must not make them look as if they had been abandoned, or did not belong together.
pub(crate) fn beside<T>(settings: &Settings, lock: &Path, open: impl Fn(bool) -> Result<T>) -> Result<T> {
    let mut quiet = 0;
    for _ in 0..LOOKS {
        let lives = writer_lives(settings, lock)?;
        match open(lives) {
            Err(Error::NeedsCheck { .. } | Error::GenerationMismatch { .. }) => {}
            done => return done,
        }
        quiet = if lives || writer_lives(settings, lock)? { 0 } else { quiet + 1 };
        if quiet >= QUIET_LOOKS {
            break;
        }
        settings.clock.pause(PAUSE);
    }
    open(writer_lives(settings, lock)?)
}

/// Takes the lock of a writer, which tells others who it is.
fn lock(settings: &Settings, path: &Path) -> Result<LockFile> {
    let mut written = 0;
    for _ in 0..READER_LOOKS {
        match LockFile::acquire_in(&*settings.fs, path, &settings.holder) {
            // A reader that looks whether a writer lives holds the lock for an instant; the name in the file, if there
            // is one, is then that of a writer that was killed.
            Err(LockError::Held { .. }) => {}
            result => return Ok(result?),
        }
        written += usize::from(writer_lives(settings, path)?);
        if written >= WRITER_LOOKS {
            break;
        }
        settings.clock.pause(PAUSE);
    }
    Ok(LockFile::acquire_in(&*settings.fs, path, &settings.holder)?)
}

/// Takes hold of a file itself for writing, until it is closed. A symbolic link is refused: compactions and growing
/// indexes put a new file in the place of the old, and it would be the link's.
pub(crate) fn claim(settings: &Settings, file: &dyn File) -> Result<()> {
    let path = file.path();
    if settings.fs.is_link(path)? {
        return Err(Error::refused(path, "a link to a file; to write, name the file itself"));
    }
    for _ in 0..LOOKS {
        if file.try_lock()? {
            return Ok(());
        }
        // A writer of the same name that ends gives its lock back an instant before the file.
        settings.clock.pause(PAUSE);
    }
    let holder = "a writer that has it under another name".to_owned();
    Err(LockError::Held { path: path.into(), holder }.into())
}

/// Whether a process has the lock of a writer.
pub(crate) fn writer_lives(settings: &Settings, path: &Path) -> Result<bool> {
    match settings.fs.open(path, Mode::Read) {
        Ok(file) => Ok(!file.try_lock_shared()?),
        Err(e) if e.is_not_found() => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Who has the lock of a writer, as the lock file says; `None` if it is free.
pub(crate) fn writer(settings: &Settings, path: &Path) -> Result<Option<String>> {
    if !writer_lives(settings, path)? {
        return Ok(None);
    }
    // The writer may be gone by now, and its lock file too.
    let text = settings.fs.read(path, 1024).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Ok(Some(if text.is_empty() { "a writer".to_owned() } else { text }))
}

/// Refuses what a writer has the lock of, by the writer's name: a check would take what is half there for a fault.
pub(crate) fn refuse_written(settings: &Settings, lock: &Path) -> Result<()> {
    match writer(settings, lock)? {
        Some(holder) => Err(LockError::Held { path: lock.into(), holder }.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use std::cell::Cell;
    use std::sync::{Arc, Mutex};
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn who_meets_another_in_passing_looks_again() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let at = Path::new("/lock");
        let abandoned = || Error::NeedsCheck { path: at.into(), why: "it looks abandoned" };
        let looks = Cell::new(0);
        let look = || looks.replace(looks.get() + 1);

        // The process is gone: the lock is abandoned.
        assert!(matches!(beside(&settings, at, |_| Err::<(), _>(abandoned())), Err(Error::NeedsCheck { .. })));
        // A writer came after the first question, and went.
        let came = |lives: bool| if look() < 2 { Err(abandoned()) } else { Ok(lives) };
        assert!(!beside(&settings, at, came).unwrap());
        // One is there, and exchanges the files.
        looks.set(0);
        let lock = lock(&settings, at).unwrap();
        let exchanged = || Error::GenerationMismatch { path: at.into(), expected: 1, found: 2 };
        assert!(beside(&settings, at, |lives| if look() < 20 { Err(exchanged()) } else { Ok(lives) }).unwrap());
        assert_eq!(writer(&settings, at).unwrap().unwrap(), "test");
        drop(lock);
        // Anything else is what it is.
        looks.set(0);
        let broken = |_| Err::<(), _>(Error::BadPointer { path: at.into(), ptr: look() });
        assert!(matches!(beside(&settings, at, broken), Err(Error::BadPointer { ptr: 0, .. })));
    }

    /// Waiting ends what `held` holds when it has been waited so often.
    fn meeting<T: Send + 'static>(disk: &FaultFs, held: T, pauses: usize) -> (Settings, Arc<Mutex<usize>>) {
        let (held, waited) = (Mutex::new(Some(held)), Arc::new(Mutex::new(0)));
        let count = waited.clone();
        let clock = Clock::fixed(UnixMillis(0)).pausing(move |_| {
            let mut count = count.lock().unwrap();
            *count += 1;
            if *count == pauses {
                held.lock().unwrap().take();
            }
        });
        (Settings::new(clock, "another").on(disk.shared()), waited)
    }

    #[test]
    fn a_writer_is_refused_for_a_writer_and_waits_for_readers() {
        let (disk, at) = (FaultFs::new(), Path::new("/lock"));
        let first = Settings::new(Clock::fixed(UnixMillis(0)), "first").on(disk.shared());
        let (second, waited) = meeting(&disk, lock(&first, at).unwrap(), 50);
        assert!(lock(&second, at).unwrap_err().to_string().contains("first"));
        assert!(*waited.lock().unwrap() < 10, "at once, more or less");
        drop(second);
        // A reader was held up in the moment in which it looked.
        let reader = disk.shared().open(at, Mode::Read).unwrap();
        assert!(reader.try_lock_shared().unwrap());
        let (second, waited) = meeting(&disk, reader, 50);
        lock(&second, at).unwrap();
        assert_eq!(*waited.lock().unwrap(), 50);
    }
}
