//! `trawl lake plan`, `task` and `commit`: an ingest that many processes share.

use super::LakeArg;
use super::ingest::{HowArgs, WriteArgs, open_sources};
use super::tell::show_progress;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use trawl_ingest::job::{Job, JobStage, Room, Task, TaskCounts};
use trawl_maintain::{JobCommit, TaskDone, commit_job, run_task};

/// Cuts an ingest into tasks that several machines can share
///
/// Prints the name of the job. Run its tasks `map` 0 to N-1, then `reduce` 0 to M-1, then `trawl lake commit`, then `index` 0 to
/// M-1, then `trawl lake commit` again. With --json each task is printed as a line, which `trawl lake task` takes as its argument. Tasks
/// of one stage run in any order, on any machines that see the lake and the sources under the same names; a task may be
/// repeated, and run twice at the same time. The Parquet and index files have the same bytes as those of `trawl lake ingest`.
///
/// Sources are named as for `trawl lake ingest`. Standard input, and sources that have grown since the dataset took them, are
/// refused. `trawl lake gc` deletes a job that has shown no sign of life for the grace period.
///
/// Example, with the tasks on all processors of this machine:
///   job=$(trawl lake plan --lake lake --dataset news --map-tasks 8 lists/*.txt)
///   seq 0 7 | xargs -P 0 -n 1 trawl lake task --lake lake --job "$job" map
///   trawl lake task --lake lake --job "$job" reduce 0
///   trawl lake commit --lake lake --job "$job"
///   trawl lake task --lake lake --job "$job" index 0
///   trawl lake commit --lake lake --job "$job"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PlanArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name of the dataset
    #[arg(long, value_name = "NAME")]
    dataset: String,

    /// Files, directories, patterns, s3:// and https:// addresses of files
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<PathBuf>,

    #[command(flatten)]
    how: HowArgs,

    #[command(flatten)]
    written: WriteArgs,

    /// Number of tasks that read sources; one for each 512 MiB by default
    #[arg(long, value_name = "N", help_heading = "Tasks")]
    map_tasks: Option<u32>,

    /// Number of tasks that write Parquet, and then the index; by default one for each prefix (1, 16 or 256), which is also
    /// the limit
    #[arg(long, value_name = "N", help_heading = "Tasks")]
    reduce_tasks: Option<u32>,
}

/// Does one task of a job
///
/// The task is a stage (map, reduce or index) and a number, or a line that `trawl lake plan --json` printed. A task that is already
/// done only reports the result. After a failure (exit code 2) it can be run again.
///
/// Examples:
///   trawl lake task --lake lake --job "$job" map 3
///   trawl lake task '{"lake":"lake","job":"2f0c…","stage":"map","task":3}'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct TaskArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name of the job, as `trawl lake plan` printed it
    #[arg(long, value_name = "JOB")]
    job: Option<String>,

    /// map, reduce or index; or a task as JSON
    #[arg(value_name = "STAGE")]
    stage: String,

    /// Which task of the stage, from 0
    #[arg(value_name = "N")]
    task: Option<u32>,

    #[command(flatten)]
    room: RoomArgs,
}

/// Commits what the tasks of a job have done
///
/// After all map and reduce tasks it commits their rows; after the index tasks it makes the rows visible and ends the job. It may
/// be repeated: each row is added once.
///
/// Example: trawl lake commit --lake lake --job "$job"
#[derive(Debug, clap::Args)]
pub struct CommitArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name of the job, as `trawl lake plan` printed it
    #[arg(long, value_name = "JOB")]
    job: String,

    #[command(flatten)]
    room: RoomArgs,
}

/// What a process may use. The bytes it writes do not depend on it.
#[derive(Debug, clap::Args)]
struct RoomArgs {
    /// Memory for sorting and encoding; less spills more to disk
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,

    /// Threads that parse, sort and encode
    #[arg(long, default_value_t = 2, value_name = "N")]
    threads: usize,

    /// Directory for temporary files; inside the lake by default
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl RoomArgs {
    fn room(&self, lake: &Path) -> anyhow::Result<Room> {
        let temp_dir = self.temp_dir.clone().unwrap_or_else(|| lake_dir::temp(lake));
        trawl_maintain::temp::make_dir(&temp_dir)?;
        let memory_bytes = usize::try_from(self.memory).context("--memory")?;
        Ok(Room { memory_bytes, threads: self.threads, ..Room::new(temp_dir) })
    }
}

pub(super) fn plan(args: PlanArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let added = args.how.added(args.dataset, args.sources);
    // Looked at before a lake is made: a wrong name leaves nothing behind.
    added.check()?;
    let mut settings = args.how.settings(&args.written)?;
    settings.check()?;
    let lake = lake_dir::open_or_make(dir)?;
    settings.temp_dir = lake_dir::temp(dir);
    trawl_maintain::temp::make_dir(&settings.temp_dir)?;
    let open = open_sources(&lake, &added, &settings, out)?;
    let (dataset, is_new) = open.register(&lake, &added, settings.mode, out)?;
    let counts = TaskCounts { map: args.map_tasks, reduce: args.reduce_tasks };
    let planned = trawl_ingest::job::plan(&lake, dataset.id, &open.sources, &settings, counts, &system::now);
    if planned.is_err() && is_new {
        let _ = lake.withdraw_dataset(system::now(), &system::nonce()?, dataset.id);
    }
    let Some(job) = planned? else {
        out.remark("the dataset has all these sources already: there is nothing to do");
        return Ok(Status::from_findings(true));
    };
    for skipped in &job.skipped {
        out.remark(&format!("skipped {}: the dataset has it already", skipped.uri));
    }
    open.beside.lines().for_each(|line| out.remark(&line));
    tell_plan(&job, dir, out)?;
    Ok(Status::from_findings(open.beside.is_short()))
}

fn tell_plan(job: &Job, dir: &Path, out: &mut Output) -> anyhow::Result<()> {
    let stages = [JobStage::Map, JobStage::Reduce, JobStage::Index];
    if out.json() {
        for task in stages.iter().flat_map(|stage| job.tasks(*stage)) {
            let mut json = serde_json::to_value(&task)?;
            json["lake"] = dir.display().to_string().into();
            out.json_line(&json)?;
        }
        return Ok(());
    }
    let counts = stages.map(|stage| format!("{} {stage}", show_count(u64::from(job.task_count(stage)))));
    out.remark(&format!("tasks: {}; a commit comes after reduce, and one after index", counts.join(", ")));
    out.fact(&job.job, |w| writeln!(w, "{}", job.job))?;
    Ok(())
}

/// A task as `trawl lake plan --json` prints it.
#[derive(Deserialize)]
struct TaskLine {
    lake: PathBuf,
    #[serde(flatten)]
    task: Task,
}

/// A name for one attempt.
fn attempt() -> anyhow::Result<String> {
    Ok(system::nonce()?.chars().take(16).collect())
}

pub(super) fn task(args: &TaskArgs, out: &mut Output) -> anyhow::Result<Status> {
    let (dir, task) = if args.stage.starts_with('{') {
        let line: TaskLine =
            serde_json::from_str(&args.stage).context("the task is not one that `trawl lake plan --json` printed")?;
        (line.lake, line.task)
    } else {
        let stage = args.stage.parse::<JobStage>().map_err(|error: String| anyhow::anyhow!(error))?;
        let (Some(job), Some(task)) = (args.job.clone(), args.task) else {
            bail!("expected --job JOB, a stage and the number of a task, or a task as JSON");
        };
        (args.lake.lake.clone(), Task { job, stage, task })
    };
    let lake = lake_dir::open(&dir)?;
    let room = args.room.room(&dir)?;
    let bar = Progress::start(task.stage.name(), None, out.quiet());
    let attempt = attempt()?;
    let done = run_task(&lake, &lake_dir::files()?, &task, &attempt, &room, &system::now, &|p| show_progress(&bar, p));
    drop(bar);
    let done = done?;
    let text = match &done {
        TaskDone::Map(done) => {
            let (rows, rejected) = (show_count(done.report.rows), show_count(done.report.rejected.total));
            format!("{rows} rows in a run of {}, {rejected} rejected", show_bytes(done.bytes))
        }
        TaskDone::Reduce(done) => {
            let rows: u64 = done.files.iter().map(|file| file.rows).sum();
            format!("{} rows in {} file(s)", show_count(rows), show_count(done.files.len() as u64))
        }
        TaskDone::Index(done) => match done.built.as_ref().filter(|built| !built.pieces.is_empty()) {
            Some(built) => {
                let rows = show_count(built.pieces.values().map(|piece| piece.rows).sum());
                let pieces =
                    if built.split == 0 { String::new() } else { format!("{} piece(s) of ", built.pieces.len()) };
                format!("{pieces}segment {}, {rows} rows", built.id)
            }
            None => "nothing to index".to_owned(),
        },
    };
    out.fact(&done, |w| writeln!(w, "{} {}: {text}", task.stage, task.task))?;
    Ok(Status::Done)
}

pub(super) fn commit(args: &CommitArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = lake_dir::open(dir)?;
    let room = args.room.room(dir)?;
    let bar = Progress::start("commit", None, out.quiet());
    let done = commit_job(&lake, &args.job, &attempt()?, &room, &system::now, &|p| show_progress(&bar, p));
    drop(bar);
    match done? {
        JobCommit::Rows(report) => {
            let mut json = serde_json::to_value(&report)?;
            json["type"] = "rows".into();
            out.fact(&json, |w| {
                let (rows, files) = (show_count(report.rows), show_count(report.files));
                writeln!(w, "committed {rows} rows in {files} file(s), {}", show_bytes(report.bytes))?;
                for (code, n) in &report.rejected_by_code {
                    writeln!(w, "  rejected {}: {code}", show_count(*n))?;
                }
                report.rejects_file.iter().try_for_each(|file| writeln!(w, "  rejects are in {file}"))
            })?;
            out.remark("next: the index tasks, then commit again");
            Ok(Status::from_findings(report.rejected > 0))
        }
        JobCommit::Version(published) => {
            let json = serde_json::json!({
                "type": "version", "version": published.version, "commits": published.commits, "waiting": published.waiting,
            });
            out.fact(&json, |w| match &published.version {
                Some(version) => writeln!(w, "published version {version}"),
                None => writeln!(w, "nothing new to publish"),
            })?;
            Ok(Status::from_findings(!published.waiting.is_empty() || !published.damaged.is_empty()))
        }
    }
}
