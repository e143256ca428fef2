//! `trawl lake ingest` and `publish`.

mod done;
mod open;

use done::Beside;
pub use done::Done;
pub(super) use open::{base_uri, open_sources};

use super::sources::{Expanded, expand, is_pipe};
use super::tell::{keep, show_progress};
use super::{LakeArg, MEMORY_BYTES};
use crate::exit::Status;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::bytes;
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trawl_index::Published;
use trawl_ingest::source::{self, Format};
use trawl_ingest::{IngestSettings, Mode};
use trawl_lists::Options;
use trawl_maintain::Keeper;
use trawl_store::{DatasetInfo, Lake};

/// Reads URLs into a dataset and indexes them
///
/// Sources are files, directories, quoted patterns or `-` for standard input: URL lists, JSON and JSONL, CSV and other tables,
/// CDXJ and CDX, ZipNum (by its index), WARC and other archives, captures.parquet, other Parquet with a url column (Common
/// Crawl's too), HAR, bookmarks, sitemaps, feeds; also compressed with gzip or zstd. Directories are read with everything below
/// them; if a captures.parquet lists the archives beside it, it is read instead of them.
///
/// URLs are normalised, sorted by domain and written as Parquet. Items that are not URLs go to a rejects file with the reason.
/// Denied URLs are left out and counted.
///
/// A source that the dataset already has is skipped, so you can repeat a command, even after an interruption, and add nothing
/// twice. A source that has grown since, such as a WARC that was still being written, is read from where it ended. The lake and
/// the dataset are created if they do not exist; a new dataset whose first ingest fails is not kept.
///
/// Exit code 1 when something was rejected, or when an archive holds no capture.
///
/// Examples:
///   trawl lake ingest --lake lake --dataset news urls.txt.gz more.jsonl
///   trawl lake ingest --lake lake --dataset mycrawl crawl/
///   trawl lake ingest --lake lake --dataset runs 'runs/*/'
///   trawl lake ingest --lake s3://bucket/lake --dataset-per-file lists/*.txt.gz
///   zcat urls.gz | trawl lake ingest --lake lake --dataset piped --format lines -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct IngestArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name of the dataset
    #[arg(long, value_name = "NAME", required_unless_present_any = ["dataset_per_file", "list"], help_heading = "Dataset")]
    dataset: Option<String>,

    /// Make one dataset per file, named after the file up to its first dot; all are published together
    #[arg(long, conflicts_with = "dataset", help_heading = "Dataset")]
    dataset_per_file: bool,

    /// Read datasets and their sources from a file, on each line a name, a tab and a source; all are published together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dataset", "dataset_per_file", "sources"], help_heading = "Sources")]
    list: Option<PathBuf>,

    /// Files, directories, patterns, s3:// and https:// addresses of files, or - for standard input
    #[arg(required_unless_present = "list", value_name = "SRC")]
    sources: Vec<PathBuf>,

    #[command(flatten)]
    how: HowArgs,

    /// Memory for sorting and encoding; less spills more to disk
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE", help_heading = "Machine and files")]
    memory: u64,

    /// Threads that parse, sort and encode
    #[arg(long, default_value_t = 2, value_name = "N", help_heading = "Machine and files")]
    threads: usize,

    #[command(flatten)]
    written: WriteArgs,

    /// Directory for temporary files; inside the lake by default
    #[arg(long, value_name = "DIR", help_heading = "Machine and files")]
    temp_dir: Option<PathBuf>,
}

/// How sources are read, and what becomes of what the dataset holds.
#[derive(Debug, clap::Args)]
pub(super) struct HowArgs {
    /// Format of the sources; detected by default
    #[arg(long, value_name = "FORMAT", help_heading = "Sources")]
    format: Option<Format>,

    #[command(flatten)]
    lists: ListArgs,

    /// Column or member that holds the times: its name, or its number from 1 in a table without a header
    #[arg(long, value_name = "NAME", help_heading = "Sources")]
    time_column: Option<String>,

    /// Replace all rows of the dataset instead of adding to them
    #[arg(long, help_heading = "Dataset")]
    replace: bool,

    /// Replace the rows of those sources that have changed since they were ingested
    #[arg(long, conflicts_with = "replace", help_heading = "Dataset")]
    replace_sources: bool,

    /// Allow --replace and --replace-sources to leave no rows
    #[arg(long, help_heading = "Dataset")]
    allow_empty: bool,

    /// Compare sources by their contents, even if size, time and inode say that the dataset already has them
    #[arg(long, help_heading = "Sources")]
    rehash: bool,

    /// Note where a new dataset comes from (`trawl lake dataset set` changes it)
    #[arg(long, value_name = "TEXT", help_heading = "Dataset")]
    source: Option<String>,
}

/// What the bytes of the files depend on.
#[derive(Debug, clap::Args)]
pub(super) struct WriteArgs {
    /// zstd level of the Parquet files; higher is smaller and slower to write
    #[arg(long, default_value_t = 6, value_name = "LEVEL", help_heading = "Machine and files")]
    zstd_level: i32,

    /// Write domain_id and url_id into the Parquet files; takes 9 bytes more per row
    #[arg(long, help_heading = "Machine and files")]
    store_ids: bool,

    /// How many hex digits of the domain's hash to split files by: 0, 1 or 2; chosen by the size of the sources by default
    #[arg(long, value_name = "N", help_heading = "Machine and files")]
    prefix_digits: Option<u8>,
}

impl HowArgs {
    /// A dataset and its sources.
    pub(super) fn added(&self, name: String, paths: Vec<PathBuf>) -> Added {
        let usual = Options { time_column: self.time_column.clone(), now: system::now(), ..Options::default() };
        let (source, format, rehash) = (self.source.clone(), self.format, self.rehash);
        Added { name, source, paths, format, options: self.lists.apply(usual), rehash }
    }

    /// Settings of a run, but for its room.
    pub(super) fn settings(&self, written: &WriteArgs) -> anyhow::Result<IngestSettings> {
        let mut settings = IngestSettings::new(system::nonce()?, PathBuf::new());
        settings.mode = match (self.replace, self.replace_sources) {
            (true, _) => Mode::Replace,
            (_, true) => Mode::ReplaceSources,
            _ => Mode::Append,
        };
        settings.allow_empty = self.allow_empty;
        settings.zstd_level = written.zstd_level;
        settings.store_ids = written.store_ids;
        settings.prefix_digits = written.prefix_digits;
        Ok(settings)
    }
}

/// Indexes what was ingested and not yet published
///
/// `trawl lake ingest` does this itself. Use it after an ingest that was interrupted before it published.
///
/// Example: trawl lake publish --lake lake
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    #[command(flatten)]
    lake: LakeArg,
}

pub(super) fn publish_all(args: &PublishArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let published = keep(&args.lake.lake, MEMORY_BYTES, out, |keeper| keeper.publish(&lake))?;
    let json = serde_json::json!({
        "version": published.version, "commits": published.commits, "waiting": published.waiting,
        "damaged": published.damaged.iter().map(|(id, _)| id).collect::<Vec<_>>(),
    });
    out.fact(&json, |w| write_published(&published, w))?;
    Ok(Status::from_findings(!published.waiting.is_empty() || !published.damaged.is_empty()))
}

fn write_published(published: &Published, w: &mut dyn Write) -> io::Result<()> {
    match &published.version {
        Some(version) => writeln!(w, "published version {version}"),
        None if !published.damaged.is_empty() => writeln!(w, "nothing new to publish where commits are whole"),
        None => writeln!(w, "nothing new to publish"),
    }
}

pub(super) fn ingest(args: IngestArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let one = |name: String, paths: Vec<PathBuf>| args.how.added(name, paths);
    let mut beside = Beside::default();
    let all: Vec<Added> = match (&args.dataset, &args.list) {
        (Some(name), _) => vec![one(name.clone(), args.sources)],
        (None, Some(list)) => listed(list)?.into_iter().map(|(name, paths)| one(name, paths)).collect(),
        (None, None) => {
            let files = per_file(&args.sources, args.how.format, &mut beside)?;
            files.into_iter().map(|(name, paths)| one(name, paths)).collect()
        }
    };
    // What lies beside the files belongs to no dataset more than to another.
    beside.lines().for_each(|line| out.remark(&line));
    // Looked at before a lake is made: a wrong name leaves nothing behind.
    all.iter().try_for_each(Added::check)?;
    let mut settings = args.how.settings(&args.written)?;
    settings.memory_bytes = usize::try_from(args.memory).context("--memory")?;
    settings.threads = args.threads;
    settings.check()?;
    let lake = lake_dir::open_or_make(dir)?;
    settings.temp_dir = args.temp_dir.unwrap_or_else(|| lake_dir::temp(dir));
    trawl_maintain::temp::make_dir(&settings.temp_dir)?;
    let mut taken = Vec::with_capacity(all.len());
    for added in &all {
        let settings = IngestSettings { writer: system::nonce()?, ..settings.clone() };
        let done = take(&lake, added, &settings, out);
        // What was taken before is committed, and must not wait for a command that ends here.
        match done {
            Err(error) if taken.is_empty() => return Err(error),
            Err(error) => {
                publish_taken(&lake, dir, &settings, &mut taken, out)?;
                return Err(error.context(format!("cannot take {}; the datasets before it are published", added.name)));
            }
            Ok(done) => taken.push(done),
        }
    }
    publish_taken(&lake, dir, &settings, &mut taken, out)?;
    let mut findings = beside.is_short();
    for (_, done) in taken {
        out.fact(&done, |w| done.write(w))?;
        findings |= done.ingest.rejected > 0 || done.waits || done.beside.is_short();
    }
    Ok(Status::from_findings(findings))
}

/// Datasets and the sources of each, from a file with a name, a tab and a source on each line.
fn listed(list: &Path) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let text = std::fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    // Windows programs begin files with a mark, which would become part of the first name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    for (n, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let (name, source) = line
            .split_once('\t')
            .with_context(|| format!("{} line {n}: expected a name, a tab and a source", list.display()))?;
        DatasetInfo::named(name).check().with_context(|| format!("{} line {n}", list.display()))?;
        all.entry(name.to_owned()).or_default().push(PathBuf::from(source));
    }
    if all.is_empty() {
        bail!("{} names no source", list.display());
    }
    Ok(all)
}

/// A dataset for each file that `paths` stand for. What else is found there goes to `beside`.
fn per_file(
    paths: &[PathBuf],
    format: Option<Format>,
    beside: &mut Beside,
) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    if let Some(path) = paths.iter().find(|path| path.as_os_str() == "-" || is_pipe(path)) {
        let what =
            if path.as_os_str() == "-" { "standard input".to_owned() } else { format!("{}, a pipe,", path.display()) };
        bail!("{what} has no name that a dataset could have: use --dataset NAME");
    }
    let fs = lake_dir::files()?;
    let Expanded { files, not_files, bases: _, indexed, incomplete, spools: _ } = expand(paths, None)?;
    *beside = Beside { not_files, indexed, incomplete, ..Beside::default() };
    for file in files {
        // As where a directory is one dataset.
        if file.found && file.format.or(format).is_none() && file.detect(&fs)?.is_none() {
            beside.ignored.push(file.shown());
            continue;
        }
        let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
        DatasetInfo::named(&name).check().with_context(|| format!("a dataset for {}", file.shown()))?;
        if let Some(other) = all.insert(name.clone(), vec![file.path.clone()]) {
            let other = other.first().map(|path| path.display().to_string()).unwrap_or_default();
            bail!("{} and {other} would both be the dataset {name}: name them in a file for --list", file.shown());
        }
    }
    Ok(all)
}

/// Publishes what was taken, all in one version.
fn publish_taken(
    lake: &Lake,
    dir: &Path,
    settings: &IngestSettings,
    taken: &mut [(u32, Done)],
    out: &mut Output,
) -> anyhow::Result<()> {
    let ids: Vec<u32> = taken.iter().map(|(id, _)| *id).collect();
    let published = keep(dir, settings.memory_bytes as u64, out, |keeper| {
        // The index is sorted where the rows were: who names another directory has little room in the lake's own.
        let keeper = Keeper { temp_dir: settings.temp_dir.clone(), ..keeper.clone() };
        keeper.publish_datasets(lake, &ids)
    });
    let names: Vec<&str> = taken.iter().map(|(_, done)| done.dataset.as_str()).take(3).collect();
    let more = if taken.len() > names.len() { ", …" } else { "" };
    let published = published.with_context(|| {
        format!(
            "the rows of {}{more} are committed, but not indexed yet: `trawl lake publish` makes them visible (on a full disk \
             free space first, for example with `trawl lake gc`); nothing needs to be ingested again",
            names.join(", ")
        )
    })?;
    for (id, done) in taken {
        done.version.clone_from(&published.version);
        done.waits = published.waiting.contains(id);
    }
    Ok(())
}

/// What to bring into a lake.
pub struct Added {
    /// The dataset.
    pub name: String,
    /// Where it comes from, for people.
    pub source: Option<String>,
    /// Files, directories, patterns, or `-`.
    pub paths: Vec<PathBuf>,
    /// Their format, if it is not to be found out.
    pub format: Option<Format>,
    /// How lists are read.
    pub options: Options,
    /// Whether to read those that seem to be known, too.
    pub rehash: bool,
}

impl Added {
    /// Finds what is wrong with the sources that can be found without reading them whole.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let fs = lake_dir::files()?;
        for file in expand(&self.paths, None)?.files {
            let found = file.detect(&fs)?;
            if !file.found && found.or(file.format).or(self.format).is_none() {
                source::open(&fs, &file.path, None)?;
            }
        }
        Ok(())
    }
}

/// Reads sources into a dataset and publishes them.
pub fn add(
    lake: &Lake,
    dir: &Path,
    added: &Added,
    settings: &IngestSettings,
    out: &mut Output,
) -> anyhow::Result<Done> {
    let mut taken = [take(lake, added, settings, out)?];
    publish_taken(lake, dir, settings, &mut taken, out)?;
    let [(_, done)] = taken;
    Ok(done)
}

/// Reads sources into a dataset: they are committed then, and seen once they are published.
fn take(lake: &Lake, added: &Added, settings: &IngestSettings, out: &mut Output) -> anyhow::Result<(u32, Done)> {
    let open = open_sources(lake, added, settings, out)?;
    let (dataset, is_new) = open.register(lake, added, settings.mode, out)?;
    let id = dataset.id;
    let bar = Progress::start("ingest", None, out.quiet());
    let report = trawl_ingest::ingest(lake, id, &open.sources, settings, &system::now, &|p| show_progress(&bar, p));
    drop(bar);
    if report.is_err() && is_new {
        // A failed ingest leaves no name behind; the message says why it failed.
        let _ = lake.withdraw_dataset(system::now(), &settings.writer, id);
    }
    let report = report?;
    // Another ingest into it may have failed meanwhile, and taken the name back.
    lake.reinstate_dataset(system::now(), &system::nonce()?, &dataset)?;
    let (dataset, beside) = (added.name.clone(), open.beside);
    Ok((id, Done { dataset, ingest: report, beside, version: None, waits: false }))
}
