//! An ingest that many processes share: each call is a verb of the command line (`trawl lake plan`, `task`, `commit`).
//!
//! A process that does a task knows the lake by its path and the job by its name, so that any engine can carry both.

use crate::ingest::{Given, Readied, Wanted, known_sources, ready, register, write_parquet};
use crate::lake::Lake;
use crate::{column, error, ingest, json, place, upkeep, work};
use arrow_array::ffi_stream::RecordBatchStreamReader;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::path::PathBuf;
use trawl_ingest::IngestSettings;
use trawl_ingest::job::{Job, JobStage, Room, Task, TaskCounts};
use trawl_maintain::{Event, JobCommit, commit_job, run_task, temp};
use trawl_store::{Cancel, HashedUpload, KnownSource, layout};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const STAGES: [JobStage; 3] = [JobStage::Map, JobStage::Reduce, JobStage::Index];

/// Cuts an ingest into tasks. Gives the name of the job; None if the dataset has all sources already.
///
/// With a `source_id` the sources are tables that `job_spool` wrote, which a repeated ingest knows by that name.
#[pyfunction]
#[pyo3(signature = (lake, dataset, sources, *, name=None, source_id=None, format=None, mode="append", allow_empty=false, source=None, map_tasks=None, reduce_tasks=None, prefix_digits=None, store_ids=false, zstd_level=6))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn job_plan(
    py: Python<'_>,
    lake: &Lake,
    dataset: String,
    sources: &Bound<'_, PyAny>,
    name: Option<String>,
    source_id: Option<String>,
    format: Option<&str>,
    mode: &str,
    allow_empty: bool,
    source: Option<String>,
    map_tasks: Option<u32>,
    reduce_tasks: Option<u32>,
    prefix_digits: Option<u8>,
    store_ids: bool,
    zstd_level: i32,
) -> PyResult<Option<String>> {
    if sources.hasattr("__arrow_c_stream__")? {
        return Err(error::refused(
            "a table can be read only by this process: write it to a file that all tasks can open",
        ));
    }
    let given = match (Given::of(sources, None)?, source_id) {
        (Given::Files(files), Some(id)) => {
            let named = files.into_iter().enumerate().map(|(n, path)| (path, format!("arrow:{id}/{n}")));
            Given::Spooled(named.collect())
        }
        (given, _) => given,
    };
    let format = format.map(str::parse).transpose().map_err(|problem: String| error::refused(problem))?;
    let wanted = Wanted { given, dataset, format, source };
    let writer = name.map_or_else(place::nonce, Ok)?;
    let settings = IngestSettings {
        mode: ingest::mode(mode)?,
        allow_empty,
        prefix_digits,
        store_ids,
        zstd_level,
        ..IngestSettings::new(writer, place::temp(&lake.uri))
    };
    settings.check().map_err(|problem| error::of(&problem))?;
    let counts = TaskCounts { map: map_tasks, reduce: reduce_tasks };
    let fs = place::files()?;
    let (planned, remarks) = upkeep::kept(py, lake, &settings.cancel, &settings, |keeper, lake| {
        let remark = |text| (keeper.tell)(Event::Remark(text));
        let Wanted { dataset, source, .. } = &wanted;
        let (dataset, source) = (dataset.clone(), source.clone());
        let Readied { sources, bases, .. } = ready(lake, &fs, wanted, &settings, &remark)?;
        let (dataset, is_new) = register(lake, &dataset, source, &bases)?;
        let planned = trawl_ingest::job::plan(lake, dataset.id, &sources, &settings, counts, &place::now);
        if planned.is_err() && is_new {
            // A plan that fails leaves no name behind; its error is what matters.
            let _ = lake.withdraw_dataset(place::now(), &format!("{}-withdraw", settings.writer), dataset.id);
        }
        Ok(planned?.map(|job| job.job))
    })?;
    upkeep::warn(py, &remarks)?;
    Ok(planned)
}

/// A lake for the processes of a job. They read each object once, so there is no cache before a store on a server.
fn open(lake: &str) -> PyResult<trawl_store::Lake> {
    trawl_store::Lake::open(place::store(lake, 0)?).map_err(|problem| error::of(&problem))
}

fn room(lake: &str, memory_bytes: usize, threads: usize, temp_dir: Option<String>, cancel: &Cancel) -> Fallible<Room> {
    let temp_dir = temp_dir.map_or_else(|| place::temp(lake), PathBuf::from);
    temp::make_dir(&temp_dir)?;
    Ok(Room { memory_bytes, threads, cancel: cancel.clone(), ..Room::new(temp_dir) })
}

/// A name for one attempt.
fn attempt() -> PyResult<String> {
    Ok(place::nonce()?.chars().take(16).collect())
}

/// Which tasks of each stage have no report yet, by the name of the stage, in the order of the stages.
#[pyfunction]
pub fn job_missing<'py>(py: Python<'py>, lake: &str, job: &str) -> PyResult<Bound<'py, PyDict>> {
    let missing = work::run(py, &Cancel::default(), || -> PyResult<_> {
        let lake = open(lake)?;
        let job = Job::open(&lake, job).map_err(|problem| error::of(&problem))?;
        let missing = STAGES.map(|stage| Ok((stage.name(), job.missing(&lake, stage)?)));
        let missing: trawl_ingest::Result<Vec<_>> = missing.into_iter().collect();
        missing.map_err(|problem| error::of(&problem))
    })??;
    let by_stage = PyDict::new(py);
    for (stage, tasks) in missing {
        by_stage.set_item(stage, tasks)?;
    }
    Ok(by_stage)
}

/// Does one task of a job; gives its report. One that is done already is not done again.
#[pyfunction]
#[pyo3(signature = (lake, job, stage, task, *, memory_bytes=1 << 30, threads=2, temp_dir=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn job_task<'py>(
    py: Python<'py>,
    lake: &str,
    job: &str,
    stage: &str,
    task: u32,
    memory_bytes: usize,
    threads: usize,
    temp_dir: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let stage: JobStage = stage.parse().map_err(|problem: String| error::refused(problem))?;
    let task = Task { job: job.to_owned(), stage, task };
    let (fs, attempt, cancel) = (place::files()?, attempt()?, Cancel::default());
    let done = work::run(py, &cancel, || -> PyResult<_> {
        let opened = open(lake)?;
        let done = room(lake, memory_bytes, threads, temp_dir, &cancel)
            .and_then(|room| Ok(run_task(&opened, &fs, &task, &attempt, &room, &place::now, &|_| ())?));
        done.map_err(|problem| error::of(&*problem))
    })??;
    json::answer(py, &done)
}

/// Commits what the tasks of a job have done: `type` is "rows" after map and reduce, "version" after the index, which ends the job.
#[pyfunction]
#[pyo3(signature = (lake, job, *, memory_bytes=1 << 30, threads=2, temp_dir=None))]
pub fn job_commit<'py>(
    py: Python<'py>,
    lake: &str,
    job: &str,
    memory_bytes: usize,
    threads: usize,
    temp_dir: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let (attempt, cancel) = (attempt()?, Cancel::default());
    let done = work::run(py, &cancel, || -> PyResult<_> {
        let opened = open(lake)?;
        let done = room(lake, memory_bytes, threads, temp_dir, &cancel)
            .and_then(|room| Ok(commit_job(&opened, job, &attempt, &room, &place::now, &|_| ())?));
        done.map_err(|problem| error::of(&*problem))
    })??;
    let json = match done {
        JobCommit::Rows(report) => {
            let mut json = serde_json::to_value(&report).map_err(|problem| error::of(&problem))?;
            json["type"] = "rows".into();
            json
        }
        JobCommit::Version(published) => json!({
            "type": "version", "version": published.version, "commits": published.commits, "waiting": published.waiting,
        }),
    };
    json::to_python(py, &json)
}

/// Whether a dataset has taken tables under this `source_id`.
#[pyfunction]
pub fn job_knows(py: Python<'_>, lake: &Lake, dataset: &str, source_id: &str) -> PyResult<bool> {
    // One table by itself, or the parts of a DataFrame.
    let (name, prefix) = (format!("arrow:{source_id}"), format!("arrow:{source_id}/"));
    let is_it = |known: &KnownSource| known.identity.uri == name || known.identity.uri.starts_with(&prefix);
    let known = work::run(py, &Cancel::default(), || {
        let opened = trawl_store::Lake::open(lake.store.clone())?;
        Ok(known_sources(&opened, dataset)?.iter().any(is_it))
    })?;
    known.map_err(|problem: Box<dyn std::error::Error + Send + Sync>| error::of(&*problem))
}

/// Writes a table below the directory of a job that is not planned yet, where every task can read it; gives its path. It goes
/// when the job ends, or with a `gc` if the job never begins.
#[pyfunction]
pub fn job_spool(py: Python<'_>, lake: &str, job: &str, table: &Bound<'_, PyAny>) -> PyResult<String> {
    let rows = RecordBatchStreamReader::try_new(column::stream(table)?);
    let rows = rows.map_err(|problem| error::refused(format!("expected a table: {problem}")))?;
    let attempt = attempt()?;
    // Not on a thread of its own: the table may be one that Python makes as it is read.
    let written = (|| -> Fallible<String> {
        let path = layout::task_file(job, "rows", 0, &attempt, "parquet")?;
        let opened = open(lake)?;
        let mut upload = HashedUpload::begin(&**opened.store(), &path)?;
        write_parquet(&mut upload, rows, &Cancel::default())?;
        upload.finish()?;
        Ok(format!("{}/{path}", lake.trim_end_matches('/')))
    })();
    let _ = py;
    written.map_err(|problem| error::of(&*problem))
}
