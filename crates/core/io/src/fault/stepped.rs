//! A file system that is told, before each operation on a name, when to go on and on which disk.

use crate::fs::{Entry, File, Fs, Metadata, Mode};
use crate::{Op, Result};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Decides: called before each step, with its kind and the name it is about; what it returns does the step.
type Choose = dyn Fn(Op, &Path) -> Arc<dyn Fs> + Send + Sync;

/// A file system for tests of who does what when. Every operation that looks at a name or changes one is a *step*, and so
/// is taking a lock: what else is done to an open file, is invisible before it has a name.
///
/// The decider may wait (then others go on meanwhile), look (then it is a recorder), or answer with another disk (then
/// time has passed: files that are open stay as they were, as those of a living process do).
#[derive(Clone)]
pub struct Stepped {
    choose: Arc<Choose>,
}

impl Stepped {
    /// Asks `choose` before each step.
    pub fn new(choose: impl Fn(Op, &Path) -> Arc<dyn Fs> + Send + Sync + 'static) -> Self {
        Self { choose: Arc::new(choose) }
    }

    fn at(&self, op: Op, path: &Path) -> Arc<dyn Fs> {
        (self.choose)(op, path)
    }
}

impl fmt::Debug for Stepped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stepped")
    }
}

impl Fs for Stepped {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        let op = if mode == Mode::Read { Op::Open } else { Op::Create };
        let inner = self.at(op, path).open(path, mode)?;
        Ok(Box::new(SteppedFile { inner, choose: self.choose.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.at(Op::Rename, to).rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.at(Op::Rename, to).rename_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.at(Op::Remove, path).remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.at(Op::CreateDir, path).create_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.at(Op::CreateDir, path).create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.at(Op::Remove, path).remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.at(Op::List, dir).list(dir)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.at(Op::Metadata, path).metadata(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.at(Op::SyncDir, dir).sync_dir(dir)
    }
}

struct SteppedFile {
    inner: Box<dyn File>,
    choose: Arc<Choose>,
}

impl fmt::Debug for SteppedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl File for SteppedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write_at(offset, buf)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        self.inner.sync_data()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.inner.metadata()
    }

    fn try_lock(&self) -> Result<bool> {
        (self.choose)(Op::Lock, self.inner.path());
        self.inner.try_lock()
    }

    fn try_lock_shared(&self) -> Result<bool> {
        (self.choose)(Op::Lock, self.inner.path());
        self.inner.try_lock_shared()
    }

    fn unlock(&self) -> Result<()> {
        self.inner.unlock()
    }

    fn advise(&self, range: Range<u64>, hint: crate::Hint) -> Result<()> {
        self.inner.advise(range, hint)
    }

    fn allocate(&self, len: u64) -> Result<()> {
        self.inner.allocate(len)
    }
}
