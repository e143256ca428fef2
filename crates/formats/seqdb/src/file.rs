//! A file with a superblock: what kvseq, hindex and perm have in common.
//!
//! The order of writes, and what it gives:
//! 1. bytes of the body, 2. the length of a value that grew, 3. the superblock: FILESIZE never counts bytes that are not
//!    in the file, so that a reader beside a writer sees whole entries only;
//! 4. changes in place that point at new entries: a reader that sees one finds a FILESIZE that covers them;
//! 5. sync, 6. the superblock with SYNCSIZE = FILESIZE, 7. sync: bytes before SYNCSIZE survive a power cut.

use crate::lock::{self, Locks};
use crate::num::{index, signed};
use crate::store::Store;
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, Superblock, SyncPolicy};
use std::path::Path;
use trawl_io::{File, Mode};

/// Bytes read at first: most superblocks end in them.
const FIRST_READ: usize = 4096;
/// How often a superblock, or an inode, is read again while a writer changes it.
pub(crate) const STABLE_READS: usize = 50;

/// An open file and its superblock.
#[derive(Debug)]
pub(crate) struct SbFile {
    pub settings: Settings,
    pub access: Access,
    pub store: Store,
    pub sb: Superblock,
    /// The superblock in the file is older than the one here.
    pub stale: bool,
    /// FILESIZE as the file has it.
    pub announced: u64,
    pub locks: Locks,
}

impl SbFile {
    /// Opens a file of the kind wanted. A writer that has it under another name is found out.
    pub fn open(path: &Path, kind: Kind, access: Access, settings: &Settings) -> Result<Self> {
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
            lock::claim(settings, &*file)?;
        }
        // Without FILESIZE the file's own length counts: then no room may be reserved.
        let step = sb.value(Name::FILESIZE).and(sb.value(Name::FILEINCR)).map_or(0, |step| step.max(0).cast_unsigned());
        let store = Store::new(file, step, settings)?;
        let (settings, locks) = (settings.clone(), Locks::default());
        Ok(SbFile { settings, access, store, sb, stale: false, announced: 0, locks })
    }

    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Says up to where the file has been written.
    pub fn ends_at(&mut self, end: u64) {
        self.store.start_at(end);
        self.announced = end;
    }

    /// Reads the superblock again, for a reader.
    pub fn reread(&self) -> Result<Superblock> {
        read_superblock(self.store.file(), Access::Read)
    }

    /// Whether the file is still the one its name leads to: a compaction puts another in its place.
    pub fn is_current(&self) -> Result<bool> {
        Ok(self.settings.fs.metadata(self.path())?.id == self.store.file().metadata()?.id)
    }

    #[inline]
    pub fn writable(&self) -> Result<()> {
        if self.access == Access::Write { self.store.alive() } else { Err(self.read_only()) }
    }

    #[cold]
    fn read_only(&self) -> Error {
        Error::ReadOnly(self.path().into())
    }

    /// Sets a variable, which is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.writable()?;
        self.sb.set(name, value)?;
        self.stale = true;
        Ok(())
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.store.flush()?;
        self.write_superblock()?;
        self.store.flush_late()
    }

    pub fn write_superblock(&mut self) -> Result<()> {
        let end = self.store.written();
        self.sb.update(Name::FILESIZE, signed(end));
        self.store.write_head(&self.sb.encode())?;
        (self.announced, self.stale) = (end, false);
        Ok(())
    }

    /// Makes everything durable and declares the current length valid.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.flush()?;
        self.barrier()?;
        if self.sb.update(Name::SYNCSIZE, signed(self.store.written())) {
            self.sb.update(Name::SYNCTIME, self.settings.clock.seconds());
            self.write_superblock()?;
            self.barrier()?;
        }
        self.store.drop_synced()
    }

    /// Makes what is in the file durable, if the settings want that.
    pub fn barrier(&mut self) -> Result<()> {
        if self.settings.sync == SyncPolicy::Off {
            self.store.skip_sync();
            return Ok(());
        }
        self.store.sync()
    }

    /// Sets SYNCSIZE to a mark, durably, before what it warns of.
    pub fn mark(&mut self, mark: u64) -> Result<()> {
        self.writable()?;
        self.sb.put(Name::SYNCSIZE, signed(mark))?;
        self.write_superblock()?;
        self.barrier()
    }

    /// Closes the file; its own locks go, and their files.
    pub fn close(mut self) -> Result<()> {
        self.locks.release(&self.settings)
    }
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

/// The superblock of the file at `path`, of any kind.
pub(crate) fn superblock_of(path: &Path, settings: &Settings) -> Result<Superblock> {
    read_superblock(&*settings.fs.open(path, Mode::Read)?, Access::Read)
}

/// The bytes that hold the list of variables.
fn read_head(file: &dyn File) -> Result<Vec<u8>> {
    let mut head = read_up_to(file, 0, FIRST_READ)?;
    let wanted = index(Superblock::sbsize_of(file.path(), &head)?);
    // A full first read without the end of the list: there are many variables.
    let mut slots = head.chunks_exact(8).skip(1).step_by(2);
    if wanted > FIRST_READ && head.len() == FIRST_READ && !slots.any(|name| name == [0; 8]) {
        head.extend(read_up_to(file, FIRST_READ as u64, wanted - FIRST_READ)?);
    }
    head.truncate(wanted);
    Ok(head)
}

/// Up to `len` bytes from `at` on: fewer where the file ends.
pub(crate) fn read_up_to(file: &dyn File, at: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(at.saturating_add(done as u64), rest)? {
            0 => break,
            n => done += n,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
