//! Taking records: fill buffers, let workers sort them, write runs once memory is full.
//!
//! ```text
//! filling --full--> sorting (worker) --memory still free--> kept in memory ...... all fits: merged from there
//!                      |                                        | memory needed
//!                      `----once anything was written----> written as a run (worker)
//! ```

use crate::arena::{Buffer, Slab, SortedBuffer};
use crate::merge::Merger;
use crate::plan::Plan;
use crate::run::{Run, RunWriter};
use crate::settings::{Builder, Phase, Progress};
use crate::sorted::{Inner, Sorted, Stats};
use crate::source::{KeyRange, MemorySource};
use crate::split;
use crate::temp::TempDir;
use crate::tree::Tree;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Takes records in any order; [`Sorter::finish`] gives them back in order.
pub struct Sorter {
    settings: Builder,
    plan: Plan,
    /// The buffer being filled; none before the first record and while there is no memory for it.
    buffer: Option<Buffer>,
    /// Memory of buffers that were written.
    spare: Vec<Slab>,
    /// Buffers handed to workers, oldest first.
    jobs: VecDeque<Job>,
    /// Runs written, oldest first; all are older than the jobs.
    runs: Vec<Run>,
    dir: Option<Arc<TempDir>>,
    stats: Stats,
    failed: bool,
}

enum Job {
    /// Sorts and keeps the buffer.
    Sort(JoinHandle<SortedBuffer>),
    /// Writes a run.
    Write(JoinHandle<trawl_io::Result<(Run, Slab)>>),
}

impl Job {
    fn into_sorted(self) -> Option<SortedBuffer> {
        match self {
            Job::Sort(handle) => Some(joined(handle)),
            Job::Write(_) => None,
        }
    }
}

impl fmt::Debug for Sorter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sorter").field("settings", &self.settings).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl Sorter {
    /// Settings for a sorter whose temporary files go to `dir`, which must exist once memory is full.
    pub fn builder(dir: impl Into<PathBuf>) -> Builder {
        Builder::new(dir.into())
    }

    pub(crate) fn new(settings: Builder, plan: Plan) -> Self {
        Sorter {
            settings,
            plan,
            buffer: None,
            spare: Vec::new(),
            jobs: VecDeque::new(),
            runs: Vec::new(),
            dir: None,
            stats: Stats::default(),
            failed: false,
        }
    }

    /// The largest record the budget allows: key and value together.
    pub fn max_record_bytes(&self) -> usize {
        self.plan.max_record
    }

    /// What sorting took so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Takes a record. A record above [`Sorter::max_record_bytes`] is refused and harmless; after any other error
    /// records are lost and every further call fails.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let len = key.len().saturating_add(value.len());
        if len > self.plan.max_record {
            return Err(Error::RecordTooLarge { len: len as u64, limit: self.plan.max_record as u64 });
        }
        if !self.buffer.as_mut().is_some_and(|b| b.push(key, value)) {
            self.guarded(Self::make_room)?;
            let slab = self.spare.pop().unwrap_or_else(|| Slab::new(&self.plan));
            self.buffer.insert(Buffer::new(slab)).push(key, value);
        }
        self.stats.records += 1;
        self.stats.bytes += len as u64;
        Ok(())
    }

    /// Sorts what is left and gives all records back in order.
    pub fn finish(self) -> Result<Sorted> {
        self.finish_parts(1)?.pop().ok_or(Error::Failed)
    }

    /// Like [`Sorter::finish`], in up to `parts` parts of about equal size, to be read by as many threads: every key of
    /// a part is above those of the parts before it, and equal keys are in one part. The budget may allow fewer parts.
    pub fn finish_parts(mut self, parts: usize) -> Result<Vec<Sorted>> {
        self.guarded(Self::seal)?;
        let (inner, runs) = match self.dir {
            None => (self.parts_in_memory(parts.max(1)), 0),
            Some(_) => self.parts_of_runs(parts.max(1))?,
        };
        Ok(Sorted::parts(inner, self.stats, runs, self.settings.on_progress.take()))
    }

    fn parts_in_memory(&mut self, parts: usize) -> Vec<Inner> {
        let buffers: Vec<_> = self.jobs.drain(..).filter_map(Job::into_sorted).map(Arc::new).collect();
        let source = |keys: &KeyRange| buffers.iter().map(|b| MemorySource::new(b.clone(), keys)).collect();
        split::ranges(split::of_buffers(&buffers, parts)).iter().map(|k| Inner::Memory(Tree::new(source(k)))).collect()
    }

    fn parts_of_runs(&mut self, parts: usize) -> Result<(Vec<Inner>, u64)> {
        while self.retire_oldest()? {}
        self.spare.clear();
        // Fewer parts if not even two runs could be merged in each.
        let needs = || self.runs.iter().map(|r| r.need);
        let parts = (1..=parts).rev().find(|&p| self.plan.fan_in(needs(), p) >= self.runs.len().min(2)).unwrap_or(1);
        self.reduce(usize::MAX, parts)?;
        let runs: Vec<_> = self.runs.drain(..).map(Arc::new).collect();
        let inner = split::merges(&runs, parts, &self.plan)?;
        Ok((inner.into_iter().map(Inner::Runs).collect(), runs.len() as u64))
    }

    /// Runs a step after which, if it fails, records are missing.
    fn guarded(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.failed {
            return Err(Error::Failed);
        }
        step(self).inspect_err(|_| self.failed = true)
    }

    /// Hands the full buffer on and waits until there is memory for another.
    fn make_room(&mut self) -> Result<()> {
        self.seal()?;
        if self.jobs.len() > self.plan.threads && self.dir.is_none() {
            self.start_spilling()?;
        }
        while self.jobs.len() > self.plan.threads {
            self.retire_oldest()?;
        }
        if self.runs.len() > self.plan.max_runs {
            while self.retire_oldest()? {}
            self.spare.clear();
            self.reduce(self.plan.max_runs / 2, 1)?;
        }
        self.report();
        Ok(())
    }

    /// Hands the buffer to a worker.
    fn seal(&mut self) -> Result<()> {
        let Some(buffer) = self.buffer.take() else { return Ok(()) };
        self.jobs.push_back(match &self.dir {
            None => Job::Sort(std::thread::spawn(move || buffer.sort())),
            Some(dir) => self.write_job(dir.clone(), move || buffer.sort()),
        });
        Ok(())
    }

    /// All buffers are full: from now on sorted ones go to disk.
    fn start_spilling(&mut self) -> Result<()> {
        let dir = TempDir::create(&self.settings.fs, &self.settings.dir, &self.settings.holder)?;
        let dir = Arc::new(dir);
        self.dir = Some(dir.clone());
        for job in std::mem::take(&mut self.jobs) {
            let job = match job {
                Job::Sort(handle) => self.write_job(dir.clone(), move || joined(handle)),
                writing => writing,
            };
            self.jobs.push_back(job);
        }
        Ok(())
    }

    fn write_job(&self, dir: Arc<TempDir>, buffer: impl FnOnce() -> SortedBuffer + Send + 'static) -> Job {
        let (plan, compression) = (self.plan, self.settings.compression);
        Job::Write(std::thread::spawn(move || {
            let sorted = buffer();
            let mut writer = RunWriter::create(&dir, &plan, compression)?;
            let slab = sorted.write(&mut writer)?;
            Ok((writer.finish()?, slab))
        }))
    }

    /// Waits for the oldest job and keeps its run. `false` when there is none.
    fn retire_oldest(&mut self) -> Result<bool> {
        match self.jobs.pop_front() {
            None => Ok(false),
            // Jobs keep their buffers only while there is no directory, and then none is retired.
            Some(Job::Sort(_)) => Err(Error::Failed),
            Some(Job::Write(handle)) => {
                let (run, slab) = joined(handle)?;
                self.spare.push(slab);
                self.stats.runs += 1;
                self.stats.spilled_bytes += run.len;
                self.runs.push(run);
                Ok(true)
            }
        }
    }

    fn reduce(&mut self, most: usize, parts: usize) -> Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let mut merger = Merger {
            dir,
            plan: &self.plan,
            compression: self.settings.compression,
            on_progress: self.settings.on_progress.as_ref(),
            spilled: &mut self.stats.spilled_bytes,
        };
        Ok(merger.reduce(&mut self.runs, most, parts)?)
    }

    fn report(&self) {
        if let Some(report) = &self.settings.on_progress {
            report(Progress {
                phase: Phase::Pushing,
                records: self.stats.records,
                total: None,
                runs: self.runs.len() as u64,
                spilled_bytes: self.stats.spilled_bytes,
            });
        }
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        // Workers hold the directory: it can only go when they are done.
        for job in self.jobs.drain(..) {
            match job {
                Job::Sort(handle) => drop(handle.join()),
                Job::Write(handle) => drop(handle.join()),
            }
        }
    }
}

/// What a worker returned; a panic in it goes on here.
fn joined<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_io::fault::FaultFs;

    #[test]
    fn runs_are_merged_while_pushing_when_they_get_too_many() {
        let disk = FaultFs::new();
        let settings = Sorter::builder("/").fs(disk.shared()).memory_bytes(2 << 20);
        let plan = Plan::new(2 << 20, 2, 3).unwrap();
        let mut sorter = Sorter::new(settings, Plan { max_runs: 6, ..plan });
        for n in 0..300_000u32 {
            // Few keys, so that equal ones are in many runs.
            sorter.push(&(n.wrapping_mul(2_654_435_761) % 1000).to_be_bytes(), &n.to_be_bytes().repeat(10)).unwrap();
            assert!(sorter.runs.len() <= 7);
        }
        assert!(sorter.stats.runs > 20, "{:?}", sorter.stats);
        let mut sorted = sorter.finish().unwrap();
        let (mut last, mut count) = ((Vec::new(), Vec::new()), 0);
        while let Some(r) = sorted.next_record().unwrap() {
            assert!((&last.0[..], &last.1[..]) < (r.key, r.value), "by key, then in the order of pushing");
            last = (r.key.to_vec(), r.value.to_vec());
            count += 1;
        }
        assert_eq!(count, 300_000);
    }
}
