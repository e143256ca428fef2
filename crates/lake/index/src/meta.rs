//! `segment.json`: what a segment is, written last.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_store::{SegmentRef, Store, layout};

/// The format number of a segment that is not split, and of a piece of one that is.
pub const SEGMENT_FORMAT: u32 = 1;
/// The format number of a segment that is split: programs that know no pieces refuse it by this number.
pub const SPLIT_FORMAT: u32 = 2;
/// Most hex digits by which a segment is split.
pub const MAX_SPLIT: u8 = 2;
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
    /// Hex digits of `domain_id` by which it is split; 0 if it is not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub split: u8,
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
    /// Every file of the segment but this one; those of a piece with its prefix before their names.
    pub files: BTreeMap<String, FileMeta>,
    /// The pieces of a segment that is split, by prefix. A prefix that no domain has is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pieces: BTreeMap<String, PieceMeta>,
}

/// A piece of a segment that is split: what must be known before it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceMeta {
    /// Domains in its dictionary.
    pub domains: u64,
    /// Parquet files.
    pub parquet_files: u64,
}

fn is_zero(split: &u8) -> bool {
    *split == 0
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
        // Of a segment that is split, the pieces have the files.
        for (key, name) in KEYS.into_iter().filter(|(_, name)| self.split == 0 || *name == META_FILE) {
            // The path check knows no braces; the directory was checked when the segment was written.
            files.insert(key.to_owned(), format!("{}/{name}", layout::segment_dir(&self.id)?));
        }
        Ok(SegmentRef {
            id: self.id.clone(),
            level,
            split: self.split,
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

    /// A segment that is split into these pieces, by prefix.
    pub(crate) fn of_pieces(id: &str, split: u8, pieces: &BTreeMap<String, Self>) -> Self {
        let mut meta = Self { format: SPLIT_FORMAT, id: id.to_owned(), split, shards: 1, ..Self::default() };
        for (prefix, piece) in pieces {
            meta.domains += piece.domains;
            meta.pairs += piece.pairs;
            meta.bounds += piece.bounds;
            meta.rows += piece.rows;
            meta.shards = meta.shards.max(piece.shards);
            meta.parquet_files += piece.parquet_files;
            meta.parquet_bytes += piece.parquet_bytes;
            for (id, share) in &piece.datasets {
                // Neither a domain nor a file is in two pieces.
                let sum = meta.datasets.entry(*id).or_default();
                sum.rows += share.rows;
                sum.domains += share.domains;
                sum.files += share.files;
                sum.bytes += share.bytes;
            }
            let text = piece.to_json();
            let own = FileMeta { bytes: text.len() as u64, hash: hash(&text) };
            meta.files.insert(format!("{prefix}/{META_FILE}"), own);
            let of_piece = piece.files.iter().map(|(name, file)| (format!("{prefix}/{name}"), file.clone()));
            meta.files.extend(of_piece);
            let (domains, parquet_files) = (piece.domains, piece.parquet_files);
            meta.pieces.insert(prefix.clone(), PieceMeta { domains, parquet_files });
        }
        meta
    }

    /// How to open the piece of a prefix.
    pub(crate) fn piece_ref(&self, prefix: &str) -> Result<SegmentRef> {
        let mut reference = Self { id: format!("{}/{prefix}", self.id), ..Self::default() }.to_ref(0)?;
        let name = format!("{prefix}/{META_FILE}");
        let own = self.files.get(&name).map(|file| file.hash.clone()).ok_or_else(|| Error::Input {
            at: format!("{}/{META_FILE}", self.id),
            expected: "length and hash of every piece's segment.json",
            found: format!("none of {name}"),
        })?;
        reference.notes.insert(META_HASH.to_owned(), own.into());
        Ok(reference)
    }

    /// What is wrong with the list of pieces.
    fn check_pieces(&self) -> std::result::Result<(), String> {
        let is_prefix = |prefix: &String| {
            prefix.len() == usize::from(self.split) && layout::check_prefix(prefix).is_ok() && prefix != "all"
        };
        if let Some(bad) = self.pieces.keys().find(|prefix| !is_prefix(prefix)) {
            return Err(format!("prefix {bad:?}"));
        }
        let sum = |of: fn(&PieceMeta) -> u64| self.pieces.values().map(of).try_fold(0u64, u64::checked_add);
        let (domains, files) = (sum(|piece| piece.domains), sum(|piece| piece.parquet_files));
        // Files of all pieces are numbered on, in 32 bits.
        if domains != Some(self.domains)
            || files != Some(self.parquet_files)
            || self.parquet_files > u64::from(u32::MAX)
        {
            return Err(format!("{domains:?} domains and {files:?} files in the pieces"));
        }
        Ok(())
    }

    /// Reads the JSON text of `path`.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        let corrupt = |expected, found: String| {
            Error::Store(trawl_store::Error::Corrupt { path: path.to_owned(), offset: 0, expected, found })
        };
        let meta: Self = serde_json::from_slice(bytes).map_err(|e| corrupt("json of a segment", e.to_string()))?;
        match (meta.format, meta.split) {
            (SEGMENT_FORMAT, 0) => {}
            (SPLIT_FORMAT, 1..=MAX_SPLIT) => {
                meta.check_pieces().map_err(|found| corrupt("pieces that add up", found))?
            }
            (format, split) => {
                let found = format!("format {format}, split by {split} digits");
                return Err(corrupt("segment format 1, or 2 and split by 1 or 2 digits", found));
            }
        }
        if meta.shards == 0 || meta.shards > crate::postings::MAX_SHARDS {
            return Err(corrupt("1 to 1024 shards", meta.shards.to_string()));
        }
        Ok(meta)
    }
}
