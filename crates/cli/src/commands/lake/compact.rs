//! `trawl lake compact`: fewer and larger files.

use super::tell::keep;
use super::{LakeArg, MemoryArg, id_of};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::units::bytes;
use trawl_maintain::Compact;

/// Merges small Parquet files and index segments into larger ones
///
/// Each ingest adds files, and queries read all of them. By default this merges the smallest neighbouring index segments when a
/// version has more than 8, and small Parquet files when a dataset has 8 or more. With --full it merges all segments into one,
/// so that counts of distinct URLs are exact, and all small files of each dataset; the segment of a very large lake is split by domain
/// prefix, except with --single. Answers stay the same; readers see either the
/// old or the new version. `trawl lake gc` deletes the old files.
///
/// Example: trawl lake compact --lake lake --full
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Merge everything that can be merged
    #[arg(long)]
    full: bool,

    /// With --full, write the index as one set of files that is not split by domain prefix
    #[arg(long, requires = "full")]
    single: bool,

    /// Merge only these: index segments or Parquet files
    #[arg(long, value_name = "WHAT")]
    only: Option<Only>,

    /// Merge Parquet files of this dataset only
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Parquet files below this size are small
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bytes)]
    small: u64,

    /// Print what would be merged, and change nothing
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
    let (dir, memory) = (&args.lake.lake, args.memory.bytes()?);
    let lake = lake_dir::open(dir)?;
    let what = Compact {
        full: args.full,
        single: args.single,
        files: args.only != Some(Only::Segments),
        segments: args.only != Some(Only::Files),
        dataset: id_of(&lake, args.dataset.as_deref())?,
        small: args.small,
        dry_run: args.dry_run,
    };
    if !keep(dir, memory, out, |keeper| keeper.compact(&lake, &what))? {
        out.fact(&serde_json::json!({ "type": "nothing" }), |w| writeln!(w, "nothing to merge"))?;
    }
    Ok(Status::Done)
}
