//! `trawl seqdb`: containers and their file systems.

mod check;
mod create;
mod entries;
mod fs;
mod fs_edit;
mod fs_whole;
mod input;
mod superblock;
mod text;

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::bytes;
use anyhow::Context;
use trawl_seqdb::{Clock, Settings, SyncPolicy};

/// Works with seqdb containers: kvseq, hindex and perm files, and filesys
///
/// A kvseq is a sequence of keys and values, a hindex finds keys in it, a perm groups them. A filesys keeps many files
/// in a few large ones, without crowding the page cache. Exit code 1 when a key or file is not there, or a check found
/// faults.
#[derive(Debug, clap::Args)]
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
    List(entries::ListArgs),
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
    match args.command {
        Verb::Superblock(args) => superblock::run(args, &settings, out),
        Verb::Create(args) => create::run(args, &settings, out),
        Verb::Add(args) => entries::add(args, &settings, out),
        Verb::List(args) => entries::list(args, &settings, out),
        Verb::Get(args) => entries::get(args, &settings, out),
        Verb::Delete(args) => entries::delete(args, &settings, out),
        Verb::Group(args) => entries::group(args, &settings, out),
        Verb::Checkpoint(args) => check::checkpoint(args, &settings, out),
        Verb::Rollback(args) => check::rollback(args, &settings, out),
        Verb::IndexRebuild(args) => check::index_rebuild(args, &settings, out),
        Verb::Check(args) => check::check(args, &settings, out),
        Verb::Compact(args) => check::compact(args, &settings, out),
        Verb::Fs(args) => fs::run(args, &settings, out),
        Verb::Page(args) => fs_whole::page(args, &settings, out),
    }
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        let holder = trawl_io::describe_holder("trawl seqdb", &system::now().rfc3339_seconds());
        let memory = usize::try_from(self.memory).context("--memory")?;
        Ok(Settings {
            data_caching: !self.no_cache,
            index_caching: !self.no_cache,
            big_readahead: self.no_cache,
            index_memory_bytes: self.memory,
            sort_memory_bytes: memory,
            sync: match self.sync {
                Sync::Full => SyncPolicy::Full,
                Sync::Data => SyncPolicy::Data,
                Sync::Off => SyncPolicy::Off,
            },
            ..Settings::new(Clock::new(system::now), holder)
        })
    }
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
