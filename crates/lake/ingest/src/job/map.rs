//! A map task: its splits become one run file, with a section for each prefix.

use super::{JobSource, JobStage, JobWork};
use crate::map::{MapInput, MapReport, Mapped, map};
use crate::source::{Source, reopen};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trawl_io::Fs;
use trawl_model::{Split, UrlSource};
use trawl_sort::{Compression, Section, SectionWriter, Sorted};
use trawl_store::denial::Denied;
use trawl_store::{HashedUpload, OwnFiles, Progress, layout};

/// Records between two looks at the caller.
const TICK_RECORDS: u64 = 65_536;

/// What a map task has done: its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapDone {
    /// The task.
    pub task: u32,
    /// The attempt that did it.
    pub attempt: String,
    /// The file with its records; `None` if there are none.
    pub run: Option<String>,
    /// Bytes of that file.
    pub bytes: u64,
    /// Its sections, by prefix.
    pub(super) sections: Vec<PrefixSection>,
    /// What was found out on the way.
    pub report: MapReport,
}

/// The section of a prefix: the prefix, then start, bytes, records, largest block and longest key ([`Section`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PrefixSection(pub u8, u64, u64, u64, u64, u64);

impl PrefixSection {
    fn new(prefix: u8, section: Section) -> Self {
        let Section { start, len, records, block, key } = section;
        Self(prefix, start, len, records, block, key)
    }

    pub fn section(self) -> Section {
        let Self(_, start, len, records, block, key) = self;
        Section { start, len, records, block, key }
    }
}

impl JobWork<'_> {
    /// Does a map task; sources are opened on `fs`. `attempt` names this attempt: new each time. If the task is done already, or
    /// another attempt is faster, the answer is what that one did.
    pub fn map(&self, fs: &Arc<dyn Fs>, task: u32, attempt: &str) -> Result<MapDone> {
        let (path, done) = self.done(JobStage::Map, task)?;
        if let Some(done) = done {
            return Ok(done);
        }
        let (job, store) = (self.job, self.store());
        let settings = job.settings(format!("{}-{attempt}", job.job), self.room)?;
        let pulse = job.pulse(self.lake, self.clock)?;
        let tick = |progress| {
            (self.progress)(progress);
            pulse.now_and_then();
        };
        let (began, suffixes) = job.began(self.lake)?;
        let denied = Denied::new(&began, &suffixes.list);
        // Only what this task reads is opened.
        let given = job.splits.get(task as usize).map(Vec::as_slice).unwrap_or_default();
        let mut numbers: Vec<usize> = given.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let missing = Error::Ended { what: "the list of a job's sources" };
        let sources: Option<Vec<_>> = numbers.iter().map(|number| job.sources.get(*number)).collect();
        let sources = sources.ok_or(missing)?;
        let open = || {
            let open = |source: &&JobSource| reopen(fs, &source.opened, &source.taken.known.identity);
            sources.iter().map(open).collect::<Result<Vec<Source>>>()
        };
        let opened = open()?;
        let opened: Vec<&dyn UrlSource> = opened.iter().map(|source| source as &dyn UrlSource).collect();
        let here = |(number, split): &(usize, Split)| numbers.binary_search(number).ok().map(|here| (here, *split));
        let rejects = layout::task_file(&job.job, "map", task, attempt, "jsonl")?;
        let run_path = layout::task_file(&job.job, "map", task, attempt, "run")?;
        let own = OwnFiles::below(store, format!("{}/map", layout::job_dir(&job.job)?), |path| {
            path == rejects || path == run_path
        });
        let input = MapInput {
            sources: &opened,
            splits: given.iter().filter_map(here).collect(),
            of_lake: 0,
            suffixes: &suffixes.list,
            digits: job.prefix_digits,
            denied: (!denied.is_empty()).then_some(&denied),
            rejects: rejects.clone(),
        };
        let Mapped { run, mut report } = map(store, &input, &settings, &tick)?;
        // Once more: they may have changed while they were read.
        open()?;
        report.tails = report.tails.renumbered(|here| numbers.get(here).copied());
        let (run, bytes, sections) = match report.rows {
            0 => (None, 0, Vec::new()),
            rows => {
                let (bytes, sections) = self.write_run(run, rows, &run_path, &tick)?;
                (Some(run_path.clone()), bytes, sections)
            }
        };
        let done = MapDone { task, attempt: attempt.to_owned(), run, bytes, sections, report };
        Ok(own.settle(&path, done)?)
    }

    /// Writes the records of `run` to one file.
    fn write_run(
        &self,
        mut run: Sorted,
        rows: u64,
        path: &str,
        tick: &dyn Fn(Progress),
    ) -> Result<(u64, Vec<PrefixSection>)> {
        let upload = HashedUpload::begin(self.store(), path)?;
        let mut writer = SectionWriter::new(upload, path, Compression::Zstd(1))?;
        let (mut sections, mut current, mut done) = (Vec::new(), None, 0u64);
        while let Some(record) = run.next_record()? {
            let prefix = if self.job.prefix_digits == 0 { 0 } else { record.key.first().copied().unwrap_or(0) };
            if let Some(before) = current.replace(prefix).filter(|before| *before != prefix) {
                sections.push(PrefixSection::new(before, writer.end_section()?));
            }
            writer.push(record.key, record.value, record.shared)?;
            done += 1;
            if done.is_multiple_of(TICK_RECORDS) {
                tick(Progress { stage: trawl_store::Stage::Writing, rows: done, done, total: rows });
                self.room.cancel.check()?;
            }
        }
        if let Some(last) = current {
            sections.push(PrefixSection::new(last, writer.end_section()?));
        }
        let (bytes, _) = writer.into_inner().finish()?;
        Ok((bytes, sections))
    }
}
