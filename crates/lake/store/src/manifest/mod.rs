//! The manifest: one state of the lake, as JSON.
//!
//! `current_version` and `versions` are the seed's keys; a version that is one fully compacted segment carries the
//! seed's file keys at its top level. The rest is Trawl's: segments by reference, the dataset registry, the suffix list
//! and the deny list.

mod dataset;
mod packed;
mod read;
mod version;
mod wire;

pub use dataset::{Acl, Dataset, DatasetInfo, Deny, DenyTarget};
pub use read::{Bases, read_manifest, unpack_checkpoint};
pub(crate) use read::{base_of, put_deny, stored_checkpoint, write_checkpoint};
pub use version::{SeedFiles, SegmentRef, Version};
pub(crate) use wire::Wire;
pub use wire::{Base, DenyObject, RELATIVE_FORMAT};

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trawl_model::UnixMillis;
use xxhash_rust::xxh3::xxh3_64;

/// The format number of whole manifests; [`RELATIVE_FORMAT`] is the newest that is read. In format 1 every version described its segments. Up to format 2 commits and denials lay below `urls/`: such lakes are
/// refused until they are upgraded.
pub const MANIFEST_FORMAT: u32 = 3;
/// Versions a manifest lists at most: every manifest repeats them, and a lake that is written to every minute must not
/// grow by all it has ever been.
pub const MAX_VERSIONS: usize = 32;

/// One state of the lake.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format number; the seed's own manifests have none and count as 1.
    #[serde(default = "format_1")]
    pub format: u32,
    /// Its number in `index/manifests/`; 0 in a manifest that came from elsewhere.
    #[serde(default)]
    pub sequence: u64,
    /// Tells this lake from every other one, wherever its files are moved. Empty in lakes of earlier programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lake_id: String,
    /// When it was committed, RFC 3339.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub written: String,
    /// Who committed it: by this a writer whose answer got lost knows its own. Empty in manifests of earlier programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub writer: String,
    /// In a copy of a lake, by what it is known whether somebody wrote to it since it was copied; empty elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub copied: String,
    /// The version readers use; empty before the first publish.
    pub current_version: String,
    /// Kept versions, oldest first.
    pub versions: Vec<Version>,
    /// On disk, the segments of all versions. Programs find them in the versions, and this empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentRef>,
    /// Registered datasets by id. Ids are never used again.
    #[serde(default)]
    pub datasets: Vec<Arc<Dataset>>,
    /// The id the next dataset gets.
    #[serde(default = "first_dataset_id")]
    pub next_dataset_id: u32,
    /// The suffix list that cuts hosts into domains, here and in every query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix_list: Option<SuffixListRef>,
    /// What must not be answered, whatever the files hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Deny>,
    /// Writers that a collector gave up: their commits are refused, since their files may be gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
}

/// A suffix list by reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuffixListRef {
    /// Path inside the lake.
    pub path: String,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
}

fn format_1() -> u32 {
    1
}

fn first_dataset_id() -> u32 {
    1
}

impl Manifest {
    /// A lake without datasets or versions.
    pub fn empty() -> Self {
        Self {
            format: MANIFEST_FORMAT,
            sequence: 0,
            lake_id: String::new(),
            written: String::new(),
            writer: String::new(),
            copied: String::new(),
            current_version: String::new(),
            versions: Vec::new(),
            segments: Vec::new(),
            datasets: Vec::new(),
            next_dataset_id: first_dataset_id(),
            suffix_list: None,
            deny: Vec::new(),
            revoked: Vec::new(),
        }
    }

    /// Reads the JSON text of `path` and checks what readers rely on.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        check_head(path, bytes, MANIFEST_FORMAT)?;
        let mut manifest: Self = serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))?;
        manifest.unpack();
        manifest.check(path)?;
        Ok(manifest)
    }

    /// Checks what readers rely on.
    fn check(&self, path: &str) -> Result<()> {
        let manifest = self;
        let corrupt = |expected, found: String| Error::Corrupt { path: path.to_owned(), offset: 0, expected, found };
        if !manifest.current_version.is_empty() && manifest.current().is_none() {
            return Err(corrupt("current_version among the versions", manifest.current_version.clone()));
        }
        let mut previous = None;
        for dataset in &manifest.datasets {
            if previous >= Some(dataset.id) || dataset.id >= manifest.next_dataset_id {
                return Err(corrupt("dataset ids that rise and stay below next_dataset_id", dataset.id.to_string()));
            }
            previous = Some(dataset.id);
        }
        manifest.versions.iter().try_for_each(|version| version.check(path))
    }

    /// As it is stored: indented, since people read it, with a checksum and a line end.
    pub fn to_json(&self) -> Vec<u8> {
        to_sealed_json(&Self { format: MANIFEST_FORMAT, ..self.packed() })
    }

    /// The version readers use, if any was published.
    pub fn current(&self) -> Option<&Version> {
        self.version(&self.current_version)
    }

    /// A version by name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().rev().find(|v| v.version == name)
    }

    /// A dataset by id.
    pub fn dataset(&self, id: u32) -> Option<&Dataset> {
        self.dataset_arc(id).map(|dataset| &**dataset)
    }

    fn dataset_arc(&self, id: u32) -> Option<&Arc<Dataset>> {
        self.datasets.binary_search_by_key(&id, |d| d.id).ok().and_then(|at| self.datasets.get(at))
    }

    /// A dataset by id, to change it.
    pub fn dataset_mut(&mut self, id: u32) -> Option<&mut Dataset> {
        self.datasets
            .binary_search_by_key(&id, |d| d.id)
            .ok()
            .and_then(|at| self.datasets.get_mut(at))
            .map(Arc::make_mut)
    }

    /// A dataset by name; dropped ones have given up their name.
    pub fn dataset_named(&self, name: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|d| d.info.name == name && !d.dropped).map(|dataset| &**dataset)
    }

    /// The commit of a dataset that the current version serves; 0 while none is published.
    pub fn live_commit(&self, dataset_id: u32) -> u64 {
        self.current().and_then(|v| v.commits.get(&dataset_id)).copied().unwrap_or(0)
    }

    /// Refuses a writer that a collector gave up. Asked inside its commit, so that no collector can come between the check
    /// and the commit.
    pub(crate) fn refuse_revoked(&self, writer: &str) -> Result<()> {
        if self.revoked.iter().any(|revoked| revoked == writer) {
            return Err(Error::Revoked { writer: writer.to_owned() });
        }
        Ok(())
    }

    /// Registers a dataset and returns its id. A name that is registered already gives that id and changes nothing.
    pub fn register(&mut self, now: UnixMillis, info: DatasetInfo) -> Result<u32> {
        info.check()?;
        if let Some(known) = self.dataset_named(&info.name) {
            return Ok(known.id);
        }
        // What was denied by name and then purged must not come back under it.
        let is_denied = |id: u32| self.deny.iter().any(|deny| deny.target == DenyTarget::Dataset(id));
        if let Some(gone) = self.datasets.iter().find(|d| d.info.name == info.name && is_denied(d.id)) {
            let (name, id) = (&info.name, gone.id);
            let reason = format!(
                "dataset {id}, which was called {name:?}, is denied: take another name, or \
                 `trawl lake deny remove --dataset {id}` first"
            );
            return Err(Error::Refused { reason });
        }
        let id = self.next_dataset_id;
        if id > crate::layout::MAX_DATASET_ID {
            return Err(Error::Refused { reason: "no dataset ids are left".into() });
        }
        self.next_dataset_id = id + 1;
        self.datasets.push(Arc::new(Dataset { id, info, created: now.to_string(), dropped: false }));
        Ok(id)
    }

    /// Marks a dataset as dropped, and makes a version that has nothing of it. That is one step: a version that still has it would
    /// keep its files, and a process that dies between two steps could not name the dataset any more to drop it again.
    pub fn drop_dataset(&mut self, now: UnixMillis, dataset_id: u32) -> Result<()> {
        let unknown = || Error::UnknownDataset { found: dataset_id.to_string() };
        self.dataset_mut(dataset_id).ok_or_else(unknown)?.dropped = true;
        if self.live_commit(dataset_id) > 0 {
            let segments = self.segments_without(&BTreeSet::from([dataset_id]));
            let mut commits = self.current().map(|version| version.commits.clone()).unwrap_or_default();
            Arc::make_mut(&mut commits).remove(&dataset_id);
            self.publish(now, segments, commits);
        }
        Ok(())
    }

    /// The segments of the current version, which no longer answer for `datasets`; those that answer for none any more are left out.
    pub fn segments_without(&self, datasets: &BTreeSet<u32>) -> Vec<SegmentRef> {
        let mut segments = self.current().map(|version| version.segments.clone()).unwrap_or_default();
        for segment in &mut segments {
            let masked = segment.datasets.iter().filter(|id| datasets.contains(id));
            let all: BTreeSet<u32> = masked.chain(&segment.masked).copied().collect();
            segment.masked = all.into_iter().collect();
        }
        segments.retain(|segment| segment.masked.len() < segment.datasets.len());
        segments
    }

    /// Adds a version made of `segments` and makes it current. Its name is the time of publishing, moved on by a
    /// millisecond where an earlier version has that time or a later one: names are unique and rise. `commits` tells
    /// which commit of each dataset it serves. The oldest versions beyond [`MAX_VERSIONS`] are forgotten.
    pub fn publish(
        &mut self,
        now: UnixMillis,
        segments: Vec<SegmentRef>,
        commits: impl Into<Arc<BTreeMap<u32, u64>>>,
    ) -> String {
        let last = self.versions.iter().filter_map(|v| UnixMillis::parse(&v.version).ok()).max();
        let time = match last {
            Some(last) if last >= now => UnixMillis(last.0.saturating_add(1)),
            _ => now,
        };
        let name = time.to_string();
        self.versions.push(Version::new(name.clone(), segments, commits));
        self.current_version.clone_from(&name);
        let excess = self.versions.len().saturating_sub(MAX_VERSIONS);
        self.versions.drain(..excess);
        name
    }
}

/// Refuses a file whose `format` is later than ours, or whose text is not the one its checksum was taken of, before
/// anything else in it is believed. Files of others and of earlier programs have no checksum.
pub(crate) fn check_head(path: &str, bytes: &[u8], supported: u32) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default = "format_1")]
        format: u32,
        checksum: Option<String>,
    }
    let Head { format, checksum } = serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))?;
    if format > supported {
        return Err(Error::TooNew { path: path.to_owned(), found: format, supported });
    }
    let (body, end) = bytes.split_at(bytes.len().saturating_sub(seal(0).len()));
    let whole = seal(xxh3_64(body));
    let corrupt =
        |expected, found| Err(Error::Corrupt { path: path.to_owned(), offset: body.len() as u64, expected, found });
    match checksum {
        Some(found) if end != whole.as_bytes() => {
            let expected = "the text its checksum was taken of (one who changed it on purpose takes out that key)";
            corrupt(expected, format!("checksum {found} of another"))
        }
        // The checksum of this text is there, but not under its name: that name is what was damaged.
        None if differing(end, whole.as_bytes()) <= MAX_TURNED => corrupt("its checksum", "a damaged one".to_owned()),
        _ => Ok(()),
    }
}

/// Bytes of the end of a file that may differ from its seal for it to be a damaged seal, not another text.
const MAX_TURNED: usize = 4;

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len())
}

/// How a sealed file ends: its last key is the xxh3_64 of everything before the comma in front of it.
fn seal(checksum: u64) -> String {
    format!(",\n  \"checksum\": \"{checksum:016x}\"\n}}\n")
}

/// The JSON of an object that has keys, sealed.
pub(crate) fn to_sealed_json(value: &impl Serialize) -> Vec<u8> {
    to_sealed_json_of(serde_json::to_vec_pretty(value).unwrap_or_default())
}

/// The same of its text: indented or not.
pub(crate) fn to_sealed_json_of(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.pop() == Some(b'}') {
        if bytes.ends_with(b"\n") {
            bytes.pop();
        }
        let end = seal(xxh3_64(&bytes));
        bytes.extend_from_slice(end.as_bytes());
    }
    bytes
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Maps with string keys, numbers and texts: nothing in our types can fail to serialise.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// A JSON error with the byte offset that its line and column stand for.
pub(crate) fn json_error(path: &str, bytes: &[u8], error: &serde_json::Error) -> Error {
    let before: usize =
        bytes.split_inclusive(|b| *b == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let offset = before.saturating_add(error.column().saturating_sub(1)) as u64;
    Error::Corrupt { path: path.to_owned(), offset, expected: "json of this kind", found: error.to_string() }
}

#[cfg(test)]
mod tests;
