//! The tasks of a job, and what makes them visible: the whole way from sources to a version, by any number of processes.
//!
//! ```text
//!  trawl_ingest::job::plan ─► map tasks ─► reduce tasks ─► commit ─► index tasks ─► commit
//!                                                          rows are safe            rows are found
//! ```
//! The stages up to the first commit are those of [`trawl_ingest::job`]; here the index is made of what they wrote. A commit does
//! what is next, and may be repeated at any time by anybody who knows the name of the job.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trawl_index::{BuildOptions, Built, Published, Share, build_share, publish_built};
use trawl_ingest::IngestReport;
use trawl_ingest::job::{Job, JobStage, JobWork, MapDone, ReduceDone, Room, Task};
use trawl_io::Fs;
use trawl_model::UnixMillis;
use trawl_store::{Lake, OwnFiles, Progress, layout, read_task};

/// What an index task has done: its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexDone {
    /// The task.
    pub task: u32,
    /// The attempt that did it.
    pub attempt: String,
    /// What it made of the segment; `None` if a version serves the rows already.
    pub built: Option<Built>,
}

/// What a task has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum TaskDone {
    /// A run of sorted records.
    Map(MapDone),
    /// Parquet files.
    Reduce(ReduceDone),
    /// An index segment, or pieces of it.
    Index(IndexDone),
}

/// What a commit made of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobCommit {
    /// The rows are committed; the index tasks are next, then another commit.
    Rows(Box<IngestReport>),
    /// A version serves the rows, and the job has ended.
    Version(Box<Published>),
}

/// Does one task of a job. Sources are opened on `fs`; `attempt` names this attempt, new each time. If the task is done
/// already, or another attempt is faster, the answer is what that one did.
pub fn run_task(
    lake: &Lake,
    fs: &Arc<dyn Fs>,
    task: &Task,
    attempt: &str,
    room: &Room,
    clock: &dyn Fn() -> UnixMillis,
    progress: &dyn Fn(Progress),
) -> Result<TaskDone> {
    let job = Job::open(lake, &task.job)?;
    let work = JobWork { lake, job: &job, room, clock, progress };
    Ok(match task.stage {
        JobStage::Map => TaskDone::Map(work.map(fs, task.task, attempt)?),
        JobStage::Reduce => TaskDone::Reduce(work.reduce(task.task, attempt)?),
        JobStage::Index => TaskDone::Index(index(&work, task.task, attempt)?),
    })
}

/// Makes the index of what a job has committed.
fn index(work: &JobWork<'_>, task: u32, attempt: &str) -> Result<IndexDone> {
    let (lake, job) = (work.lake, work.job);
    let path = layout::task_report(&job.job, JobStage::Index.name(), task)?;
    if let Some(done) = read_task(&**lake.store(), &path)? {
        return Ok(done);
    }
    job.check_task(JobStage::Index, task)?;
    if job.committed(lake)?.is_none() {
        let reason = format!("the rows of job {} are not committed yet: commit first, then make the index", job.job);
        return Err(trawl_store::Error::Refused { reason }.into());
    }
    let pulse = job.pulse(lake, work.clock)?;
    let share = Share { number: task, of: job.task_count(JobStage::Index) };
    let segment = layout::segment_dir(&format!("{}-{attempt}", job.job))?;
    // Pieces lie in a directory that all attempts share: they have the same bytes, whoever wrote them last, and may be what another
    // attempt has reported. So none of them is removed here.
    let own = OwnFiles::below(&**lake.store(), segment, |_| true);
    let options = build_options(job, work.room);
    let built = build_share(lake, job.dataset.id, &job.job, attempt, share, &options, &|p| {
        pulse.now_and_then();
        (work.progress)(p);
    })?;
    Ok(own.settle(&path, IndexDone { task, attempt: attempt.to_owned(), built })?)
}

/// Commits what is next: the rows, once all map and reduce tasks are done, then, once all index tasks are done, a version, which ends
/// the job. `attempt` names this call, new each time: it may be repeated, and called by several at once.
pub fn commit_job(
    lake: &Lake,
    job: &str,
    attempt: &str,
    room: &Room,
    clock: &dyn Fn() -> UnixMillis,
    progress: &dyn Fn(Progress),
) -> Result<JobCommit> {
    let job = Job::open(lake, job)?;
    let work = JobWork { lake, job: &job, room, clock, progress };
    let attempt = format!("{}-{attempt}", job.job);
    for task in 0..job.task_count(JobStage::Index) {
        if !lake.store().exists(&layout::task_report(&job.job, JobStage::Index.name(), task)?)? {
            return Ok(JobCommit::Rows(Box::new(work.commit(&attempt)?)));
        }
    }
    let indexed: Vec<IndexDone> = job.reports(&**lake.store(), JobStage::Index)?;
    let _pulse = job.pulse(lake, clock)?;
    let built: Vec<Built> = indexed.into_iter().filter_map(|done| done.built).collect();
    let published = if built.is_empty() {
        Published::default()
    } else {
        let options = build_options(&job, room);
        publish_built(lake, job.dataset.id, &built, clock, &job.job, &attempt, &options, progress)?
    };
    work.end()?;
    Ok(JobCommit::Version(Box::new(published)))
}

fn build_options(job: &Job, room: &Room) -> BuildOptions {
    let mut options = BuildOptions::new(&room.temp_dir);
    options.memory_bytes = options.memory_bytes.min(room.memory_bytes);
    options.threads = room.threads;
    options.piece_rows = job.piece_rows.unwrap_or(options.piece_rows);
    options.cancel = room.cancel.clone();
    options
}
