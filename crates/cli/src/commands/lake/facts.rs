//! `trawl lake datasets`, `stats` and `verify`.

use super::LakeArg;
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use anyhow::Context;
use std::io::Write;
use std::path::Path;
use trawl_query::Principal;
use trawl_store::{Lake, Manifest};
use trawl_url::SuffixList;

pub(super) fn datasets(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let pinned = crate::commands::query::pin(dir)?;
    let datasets = pinned.datasets(&Principal::operator())?;
    if out.json() {
        datasets.iter().try_for_each(|dataset| out.json_line(dataset))?;
    } else {
        for d in &datasets {
            let (rows, size) = (show_count(d.rows), show_bytes(d.bytes));
            let source = d.source.as_deref().unwrap_or_default();
            writeln!(out, "{:>5}  {:<24} {rows:>14} rows  {size:>10}  {}  {source}", d.dataset_id, d.name, d.created)?;
        }
    }
    Ok(Status::from_findings(datasets.is_empty()))
}

pub(super) fn stats(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let stats = crate::commands::query::pin(dir)?.stats_for(&Principal::operator())?;
    out.fact(&stats, |w| {
        writeln!(w, "version   {}", stats.version)?;
        writeln!(w, "datasets  {}", show_count(stats.datasets))?;
        writeln!(w, "domains   {}", show_count(stats.domains))?;
        writeln!(w, "rows      {}", show_count(stats.rows))?;
        writeln!(w, "files     {} Parquet, {} index segment(s)", show_count(stats.files), stats.segments)?;
        writeln!(w, "bytes     {} (index {})", show_bytes(stats.bytes), show_bytes(stats.index_bytes))
    })?;
    Ok(Status::Done)
}

/// Checks a lake: every file against its checksum, every row against what is said of it
///
/// The Parquet files of each dataset's newest commit: hashes, order, domains under the lake's suffix list, counts. The
/// index segments of the current version: checksums, order, counts, and that postings point at rows there are. All faults
/// are listed; exit code 1 when there are any. `trawl lake rebuild` makes a damaged index anew.
///
/// Example: trawl lake verify --lake lake
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Check the index alone, not the Parquet files: faster
    #[arg(long)]
    index_only: bool,
}

pub(super) fn verify(args: &VerifyArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let manifest = lake.current()?;
    let bar = Progress::start("verify", None, out.quiet());
    let mut faults = 0;
    if !args.index_only {
        faults += verify_datasets(&lake, &manifest, &bar, out)?;
    }
    faults += verify_segments(&lake, &manifest, &bar, out)?;
    drop(bar);
    Ok(Status::from_findings(faults > 0))
}

fn verify_datasets(lake: &Lake, manifest: &Manifest, bar: &Progress, out: &mut Output) -> anyhow::Result<u64> {
    let list = lake.suffix_list(manifest)?;
    let suffixes = SuffixList::parse(std::str::from_utf8(&list)?).context("the lake's suffix list")?;
    let mut faults = 0;
    for dataset in manifest.datasets.iter().filter(|d| !d.dropped) {
        let name = &dataset.info.name;
        bar.report(0, || format!("dataset {name}"));
        let Some(commit) = lake.dataset_newest(dataset.id)? else { continue };
        let mut found = Vec::new();
        let checked = trawl_store::verify_dataset(&**lake.store(), &commit, &suffixes, &mut |fault| {
            found.push(fault.to_string());
        });
        if let Err(error) = &checked {
            found.push(error.to_string());
        }
        faults += found.len() as u64;
        tell_faults("dataset", name, &found, out)?;
        if let Ok(checked) = checked {
            let json = serde_json::json!({
                "type": "dataset", "dataset": name, "dataset_id": dataset.id, "files": checked.files,
                "rows": commit.rows, "faults": checked.faults,
            });
            out.fact(&json, |w| {
                let (rows, size) = (show_count(commit.rows), show_bytes(commit.bytes));
                writeln!(w, "dataset {name}: {rows} rows, {} files, {size}", checked.files)
            })?;
        }
    }
    Ok(faults)
}

fn verify_segments(lake: &Lake, manifest: &Manifest, bar: &Progress, out: &mut Output) -> anyhow::Result<u64> {
    let mut faults = 0;
    for segment in manifest.current().map(|version| version.segments.as_slice()).unwrap_or_default() {
        bar.report(0, || format!("segment {}", segment.id));
        let mut found = Vec::new();
        let checked = trawl_index::verify_segment(lake.store(), segment, &mut |fault| found.push(fault.to_string()));
        if let Err(error) = &checked {
            found.push(error.to_string());
        }
        faults += found.len() as u64;
        tell_faults("segment", &segment.id, &found, out)?;
        if let Ok(checked) = checked {
            let json = serde_json::json!({
                "type": "segment", "segment": segment.id, "files": checked.files, "domains": checked.domains,
                "pairs": checked.pairs, "rows": checked.rows, "faults": checked.faults,
            });
            out.fact(&json, |w| {
                let (domains, rows) = (show_count(checked.domains), show_count(checked.rows));
                writeln!(w, "segment {}: {domains} domains, {rows} rows, {} files", segment.id, checked.files)
            })?;
        }
    }
    Ok(faults)
}

fn tell_faults(kind: &str, name: &str, faults: &[String], out: &mut Output) -> anyhow::Result<()> {
    for fault in faults {
        let json = serde_json::json!({ "type": "fault", kind: name, "fault": fault });
        out.fact(&json, |w| writeln!(w, "fault: {fault}"))?;
    }
    Ok(())
}
