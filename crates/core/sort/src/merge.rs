//! Merging runs, in several passes when there are too many for one.

use crate::plan::{Plan, RunNeed};
use crate::run::{Run, RunWriter};
use crate::settings::{Compression, OnProgress, Phase, Progress};
use crate::source::{KeyRange, Reader, RunSource, Source};
use crate::temp::TempDir;
use crate::tree::Tree;
use std::sync::Arc;
use trawl_io::Result;

/// Records between two reports of progress.
pub(crate) const REPORT_EVERY: u64 = 1 << 18;

/// A merge under way. The sources end before the thread that reads for them.
pub(crate) struct Merge {
    pub tree: Tree<RunSource>,
    _reader: Reader,
}

impl Merge {
    /// Merges the records of `runs` within `keys`; with each run goes the block in which to begin.
    pub fn start(runs: Vec<(Arc<Run>, u64)>, keys: &KeyRange) -> Result<Merge> {
        let reader = Reader::start(runs.len().max(1))?;
        let open = |(run, start)| reader.open(run, start, keys.clone());
        let sources = runs.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        Ok(Merge { tree: Tree::new(sources), _reader: reader })
    }
}

/// What merging needs beside the runs.
pub(crate) struct Merger<'a> {
    pub dir: &'a Arc<TempDir>,
    pub plan: &'a Plan,
    pub compression: Compression,
    pub on_progress: Option<&'a OnProgress>,
    /// Bytes written to temporary files so far.
    pub spilled: &'a mut u64,
}

impl Merger<'_> {
    /// Merges neighbouring runs until all that are left can be merged at once in each of `parts`, and are at most
    /// `most`.
    pub fn reduce(&mut self, runs: &mut Vec<Run>, most: usize, parts: usize) -> Result<()> {
        loop {
            let at_once = self.plan.fan_in(runs.iter().map(|r| r.need), parts).clamp(1, most);
            if runs.len() <= at_once {
                return Ok(());
            }
            // Just enough of them, and the cheapest: what is merged here is written and read once more.
            let wanted = runs.len() - at_once + 1;
            let largest = runs.iter().map(|r| r.need).reduce(RunNeed::max);
            let fitting = self.plan.fan_in_writing(std::iter::repeat_n(largest, runs.len()).flatten());
            let width = wanted.min(fitting).clamp(2, runs.len());
            let cost = |window: &[Run]| window.iter().map(|r| r.len).sum::<u64>();
            let start = runs.windows(width).enumerate().min_by_key(|(_, w)| cost(w)).map_or(0, |(i, _)| i);
            let others = runs.len() - width;
            let window: Vec<Run> = runs.drain(start..start + width).collect();
            let merged = self.merge(window, others)?;
            // Neighbours only, put back in their place: equal keys stay in the order they came.
            runs.insert(start, merged);
        }
    }

    fn merge(&mut self, runs: Vec<Run>, others: usize) -> Result<Run> {
        let total = runs.iter().map(|r| r.records).sum();
        let count = (runs.len() + others) as u64;
        let mut writer = RunWriter::create(self.dir, self.plan, self.compression)?;
        let runs = runs.into_iter().map(|run| (run.start, Arc::new(run))).map(|(start, run)| (run, start)).collect();
        let mut merge = Merge::start(runs, &KeyRange::default())?;
        let mut records = 0;
        while let Some(shared) = merge.tree.advance()? {
            let Some(source) = merge.tree.current() else { break };
            writer.push(source.key(), source.value(), shared)?;
            records += 1;
            if records % REPORT_EVERY == 0
                && let Some(report) = self.on_progress
            {
                let (phase, spilled_bytes) = (Phase::Merging, *self.spilled);
                report(Progress { phase, records, total: Some(total), runs: count, spilled_bytes });
            }
        }
        let run = writer.finish()?;
        *self.spilled += run.len;
        Ok(run)
    }
}
