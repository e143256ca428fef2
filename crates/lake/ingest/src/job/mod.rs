//! An ingest that many processes share, on one machine or on many.
//!
//! ```text
//!  plan ──► map ───────────────► reduce ───────────────► commit ──► (index, and a version: `trawl-maintain`)
//!  job.json  splits of sources     records of some         one dataset commit
//!            to one run each       prefixes to Parquet
//! ```
//! A [`Job`] holds all that the bytes of the files depend on; a task is a stage and a number. Any scheduler may run the tasks, in whatever
//! order within a stage, on machines of any size, as often as it likes and several times at once, gets the files that
//! [`crate::ingest`] writes: an attempt writes files that only it knows, and its last act is to create the one report of its task.
//! What no report names does not count. Between the processes nothing passes but the objects below `jobs/<job>/`, so that a
//! job goes on wherever a process or a machine ended.

mod commit;
mod map;
mod plan;
mod reduce;

pub use map::MapDone;
pub use plan::{TaskCounts, plan};
pub use reduce::ReduceDone;

use crate::join::Taken;
use crate::replace::Replaced;
use crate::run::Suffixes;
use crate::settings::{IngestSettings, Mode};
use crate::source::Opened;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use trawl_io::{Fs, RealFs};
use trawl_model::{SourceIdentity, Split, UnixMillis};
use trawl_store::{Cancel, Dataset, Lake, Manifest, Progress, Pulse, Stamp, Store, layout};

/// The format number of `job.json` that this program writes and reads.
const JOB_FORMAT: u32 = 1;

/// Encoders differ between releases, and all tasks promise the same bytes.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// What is ingested and how: `jobs/<job>/job.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    format: u32,
    /// Its name, which its files and commits have in theirs.
    pub job: String,
    /// The release whose tasks it takes.
    program: String,
    /// The dataset, as it was registered: should somebody withdraw it meanwhile, it is registered again.
    pub dataset: Dataset,
    /// The dataset's newest commit when the job was planned.
    base: u64,
    /// The state of the lake then: it tells what is denied.
    manifest: u64,
    /// Hash of the suffix list that cuts hosts into domains.
    suffix_list: String,
    mode: Mode,
    allow_empty: bool,
    /// Hex digits of `domain_prefix=`.
    pub prefix_digits: u8,
    store_ids: bool,
    zstd_level: i32,
    page_rows: usize,
    row_group_bytes: u64,
    file_bytes: u64,
    max_record_bytes: usize,
    max_rejects: u64,
    sources: Vec<JobSource>,
    /// What each map task reads: numbers of sources, and splits of them.
    splits: Vec<Vec<(usize, Split)>>,
    reduce_tasks: u32,
    /// Rows of a piece from which on the index is split, if not as many as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_rows: Option<u64>,
    /// Sources that the dataset has already.
    pub skipped: Vec<SourceIdentity>,
    stamped: Vec<(SourceIdentity, Stamp)>,
    replaced: Replaced,
}

/// A source of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct JobSource {
    taken: Taken,
    opened: Opened,
}

/// A stage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// Splits of sources to one sorted run.
    Map,
    /// Records of some prefixes to Parquet files.
    Reduce,
    /// The files of the commit to an index segment, or to the pieces of one for some prefixes.
    Index,
}

impl JobStage {
    /// Its name, also that of its directory.
    pub fn name(self) -> &'static str {
        match self {
            JobStage::Map => "map",
            JobStage::Reduce => "reduce",
            JobStage::Index => "index",
        }
    }
}

impl fmt::Display for JobStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for JobStage {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let stages = [JobStage::Map, JobStage::Reduce, JobStage::Index];
        let found = stages.into_iter().find(|stage| stage.name() == text);
        found.ok_or_else(|| format!("expected map, reduce or index, found {text:?}"))
    }
}

/// One task: what an engine carries to the process that does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The job.
    pub job: String,
    /// The stage; all tasks of the one before must be done.
    pub stage: JobStage,
    /// Which one, from 0.
    pub task: u32,
}

/// What a process has to work with. No byte of the files depends on it.
#[derive(Debug, Clone)]
pub struct Room {
    /// Memory for sorting and encoding, 1 GiB.
    pub memory_bytes: usize,
    /// Threads that parse, sort or encode, 2.
    pub threads: usize,
    /// Where sorted runs spill to.
    pub temp_dir: PathBuf,
    /// The file system of `temp_dir`.
    pub temp_fs: Arc<dyn Fs>,
    /// Ends the work early.
    pub cancel: Cancel,
}

impl Room {
    /// The defaults, with temporary files in `temp_dir`.
    pub fn new(temp_dir: impl Into<PathBuf>) -> Self {
        Self {
            memory_bytes: 1 << 30,
            threads: 2,
            temp_dir: temp_dir.into(),
            temp_fs: Arc::new(RealFs),
            cancel: Cancel::default(),
        }
    }
}

impl Job {
    /// The job of a name, if this program can take part in it.
    pub fn open(lake: &Lake, job: &str) -> Result<Self> {
        let path = layout::job_file(job)?;
        let read: Option<Self> = trawl_store::read_task(&**lake.store(), &path)?;
        let Some(read) = read else {
            return refuse(format!("{path}: expected a job, found none: it has ended, or `trawl lake gc` deleted it"));
        };
        let Self { format, program, .. } = &read;
        if *format != JOB_FORMAT || program != PROGRAM {
            return refuse(format!(
                "{path}: expected a job of this release, {PROGRAM}, found one of {program}: run all its tasks with that release"
            ));
        }
        Ok(read)
    }

    /// How many tasks a stage has.
    pub fn task_count(&self, stage: JobStage) -> u32 {
        match stage {
            // A plan makes no more than fit.
            JobStage::Map => u32::try_from(self.splits.len()).unwrap_or(u32::MAX),
            // Both are cut by prefix. If the rows are too few for an index that is split, the first index task makes it, and the others
            // have nothing to do.
            JobStage::Reduce | JobStage::Index => self.reduce_tasks,
        }
    }

    /// The tasks of a stage.
    pub fn tasks(&self, stage: JobStage) -> impl Iterator<Item = Task> + '_ {
        (0..self.task_count(stage)).map(move |task| Task { job: self.job.clone(), stage, task })
    }

    /// The tasks of a stage that have no report yet. One listing, so that a driver may ask it of a large job.
    pub fn missing(&self, lake: &Lake, stage: JobStage) -> Result<Vec<u32>> {
        let dir = format!("{}/{stage}", layout::job_dir(&self.job)?);
        let done: HashSet<String> = lake.store().list(&dir)?.into_iter().map(|object| object.path).collect();
        let mut missing = Vec::new();
        for task in 0..self.task_count(stage) {
            if !done.contains(&layout::task_report(&self.job, stage.name(), task)?) {
                missing.push(task);
            }
        }
        Ok(missing)
    }

    /// Refuses a number that no task of the stage has.
    pub fn check_task(&self, stage: JobStage, task: u32) -> Result<()> {
        let count = self.task_count(stage);
        if task < count {
            return Ok(());
        }
        refuse(format!(
            "expected a {stage} task of job {} from 0 to {}, found {task}",
            self.job,
            count.saturating_sub(1)
        ))
    }

    /// A sign of life: the processes of a job are one writer.
    pub fn pulse<'a>(&self, lake: &'a Lake, clock: &'a dyn Fn() -> UnixMillis) -> Result<Pulse<'a>> {
        let dataset = [layout::dataset_dir(self.dataset.id), layout::records_dir(self.dataset.id)];
        let mut prefixes: Vec<String> = dataset.iter().map(|dir| format!("{dir}/")).collect();
        prefixes.push(format!("{}/", layout::job_dir(&self.job)?));
        prefixes.push(format!("{}-", layout::segment_dir(&self.job)?));
        Ok(Pulse::start(lake, clock, &self.job, "ingest", prefixes)?)
    }

    /// The settings of an attempt: what the job says, and the room of the machine.
    fn settings(&self, writer: String, room: &Room) -> Result<IngestSettings> {
        let settings = IngestSettings {
            mode: self.mode,
            allow_empty: self.allow_empty,
            memory_bytes: room.memory_bytes,
            threads: room.threads,
            temp_fs: room.temp_fs.clone(),
            prefix_digits: Some(self.prefix_digits),
            store_ids: self.store_ids,
            zstd_level: self.zstd_level,
            page_rows: self.page_rows,
            row_group_bytes: self.row_group_bytes,
            file_bytes: self.file_bytes,
            max_record_bytes: Some(self.max_record_bytes),
            max_rejects: self.max_rejects,
            cancel: room.cancel.clone(),
            ..IngestSettings::new(writer, &room.temp_dir)
        };
        settings.check()?;
        Ok(settings)
    }

    /// The state of the lake that the job was planned in, and its suffix list.
    fn began(&self, lake: &Lake) -> Result<(Manifest, Suffixes)> {
        let Some(manifest) = lake.manifest(self.manifest)? else {
            return refuse(format!(
                "state {} of the lake, in which job {} was planned, has been collected: plan it again",
                self.manifest, self.job
            ));
        };
        let suffixes = Suffixes::parse(&lake.suffix_list(&manifest)?, self.suffix_list.clone())?;
        Ok((manifest, suffixes))
    }

    /// Reads the reports of all tasks of a stage.
    pub fn reports<T: serde::de::DeserializeOwned>(&self, store: &dyn Store, stage: JobStage) -> Result<Vec<T>> {
        let mut reports = Vec::new();
        for task in 0..self.task_count(stage) {
            let path = layout::task_report(&self.job, stage.name(), task)?;
            let Some(report) = trawl_store::read_task(store, &path)? else {
                return refuse(format!(
                    "{path}: expected the report of {stage} task {task}, found none: run this task first"
                ));
            };
            reports.push(report);
        }
        Ok(reports)
    }
}

/// A process that takes part in a job.
pub struct JobWork<'a> {
    /// The lake.
    pub lake: &'a Lake,
    /// The job.
    pub job: &'a Job,
    /// What it has to work with.
    pub room: &'a Room,
    /// The clock.
    pub clock: &'a dyn Fn() -> UnixMillis,
    /// Hears how far the work is.
    pub progress: &'a dyn Fn(Progress),
}

impl JobWork<'_> {
    fn store(&self) -> &dyn Store {
        &**self.lake.store()
    }

    /// Begins an attempt at a task: its report, if it is done already.
    fn done<T: serde::de::DeserializeOwned>(&self, stage: JobStage, task: u32) -> Result<(String, Option<T>)> {
        self.job.check_task(stage, task)?;
        let path = layout::task_report(&self.job.job, stage.name(), task)?;
        let done = trawl_store::read_task(self.store(), &path)?;
        Ok((path, done))
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Store(trawl_store::Error::Refused { reason }))
}
