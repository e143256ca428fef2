//! `segment.json`: what a segment is, written last.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_store::{SegmentRef, Store, layout};

/// The format number this program writes, and the newest it reads.
pub const SEGMENT_FORMAT: u32 = 1;
/// Largest `segment.json` that is read.
const MAX_META: u64 = 64 << 20;
/// Name of the file.
pub const META_FILE: &str = "segment.json";

/// What a segment is: totals, datasets, and length and hash of every file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentMeta {
    /// Format number.
    pub format: u32,
    /// Its directory below `index/`.
    pub id: String,
    /// Domains in its dictionary.
    pub domains: u64,
    /// (Domain, dataset) pairs.
    pub pairs: u64,
    /// Pairs whose number of different URLs is only an upper bound: a full compaction counts them.
    #[serde(default)]
    pub bounds: u64,
    /// Rows its postings point at.
    pub rows: u64,
    /// Postings shards.
    pub shards: u32,
    /// Parquet files.
    pub parquet_files: u64,
    /// Bytes of the Parquet files.
    pub parquet_bytes: u64,
    /// Per dataset.
    pub datasets: BTreeMap<u32, DatasetMeta>,
    /// Every file of the segment but this one.
    pub files: BTreeMap<String, FileMeta>,
}

/// A dataset's share of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetMeta {
    /// Rows.
    pub rows: u64,
    /// Domains.
    pub domains: u64,
    /// Parquet files.
    pub files: u64,
    /// Bytes of the Parquet files.
    pub bytes: u64,
}

/// One file of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Length in bytes.
    pub bytes: u64,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
}

/// The note in a manifest that holds the hash of `segment.json`.
const META_HASH: &str = "segment_json_hash";

/// The note in a manifest that says how many pairs of a segment have bounds for counts.
const BOUNDS: &str = "bounds";

/// Whether a segment has only bounds for some of its numbers of different URLs.
pub(crate) fn has_bounds(reference: &SegmentRef) -> bool {
    reference.notes.get(BOUNDS).and_then(serde_json::Value::as_u64).is_some_and(|bounds| bounds > 0)
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(bytes))
}

/// Manifest keys and file names: the seed's keys first.
pub(crate) const KEYS: [(&str, &str); 11] = [
    ("domains_txt", "domains.txt.zst"),
    ("domains_mphf", "domains.mphf"),
    ("d2d_roar", "domain_to_datasets.roar"),
    ("postings_idx", "postings/{shard}/postings.idx.zst"),
    ("postings_dat", "postings/{shard}/postings.dat.zst"),
    ("files_tsv", "files.tsv.zst"),
    ("counts", "counts.bin"),
    ("times", "times.bin"),
    ("paths", "paths.bin"),
    ("pages", "pages.bin"),
    ("segment", META_FILE),
];

impl SegmentMeta {
    /// How a manifest names the segment.
    pub fn to_ref(&self, level: u32) -> Result<SegmentRef> {
        let mut files = BTreeMap::new();
        for (key, name) in KEYS {
            // The path check knows no braces; the directory was checked when the segment was written.
            files.insert(key.to_owned(), format!("{}/{name}", layout::segment_dir(&self.id)?));
        }
        Ok(SegmentRef {
            id: self.id.clone(),
            level,
            shards: self.shards,
            domains: self.domains,
            rows: self.rows,
            bytes: self.files.values().fold(0, |sum, f| sum.saturating_add(f.bytes)),
            datasets: self.datasets.keys().copied().collect(),
            masked: Vec::new(),
            files,
            notes: serde_json::Map::from_iter([
                ("format".to_owned(), self.format.into()),
                (BOUNDS.to_owned(), self.bounds.into()),
                (META_HASH.to_owned(), hash(&self.to_json()).into()),
            ]),
        })
    }

    /// As it is stored.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Maps with text keys, numbers and texts: nothing here can fail to serialise.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads the one of the segment that a manifest names, and checks it by the hash there.
    pub fn read(store: &dyn Store, reference: &SegmentRef) -> Result<Self> {
        let path = reference.file("segment", 0).unwrap_or_default();
        let bytes = store.get(&path, MAX_META)?;
        let found = hash(&bytes);
        if reference.notes.get(META_HASH).is_some_and(|expected| *expected != *found) {
            let expected = "the segment.json whose hash is in the manifest";
            return Err(
                trawl_store::Error::Corrupt { path, offset: 0, expected, found: format!("hash {found}") }.into()
            );
        }
        Self::parse(&path, &bytes)
    }

    /// Reads the JSON text of `path`.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        let corrupt = |expected, found: String| {
            Error::Store(trawl_store::Error::Corrupt { path: path.to_owned(), offset: 0, expected, found })
        };
        let meta: Self = serde_json::from_slice(bytes).map_err(|e| corrupt("json of a segment", e.to_string()))?;
        if meta.format != SEGMENT_FORMAT {
            return Err(corrupt("segment format 1", meta.format.to_string()));
        }
        if meta.shards == 0 || meta.shards > crate::postings::MAX_SHARDS {
            return Err(corrupt("1 to 1024 shards", meta.shards.to_string()));
        }
        Ok(meta)
    }
}
