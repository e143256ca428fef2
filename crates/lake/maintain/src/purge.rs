//! Taking data out of a lake for good: rows that are denied, rejected lines that name them, whole datasets.

use crate::event::{Dropped, Event};
use crate::keeper::{datasets, suffixes};
use crate::{Keeper, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use trawl_index::Compaction;
use trawl_ingest::{Files, Rewrite};
use trawl_model::{UnixMillis, UrlRecord};
use trawl_rows::{Columns, FilePages};
use trawl_store::denial::Denied;
use trawl_store::{Cancel, DataFile, Error, HashedUpload, Lake, Listed, Manifest, RejectsFile, Store, layout};

/// Bytes of a rejects file that are read at a time.
const STEP_BYTES: u64 = 4 << 20;
/// Bytes of a line at most: a text of some kilobytes, all of it escaped, with its reason and the name of its source.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Rows that are looked at in one step.
const STEP_ROWS: u32 = 16_384;

/// What a purge takes out of a dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Rows that go.
    pub rows: u64,
    /// Files that hold them.
    pub files: u64,
}

impl Keeper<'_> {
    /// Drops a dataset: it is answered nowhere any more, and its names leave the index. Its files go with a later
    /// collection.
    pub fn drop_dataset(&self, lake: &Lake, dataset_id: u32) -> Result<()> {
        let dropped = Dropped { dry_run: false, ..self.would_drop(lake, dataset_id)? };
        lake.drop_dataset((self.now)(), &self.writer(), dataset_id)?;
        self.publish(lake)?;
        self.fact(Event::Dropped(dropped))?;
        self.merge_masked(lake)
    }

    /// What [`Keeper::drop_dataset`] would take away.
    pub fn would_drop(&self, lake: &Lake, dataset_id: u32) -> Result<Dropped> {
        let (commit, damage) = match lake.dataset_newest(dataset_id) {
            Err(error @ (Error::Corrupt { .. } | Error::Lost { .. })) => (None, Some(error.to_string())),
            commit => (commit?, None),
        };
        let (rows, files, bytes) = commit.map_or((0, 0, 0), |c| (c.rows, c.files.len() as u64, c.bytes));
        let manifest = lake.current()?;
        let dataset = manifest.dataset(dataset_id).map(|dataset| dataset.info.name.clone()).unwrap_or_default();
        Ok(Dropped { dataset, dataset_id, rows, files, bytes, dry_run: true, denied: false, damage })
    }

    /// Names and paths of what went leave the segments that still answer for others.
    fn merge_masked(&self, lake: &Lake) -> Result<()> {
        while self.merge_segments(lake, Compaction::Masked)? {}
        Ok(())
    }

    /// Writes files again without what the deny list names, of all datasets or only one. Denied datasets are dropped. Tells
    /// whether there was anything to do.
    pub fn purge(&self, lake: &Lake, dataset: Option<u32>, dry_run: bool) -> Result<bool> {
        let manifest = lake.current()?;
        let suffixes = suffixes(lake, &manifest)?;
        let denied = Denied::new(&manifest, &suffixes);
        let mut any = false;
        for (id, name) in datasets(&manifest, dataset) {
            any |= if denied.list().dataset(id) {
                self.purge_whole(lake, id, dry_run)?
            } else {
                self.purge_rows(lake, &manifest, id, name, &denied, dry_run)?
            };
        }
        if !dry_run {
            // Also where there is nothing to do: a purge that was cut before this left a version that holds on to the old files.
            any |= self.publish(lake)?.version.is_some();
            self.merge_masked(lake)?;
        }
        Ok(any)
    }

    fn purge_whole(&self, lake: &Lake, id: u32, dry_run: bool) -> Result<bool> {
        let dropped = Dropped { dry_run, denied: true, ..self.would_drop(lake, id)? };
        if !dry_run {
            lake.drop_dataset((self.now)(), &self.writer(), id)?;
        }
        self.fact(Event::Dropped(dropped))?;
        Ok(true)
    }

    fn purge_rows(
        &self,
        lake: &Lake,
        manifest: &Manifest,
        dataset_id: u32,
        dataset: String,
        denied: &Denied<'_>,
        dry_run: bool,
    ) -> Result<bool> {
        // Files that a change of lists left half done are cut by another list: then any may hold anything.
        let hash = manifest.suffix_list.as_ref().map(|list| list.hash.as_str());
        let newest = lake.dataset_newest(dataset_id)?;
        let other_list = newest.as_ref().is_some_and(|commit| Some(commit.suffix_list.as_str()) != hash);
        let may = |file: &DataFile| other_list || denied.may_be_in(file);
        self.begins(format!("purge {dataset}"));
        let losses = if dry_run {
            let files = newest.map(|commit| commit.files).unwrap_or_default();
            self.losses(lake, files.iter().filter(|file| may(file)), denied)?
        } else {
            let keep = |record: &UrlRecord| denied.keeps(&record.url);
            let what = Rewrite { keep: &keep, files: Files::Losing(&may), suffix_list: None };
            let report = self.rewrite(lake, dataset_id, &what)?;
            Losses { files: report.files_before, rows: report.rows_before - report.rows_after }
        };
        let writer = (!dry_run).then(|| self.writer());
        let keep = |line: &str| denied.keeps_reject(line);
        let now = (self.now)();
        let rejects = purge_rejects(lake, dataset_id, now, writer.as_deref(), &self.cancel, &keep)?;
        if losses == Losses::default() && rejects == 0 {
            return Ok(false);
        }
        self.fact(Event::Purged { dataset, dataset_id, losses, rejects, dry_run })?;
        Ok(true)
    }

    /// Counts the rows of files that are denied.
    fn losses<'f>(
        &self,
        lake: &Lake,
        files: impl Iterator<Item = &'f DataFile>,
        denied: &Denied<'_>,
    ) -> Result<Losses> {
        let (store, mut losses) = (&**lake.store(), Losses::default());
        for file in files {
            let pages = FilePages::read(store, file)?;
            let mut lost = 0;
            for step in pages.scan(store, Columns::URL, STEP_ROWS)? {
                self.cancel.check()?;
                let rows = step?.rows;
                lost += (0..rows.len()).filter(|i| !denied.keeps(&rows.url(*i))).count() as u64;
            }
            losses.files += u64::from(lost > 0);
            losses.rows += lost;
        }
        Ok(losses)
    }
}

/// What is to become of a dataset's rejects files.
#[derive(Default)]
struct PurgedRejects {
    /// Lines that go.
    lines: u64,
    /// Files that have them.
    old: BTreeSet<String>,
    /// What was written in their place.
    new: BTreeMap<String, RejectsFile>,
}

/// Counts the lines of a dataset's rejects files that `keep` does not want. With a `writer`, which must be new, they go: a file
/// that loses lines is written anew under its name, a commit names the new ones, then the old ones are deleted. Cut in between,
/// the next purge finds them again.
pub fn purge_rejects(
    lake: &Lake,
    dataset_id: u32,
    now: UnixMillis,
    writer: Option<&str>,
    cancel: &Cancel,
    keep: &dyn Fn(&str) -> bool,
) -> Result<u64> {
    let purged = write_without(&**lake.store(), dataset_id, writer, cancel, keep)?;
    if let Some(writer) = writer.filter(|_| !purged.old.is_empty()) {
        lake.commit_dataset(dataset_id, now, writer, |commit| {
            commit.rejects.retain(|path, _| !purged.old.contains(path));
            commit.rejects.extend(purged.new.clone());
            Ok(true)
        })?;
        for path in &purged.old {
            lake.store().delete(path)?;
        }
    }
    Ok(purged.lines)
}

fn write_without(
    store: &dyn Store,
    dataset_id: u32,
    writer: Option<&str>,
    cancel: &Cancel,
    keep: &dyn Fn(&str) -> bool,
) -> Result<PurgedRejects> {
    let mut purged = PurgedRejects::default();
    let keep = |line: &[u8]| keep(&String::from_utf8_lossy(line));
    let dir = layout::rejects_dir(dataset_id);
    for (n, listed) in store.list(&dir)?.into_iter().enumerate() {
        cancel.check()?;
        let (mut stay, mut lost) = (0u64, 0);
        each_line(store, &listed, &mut |line| {
            *if keep(line) { &mut stay } else { &mut lost } += 1;
            Ok(())
        })?;
        purged.lines += lost;
        let Some(writer) = writer.filter(|_| lost > 0) else { continue };
        if stay > 0 {
            let path = layout::rejects(dataset_id, &format!("{writer}-{n}"))?;
            let mut file = HashedUpload::begin(store, &path)?;
            each_line(store, &listed, &mut |line| {
                let kept = if keep(line) { line } else { &[] };
                file.write_all(kept).map_err(|e| trawl_io::Error::io(trawl_io::Op::Write, &path, e).into())
            })?;
            // Nothing is lost with the new one while the old one is there; left behind, its lines would be there twice.
            let (bytes, hash) = file.finish().inspect_err(|_| drop(store.delete(&path)))?;
            purged.new.insert(path, RejectsFile { bytes, hash: format!("{hash:016x}") });
        }
        purged.old.insert(listed.path);
    }
    Ok(purged)
}

/// Whether a rejects file has a line that a purge takes out.
pub(crate) fn has_denied(store: &dyn Store, file: &Listed, denied: &Denied<'_>) -> Result<bool> {
    let mut any = false;
    each_line(store, file, &mut |line| {
        any |= !denied.keeps_reject(&String::from_utf8_lossy(line));
        Ok(())
    })?;
    Ok(any)
}

/// Hands over the lines of a file with their line ends, a part of the file at a time.
fn each_line(store: &dyn Store, file: &Listed, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut at, mut rest) = (0, Vec::new());
    while at < file.len {
        let end = file.len.min(at + STEP_BYTES);
        for bytes in store.get_ranges(&file.path, std::slice::from_ref(&(at..end)))? {
            rest.extend_from_slice(&bytes);
        }
        at = end;
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |last| last + 1);
        for line in rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            each(line)?;
        }
        rest.drain(..whole);
        if rest.len() as u64 > MAX_LINE_BYTES {
            let reason = format!("{}: expected lines of at most {MAX_LINE_BYTES} bytes", file.path);
            return Err(Error::Refused { reason }.into());
        }
    }
    if rest.is_empty() { Ok(()) } else { each(&rest) }
}
