//! The first step: which sources are taken, and who reads what.

use super::{JOB_FORMAT, Job, JobSource, JobStage, PROGRAM, refuse};
use crate::ingest::{Begun, Chosen, begin, digits_for};
use crate::join::note_stamps;
use crate::map::MAX_RECORD_BYTES;
use crate::settings::{IngestSettings, Mode};
use crate::source::Source;
use crate::{Error, Result};
use trawl_model::{Split, UnixMillis, UrlSource};
use trawl_store::{Lake, create_task, layout};

/// Bytes of sources that a map task reads unless told otherwise: its records sort in a gigabyte of memory.
const MAP_BYTES: u64 = 512 << 20;
/// Splits that a map task gets at least, if the sources can be cut so often: its threads share them.
const SPLITS_A_TASK: u64 = 4;
/// More tasks than this are a slip of the pen.
const MAX_TASKS: u32 = 100_000;

/// Into how many tasks a job is cut. No byte of the files depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Map tasks; one for each 512 MiB of sources unless told otherwise. Fewer, if the sources cannot be cut so often.
    pub map: Option<u32>,
    /// Reduce tasks, and index tasks; one for each prefix unless told otherwise, and at most so many.
    pub reduce: Option<u32>,
}

/// Plans the ingest of `sources` into a dataset; `settings.writer` becomes the name of the job. `None` if the dataset has all of
/// them already.
///
/// What depends on the bytes that a dataset has taken before stays with [`crate::ingest`]: a source that has grown since is
/// refused, and so is one that no other process could open, such as what came through a pipe.
pub fn plan(
    lake: &Lake,
    dataset_id: u32,
    sources: &[Source],
    settings: &IngestSettings,
    tasks: TaskCounts,
    clock: &dyn Fn() -> UnixMillis,
) -> Result<Option<Job>> {
    settings.check()?;
    let Begun { suffixes, began, before, replaced, chosen, report } = begin(lake, dataset_id, sources, settings.mode)?;
    let Chosen { taken, new, stamped } = chosen;
    if taken.is_empty() {
        if settings.mode == Mode::Replace {
            return refuse("the job has no sources, and would remove all rows of the dataset".into());
        }
        if !replaced.sources.is_empty() {
            return refuse(
                "nothing is to be read, only what was before is to go: do it with `trawl lake ingest`".into(),
            );
        }
        lake.commit_dataset(dataset_id, clock(), &settings.writer, |commit| Ok(note_stamps(commit, &stamped)))?;
        return Ok(None);
    }
    let unknown = || trawl_store::Error::UnknownDataset { found: dataset_id.to_string() };
    let dataset = began.dataset(dataset_id).ok_or_else(unknown)?;
    let digits = settings.prefix_digits.unwrap_or_else(|| digits_for(&new));
    let splits = cut(&taken, settings.split_bytes, tasks.map)?;
    let prefixes = 16u32.pow(u32::from(digits));
    let mut of_job = Vec::with_capacity(taken.len());
    for (source, taken) in taken.iter().zip(new) {
        let uri = &taken.known.identity.uri;
        if source.grown.is_some() {
            return refuse(format!(
                "{uri} has grown since the dataset took it, and tasks cannot read only what is new: take it with `trawl lake ingest`"
            ));
        }
        let Some(opened) = source.opened.clone() else {
            return refuse(format!(
                "{uri} can be read only by this process: write it to a file that all tasks can open"
            ));
        };
        of_job.push(JobSource { taken, opened });
    }
    let job = Job {
        format: JOB_FORMAT,
        job: settings.writer.clone(),
        program: PROGRAM.to_owned(),
        dataset: dataset.clone(),
        base: before.sequence,
        manifest: began.sequence,
        suffix_list: suffixes.hash,
        mode: settings.mode,
        allow_empty: settings.allow_empty,
        prefix_digits: digits,
        store_ids: settings.store_ids,
        zstd_level: settings.zstd_level,
        page_rows: settings.page_rows,
        row_group_bytes: settings.row_group_bytes,
        file_bytes: settings.file_bytes,
        max_record_bytes: settings.max_record_bytes.unwrap_or(MAX_RECORD_BYTES),
        max_rejects: settings.max_rejects,
        sources: of_job,
        splits,
        reduce_tasks: tasks.reduce.unwrap_or(prefixes).clamp(1, prefixes),
        piece_rows: settings.piece_rows,
        skipped: report.skipped,
        stamped,
        replaced,
    };
    let store = &**lake.store();
    // The tasks of this job would take reports of an earlier one for their own: its rows under the names of these sources.
    if !store.exists(&layout::job_file(&job.job)?)? {
        for stage in [JobStage::Map, JobStage::Reduce, JobStage::Index] {
            if !store.list(&format!("{}/{stage}", layout::job_dir(&job.job)?))?.is_empty() {
                return refuse(format!(
                    "an earlier job {} has left files, which `trawl lake gc` deletes: choose another name",
                    job.job
                ));
            }
        }
    }
    // The sign of life comes first, so that no collector takes the job for what somebody left.
    job.pulse(lake, clock)?;
    if !create_task(store, &layout::job_file(&job.job)?, &job)? {
        return refuse(format!("there is a job {} already: choose another name", job.job));
    }
    Ok(Some(job))
}

/// Cuts sources into splits, and deals those out to tasks: neighbours, of about equally many bytes.
fn cut(sources: &[&Source], split_bytes: u64, tasks: Option<u32>) -> Result<Vec<Vec<(usize, Split)>>> {
    let bytes: u64 = sources.iter().map(|source| source.identity().size).sum();
    let count = tasks.map_or(bytes.div_ceil(MAP_BYTES), u64::from).max(1);
    if count > u64::from(MAX_TASKS) {
        let (what, expected) = ("map tasks", "at most 100,000");
        return Err(Error::Setting { what, expected, found: count.to_string() });
    }
    let split_bytes = split_bytes.min(bytes / (count * SPLITS_A_TASK)).max(1);
    let sources: Vec<&dyn UrlSource> = sources.iter().map(|source| *source as &dyn UrlSource).collect();
    let splits = crate::map::plan(&sources, split_bytes)?;
    let total: u64 = splits.iter().map(|(_, split)| split.end.saturating_sub(split.start)).sum();
    let (mut dealt, mut done) = (vec![Vec::new()], 0u64);
    for (source, split) in splits {
        // In 128 bits: a task's share of an exabyte is not representable otherwise.
        let due = u128::from(done) * u128::from(count) / u128::from(total.max(1));
        if due >= dealt.len() as u128 && dealt.last().is_some_and(|task: &Vec<_>| !task.is_empty()) {
            dealt.push(Vec::new());
        }
        done += split.end.saturating_sub(split.start);
        if let Some(task) = dealt.last_mut() {
            task.push((source, split));
        }
    }
    Ok(dealt)
}
