//! The system's files.

use super::{Entry, File, FileId, Fs, Hint, Metadata, Mode, parent};
use crate::{Error, Op, Result};
use rustix::fs::{Advice, FallocateFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl Fs for RealFs {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(mode != Mode::Read);
        let op = match mode {
            Mode::Read | Mode::Write => Op::Open,
            Mode::CreateNew | Mode::OpenOrCreate | Mode::Truncate => Op::Create,
        };
        options.create_new(mode == Mode::CreateNew);
        options.create(matches!(mode, Mode::OpenOrCreate | Mode::Truncate));
        options.truncate(mode == Mode::Truncate);
        let file = options.open(path).map_err(|e| Error::io(op, path, e))?;
        Ok(Box::new(RealFile { file, path: path.into() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io(Op::Rename, to, e))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        let cwd = rustix::fs::CWD;
        match rustix::fs::renameat_with(cwd, from, cwd, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // Not every file system knows the flag; every one with hard links refuses to link over a name.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::hard_link(from, to).map_err(|e| Error::io(Op::Rename, to, e))?;
                // The file has its name: an old name that stays does not make that a failure.
                let _ = fs::remove_file(from);
                Ok(())
            }
            Err(e) => Err(Error::io(Op::Rename, to, e.into())),
        }
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io(Op::Remove, path, e))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        fs::create_dir(path).map_err(|e| Error::io(Op::CreateDir, path, e))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|e| Error::io(Op::CreateDir, path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| Error::io(Op::Remove, path, e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        let fail = |e| Error::io(Op::List, dir, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_dir = entry.file_type().map_err(fail)?.is_dir();
            entries.push(Entry { name: entry.file_name(), is_dir });
        }
        entries.sort();
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        fs::metadata(path).map(|m| convert(&m)).map_err(|e| Error::io(Op::Metadata, path, e))
    }

    fn is_link(&self, path: &Path) -> Result<bool> {
        fs::symlink_metadata(path).map(|m| m.is_symlink()).map_err(|e| Error::io(Op::Metadata, path, e))
    }

    fn whole_path(&self, path: &Path) -> Result<PathBuf> {
        // What `..` means depends on links; without it, names stay as they were given.
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        let whole = if goes_up { fs::canonicalize(path) } else { std::path::absolute(path) };
        whole.map_err(|e| Error::io(Op::Metadata, path, e))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let dir = if dir.as_os_str().is_empty() { parent(dir) } else { dir };
        fs::File::open(dir).and_then(|d| d.sync_all()).map_err(|e| Error::io(Op::SyncDir, dir, e))
    }
}

fn convert(m: &fs::Metadata) -> Metadata {
    // Nanoseconds since 1970 fit until 2262; a time that does not is no time.
    let modified_ns = m.mtime().checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(m.mtime_nsec()));
    Metadata {
        len: m.len(),
        is_dir: m.is_dir(),
        is_file: m.is_file(),
        id: FileId { device: m.dev(), inode: m.ino() },
        modified_ns,
    }
}

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    path: PathBuf,
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        loop {
            match self.file.read_at(buf, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|e| Error::io_at(Op::Read, &self.path, offset, e)),
            }
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.file.write_all_at(buf, offset).map_err(|e| Error::io_at(Op::Write, &self.path, offset, e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| Error::io_at(Op::SetLen, &self.path, len, e))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(Op::Sync, &self.path, e))
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map(|m| convert(&m)).map_err(|e| Error::io(Op::Metadata, &self.path, e))
    }

    fn try_lock(&self) -> Result<bool> {
        self.flock(FlockOperation::NonBlockingLockExclusive)
    }

    fn try_lock_shared(&self) -> Result<bool> {
        self.flock(FlockOperation::NonBlockingLockShared)
    }

    fn unlock(&self) -> Result<()> {
        rustix::fs::flock(&self.file, FlockOperation::Unlock).map_err(|e| Error::io(Op::Lock, &self.path, e.into()))
    }

    fn advise(&self, range: Range<u64>, hint: Hint) -> Result<()> {
        // A length of 0 would mean "to the end".
        let Some(len) = NonZeroU64::new(range.end.saturating_sub(range.start)) else { return Ok(()) };
        let advice = match hint {
            Hint::Sequential => Advice::Sequential,
            Hint::Random => Advice::Random,
            Hint::Done => Advice::DontNeed,
        };
        rustix::fs::fadvise(&self.file, range.start, Some(len), advice)
            .map_err(|e| Error::io_at(Op::Advise, &self.path, range.start, e.into()))
    }

    fn allocate(&self, len: u64) -> Result<()> {
        let old = self.len()?;
        if len <= old {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), old, len - old) {
            // Not every file system can reserve; then the file is only made longer.
            Err(Errno::NOTSUP | Errno::NOSYS) => self.set_len(len),
            result => result.map_err(|e| Error::io_at(Op::SetLen, &self.path, len, e.into())),
        }
    }
}

impl RealFile {
    fn flock(&self, operation: FlockOperation) -> Result<bool> {
        match rustix::fs::flock(&self.file, operation) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(e) => Err(Error::io(Op::Lock, &self.path, e.into())),
        }
    }
}
