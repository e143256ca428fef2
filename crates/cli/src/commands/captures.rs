//! `trawl captures`: the index of a crawl.

use super::copies;
use super::kinds::refuse_stdin;
use crate::exit::Status;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::target::{refuse_archive, refuse_inputs};
use crate::units::show_count;
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{CapturesReader, CapturesWriter, export_common_crawl, rebuild_index};
use trawl_io::{Fs, LockFile, RealFs, describe_holder};

/// Rebuilds and exports captures.parquet
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Rebuild(RebuildArgs),
    Export(ExportArgs),
}

/// Builds captures.parquet again from the archives
///
/// The archives hold everything the index needs, failed fetches and the metadata of seeds included. Resources, conversions and
/// responses that are not HTTP get a row as well, as in an ingest; all other records are counted by type. An existing index is
/// replaced when the new one is complete. Exit code 1 when something could not be read, or when captures may
/// be in it twice.
///
/// Example: trawl captures rebuild crawl/
#[derive(Debug, clap::Args)]
struct RebuildArgs {
    /// Directory of the archives
    dir: PathBuf,

    /// Write to this file instead of captures.parquet in the directory
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes an index with the column names of Common Crawl
///
/// Example: trawl captures export crawl/captures.parquet cc-index.parquet
#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// A captures.parquet
    index: PathBuf,

    /// The file to write
    target: PathBuf,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Rebuild(args) => rebuild_of(&args, out),
        Verb::Export(args) => {
            refuse_inputs(&args.target, [&*args.index])?;
            refuse_archive(&args.target)?;
            if args.index.is_dir() {
                let (dir, index) = (args.index.display(), args.index.join("captures.parquet"));
                bail!("{dir} is a directory: name the index in it ({})", index.display());
            }
            let fs: Arc<dyn Fs> = Arc::new(RealFs);
            let rows = export_common_crawl(&fs, &args.target, CapturesReader::open(&args.index)?)?;
            out.fact(&serde_json::json!({ "rows": rows }), |w| {
                writeln!(w, "{}: {} rows", args.target.display(), show_count(rows))
            })?;
            Ok(Status::Done)
        }
    }
}

/// Removes the index files that a crawl wrote for each of its archives: their rows are in the new one.
fn remove_parts(fs: &dyn Fs, dir: &Path) -> anyhow::Result<()> {
    for entry in fs.list(dir)?.into_iter().filter(|entry| is_part(&entry.name.to_string_lossy())) {
        fs.remove_file(&dir.join(&entry.name))?;
    }
    Ok(fs.sync_dir(dir)?)
}

/// Whether a file is the index of one of a crawl's archives, by its name: `captures-00000.parquet`.
pub fn is_part(name: &str) -> bool {
    let number = name.strip_prefix("captures-").and_then(|rest| rest.strip_suffix(".parquet"));
    number.is_some_and(|number| number.len() >= 5 && number.bytes().all(|b| b.is_ascii_digit()))
}

fn rebuild_of(args: &RebuildArgs, out: &mut Output) -> anyhow::Result<Status> {
    refuse_stdin(&args.dir, "captures rebuild")?;
    let (fs, registry) = system::archives();
    // Without --out the index would be written beside the archives of a directory.
    if args.dir.is_file() && args.out.is_none() {
        bail!("{} is a file: name the directory that holds the archives, or the index with --out", args.dir.display());
    }
    // Rows name archives that lie beside their index.
    let mut files = registry.files_beside(&fs, &args.dir)?;
    files.retain(|found| !found.is_index());
    let some_twice = copies::leave_out(&fs, &mut files, out);
    if files.is_empty() {
        bail!("{} holds no archives", args.dir.display());
    }
    let own = args.dir.join("captures.parquet");
    let target = args.out.clone().unwrap_or_else(|| own.clone());
    let replaces = target == own;
    refuse_inputs(&target, files.iter().map(|found| &*found.path))?;
    refuse_archive(&target)?;
    // A crawl at work writes an index of its own.
    let lock = args.dir.join(".crawl").join("lock");
    let holder = describe_holder("trawl captures rebuild", &system::clock().now().rfc3339_seconds());
    let _lock = match replaces && lock.is_file() {
        true => Some(LockFile::acquire_in(&*fs, &lock, &holder)?),
        false => None,
    };
    let mut writer = CapturesWriter::create(&fs, &target)?;
    let bar = Progress::start("rebuild", None, out.quiet());
    let mut skip = |error: trawl_model::DoorError| output::complain(&format!("left out: {error}"));
    let mut tell = |rows| bar.report(rows, || format!("{} rows", show_count(rows)));
    let all = rebuild_index(&fs, &files, &mut writer, &mut skip, &mut tell)?;
    drop(bar);
    writer.finish()?;
    if replaces {
        remove_parts(&*fs, &args.dir)?;
    }
    out.fact(&all, |w| {
        let (rows, failures) = (show_count(all.rows), show_count(all.failures));
        writeln!(w, "{}: {rows} rows, {failures} of failed fetches", target.display())?;
        if !all.not_captures.is_empty() {
            let kinds = all.not_captures.iter().map(|(kind, n)| format!("{} {kind}", show_count(*n)));
            writeln!(w, "  not a capture: {}", kinds.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    })?;
    Ok(Status::from_findings(all.skipped > 0 || some_twice))
}
