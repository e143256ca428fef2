//! Checking, repairing, compacting and rebuilding maps.

use super::BundleFiles;
use crate::findings::Findings;
use crate::hindex::{self, Rebuilt};
use crate::kvseq::{self, Keep, KvFindings, KvRepair, lock_path};
use crate::lock::{self, Locks};
use crate::{Access, Hindex, Kind, Kvseq, OnProgress, Perm, Result, Settings, aside, design, file, perm};
use std::path::PathBuf;

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapRepair {
    /// To the pairs.
    pub kvseq: KvRepair,
    /// To the first index, if there is one.
    pub hindex: Rebuilt,
}

/// Takes the pairs back to their last sync (or with `salvage` as far as they are whole) and rebuilds the rest: of equal
/// keys the last one counts, the others are marked deleted. An index that is broken or missing gets the usual parameters.
pub fn repair(
    files: impl Into<BundleFiles>,
    settings: &Settings,
    salvage: bool,
    progress: OnProgress<'_>,
) -> Result<MapRepair> {
    files.into().restore(settings, Keep::repair(salvage), true, progress)
}

/// The same where keys may repeat: none of them is marked deleted. All indexes must be there.
pub fn rollback(
    files: impl Into<BundleFiles>,
    settings: &Settings,
    salvage: bool,
    progress: OnProgress<'_>,
) -> Result<KvRepair> {
    let files = files.into();
    files.indexes.iter().try_for_each(|path| hindex::expect_index(path, settings))?;
    Ok(files.restore(settings, Keep::repair(salvage), false, progress)?.kvseq)
}

/// Rebuilds indexes and perm from the kvseq. The perm holds the entries not deleted, in the order of the kvseq.
pub fn rebuild(files: impl Into<BundleFiles>, settings: &Settings, progress: OnProgress<'_>) -> Result<()> {
    let files = files.into();
    let mut locks = files.lock(settings)?;
    let kv = Kvseq::open_as(&files.kvseq, Access::Read, settings, false)?;
    files.build_aside(&kv, settings, progress)?;
    aside::take_place(settings, &files.rebuilt())?;
    locks.release(settings)
}

/// Copies the entries not deleted to a new kvseq in the old one's place, and rebuilds the rest. Returns the bytes before
/// and after.
pub fn compact(files: impl Into<BundleFiles>, settings: &Settings, progress: OnProgress<'_>) -> Result<(u64, u64)> {
    let files = files.into();
    let mut locks = files.lock(settings)?;
    let copy = aside::copy_of(&files.kvseq);
    let sizes = aside::make(settings, &files.copies(), || {
        let old = Kvseq::open_as(&files.kvseq, Access::Write, settings, false)?;
        let new_end = kvseq::copy_live(&old, &copy, progress)?;
        // First, so that readers do without them only while names are exchanged.
        files.build_aside(&Kvseq::open_as(&copy, Access::Read, settings, false)?, settings, progress)?;
        files.lead_astray(settings)?;
        Ok((old.end(), new_end))
    })?;
    // Durable before the rest: what is rebuilt does not say which kvseq it is about.
    aside::take_place(settings, &[(copy, files.kvseq.clone())])?;
    aside::take_place(settings, &files.rebuilt())?;
    locks.release(settings)?;
    Ok(sizes)
}

/// Checks all files and that they belong together; faults go to `findings`. Refused while a process writes.
pub fn verify(
    files: impl Into<BundleFiles>,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<KvFindings> {
    let files = files.into();
    files.all().try_for_each(|file| lock::refuse_written(settings, &lock_path(file)))?;
    let (counted, kv) = kvseq::verify_kind(&files.kvseq, Kind::Kvseq, settings, findings)?;
    let Some(kv) = kv else { return Ok(counted) };
    for path in &files.indexes {
        aside::note_copies(settings, &[aside::copy_of(path)], findings)?;
        hindex::verify(path, &kv, settings, findings, progress)?;
    }
    if let Some(path) = &files.perm {
        perm::verify(path, &kv, settings, findings)?;
    }
    Ok(counted)
}

impl BundleFiles {
    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.kvseq].into_iter().chain(&self.indexes).chain(&self.perm)
    }

    fn lock(&self, settings: &Settings) -> Result<Locks> {
        Locks::take(settings, self.all().map(|path| lock_path(path)))
    }

    /// Where copies of all of them are made.
    fn copies(&self) -> Vec<PathBuf> {
        self.all().map(|path| aside::copy_of(path)).collect()
    }

    /// What is rebuilt: the copy, and its place. The perm first, for the shortest time: who has no index reads all entries
    /// instead, who has no perm has to wait.
    fn rebuilt(&self) -> Vec<(PathBuf, PathBuf)> {
        self.perm.iter().chain(&self.indexes).map(|path| (aside::copy_of(path), path.clone())).collect()
    }

    /// Lets indexes and perm say that their pointers must not be followed: the kvseq is about to be exchanged, or cut.
    fn lead_astray(&self, settings: &Settings) -> Result<()> {
        self.indexes.iter().try_for_each(|path| hindex::mark(path, true, settings))?;
        let Some(path) = &self.perm else { return Ok(()) };
        Kvseq::open_anyway(path, Kind::Perm, Access::Write, settings)?.file.mark(design::SYNC_ASTRAY)
    }

    /// Builds indexes and perm anew, beside the old ones.
    fn build_aside(&self, kv: &Kvseq, settings: &Settings, progress: OnProgress<'_>) -> Result<()> {
        for path in &self.indexes {
            hindex::expect_index(path, settings)?;
            hindex::rebuild_aside(path, kv, true, settings, progress)?;
        }
        self.perm_aside(kv, settings)
    }

    fn perm_aside(&self, kv: &Kvseq, settings: &Settings) -> Result<()> {
        let Some(path) = &self.perm else { return Ok(()) };
        let copy = aside::copy_of(path);
        let sb = file::superblock_of(path, settings)?.emptied(&copy, settings);
        aside::remove_all(settings, std::slice::from_ref(&copy))?;
        aside::publish_new(&sb, sb.sbsize(), settings)?;
        let mut perm = Perm::open(&copy, Access::Write, settings)?;
        perm.build(kv)?;
        perm.close()
    }

    /// Shortens the kvseq and rebuilds the rest; marks entries deleted that others `supersede`, if that is wanted.
    fn restore(&self, settings: &Settings, keep: Keep, supersede: bool, progress: OnProgress<'_>) -> Result<MapRepair> {
        let mut locks = self.lock(settings)?;
        aside::remove_all(settings, &self.copies())?;
        // A file that is no kvseq leaves the indexes as they are.
        let mut kv = Kvseq::open_anyway(&self.kvseq, Kind::Kvseq, Access::Write, settings)?;
        self.lead_astray(settings)?;
        let kvseq = kv.shorten(keep)?;
        let (mut hindex, mut superseded) = (Rebuilt::default(), Vec::new());
        for path in self.indexes.iter().rev() {
            // Not called whole before the flags below are durable, or another crash would leave them undone unnoticed.
            (hindex, superseded) = hindex::rebuild_aside(path, &kv, false, settings, progress)?;
        }
        if supersede && kv.layout().delflag {
            superseded.into_iter().try_for_each(|ptr| kv.delete(ptr))?;
        }
        kv.checkpoint()?;
        self.perm_aside(&kv, settings)?;
        aside::take_place(settings, &self.rebuilt())?;
        for path in &self.indexes {
            Hindex::open_anyway(path, Access::Write, settings)?.close()?;
        }
        locks.release(settings)?;
        Ok(MapRepair { kvseq, hindex })
    }
}
