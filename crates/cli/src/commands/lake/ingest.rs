//! `trawl lake ingest` and `publish`.

use super::covered;
use super::sources::{Expanded, NotFile, STDIN, expand};
use super::tell::{keep, show_progress};
use super::{LakeArg, MEMORY_BYTES};
use crate::exit::Status;
use crate::lists::ListArgs;
use crate::output::{Output, harmless};
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trawl_index::Published;
use trawl_ingest::source::{self, Format, Opening, Source};
use trawl_ingest::{IngestReport, IngestSettings, Mode};
use trawl_lists::Options;
use trawl_maintain::temp::Spool;
use trawl_model::{Advice, DoorError, SourceIdentity, UrlSource};
use trawl_store::{Dataset, DatasetInfo, KnownSource, Lake};

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

    /// Hex digits of the domain's hash by which files are split, 0, 1 or 2; by the size of the sources when not given
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
    let all: Vec<Added> = match (&args.dataset, &args.list) {
        (Some(name), _) => vec![one(name.clone(), args.sources)],
        (None, Some(list)) => listed(list)?.into_iter().map(|(name, paths)| one(name, paths)).collect(),
        (None, None) => per_file(&args.sources)?.into_iter().map(|(name, paths)| one(name, paths)).collect(),
    };
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
    let mut findings = false;
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

/// A dataset for each file that `paths` stand for.
fn per_file(paths: &[PathBuf]) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut all: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    if paths.iter().any(|path| path.as_os_str() == "-") {
        bail!("standard input has no name that a dataset could have: use --dataset NAME");
    }
    for file in expand(paths, None)?.files {
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
    let published = keep(dir, settings.memory_bytes as u64, out, |keeper| keeper.publish_datasets(lake, &ids));
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

/// Items of a source that are read to see whether it can be read at all.
const TASTED: u32 = 100;

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

/// What became of it.
#[derive(Debug, Serialize)]
pub struct Done {
    /// The dataset.
    pub dataset: String,
    /// What was written.
    #[serde(flatten)]
    pub ingest: IngestReport,
    /// What else was found where the sources lie.
    #[serde(flatten)]
    pub beside: Beside,
    /// The version that serves it.
    pub version: Option<String>,
    /// Whether no version does, since the lake's suffix list was changed meanwhile: then it waits for a rebuild.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// What was found where sources lie, and is not read, or not as it should be.
#[derive(Debug, Default, Serialize)]
pub struct Beside {
    /// Files of directories that are of no known format.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What else is in directories and was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_files: Vec<NotFile>,
    /// Archives whose captures were read from an index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexed: Vec<String>,
    /// What is not as its index says: something may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<NotFile>,
    /// Archives in which not one capture was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl Beside {
    /// Whether a source is there of which nothing, or not everything, could be taken.
    pub(super) fn is_short(&self) -> bool {
        !self.unreadable.is_empty() || !self.incomplete.is_empty()
    }

    /// A line for each, or for all of a kind.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let ignored =
            self.ignored.iter().map(|path| format!("ignored {}: of no known format, or without URLs", harmless(path)));
        let indexed = (!self.indexed.is_empty())
            .then(|| format!("read {} archive(s) through their index", show_count(self.indexed.len() as u64)));
        let incomplete = self.incomplete.iter().map(|other| format!("{}: {}", harmless(&other.path), other.why));
        let unreadable = self.unreadable.iter().map(|path| format!("found no capture in {}", harmless(path)));
        let not_files = self.not_files.iter().map(|other| format!("ignored {}: {}", harmless(&other.path), other.why));
        ignored.chain(indexed).chain(incomplete).chain(unreadable).chain(not_files)
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

/// Sources that are open, and what else was found where they lie.
pub(super) struct OpenSources {
    pub sources: Vec<Source>,
    pub beside: Beside,
    bases: Vec<String>,
    /// What came through pipes; it lasts as long as this.
    _spools: Vec<Spool>,
}

/// Opens what is to be brought into a dataset, and finds what is wrong with it from the beginning.
pub(super) fn open_sources(
    lake: &Lake,
    added: &Added,
    settings: &IngestSettings,
    out: &Output,
) -> anyhow::Result<OpenSources> {
    let fs = lake_dir::files()?;
    let Expanded { files, not_files, mut bases, indexed, incomplete, spools } =
        expand(&added.paths, Some(&settings.temp_dir))?;
    let known = match settings.mode {
        Mode::Append => known_sources(lake, &added.name)?,
        // Whatever they were, they are read whole.
        Mode::Replace | Mode::ReplaceSources => Vec::new(),
    };
    let told = (settings.mode == Mode::Append).then_some(&known[..]);
    let options = Some(&added.options);
    let all = Opening { known: told, now: system::now(), rehash: added.rehash, options, ..Opening::default() };
    let bar = Progress::start("open", None, out.quiet());
    let (mut sources, mut ignored, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for (n, file) in files.iter().enumerate() {
        bar.report(n as u64, || format!("{} of {}", n + 1, files.len()));
        let format = match file.format.or(added.format) {
            None => file.detect(&fs)?,
            told => told,
        };
        // What is only found lying in a directory may be something else altogether.
        if file.found && format.is_none() {
            ignored.push(file.path.display().to_string());
            continue;
        }
        let opened = source::open_as(&fs, &file.path, &Opening { format, name: file.name.as_deref(), ..all });
        let tasted = opened.and_then(|source| {
            // What was taken was good, and so was the beginning of what has grown.
            let identity = source.identity();
            if source.grown.is_none() && !is_known(&known, &identity) {
                let items = taste(&source, settings.split_bytes)?;
                // A list may be empty on purpose; an archive that has bytes and not one capture is something else, or broken.
                if items == 0 && identity.size > 0 && format.is_some_and(Format::is_archive) {
                    unreadable.push(file.shown());
                }
            }
            Ok(source)
        });
        let source = match tasted {
            Err(error) if file.found && error.is_without_urls() => {
                ignored.push(file.path.display().to_string());
                continue;
            }
            tasted => tasted.with_context(|| format!("cannot take {}", file.shown()))?,
        };
        if !is_known(&known, &source.identity()) {
            covered::refuse_again(&known, &file.path, &indexed)?;
        }
        sources.push(source);
        let archive = format.is_some_and(Format::is_archive) && file.name.is_none();
        if archive && format.is_some_and(Format::holds_files) {
            // On a server it may be all that can be found: not every one lists what is beside it.
            bases.extend(file.path.to_str().filter(|path| trawl_store::is_remote(path)).map(str::to_owned));
        }
        bases.extend(file.path.parent().filter(|_| archive).map(base_uri));
    }
    let beside = Beside { ignored, not_files, indexed, incomplete, unreadable };
    Ok(OpenSources { sources, beside, bases, _spools: spools })
}

impl OpenSources {
    /// The dataset they are for, and whether it was made just now.
    pub(super) fn register(
        &self,
        lake: &Lake,
        added: &Added,
        mode: Mode,
        out: &Output,
    ) -> anyhow::Result<(Dataset, bool)> {
        let (dataset, is_new) = register(lake, added, &self.bases)?;
        if mode != Mode::ReplaceSources {
            remark_copies(lake, dataset.id, &self.sources, out)?;
        }
        Ok((dataset, is_new))
    }
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
        // What failed leaves no name behind; what is told is why it failed.
        let _ = lake.withdraw_dataset(system::now(), &settings.writer, id);
    }
    let report = report?;
    // Another ingest into it may have failed meanwhile, and taken the name back.
    lake.reinstate_dataset(system::now(), &system::nonce()?, &dataset)?;
    let (dataset, beside) = (added.name.clone(), open.beside);
    Ok((id, Done { dataset, ingest: report, beside, version: None, waits: false }))
}

/// The sources that a dataset has, if it is there.
fn known_sources(lake: &Lake, name: &str) -> anyhow::Result<Vec<KnownSource>> {
    let manifest = lake.current()?;
    let Some(dataset) = manifest.dataset_named(name) else { return Ok(Vec::new()) };
    Ok(lake.dataset_newest(dataset.id)?.map(|commit| commit.sources).unwrap_or_default())
}

fn is_known(known: &[KnownSource], identity: &SourceIdentity) -> bool {
    known.binary_search_by(|known| known.identity.cmp(identity)).is_ok()
}

/// Reads the first items of a source, and tells how many those are: what is wrong from the beginning is found before a dataset is
/// made for it.
fn taste(source: &dyn UrlSource, split_bytes: u64) -> Result<u32, DoorError> {
    let mut items = 0;
    for split in source.splits(split_bytes)? {
        let read = source.read(split, &mut |_, _| {
            items += 1;
            if items < TASTED { Ok(()) } else { Err(DoorError::new(Advice::Stop, "enough")) }
        });
        if items < TASTED {
            read?;
        }
        if items > 0 {
            break;
        }
    }
    Ok(items)
}

/// Says of new sources that they have the same bytes as one the dataset has, perhaps only its name changed, or the same
/// name and other bytes, perhaps only some were added.
fn remark_copies(lake: &Lake, id: u32, sources: &[Source], out: &Output) -> anyhow::Result<()> {
    let Some(commit) = lake.dataset_newest(id)? else { return Ok(()) };
    let known: BTreeMap<_, _> =
        commit.sources.iter().map(|known| &known.identity).map(|s| ((s.size, &s.tag), &s.uri)).collect();
    let uris: BTreeSet<_> = commit.sources.iter().map(|known| &known.identity.uri).collect();
    let new = sources.iter().filter(|source| source.grown.is_none());
    for identity in new.map(|source| source.identity()).filter(|identity| !commit.has_source(identity)) {
        if let Some(uri) = known.get(&(identity.size, &identity.tag)).filter(|_| identity.size > 0) {
            out.remark(&format!(
                "{} has the same bytes as {uri}, which the dataset already has: its rows are added again",
                identity.uri
            ));
        } else if !is_piped(&identity.uri) && uris.contains(&identity.uri) {
            out.remark(&format!(
                "{} has changed since the dataset took it: all its rows come again; --replace-sources would put \
                 them in the place of the old ones",
                identity.uri
            ));
        }
    }
    Ok(())
}

/// Whether a source is what came through a pipe: each time something else, under one name.
fn is_piped(uri: &str) -> bool {
    uri == STDIN
}

/// `file://` and the path of a directory that holds archives.
pub(super) fn base_uri(dir: &Path) -> String {
    let shown = dir.display().to_string();
    if trawl_store::is_remote(&shown) { format!("{shown}/") } else { format!("file://{shown}/") }
}

/// The dataset, and whether it was made just now because it was not there; it hears of directories that hold more of its
/// archives.
fn register(lake: &Lake, added: &Added, bases: &[String]) -> anyhow::Result<(Dataset, bool)> {
    let committed = lake.commit(system::now(), &system::nonce()?, |manifest| {
        let is_new = manifest.dataset_named(&added.name).is_none();
        let info = DatasetInfo { source: added.source.clone(), ..DatasetInfo::named(&added.name) };
        let id = manifest.register(system::now(), info)?;
        if let Some(dataset) = manifest.dataset_mut(id) {
            let known = &mut dataset.info.archive_base;
            for base in bases {
                if !known.contains(base) {
                    known.push(base.clone());
                }
            }
        }
        Ok((id, is_new))
    })?;
    let (id, is_new) = committed.value;
    let dataset = committed.manifest.dataset(id).cloned();
    Ok((dataset.with_context(|| format!("dataset {id} is gone"))?, is_new))
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
        if report.records != report.rows {
            writeln!(w, "  of {} records: each is a row, or counted below", show_count(report.records))?;
        }
        for known in &report.replaced {
            writeln!(
                w,
                "  {}: the rows that {} bytes of it had brought are replaced",
                known.uri,
                show_count(known.size)
            )?;
        }
        for known in &report.grown {
            let (uri, size) = (harmless(&known.uri), known.size);
            writeln!(w, "  {uri} has grown since {size} bytes of it were taken: only what is new was read")?;
        }
        if report.taken_back > 0 {
            writeln!(w, "  took {} row(s) back that were of cut records", show_count(report.taken_back))?;
        }
        for skipped in &report.skipped {
            writeln!(w, "  skipped {}: the dataset has it already", harmless(&skipped.uri))?;
        }
        for line in self.beside.lines() {
            writeln!(w, "  {line}")?;
        }
        if !report.not_captures.is_empty() {
            let kinds = report.not_captures.iter().map(|(kind, n)| format!("{} {kind}", show_count(*n)));
            writeln!(w, "  not a capture: {}", kinds.collect::<Vec<_>>().join(", "))?;
        }
        for (code, n) in &report.rejected_by_code {
            writeln!(w, "  rejected {}: {code}", show_count(*n))?;
        }
        if let Some(file) = &report.rejects_file {
            writeln!(w, "  rejects are in {file}")?;
        }
        if report.denied > 0 {
            writeln!(w, "  left out {}: denied", show_count(report.denied))?;
        }
        if report.denied_since > 0 {
            let entries = show_count(report.denied_since);
            writeln!(w, "  {entries} deny entries came meanwhile: `trawl lake purge` takes the rows that they cover")?;
        }
        match &self.version {
            Some(version) => writeln!(w, "  published as version {version}"),
            None => writeln!(w, "  nothing new to publish"),
        }
    }
}
