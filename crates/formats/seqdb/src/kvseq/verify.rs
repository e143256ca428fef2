//! Walking a kvseq and listing every fault.

use super::layout::Span;
use super::{Kvseq, bounds};
use crate::findings::Findings;
use crate::num::index;
use crate::superblock::Name;
use crate::{Access, Error, Kind, Result, Settings, aside};
use std::path::Path;

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
