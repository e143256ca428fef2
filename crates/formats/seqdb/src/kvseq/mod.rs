//! kvseq: a sequence of keys and values, appended to.
//!
//! ```text
//! superblock | entry | entry | ... | entry | room reserved, meaningless
//!            ^ SBSIZE                      ^ FILESIZE (at the last sync: SYNCSIZE)
//! ```
//! An entry is known by its offset, its *pointer*. Space is never used again. What was appended since the last sync is
//! dropped after a crash ([`Kvseq::rollback`]); what is changed in place (delete flags, overwritten values) is not undone.
//!
//! The order of writes, and what it gives:
//! 1. bytes of entries, 2. the length of a value that grew, 3. the superblock: FILESIZE never counts bytes that are not
//!    in the file, so that a reader beside a writer sees whole entries only;
//! 4. changes in place that point at new entries: who sees one finds a FILESIZE that covers them;
//! 5. sync, 6. the superblock with SYNCSIZE = FILESIZE, 7. sync: bytes before SYNCSIZE survive a power cut.

mod compact;
mod create;
mod layout;
mod read;
mod recover;
mod repr;
mod scan;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use compact::compact;
pub(crate) use compact::compact_locked;
pub use create::CreateKvseq;
pub(crate) use create::{lock_path, publish_new};
pub use layout::Layout;
pub(crate) use layout::Span;
pub use read::KvEntry;
pub use recover::{KvRepair, repair};
pub(crate) use recover::{cut_locked, repair_locked};
pub use repr::Repr;
pub use scan::{Item, Scan};
pub(crate) use verify::walk;
pub use verify::{KvFindings, verify};

use crate::open::{self, Guard, with_suffix};
use crate::store::Store;
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, Superblock, design};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_io::LockFile;

/// The largest ALIGN that entries are appended with: a gap is filled with zeros.
pub(crate) const MAX_ALIGN: u64 = 1 << 30;

/// An open kvseq.
#[derive(Debug)]
pub struct Kvseq {
    settings: Settings,
    access: Access,
    store: Store,
    sb: Superblock,
    layout: Layout,
    /// For a reader: the end of what it sees. A writer's is that of its store.
    seen: AtomicU64,
    entries: i64,
    live: i64,
    /// An entry that passes the end is a fault, whatever the reason.
    strict: bool,
    /// A reader of this file alone: nobody else cares for whether it is the one its name leads to.
    alone: bool,
    /// FILESIZE as the file has it.
    announced: u64,
    /// The superblock in the file is older than the one here.
    stale: bool,
    added: u64,
    last_sync: i64,
    lock: Option<LockFile>,
}

impl Kvseq {
    /// Opens a kvseq. A writer takes the lock beside it (`NAME.lock`) and refuses a file that was not closed properly;
    /// a reader sees all of such a file while its writer lives, and only what was synced otherwise.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let lock = with_suffix(path, design::LOCK_SUFFIX);
        let mut kv = Self::open_guarded(path, access, settings, Guard::Own(&lock))?;
        kv.alone = access == Access::Read;
        Ok(kv)
    }

    pub(crate) fn open_guarded(path: &Path, access: Access, settings: &Settings, guard: Guard<'_>) -> Result<Self> {
        let (lock, writer_lives) = guard.enter(settings, access)?;
        let opened = open::open(settings, path, access, Kind::Kvseq)?;
        let layout = Layout::of(&opened.sb)?;
        let seen = match Self::bounds(&opened.sb, path, opened.room) {
            Ok((end, synced)) if end == synced => end,
            // After a power cut FILESIZE may count bytes that never arrived; what was synced is there.
            Err(Error::FileSizeBeyondEof { .. }) if access == Access::Read => synced(&opened.sb, path, opened.room)?,
            Err(e) => return Err(e),
            Ok(_) if access == Access::Write => return Err(unclean(path)),
            Ok((end, synced)) => {
                if writer_lives {
                    end
                } else {
                    synced
                }
            }
        };
        if access == Access::Write && layout.align > MAX_ALIGN {
            return Err(opened.sb.fault(Name::ALIGN, "an ALIGN of at most 2^30"));
        }
        Ok(Self::assemble(opened, layout, seen, access, settings, lock))
    }

    /// Opens up to `end` without asking whether the file is clean: for verification and repair.
    pub(crate) fn open_anyway(path: &Path, end: Option<u64>, access: Access, settings: &Settings) -> Result<Self> {
        let opened = open::open(settings, path, access, Kind::Kvseq)?;
        let layout = Layout::of(&opened.sb)?;
        let claimed = opened.sb.length(Name::FILESIZE)?.unwrap_or(opened.room);
        let end = end.unwrap_or(claimed).min(opened.room);
        let mut kv = Self::assemble(opened, layout, end, access, settings, None);
        kv.strict = true;
        Ok(kv)
    }

    fn assemble(
        opened: open::Opened,
        layout: Layout,
        seen: u64,
        access: Access,
        settings: &Settings,
        lock: Option<LockFile>,
    ) -> Self {
        let open::Opened { file, sb, room } = opened;
        // Without FILESIZE the file's own length counts: then no room may be reserved.
        let step = match (sb.value(Name::FILESIZE), sb.value(Name::FILEINCR)) {
            (Some(_), Some(step)) => u64::try_from(step).unwrap_or(0),
            _ => 0,
        };
        let count = |name| sb.value(name).unwrap_or(0);
        Kvseq {
            access,
            // What a reader sees may grow; all of it is in the file.
            store: Store::new(file, room, if access == Access::Read { u64::MAX } else { seen }, step, settings),
            layout,
            seen: AtomicU64::new(seen),
            entries: count(Name::ENTRIES),
            live: count(Name::AENTRIES),
            strict: false,
            alone: false,
            announced: seen,
            stale: false,
            added: 0,
            last_sync: settings.clock.seconds(),
            lock,
            settings: settings.clone(),
            sb,
        }
    }

    /// FILESIZE and SYNCSIZE (equal where there is no SYNCSIZE), checked against each other and the file.
    fn bounds(sb: &Superblock, path: &Path, room: u64) -> Result<(u64, u64)> {
        let end = open::logical_end(sb, path, room)?;
        let synced = sb.length(Name::SYNCSIZE)?.unwrap_or(end);
        if synced < sb.sbsize() || synced > end {
            return Err(sb.fault(Name::SYNCSIZE, "a SYNCSIZE between SBSIZE and FILESIZE"));
        }
        Ok((end, synced))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// The variables as they are now.
    pub fn superblock(&self) -> &Superblock {
        &self.sb
    }

    /// How entries are laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Entries, deleted ones included, if the file counts them.
    pub fn entries(&self) -> Option<u64> {
        self.sb.value(Name::ENTRIES).map(|_| self.entries.unsigned_abs())
    }

    /// Entries not deleted, if the file counts them.
    pub fn live_entries(&self) -> Option<u64> {
        self.sb.value(Name::AENTRIES).map(|_| self.live.unsigned_abs())
    }

    /// Where the last entry ends.
    #[inline]
    pub fn end(&self) -> u64 {
        match self.access {
            Access::Read => self.seen.load(Ordering::Relaxed),
            Access::Write => self.store.end(),
        }
    }

    /// Where the first entry starts, or would.
    pub fn first(&self) -> u64 {
        self.layout.aligned(self.sb.sbsize()).unwrap_or(u64::MAX)
    }

    /// The end at the last sync.
    pub fn synced_end(&self) -> Option<u64> {
        self.sb.value(Name::SYNCSIZE).and_then(|n| u64::try_from(n).ok())
    }

    /// For a reader: looks how far the writer is by now, also if a compaction has put another file in this one's place.
    /// Returns whether there is more, or another.
    pub fn refresh(&mut self) -> Result<bool> {
        if self.access == Access::Write {
            return Ok(false);
        }
        if self.alone && !self.is_current()? {
            *self = Self::open(self.path(), Access::Read, &self.settings)?;
            return Ok(true);
        }
        let sb = open::read_superblock(self.store.file(), Access::Read)?;
        let (end, _) = Self::bounds(&sb, self.path(), self.store.file().len()?)?;
        let more = end > self.end();
        if self.is_believed(&sb)? {
            *self.seen.get_mut() = end;
            self.entries = sb.value(Name::ENTRIES).unwrap_or(0);
            self.live = sb.value(Name::AENTRIES).unwrap_or(0);
            self.sb = sb;
        }
        Ok(more)
    }

    /// Whether the file is still the one its name leads to: a compaction puts another in its place.
    pub(crate) fn is_current(&self) -> Result<bool> {
        Ok(self.settings.fs.metadata(self.path())?.id == self.store.file().metadata()?.id)
    }

    /// The same as an error, for whoever opens several files and wants them to belong together.
    pub(crate) fn expect_current(&self) -> Result<()> {
        let why = "another file has taken its place";
        if self.is_current()? { Ok(()) } else { Err(Error::NeedsCheck { path: self.path().into(), why }) }
    }

    /// Whether what a reader sees was complete when it was opened, and is all it has seen since: nobody was changing it.
    pub(crate) fn is_settled(&self) -> bool {
        let end = i64::try_from(self.end()).ok();
        let same = |name| self.sb.value(name).is_none_or(|value| Some(value) == end);
        self.access == Access::Write || self.strict || same(Name::FILESIZE) && same(Name::SYNCSIZE)
    }

    /// For a reader that finds no entry where one should be: whether a repair takes back what is there. That is behind the
    /// last sync; before it, and beside a writer that only writes, entries are whole.
    pub(crate) fn is_taken_back(&self, ptr: u64, error: &Error) -> Result<bool> {
        let broken = matches!(error, Error::CorruptEntry { .. } | Error::TornEntry { .. } | Error::BadPointer { .. });
        if self.access == Access::Write || self.strict || !broken {
            return Ok(false);
        }
        let sb = open::read_superblock(self.store.file(), Access::Read)?;
        let (_, synced) = Self::bounds(&sb, self.path(), u64::MAX)?;
        Ok(ptr >= synced)
    }

    /// For a reader that met a pointer past what it sees: looks whether its writer has announced more since.
    pub(crate) fn catch_up(&self) -> Result<bool> {
        if self.access == Access::Write || self.strict {
            return Ok(false);
        }
        let sb = open::read_superblock(self.store.file(), Access::Read)?;
        if !self.is_believed(&sb)? {
            return Ok(false);
        }
        let (end, _) = Self::bounds(&sb, self.path(), self.store.file().len()?)?;
        Ok(end > self.seen.fetch_max(end, Ordering::Relaxed))
    }

    /// For a reader: whether FILESIZE is that of a live writer, who writes entries first. Nobody else changes it; if it
    /// was found like this, a writer may have come while the file was opened.
    fn is_believed(&self, sb: &Superblock) -> Result<bool> {
        let claimed = sb.length(Name::FILESIZE)?.unwrap_or(0);
        Ok(*sb != self.sb || claimed > self.end() && self.writer_lives()?)
    }

    /// Whether somebody has the lock of a writer at this moment.
    fn writer_lives(&self) -> Result<bool> {
        // Where no lock can be, as beside the files of a compaction, nobody has it.
        let lock = crate::inspect::lock_of(self.path(), &self.sb, &self.settings);
        lock.map_or(Ok(false), |lock| open::writer_lives(&self.settings, &lock))
    }
}

fn synced(sb: &Superblock, path: &Path, room: u64) -> Result<u64> {
    match sb.length(Name::SYNCSIZE)? {
        Some(synced) if synced >= sb.sbsize() && synced <= room => Ok(synced),
        _ => Err(Error::FileSizeBeyondEof {
            path: path.into(),
            filesize: sb.length(Name::FILESIZE)?.unwrap_or(0),
            unix: room,
        }),
    }
}

fn unclean(path: &Path) -> Error {
    Error::NeedsCheck { path: path.into(), why: "SYNCSIZE is not FILESIZE: it was not closed properly" }
}
