//! Files, or a table of another library, into a dataset.

use crate::lake::Lake;
use crate::{column, covered, error, place, upkeep};
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_ingest::source::{self, Format, Opening, Source};
use trawl_ingest::{IngestSettings, Mode};
use trawl_io::Fs;
use trawl_lists::Options;
use trawl_maintain::Event;
use trawl_maintain::temp::{self, Spool};
use trawl_model::{Advice, DoorError, UrlSource};
use trawl_store::{Dataset, DatasetInfo, KnownSource, is_remote};

/// What happens on a worker's thread, where Python's exceptions cannot be made.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What to bring into a dataset.
pub struct Wanted {
    /// Files, or a table.
    pub given: Given,
    /// Its name.
    pub dataset: String,
    /// Format of the files, if it is not to be found out.
    pub format: Option<Format>,
    /// Where the dataset comes from, for people.
    pub source: Option<String>,
}

/// What a caller gives.
pub enum Given {
    /// Files, by path or address.
    Files(Vec<PathBuf>),
    /// A table, and the name it is known by.
    Table(RecordBatchStreamReader, String),
    /// Parquet files where every process can read them, each with the name it is known by.
    Spooled(Vec<(PathBuf, String)>),
}

impl Given {
    /// Reads what `sources` are. The rows of a table are not touched.
    pub fn of(sources: &Bound<'_, PyAny>, source_id: Option<String>) -> PyResult<Self> {
        if sources.hasattr("__arrow_c_stream__")? {
            let id = source_id.ok_or_else(|| {
                error::refused("a table has no name of its own: give a source_id, by which a repeated ingest knows it")
            })?;
            let rows = RecordBatchStreamReader::try_new(column::stream(sources)?);
            let rows = rows.map_err(|problem| error::refused(format!("expected a table: {problem}")))?;
            return Ok(Self::Table(rows, format!("arrow:{id}")));
        }
        if source_id.is_some() {
            return Err(error::refused("source_id names a table: files are known by their paths"));
        }
        let mut files = Vec::new();
        if sources.is_instance_of::<PyString>() || sources.hasattr("__fspath__")? {
            add(sources, &mut files)?;
        } else {
            for one in sources.try_iter()? {
                add(&one?, &mut files)?;
            }
        }
        if files.is_empty() {
            return Err(error::refused("expected at least one source, found none"));
        }
        Ok(Self::Files(files))
    }
}

/// Adds a file, or those that a pattern names.
fn add(one: &Bound<'_, PyAny>, files: &mut Vec<PathBuf>) -> PyResult<()> {
    let text = place::path(one)?;
    if is_remote(&text) || !text.contains(['*', '?', '[']) || Path::new(&text).exists() {
        files.push(PathBuf::from(text));
        return Ok(());
    }
    let glob = one.py().import("glob")?.getattr("iglob")?;
    let options = pyo3::types::PyDict::new(one.py());
    options.set_item("recursive", true)?;
    let mut found: Vec<String> =
        glob.call((&text,), Some(&options))?.try_iter()?.map(|path| path?.extract()).collect::<PyResult<_>>()?;
    if found.is_empty() {
        return Err(error::not_found(format!("nothing matches {text}")));
    }
    found.sort();
    // What `**` matches has directories in it; their files are matched, too.
    files.extend(found.into_iter().map(PathBuf::from).filter(|path| path.is_file()));
    Ok(())
}

/// What happens to the rows that a dataset has, by name.
pub fn mode(name: &str) -> PyResult<Mode> {
    match name {
        "append" => Ok(Mode::Append),
        "replace" => Ok(Mode::Replace),
        "replace_sources" => Ok(Mode::ReplaceSources),
        other => Err(error::refused(format!("mode: expected append, replace or replace_sources, found {other:?}"))),
    }
}

/// Reads, commits and publishes. Gives the report.
pub fn ingest(py: Python<'_>, lake: &Lake, wanted: Wanted, settings: &IngestSettings) -> PyResult<Value> {
    settings.check().map_err(|problem| error::of(&problem))?;
    let (fs, cancel) = (place::files()?, settings.cancel.clone());
    let (taken, remarks) = upkeep::kept(py, lake, &cancel, settings, |keeper, lake| {
        let remark = |text| (keeper.tell)(Event::Remark(text));
        let (id, mut report) = take(lake, &fs, wanted, settings, &remark)?;
        let published = keeper.publish_datasets(lake, &[id])?;
        if let Value::Object(report) = &mut report {
            report.insert("version".into(), published.version.into());
            report.insert("waits".into(), published.waiting.contains(&id).into());
        }
        Ok(report)
    })?;
    upkeep::warn(py, &remarks)?;
    Ok(taken)
}

/// Reads sources into a dataset: they are committed then, and seen once they are published.
fn take(
    lake: &trawl_store::Lake,
    fs: &Arc<dyn Fs>,
    wanted: Wanted,
    settings: &IngestSettings,
    remark: &dyn Fn(String),
) -> Result<(u32, Value)> {
    let (name, from) = (wanted.dataset.clone(), wanted.source.clone());
    let Readied { sources, bases, unreadable, spool: _spool } = ready(lake, fs, wanted, settings, remark)?;
    let (dataset, is_new) = register(lake, &name, from, &bases)?;
    let report = trawl_ingest::ingest(lake, dataset.id, &sources, settings, &place::now, &|_| ());
    if report.is_err() && is_new {
        // An ingest that fails leaves no name behind; its error is what matters.
        let _ = lake.withdraw_dataset(place::now(), &settings.writer, dataset.id);
    }
    let mut report = serde_json::to_value(report?)?;
    // Another ingest into it may have failed meanwhile, and taken the name back.
    lake.reinstate_dataset(place::now(), &format!("{}-reinstate", settings.writer), &dataset)?;
    if let Value::Object(report) = &mut report {
        report.insert("dataset".into(), name.into());
        if !unreadable.is_empty() {
            report.insert("unreadable".into(), unreadable.into());
        }
    }
    Ok((dataset.id, report))
}

/// Sources that are open.
pub struct Readied {
    /// The sources.
    pub sources: Vec<Source>,
    /// Where the dataset finds its archives again.
    pub bases: Vec<String>,
    /// Archives without a capture.
    unreadable: Vec<String>,
    /// The table that was given, as long as it is read.
    spool: Option<Spool>,
}

/// Opens what is wanted, and refuses what would come twice.
pub fn ready(
    lake: &trawl_store::Lake,
    fs: &Arc<dyn Fs>,
    wanted: Wanted,
    settings: &IngestSettings,
    remark: &dyn Fn(String),
) -> Result<Readied> {
    temp::make_dir(&settings.temp_dir)?;
    let now = place::now();
    let before = match settings.mode {
        Mode::Append | Mode::ReplaceSources => known_sources(lake, &wanted.dataset)?,
        Mode::Replace => Vec::new(),
    };
    // Whatever they were, sources that replace others are read whole.
    let known = if settings.mode == Mode::Append { &before[..] } else { &[] };
    let told = (settings.mode == Mode::Append).then_some(known);
    let options = Options { now, ..Options::default() };
    let opening = Opening { known: told, now, options: Some(&options), ..Opening::default() };
    let parquet = Some(Format::List(trawl_lists::Format::Parquet));
    let (mut sources, mut bases, mut unreadable, mut spool) = (Vec::new(), Vec::new(), Vec::new(), None);
    match wanted.given {
        Given::Files(files) => {
            let files: Vec<PathBuf> = files.iter().map(|path| canonical(path)).collect::<Result<_>>()?;
            covered::refuse_twice(&files, &before)?;
            for path in files {
                settings.cancel.check()?;
                let (source, base) = open(fs, &path, wanted.format, &opening)?;
                covered::compare(known, &source, !covered::is_index(&path), remark)?;
                // An archive without a capture, or without a byte, is something else, or broken.
                if base.is_some() && source.grown.is_none() && is_without_items(&source)? {
                    remark(format!("found no capture in {}", path.display()));
                    unreadable.push(path.display().to_string());
                }
                sources.push(source);
                bases.extend(base);
            }
        }
        Given::Table(rows, name) => {
            let file = spool.insert(spooled(rows, settings)?);
            let source = source::open_as(fs, file.path(), &Opening { format: parquet, name: Some(&name), ..opening })?;
            covered::compare(known, &source, false, remark)?;
            sources.push(source);
        }
        Given::Spooled(files) => {
            for (path, name) in files {
                let path = canonical(&path)?;
                let opening = Opening { format: parquet, name: Some(&name), is_shared: true, ..opening };
                let source = source::open_as(fs, &path, &opening)?;
                covered::compare(known, &source, false, remark)?;
                sources.push(source);
            }
        }
    }
    Ok(Readied { sources, bases, unreadable, spool })
}

/// A file as a source, and for an archive where its dataset finds it again.
fn open(
    fs: &Arc<dyn Fs>,
    path: &Path,
    format: Option<Format>,
    opening: &Opening<'_>,
) -> Result<(Source, Option<String>)> {
    let remote = path.to_str().is_some_and(is_remote);
    let format = match format {
        None => source::detect(fs, path)?,
        told => told,
    };
    if format.is_none() && !remote && path.is_dir() {
        let reason = format!(
            "{}: expected a file, found a directory that is not a container: name its files, or a pattern such as '{0}/**/*.warc.gz'",
            path.display()
        );
        return Err(trawl_store::Error::Refused { reason }.into());
    }
    let source = source::open_as(fs, path, &Opening { format, ..*opening })?;
    let base = path.parent().filter(|_| format.is_some_and(Format::is_archive)).map(|dir| {
        let scheme = if remote { "" } else { "file://" };
        format!("{scheme}{}/", dir.display())
    });
    Ok((source, base))
}

/// Whether there is nothing in a source: it is read up to its first item.
fn is_without_items(source: &Source) -> std::result::Result<bool, DoorError> {
    let mut found = false;
    for split in source.splits(u64::MAX)? {
        let read = source.read(split, &mut |_, _| {
            found = true;
            Err(DoorError::new(Advice::Stop, "enough"))
        });
        if found {
            return Ok(false);
        }
        read?;
    }
    Ok(true)
}

/// One spelling of a path: the same file named another way is the same source.
fn canonical(path: &Path) -> Result<PathBuf> {
    if path.to_str().is_some_and(is_remote) {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|problem| trawl_io::Error::io(trawl_io::Op::Open, path, problem).into())
}

/// A table in a Parquet file of ours: sources are read more than once, and by splits.
fn spooled(rows: RecordBatchStreamReader, settings: &IngestSettings) -> Result<Spool> {
    let (spool, file) = Spool::create(&settings.temp_dir, &settings.writer)?;
    write_parquet(file, rows, &settings.cancel)?;
    Ok(spool)
}

/// Writes a table as Parquet.
pub fn write_parquet(
    to: impl std::io::Write + Send,
    rows: RecordBatchStreamReader,
    cancel: &trawl_store::Cancel,
) -> Result<()> {
    // Types that only Arrow tells apart (views, dictionaries) are plain texts when they are read again.
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(to, rows.schema(), options)?;
    for batch in rows {
        cancel.check()?;
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

/// The sources that a dataset has, if it is there.
pub fn known_sources(lake: &trawl_store::Lake, name: &str) -> Result<Vec<KnownSource>> {
    let manifest = lake.current()?;
    let Some(dataset) = manifest.dataset_named(name) else { return Ok(Vec::new()) };
    Ok(lake.dataset_newest(dataset.id)?.map(|commit| commit.sources).unwrap_or_default())
}

/// The dataset, and whether it was made just now because it was not there. It learns which directories hold its archives.
pub fn register(
    lake: &trawl_store::Lake,
    name: &str,
    source: Option<String>,
    bases: &[String],
) -> Result<(Dataset, bool)> {
    let nonce = place::nonce().map_err(|problem| problem.to_string())?;
    let committed = lake.commit(place::now(), &nonce, |manifest| {
        let is_new = manifest.dataset_named(name).is_none();
        let id = manifest.register(place::now(), DatasetInfo { source: source.clone(), ..DatasetInfo::named(name) })?;
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
    Ok((dataset.ok_or_else(|| trawl_store::Error::UnknownDataset { found: id.to_string() })?, is_new))
}
