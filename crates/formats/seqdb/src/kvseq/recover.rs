//! After a crash: back to the last sync, or as far as entries are whole.

use super::Kvseq;
use super::verify::{Walk, walk};
use crate::open;
use crate::superblock::Name;
use crate::{Access, Error, Result, Settings};
use std::path::Path;

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KvRepair {
    /// FILESIZE before.
    pub old_end: u64,
    /// FILESIZE now.
    pub new_end: u64,
    /// Entries now.
    pub entries: u64,
    /// Entries not deleted now.
    pub live: u64,
    /// The entry whose value was cut, as it had been made longer since the last sync.
    pub clamped: Option<u64>,
    /// Whether anything was changed.
    pub changed: bool,
}

impl Kvseq {
    /// Returns to the length at the last sync: what was added since is gone, what was changed in place stays. Indexes
    /// over the file must be rebuilt before it is appended to again.
    pub fn rollback(&mut self) -> Result<KvRepair> {
        let claimed = self.store.end();
        let target = match self.synced_end() {
            Some(synced) if synced >= self.sb.sbsize() && synced <= claimed => synced,
            _ => return Err(self.sb.fault(Name::SYNCSIZE, "a SYNCSIZE between SBSIZE and FILESIZE")),
        };
        self.return_to(claimed, target, false)
    }

    /// Makes `target`, or the last whole entry before it, the end.
    fn return_to(&mut self, claimed: u64, target: u64, salvage: bool) -> Result<KvRepair> {
        let synced = self.synced_end();
        self.store.abandon(target);
        let counted = walk(self, &mut |_| Ok(()))?;
        let (end, clamped) = settle(self, &counted, synced == Some(claimed), target, salvage)?;
        // The walk stopped at a value that is now cut to size.
        let (mut entries, mut live) = (counted.entries, counted.live);
        if let Some(ptr) = clamped {
            entries += 1;
            live += i64::from(!self.is_deleted(ptr)?);
        }
        let changed = clamped.is_some()
            || end != claimed
            || synced.is_some_and(|s| s != end)
            || self.entries().is_some_and(|n| n != entries.unsigned_abs())
            || self.live_entries().is_some_and(|n| n != live.unsigned_abs());
        self.store.cut(end);
        if self.sb.value(Name::FILESIZE).is_none() && self.store.file().len()? > end {
            // The file's own length is what counts.
            self.store.file().set_len(end)?;
        }
        self.set_counts(entries, live);
        if synced.is_some_and(|synced| synced > end) {
            // Readers must not find a SYNCSIZE behind the end.
            self.sb.update(Name::SYNCSIZE, i64::try_from(end).unwrap_or(i64::MAX));
        }
        self.checkpoint()?;
        let (entries, live) = (entries.unsigned_abs(), live.unsigned_abs());
        Ok(KvRepair { old_end: claimed, new_end: end, entries, live, clamped, changed })
    }
}

/// Makes the file whole: back to the last sync, or with `salvage` as far as entries are whole; counts anew.
pub fn repair(path: &Path, settings: &Settings, salvage: bool) -> Result<KvRepair> {
    let lock = open::lock(settings, &super::create::lock_path(path))?;
    open::remove_all(settings, &[open::copy_of(path)])?;
    let report = repair_locked(path, settings, salvage)?;
    lock.release_and_remove(&*settings.fs)?;
    Ok(report)
}

/// The same for a caller that holds the lock.
pub(crate) fn repair_locked(path: &Path, settings: &Settings, salvage: bool) -> Result<KvRepair> {
    let mut kv = Kvseq::open_anyway(path, None, Access::Write, settings)?;
    let room = kv.store.file().len()?;
    let claimed = kv.sb.length(Name::FILESIZE)?.unwrap_or(room);
    if claimed.min(room) < kv.sb.sbsize() {
        return Err(kv.sb.fault(Name::FILESIZE, "a FILESIZE, and a file, not below SBSIZE"));
    }
    let target = match kv.sb.length(Name::SYNCSIZE)? {
        _ if salvage => claimed.min(room),
        None if claimed <= room => claimed,
        Some(synced) if synced >= kv.sb.sbsize() && synced <= claimed && synced <= room => synced,
        _ => return Err(kv.sb.fault(Name::SYNCSIZE, "a SYNCSIZE between SBSIZE and FILESIZE, within the file")),
    };
    kv.return_to(claimed, target, salvage)
}

/// Takes the file back to `end`, which a caller that keeps its own journal knows to be the end of an entry, synced. What is
/// behind it is gone, synced or not.
pub(crate) fn cut_locked(path: &Path, settings: &Settings, end: u64) -> Result<KvRepair> {
    let mut kv = Kvseq::open_anyway(path, None, Access::Write, settings)?;
    let room = kv.store.file().len()?;
    let claimed = kv.sb.length(Name::FILESIZE)?.unwrap_or(room);
    if end < kv.sb.sbsize() || end > claimed || end > room {
        let found = format!("{claimed} bytes in a file of {room}");
        return Err(Error::corrupt(path, end, "a file that was synced up to here", found));
    }
    let report = kv.return_to(claimed, end, false)?;
    match report.new_end == end && report.clamped.is_none() {
        true => Ok(report),
        false => Err(Error::corrupt(path, end, "the end of an entry", "its middle")),
    }
}

/// Finds where the file ends from now on; a last value that passes `target` is cut to end there. `same`: the superblock is
/// that of the last sync.
fn settle(kv: &mut Kvseq, counted: &Walk, same: bool, target: u64, salvage: bool) -> Result<(u64, Option<u64>)> {
    let whole_end = counted.last.map_or(kv.sb.sbsize(), |span| span.end);
    let Some((at, _)) = &counted.stopped else {
        return Ok((whole_end, None));
    };
    let at = *at;
    // Only a last value grows; another one's length is broken, and cutting it would make it swallow what follows.
    let is_last = !same || kv.entries().is_none_or(|entries| entries == counted.entries.unsigned_abs() + 1);
    if is_last
        && let Ok((span, _)) = kv.claimed_span(at, &mut [0; 64])
        && kv.layout.value.can_grow()
        && span.value_at <= target
        && span.end > target
    {
        let (prefix, width) = kv.layout.value.write_len(target - span.value_at);
        kv.store.overwrite(span.value_head, prefix.get(..width).unwrap_or_default())?;
        return Ok((target, Some(at)));
    }
    if salvage {
        return Ok((whole_end, None));
    }
    Err(Error::corrupt(kv.path(), at, "an entry", "none; salvaging would keep what is before it"))
}
