//! Open files of the faulty file system.

use super::disk::{Change, Disk, Node, Step};
use super::{Failure, lock};
use crate::fs::{File, Metadata, Mode};
use crate::{Error, Op, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

static HANDLES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(super) struct FaultFile {
    disk: Arc<Mutex<Disk>>,
    node: usize,
    handle: u64,
    path: PathBuf,
    writable: bool,
}

impl FaultFile {
    pub fn new(disk: Arc<Mutex<Disk>>, node: usize, path: &Path, mode: Mode) -> Self {
        *lock(&disk).open.entry(node).or_default() += 1;
        let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
        FaultFile { disk, node, handle, path: path.into(), writable: mode != Mode::Read }
    }

    fn check_writable(&self, op: Op) -> Result<()> {
        if self.writable {
            return Ok(());
        }
        let source = io::Error::new(io::ErrorKind::PermissionDenied, "file is open for reading only");
        Err(Error::io(op, &self.path, source))
    }
}

impl Drop for FaultFile {
    fn drop(&mut self) {
        let mut disk = lock(&self.disk);
        if let Some(count) = disk.open.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                disk.open.remove(&self.node);
            }
        }
        disk.drop_lock(self.node, self.handle);
    }
}

impl File for FaultFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut disk = lock(&self.disk);
        if let Step::Fail(e, _) | Step::Cut(e) = disk.step(Op::Read, &self.path)? {
            return Err(Error::io_at(Op::Read, &self.path, offset, e));
        }
        let contents = disk.contents(self.node).map(Vec::as_slice).unwrap_or_default();
        let rest = usize::try_from(offset).ok().and_then(|o| contents.get(o..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        disk.counts.reads += 1;
        disk.counts.bytes_read += n as u64;
        Ok(n)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.check_writable(Op::Write)?;
        let mut disk = lock(&self.disk);
        let (mut keep, mut failed) = match disk.step(Op::Write, &self.path)? {
            Step::Go => (buf.len(), None),
            Step::Cut(e) => (buf.len(), Some(e)),
            Step::Fail(e, keep) => (keep.min(buf.len()), Some(e)),
        };
        let start = usize::try_from(offset)
            .map_err(|_| Error::io_at(Op::Write, &self.path, offset, io::ErrorKind::FileTooLarge.into()))?;
        if let Some(capacity) = disk.capacity {
            let old = disk.contents(self.node).map_or(0, Vec::len);
            let room = usize::try_from(capacity.saturating_sub(disk.used())).unwrap_or(usize::MAX);
            let fits = old.saturating_add(room).saturating_sub(start);
            if keep > fits {
                keep = fits;
                failed = failed.or(Some(Failure::NoSpace.error()));
            }
        }
        let bytes = buf.get(..keep).unwrap_or(buf).to_vec();
        disk.counts.writes += 1;
        disk.counts.bytes_written += bytes.len() as u64;
        if !bytes.is_empty() {
            disk.change(self.node, Change::Write { offset: start, bytes });
        }
        failed.map_or(Ok(()), |e| Err(Error::io_at(Op::Write, &self.path, offset, e)))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.check_writable(Op::SetLen)?;
        let mut disk = lock(&self.disk);
        let result = disk.whole_step(Op::SetLen, &self.path)?;
        let len = usize::try_from(len)
            .map_err(|_| Error::io_at(Op::SetLen, &self.path, len, io::ErrorKind::FileTooLarge.into()))?;
        disk.change(self.node, Change::SetLen(len));
        result
    }

    fn allocate(&self, len: u64) -> Result<()> {
        let more = len.saturating_sub(self.len()?);
        if more == 0 {
            return Ok(());
        }
        let room = {
            let disk = lock(&self.disk);
            disk.capacity.map(|capacity| capacity.saturating_sub(disk.used()))
        };
        if room.is_some_and(|room| more > room) {
            return Err(Error::io_at(Op::SetLen, &self.path, len, Failure::NoSpace.error()));
        }
        self.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        let mut disk = lock(&self.disk);
        let step = disk.step(Op::Sync, &self.path)?;
        disk.counts.syncs += 1;
        let Some(Node::File { synced, changes, .. }) = disk.nodes.get_mut(self.node) else { return Ok(()) };
        match step {
            Step::Go => {
                let synced = Arc::make_mut(synced);
                for change in changes.drain(..) {
                    change.apply(synced);
                }
                Ok(())
            }
            // Under way: the changes stay unsynced, and `Loss` decides about them.
            Step::Cut(e) => Err(Error::io(Op::Sync, &self.path, e)),
            Step::Fail(e, _) => {
                changes.clear();
                Err(Error::io(Op::Sync, &self.path, e))
            }
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        let disk = lock(&self.disk);
        disk.alive(Op::Metadata, &self.path)?;
        Ok(disk.metadata_of(self.node))
    }

    fn try_lock(&self) -> Result<bool> {
        let mut disk = lock(&self.disk);
        disk.alive(Op::Lock, &self.path)?;
        Ok(disk.take_lock(self.node, self.handle, true))
    }

    fn try_lock_shared(&self) -> Result<bool> {
        let mut disk = lock(&self.disk);
        disk.alive(Op::Lock, &self.path)?;
        Ok(disk.take_lock(self.node, self.handle, false))
    }

    fn unlock(&self) -> Result<()> {
        let mut disk = lock(&self.disk);
        disk.alive(Op::Lock, &self.path)?;
        disk.drop_lock(self.node, self.handle);
        Ok(())
    }
}
