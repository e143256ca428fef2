//! kvseq: a sequence of keys and values, appended to.
//!
//! ```text
//! superblock | entry | entry | ... | entry | room reserved, meaningless
//!            ^ SBSIZE                      ^ FILESIZE (at the last sync: SYNCSIZE)
//! ```
//! An entry is known by its offset, its *pointer*. Space is never used again. What was appended since the last sync is
//! dropped after a crash ([`Kvseq::rollback`]); what is changed in place (delete flags, overwritten values) is not undone.
//!
//! [`crate::Perm`] and the timefile of a filesys are arrays of pairs of numbers: the same sequence with entries of 16 bytes.

mod create;
mod layout;
mod read;
mod recover;
mod repr;
mod scan;
#[cfg(test)]
mod tests;
mod write;

pub use create::CreateKvseq;
pub(crate) use create::{copy_live, lock_path};
pub use layout::Layout;
pub(crate) use layout::Span;
pub(crate) use read::Head;
pub use read::KvEntry;
pub(crate) use recover::{Keep, verify_kind, walk};
pub use recover::{KvFindings, KvRepair, verify};
pub use repr::Repr;
pub use scan::{Item, Scan};

use crate::file::SbFile;
use crate::num::signed;
use crate::superblock::Name;
use crate::{Access, Error, Kind, OnProgress, Result, Settings, Superblock, design, lock, map, silent};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest ALIGN that entries are appended with: a gap is filled with zeros.
pub(crate) const MAX_ALIGN: u64 = 1 << 30;

/// An open kvseq.
#[derive(Debug)]
pub struct Kvseq {
    pub(crate) file: SbFile,
    layout: Layout,
    /// For a reader: the end of what it sees. A writer's is that of its file.
    seen: AtomicU64,
    entries: i64,
    live: i64,
    /// Replaced entries to be marked deleted once what replaces them is durable.
    retired: Vec<u64>,
    /// An entry that passes the end is a fault, whatever the reason.
    strict: bool,
    /// A reader of this file alone: it does not matter whether its name still leads to it.
    alone: bool,
    /// Entries since the last flush.
    added: u64,
    last_sync: i64,
}

/// Makes the file whole: back to the last sync, or with `salvage` as far as entries are whole; counts anew.
pub fn repair(path: &Path, settings: &Settings, salvage: bool) -> Result<KvRepair> {
    Ok(map::repair(path, settings, salvage, &silent)?.kvseq)
}

/// Copies the entries not deleted to a new file that takes the old one's place in one step. Indexes and perms over the
/// file must be rebuilt. Returns the bytes before and after.
pub fn compact(path: &Path, settings: &Settings, progress: OnProgress<'_>) -> Result<(u64, u64)> {
    map::compact(path, settings, progress)
}

impl Kvseq {
    /// Opens a kvseq. A writer takes the lock beside it (`NAME.lock`) and refuses a file that was not closed properly;
    /// a reader sees all of such a file while its writer lives, and only what was synced otherwise.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        Self::open_kind(path, Kind::Kvseq, access, settings)
    }

    /// The same for any sequence of entries.
    pub(crate) fn open_kind(path: &Path, kind: Kind, access: Access, settings: &Settings) -> Result<Self> {
        let open = |writer_lives| Self::open_kind_as(path, kind, access, settings, writer_lives);
        let (mut kv, locks) = lock::open(settings, access, &lock_path(path), &[], open)?;
        (kv.file.locks, kv.alone) = (locks, access == Access::Read);
        Ok(kv)
    }

    /// The same for a caller that takes care of the lock, and knows whether another process writes.
    pub(crate) fn open_as(path: &Path, access: Access, settings: &Settings, writer_lives: bool) -> Result<Self> {
        Self::open_kind_as(path, Kind::Kvseq, access, settings, writer_lives)
    }

    pub(crate) fn open_kind_as(
        path: &Path,
        kind: Kind,
        access: Access,
        settings: &Settings,
        writer_lives: bool,
    ) -> Result<Self> {
        let file = SbFile::open(path, kind, access, settings)?;
        let layout = Layout::of(&file.sb)?;
        let seen = match bounds(&file.sb, file.store.room()) {
            Ok((end, synced)) if end == synced => end,
            // After a power cut FILESIZE may count bytes that never arrived; what was synced is there.
            Err(e @ Error::FileSizeBeyondEof { .. }) if access == Access::Read => {
                let there = |synced: &u64| (file.sb.sbsize()..=file.store.room()).contains(synced);
                file.sb.length(Name::SYNCSIZE)?.filter(there).ok_or(e)?
            }
            Err(e) => return Err(e),
            Ok(_) if access == Access::Write => {
                let why = "SYNCSIZE is not FILESIZE: it was not closed properly";
                return Err(Error::NeedsCheck { path: path.into(), why });
            }
            Ok((end, _)) if writer_lives => end,
            Ok((_, synced)) => synced,
        };
        if access == Access::Write && layout.align > MAX_ALIGN {
            return Err(file.sb.fault(Name::ALIGN, "an ALIGN of at most 2^30"));
        }
        Ok(Self::assemble(file, layout, seen))
    }

    /// Opens it without asking whether it is clean: for verification and repair.
    pub(crate) fn open_anyway(path: &Path, kind: Kind, access: Access, settings: &Settings) -> Result<Self> {
        let file = SbFile::open(path, kind, access, settings)?;
        let layout = Layout::of(&file.sb)?;
        let room = file.store.room();
        let end = file.sb.length(Name::FILESIZE)?.map_or(room, |claimed| claimed.min(room));
        Ok(Kvseq { strict: true, ..Self::assemble(file, layout, end) })
    }

    fn assemble(mut file: SbFile, layout: Layout, seen: u64) -> Self {
        // What a reader sees may grow; all of it is in the file.
        file.ends_at(if file.access == Access::Read { u64::MAX } else { seen });
        let mut kv = Kvseq {
            layout,
            seen: AtomicU64::new(seen),
            entries: 0,
            live: 0,
            retired: Vec::new(),
            strict: false,
            alone: false,
            added: 0,
            last_sync: file.settings.clock.seconds(),
            file,
        };
        kv.read_counts();
        kv
    }

    /// The counters as the superblock has them, which may be anything.
    fn read_counts(&mut self) {
        let count = |name| self.file.sb.value(name).unwrap_or(0);
        (self.entries, self.live) = (count(self.counter()), count(Name::AENTRIES));
    }

    /// The variable that counts entries.
    fn counter(&self) -> Name {
        if self.file.sb.kind() == Kind::Perm { Name::PERMSIZE } else { Name::ENTRIES }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The variables as they are now.
    pub fn superblock(&self) -> &Superblock {
        &self.file.sb
    }

    /// How entries are laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Entries, deleted ones included, if the file counts them.
    pub fn entries(&self) -> Option<u64> {
        self.file.sb.value(self.counter()).map(|_| self.entries.unsigned_abs())
    }

    /// Entries not deleted, if the file counts them.
    pub fn live_entries(&self) -> Option<u64> {
        self.file.sb.value(Name::AENTRIES).map(|_| self.live.unsigned_abs())
    }

    /// Where the last entry ends.
    #[inline]
    pub fn end(&self) -> u64 {
        match self.file.access {
            Access::Read => self.seen.load(Ordering::Relaxed),
            Access::Write => self.file.store.end(),
        }
    }

    /// Where the first entry starts, or would.
    pub fn first(&self) -> u64 {
        self.layout.aligned(self.file.sb.sbsize())
    }

    /// The end at the last sync.
    pub fn synced_end(&self) -> Option<u64> {
        self.file.sb.value(Name::SYNCSIZE).and_then(|n| u64::try_from(n).ok())
    }

    /// For a reader: looks how far the writer is by now, also if a compaction has put another file in this one's place.
    /// Returns whether there is more, or another.
    pub fn refresh(&mut self) -> Result<bool> {
        if self.file.access == Access::Write {
            return Ok(false);
        }
        if self.alone && !self.file.is_current()? {
            *self = Self::open_kind(self.path(), self.file.sb.kind(), Access::Read, &self.file.settings)?;
            return Ok(true);
        }
        let sb = self.file.reread()?;
        let (end, _) = bounds(&sb, self.file.store.file().len()?)?;
        let more = end > self.end();
        if self.is_believed(&sb)? {
            *self.seen.get_mut() = end;
            self.file.sb = sb;
            self.read_counts();
        }
        Ok(more)
    }

    /// An error where a compaction has put another file in this one's place, for a caller that opens several files and
    /// wants them to belong together.
    pub(crate) fn expect_current(&self) -> Result<()> {
        let why = "another file has taken its place";
        if self.file.is_current()? { Ok(()) } else { Err(Error::NeedsCheck { path: self.path().into(), why }) }
    }

    /// Whether what a reader sees was complete when it was opened, and is all it has seen since: no writer was changing
    /// it.
    pub(crate) fn is_settled(&self) -> bool {
        let same = |name| self.file.sb.value(name).is_none_or(|value| value == signed(self.end()));
        !self.is_beside() || same(Name::FILESIZE) && same(Name::SYNCSIZE)
    }

    /// Whether a writer may change the file at the same time.
    fn is_beside(&self) -> bool {
        self.file.access == Access::Read && !self.strict
    }

    /// For a reader that finds no entry where one should be: whether a repair takes back what is there. That is behind the
    /// last sync; before it, and beside a writer that only writes, entries are whole.
    pub(crate) fn is_taken_back(&self, ptr: u64, error: &Error) -> Result<bool> {
        let broken = matches!(error, Error::CorruptEntry { .. } | Error::TornEntry { .. } | Error::BadPointer { .. });
        if !self.is_beside() || !broken {
            return Ok(false);
        }
        let sb = self.file.reread()?;
        Ok(ptr >= bounds(&sb, u64::MAX)?.1)
    }

    /// For a reader that met a pointer past what it sees: looks whether its writer has announced more since.
    pub(crate) fn catch_up(&self) -> Result<bool> {
        if !self.is_beside() {
            return Ok(false);
        }
        let sb = self.file.reread()?;
        if !self.is_believed(&sb)? {
            return Ok(false);
        }
        let (end, _) = bounds(&sb, self.file.store.file().len()?)?;
        Ok(end > self.seen.fetch_max(end, Ordering::Relaxed))
    }

    /// For a reader: whether FILESIZE is that of a live writer, who writes entries first. Nobody else changes it; if it
    /// was found like this, a writer may have come while the file was opened.
    fn is_believed(&self, sb: &Superblock) -> Result<bool> {
        let claimed = sb.length(Name::FILESIZE)?.unwrap_or(0);
        Ok(*sb != self.file.sb || claimed > self.end() && self.writer_lives()?)
    }

    /// Whether a process has the lock of a writer at this moment.
    fn writer_lives(&self) -> Result<bool> {
        // Where no lock can be, as beside the files of a compaction, it is free.
        let lock = crate::inspect::lock_of(self.path(), &self.file.sb, &self.file.settings);
        lock.map_or(Ok(false), |lock| lock::writer_lives(&self.file.settings, &lock))
    }
}

/// FILESIZE and SYNCSIZE (equal where there is no SYNCSIZE), checked against each other and the bytes the file has.
fn bounds(sb: &Superblock, room: u64) -> Result<(u64, u64)> {
    let end = sb.logical_end(room)?;
    let synced = sb.length(Name::SYNCSIZE)?.unwrap_or(end);
    if sb.kind() == Kind::Perm && synced == design::SYNC_ASTRAY {
        return Err(Error::NeedsCheck { path: sb.path().into(), why: crate::perm::ASTRAY });
    }
    if synced < sb.sbsize() || synced > end {
        return Err(sb.fault(Name::SYNCSIZE, "a SYNCSIZE between SBSIZE and FILESIZE"));
    }
    Ok((end, synced))
}
