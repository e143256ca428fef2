//! `trawl lake rebuild`: the index anew, from the Parquet files alone.

use super::tell::keep;
use super::{LakeArg, MemoryArg};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::units::show_count;
use anyhow::Context;
use std::path::PathBuf;
use trawl_maintain::{Rebuild, is_lost};

/// Builds the index again from the Parquet files and commits
///
/// Use it when the index is damaged or lost; answers are the same as before. If all of index/ is lost, it restores the datasets
/// with their ids, names and access lists as of their last commit, and the deny list. If the lake used another suffix list than
/// the built-in one, also give --psl with that list.
///
/// With --psl FILE it assigns every row to its domain by another public suffix list: it writes the Parquet files again, and one
/// commit publishes the new files, their index and the list together. If that is interrupted, repeat it to continue, or run
/// `trawl lake rebuild` without --psl to undo it.
///
/// If a dataset has lost its newest commits, its files are no longer known, and rebuild refuses: restore the commits from a copy,
/// or continue from the newest commit that is left with --accept-loss, and ingest the later sources again.
///
/// Examples:
///   trawl lake rebuild --lake lake
///   trawl lake rebuild --lake lake --psl public_suffix_list.dat
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct RebuildArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Public suffix list for the lake to use from now on
    #[arg(long, value_name = "FILE")]
    psl: Option<PathBuf>,

    /// Continue without lost commits: the rows they added are lost (exit code 1)
    #[arg(long)]
    accept_loss: bool,

    #[command(flatten)]
    memory: MemoryArg,
}

pub(super) fn run(args: &RebuildArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    // A wrong size or list is reported before anything is done.
    let memory = args.memory.bytes()?;
    let list =
        args.psl.as_ref().map(|file| std::fs::read(file).with_context(|| format!("cannot read {}", file.display())));
    let list = list.transpose()?;
    let store = lake_dir::store(dir)?;
    if !is_lost(&*store)? {
        lake_dir::must_be_lake(dir)?;
    }
    let what = Rebuild { list: list.as_deref(), accept_loss: args.accept_loss };
    let rebuilt = keep(dir, memory, out, |keeper| keeper.rebuild(store, &what))?;
    let (built, hash) = (rebuilt.published, rebuilt.list.hash);
    let meta = built.segment.as_ref();
    let json = serde_json::json!({
        "type": "index", "version": built.version, "suffix_list": hash, "commits": built.commits,
        "segment": meta.map(|m| &m.id), "domains": meta.map_or(0, |m| m.domains), "rows": meta.map_or(0, |m| m.rows),
    });
    out.fact(&json, |w| {
        match meta {
            Some(m) => writeln!(w, "index: {} domains, {} rows", show_count(m.domains), show_count(m.rows))?,
            None => writeln!(w, "index: no rows")?,
        }
        writeln!(w, "suffix list {hash}")?;
        match &built.version {
            Some(version) => writeln!(w, "published version {version}"),
            None => writeln!(w, "nothing to publish"),
        }
    })?;
    Ok(Status::from_findings(rebuilt.lost > 0))
}
