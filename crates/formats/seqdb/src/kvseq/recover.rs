//! After a crash: back to the last sync, or as far as entries are whole.

use super::Kvseq;
use super::verify::{Walk, walk};
use crate::num::signed;
use crate::superblock::Name;
use crate::{Error, Result};

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
}

/// What stays of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// What was synced.
    Synced,
    /// Entries as far as they are whole.
    Whole,
    /// What is before this place, which the caller's own journal knows to be the end of an entry, synced.
    UpTo(u64),
}

impl Keep {
    /// For a repair: back to the last sync, or with `salvage` as far as entries are whole.
    pub fn repair(salvage: bool) -> Self {
        if salvage { Keep::Whole } else { Keep::Synced }
    }
}

impl Kvseq {
    /// Returns to the length at the last sync: what was added since is gone, what was changed in place stays. Indexes
    /// over the file must be rebuilt before it is appended to again.
    pub fn rollback(&mut self) -> Result<KvRepair> {
        self.shorten(Keep::Synced)
    }

    /// Drops what is not to be kept, and counts anew.
    pub(crate) fn shorten(&mut self, keep: Keep) -> Result<KvRepair> {
        self.file.writable()?;
        let (sb, there, synced) = (&self.file.sb, self.file.store.end(), self.synced_end());
        let claimed = sb.length(Name::FILESIZE)?.map_or(there, |claimed| claimed.max(there));
        if there < sb.sbsize() {
            return Err(sb.fault(Name::FILESIZE, "a FILESIZE, and a file, not below SBSIZE"));
        }
        let target = match (keep, sb.length(Name::SYNCSIZE)?) {
            (Keep::Whole, _) => there,
            (Keep::UpTo(end), _) if (sb.sbsize()..=there).contains(&end) => end,
            (Keep::UpTo(end), _) => {
                let found = format!("{claimed} bytes in a file of {}", self.file.store.room());
                return Err(Error::corrupt(self.path(), end, "a file that was synced up to here", found));
            }
            (Keep::Synced, None) if claimed == there => there,
            (Keep::Synced, Some(synced)) if (sb.sbsize()..=there).contains(&synced) => synced,
            _ => return Err(sb.fault(Name::SYNCSIZE, "a SYNCSIZE between SBSIZE and FILESIZE, within the file")),
        };
        self.retired.clear();
        self.file.store.abandon(target);
        let counted = walk(self, &mut |_| Ok(()))?;
        let (end, clamped) = settle(self, &counted, synced == Some(claimed), target, keep == Keep::Whole)?;
        // The walk stopped at a value that is now cut to size.
        let (mut entries, mut live) = (counted.entries, counted.live);
        if let Some(ptr) = clamped {
            entries += 1;
            live += i64::from(!self.is_deleted(ptr)?);
        }
        self.file.store.cut(end);
        if self.file.sb.value(Name::FILESIZE).is_none() && self.file.store.file().len()? > end {
            // The file's own length is what counts.
            self.file.store.file().set_len(end)?;
        }
        (self.entries, self.live, self.file.stale) = (entries, live, true);
        if synced.is_some_and(|synced| synced > end) {
            // Readers must not find a SYNCSIZE behind the end.
            self.file.sb.update(Name::SYNCSIZE, signed(end));
        }
        self.checkpoint()?;
        if keep == Keep::UpTo(end) && clamped.is_none() || !matches!(keep, Keep::UpTo(_)) {
            let (entries, live) = (entries.unsigned_abs(), live.unsigned_abs());
            return Ok(KvRepair { old_end: claimed, new_end: end, entries, live, clamped });
        }
        Err(Error::corrupt(self.path(), target, "the end of an entry", "its middle"))
    }
}

/// Finds where the file ends from now on; a last value that passes `target` is cut to end there. `same`: the superblock is
/// that of the last sync.
fn settle(kv: &mut Kvseq, counted: &Walk, same: bool, target: u64, salvage: bool) -> Result<(u64, Option<u64>)> {
    let whole_end = counted.last.map_or(kv.file.sb.sbsize(), |span| span.end);
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
        kv.file.store.overwrite(span.value_head, &kv.layout.value.prefix(target - span.value_at))?;
        return Ok((target, Some(at)));
    }
    if salvage {
        return Ok((whole_end, None));
    }
    Err(Error::corrupt(kv.path(), at, "an entry", "none; salvaging would keep what is before it"))
}
