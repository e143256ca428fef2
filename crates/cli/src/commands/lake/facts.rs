//! `trawl lake datasets`, `stats` and `verify`.

use super::LakeArg;
use crate::commands::query::harmless;
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use trawl_query::Principal;
use trawl_store::manifest::SuffixListRef;
use trawl_store::{DatasetCommit, Error, Lake, Manifest, Version, layout};
use trawl_url::SuffixList;

pub(super) fn datasets(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let pinned = crate::commands::query::pin(dir)?;
    let datasets = pinned.datasets(&Principal::operator())?;
    if out.json() {
        datasets.iter().try_for_each(|dataset| out.json_line(dataset))?;
    } else {
        for d in &datasets {
            let (rows, size) = (show_count(d.rows), show_bytes(d.bytes));
            let source = harmless(d.source.as_deref().unwrap_or_default());
            let denied = d.denied_rows.filter(|rows| *rows > 0);
            let denied = denied.map(|rows| format!("  (and {} denied)", show_count(rows))).unwrap_or_default();
            let (id, name, created) = (d.dataset_id, harmless(&d.name), d.created);
            writeln!(out, "{id:>5}  {name:<24} {rows:>14} rows  {size:>10}  {created}  {source}{denied}")?;
        }
    }
    Ok(Status::from_findings(datasets.is_empty()))
}

pub(super) fn stats(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let stats = crate::commands::query::pin(dir)?.stats_for(&Principal::operator())?;
    out.fact(&stats, |w| {
        writeln!(w, "version   {}", stats.version)?;
        writeln!(w, "datasets  {}", show_count(stats.datasets))?;
        // A domain counts once per segment: with one segment that is exact.
        let at_most = if stats.domains_exact { "" } else { "at most " };
        writeln!(w, "domains   {at_most}{}", show_count(stats.domains))?;
        writeln!(w, "rows      {}", show_count(stats.rows))?;
        if let Some(denied) = stats.denied_rows.filter(|rows| *rows > 0) {
            writeln!(w, "denied    {} rows more, in the files until `trawl lake purge`", show_count(denied))?;
        }
        writeln!(w, "files     {} Parquet, {} index segment(s)", show_count(stats.files), stats.segments)?;
        writeln!(w, "bytes     {} (index {})", show_bytes(stats.bytes), show_bytes(stats.index_bytes))
    })?;
    Ok(Status::Done)
}

/// Checks a lake: every file against its checksum, every row against what is said of it
///
/// Manifests, their copy and dataset commits: checksums and numbers; the suffix lists they name. The Parquet files of each
/// dataset's newest and served commit: hashes, order, domains under the list the commit names, counts; those of older kept
/// versions: hashes. The index segments of all kept versions: checksums, order, counts, and that postings point at rows
/// there are. All faults are listed; exit code 1 when there are any. `trawl lake rebuild` makes a damaged index anew; the
/// version before it is kept, damaged, until `trawl lake gc` takes it, and is named so. Also the deny list beside the datasets.
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
    let lake = match lake_dir::open(&args.lake.lake) {
        Ok(lake) => lake,
        // The newest manifest is damaged: nothing else can be looked at, but that much was found.
        Err(error) => match error.downcast_ref::<Error>() {
            Some(fault @ Error::Corrupt { .. }) => {
                tell_faults("lake", &args.lake.lake.to_string_lossy(), &[fault.to_string()], out)?;
                return Ok(Status::Findings);
            }
            _ => return Err(error),
        },
    };
    let manifest = lake.current()?;
    let bar = Progress::start("verify", None, out.quiet());
    let mut found = Vec::new();
    trawl_store::verify_states(&lake, &manifest, &mut |fault| found.push(fault.to_string()))?;
    tell_faults("lake", &args.lake.lake.to_string_lossy(), &found, out)?;
    let mut faults = found.len() as u64;
    let mut damaged = BTreeSet::new();
    if !args.index_only {
        faults += verify_datasets(&lake, &manifest, &bar, &mut damaged, out)?;
    }
    faults += verify_segments(&lake, &manifest, &bar, &mut damaged, out)?;
    drop(bar);
    tell_damaged(&args.lake.lake, &manifest, &damaged, out)?;
    Ok(Status::from_findings(faults > 0))
}

/// Tells which kept versions are damaged while the one that is served is not, and how to be rid of them.
fn tell_damaged(dir: &Path, manifest: &Manifest, damaged: &BTreeSet<String>, out: &mut Output) -> anyhow::Result<()> {
    let current = &manifest.current_version;
    if damaged.is_empty() || damaged.contains(current) {
        return Ok(());
    }
    // Versions after the last damaged one may stay.
    let sound = manifest.versions.iter().rev().take_while(|version| !damaged.contains(&version.version)).count();
    let command = format!("trawl lake gc --lake {} --keep-versions {sound} --grace 0s --yes", dir.display());
    let names = damaged.iter().map(String::as_str).collect::<Vec<_>>();
    let json = serde_json::json!({ "type": "damaged", "versions": names, "served": current, "command": command });
    out.fact(&json, |w| {
        let (what, they) = if names.len() == 1 { ("version", "it") } else { ("versions", "them") };
        writeln!(w, "damaged: {what} {}, kept for readers that began with {they}", names.join(", "))?;
        writeln!(w, "no fault was found in version {current}, which is served; while nothing else writes,")?;
        writeln!(w, "`{command}` takes the damaged away")
    })?;
    Ok(())
}

/// The versions that serve a commit.
fn versions_of(manifest: &Manifest, id: u32, commit: u64) -> impl Iterator<Item = String> {
    let serves = move |version: &&Version| version.commits.get(&id) == Some(&commit);
    manifest.versions.iter().filter(serves).map(|version| version.version.clone())
}

fn verify_datasets(
    lake: &Lake,
    manifest: &Manifest,
    bar: &Progress,
    damaged: &mut BTreeSet<String>,
    out: &mut Output,
) -> anyhow::Result<u64> {
    let mut faults = 0;
    for dataset in manifest.datasets.iter().filter(|d| !d.dropped) {
        let (id, name) = (dataset.id, &dataset.info.name);
        bar.report(0, || format!("dataset {name}"));
        // What was looked at, and by which list: a file that two commits share is read once.
        let (mut seen, mut bad) = (BTreeSet::new(), BTreeSet::new());
        let served = manifest.live_commit(id);
        let newest = match lake.dataset_newest(id) {
            Ok(Some(newest)) => newest,
            Ok(None) => continue,
            Err(error) => {
                faults += 1;
                // Nothing is known of what it serves.
                damaged.insert(manifest.current_version.clone());
                tell_faults("dataset", name, &[error.to_string()], out)?;
                continue;
            }
        };
        let waits = served != newest.sequence;
        let last = newest.sequence;
        let found = verify_commit(lake, name, newest, waits, &mut seen, out)?;
        faults += found;
        if found > 0 {
            // Files that it shares with commits before are not looked at again.
            damaged.extend(versions_of(manifest, id, last));
            damaged.insert(manifest.current_version.clone());
        }
        let kept: BTreeSet<u64> = manifest.versions.iter().filter_map(|v| v.commits.get(&id).copied()).collect();
        for number in kept.into_iter().rev().filter(|number| *number != last) {
            let found = match lake.dataset_commit(id, number) {
                Ok(Some(commit)) if number == served => {
                    let found = verify_commit(lake, name, commit, false, &mut seen, out)?;
                    faults += found;
                    if found > 0 {
                        damaged.extend(versions_of(manifest, id, number));
                    }
                    continue;
                }
                // Older versions, which cursors may still use. Their suffix list may be gone, their hashes are not.
                Ok(Some(commit)) => {
                    let mut found = Vec::new();
                    let unseen =
                        commit.files.iter().filter(|f| seen.insert((f.path.clone(), commit.suffix_list.clone())));
                    trawl_store::verify_files(&**lake.store(), unseen, &mut |fault| {
                        found.push(fault.to_string());
                        bad.insert(fault.file);
                    })?;
                    // A file that a later commit has too was looked at there.
                    if commit.files.iter().any(|file| bad.contains(&file.path)) {
                        damaged.extend(versions_of(manifest, id, number));
                    }
                    found
                }
                Ok(None) => vec![format!("{}: a kept version serves it, but it is gone", path_of(id, number))],
                Err(error) => vec![error.to_string()],
            };
            faults += found.len() as u64;
            if !found.is_empty() {
                damaged.extend(versions_of(manifest, id, number));
            }
            tell_faults("dataset", name, &found, out)?;
        }
    }
    Ok(faults)
}

fn path_of(id: u32, commit: u64) -> String {
    layout::numbered(&layout::commits_dir(id), commit)
}

/// Reads the files of a commit that were not `seen` yet, row by row, under the list the commit names.
fn verify_commit(
    lake: &Lake,
    name: &str,
    mut commit: DatasetCommit,
    waits: bool,
    seen: &mut BTreeSet<(String, String)>,
    out: &mut Output,
) -> anyhow::Result<u64> {
    let (rows, bytes) = (commit.rows, commit.bytes);
    let list = commit.suffix_list.clone();
    commit.files.retain(|file| seen.insert((file.path.clone(), list.clone())));
    let own = if commit.files.is_empty() { None } else { Some(suffixes_of(lake, &list)) };
    let suffixes = match &own {
        None => SuffixList::builtin(),
        Some(Ok(suffixes)) => suffixes,
        Some(Err(error)) => {
            let path = path_of(commit.dataset_id, commit.sequence);
            tell_faults("dataset", name, &[format!("{path}: no list to check its rows by: {error:#}")], out)?;
            return Ok(1);
        }
    };
    let mut found = Vec::new();
    let checked = trawl_store::verify_dataset(&**lake.store(), &commit, suffixes, &mut |fault| {
        found.push(fault.to_string());
    });
    if let Err(error) = &checked {
        found.push(error.to_string());
    }
    tell_faults("dataset", name, &found, out)?;
    if let Ok(checked) = checked {
        let json = serde_json::json!({
            "type": "dataset", "dataset": name, "dataset_id": commit.dataset_id, "commit": commit.sequence,
            "waits": waits, "files": checked.files, "rows": rows, "faults": checked.faults,
        });
        out.fact(&json, |w| {
            let (rows, size) = (show_count(rows), show_bytes(bytes));
            let note = if waits { " (waits: not published)" } else { "" };
            writeln!(w, "dataset {name}: {rows} rows, {} files, {size}{note}", checked.files)
        })?;
    }
    Ok(found.len() as u64)
}

fn suffixes_of(lake: &Lake, hash: &str) -> anyhow::Result<SuffixList> {
    let list = SuffixListRef { path: layout::suffix_list(hash)?, hash: hash.to_owned() };
    Ok(SuffixList::parse(std::str::from_utf8(&lake.stored_suffix_list(&list)?)?)?)
}

fn verify_segments(
    lake: &Lake,
    manifest: &Manifest,
    bar: &Progress,
    damaged: &mut BTreeSet<String>,
    out: &mut Output,
) -> anyhow::Result<u64> {
    let mut faults = 0;
    let mut seen = BTreeSet::new();
    let segments = manifest.versions.iter().rev().flat_map(|version| &version.segments);
    for segment in segments.filter(|segment| seen.insert(&segment.id)) {
        bar.report(0, || format!("segment {}", segment.id));
        let mut found = Vec::new();
        let checked = trawl_index::verify_segment(lake.store(), segment, &mut |fault| found.push(fault.to_string()));
        if let Err(error) = &checked {
            found.push(error.to_string());
        }
        faults += found.len() as u64;
        if !found.is_empty() {
            let has = |version: &&Version| version.segments.iter().any(|s| s.id == segment.id);
            damaged.extend(manifest.versions.iter().filter(has).map(|version| version.version.clone()));
        }
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
