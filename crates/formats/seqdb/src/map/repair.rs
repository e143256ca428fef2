//! Checking and repairing a map.

use super::MapFiles;
use crate::findings::Findings;
use crate::hindex::{self, RebuildPlan, Rebuilt, rebuild_with, roomy};
use crate::kvseq::{self, KvRepair};
use crate::{Access, CreateHindex, Hindex, Kind, Kvseq, Name, OnProgress, Result, Settings, open};

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapRepair {
    /// To the pairs.
    pub kvseq: KvRepair,
    /// To the index.
    pub hindex: Rebuilt,
}

/// Takes the pairs back to their last sync (or with `salvage` as far as they are whole) and rebuilds the index: of equal
/// keys the last one counts, the others are marked deleted.
pub fn repair(files: &MapFiles, settings: &Settings, salvage: bool, progress: OnProgress<'_>) -> Result<MapRepair> {
    let locks = open::lock_all(settings, files.both())?;
    open::remove_all(settings, &files.both().map(open::copy_of))?;
    hindex::lead_astray(&files.hindex, settings)?;
    let kvseq = kvseq::repair_locked(&files.kvseq, settings, salvage)?;
    let guard = open::Guard::Owner { writer_lives: false };
    let mut kv = Kvseq::open_guarded(&files.kvseq, Access::Write, settings, guard)?;
    // A broken or absent index is replaced by one with the usual parameters.
    let old = open::open(settings, &files.hindex, Access::Read, Kind::Hindex).ok().map(|opened| opened.sb);
    let number = |name| old.as_ref().and_then(|sb| sb.value(name)).and_then(|n| u64::try_from(n).ok());
    let cellsz = number(Name::CELLSZ).filter(|n| (1..=2).contains(n)).unwrap_or(2);
    let needed = roomy(kvseq.live);
    // The old size only if it is plausible: it may be what is broken.
    let htsize = number(Name::HTSIZE).filter(|n| *n >= needed && *n / 64 <= needed).unwrap_or(needed);
    let create = match &old {
        Some(sb) => CreateHindex::like(sb, htsize, cellsz),
        None => CreateHindex { htsize, cellsz, ..CreateHindex::default() },
    };
    // Not called whole before the flags below are durable, or another crash would leave them undone unnoticed.
    let plan = RebuildPlan { create, whole: false };
    let room = settings.sort_memory_bytes / 8;
    let mut superseded = Vec::new();
    let hindex = rebuild_with(&files.hindex, &kv, plan, settings, progress, &mut |ptr| {
        if superseded.len() < room {
            superseded.push(ptr);
        }
        Ok(())
    })?;
    if kv.layout().delflag {
        superseded.into_iter().try_for_each(|ptr| kv.delete(ptr))?;
    }
    kv.checkpoint()?;
    Hindex::open_anyway(&files.hindex, Access::Write, settings)?.close()?;
    locks.release(settings)?;
    Ok(MapRepair { kvseq, hindex })
}

/// Checks both files and that they belong together; faults go to `findings`. Refused while somebody writes.
pub fn verify(files: &MapFiles, settings: &Settings, findings: &mut Findings, progress: OnProgress<'_>) -> Result<()> {
    files.both().into_iter().try_for_each(|file| open::refuse_written(settings, file))?;
    open::note_copies(settings, &[open::copy_of(&files.hindex)], findings)?;
    kvseq::verify(&files.kvseq, settings, findings)?;
    if let Ok(kv) = Kvseq::open_anyway(&files.kvseq, None, Access::Read, settings) {
        hindex::verify(&files.hindex, &kv, settings, findings, progress)?;
    }
    Ok(())
}
