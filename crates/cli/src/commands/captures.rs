//! `trawl captures`: the index of a crawl.

use crate::exit::Status;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::units::show_count;
use anyhow::bail;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_captures::{CapturesReader, CapturesWriter, RebuildReport, export_common_crawl, rebuild};
use trawl_io::{Fs, RealFs};
use trawl_model::Pick;

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

/// Makes captures.parquet anew from the archives alone
///
/// The archive is the truth: rows of failed fetches and the seeds' metadata come back too. An index that is there is
/// replaced once the new one is complete. Exit code 1 when something could not be read.
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

/// Writes an index in the column names of Common Crawl
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
        Verb::Rebuild(args) => rebuild_index(&args, out),
        Verb::Export(args) => {
            let fs: Arc<dyn Fs> = Arc::new(RealFs);
            let rows = export_common_crawl(&fs, &args.target, CapturesReader::open(&args.index)?)?;
            out.fact(&serde_json::json!({ "rows": rows }), |w| {
                writeln!(w, "{}: {} rows", args.target.display(), show_count(rows))
            })?;
            Ok(Status::Done)
        }
    }
}

fn rebuild_index(args: &RebuildArgs, out: &mut Output) -> anyhow::Result<Status> {
    let (fs, registry) = system::archives();
    let mut files = registry.files(&fs, &args.dir)?;
    files.retain(|found| found.format.is_crawlable());
    if files.is_empty() {
        bail!("{} holds no archives", args.dir.display());
    }
    let target = args.out.clone().unwrap_or_else(|| args.dir.join("captures.parquet"));
    let mut writer = CapturesWriter::create(&fs, &target)?;
    let bar = Progress::start("rebuild", None, out.quiet());
    let mut all = RebuildReport::default();
    for found in &files {
        let mut skip = |error: trawl_model::DoorError| output::complain(&format!("left out: {error}"));
        let before = all.rows;
        let mut tell = |rows| bar.report(before + rows, || format!("{} rows", show_count(before + rows)));
        let archive = found.open(&fs)?;
        let Some(mut source) = archive.captures(Pick::All)? else { continue };
        let report = rebuild(&mut *source, &mut writer, &mut skip, &mut tell)?;
        all.rows += report.rows;
        all.failures += report.failures;
        all.others += report.others;
        all.skipped += report.skipped;
    }
    drop(bar);
    writer.finish()?;
    out.fact(&all, |w| {
        let (rows, failures) = (show_count(all.rows), show_count(all.failures));
        writeln!(w, "{}: {rows} rows, {failures} of failed fetches", target.display())
    })?;
    Ok(Status::from_findings(all.skipped > 0))
}
