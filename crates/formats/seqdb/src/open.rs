//! What opening any container has in common: its superblock, its lock, and how much of it may be believed.

use crate::findings::Findings;
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, Superblock, design};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trawl_io::{File, LockError, LockFile, Mode};

/// Bytes read at first: most superblocks end in them.
const FIRST_READ: usize = 4096;
/// How often a superblock, or an inode, is read again while a writer changes it.
pub(crate) const STABLE_READS: usize = 50;

/// An open file and its superblock.
pub(crate) struct Opened {
    pub file: Box<dyn File>,
    pub sb: Superblock,
    /// Bytes the file has.
    pub room: u64,
}

/// Opens a container of the kind wanted.
pub(crate) fn open(settings: &Settings, path: &Path, access: Access, kind: Kind) -> Result<Opened> {
    let mode = match access {
        Access::Read => Mode::Read,
        Access::Write => Mode::Write,
    };
    let file = settings.fs.open(path, mode)?;
    let sb = read_superblock(&*file, access)?;
    if sb.kind() != kind {
        return Err(Error::UnknownFormat { path: path.into(), expected: kind.as_str(), found: sb.kind().format() });
    }
    if access == Access::Write {
        expect_no_link(settings, path)?;
        claim(settings, &*file)?;
    }
    let room = file.len()?;
    Ok(Opened { file, sb, room })
}

/// Reads a superblock. Beside a writer it is read until two readings agree: the system does not promise that a read
/// sees a concurrent write as a whole.
pub(crate) fn read_superblock(file: &dyn File, access: Access) -> Result<Superblock> {
    let mut last = read_head(file)?;
    if access == Access::Read {
        for _ in 0..STABLE_READS {
            let again = read_head(file)?;
            if again == last {
                break;
            }
            last = again;
        }
    }
    Superblock::decode(file.path(), &last)
}

/// The bytes that hold the list of variables.
fn read_head(file: &dyn File) -> Result<Vec<u8>> {
    let mut head = vec![0; FIRST_READ];
    let n = read_up_to(file, 0, &mut head)?;
    head.truncate(n);
    let sbsize = Superblock::sbsize_of(file.path(), &head)?;
    let wanted = usize::try_from(sbsize).unwrap_or(FIRST_READ);
    // A full first read without the end of the list: there are many variables.
    let ended = head.get(8..).unwrap_or_default().chunks_exact(16).any(|slot| slot.starts_with(&[0; 8]));
    if n < wanted && n == FIRST_READ && !ended {
        head.resize(wanted, 0);
        let more = read_up_to(file, n as u64, head.get_mut(n..).unwrap_or_default())?;
        head.truncate(n + more);
    }
    head.truncate(wanted);
    Ok(head)
}

/// Reads until `buf` is full or the file ends.
pub(crate) fn read_up_to(file: &dyn File, at: u64, buf: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(at.saturating_add(done as u64), rest)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// The logical end that FILESIZE claims, or the file's own; an error if the claim is false.
pub(crate) fn logical_end(sb: &Superblock, path: &Path, room: u64) -> Result<u64> {
    let end = sb.length(Name::FILESIZE)?.unwrap_or(room);
    if end < sb.sbsize() {
        return Err(sb.fault(Name::FILESIZE, "a FILESIZE not below SBSIZE"));
    }
    if end > room {
        return Err(Error::FileSizeBeyondEof { path: path.into(), filesize: end, unix: room });
    }
    Ok(end)
}

/// How long, and how often, somebody looks again who met another in passing.
const PAUSE: Duration = Duration::from_millis(5);
const LOOKS: usize = 100;
/// So often in a row nobody must be there before a file that looks abandoned is believed to be.
const QUIET_LOOKS: usize = 3;

/// So often somebody must be seen to write before a writer is refused.
const WRITER_LOOKS: usize = 10;
/// So often a writer tries that meets readers only: a reader may be held up while it has the lock.
const READER_LOOKS: usize = 2000;

/// Takes the lock of a writer, which tells others who it is.
pub(crate) fn lock(settings: &Settings, path: &Path) -> Result<LockFile> {
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

/// Refuses to write through a symbolic link: compactions and growing indexes put a new file in the place of the old, and it
/// would be the link's.
pub(crate) fn expect_no_link(settings: &Settings, path: &Path) -> Result<()> {
    match settings.fs.is_link(path)? {
        true => Err(Error::refused(path, "a link to a file; to write, name the file itself")),
        false => Ok(()),
    }
}

/// Takes hold of a file itself for writing, until it is closed: a lock file goes by a name, and links give a file several.
pub(crate) fn claim(settings: &Settings, file: &dyn File) -> Result<()> {
    for _ in 0..LOOKS {
        if file.try_lock()? {
            return Ok(());
        }
        // A writer of the same name that ends gives its lock back an instant before the file.
        settings.clock.pause(PAUSE);
    }
    let holder = "a writer that has it under another name".to_owned();
    Err(LockError::Held { path: file.path().into(), holder }.into())
}

/// Opens several files that belong together for reading. Whether a writer lives is asked before; one that comes, goes, or
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

/// Whether somebody has the lock of a writer.
pub(crate) fn writer_lives(settings: &Settings, path: &Path) -> Result<bool> {
    match settings.fs.open(path, Mode::Read) {
        Ok(file) => Ok(!file.try_lock_shared()?),
        Err(e) if e.is_not_found() => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Takes the locks of several files, all or none.
pub(crate) fn lock_all<'a>(settings: &Settings, files: impl IntoIterator<Item = &'a Path>) -> Result<Locks> {
    let mut locks = Locks(Vec::new());
    for file in files {
        match lock(settings, &with_suffix(file, design::LOCK_SUFFIX)) {
            Ok(lock) => locks.0.push(lock),
            Err(refused) => {
                locks.release(settings)?;
                return Err(refused);
            }
        }
    }
    Ok(locks)
}

/// The locks of files that belong together.
#[derive(Debug)]
pub(crate) struct Locks(Vec<LockFile>);

impl Locks {
    /// Gives them back, the last one first; the lock files go too.
    pub fn release(self, settings: &Settings) -> Result<()> {
        self.0.into_iter().rev().try_for_each(|lock| Ok(lock.release_and_remove(&*settings.fs)?))
    }
}

/// Refuses, by name of its writer, a file that is being written.
pub(crate) fn refuse_written(settings: &Settings, file: &Path) -> Result<()> {
    let path = with_suffix(file, design::LOCK_SUFFIX);
    writer(settings, &path)?.map_or(Ok(()), |holder| Err(LockError::Held { path, holder }.into()))
}

/// Who has the lock of a writer, if somebody has.
pub(crate) fn writer(settings: &Settings, path: &Path) -> Result<Option<String>> {
    Ok(if writer_lives(settings, path)? { Some(holder(settings, path)) } else { None })
}

/// Who has the lock of a writer, as the lock file says.
pub(crate) fn holder(settings: &Settings, path: &Path) -> String {
    let mut text = [0; 1024];
    let read = settings.fs.open(path, Mode::Read).and_then(|file| file.read_at(0, &mut text));
    let text = String::from_utf8_lossy(text.get(..read.unwrap_or(0)).unwrap_or_default()).trim().to_owned();
    if text.is_empty() { "a writer".to_owned() } else { text }
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
            findings.warning(path, 0, "no file of a compaction, which nobody is at", "one");
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

/// Who takes care of the writer's lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Guard<'a> {
    /// The container itself, at this path.
    Own(&'a Path),
    /// Whoever opens it holds the lock already (a writer), or has found that a writer lives or not (a reader).
    Owner {
        /// Whether a writer lives.
        writer_lives: bool,
    },
}

impl Guard<'_> {
    /// A writer's lock, if it is to be taken, and for a reader whether a writer lives. To be asked before the file is
    /// looked at: a writer that lives now and closes it meanwhile has not died.
    pub fn enter(self, settings: &Settings, access: Access) -> Result<(Option<LockFile>, bool)> {
        Ok(match (access, self) {
            (Access::Write, Guard::Own(at)) => (Some(lock(settings, at)?), false),
            (Access::Write, Guard::Owner { .. }) => (None, false),
            (Access::Read, Guard::Own(at)) => (None, writer_lives(settings, at)?),
            (Access::Read, Guard::Owner { writer_lives }) => (None, writer_lives),
        })
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

        // Nobody is there: it is abandoned.
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
