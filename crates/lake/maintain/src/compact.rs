//! Fewer and larger files.

use crate::event::{Event, Merged};
use crate::keeper::datasets;
use crate::{Keeper, Result};
use std::collections::BTreeMap;
use trawl_index::{Compaction, MAX_SEGMENTS};
use trawl_ingest::{Files, Rewrite, RewriteReport};
use trawl_store::{DataFile, Lake, SegmentRef};

/// Small files of one prefix from which on they are merged, where not all of them are wanted: fewer cost readers little.
const MANY_FILES: usize = 8;

/// What to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compact {
    /// Everything that can be merged; else only where there are many.
    pub full: bool,
    /// With `full`, one set of index files that is not split by prefix.
    pub single: bool,
    /// Parquet files.
    pub files: bool,
    /// Index segments.
    pub segments: bool,
    /// Parquet files of this dataset only.
    pub dataset: Option<u32>,
    /// Bytes below which a Parquet file is small.
    pub small: u64,
    /// Tells what would be merged, and changes nothing.
    pub dry_run: bool,
}

impl Keeper<'_> {
    /// Merges small Parquet files and index segments into larger ones. Readers see the old or the new version; answers are
    /// the same. Tells whether there was anything to merge.
    pub fn compact(&self, lake: &Lake, what: &Compact) -> Result<bool> {
        let mut any = false;
        if what.files {
            any |= self.compact_files(lake, what)?;
        }
        if what.segments {
            any |= self.compact_segments(lake, what)?;
        }
        Ok(any)
    }

    fn compact_files(&self, lake: &Lake, what: &Compact) -> Result<bool> {
        let (mut any, mut behind) = (false, false);
        let manifest = lake.current()?;
        for (id, name) in datasets(&manifest, what.dataset) {
            let commit = lake.dataset_newest(id)?;
            // A compaction that was cut left a version that reads the old files.
            behind |= commit.as_ref().is_some_and(|commit| commit.sequence > manifest.live_commit(id));
            let small = many_small(commit.as_ref().map(|c| c.files.as_slice()).unwrap_or_default(), what);
            if small.is_empty() {
                continue;
            }
            any = true;
            let report = if what.dry_run {
                let (files_before, bytes_before) = (small.len() as u64, small.values().sum());
                RewriteReport { files_before, bytes_before, ..RewriteReport::default() }
            } else {
                self.begins(format!("compact {name}"));
                let chosen = |file: &DataFile| small.contains_key(&file.path);
                self.rewrite(lake, id, &Rewrite { keep: &|_| true, files: Files::Chosen(&chosen), suffix_list: None })?
            };
            self.fact(Event::Files { dataset: name, dataset_id: id, dry_run: what.dry_run, report, recut: false })?;
        }
        if (any || behind) && !what.dry_run {
            any |= self.publish(lake)?.version.is_some();
        }
        Ok(any)
    }

    fn compact_segments(&self, lake: &Lake, what: &Compact) -> Result<bool> {
        let how = match (what.full, what.single) {
            (true, true) => Compaction::Single,
            (true, false) => Compaction::Full,
            _ => Compaction::Tiered,
        };
        if !what.dry_run {
            return self.merge_segments(lake, how);
        }
        let manifest = lake.current()?;
        let segments = manifest.current().map(|version| version.segments.as_slice()).unwrap_or_default();
        let any = match how {
            Compaction::Full | Compaction::Single => {
                let is_split = |s: &SegmentRef| how == Compaction::Single && s.split > 0;
                segments.len() > 1 || segments.iter().any(|s| !s.masked.is_empty() || is_split(s))
            }
            _ => segments.len() > MAX_SEGMENTS,
        };
        if any {
            self.fact(Event::Segments { dry_run: true, segments: Some(segments.len()), merged: None })?;
        }
        Ok(any)
    }

    /// Merges index segments; whether there were any to merge.
    pub(crate) fn merge_segments(&self, lake: &Lake, how: Compaction) -> Result<bool> {
        self.begins("merge");
        let options = self.build_options()?;
        let done = trawl_index::compact(lake, self.now, &self.writer(), how, &options, &|p| self.progress(p))?;
        let Some(done) = done else { return Ok(false) };
        let (segment, version) = (done.segment, done.version);
        let merged =
            Merged { merged: done.merged, domains: segment.domains, rows: segment.rows, segment: segment.id, version };
        self.fact(Event::Segments { dry_run: false, segments: None, merged: Some(merged) })?;
        Ok(true)
    }
}

/// Small files that have enough like them beside them, and their bytes.
fn many_small(files: &[DataFile], what: &Compact) -> BTreeMap<String, u64> {
    let mut by_prefix: BTreeMap<&str, Vec<&DataFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.bytes < what.small) {
        by_prefix.entry(&file.prefix).or_default().push(file);
    }
    let enough = if what.full { 2 } else { MANY_FILES };
    let many = by_prefix.into_values().filter(|files| files.len() >= enough);
    many.flatten().map(|file| (file.path.clone(), file.bytes)).collect()
}
