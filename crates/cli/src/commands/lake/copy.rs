//! `trawl lake copy` and `upgrade`.

use super::LakeArg;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::Context;
use std::path::PathBuf;
use trawl_store::Cancel;

/// Copies a lake: to make a backup, to restore one, or to move it between a directory and a bucket
///
/// The copy has the newest version of the lake: datasets, unpublished rows, rejects and the deny list. Others may write to the
/// lake meanwhile; the copy is consistent. Repeat the command to copy only what is new; `trawl lake gc` on the copy deletes
/// files that were replaced since. Each file is compared with its checksum in the lake.
///
/// Examples:
///   trawl lake copy lake s3://backups/lake
///   trawl lake copy s3://backups/lake restored
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CopyArgs {
    /// The lake: a directory or s3://bucket/prefix
    from: PathBuf,

    /// A new or empty place, or one that holds an earlier copy
    to: PathBuf,
}

pub(super) fn run(args: &CopyArgs, out: &mut Output) -> anyhow::Result<Status> {
    lake_dir::must_be_lake(&args.from)?;
    lake_dir::must_take_copy(&args.from, &args.to)?;
    let (from, to) = (lake_dir::store(&args.from)?, lake_dir::store(&args.to)?);
    if !args.to.to_str().is_some_and(trawl_store::is_remote) {
        // Otherwise a directory that cannot be made would look like a file that is gone.
        std::fs::create_dir_all(&args.to).with_context(|| format!("cannot make {}", args.to.display()))?;
    }
    let bar = Progress::start("copy", None, out.quiet());
    let tell = |done: u64, total: u64| bar.report(done, || format!("{} of {}", show_bytes(done), show_bytes(total)));
    let copied = trawl_maintain::copy(&from, &to, &system::now, &system::nonce()?, &Cancel::default(), &tell)?;
    drop(bar);
    out.fact(&copied, |w| {
        let (objects, bytes, unchanged) = (show_count(copied.objects), show_bytes(copied.bytes), copied.unchanged);
        writeln!(w, "copied {objects} object(s), {bytes}; {} were there already", show_count(unchanged))?;
        let state = if copied.up_to_date { "the copy was up to date with" } else { "the copy answers from" };
        let version = if copied.version.is_empty() { "no version yet" } else { &copied.version };
        writeln!(w, "{state} {version}")
    })?;
    Ok(Status::Done)
}

/// Upgrades a lake that an earlier version of Trawl wrote
///
/// Earlier versions kept commits, rejects and the deny list below urls/, where programs that scan for Parquet trip over
/// them. Nothing else may write to the lake meanwhile. If it is interrupted, run it again.
///
/// Example: trawl lake upgrade --lake lake
#[derive(Debug, clap::Args)]
pub struct UpgradeArgs {
    #[command(flatten)]
    lake: LakeArg,
}

pub(super) fn upgrade(args: &UpgradeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let store = lake_dir::store(&args.lake.lake)?;
    let done = trawl_maintain::upgrade(&store, system::now(), &system::nonce()?)?;
    out.fact(&done, |w| match done.was_old {
        true => writeln!(w, "moved {} file(s), {}", show_count(done.moved), show_bytes(done.bytes)),
        false => writeln!(w, "the lake needs no upgrade"),
    })?;
    Ok(Status::Done)
}
