//! A reduce task: the sections of its prefixes in all runs, merged, become Parquet files.

use super::map::MapDone;
use super::{JobStage, JobWork, refuse};
use crate::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use trawl_io::{File, Fs, Mode, RealFs};
use trawl_sort::{Builder, ScratchFile, Section, Sorter};
use trawl_store::{DataFile, OwnFiles, Progress, Stage, layout};

/// Files of this machine that are open at a time: many systems allow a process 1024.
const MAX_OPEN: usize = 256;
/// Bytes of a run that are fetched at a time.
const FETCH_BYTES: u64 = 8 << 20;
/// Sections that are merged at once, if the memory allows.
const MAX_FAN_IN: usize = 8192;

/// What a reduce task has done: its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReduceDone {
    /// The task.
    pub task: u32,
    /// The attempt that did it.
    pub attempt: String,
    /// The files it wrote, as a commit describes them.
    pub files: Vec<DataFile>,
}

impl JobWork<'_> {
    /// Does a reduce task, for which all map tasks must be done. `attempt` names this attempt: new each time. If the task is done
    /// already, or another attempt is faster, the answer is what that one did.
    pub fn reduce(&self, task: u32, attempt: &str) -> Result<ReduceDone> {
        let (path, done) = self.done(JobStage::Reduce, task)?;
        if let Some(done) = done {
            return Ok(done);
        }
        let (job, store) = (self.job, self.store());
        let settings = job.settings(format!("{}-{attempt}", job.job), self.room)?;
        let pulse = job.pulse(self.lake, self.clock)?;
        let mapped: Vec<MapDone> = job.reports(store, JobStage::Map)?;
        let runs = self.sections(&mapped, task)?;
        let rows: u64 = runs.iter().map(|(_, section)| section.records).sum();
        let dir = layout::dataset_dir(job.dataset.id);
        let own = OwnFiles::below(store, dir, |path| layout::is_written_by(path, &settings.writer));
        let builder = Sorter::builder(&settings.temp_dir)
            .fs(settings.temp_fs.clone())
            .memory_bytes(settings.memory_bytes / 2)
            .threads(settings.threads.max(1))
            .max_fan_in(MAX_FAN_IN)
            .holder(format!("reduce {}", settings.writer));
        // Held until all is read.
        let (sections, _scratch) = self.open(runs, &builder)?;
        let mut merged = builder.merge(sections)?;
        let write = settings.write_settings(job.dataset.id, &job.suffix_list);
        let writing = |done| {
            (self.progress)(Progress { stage: Stage::Writing, rows: done, done, total: rows });
            pulse.now_and_then();
        };
        let files = crate::reduce(store, &mut merged, job.prefix_digits, write, &settings.cancel, &writing)?;
        let written: u64 = files.iter().map(|file| file.rows).sum();
        if written != rows {
            return refuse(format!("expected {rows} records in the runs of reduce task {task}, found {written}"));
        }
        Ok(own.settle(&path, ReduceDone { task, attempt: attempt.to_owned(), files })?)
    }

    /// What this task takes of each run: its prefixes are neighbours, so that is one section.
    fn sections(&self, mapped: &[MapDone], task: u32) -> Result<Vec<(String, Section)>> {
        let prefixes = 16u64.pow(u32::from(self.job.prefix_digits));
        let from = |task: u32| u64::from(task) * prefixes / u64::from(self.job.reduce_tasks.max(1));
        let mine = from(task)..from(task.saturating_add(1));
        let mut all = Vec::new();
        for done in mapped {
            let Some(run) = &done.run else { continue };
            let own = done.sections.iter().filter(|section| mine.contains(&u64::from(section.0)));
            let mut joined: Option<Section> = None;
            for section in own.map(|section| section.section()) {
                joined = match joined {
                    None => Some(section),
                    Some(before) => match before.join(section) {
                        None => return refuse(format!("{run}: expected sections one after the other, found a gap")),
                        joined => joined,
                    },
                };
            }
            all.extend(joined.map(|section| (run.clone(), section)));
        }
        Ok(all)
    }

    /// Opens runs that are files of this machine; others are fetched into one temporary file, since a merge reads of each
    /// in turn, some kilobytes at a time.
    #[expect(clippy::type_complexity, reason = "what a merge takes, and what it needs until it is done")]
    fn open(
        &self,
        runs: Vec<(String, Section)>,
        builder: &Builder,
    ) -> Result<(Vec<(Arc<dyn File>, Section)>, Option<ScratchFile>)> {
        let store = self.store();
        let local: Option<Vec<_>> = runs.iter().map(|(path, _)| store.open_local(path)).collect();
        if let Some(paths) = local.filter(|paths| paths.len() <= MAX_OPEN) {
            let open = |path: &Path| RealFs.open(path, Mode::Read).map(Arc::<dyn File>::from);
            let files = paths.iter().map(|path| open(path)).collect::<trawl_io::Result<Vec<_>>>()?;
            return Ok((files.into_iter().zip(runs).map(|(file, (_, section))| (file, section)).collect(), None));
        }
        let scratch = builder.scratch_file()?;
        let (mut sections, mut end) = (Vec::with_capacity(runs.len()), 0);
        for (path, section) in runs {
            let start = end;
            let mut at = section.start;
            let last = section.start.saturating_add(section.len);
            while at < last {
                let range = at..last.min(at.saturating_add(FETCH_BYTES));
                at = range.end;
                for bytes in store.get_ranges(&path, &[range])? {
                    scratch.file().write_at(end, &bytes)?;
                    end += bytes.len() as u64;
                }
                self.room.cancel.check()?;
            }
            sections.push((scratch.file().clone(), Section { start, ..section }));
        }
        Ok((sections, Some(scratch)))
    }
}
