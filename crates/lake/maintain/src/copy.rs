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

use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_index::SegmentMeta;
use trawl_model::UnixMillis;
use trawl_store::{
    Cancel, DatasetCommit, DenyRecord, HashedUpload, Lake, MAX_STATE_BYTES, Manifest, Series, Store, commit_copy,
    deny_record, layout,
};

/// Times a copy begins anew since what it was copying was collected.
const MAX_ROUNDS: u32 = 10;
/// Objects copied at a time.
const AT_ONCE: usize = 8;
/// Bytes of an object that are read at a time.
const STEP: u64 = 8 << 20;

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
    now: UnixMillis,
    writer: &str,
    cancel: &Cancel,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Copied> {
    let source = Lake::open(from.clone())?;
    let mut copied = Copied::default();
    for round in 1.. {
        let manifest = source.current()?;
        match copy_state(&source, &manifest, to, now, writer, cancel, progress, &mut copied) {
            // Collected: there is a newer state.
            Err(error)
                if error.is_not_found() && round < MAX_ROUNDS && source.current()?.sequence > manifest.sequence => {}
            done => return done.map(|()| copied),
        }
    }
    Ok(copied)
}

#[expect(clippy::too_many_arguments, reason = "one call, of one function")]
fn copy_state(
    source: &Lake,
    manifest: &Manifest,
    to: &Arc<dyn Store>,
    now: UnixMillis,
    writer: &str,
    cancel: &Cancel,
    progress: &(dyn Fn(u64, u64) + Sync),
    copied: &mut Copied,
) -> Result<()> {
    let from = source.store();
    let target = match Lake::open(to.clone()) {
        Err(trawl_store::Error::NotALake { .. }) => None,
        target => Some(target?),
    };
    if let Some(target) = &target {
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
    copy_items(&**from, &**to, items, cancel, progress, copied)?;
    for (path, bytes) in commits {
        // Copies of commits come after them, as in the lake itself.
        if !to.get(&path, MAX_STATE_BYTES).is_ok_and(|there| there == bytes) {
            to.put(&path, &bytes)?;
            count(copied, bytes.len());
        }
    }
    let record = deny_record(&**from)?;
    let mut state = Manifest { versions: version.into_iter().collect(), revoked: Vec::new(), ..manifest.clone() };
    copied.version.clone_from(&state.current_version);
    match target {
        Some(target) => {
            target.put_suffix_list(&source.suffix_list(manifest)?)?;
            copied.up_to_date = answers_alike(&*target.current()?) == answers_alike(&state);
            if !copied.up_to_date {
                target.commit(now, writer, |there| {
                    // Versions that the copy had stay as long as its own collector keeps them.
                    let mut versions = there.versions.clone();
                    versions.retain(|v| !state.versions.iter().any(|new| new.version == v.version));
                    versions.extend(state.versions.iter().cloned());
                    let revoked = there.revoked.clone();
                    *there = Manifest { versions, revoked, sequence: there.sequence, ..state.clone() };
                    Ok(())
                })?;
            }
        }
        None => {
            let list = source.suffix_list(manifest)?;
            if let Some(DenyRecord { sequence, .. }) = &record {
                let path = layout::numbered(layout::DENY, *sequence);
                to.put(&path, &from.get(&path, MAX_STATE_BYTES)?)?;
            }
            // The manifest of the copy has the number that the one it is of has.
            let number = manifest.sequence;
            state.sequence = number.saturating_sub(1);
            Lake::begin(to.clone(), now, writer, &list, state, number)?;
            copied.objects += 1;
        }
    }
    Ok(())
}

/// A state without what differs between a lake and its copy.
fn answers_alike(manifest: &Manifest) -> Manifest {
    Manifest {
        sequence: 0,
        written: String::new(),
        writer: String::new(),
        versions: manifest.current().cloned().into_iter().collect(),
        revoked: Vec::new(),
        ..manifest.clone()
    }
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
        let same = manifest.dataset(dataset.id).is_some_and(|own| own.created == dataset.created);
        if !same {
            return Err(Error::Refused(format!(
                "{place} has another lake (its dataset {} is not that of this one): copy to an empty place",
                dataset.id
            )));
        }
    }
    Ok(())
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
    let mut rejects = source.store().list(&layout::rejects_dir(id))?;
    items.extend(rejects.drain(..).map(|object| Item { path: object.path, len: Some(object.len), hash: None }));
    for number in first..=newest.sequence {
        let path = series.path(number);
        let state = match series.get(number)? {
            // One that is lost is put back in the copy of the lake.
            None => commit_copy(&**source.store(), id)?.filter(|copy| copy.number == number),
            state => state,
        };
        let state = match state {
            Some(state) => state,
            // Nobody needs one in the middle.
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
    items: BTreeSet<Item>,
    cancel: &Cancel,
    progress: &(dyn Fn(u64, u64) + Sync),
    copied: &mut Copied,
) -> Result<()> {
    let mut there: BTreeMap<String, u64> = BTreeMap::new();
    for dir in [layout::URLS, layout::DATASETS, "index"] {
        there.extend(to.list(dir)?.into_iter().map(|object| (object.path, object.len)));
    }
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
                        Ok(bytes) => progress(done.fetch_add(bytes, Relaxed) + bytes, total),
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
