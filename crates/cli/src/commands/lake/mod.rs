//! `trawl lake`: what a lake holds, bringing more into it, and looking after it.

mod compact;
mod copy;
mod covered;
mod dataset;
mod deny;
mod facts;
mod gc;
mod ingest;
mod job;
mod parts;
mod purge;
mod rebuild;
pub mod sources;
mod tell;
mod verify;

pub use ingest::{Added, Done, add};

use crate::exit::Status;
use crate::output::Output;
use crate::units::bytes;
use anyhow::{Context, bail};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use trawl_ingest::IngestSettings;
use trawl_store::Lake;

/// Adds URLs to a lake and maintains it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Ingest(ingest::IngestArgs),
    Publish(ingest::PublishArgs),
    Plan(job::PlanArgs),
    Task(job::TaskArgs),
    Commit(job::CommitArgs),
    Parts(parts::PartsArgs),
    Compact(compact::CompactArgs),
    Gc(gc::GcArgs),
    /// Lists the datasets with their rows and bytes
    ///
    /// Denied rows that are still in the files are counted separately. With --json it also prints who may see each dataset, and
    /// what else `trawl lake dataset set` sets.
    ///
    /// Example: trawl lake datasets --lake lake
    Datasets(LakeArg),
    /// Says how much a lake holds
    ///
    /// Denied rows that are still in the files are counted separately. The number of domains is exact once index segments are
    /// merged (`trawl lake compact --full`).
    ///
    /// Example: trawl lake stats --lake lake --json
    Stats(LakeArg),
    Dataset(dataset::DatasetArgs),
    Verify(verify::VerifyArgs),
    Rebuild(rebuild::RebuildArgs),
    Deny(deny::DenyArgs),
    Purge(purge::PurgeArgs),
    Drop(purge::DropArgs),
    Copy(copy::CopyArgs),
    Upgrade(copy::UpgradeArgs),
}

#[derive(Debug, clap::Args)]
pub struct LakeArg {
    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

impl Args {
    /// Whether it prints a listing.
    pub fn is_listing(&self) -> bool {
        match &self.command {
            Verb::Datasets(_) | Verb::Parts(_) => true,
            Verb::Deny(args) => args.is_listing(),
            _ => false,
        }
    }
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let done = match args.command {
        Verb::Ingest(args) => ingest::ingest(args, out),
        Verb::Publish(args) => ingest::publish_all(&args, out),
        Verb::Plan(args) => job::plan(args, out),
        Verb::Task(args) => job::task(&args, out),
        Verb::Commit(args) => job::commit(&args, out),
        Verb::Parts(args) => parts::run(&args, out),
        Verb::Compact(args) => compact::run(&args, out),
        Verb::Gc(args) => gc::run(&args, out),
        Verb::Datasets(args) => facts::datasets(&args.lake, out),
        Verb::Dataset(args) => dataset::run(&args, out),
        Verb::Stats(args) => facts::stats(&args.lake, out),
        Verb::Verify(args) => verify::run(&args, out),
        Verb::Rebuild(args) => rebuild::run(&args, out),
        Verb::Deny(args) => deny::run(args, out),
        Verb::Purge(args) => purge::purge(&args, out),
        Verb::Drop(args) => purge::drop_dataset(&args, out),
        Verb::Copy(args) => copy::run(&args, out),
        Verb::Upgrade(args) => copy::upgrade(&args, out),
    };
    done.map_err(explain)
}

/// Says what a lake holds, for `trawl inspect`.
pub fn describe(dir: &Path, out: &mut Output) -> anyhow::Result<()> {
    facts::stats(dir, out)?;
    facts::datasets(dir, out)?;
    Ok(())
}

/// Checks a lake, for `trawl verify`.
pub fn verify_in(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    verify::run(&verify::VerifyArgs::of(dir), out).map_err(explain)
}

/// Says what may have become of a file of the lake that is not there.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let is_gone = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<trawl_maintain::Error>().is_some_and(trawl_maintain::Error::is_not_found)
            || match cause.downcast_ref::<trawl_ingest::Error>() {
                Some(trawl_ingest::Error::Store(error)) => error.is_not_found(),
                _ => cause.downcast_ref::<trawl_store::Error>().is_some_and(trawl_store::Error::is_not_found),
            }
    };
    if !error.chain().any(is_gone) {
        return error;
    }
    error.context(
        "a file of the lake is gone: if `trawl lake gc` ran meanwhile with a short --grace, run this again; else see \
         `trawl lake verify`",
    )
}

/// Memory of commands that have no flag for it.
const MEMORY_BYTES: u64 = 1 << 30;

/// How much memory a command that writes files again may use.
#[derive(Debug, clap::Args)]
pub struct MemoryArg {
    /// Memory for sorting and encoding; less spills more to disk
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

impl MemoryArg {
    /// The memory, if work can be done in it: told before any work is.
    fn bytes(&self) -> anyhow::Result<u64> {
        let memory_bytes = usize::try_from(self.memory).context("--memory")?;
        IngestSettings { memory_bytes, ..IngestSettings::new("memory", PathBuf::new()) }.check()?;
        Ok(self.memory)
    }
}

/// The number of a dataset that was named, if one was.
fn id_of(lake: &Lake, name: Option<&str>) -> anyhow::Result<Option<u32>> {
    let manifest = lake.current()?;
    Ok(name.map(|name| trawl_maintain::dataset(&manifest, name).map(|dataset| dataset.id)).transpose()?)
}

/// Goes on only if `--yes` was said, or somebody at the terminal says so now.
fn confirm(what: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        bail!("{what} needs --yes; --dry-run prints what would be removed");
    }
    write!(std::io::stderr(), "{what}: continue? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { bail!("nothing was changed") }
}
