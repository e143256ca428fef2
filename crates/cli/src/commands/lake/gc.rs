//! `trawl lake gc`: takes away what no kept version needs.

use super::{LakeArg, confirm};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{duration, show_bytes, show_count};
use crate::{lake_dir, system};
use std::io::Write;
use std::time::Duration;
use trawl_maintain::{GcReport, GcSettings, collect, temp};

/// Deletes files that no kept version needs
///
/// Deletes files that were replaced, merged or purged, old versions and states, and what writers that died left behind. Keeps
/// the newest versions, and everything that was current within the grace period, so that it disturbs no running reader or
/// writer. With --grace 0s it may delete files of a running ingest, which then fails and must be repeated. Needs --yes;
/// --dry-run lists what would be deleted. The second example deletes everything old, as after a purge.
///
/// Examples:
///   trawl lake gc --lake lake --dry-run
///   trawl lake gc --lake lake --keep-versions 1 --keep-states 1 --grace 0s --yes
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct GcArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// How many of the newest versions to keep
    #[arg(long, value_name = "N", default_value_t = 10)]
    keep_versions: usize,

    /// How many of the newest manifests and dataset commits to keep (not the files they name)
    #[arg(long, value_name = "N", default_value_t = 100)]
    keep_states: u64,

    /// Keep versions, states and heartbeats that are younger than this
    #[arg(long, default_value = "1d", value_name = "DURATION", value_parser = duration)]
    grace: Duration,

    /// List what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,

    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &GcArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = lake_dir::open(dir)?;
    if !args.dry_run {
        confirm(&format!("deleting from the lake in {}", dir.display()), args.yes)?;
    }
    let settings = GcSettings {
        keep_versions: args.keep_versions,
        keep_states: args.keep_states,
        grace_ms: i64::try_from(args.grace.as_millis()).unwrap_or(i64::MAX),
        dry_run: args.dry_run,
        ..GcSettings::new(system::nonce()?)
    };
    let bar = Progress::start("gc", None, out.quiet());
    bar.report(0, || "listing".to_owned());
    let mut report = collect(&lake, system::now(), &settings)?;
    report.leftovers += temp::leftovers(&lake_dir::temp(dir), !args.dry_run)?;
    drop(bar);
    if args.dry_run {
        for object in &report.gone {
            let json = serde_json::json!({ "type": "object", "path": object.path, "bytes": object.len });
            out.fact(&json, |w| writeln!(w, "{:>12}  {}", show_bytes(object.len), object.path))?;
        }
    }
    let mut json = serde_json::to_value(&report)?;
    json["type"] = "summary".into();
    json["dry_run"] = args.dry_run.into();
    out.fact(&json, |w| write_report(&report, args.dry_run, w))?;
    Ok(Status::Done)
}

fn write_report(report: &GcReport, dry_run: bool, w: &mut dyn Write) -> std::io::Result<()> {
    let verb = if dry_run { "would delete" } else { "deleted" };
    let (objects, size) = (show_count(report.objects), show_bytes(report.bytes));
    writeln!(w, "{verb} {objects} objects, {size}; {} stay", show_count(report.kept))?;
    for version in &report.versions {
        writeln!(w, "  version {version}")?;
    }
    for writer in &report.writers {
        writeln!(w, "  writer {writer} sent no heartbeat: treated as dead")?;
    }
    for id in &report.strangers {
        writeln!(w, "  kept urls/dataset_id={id}: it has commits, but the manifest does not list the dataset")?;
    }
    for error in &report.damaged {
        writeln!(w, "  kept all files of a dataset, because one of its commits is damaged or missing: {error}")?;
    }
    for path in &report.foreign {
        writeln!(w, "  left alone {path}: it does not belong to a lake")?;
    }
    if report.leftovers > 0 {
        writeln!(w, "  {} half-written file(s)", show_count(report.leftovers))?;
    }
    Ok(())
}
