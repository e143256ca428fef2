//! `trawl lake`: what a lake holds, bringing more into it, and looking after it.

mod compact;
mod dataset;
mod deny;
mod facts;
mod gc;
mod ingest;
mod purge;
mod rebuild;
mod sources;
mod temp;
mod verify;

pub use ingest::{Added, Done, add};

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::{bytes, show_count};
use anyhow::{Context, bail};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use temp::temp_dir;
use trawl_index::{BuildOptions, Published};
use trawl_ingest::{IngestSettings, RewriteReport, Stage};
use trawl_query::dataset_number;
use trawl_store::{Dataset, Lake, Manifest};

/// Brings URLs into a lake and looks after it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Ingest(ingest::IngestArgs),
    Publish(ingest::PublishArgs),
    Compact(compact::CompactArgs),
    Gc(gc::GcArgs),
    /// Lists the datasets with their rows and bytes
    ///
    /// Rows are those that are shown; denied ones that are still in the files are told apart. With --json also who may see
    /// each, and what else `trawl lake dataset set` sets.
    ///
    /// Example: trawl lake datasets --lake lake
    Datasets(LakeArg),
    /// Says how much a lake holds
    ///
    /// Rows are those that are shown; denied ones that are still in the files are told apart. Domains are exact once
    /// segments are merged.
    ///
    /// Example: trawl lake stats --lake lake --json
    Stats(LakeArg),
    Dataset(dataset::DatasetArgs),
    Verify(verify::VerifyArgs),
    Rebuild(rebuild::RebuildArgs),
    Deny(deny::DenyArgs),
    Purge(purge::PurgeArgs),
    Drop(purge::DropArgs),
}

#[derive(Debug, clap::Args)]
pub struct LakeArg {
    /// Directory of the lake
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let done = match args.command {
        Verb::Ingest(args) => ingest::ingest(args, out),
        Verb::Publish(args) => ingest::publish_all(&args, out),
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
    };
    done.map_err(explain)
}

/// Says what may have become of a file of the lake that is not there.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let is_gone = |cause: &(dyn std::error::Error + 'static)| {
        let stored = match (cause.downcast_ref(), cause.downcast_ref()) {
            (Some(trawl_index::Error::File(error)), _) => return error.is_not_found(),
            (Some(trawl_index::Error::Store(error)), _) | (_, Some(trawl_ingest::Error::Store(error))) => Some(error),
            _ => cause.downcast_ref::<trawl_store::Error>(),
        };
        stored.is_some_and(trawl_store::Error::is_not_found)
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

/// Settings of a writer that rewrites files of the lake.
fn rewrite_settings(dir: &Path, memory: u64) -> anyhow::Result<IngestSettings> {
    let memory_bytes = usize::try_from(memory).context("--memory")?;
    Ok(IngestSettings { memory_bytes, ..IngestSettings::new(system::nonce()?, temp_dir(dir, None)?) })
}

/// Settings of a writer that makes index segments: they need less than rows do, and are made after them.
fn build_options(dir: &Path, memory: u64) -> anyhow::Result<BuildOptions> {
    let mut options = BuildOptions::new(temp_dir(dir, None)?);
    options.memory_bytes = options.memory_bytes.min(usize::try_from(memory).unwrap_or(usize::MAX));
    Ok(options)
}

/// What a rewrite did; nothing, if the dataset was dropped meanwhile.
fn unless_dropped(done: trawl_ingest::Result<RewriteReport>) -> trawl_ingest::Result<RewriteReport> {
    use trawl_store::Error::{Dropped, UnknownDataset};
    match done {
        Err(trawl_ingest::Error::Store(Dropped { .. } | UnknownDataset { .. })) => Ok(RewriteReport::default()),
        done => done,
    }
}

/// How far an ingest or a rewrite is, for a progress line.
fn show_ingest(bar: &Progress, p: trawl_ingest::Progress) {
    bar.report(p.done, || {
        let stage = match p.stage {
            Stage::Reading => "reading",
            Stage::Writing => "writing",
            Stage::Committing => "committing",
        };
        format!("{stage} {}%, {} rows", (100 * p.done).checked_div(p.total).unwrap_or(0), show_count(p.rows))
    });
}

/// How far an index is, for a progress line.
fn show_index(bar: &Progress, p: trawl_index::Progress) {
    match p {
        trawl_index::Progress::Scan { rows, total } => {
            bar.report(rows, || format!("{} of {} rows", show_count(rows), show_count(total)));
        }
        trawl_index::Progress::Assemble { .. } => bar.report(0, || "writing".to_owned()),
    }
}

/// Makes a version of everything that is committed.
fn publish(lake: &Lake, dir: &Path, memory: u64, out: &Output) -> anyhow::Result<Published> {
    let options = build_options(dir, memory)?;
    let bar = Progress::start("index", None, out.quiet());
    let published = trawl_index::publish(lake, &system::now, &system::nonce()?, &options, &|p| show_index(&bar, p))?;
    for id in &published.waiting {
        out.remark(&format!(
            "dataset {id} has rows cut by another suffix list than the lake's: `trawl lake rebuild` brings them in"
        ));
    }
    for (id, error) in &published.damaged {
        out.remark(&format!(
            "dataset {id} is served as it was, since its newest commit is damaged: {error}; put that file back from a \
             backup, or drop the dataset and ingest it again"
        ));
    }
    if let Some(error) = &published.tidy_error {
        out.remark(&format!("published, but index segments could not be merged: {error}"));
    }
    Ok(published)
}

/// The dataset of this name or number.
fn dataset<'a>(manifest: &'a Manifest, text: &str) -> anyhow::Result<&'a Dataset> {
    if let Some(named) = manifest.dataset_named(text) {
        return Ok(named);
    }
    let numbered = dataset_number(text).and_then(|id| manifest.dataset(id)).filter(|dataset| !dataset.dropped);
    numbered.with_context(|| {
        let there = manifest.datasets.iter().filter(|d| !d.dropped).map(|d| d.info.name.as_str());
        format!("there is no dataset {text:?}; there are: {}", there.collect::<Vec<_>>().join(", "))
    })
}

/// The datasets that are there, or the one asked for.
fn datasets(manifest: &Manifest, wanted: Option<&str>) -> anyhow::Result<Vec<(u32, String)>> {
    let pair = |d: &Dataset| (d.id, d.info.name.clone());
    Ok(match wanted {
        Some(name) => vec![pair(dataset(manifest, name)?)],
        None => manifest.datasets.iter().filter(|d| !d.dropped).map(pair).collect(),
    })
}

/// Goes on only if `--yes` was said, or somebody at the terminal says so now.
fn confirm(what: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        bail!("{what} needs --yes; --dry-run tells what would go");
    }
    write!(std::io::stderr(), "{what}: go on? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { bail!("nothing was changed") }
}
