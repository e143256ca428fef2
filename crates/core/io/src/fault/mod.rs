//! A file system in memory that loses what was not synced, and fails on demand: for tests of this and other crates.
//!
//! # The model
//!
//! Every file has *contents now* (what reads see) and *contents synced*, and an ordered list of the changes between
//! them (writes, length changes). Every directory likewise has names now, names synced, and changes (a name linked,
//! unlinked, or renamed within the directory, which is one change).
//!
//! - `File::sync_data` applies the file's changes to its synced contents. It says nothing about the file's name.
//! - `Fs::sync_dir` applies the directory's changes to its synced names. It says nothing about contents, so a synced
//!   name of an unsynced file is an empty file after a cut. A rename between directories is two changes, one in each.
//! - A sync that was made to fail drops the changes it should have made durable: reads still see them, a later sync
//!   succeeds, and after a cut they are gone. (Systems behave so; retrying a failed sync proves nothing.)
//!
//! Every call that changes something or syncs is one *operation*. [`FaultFs::cut_after`] lets `n` operations pass;
//! the next one still takes effect in memory (it was under way) but never becomes durable by itself, and it and all
//! later calls, reads included, fail. [`FaultFs::reboot`] then gives the disk a machine would find, as a new file
//! system on which everything is synced. What survives of the changes not synced is chosen by [`Loss`]:
//!
//! - [`Loss::All`]: none of them.
//! - [`Loss::None`]: all of them (only the process died).
//! - [`Loss::Torn`]: of each file's changes any may be there, missing, or there in part: any set of aligned units of
//!   a write. A length may have grown without its data, and then holds zeros or garbage. Of each directory's changes
//!   any may be missing, independently: nothing is promised about their order. The seed decides.
//!
//! `reboot` may be called at any time, also without a cut, and often: it does not disturb the file system it is called
//! on.
//!
//! [`Stepped`] lets a test decide in which order several users of a disk take their steps.

mod disk;
mod file;
mod loss;
mod names;
mod stepped;

pub use disk::Counts;
pub use loss::Loss;
pub use stepped::Stepped;

use crate::fs::{Entry, File, Fs, Metadata, Mode};
use crate::{Op, Result};
use disk::Disk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the system says when an operation is made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// EIO: the device failed.
    Io,
    /// ENOSPC: the disk is full.
    NoSpace,
}

/// An operation to fail.
#[derive(Debug, Clone)]
pub struct Fault {
    failure: Failure,
    op: Option<Op>,
    skip: u64,
    times: u64,
    keep_bytes: usize,
}

impl Fault {
    /// Fails the next operation that changes or syncs something, once.
    pub fn new(failure: Failure) -> Self {
        Fault { failure, op: None, skip: 0, times: 1, keep_bytes: 0 }
    }

    /// Only operations of this kind; `Op::Read` is possible too.
    #[must_use]
    pub fn on(mut self, op: Op) -> Self {
        self.op = Some(op);
        self
    }

    /// Lets `n` matching operations pass first.
    #[must_use]
    pub fn after(mut self, n: u64) -> Self {
        self.skip = n;
        self
    }

    /// Keeps failing.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.times = u64::MAX;
        self
    }

    /// A failing write still writes its first `n` bytes: a torn write.
    #[must_use]
    pub fn keeping(mut self, n: usize) -> Self {
        self.keep_bytes = n;
        self
    }
}

/// The file system; clones share one disk. See the [module](self) for its rules.
#[derive(Debug, Clone, Default)]
pub struct FaultFs {
    disk: Arc<Mutex<Disk>>,
}

impl FaultFs {
    /// An empty disk that does not fail.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same disk as a shared trait object.
    pub fn shared(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    /// Cuts the power after `n` more operations.
    pub fn cut_after(&self, n: u64) {
        self.lock().cut_after(n);
    }

    /// Whether the power has been cut.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut()
    }

    /// Adds an operation to fail.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Forgets all faults not yet met.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// Gives the disk a size: writes past it fail as a full disk does, after filling it.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().capacity = Some(bytes);
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The disk as a machine would find it if the power went now (or went at the cut).
    pub fn reboot(&self, loss: Loss) -> FaultFs {
        let disk = self.lock().after(loss);
        FaultFs { disk: Arc::new(Mutex::new(disk)) }
    }

    /// Every file and its contents now; works after a cut, and counts as nothing.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.lock().files()
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }
}

/// Locks the disk even after a test panicked elsewhere, so that the first failure is the one shown.
fn lock(disk: &Mutex<Disk>) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fs for FaultFs {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        let node = self.lock().open(path, mode)?;
        Ok(Box::new(file::FaultFile::new(self.disk.clone(), node, path, mode)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.lock().rename(from, to, true)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.lock().rename(from, to, false)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.lock().remove(path, false)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.lock().create_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut disk = self.lock();
        let mut at = PathBuf::new();
        for part in path.components() {
            at.push(part);
            match disk.create_dir(&at) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && disk.metadata(&at)?.is_dir => {}
                made => made?,
            }
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.lock().remove(path, true)
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.lock().list(dir)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.lock().metadata(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.lock().sync_dir(dir)
    }
}

#[cfg(test)]
mod tests;
