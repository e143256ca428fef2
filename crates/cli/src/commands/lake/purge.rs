//! `trawl lake purge` and `drop`: taking data out of a lake for good.

use super::compact::merge_segments;
use super::deny::suffixes;
use super::{
    LakeArg, MEMORY_BYTES, MemoryArg, confirm, dataset, datasets, publish, rewrite_settings, show_ingest,
    unless_dropped,
};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use crate::{lake_dir, system};
use trawl_index::Compaction;
use trawl_ingest::{Files, Losses, Rewrite, losses, lost_rejects, purge_rejects, rewrite};
use trawl_model::UrlRecord;
use trawl_store::denial::Denied;
use trawl_store::{DataFile, Lake, Manifest};

const AFTER: &str = "the old bytes stay for readers of older versions: \
                     `trawl lake gc --keep-versions 1 --keep-states 1 --grace 0s --yes` takes them away now, while nothing else writes";

/// Writes files again without what the deny list names
///
/// Rows of denied URLs, prefixes and domains leave the Parquet files and the rejects; denied datasets are dropped; the
/// index is made without them. The bytes are gone once `trawl lake gc` has taken the old files. Entries stay on the deny
/// list, so that a later ingest does not bring them back. Needs --yes; --dry-run counts what would go.
///
/// Example: trawl lake purge --lake lake --dry-run
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// This dataset only
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Count what would go, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Purge without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    memory: MemoryArg,
}

/// Drops a dataset: it is answered nowhere any more
///
/// Its files go with a later `trawl lake gc`; its number is never used again, its name is free. Needs --yes.
///
/// Example: trawl lake drop --lake lake old-list --yes
#[derive(Debug, clap::Args)]
pub struct DropArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name or number of the dataset
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Tell what would go, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Drop without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn drop_dataset(args: &DropArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = lake_dir::open(dir)?;
    let manifest = lake.current()?;
    let (id, name) = {
        let dataset = dataset(&manifest, &args.dataset)?;
        (dataset.id, dataset.info.name.clone())
    };
    let (commit, damage) = match lake.dataset_newest(id) {
        Err(error @ (trawl_store::Error::Corrupt { .. } | trawl_store::Error::Lost { .. })) => {
            (None, format!(" that can be read ({error})"))
        }
        commit => (commit?, String::new()),
    };
    let (rows, files, bytes) = commit.map_or((0, 0, 0), |c| (c.rows, c.files.len(), c.bytes));
    let holds = format!("{} rows, {files} files, {}{damage}", show_count(rows), show_bytes(bytes));
    let json = serde_json::json!({
        "type": "dropped", "dataset": name, "dataset_id": id, "rows": rows, "files": files, "bytes": bytes,
        "dry_run": args.dry_run,
    });
    if args.dry_run {
        out.fact(&json, |w| writeln!(w, "would drop dataset {name}: {holds}"))?;
        return Ok(Status::Done);
    }
    confirm(&format!("dropping dataset {name} ({holds})"), args.yes)?;
    lake.drop_dataset(system::now(), &system::nonce()?, id)?;
    publish(&lake, dir, MEMORY_BYTES, out)?;
    out.fact(&json, |w| writeln!(w, "dropped dataset {name}: {holds}"))?;
    // Its names go too, not only its rows.
    while merge_segments(&lake, dir, Compaction::Masked, MEMORY_BYTES, out)? {}
    out.remark(AFTER);
    Ok(Status::Done)
}

pub(super) fn purge(args: &PurgeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let memory = args.memory.bytes()?;
    let lake = lake_dir::open(dir)?;
    let manifest = lake.current()?;
    if !args.dry_run {
        confirm(&format!("purging {} denied thing(s)", manifest.deny.len()), args.yes)?;
    }
    let suffixes = suffixes(&lake, &manifest)?;
    let denied = Denied::new(&manifest, &suffixes);
    let mut any = false;
    for (id, name) in datasets(&manifest, args.dataset.as_deref())? {
        any |= if denied.list().dataset(id) {
            purge_whole(&lake, id, &name, args.dry_run, out)?
        } else {
            purge_rows(&lake, &manifest, args, (id, &name), &denied, out)?
        };
    }
    if !any {
        out.fact(&serde_json::json!({ "type": "nothing" }), |w| writeln!(w, "nothing denied is in the files"))?;
        return Ok(Status::Done);
    }
    if !args.dry_run {
        publish(&lake, dir, memory, out)?;
        // Segments that still answer for others hold names and paths of what went.
        while merge_segments(&lake, dir, Compaction::Masked, memory, out)? {}
        out.remark(AFTER);
    }
    Ok(Status::Done)
}

fn purge_whole(lake: &Lake, id: u32, name: &str, dry_run: bool, out: &mut Output) -> anyhow::Result<bool> {
    let rows = lake.dataset_newest(id)?.map_or(0, |commit| commit.rows);
    if !dry_run {
        lake.drop_dataset(system::now(), &system::nonce()?, id)?;
    }
    let json = serde_json::json!({
        "type": "dropped", "dataset": name, "dataset_id": id, "rows": rows, "dry_run": dry_run,
    });
    out.fact(&json, |w| {
        let verb = if dry_run { "would drop" } else { "dropped" };
        writeln!(w, "{name}: denied whole, {verb} {} rows", show_count(rows))
    })?;
    Ok(true)
}

fn purge_rows(
    lake: &Lake,
    manifest: &Manifest,
    args: &PurgeArgs,
    (id, name): (u32, &str),
    denied: &Denied<'_>,
    out: &mut Output,
) -> anyhow::Result<bool> {
    let keep = |record: &UrlRecord| denied.keeps(&record.url);
    // Files that a change of lists left half done are cut by another list: then any may hold anything.
    let hash = manifest.suffix_list.as_ref().map(|list| list.hash.as_str());
    let other_list = lake.dataset_newest(id)?.is_some_and(|commit| Some(commit.suffix_list.as_str()) != hash);
    let may = |file: &DataFile| other_list || denied.may_be_in(file);
    let keep_reject = |line: &str| denied.keeps_reject(line);
    let bar = Progress::start(&format!("purge {name}"), None, out.quiet());
    let (lost, rejects) = if args.dry_run {
        (losses(lake, id, &keep, &may)?, lost_rejects(lake, id, &keep_reject)?)
    } else {
        let settings = rewrite_settings(&args.lake.lake, args.memory.bytes()?)?;
        let what = Rewrite { keep: &keep, files: Files::Losing(&may), suffix_list: None };
        let report = unless_dropped(rewrite(lake, id, &what, &settings, &system::now, &|p| show_ingest(&bar, p)))?;
        let rejects = purge_rejects(lake, id, &settings.writer, &keep_reject)?;
        (Losses { files: report.files_before, rows: report.rows_before - report.rows_after }, rejects)
    };
    drop(bar);
    if lost == Losses::default() && rejects == 0 {
        return Ok(false);
    }
    let json = serde_json::json!({
        "type": "purged", "dataset": name, "dataset_id": id, "rows": lost.rows, "files": lost.files,
        "rejects": rejects, "dry_run": args.dry_run,
    });
    out.fact(&json, |w| {
        let verb = if args.dry_run { "would take" } else { "took" };
        writeln!(w, "{name}: {verb} {} rows out of {} file(s)", show_count(lost.rows), show_count(lost.files))?;
        if rejects > 0 { writeln!(w, "{name}: and {} rejected lines", show_count(rejects)) } else { Ok(()) }
    })?;
    Ok(true)
}
