//! `trawl convert`: one container into another.

use crate::containers::{self, Loader};
use crate::exit::Status;
use crate::formats::{self, Format, Found};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::units::{bytes, show_bytes, show_count};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{Fs, ReadAt, RealFs};
use trawl_warc::convert::{CopyOptions, EventReader, RecordWriter, copy_records};
use trawl_warc::wacz::{Wacz, WaczOptions, write_wacz};
use trawl_warc::{Compression, IdSource, Limits, WarcReader};

/// Converts archives: WARC, ARC, WACZ and seqdb into WARC, WACZ or seqdb
///
/// The target's name says what it becomes: .warc, .warc.gz, .warc.zst, .wacz, or .data for a seqdb container. WARC to WARC
/// and WARC to seqdb and back works on records and loses nothing, unknown record types included. Several sources become
/// one target. An existing target stays unless --overwrite.
///
/// In a container each capture is a file called by URL and time, its contents the capture's records; records without a
/// URL (warcinfo) are there too, under the time alone.
///
/// Examples:
///   trawl convert old.arc.gz new.warc.gz
///   trawl convert crawl/ crawl.wacz
///   trawl convert a.warc.gz b.warc.gz both.warc.zst
///   trawl convert crawl/ pages.data && trawl cat pages.data --url https://example.com/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files or directories, then the target
    #[arg(required = true, num_args = 2.., value_name = "SRC… DST")]
    paths: Vec<PathBuf>,

    /// Replace the target if it is there already, once the new one is complete
    #[arg(long)]
    overwrite: bool,

    /// Fail at the first damaged record instead of leaving it out with exit code 1
    #[arg(long)]
    strict: bool,

    /// Compression level; the format's own when not given
    #[arg(long, value_name = "LEVEL")]
    level: Option<i32>,

    /// Title of a WACZ file
    #[arg(long)]
    title: Option<String>,

    /// Memory for sorting the index of a WACZ file
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

/// What was written.
#[derive(Debug, Default, Serialize)]
struct Done {
    target: String,
    records: u64,
    damaged: u64,
    bytes: u64,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let Some((target, sources)) = args.paths.split_last() else { bail!("no target") };
    if target.exists() && !args.overwrite {
        bail!("{} is there already: choose another name, or --overwrite it", target.display());
    }
    let mut files = Vec::new();
    for source in sources {
        files.extend(formats::files(source)?);
    }
    files.retain(|found| found.format != Format::Captures);
    let done = match target_format(target)? {
        Target::Records(compression) => records(&args, target, &files, compression, out)?,
        Target::Package => package(&args, target, &files, out)?,
        Target::Container => container(&args, target, &files, out)?,
    };
    out.fact(&done, |w| {
        let (records, size) = (show_count(done.records), show_bytes(done.bytes));
        writeln!(w, "{}: {records} records, {size}", done.target)?;
        if done.damaged > 0 {
            writeln!(w, "  {} damaged places were left out", show_count(done.damaged))?;
        }
        Ok(())
    })?;
    Ok(Status::from_findings(done.damaged > 0))
}

enum Target {
    Records(Compression),
    Package,
    Container,
}

fn target_format(path: &Path) -> anyhow::Result<Target> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    Ok(match name {
        name if name.ends_with(".warc") => Target::Records(Compression::None),
        name if name.ends_with(".warc.gz") => Target::Records(Compression::Gzip),
        name if name.ends_with(".warc.zst") => Target::Records(Compression::Zstd),
        name if name.ends_with(".wacz") => Target::Package,
        name if name.ends_with(".data") => Target::Container,
        _ => bail!("{}: a target ends in .warc, .warc.gz, .warc.zst, .wacz or .data", path.display()),
    })
}

fn records(
    args: &Args,
    target: &Path,
    files: &[Found],
    compression: Compression,
    out: &Output,
) -> anyhow::Result<Done> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let ids = system::ids()?;
    let mut writer = RecordWriter::create(&fs, target, compression, args.level)?;
    let bar = Progress::start("convert", None, out.quiet());
    let mut damaged = 0u64;
    each_archive(files, &mut |mut reader| {
        let mut tell = |error: trawl_warc::Error| output::complain(&format!("left out: {error}"));
        let mut options = copy_options(args, &*ids, &mut tell);
        let before = writer.records();
        let report = copy_records(&mut reader, &mut writer, &mut options, &mut |p| {
            let records = before + p.records;
            bar.report(records, || format!("{} records, {}", show_count(records), show_bytes(p.bytes)));
        })?;
        damaged += report.damaged;
        Ok(())
    })?;
    drop(bar);
    let done = Done { target: target.display().to_string(), records: writer.records(), damaged, bytes: writer.bytes() };
    writer.finish()?;
    Ok(done)
}

fn copy_options<'a>(args: &Args, ids: &'a dyn IdSource, tell: &'a mut dyn FnMut(trawl_warc::Error)) -> CopyOptions<'a> {
    let on_damage = if args.strict { None } else { Some(tell) };
    CopyOptions { ids, on_damage, software: concat!("trawl/", env!("CARGO_PKG_VERSION")) }
}

/// Hands over every archive in the files: those inside WACZ files, and each event of a container, included.
fn each_archive(files: &[Found], each: &mut dyn FnMut(WarcReader) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut open = |file: Arc<dyn ReadAt>, offset| each(WarcReader::builder().lenient(true).over_from(file, offset));
    for found in files {
        match found.format {
            Format::Wacz => {
                let wacz = Wacz::open(found.open()?)?;
                wacz.warc_entries().try_for_each(|entry| open(wacz.warc(&entry.name)?, 0))?;
            }
            Format::Seqdb => {
                let settings = containers::settings("trawl convert");
                let Some(pages) = containers::captures(&found.path, &settings)? else {
                    bail!("{} holds no captures", found.path.display());
                };
                containers::each_event(&pages, &settings, &mut |event| open(event.file, event.offset))?;
            }
            Format::Warc | Format::Captures => open(found.open()?, 0)?,
        }
    }
    Ok(())
}

fn container(args: &Args, target: &Path, files: &[Found], out: &Output) -> anyhow::Result<Done> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let ids = system::ids()?;
    let mut loader = Loader::create(target)?;
    let bar = Progress::start("convert", None, out.quiet());
    let (mut records, mut damaged) = (0, 0);
    each_archive(files, &mut |reader| {
        let mut tell = |error: trawl_warc::Error| output::complain(&format!("left out: {error}"));
        let options = copy_options(args, &*ids, &mut tell);
        let temp = std::env::temp_dir();
        let mut events = EventReader::new(reader, fs.clone(), &temp, Compression::Gzip, args.level, options);
        while let Some(event) = events.next_event()? {
            loader.put(&event)?;
            records += event.records();
            bar.report(records, || format!("{} records", show_count(records)));
        }
        damaged += events.damaged();
        Ok(())
    })?;
    drop(bar);
    Ok(Done { target: target.display().to_string(), records, damaged, bytes: loader.finish()? })
}

fn package(args: &Args, target: &Path, files: &[Found], out: &Output) -> anyhow::Result<Done> {
    if let Some(other) = files.iter().find(|found| found.format != Format::Warc) {
        bail!("{} is no WARC file: convert it to .warc.gz first", other.path.display());
    }
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let warcs: Vec<_> = files.iter().map(|found| found.path.clone()).collect();
    let options = WaczOptions {
        software: concat!("trawl/", env!("CARGO_PKG_VERSION")).into(),
        title: args.title.clone(),
        created: system::now(),
        temp_dir: std::env::temp_dir(),
        memory_bytes: usize::try_from(args.memory).context("--memory")?,
        limits: Limits::default(),
    };
    let bar = Progress::start("convert", None, out.quiet());
    let summary = write_wacz(&fs, target, &warcs, &options, &mut |p| {
        bar.report(p.bytes, || format!("{} of {}", show_bytes(p.bytes), show_bytes(p.total_bytes)));
    })?;
    Ok(Done { target: target.display().to_string(), records: summary.captures, damaged: 0, bytes: summary.bytes })
}
