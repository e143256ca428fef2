//! A version: a named list of immutable index segments.

use crate::{Error, Result, check_name, layout};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A named list of segments, shared with other versions by reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its name: the time of publishing, RFC 3339.
    pub version: String,
    /// The seed's keys; present when the version is one fully compacted segment.
    #[serde(flatten)]
    pub files: Option<SeedFiles>,
    /// The segments, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentRef>,
    /// Dataset id → the commit of that dataset which this version serves.
    #[serde(default, skip_serializing_if = "is_empty_map")]
    pub commits: Arc<BTreeMap<u32, u64>>,
}

/// The seed's keys of a version. `{shard}` stands for the shard number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedFiles {
    /// Sorted unique domains, one a line.
    pub domains_txt: String,
    /// Their minimal perfect hash.
    pub domains_mphf: String,
    /// Domain → datasets.
    pub d2d_roar: String,
    /// Postings: keys.
    pub postings_idx: String,
    /// Postings: payloads.
    pub postings_dat: String,
    /// File registry.
    pub files_tsv: String,
    /// Where the Parquet files are.
    pub parquet_root: String,
}

/// One index segment, by reference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SegmentRef {
    /// Its directory below `index/`.
    pub id: String,
    /// Compaction tier: 0 as published, higher after merges.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// Hex digits of `domain_id` by which it is split into pieces, each a segment in a directory of its own; 0 for a segment that is
    /// not split.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub split: u8,
    /// Postings shards.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shards: u32,
    /// Domains in its dictionary.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub domains: u64,
    /// Rows its postings point at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows: u64,
    /// Bytes of all its files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Datasets it has rows of, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<u32>,
    /// Those of its datasets that this version no longer takes from it (replaced or dropped since), sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<u32>,
    /// Its files, by the seed's key where it has one (`domains_txt`, `postings_idx`, …) and the index's own else.
    /// `{shard}` stands for the shard number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Whatever else the index wants to know before it opens a file: format numbers, checksums.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub notes: serde_json::Map<String, serde_json::Value>,
}

fn is_empty_map(map: &Arc<BTreeMap<u32, u64>>) -> bool {
    map.is_empty()
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl SegmentRef {
    /// What a version says of a segment that stands in the manifest's own list.
    pub(super) fn short(&self) -> Self {
        Self { id: self.id.clone(), masked: self.masked.clone(), ..Self::default() }
    }

    /// Path of the file under `key`, with the shard number filled in.
    pub fn file(&self, key: &str, shard: u32) -> Option<String> {
        self.files.get(key).map(|path| path.replace("{shard}", &shard.to_string()))
    }

    /// The seed's keys, if all six files are there.
    fn seed_files(&self) -> Option<SeedFiles> {
        let file = |key: &str| self.files.get(key).cloned();
        Some(SeedFiles {
            domains_txt: file("domains_txt")?,
            domains_mphf: file("domains_mphf")?,
            d2d_roar: file("d2d_roar")?,
            postings_idx: file("postings_idx")?,
            postings_dat: file("postings_dat")?,
            files_tsv: file("files_tsv")?,
            parquet_root: layout::PARQUET_ROOT.to_owned(),
        })
    }
}

impl Version {
    /// A version of `segments`; it carries the seed's keys if it is exactly one, with nothing masked.
    pub fn new(version: String, segments: Vec<SegmentRef>, commits: impl Into<Arc<BTreeMap<u32, u64>>>) -> Self {
        let files = match segments.as_slice() {
            [only] if only.masked.is_empty() => only.seed_files(),
            _ => None,
        };
        Self { version, files, segments, commits: commits.into() }
    }

    /// Refuses names and paths that would lead out of the lake.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        let corrupt = |error: Error| Error::Corrupt {
            path: path.to_owned(),
            offset: 0,
            expected: "names and paths inside the lake",
            found: error.to_string(),
        };
        for segment in &self.segments {
            check_name(&segment.id).map_err(corrupt)?;
            for file in segment.files.values() {
                crate::check_path(&file.replace("{shard}", "0")).map_err(corrupt)?;
            }
        }
        Ok(())
    }
}
