//! The tasks of a job, and what makes them visible: the whole way from sources to a version, by any number of processes.
//!
//! ```text
//!  trawl_ingest::job::plan ─► map tasks ─► reduce tasks ─► commit ─► index task ─► commit
//!                                                          rows are safe           rows are found
//! ```
//! The stages up to the first commit are those of [`trawl_ingest::job`]; here the index is made of what they wrote. A commit does
//! what is next, and may be repeated at any time by anybody who knows the name of the job.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trawl_index::{BuildOptions, Piece, Published, build_piece, publish_piece};
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
    /// The segment; `None` if a version serves the rows already.
    pub piece: Option<Piece>,
}

/// What a task has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum TaskDone {
    /// A run of sorted records.
    Map(MapDone),
    /// Parquet files.
    Reduce(ReduceDone),
    /// An index segment.
    Index(IndexDone),
}

/// What a commit made of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobCommit {
    /// The rows are committed; the index task is next, then another commit.
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
    let segment = format!("{}-{attempt}", job.job);
    let own = OwnFiles::below(&**lake.store(), layout::segment_dir(&segment)?, |_| true);
    let piece = build_piece(lake, job.dataset.id, &segment, &build_options(work.room), &|p| {
        pulse.now_and_then();
        (work.progress)(p);
    })?;
    Ok(own.settle(&path, IndexDone { task, attempt: attempt.to_owned(), piece })?)
}

/// Commits what is next: the rows, once all map and reduce tasks are done, then, once the index task is done, a version, which ends
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
    let path = layout::task_report(&job.job, JobStage::Index.name(), 0)?;
    let indexed: Option<IndexDone> = read_task(&**lake.store(), &path)?;
    let attempt = format!("{}-{attempt}", job.job);
    let Some(indexed) = indexed else { return Ok(JobCommit::Rows(Box::new(work.commit(&attempt)?))) };
    let _pulse = job.pulse(lake, clock)?;
    let published = match &indexed.piece {
        Some(piece) => {
            publish_piece(lake, job.dataset.id, piece, clock, &job.job, &attempt, &build_options(room), progress)?
        }
        None => Published::default(),
    };
    work.end()?;
    Ok(JobCommit::Version(Box::new(published)))
}

fn build_options(room: &Room) -> BuildOptions {
    let mut options = BuildOptions::new(&room.temp_dir);
    options.memory_bytes = options.memory_bytes.min(room.memory_bytes);
    options.cancel = room.cancel.clone();
    options
}
