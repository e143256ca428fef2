//! The commit of a job: what its reports name becomes a commit of the dataset, once.

use super::map::MapDone;
use super::reduce::ReduceDone;
use super::{Job, JobStage, JobWork, refuse};
use crate::join::{Joining, Taken};
use crate::map::Tails;
use crate::rejects::Rejected;
use crate::run::{Written, rejects_file};
use crate::settings::IngestReport;
use crate::{Error, Result};
use std::io::Write;
use trawl_io::Op;
use trawl_store::{DatasetCommit, HashedUpload, Lake, Store, layout, object_hash};

/// Bytes of rejected items that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

impl Job {
    /// The commit of the dataset that holds this job's rows, if there is one yet.
    pub fn committed(&self, lake: &Lake) -> Result<Option<DatasetCommit>> {
        match lake.dataset_newest(self.dataset.id)? {
            Some(newest) => Ok(self.committed_until(lake, newest)?),
            None => Ok(None),
        }
    }

    /// The same, given the newest commit. Every commit since the job was planned is looked at: a later writer may have put
    /// other files in the place of this job's, and then they must not come again.
    fn committed_until(&self, lake: &Lake, newest: DatasetCommit) -> trawl_store::Result<Option<DatasetCommit>> {
        let mut at = newest;
        while at.sequence > self.base {
            if at.writer == self.job {
                return Ok(Some(at));
            }
            if at.sequence == self.base + 1 {
                break;
            }
            let before = at.sequence - 1;
            at = match lake.dataset_commit(self.dataset.id, before)? {
                Some(commit) => commit,
                None => {
                    let (job, id) = (&self.job, self.dataset.id);
                    let reason = format!(
                        "commit {before} of dataset {id}, which may be that of job {job}, has been collected: plan the job again"
                    );
                    return Err(trawl_store::Error::Refused { reason });
                }
            };
        }
        Ok(None)
    }
}

impl JobWork<'_> {
    /// Commits what the tasks have written, for which all of them must be done. May be repeated, and called by several at
    /// once: the rows come in once. `attempt` is a writer's name that is new each time.
    pub fn commit(&self, attempt: &str) -> Result<IngestReport> {
        let (lake, job, store) = (self.lake, self.job, self.store());
        let _pulse = job.pulse(lake, self.clock)?;
        let mapped: Vec<MapDone> = job.reports(store, JobStage::Map)?;
        let reduced: Vec<ReduceDone> = job.reports(store, JobStage::Reduce)?;
        let (mut rows, mut tails, mut rejected) = (0, Tails::default(), Rejected::default());
        for done in &mapped {
            rows += done.report.rows;
            tails.merge(done.report.tails.clone());
            rejected.add(&done.report.rejected);
        }
        let files: Vec<_> = reduced.into_iter().flat_map(|done| done.files).collect();
        let written: u64 = files.iter().map(|file| file.rows).sum();
        if written != rows {
            return refuse(format!("expected {rows} rows, as the map tasks of job {} have, found {written}", job.job));
        }
        let mut report = IngestReport {
            dataset_id: job.dataset.id,
            sources: job.sources.len() as u64,
            source_bytes: job.sources.iter().map(|source| source.taken.known.identity.size).sum(),
            skipped: job.skipped.clone(),
            replaced: job.replaced.sources.clone(),
            prefix_digits: job.prefix_digits,
            ..IngestReport::default()
        };
        report.count(rows, rejected, &files);
        report.rejects_file = (report.rejected > 0).then(|| layout::rejects(job.dataset.id, &job.job)).transpose()?;
        // Asked first: what was committed and purged since must not appear again.
        if let Some(committed) = job.committed(lake)? {
            report.commit = Some(committed.sequence);
            return Ok(report);
        }
        let (began, suffixes) = job.began(lake)?;
        let taken: Vec<Taken> = job.sources.iter().map(|source| source.taken.clone()).collect();
        let joining = Joining {
            lake,
            mode: job.mode,
            allow_empty: job.allow_empty,
            suffixes: &suffixes,
            began: &began,
            taken: &taken,
            skipped: &job.skipped,
            stamped: &job.stamped,
            losing: &[],
            replaced: &job.replaced,
        };
        let written = Written { files, tails };
        let check = |commit: &DatasetCommit| -> trawl_store::Result<()> {
            let denied_since = joining.check(commit, &written.files)?;
            // Unlike an ingest that has the sources at hand: its tasks can be run again under the new list.
            if denied_since > 0 || report.denied > 0 && joining.some_allowed_since()? {
                let reason = format!(
                    "the deny list changed since job {} was planned, for rows of its sources: plan it again",
                    job.job
                );
                return Err(trawl_store::Error::Refused { reason });
            }
            Ok(())
        };
        // Before the rejected items are copied: what is refused leaves nothing but its tasks' files.
        check(&lake.dataset_newest(job.dataset.id)?.unwrap_or_else(|| DatasetCommit::empty(job.dataset.id)))?;
        if let Some(path) = &report.rejects_file {
            self.gather_rejects(&mapped, path)?;
        }
        let rejects = rejects_file(store, report.rejects_file.as_deref())?;
        let mut before = None;
        let (newest, _) = lake.commit_dataset(job.dataset.id, (self.clock)(), &job.job, |commit| {
            before = job.committed_until(lake, commit.clone())?.map(|commit| commit.sequence);
            if before.is_some() {
                return Ok(false);
            }
            check(commit)?;
            joining.join(commit, &written)?;
            commit.rejects.extend(rejects.clone());
            commit.suffix_list.clone_from(&suffixes.hash);
            Ok(true)
        })?;
        // As after an ingest of one process: another that failed may have taken the name back.
        if lake.current()?.dataset(job.dataset.id).is_none() {
            lake.reinstate_dataset((self.clock)(), attempt, &job.dataset)?;
        }
        report.commit = before.or(Some(newest.sequence));
        Ok(report)
    }

    /// Puts the rejected items of all map tasks into one file, as many as an ingest keeps, in the order of the tasks.
    fn gather_rejects(&self, mapped: &[MapDone], path: &str) -> Result<()> {
        let store = self.store();
        let mut upload = HashedUpload::begin(store, path)?;
        let mut left = self.job.max_rejects;
        for rejected in mapped.iter().map(|done| &done.report.rejected) {
            let Some(file) = &rejected.file else { continue };
            let len = store.len(file)?;
            // What is copied gets a hash of its own, which would vouch for damage.
            let found = object_hash(store, file, len)?;
            if let Some(hash) = rejected.hash.as_ref().filter(|hash| **hash != found) {
                let expected = "the rejected items whose hash its task has reported";
                let found = format!("hash {found} instead of {hash}");
                return Err(trawl_store::Error::Corrupt { path: file.clone(), offset: 0, expected, found }.into());
            }
            let mut at = 0;
            while at < len && left > 0 {
                let range = at..len.min(at + COPY_BYTES);
                at = range.end;
                for bytes in store.get_ranges(file, &[range])? {
                    let end = memchr::memchr_iter(b'\n', &bytes).nth(usize::try_from(left - 1).unwrap_or(usize::MAX));
                    let kept = end.map_or(&*bytes, |end| bytes.get(..=end).unwrap_or(&bytes));
                    left -= memchr::memchr_iter(b'\n', kept).count() as u64;
                    upload.write_all(kept).map_err(|e| trawl_io::Error::io(Op::Write, path, e))?;
                }
            }
        }
        upload.finish()?;
        Ok(())
    }

    /// Ends a job that is committed, or that will not be committed: its files below `jobs/` go, and its sign of life. Files that no
    /// commit names are left to a collector.
    pub fn end(&self) -> Result<()> {
        end(self.lake, &self.job.job)
    }
}

/// As [`JobWork::end`]; harmless if the job has ended already.
pub(super) fn end(lake: &Lake, job: &str) -> Result<()> {
    let store: &dyn Store = &**lake.store();
    // First of all: from now on no process can take part in it.
    store.delete(&layout::job_file(job)?)?;
    for object in store.list(&layout::job_dir(job)?)? {
        store.delete(&object.path)?;
    }
    lake.end_beat(job).map_err(Error::from)
}
