//! `trawl lake purge` and `drop`: taking data out of a lake for good.

use super::tell::{holds, keep};
use super::{LakeArg, MEMORY_BYTES, MemoryArg, confirm, id_of};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use trawl_maintain::Event;

const AFTER: &str = "the old bytes stay for readers of older versions: while nothing else writes, \
                     `trawl lake gc --keep-versions 1 --keep-states 1 --grace 0s --yes` deletes them now";

/// Removes denied rows from the files of a lake
///
/// Rewrites the Parquet files and the rejects without rows of denied URLs, prefixes and domains, drops denied datasets, and
/// indexes what remains. The old files stay on disk until `trawl lake gc` deletes them. Entries stay on the deny list, so that
/// a later ingest does not bring the rows back. Needs --yes; --dry-run counts what would be removed.
///
/// Example: trawl lake purge --lake lake --dry-run
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// This dataset only
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Count what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Purge without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    memory: MemoryArg,
}

/// Drops a dataset from the lake
///
/// No query returns it any more. `trawl lake gc` deletes its files later. Its number is never used again; its name is free.
/// Needs --yes.
///
/// Example: trawl lake drop --lake lake old-list --yes
#[derive(Debug, clap::Args)]
pub struct DropArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name or number of the dataset
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Print what would be dropped, and change nothing
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
    let dataset = trawl_maintain::dataset(&manifest, &args.dataset)?;
    let would = keep(dir, MEMORY_BYTES, out, |keeper| {
        let would = keeper.would_drop(&lake, dataset.id)?;
        if args.dry_run {
            (keeper.tell)(Event::Dropped(would.clone()));
        }
        Ok(would)
    })?;
    if args.dry_run {
        return Ok(Status::Done);
    }
    confirm(&format!("dropping dataset {} ({})", dataset.info.name, holds(&would)), args.yes)?;
    keep(dir, MEMORY_BYTES, out, |keeper| keeper.drop_dataset(&lake, dataset.id))?;
    out.remark(AFTER);
    Ok(Status::Done)
}

pub(super) fn purge(args: &PurgeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let (dir, memory) = (&args.lake.lake, args.memory.bytes()?);
    let lake = lake_dir::open(dir)?;
    if !args.dry_run {
        confirm(&format!("purging {} denied entries", lake.current()?.deny.len()), args.yes)?;
    }
    let dataset = id_of(&lake, args.dataset.as_deref())?;
    if !keep(dir, memory, out, |keeper| keeper.purge(&lake, dataset, args.dry_run))? {
        out.fact(&serde_json::json!({ "type": "nothing" }), |w| writeln!(w, "the files contain no denied rows"))?;
    } else if !args.dry_run {
        out.remark(AFTER);
    }
    Ok(Status::Done)
}
