//! `trawl seqdb`: containers and their file systems.

mod check;
mod create;
mod entries;
mod fs;
mod fs_copy;
mod fs_edit;
mod fs_whole;
mod input;
mod list;
mod superblock;

use crate::containers;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::bytes;
use anyhow::{Context, bail};
use std::path::Path;
use trawl_seqdb::{BundleFiles, Error, FsPaths, Settings, SyncPolicy, filesys_of};

/// Works with seqdb containers: kvseq, hindex and perm files, and filesys
///
/// A kvseq is a sequence of keys and values, a hindex finds keys in it, a perm groups them. A filesys keeps many files
/// in a few large ones, without crowding the page cache. Exit code 1 when a key or file is not there, or a check found
/// faults.
///
/// Examples:
///   trawl seqdb create kvseq words.kvseq
///   trawl seqdb create hindex words.hindex --container words.kvseq
///   trawl seqdb add words.kvseq --index words.hindex apple red
///   trawl seqdb get words.kvseq --index words.hindex apple
///   trawl seqdb fs create base/docs && trawl seqdb fs import base/docs ./html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    common: Common,

    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Leave nothing in the page cache that was only written or read through
    #[arg(long, global = true)]
    no_cache: bool,

    /// What is made durable: everything, data only (indexes when closed), or nothing
    #[arg(long, global = true, value_enum, default_value = "full", value_name = "WHAT")]
    sync: Sync,

    /// Let readers see what was added after so many entries; 0: when a buffer of 1 MiB is full
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    flush_every: u64,

    /// Memory for sorting and for cells of an index
    #[arg(long, global = true, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Sync {
    Full,
    Data,
    Off,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Superblock(superblock::SuperblockArgs),
    Create(create::CreateArgs),
    Add(entries::AddArgs),
    List(list::ListArgs),
    Get(entries::GetArgs),
    Delete(entries::DeleteArgs),
    Group(entries::GroupArgs),
    Checkpoint(check::CheckpointArgs),
    Rollback(check::RollbackArgs),
    IndexRebuild(check::IndexRebuildArgs),
    Check(check::CheckArgs),
    Compact(check::CompactArgs),
    Fs(fs::FsArgs),
    Page(fs_whole::PageArgs),
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let settings = args.common.settings()?;
    let done = act(args.command, &settings, out);
    // What is wrong is said by the library, what to do about it here.
    done.map_err(|error| match error.downcast_ref() {
        Some(Error::NeedsCheck { path, .. }) => {
            anyhow::anyhow!("{error}: `trawl seqdb check {} --repair`", path.display())
        }
        _ => error,
    })
}

fn act(command: Verb, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    match command {
        Verb::Superblock(args) => superblock::run(args, settings, out),
        Verb::Create(args) => create::run(args, settings, out),
        Verb::Add(args) => entries::add(args, settings, out),
        Verb::List(args) => list::list(args, settings, out),
        Verb::Get(args) => entries::get(args, settings, out),
        Verb::Delete(args) => entries::delete(args, settings, out),
        Verb::Group(args) => entries::group(args, settings, out),
        Verb::Checkpoint(args) => check::checkpoint(args, settings, out),
        Verb::Rollback(args) => check::rollback(args, settings, out),
        Verb::IndexRebuild(args) => check::index_rebuild(args, settings, out),
        Verb::Check(args) => check::check(args, settings, out),
        Verb::Compact(args) => check::compact(args, settings, out),
        Verb::Fs(args) => fs::run(args, settings, out),
        Verb::Page(args) => fs_whole::page(args, settings, out),
    }
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        let memory = usize::try_from(self.memory).context("--memory")?;
        Ok(Settings {
            data_caching: !self.no_cache,
            index_caching: !self.no_cache,
            big_readahead: self.no_cache,
            flush_every: self.flush_every,
            index_memory_bytes: self.memory,
            sort_memory_bytes: memory,
            sync: match self.sync {
                Sync::Full => SyncPolicy::Full,
                Sync::Data => SyncPolicy::Data,
                Sync::Off => SyncPolicy::Off,
            },
            ..containers::settings("trawl seqdb")
        })
    }
}

/// Refuses to change a single file of a filesys: the others would no longer fit.
fn expect_no_filesys(path: &Path, settings: &Settings) -> anyhow::Result<()> {
    match filesys_of(path, settings)? {
        Some(paths) => {
            let fs = FsPaths::base(&paths).join(paths.name());
            bail!("{} belongs to the filesys {}: see `trawl seqdb fs`", path.display(), fs.display())
        }
        None => Ok(()),
    }
}

/// The same for files that belong to a kvseq.
fn expect_no_filesys_among(files: &BundleFiles, settings: &Settings) -> anyhow::Result<()> {
    let mut all = [&files.kvseq].into_iter().chain(&files.indexes).chain(&files.perm);
    all.try_for_each(|path| expect_no_filesys(path, settings))
}

/// A random positive number that ties the files of a filesys together.
fn fsgen() -> anyhow::Result<i64> {
    let [a, b, c, d, e, f, g, h, ..] = system::random_bytes()?;
    Ok((i64::from_be_bytes([a, b, c, d, e, f, g, h]) & i64::MAX).max(1))
}

/// Shows the library's progress on one line.
fn reporter(label: &str, out: &Output) -> impl Fn(trawl_seqdb::Progress) + use<> {
    let bar = Progress::start(label, None, out.quiet());
    move |p| bar.report(p.done, || format!("{} {} of {}", p.stage, p.done, p.total))
}
