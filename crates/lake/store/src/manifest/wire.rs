//! How the manifest of a large lake is written: what it changes since a checkpoint (format 4).
//!
//! ```text
//! index/checkpoints/0000001000.json.zst    the whole state 1000
//! index/manifests/0000001007.json          state 1007: what differs from state 1000
//! ```
//! A whole manifest names every dataset and repeats what every kept version serves: written at each commit, a lake of two
//! thousand datasets took gigabytes. A relative one costs what changed since its checkpoint, which is one of a few dozen
//! commits ago. Both kinds of file have the same shape; a checkpoint has no base.
//!
//! Each version is described by its difference to the one before: which of its segments stay, from the first on, and which datasets are served
//! from another commit. The first of a relative manifest goes on from the last one of its base.

use super::{Dataset, Deny, Manifest, SeedFiles, SegmentRef, SuffixListRef, Version, json_error};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The format number of relative manifests and checkpoints.
pub const RELATIVE_FORMAT: u32 = 4;

/// The checkpoint that a relative manifest differs from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The number of its state.
    pub sequence: u64,
    /// xxh3_64 of its text, 16 hex digits.
    pub hash: String,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A deny list too long to be repeated, as an object of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyObject {
    /// Path inside the lake.
    pub path: String,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
}

/// A deny list as a manifest of format 4 has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum WireDeny {
    Object(DenyObject),
    List(Vec<Deny>),
}

/// The JSON of format 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wire {
    pub(crate) format: u32,
    pub(crate) sequence: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    lake_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    written: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    writer: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    copied: String,
    /// None: this is a checkpoint, and differs from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Base>,
    current_version: String,
    /// Versions that the base does not have.
    versions: Vec<WireVersion>,
    /// Versions of the base that are no longer kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forgotten: Vec<String>,
    /// Segments that the base does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<WireSegment>,
    /// Datasets that the base does not have, or of which it says something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    datasets: Vec<Arc<Dataset>>,
    /// Datasets of the base that are no longer registered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawn: Vec<u32>,
    next_dataset_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suffix_list: Option<SuffixListRef>,
    /// The deny list, if it is not that of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deny: Option<WireDeny>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    revoked: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WireVersion {
    version: String,
    /// The seed's keys, for those who read no more than them.
    #[serde(flatten)]
    files: Option<SeedFiles>,
    /// Segments it has in common with the version before, from the first on.
    #[serde(default, skip_serializing_if = "is_zero")]
    shared: usize,
    /// Its other segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    segments: Vec<WireUse>,
    /// Datasets served from another commit than in the version before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    commits: BTreeMap<u32, u64>,
    /// Datasets that the version before served and this one does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unserved: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WireUse {
    id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    masked: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WireSegment {
    #[serde(flatten)]
    segment: SegmentRef,
    /// Its datasets: `1-40,43`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    dataset_ids: String,
    /// A segment whose files have the same keys and names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files_as: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Rising numbers as text: `1-3,7`.
fn runs(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(first) = numbers.get(at).copied() {
        let mut last = first;
        while numbers.get(at + 1).copied() == last.checked_add(1) && numbers.get(at + 1).is_some() {
            at += 1;
            last += 1;
        }
        at += 1;
        let comma = if out.is_empty() { "" } else { "," };
        out += &if first == last { format!("{comma}{first}") } else { format!("{comma}{first}-{last}") };
    }
    out
}

fn numbers(runs: &str) -> Option<Vec<u32>> {
    let mut out: Vec<u32> = Vec::new();
    for run in runs.split(',').filter(|run| !run.is_empty()) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        // Numbers are ids that a manifest has given out, and rise: a text of few bytes cannot ask for billions.
        if first > last || out.last().is_some_and(|before| *before >= first) || last - first > 50_000_000 {
            return None;
        }
        out.extend(first..=last);
    }
    Some(out)
}

/// Names of a segment's files without its directory.
fn names(segment: &SegmentRef) -> Option<BTreeMap<&str, &str>> {
    let dir = format!("index/{}/", segment.id);
    segment.files.iter().map(|(key, path)| Some((key.as_str(), path.strip_prefix(&dir)?))).collect()
}

impl Manifest {
    /// What differs from `base`; all, without one.
    pub(crate) fn to_wire(&self, base: Option<(&Manifest, &Base)>) -> Wire {
        let from = base.map(|(manifest, _)| manifest);
        let known: BTreeMap<&str, &SegmentRef> =
            from.into_iter().flat_map(|m| &m.versions).flat_map(|v| &v.segments).map(|s| (s.id.as_str(), s)).collect();
        let mut model = known.values().next_back().copied();
        let mut described = BTreeSet::new();
        let mut segments = Vec::new();
        for segment in self.versions.iter().flat_map(|version| &version.segments) {
            if known.contains_key(segment.id.as_str()) || !described.insert(&segment.id) {
                continue;
            }
            let like = model.filter(|model| names(model).is_some() && names(model) == names(segment));
            model = model.or(Some(segment));
            let mut plain = SegmentRef { masked: Vec::new(), datasets: Vec::new(), ..segment.clone() };
            if like.is_some() {
                plain.files.clear();
            }
            let files_as = like.map(|like| like.id.clone());
            segments.push(WireSegment { segment: plain, dataset_ids: runs(&segment.datasets), files_as });
        }
        let theirs: BTreeSet<&str> = from.into_iter().flat_map(|m| &m.versions).map(|v| v.version.as_str()).collect();
        let ours: BTreeSet<&str> = self.versions.iter().map(|v| v.version.as_str()).collect();
        let nothing = Version::default();
        let mut before = from.and_then(|m| m.versions.last()).unwrap_or(&nothing);
        let mut versions = Vec::new();
        for version in self.versions.iter().filter(|v| !theirs.contains(v.version.as_str())) {
            // The current one is written whole, for people who read the file.
            let whole = version.version == self.current_version;
            versions.push(WireVersion::new(before, version, whole));
            before = version;
        }
        let mut datasets = Vec::new();
        for dataset in &self.datasets {
            if from.and_then(|m| m.dataset_arc(dataset.id)) != Some(dataset) {
                datasets.push(dataset.clone());
            }
        }
        let gone = |dataset: &&Arc<Dataset>| self.dataset(dataset.id).is_none();
        let deny = from.is_none_or(|m| m.deny != self.deny).then(|| WireDeny::List(self.deny.clone()));
        Wire {
            format: RELATIVE_FORMAT,
            sequence: self.sequence,
            lake_id: self.lake_id.clone(),
            written: self.written.clone(),
            writer: self.writer.clone(),
            copied: self.copied.clone(),
            base: base.map(|(_, base)| base.clone()),
            current_version: self.current_version.clone(),
            versions,
            forgotten: theirs.iter().filter(|name| !ours.contains(*name)).map(|name| (*name).to_owned()).collect(),
            segments,
            datasets,
            withdrawn: from.into_iter().flat_map(|m| &m.datasets).filter(gone).map(|d| d.id).collect(),
            next_dataset_id: self.next_dataset_id,
            suffix_list: self.suffix_list.clone(),
            deny,
            revoked: self.revoked.clone(),
        }
    }

    /// The state that `wire` describes, over its base. `deny` is its deny list, if it has one of its own.
    pub(crate) fn from_wire(path: &str, wire: Wire, base: Option<&Manifest>, deny: Option<Vec<Deny>>) -> Result<Self> {
        let corrupt = |expected, found: &dyn ToString| Error::Corrupt {
            path: path.to_owned(),
            offset: 0,
            expected,
            found: found.to_string(),
        };
        let empty = Manifest::empty();
        let base = base.unwrap_or(&empty);
        let mut segments: BTreeMap<String, SegmentRef> = BTreeMap::new();
        for segment in base.versions.iter().flat_map(|version| &version.segments) {
            let plain = || SegmentRef { masked: Vec::new(), ..segment.clone() };
            segments.entry(segment.id.clone()).or_insert_with(plain);
        }
        for WireSegment { mut segment, dataset_ids, files_as } in wire.segments {
            segment.datasets = numbers(&dataset_ids).ok_or_else(|| corrupt("runs of dataset ids", &dataset_ids))?;
            if let Some(like) = files_as {
                let names = segments.get(&like).and_then(names);
                let names = names.ok_or_else(|| corrupt("a segment that is described", &like))?;
                let file = |(key, name): (&str, &str)| (key.to_owned(), format!("index/{}/{name}", segment.id));
                segment.files = names.into_iter().map(file).collect();
            }
            segments.insert(segment.id.clone(), segment);
        }
        let mut versions: Vec<Version> = base.versions.clone();
        let mut before = base.versions.last().cloned().unwrap_or_default();
        for version in wire.versions {
            before = version.whole(&before, &segments).map_err(|id| corrupt("segments that are described", &id))?;
            versions.push(before.clone());
        }
        versions.retain(|version| !wire.forgotten.contains(&version.version));
        let withdrawn: BTreeSet<u32> = wire.withdrawn.into_iter().collect();
        let mut datasets: BTreeMap<u32, Arc<Dataset>> = BTreeMap::new();
        let mut merged = base.datasets.clone();
        // Few of many: changed in their place, new ones at the end.
        for dataset in wire.datasets {
            match merged.binary_search_by_key(&dataset.id, |d| d.id) {
                Ok(at) => merged.get_mut(at).into_iter().for_each(|known| *known = dataset.clone()),
                Err(_) => drop(datasets.insert(dataset.id, dataset)),
            }
        }
        merged.extend(datasets.into_values());
        merged.sort_by_key(|dataset| dataset.id);
        merged.retain(|dataset| !withdrawn.contains(&dataset.id));
        let manifest = Manifest {
            format: super::MANIFEST_FORMAT,
            sequence: wire.sequence,
            lake_id: wire.lake_id,
            written: wire.written,
            writer: wire.writer,
            copied: wire.copied,
            current_version: wire.current_version,
            versions,
            segments: Vec::new(),
            datasets: merged,
            next_dataset_id: wire.next_dataset_id,
            suffix_list: wire.suffix_list,
            deny: deny.unwrap_or_else(|| base.deny.clone()),
            revoked: wire.revoked,
        };
        manifest.check(path)?;
        Ok(manifest)
    }
}

impl WireVersion {
    fn new(before: &Version, version: &Version, whole: bool) -> Self {
        let same = before.segments.iter().zip(&version.segments).take_while(|(a, b)| a == b).count();
        let shared = if whole { 0 } else { same };
        let others = version.segments.iter().skip(shared);
        let commits = if Arc::ptr_eq(&before.commits, &version.commits) {
            BTreeMap::new()
        } else {
            let differs = |(id, number): &(&u32, &u64)| before.commits.get(id) != Some(number);
            version.commits.iter().filter(differs).map(|(id, number)| (*id, *number)).collect()
        };
        let gone = before.commits.keys().filter(|id| !version.commits.contains_key(id));
        Self {
            version: version.version.clone(),
            files: version.files.clone().filter(|_| whole),
            shared,
            segments: others.map(|s| WireUse { id: s.id.clone(), masked: runs(&s.masked) }).collect(),
            commits,
            unserved: gone.copied().collect(),
        }
    }

    /// The version, or the id of a segment that is not described.
    fn whole(self, before: &Version, described: &BTreeMap<String, SegmentRef>) -> Result<Version, String> {
        let mut segments: Vec<SegmentRef> = before.segments.iter().take(self.shared).cloned().collect();
        if segments.len() < self.shared {
            return Err(format!("{} of the version before", self.shared));
        }
        for WireUse { id, masked } in self.segments {
            let (Some(plain), Some(masked)) = (described.get(&id), numbers(&masked)) else { return Err(id) };
            segments.push(SegmentRef { masked, ..plain.clone() });
        }
        let mut commits = before.commits.clone();
        if !self.commits.is_empty() || !self.unserved.is_empty() {
            let commits = Arc::make_mut(&mut commits);
            commits.extend(self.commits);
            for id in self.unserved {
                commits.remove(&id);
            }
        }
        Ok(Version::new(self.version, segments, commits))
    }
}

impl Wire {
    /// Reads the text of `path`, whose head was checked.
    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        super::check_head(path, bytes, RELATIVE_FORMAT)?;
        serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))
    }

    /// As it is stored.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        super::to_sealed_json_of(serde_json::to_vec(self).unwrap_or_default())
    }
}
