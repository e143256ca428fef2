//! `trawl lake compact`: fewer and larger files.

use super::{
    LakeArg, MemoryArg, build_options, datasets, publish, rewrite_settings, show_index, show_ingest, unless_dropped,
};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{lake_dir, system};
use std::collections::BTreeMap;
use std::path::Path;
use trawl_index::{Compaction, MAX_SEGMENTS};
use trawl_ingest::{Files, Rewrite, RewriteReport, rewrite};
use trawl_store::{DataFile, Lake};

/// Small files of one prefix from which on they are merged, where not all of them are wanted: fewer cost readers little.
const MANY_FILES: usize = 8;

/// Merges small Parquet files and index segments into larger ones
///
/// Each ingest adds files; readers ask all of them. Without flags this merges the smallest neighbours where a version has
/// more than 8 index segments, and small Parquet files where a dataset has 8 or more of them. With --full all segments
/// become one, with exact counts of distinct URLs, and all small files of a dataset are merged. Readers see the old or the
/// new version; answers are the same. The old files go with `trawl lake gc`.
///
/// Example: trawl lake compact --lake lake --full
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Merge everything that can be merged
    #[arg(long)]
    full: bool,

    /// Merge only these: index segments or Parquet files
    #[arg(long, value_name = "WHAT")]
    only: Option<Only>,

    /// Parquet files of this dataset only
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Parquet files below this size are small
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes)]
    small: u64,

    /// Tell what would be merged, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    memory: MemoryArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    Segments,
    Files,
}

pub(super) fn run(args: &CompactArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    args.memory.bytes()?;
    let lake = lake_dir::open(dir)?;
    let mut any = false;
    if args.only != Some(Only::Segments) {
        any |= files(&lake, args, out)?;
    }
    if args.only != Some(Only::Files) {
        any |= segments(&lake, args, out)?;
    }
    if !any {
        out.fact(&serde_json::json!({ "type": "nothing" }), |w| writeln!(w, "nothing to merge"))?;
    }
    Ok(Status::Done)
}

/// Merges small files of every dataset; whether there were any.
fn files(lake: &Lake, args: &CompactArgs, out: &mut Output) -> anyhow::Result<bool> {
    let dir = &args.lake.lake;
    let mut any = false;
    for (id, name) in datasets(&*lake.current()?, args.dataset.as_deref())? {
        let commit = lake.dataset_newest(id)?;
        let small = many_small(commit.as_ref().map(|c| c.files.as_slice()).unwrap_or_default(), args);
        if small.is_empty() {
            continue;
        }
        any = true;
        let chosen = |file: &DataFile| small.contains_key(&file.path);
        let report = if args.dry_run {
            RewriteReport { files_before: small.len() as u64, bytes_before: small.values().sum(), ..Default::default() }
        } else {
            let bar = Progress::start(&format!("compact {name}"), None, out.quiet());
            let what = Rewrite { keep: &|_| true, files: Files::Chosen(&chosen), suffix_list: None };
            unless_dropped(rewrite(
                lake,
                id,
                &what,
                &rewrite_settings(dir, args.memory.bytes()?)?,
                &system::now,
                &|p| show_ingest(&bar, p),
            ))?
        };
        let json = serde_json::json!({
            "type": "files", "dataset": name, "dataset_id": id, "dry_run": args.dry_run, "report": report,
        });
        out.fact(&json, |w| {
            let (files, size) = (show_count(report.files_before), show_bytes(report.bytes_before));
            if args.dry_run {
                return writeln!(w, "{name}: would merge {files} files, {size}");
            }
            let (after, size_after) = (show_count(report.files_after), show_bytes(report.bytes_after));
            writeln!(w, "{name}: merged {files} files, {size}, into {after}, {size_after}")
        })?;
    }
    if any && !args.dry_run {
        publish(lake, dir, args.memory.bytes()?, out)?;
    }
    Ok(any)
}

/// Small files that have enough like them beside them, and their bytes.
fn many_small(files: &[DataFile], args: &CompactArgs) -> BTreeMap<String, u64> {
    let mut by_prefix: BTreeMap<&str, Vec<&DataFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.bytes < args.small) {
        by_prefix.entry(&file.prefix).or_default().push(file);
    }
    let enough = if args.full { 2 } else { MANY_FILES };
    let many = by_prefix.into_values().filter(|files| files.len() >= enough);
    many.flatten().map(|file| (file.path.clone(), file.bytes)).collect()
}

/// Merges segments; whether there were any to merge.
fn segments(lake: &Lake, args: &CompactArgs, out: &mut Output) -> anyhow::Result<bool> {
    let how = if args.full { Compaction::Full } else { Compaction::Tiered };
    if args.dry_run {
        let manifest = lake.current()?;
        let segments = manifest.current().map(|version| version.segments.as_slice()).unwrap_or_default();
        let any = if args.full {
            segments.len() > 1 || segments.iter().any(|s| !s.masked.is_empty())
        } else {
            segments.len() > MAX_SEGMENTS
        };
        if any {
            let json = serde_json::json!({ "type": "segments", "dry_run": true, "segments": segments.len() });
            out.fact(&json, |w| writeln!(w, "index: would merge segments, of which there are {}", segments.len()))?;
        }
        return Ok(any);
    }
    merge_segments(lake, &args.lake.lake, how, args.memory.bytes()?, out)
}

/// Merges index segments and tells about it.
pub(super) fn merge_segments(
    lake: &Lake,
    dir: &Path,
    how: Compaction,
    memory: u64,
    out: &mut Output,
) -> anyhow::Result<bool> {
    let options = build_options(dir, memory)?;
    let bar = Progress::start("merge", None, out.quiet());
    let compacted =
        trawl_index::compact(lake, &system::now, &system::nonce()?, how, &options, &|p| show_index(&bar, p))?;
    drop(bar);
    let Some(done) = compacted else { return Ok(false) };
    let json = serde_json::json!({
        "type": "segments", "dry_run": false, "merged": done.merged, "segment": done.segment.id,
        "domains": done.segment.domains, "rows": done.segment.rows, "version": done.version,
    });
    out.fact(&json, |w| {
        let (domains, rows) = (show_count(done.segment.domains), show_count(done.segment.rows));
        writeln!(w, "index: merged {} segments into one of {domains} domains, {rows} rows", done.merged.len())?;
        writeln!(w, "published version {}", done.version)
    })?;
    Ok(true)
}
