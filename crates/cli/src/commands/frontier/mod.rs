//! `trawl frontier`: partition files of the frontier.

mod bench;
mod carry;
mod diff;
mod engine;
mod files;
mod inspect;
mod map;
mod merge;
mod pack;
mod reopened;
mod requests;
mod schedule;
mod seed;
mod settings;
mod stats;

use crate::exit::Status;
use crate::output::Output;
use crate::system;
use anyhow::Context;
use std::path::{Path, PathBuf};
use trawl_meguri::MeguriFile;
use trawl_meguri::seed::hour_of;
use trawl_model::UnixMillis;

/// Works with frontiers and their files: what to fetch next, and when
///
/// `run` serves the frontier in a directory to another program, `pack` writes it as one file. A `.meguri` file contains
/// every URL of a range of hosts, with its state. It never changes: merge, split and compact write new files. Hours are
/// counted from 1970. Exit code 1 when nothing was found or two files differ.
///
/// Examples:
///   trawl frontier seed urls.txt --out seeds.meguri
///   trawl frontier inspect seeds.meguri
///   trawl frontier schedule seeds.meguri --host example.com --limit 10
///   trawl frontier merge base.meguri run-1.meguri run-2.meguri --out merged.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Seed(seed::SeedArgs),
    Run(engine::RunArgs),
    Pack(pack::PackArgs),
    Bench(bench::BenchArgs),
    Inspect(inspect::InspectArgs),
    Diff(diff::DiffArgs),
    Schedule(schedule::ScheduleArgs),
    Stats(stats::StatsArgs),
    Map(map::MapArgs),
    Split(files::SplitArgs),
    Merge(merge::MergeArgs),
    Compact(merge::CompactArgs),
}

impl Args {
    /// Whether it prints a listing.
    pub fn is_listing(&self) -> bool {
        matches!(self.command, Verb::Schedule(_) | Verb::Map(_))
    }
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Seed(args) => seed::run(args, out),
        Verb::Run(args) => engine::run(&args, out),
        Verb::Pack(args) => pack::run(&args, out),
        Verb::Bench(args) => bench::run(&args, out),
        Verb::Inspect(args) => inspect::run(&args, out),
        Verb::Diff(args) => diff::run(&args, out),
        Verb::Schedule(args) => schedule::run(&args, out),
        Verb::Stats(args) => stats::run(&args, out),
        Verb::Map(args) => map::run(&args, out),
        Verb::Split(args) => files::split(&args, out),
        Verb::Merge(args) => merge::merge(&args, out),
        Verb::Compact(args) => merge::compact(&args, out),
    }
}

/// The file named by itself or by `--data`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Data {
    /// The file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The same, by name
    #[arg(long, value_name = "FILE", hide = true)]
    data: Option<PathBuf>,
}

impl Data {
    fn open(&self) -> anyhow::Result<MeguriFile> {
        let path = self.file.as_deref().or(self.data.as_deref()).context("no file was named")?;
        open(path)
    }
}

fn open(path: &Path) -> anyhow::Result<MeguriFile> {
    Ok(MeguriFile::open_path(path)?)
}

/// What [`parse_hour`] accepts.
const HOUR: &str = "an hour since 1970 (0 is now), or a time as 2026-11-16T12:00:00Z";

/// An hour since 1970, or a time that falls into it; 0 is now.
pub fn parse_hour(text: &str) -> Result<u32, String> {
    if text.bytes().all(|b| b.is_ascii_digit()) && text.len() < 12 {
        return match text.parse() {
            Ok(0) => Ok(hour_of(system::now())),
            Ok(hour) => Ok(hour),
            Err(_) => Err(format!("expected {HOUR}, found {text:?}")),
        };
    }
    UnixMillis::parse(text).map(hour_of).map_err(|_| format!("expected {HOUR}, found {text:?}"))
}
