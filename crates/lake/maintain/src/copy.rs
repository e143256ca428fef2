//! A copy of a lake in another place: a backup, a move, or a backup put back.
//!
//! ```text
//! newest state ─► Parquet files, index segments, rejects ─► dataset commits ─► deny list ─► manifest
//!      ▲               │ a file is gone: the lake went on and was collected
//!      └───────────────┘
//! ```
//! The manifest comes last and names one version that the lake had: whatever writers do meanwhile, a copy opens as a state
//! that existed. Names of files are never used again, so what is there under its name and length is not copied again; what
//! is copied is compared with the hash that the lake has of it.
//!
//! A copy that somebody wrote to is refused as a target, since what they wrote would be lost. Its manifest has a mark of what
//! it answered when it was copied, which every later manifest of it repeats; and its commits are those of the lake.

use crate::keeper::suffixes;
use crate::purge::has_denied;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_index::SegmentMeta;
use trawl_model::UnixMillis;
use trawl_store::denial::Denied;
use trawl_store::{
    Cancel, DatasetCommit, HashedUpload, Heartbeat, Lake, Listed, MAX_STATE_BYTES, Manifest, Series, Store,
    commit_copy, layout, suffix_list_hash,
};

/// Times a copy begins anew since what it was copying was collected.
const MAX_ROUNDS: u32 = 10;
/// Objects copied at a time.
const AT_ONCE: usize = 8;
/// Bytes of an object that are read at a time.
const STEP: u64 = 8 << 20;
/// What its heartbeat says.
pub(crate) const ACT: &str = "copy";
/// Milliseconds between two signs of life in the target.
const BEAT_EVERY_MS: i64 = 20_000;

/// What a copy did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// The version that the copy answers from; empty if none was published.
    pub version: String,
    /// Objects copied.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were there already.
    pub unchanged: u64,
    /// Whether the copy had the same state before.
    pub up_to_date: bool,
}

/// An object to copy: its length and hash, where the lake knows them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    path: String,
    len: Option<u64>,
    hash: Option<String>,
}

/// Copies the newest state of the lake in `from` to `to`, which is empty or has an earlier copy. `writer` must be new;
/// `progress` hears of bytes done and of all bytes.
pub fn copy(
    from: &Arc<dyn Store>,
    to: &Arc<dyn Store>,
    clock: &(dyn Fn() -> UnixMillis + Sync),
    writer: &str,
    cancel: &Cancel,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Copied> {
    let source = Lake::open(from.clone())?;
    let target = match Lake::open(to.clone()) {
        Err(trawl_store::Error::NotALake { .. }) => None,
        target => Some(target?),
    };
    if let Some(target) = &target {
        refuse_another(target, &*source.current()?)?;
    }
    // The target's collector must not take what no manifest there names yet.
    let beaten = Mutex::new(clock());
    let beat = |beat: UnixMillis| match &target {
        Some(target) => {
            let prefixes = [layout::URLS, layout::DATASETS, "index"].map(|dir| format!("{dir}/")).into();
            target.beat(&Heartbeat { writer: writer.to_owned(), act: ACT.to_owned(), beat, prefixes })
        }
        None => Ok(()),
    };
    let progress = |done: u64, total: u64| {
        let (now, mut last) = (clock(), beaten.lock().unwrap_or_else(PoisonError::into_inner));
        if now.0.saturating_sub(last.0) >= BEAT_EVERY_MS {
            *last = now;
            // A missed one is no reason to stop: the commit finds out whether a collector gave this writer up.
            let _ = beat(now);
        }
        drop(last);
        progress(done, total);
    };
    beat(clock())?;
    let work = Work { source: &source, target: target.as_ref(), to, clock, writer, cancel, progress: &progress };
    let copied = work.copy();
    let ended = target.as_ref().map_or(Ok(()), |target| target.end_beat(writer));
    let copied = copied?;
    ended?;
    Ok(copied)
}

/// A copy at work.
struct Work<'a> {
    source: &'a Lake,
    /// The earlier copy, if there is one.
    target: Option<&'a Lake>,
    to: &'a Arc<dyn Store>,
    clock: &'a (dyn Fn() -> UnixMillis + Sync),
    writer: &'a str,
    cancel: &'a Cancel,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Work<'_> {
    fn copy(&self) -> Result<Copied> {
        let mut copied = Copied::default();
        for round in 1.. {
            let manifest = self.source.current()?;
            let is_past = || Ok::<_, Error>(self.source.current()?.sequence > manifest.sequence);
            match self.state(&manifest, &mut copied) {
                // Collected: there is a newer state.
                Err(error) if error.is_not_found() && round < MAX_ROUNDS && is_past()? => {}
                done => return done.map(|()| copied),
            }
        }
        Ok(copied)
    }

    fn state(&self, manifest: &Manifest, copied: &mut Copied) -> Result<()> {
        let (source, to) = (self.source, &**self.to);
        let from = source.store();
        if let Some(target) = self.target {
            refuse_another(target, manifest)?;
        }
        let version = manifest.current().cloned();
        let (mut items, mut commits) = (BTreeSet::new(), Vec::new());
        for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
            let served = manifest.live_commit(dataset.id);
            collect_dataset(source, dataset.id, served, &mut items, &mut commits)?;
        }
        for segment in version.iter().flat_map(|version| &version.segments) {
            let meta = SegmentMeta::read(&**from, segment)?;
            for (name, file) in &meta.files {
                let path = layout::segment_file(&segment.id, name)?;
                items.insert(Item { path, len: Some(file.bytes), hash: Some(file.hash.clone()) });
            }
            let path = layout::segment_file(&segment.id, "segment.json")?;
            items.insert(Item { path, len: None, hash: None });
        }
        let list = manifest.suffix_list.iter();
        items.extend(list.map(|list| Item { path: list.path.clone(), len: None, hash: Some(list.hash.clone()) }));
        let mut there: BTreeMap<String, u64> = BTreeMap::new();
        for dir in [layout::URLS, layout::DATASETS, "index"] {
            there.extend(to.list(dir)?.into_iter().map(|object| (object.path, object.len)));
        }
        let commits = new_commits(&**from, to, manifest, &there, commits)?;
        let wanted: BTreeSet<&str> = items.iter().map(|item| item.path.as_str()).collect();
        let left = there.iter().filter(|(path, _)| is_rejects(path) && !wanted.contains(path.as_str()));
        let left: Vec<Listed> = left.map(|(path, len)| Listed { path: path.clone(), len: *len }).collect();
        copy_items(&**from, to, &there, items, self.cancel, self.progress, copied)?;
        for (path, bytes) in commits {
            // Copies of commits come after them, as in the lake itself.
            to.put(&path, &bytes)?;
            count(copied, bytes.len());
        }
        let mut state = Manifest { versions: version.into_iter().collect(), revoked: Vec::new(), ..manifest.clone() };
        state.copied = mark_of(&state);
        copied.version.clone_from(&state.current_version);
        let list = source.suffix_list(manifest)?;
        let Some(target) = self.target else {
            // The manifest of the copy has the number that the one it is of has.
            let number = manifest.sequence;
            state.sequence = number.saturating_sub(1);
            let begun = Lake::begin(self.to.clone(), (self.clock)(), self.writer, &list, state, number)?;
            // Writes the record of the deny list. That of the lake may be of a later manifest by now.
            begun.commit((self.clock)(), self.writer, |_| Ok(()))?;
            copied.objects += 1;
            return self.purge_rejects(manifest, left);
        };
        target.put_suffix_list(&list)?;
        copied.up_to_date = answers_alike(&*target.current()?) == answers_alike(&state);
        target.commit((self.clock)(), self.writer, |there| {
            // Somebody may have written to it since it was looked at.
            refuse_written(target, there, &state)?;
            if copied.up_to_date {
                there.copied.clone_from(&state.copied);
                return Ok(());
            }
            // Versions that the copy had stay as long as its own collector keeps them.
            let mut versions = there.versions.clone();
            versions.retain(|v| !state.versions.iter().any(|new| new.version == v.version));
            versions.extend(state.versions.iter().cloned());
            let revoked = there.revoked.clone();
            *there = Manifest { versions, revoked, sequence: there.sequence, ..state.clone() };
            Ok(())
        })?;
        self.purge_rejects(manifest, left)
    }

    /// Takes out of the copy what a purge took out of the lake: a collector keeps all rejected items of a dataset, and who
    /// purges a copy writes to it. What a commit of the lake still names was lost there, and stays here. So does what names
    /// nothing denied: a commit that was found again from the index knows no more than what is left. And what a dropped
    /// dataset had: the commit of the copy names it until the collector of the copy takes it, as it takes the rows.
    fn purge_rejects(&self, manifest: &Manifest, left: Vec<Listed>) -> Result<()> {
        if left.is_empty() {
            return Ok(());
        }
        let suffixes = suffixes(self.source, manifest)?;
        let denied = Denied::new(manifest, &suffixes);
        for file in left {
            let newest = layout::dataset_of(&file.path).map(|id| self.source.dataset_newest(id)).transpose()?.flatten();
            let is_purged =
                newest.is_some_and(|newest| !newest.is_dropped() && !newest.rejects.contains_key(&file.path));
            // No name is used again: one that came since it was looked for is there.
            let is_gone = is_purged && !self.source.store().exists(&file.path)?;
            if is_gone && has_denied(&**self.to, &file, &denied)? {
                self.to.delete(&file.path)?;
            }
        }
        Ok(())
    }
}

/// Whether an object has rejected items of an ingest.
fn is_rejects(path: &str) -> bool {
    let dir = layout::dataset_of(path).map(layout::rejects_dir);
    dir.is_some_and(|dir| path.starts_with(&dir)) && layout::is_ours(path)
}

/// A state without what differs between a lake and its copy.
fn answers_alike(manifest: &Manifest) -> Manifest {
    Manifest {
        sequence: 0,
        written: String::new(),
        writer: String::new(),
        copied: String::new(),
        versions: manifest.current().cloned().into_iter().collect(),
        revoked: Vec::new(),
        ..manifest.clone()
    }
}

/// By what it is known whether a state still answers what it did.
fn mark_of(manifest: &Manifest) -> String {
    suffix_list_hash(&answers_alike(manifest).to_json())
}

fn count(copied: &mut Copied, bytes: usize) {
    copied.objects += 1;
    copied.bytes += bytes as u64;
}

/// Refuses a place that has another lake, or a copy that was written to.
fn refuse_another(target: &Lake, manifest: &Manifest) -> Result<()> {
    let there = target.current()?;
    let place = target.store().place();
    if there.lake_id != manifest.lake_id {
        return Err(Error::Refused(format!("{place} has another lake: copy to an empty place")));
    }
    for dataset in &there.datasets {
        let same = match manifest.dataset(dataset.id) {
            Some(own) => own.created == dataset.created,
            // Its first ingest failed after it was copied, so that the lake took it back: the copy has no more of it than its name.
            None if !there.lake_id.is_empty() => {
                target.dataset_newest(dataset.id)?.is_none_or(|newest| newest.files.is_empty())
            }
            None => false,
        };
        if !same {
            return Err(Error::Refused(format!(
                "{place} has a dataset {} that is not in the lake to be copied: it is another lake, or it has been written to \
                 since it was copied; copy to an empty place",
                dataset.id
            )));
        }
    }
    Ok(refuse_written(target, &there, manifest)?)
}

/// Refuses a place whose state is not the one that a copy left there, unless it is the one to be copied.
fn refuse_written(target: &Lake, there: &Manifest, manifest: &Manifest) -> trawl_store::Result<()> {
    if there.copied == mark_of(there) || answers_alike(there) == answers_alike(manifest) {
        return Ok(());
    }
    Err(written(&target.store().place()))
}

fn written(place: &str) -> trawl_store::Error {
    let reason = format!(
        "{place} has been written to since it was copied, or is not a copy, and what it has would be lost: copy to an \
         empty place"
    );
    trawl_store::Error::Refused { reason }
}

/// Those of the commits that are not in the target yet. If it has others, somebody wrote to it.
fn new_commits(
    from: &dyn Store,
    to: &dyn Store,
    manifest: &Manifest,
    there: &BTreeMap<String, u64>,
    commits: Vec<(String, bytes::Bytes)>,
) -> Result<Vec<(String, bytes::Bytes)>> {
    let get = |store: &dyn Store, path: &str| match store.get(path, MAX_STATE_BYTES) {
        Err(error) if error.is_not_found() => Ok(None),
        found => found.map(Some),
    };
    // A damaged one is written again.
    let is_commit = |path: &str, bytes: &[u8]| DatasetCommit::parse(path, bytes).is_ok();
    let (mut new, mut last) = (Vec::new(), BTreeMap::new());
    for (path, bytes) in commits {
        let number = layout::number_of(&path);
        if let (Some(id), Some(number)) = (layout::dataset_of(&path), number) {
            last.insert(id, number);
        }
        let found = if there.contains_key(&path) { get(to, &path)? } else { None };
        match found {
            Some(found) if found == bytes => continue,
            Some(found) if number.is_some() && is_commit(&path, &found) => return Err(written(&to.place()).into()),
            _ => new.push((path, bytes)),
        }
    }
    // The newest of each dataset: later than all of the lake, or one that the lake has gone past.
    let numbered = there.keys().filter_map(|path| Some((layout::dataset_of(path)?, layout::number_of(path)?, path)));
    let newest: BTreeMap<u32, (u64, &String)> = numbered.map(|(id, number, path)| (id, (number, path))).collect();
    for (id, (number, path)) in newest {
        let last = last.get(&id).copied();
        if last == Some(number) {
            continue;
        }
        let own = get(to, path)?.filter(|own| is_commit(path, own));
        // A collector of the copy notes in a dataset that the lake dropped it: nothing can be lost with that.
        let notes_drop = |own: &bytes::Bytes| DatasetCommit::parse(path, own).is_ok_and(|commit| commit.is_dropped());
        if manifest.dataset(id).is_some_and(|dataset| dataset.dropped) && own.as_ref().is_some_and(notes_drop) {
            continue;
        }
        let theirs = get(from, path)?;
        if own.is_some() && (last.is_some_and(|last| number > last) || theirs.is_some() && theirs != own) {
            return Err(written(&to.place()).into());
        }
    }
    Ok(new)
}

/// The commits of a dataset from the one that is served to the newest, and their files.
fn collect_dataset(
    source: &Lake,
    id: u32,
    served: u64,
    items: &mut BTreeSet<Item>,
    commits: &mut Vec<(String, bytes::Bytes)>,
) -> Result<()> {
    let series = Series::of_dataset(&**source.store(), id);
    let Some(newest) = source.dataset_newest(id)? else { return Ok(()) };
    let first = if served == 0 { newest.sequence } else { served };
    for object in source.store().list(&layout::rejects_dir(id))? {
        let hash = newest.rejects.get(&object.path).map(|file| file.hash.clone());
        items.insert(Item { path: object.path, len: Some(object.len), hash });
    }
    for number in first..=newest.sequence {
        let path = series.path(number);
        let state = match series.get(number)? {
            // One that is lost is put back in the copy of the lake.
            None => commit_copy(&**source.store(), id)?.filter(|copy| copy.number == number),
            state => state,
        };
        let state = match state {
            Some(state) => state,
            // One in the middle is not needed.
            None if number != first && number != newest.sequence => continue,
            None => return Err(trawl_store::Error::NotFound { path }.into()),
        };
        let commit = DatasetCommit::parse(&path, &state.bytes)?;
        // Between the two only their numbers matter, which leave no gap.
        if number == first || number == newest.sequence {
            let file = |f: trawl_store::DataFile| Item { path: f.path, len: Some(f.bytes), hash: Some(f.hash) };
            items.extend(commit.files.into_iter().map(file));
            let list = layout::suffix_list(&commit.suffix_list).ok().filter(|_| !commit.suffix_list.is_empty());
            items.extend(list.map(|path| Item { path, len: None, hash: Some(commit.suffix_list.clone()) }));
        }
        if number == newest.sequence {
            commits.push((path, state.bytes.clone()));
            commits.push((layout::commit_copy(id), state.bytes));
        } else {
            commits.push((path, state.bytes));
        }
    }
    Ok(())
}

fn copy_items(
    from: &dyn Store,
    to: &dyn Store,
    there: &BTreeMap<String, u64>,
    items: BTreeSet<Item>,
    cancel: &Cancel,
    progress: &(dyn Fn(u64, u64) + Sync),
    copied: &mut Copied,
) -> Result<()> {
    // One that has no known length is short, and copied again.
    let (same, new): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.len.is_some() && there.get(&item.path).copied() == item.len);
    copied.unchanged += same.len() as u64;
    let total: u64 = new.iter().filter_map(|item| item.len).sum();
    let (done, next) = (AtomicU64::new(0), Mutex::new(new.iter()));
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(new.len()) {
            scope.spawn(|| {
                loop {
                    let item = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let stop = failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                    let (Some(item), false) = (item, stop) else { return };
                    let moved = cancel.check().map_err(Error::from).and_then(|()| copy_object(from, to, item));
                    match moved {
                        Ok(bytes) => {
                            // Of small objects no length is known before.
                            let done = done.fetch_add(bytes, Relaxed) + bytes;
                            progress(done, total.max(done));
                        }
                        Err(error) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    copied.objects += new.len() as u64;
    copied.bytes += done.into_inner();
    Ok(())
}

/// Copies one object; what is not what the lake says of it is not copied.
fn copy_object(from: &dyn Store, to: &dyn Store, item: &Item) -> Result<u64> {
    let path = &item.path;
    let len = match item.len {
        Some(len) => len,
        None => from.len(path)?,
    };
    let mut upload = HashedUpload::begin(to, path)?;
    let mut at = 0;
    while at < len {
        let end = len.min(at + STEP);
        for bytes in from.get_ranges(path, std::slice::from_ref(&(at..end)))? {
            upload.write_all(&bytes).map_err(|error| {
                Error::from(trawl_store::Error::from(trawl_io::Error::io(
                    trawl_io::Op::Write,
                    std::path::Path::new(path),
                    error,
                )))
            })?;
        }
        at = end;
    }
    let found = format!("{:016x}", upload.hash());
    if let Some(hash) = item.hash.as_ref().filter(|hash| **hash != found) {
        let (expected, found) = ("the bytes whose hash the lake has", format!("hash {found} instead of {hash}"));
        return Err(trawl_store::Error::Corrupt { path: path.clone(), offset: 0, expected, found }.into());
    }
    upload.finish()?;
    Ok(len)
}
