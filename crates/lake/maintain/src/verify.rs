//! Checks a whole lake: every file against its checksum, every row against what is said of it.

use crate::event::{Event, Part};
use crate::keeper::parse_list;
use crate::states::{verify_files, verify_states};
use crate::{Keeper, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use trawl_index::SegmentMeta;
use trawl_rows::{DatasetVerified, verify_dataset};
use trawl_store::manifest::SuffixListRef;
use trawl_store::{DataFile, Dataset, DatasetCommit, Error, Lake, Manifest, SegmentRef, Version, layout};
use trawl_url::SuffixList;
use xxhash_rust::xxh3::xxh3_64;

/// How long to wait, and how often, before a fault of manifests and their like is taken for one.
const A_MOMENT: Duration = Duration::from_millis(500);
const LOOKS: u32 = 4;

/// What a verification came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LakeVerified {
    /// Faults found.
    pub faults: u64,
    /// Versions in which something is wrong.
    pub damaged: BTreeSet<String>,
    /// Files of which only names and lengths were checked, since no more was to be fetched.
    pub unread_files: u64,
    /// Their bytes.
    pub unread_bytes: u64,
}

impl Keeper<'_> {
    /// Looks at the lake as `manifest` has it, which need not be the newest one any more; with `index_only` not at Parquet
    /// files. Faults and what was checked are reported. Others may write and collect meanwhile: what no version needs any more
    /// is no fault.
    pub fn verify(&self, lake: &Lake, manifest: &Manifest, index_only: bool) -> Result<LakeVerified> {
        self.begins("verify");
        let states = || {
            let mut found = Vec::new();
            verify_states(lake, manifest, &mut |fault| found.push(fault.to_string())).map(|_| found)
        };
        let mut found = states()?;
        let (verified, lists) = (LakeVerified::default(), BTreeMap::new());
        let mut check = Check { keeper: self, lake, manifest, verified, lists, left: self.max_read_bytes };
        // The index is a tenth of the rows, and no row is found without it: it comes first where not all can be read.
        let index_first = self.max_read_bytes.is_some();
        if index_first {
            check.segments()?;
        }
        if !index_only {
            for dataset in manifest.datasets.iter().filter(|d| !d.dropped) {
                check.dataset(dataset)?;
            }
        }
        if !index_first {
            check.segments()?;
        }
        check.served(index_only)?;
        for _ in 0..LOOKS {
            if found.is_empty() {
                break;
            }
            // Somebody who is at work may have been between a manifest and the record of its deny list: asked for the same
            // manifest, the record has come by then, or a later one.
            (self.wait)(A_MOMENT);
            found = states()?;
        }
        check.faults(&Part::Lake(lake.store().place()), found)?;
        let LakeVerified { unread_files: files, unread_bytes: bytes, .. } = check.verified;
        if let Some(max_read) = self.max_read_bytes.filter(|_| files > 0) {
            self.fact(Event::Unread { files, bytes, max_read })?;
        }
        Ok(check.verified)
    }
}

/// The versions that serve a commit.
fn versions_of(manifest: &Manifest, id: u32, commit: u64) -> impl Iterator<Item = String> {
    let serves = move |version: &&Version| version.commits.get(&id) == Some(&commit);
    manifest.versions.iter().filter(serves).map(|version| version.version.clone())
}

fn path_of(id: u32, commit: u64) -> String {
    layout::numbered(&layout::commits_dir(id), commit)
}

/// What was found in the files of a commit.
#[derive(Default)]
struct Looked {
    faults: Vec<String>,
    checked: Option<DatasetVerified>,
}

/// Files that were looked at, and by which list: one that two commits share is read once.
type Seen = BTreeSet<(String, String)>;

/// A walk through a lake.
struct Check<'a> {
    keeper: &'a Keeper<'a>,
    lake: &'a Lake,
    manifest: &'a Manifest,
    verified: LakeVerified,
    /// Suffix lists by their hashes, or what is wrong with them: most datasets have the same.
    lists: BTreeMap<String, Result<SuffixList, String>>,
    /// Bytes that may still be fetched; `None` if all may.
    left: Option<u64>,
}

/// How often a file is read whole to check it: for its hash, for its pages, for its rows.
const READINGS: u64 = 3;

impl Check<'_> {
    /// Whether a file of these bytes may be read `times` times; one that may not is counted.
    fn affords(&mut self, bytes: u64, times: u64) -> bool {
        let Some(left) = &mut self.left else { return true };
        match left.checked_sub(bytes.saturating_mul(times)) {
            Some(rest) => *left = rest,
            None => {
                self.verified.unread_files += 1;
                self.verified.unread_bytes += bytes;
                return false;
            }
        }
        true
    }

    /// Splits files into those that are read and those of which only the length is checked. Which ones changes from day to
    /// day, so that those who look every day see all of them some day.
    fn affordable(&mut self, files: &mut Vec<DataFile>, times: u64) -> Vec<DataFile> {
        if self.left.is_none() {
            return Vec::new();
        }
        let day = (self.keeper.now)().0.div_euclid(86_400_000);
        let mut order: Vec<_> =
            files.iter().map(|f| (xxh3_64(format!("{day} {}", f.path).as_bytes()), f.bytes, f.path.clone())).collect();
        order.sort_unstable();
        let chosen: BTreeSet<String> =
            order.into_iter().filter(|(_, bytes, _)| self.affords(*bytes, times)).map(|(_, _, path)| path).collect();
        let (read, unread) = files.drain(..).partition(|file| chosen.contains(&file.path));
        *files = read;
        unread
    }

    /// Checks files by name and length alone.
    fn lengths(&self, files: &[DataFile], faults: &mut Vec<String>) -> Result<()> {
        for file in files {
            let fault = match self.lake.store().len(&file.path) {
                Ok(length) if length == file.bytes => continue,
                Ok(length) => format!("{}: expected {} bytes, found {length}", file.path, file.bytes),
                Err(error) if error.is_not_found() => {
                    format!(
                        "{}: expected a file of its dataset, found none: its {} rows are lost",
                        file.path, file.rows
                    )
                }
                Err(error) => return Err(error.into()),
            };
            faults.push(fault);
        }
        Ok(())
    }

    fn faults(&mut self, of: &Part, faults: Vec<String>) -> Result<()> {
        for fault in faults {
            self.verified.faults += 1;
            self.keeper.fact(Event::Fault { of: of.clone(), fault })?;
        }
        Ok(())
    }

    /// Whether somebody may still need a commit, now: a version that is kept, or the dataset as its newest. A collector
    /// that took its files first made sure that no other caller does.
    fn is_needed(&self, id: u32, commit: u64) -> Result<bool> {
        let now = self.lake.current()?;
        if now.dataset(id).is_none_or(|dataset| dataset.dropped) {
            return Ok(false);
        }
        Ok(versions_of(&now, id, commit).next().is_some()
            || match self.lake.dataset_newest(id) {
                Err(Error::Lost { newest, .. }) => newest == commit,
                newest => newest?.is_some_and(|newest| newest.sequence == commit),
            })
    }

    /// Whether a commit brings what no version shows yet: a note does not.
    fn waits(&self, newest: &DatasetCommit) -> Result<bool> {
        let id = newest.dataset_id;
        let live = self.lake.current()?.live_commit(id);
        if live == newest.sequence {
            return Ok(false);
        }
        let shown = self.lake.dataset_commit(id, live).ok().flatten();
        Ok(shown.map_or(!newest.files.is_empty(), |shown| shown.files != newest.files))
    }

    fn dataset(&mut self, dataset: &Dataset) -> Result<()> {
        let (id, name) = (dataset.id, &dataset.info.name);
        self.keeper.at(format!("dataset {name}"))?;
        let mut seen = Seen::new();
        let served = self.manifest.live_commit(id);
        let mut before = None;
        let last = loop {
            let newest = match self.lake.dataset_newest(id) {
                Ok(Some(newest)) => newest,
                // Older versions may serve what it had.
                Ok(None) => break 0,
                Err(error) => {
                    // Nothing is known of what it serves.
                    self.verified.damaged.insert(self.manifest.current_version.clone());
                    return self.faults(&Part::Dataset(name.clone()), vec![error.to_string()]);
                }
            };
            let last = newest.sequence;
            if before == Some(last) {
                // It is not needed, and nothing came after it: the dataset was dropped meanwhile.
                return Ok(());
            }
            let looked = self.rows(&newest, &mut seen);
            if !looked.faults.is_empty() && !self.is_needed(id, last)? {
                // Replaced while it was read: its successor counts, with the files that it kept.
                seen.clear();
                before = Some(last);
                continue;
            }
            if !looked.faults.is_empty() {
                // Files that it shares with commits before are not looked at again.
                self.verified.damaged.extend(versions_of(self.manifest, id, last));
                self.verified.damaged.insert(self.manifest.current_version.clone());
            }
            let waits = served != last && self.waits(&newest)?;
            self.tell_dataset(name, Some(&newest), waits, looked)?;
            break last;
        };
        self.older(dataset, last, served, &mut seen)
    }

    /// The commits that kept versions serve, but for `last`.
    fn older(&mut self, dataset: &Dataset, last: u64, served: u64, seen: &mut Seen) -> Result<()> {
        let id = dataset.id;
        let mut bad = BTreeSet::new();
        let kept: BTreeSet<u64> = self.manifest.versions.iter().filter_map(|v| v.commits.get(&id).copied()).collect();
        for number in kept.into_iter().rev().filter(|number| *number != last) {
            let mut found = Looked::default();
            let commit = self.lake.dataset_commit(id, number);
            match &commit {
                Ok(Some(commit)) if number == served => found = self.rows(commit, seen),
                // Older versions, which cursors may still use. Their suffix list may be gone, their hashes are not.
                Ok(Some(commit)) => {
                    let list = &commit.suffix_list;
                    let unseen = commit.files.iter().filter(|f| seen.insert((f.path.clone(), list.clone())));
                    let mut unseen: Vec<DataFile> = unseen.cloned().collect();
                    let unread = self.affordable(&mut unseen, 1);
                    let faults = &mut found.faults;
                    self.lengths(&unread, faults)?;
                    let done = verify_files(&**self.lake.store(), &unseen, &mut |fault| {
                        faults.push(fault.to_string());
                        bad.insert(fault.file);
                    });
                    faults.extend(done.err().map(|error| error.to_string()));
                }
                Ok(None) => {
                    found.faults = vec![format!("{}: a kept version serves it, but it is gone", path_of(id, number))];
                }
                Err(error) => found.faults = vec![error.to_string()],
            }
            if !found.faults.is_empty() && !self.is_needed(id, number)? {
                seen.clear();
                continue;
            }
            let commit = commit.ok().flatten();
            // A file that a later commit has too was looked at there.
            let shares_bad = |commit: &DatasetCommit| commit.files.iter().any(|file| bad.contains(&file.path));
            if !found.faults.is_empty() || commit.as_ref().is_some_and(shares_bad) {
                self.verified.damaged.extend(versions_of(self.manifest, id, number));
            }
            self.tell_dataset(&dataset.info.name, commit.as_ref(), false, found)?;
        }
        Ok(())
    }

    /// Reads the files of a commit that were not `seen` yet, row by row, under the list the commit names.
    fn rows(&mut self, commit: &DatasetCommit, seen: &mut Seen) -> Looked {
        let list = &commit.suffix_list;
        let mut unseen = commit.clone();
        unseen.files.retain(|file| seen.insert((file.path.clone(), list.clone())));
        let unread = self.affordable(&mut unseen.files, READINGS);
        let mut faults = Vec::new();
        if let Err(error) = self.lengths(&unread, &mut faults) {
            faults.push(error.to_string());
        }
        let suffixes = match unseen.files.is_empty() {
            true => Ok(SuffixList::builtin()),
            false => match self.lists.entry(list.clone()) {
                Entry::Occupied(known) => known.into_mut().as_ref(),
                Entry::Vacant(new) => {
                    new.insert(suffixes_of(self.lake, list).map_err(|error| error.to_string())).as_ref()
                }
            },
        };
        let suffixes = match suffixes {
            Ok(suffixes) => suffixes,
            Err(error) => {
                let path = path_of(commit.dataset_id, commit.sequence);
                faults.push(format!("{path}: no list to check its rows by: {error}"));
                return Looked { faults, checked: None };
            }
        };
        let checked = verify_dataset(&**self.lake.store(), &unseen, suffixes, &mut |fault| {
            faults.push(fault.to_string());
        });
        faults.extend(checked.as_ref().err().map(ToString::to_string));
        Looked { faults, checked: checked.ok() }
    }

    fn tell_dataset(&mut self, name: &str, commit: Option<&DatasetCommit>, waits: bool, looked: Looked) -> Result<()> {
        self.faults(&Part::Dataset(name.to_owned()), looked.faults)?;
        let (Some(checked), Some(commit)) = (&looked.checked, commit) else { return Ok(()) };
        self.keeper.fact(Event::Dataset {
            dataset: name.to_owned(),
            dataset_id: commit.dataset_id,
            commit: commit.sequence,
            waits,
            files: checked.files,
            rows: commit.rows,
            bytes: commit.bytes,
            faults: checked.faults,
        })
    }

    fn segments(&mut self) -> Result<()> {
        let manifest = self.manifest;
        let mut seen = BTreeSet::new();
        let segments = manifest.versions.iter().rev().flat_map(|version| &version.segments);
        for segment in segments.filter(|segment| seen.insert(&segment.id)) {
            self.keeper.at(format!("segment {}", segment.id))?;
            if !self.affords(segment.bytes, 1) {
                let found = self.segment_lengths(segment);
                self.faults(&Part::Segment(segment.id.clone()), found)?;
                continue;
            }
            let Some((found, checked)) = self.segment(segment)? else { continue };
            if !found.is_empty() {
                let has = |version: &&Version| version.segments.iter().any(|s| s.id == segment.id);
                let versions = manifest.versions.iter().filter(has).map(|version| version.version.clone());
                self.verified.damaged.extend(versions);
            }
            self.faults(&Part::Segment(segment.id.clone()), found)?;
            if let Some(checked) = checked {
                self.keeper.fact(Event::Segment { segment: segment.id.clone(), checked })?;
            }
        }
        Ok(())
    }

    /// Files of a segment that are gone or of another length.
    fn segment_lengths(&self, segment: &SegmentRef) -> Vec<String> {
        let store = &**self.lake.store();
        let meta = match SegmentMeta::read(store, segment) {
            Ok(meta) => meta,
            Err(error) => return vec![error.to_string()],
        };
        let mut faults = Vec::new();
        for (name, file) in &meta.files {
            let length = layout::segment_file(&segment.id, name).and_then(|path| store.len(&path));
            match length {
                Ok(length) if length == file.bytes => {}
                Ok(length) => {
                    faults.push(format!("index/{}/{name}: expected {} bytes, found {length}", segment.id, file.bytes))
                }
                Err(error) => faults.push(error.to_string()),
            }
        }
        faults
    }

    /// Faults of a segment; `None` if no version has it any more.
    fn segment(&self, segment: &SegmentRef) -> Result<Option<(Vec<String>, Option<trawl_index::Verified>)>> {
        let mut reference = segment.clone();
        loop {
            let mut found = Vec::new();
            let fault = &mut |fault: trawl_index::Error| found.push(fault.to_string());
            let checked = trawl_index::verify_segment(self.lake.store(), &reference, fault);
            found.extend(checked.as_ref().err().map(ToString::to_string));
            if found.is_empty() {
                return Ok(Some((found, checked.ok())));
            }
            let now = self.lake.current()?;
            let mut segments = now.versions.iter().rev().flat_map(|version| &version.segments);
            match segments.find(|other| other.id == reference.id) {
                None => return Ok(None),
                // It answers for fewer datasets than it did, whose files may be gone.
                Some(other) if other.masked != reference.masked => reference = other.clone(),
                Some(_) => return Ok(Some((found, checked.ok()))),
            }
        }
    }

    /// Whether the index of the current version answers from the files of the commits that it serves: with `alone`, also
    /// whether these are there, which nobody else has looked at then.
    fn served(&mut self, alone: bool) -> Result<()> {
        let manifest = self.manifest;
        let Some(version) = manifest.current() else { return Ok(()) };
        let mut indexed: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for segment in &version.segments {
            // One that cannot be read has been reported, or is no longer needed.
            let Ok(files) = trawl_index::indexed_files(self.lake.store(), segment) else { return Ok(()) };
            for (id, path) in files {
                indexed.entry(id).or_default().insert(path);
            }
        }
        for (id, number) in version.commits.iter() {
            let path = path_of(*id, *number);
            let found = match self.lake.dataset_commit(*id, *number) {
                Ok(Some(commit)) => {
                    let named: BTreeSet<String> = commit.files.into_iter().map(|file| file.path).collect();
                    let indexed = indexed.remove(id).unwrap_or_default();
                    let (more, less) = (indexed.difference(&named).count(), named.difference(&indexed).count());
                    let what =
                        format!("{path}: the index answers from {more} files that it does not name, and lacks {less}");
                    (more + less > 0).then_some(what)
                }
                Ok(None) if alone && self.is_needed(*id, *number)? => {
                    Some(format!("{path}: it is served, but it is gone"))
                }
                Err(error) if alone => Some(error.to_string()),
                _ => None,
            };
            if let Some(found) = found {
                self.verified.damaged.insert(version.version.clone());
                let name = manifest.dataset(*id).map(|dataset| dataset.info.name.clone()).unwrap_or_default();
                self.faults(&Part::Dataset(name), vec![found])?;
            }
        }
        Ok(())
    }
}

fn suffixes_of(lake: &Lake, hash: &str) -> Result<SuffixList> {
    let list = SuffixListRef { path: layout::suffix_list(hash)?, hash: hash.to_owned() };
    parse_list(&lake.stored_suffix_list(&list)?)
}
