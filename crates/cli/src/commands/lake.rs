//! `trawl lake`: what a lake holds, and bringing more into it.

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_index::{BuildOptions, Published};
use trawl_ingest::source::{self, Format};
use trawl_ingest::{IngestReport, IngestSettings, Mode, Stage};
use trawl_io::{Fs, RealFs};
use trawl_model::UrlSource;
use trawl_query::Principal;
use trawl_store::{DatasetInfo, Lake};

/// Files of sources in a directory that are taken; a crawl's directory is known by its captures.
const CAPTURES: &str = "captures";

/// Brings URLs into a lake and looks after it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Ingest(IngestArgs),
    Publish(PublishArgs),
    Datasets(LakeArg),
    Stats(LakeArg),
    Verify(LakeArg),
}

#[derive(Debug, clap::Args)]
pub struct LakeArg {
    /// Directory of the lake
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

/// Reads URLs into a dataset and indexes them
///
/// Sources are files or directories: URL lists, JSONL, CSV, TSV, CDXJ, Parquet with a url column, captures.parquet;
/// gzip and zstd are unpacked. A directory of a crawl stands for its captures.parquet. URLs are normalised, sorted by domain and written
/// as Parquet; lines that are no URLs go to a rejects file. A source that the dataset has already is skipped, so that
/// repeating a command doubles nothing. The lake and the dataset are made when they are not there yet.
///
/// Exit code 1 when something was rejected.
///
/// Examples:
///   trawl lake ingest --lake lake --dataset news urls.txt.gz more.jsonl
///   trawl lake ingest --lake lake --dataset mycrawl crawl/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct IngestArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name of the dataset
    #[arg(long, value_name = "NAME")]
    dataset: String,

    /// Files or directories
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<PathBuf>,

    /// Format of the sources instead of finding it out
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Replace what the dataset holds instead of adding to it
    #[arg(long)]
    replace: bool,

    /// Where the dataset comes from, for people; used when it is made
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,

    /// Memory for sorting and encoding; less spills more to disk
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,

    /// Threads that parse, sort and encode
    #[arg(long, default_value_t = 2, value_name = "N")]
    threads: usize,

    /// zstd level of the Parquet files; higher is smaller and slower to write
    #[arg(long, default_value_t = 6, value_name = "LEVEL")]
    zstd_level: i32,

    /// Write domain_id and url_id into the Parquet files; 9 bytes a row more
    #[arg(long)]
    store_ids: bool,

    /// Directory for temporary files; the lake's own directory when not given
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

/// Indexes what was ingested and not yet published
///
/// `trawl lake ingest` does this itself; it is needed after an interruption between the two.
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    #[command(flatten)]
    lake: LakeArg,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Ingest(args) => ingest(args, out),
        Verb::Publish(args) => {
            let lake = lake_dir::open(&args.lake.lake)?;
            let published = publish(&lake, &args.lake.lake, out)?;
            out.fact(&published_json(&published), |w| write_published(&published, w))?;
            Ok(Status::Done)
        }
        Verb::Datasets(args) => datasets(&args.lake, out),
        Verb::Stats(args) => stats(&args.lake, out),
        Verb::Verify(args) => verify(&args.lake, out),
    }
}

fn ingest(args: IngestArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open_or_make(&args.lake.lake)?;
    let temp = temp_dir(&args.lake.lake, args.temp_dir.as_deref())?;
    let mut settings = IngestSettings::new(system::nonce()?, &temp);
    settings.mode = if args.replace { Mode::Replace } else { Mode::Append };
    settings.memory_bytes = usize::try_from(args.memory).context("--memory")?;
    settings.threads = args.threads;
    settings.zstd_level = args.zstd_level;
    settings.store_ids = args.store_ids;
    let added = Added { name: args.dataset, source: args.source, paths: args.sources, format: args.format };
    let done = add(&lake, &args.lake.lake, &added, &settings, out)?;
    out.fact(&done, |w| done.write(w))?;
    Ok(Status::from_findings(done.ingest.rejected > 0))
}

/// What to bring into a lake.
pub struct Added {
    /// The dataset.
    pub name: String,
    /// Where it comes from, for people.
    pub source: Option<String>,
    /// Files and directories.
    pub paths: Vec<PathBuf>,
    /// Their format, if it is not to be found out.
    pub format: Option<Format>,
}

/// What became of it.
#[derive(Debug, Serialize)]
pub struct Done {
    /// The dataset.
    pub dataset: String,
    /// What was written.
    #[serde(flatten)]
    pub ingest: IngestReport,
    /// The version that serves it.
    pub version: Option<String>,
}

/// Reads sources into a dataset and publishes them.
pub fn add(lake: &Lake, dir: &Path, added: &Added, settings: &IngestSettings, out: &Output) -> anyhow::Result<Done> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let files = expand(&added.paths)?;
    let open = |path: &PathBuf| source::open(&fs, path, added.format);
    let sources = files.iter().map(open).collect::<Result<Vec<Box<dyn UrlSource>>, _>>()?;
    let id = dataset_id(lake, added)?;
    let bar = Progress::start("ingest", None, out.quiet());
    let report = trawl_ingest::ingest(lake, id, &sources, settings, &system::now, &|p| {
        bar.report(p.done, || {
            let stage = match p.stage {
                Stage::Reading => "reading",
                Stage::Writing => "writing",
                Stage::Committing => "committing",
            };
            format!("{stage} {}%, {} rows", (100 * p.done).checked_div(p.total).unwrap_or(0), show_count(p.rows))
        });
    })?;
    drop(bar);
    let published = publish(lake, dir, out)?;
    Ok(Done { dataset: added.name.clone(), ingest: report, version: published.version })
}

fn publish(lake: &Lake, dir: &Path, out: &Output) -> anyhow::Result<Published> {
    let options = BuildOptions::new(temp_dir(dir, None)?);
    let bar = Progress::start("index", None, out.quiet());
    let published = trawl_index::publish(lake, &system::now, &system::nonce()?, &options, &|p| match p {
        trawl_index::Progress::Scan { rows, total } => {
            bar.report(rows, || format!("{} of {} rows", show_count(rows), show_count(total)));
        }
        trawl_index::Progress::Assemble { .. } => bar.report(0, || "writing".to_owned()),
    })?;
    Ok(published)
}

fn dataset_id(lake: &Lake, added: &Added) -> anyhow::Result<u32> {
    if let Some(dataset) = lake.current()?.dataset_named(&added.name) {
        return Ok(dataset.id);
    }
    let bases = added.paths.iter().filter(|path| path.is_dir()).map(|path| base_uri(path)).collect::<Result<_, _>>()?;
    let info = DatasetInfo { source: added.source.clone(), archive_base: bases, ..DatasetInfo::named(&added.name) };
    match lake.register_dataset(system::now(), &info) {
        // Somebody registered it meanwhile: then it is there.
        Err(error) => match lake.current()?.dataset_named(&added.name) {
            Some(dataset) => Ok(dataset.id),
            None => Err(error.into()),
        },
        Ok(id) => Ok(id),
    }
}

/// `file://` and the absolute path of a directory that holds archives.
fn base_uri(dir: &Path) -> anyhow::Result<String> {
    let absolute = dir.canonicalize().with_context(|| format!("cannot find {}", dir.display()))?;
    Ok(format!("file://{}/", absolute.display()))
}

/// Files as they are; of a directory its captures, else everything in it that is a file.
fn expand(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut inside = entries.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
        inside.retain(|p| p.is_file());
        inside.sort();
        let is_captures = |p: &PathBuf| {
            let name = p.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(CAPTURES) && name.ends_with(".parquet")
        };
        if inside.iter().any(is_captures) {
            inside.retain(is_captures);
        }
        if inside.is_empty() {
            bail!("{} holds no files", path.display());
        }
        files.append(&mut inside);
    }
    Ok(files)
}

fn temp_dir(lake: &Path, wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let dir = wanted.map_or_else(|| lake.join("tmp"), Path::to_owned);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

impl Done {
    fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        let report = &self.ingest;
        writeln!(
            w,
            "{}: {} rows ({} URLs) from {} source(s) in {} file(s), {}",
            self.dataset,
            show_count(report.rows),
            show_count(report.distinct_urls),
            report.sources,
            report.files,
            show_bytes(report.bytes)
        )?;
        for skipped in &report.skipped {
            writeln!(w, "  skipped {}: the dataset has it already", skipped.uri)?;
        }
        for (code, n) in &report.rejected_by_code {
            writeln!(w, "  rejected {}: {code}", show_count(*n))?;
        }
        if let Some(file) = &report.rejects_file {
            writeln!(w, "  rejects are in {file}")?;
        }
        match &self.version {
            Some(version) => writeln!(w, "  published as version {version}"),
            None => writeln!(w, "  nothing new to publish"),
        }
    }
}

fn published_json(published: &Published) -> serde_json::Value {
    serde_json::json!({ "version": published.version, "commits": published.commits })
}

fn write_published(published: &Published, w: &mut dyn Write) -> io::Result<()> {
    match &published.version {
        Some(version) => writeln!(w, "published version {version}"),
        None => writeln!(w, "nothing new to publish"),
    }
}

fn datasets(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let pinned = super::query::pin(dir)?;
    let datasets = pinned.datasets(&Principal::operator())?;
    if out.json() {
        datasets.iter().try_for_each(|dataset| out.json_line(dataset))?;
    } else {
        for d in &datasets {
            let (rows, size) = (show_count(d.rows), show_bytes(d.bytes));
            let source = d.source.as_deref().unwrap_or_default();
            writeln!(out, "{:>5}  {:<24} {rows:>14} rows  {size:>10}  {}  {source}", d.dataset_id, d.name, d.created)?;
        }
    }
    Ok(Status::from_findings(datasets.is_empty()))
}

fn stats(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let stats = super::query::pin(dir)?.stats()?;
    out.fact(&stats, |w| {
        writeln!(w, "version   {}", stats.version)?;
        writeln!(w, "datasets  {}", show_count(stats.datasets))?;
        writeln!(w, "domains   {}", show_count(stats.domains))?;
        writeln!(w, "rows      {}", show_count(stats.rows))?;
        writeln!(w, "files     {} Parquet, {} index segment(s)", show_count(stats.files), stats.segments)?;
        writeln!(w, "bytes     {} (index {})", show_bytes(stats.bytes), show_bytes(stats.index_bytes))
    })?;
    Ok(Status::Done)
}

/// Checks every segment of the current version: checksums, order, counts, and that postings point at rows there are.
fn verify(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(dir)?;
    let manifest = lake.current()?;
    let Some(version) = manifest.current() else { bail!("the lake in {} has no version yet", dir.display()) };
    let mut faults = 0u64;
    for segment in &version.segments {
        let mut found = Vec::new();
        let checked = trawl_index::verify_segment(lake.store(), segment, &mut |fault| found.push(fault.to_string()));
        let checked = match checked {
            Ok(checked) => Some(checked),
            Err(error) => {
                found.push(error.to_string());
                None
            }
        };
        faults += found.len() as u64;
        for fault in &found {
            let json = serde_json::json!({ "type": "fault", "segment": segment.id, "fault": fault });
            out.fact(&json, |w| writeln!(w, "fault: {fault}"))?;
        }
        if let Some(checked) = checked {
            let json = serde_json::json!({
                "type": "segment", "segment": segment.id, "files": checked.files, "domains": checked.domains,
                "pairs": checked.pairs, "rows": checked.rows, "faults": checked.faults,
            });
            out.fact(&json, |w| {
                let (domains, rows) = (show_count(checked.domains), show_count(checked.rows));
                writeln!(w, "segment {}: {domains} domains, {rows} rows, {} files", segment.id, checked.files)
            })?;
        }
    }
    Ok(Status::from_findings(faults > 0))
}
