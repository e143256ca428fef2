//! Walking all entries: to list every fault, or after a crash to return to the last sync, or as far as entries are whole.

use super::layout::Span;
use super::{Kvseq, bounds};
use crate::findings::Findings;
use crate::num::{index, signed};
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, aside};
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

/// What a walk over all entries found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub entries: i64,
    pub live: i64,
    /// The last entry that is whole.
    pub last: Option<Span>,
    /// Where it stopped before the end, and why.
    pub stopped: Option<(u64, Error)>,
    /// The first byte between two entries that is not zero.
    pub gap: Option<u64>,
}

/// Walks all entries, `each` seeing every one, up to the first that is not whole.
pub(crate) fn walk(kv: &Kvseq, each: &mut dyn FnMut(&super::Item<'_>) -> Result<()>) -> Result<Walk> {
    let mut walk = Walk::default();
    let mut scan = kv.scan().with_deleted();
    loop {
        let at = scan.position();
        match scan.next_entry() {
            Ok(None) => return Ok(walk),
            Ok(Some(item)) => {
                walk.entries += 1;
                walk.live += i64::from(!item.deleted);
                let span = item.span;
                each(&item)?;
                if walk.gap.is_none() {
                    walk.gap = gap_before(kv, walk.last.map_or(kv.superblock().sbsize(), |s| s.end), span.ptr)?;
                }
                walk.last = Some(span);
            }
            Err(e @ (Error::TornEntry { .. } | Error::CorruptEntry { .. })) => {
                walk.stopped = Some((at, e));
                return Ok(walk);
            }
            Err(e) => return Err(e),
        }
    }
}

/// The first byte in a gap that is not zero.
fn gap_before(kv: &Kvseq, from: u64, to: u64) -> Result<Option<u64>> {
    let mut at = from;
    let mut buf = [0; 512];
    while at < to {
        let (part, _) = buf.split_at_mut(index(to - at).min(512));
        kv.file.store.read(at, part)?;
        if let Some(i) = part.iter().position(|b| *b != 0) {
            return Ok(Some(at + i as u64));
        }
        at += part.len() as u64;
    }
    Ok(None)
}

/// What the verification of a kvseq counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KvFindings {
    /// Entries walked.
    pub entries: u64,
    /// Of these, not deleted.
    pub live: u64,
    /// Whether SYNCSIZE equals FILESIZE.
    pub clean: bool,
}

/// Checks superblock, entries and counters of the kvseq at `path`; faults go to `findings`. An error is returned only
/// if the file cannot be read at all.
pub fn verify(path: &Path, settings: &Settings, findings: &mut Findings) -> Result<KvFindings> {
    Ok(verify_kind(path, Kind::Kvseq, settings, findings)?.0)
}

/// The same for any sequence of entries, which is returned as far as it can be read.
pub(crate) fn verify_kind(
    path: &Path,
    kind: Kind,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(KvFindings, Option<Kvseq>)> {
    let kv = match Kvseq::open_anyway(path, kind, Access::Read, settings) {
        Ok(kv) => kv,
        Err(e) => return findings.take(e).map(|()| (KvFindings::default(), None)),
    };
    aside::note_copies(settings, &[aside::copy_of(path)], findings)?;
    let clean = match bounds(&kv.file.sb, kv.file.store.room()) {
        Ok((end, synced)) => end == synced,
        Err(e) => {
            findings.take(e)?;
            false
        }
    };
    if !clean {
        findings.fault(path, 0, "SYNCSIZE equal to FILESIZE, as after a proper close", "another value");
    }
    let counted = walk(&kv, &mut |_| Ok(()))?;
    if let Some((_, e)) = counted.stopped {
        findings.take(e)?;
    } else {
        let counters = [(kv.counter(), counted.entries), (Name::AENTRIES, counted.live)];
        for (name, count) in counters {
            if kv.file.sb.value(name).is_some_and(|stored| stored != count) {
                findings.take(kv.file.sb.fault(name, "the number of entries there are"))?;
            }
        }
        let end = counted.last.map_or(kv.file.sb.sbsize(), |s| s.end);
        if end != kv.end() {
            findings.fault(path, end, "the last entry to end at FILESIZE", format!("an end at {end} of {}", kv.end()));
        }
    }
    if let Some(at) = counted.gap {
        findings.warning(path, at, "zeros between entries", "something else");
    }
    let (entries, live) = (counted.entries.unsigned_abs(), counted.live.unsigned_abs());
    Ok((KvFindings { entries, live, clean }, Some(kv)))
}
