//! What ingest and rewrite share: read, sort, write and commit, as a writer at work.

use crate::map::{MapInput, Mapped, Tails, map, plan};
use crate::reduce::reduce;
use crate::settings::{IngestReport, IngestSettings};
use crate::{Error, Result};
use trawl_model::{UnixMillis, UrlSource};
use trawl_store::denial::Denied;
use trawl_store::{AtWork, DataFile, DatasetCommit, Lake, Progress, RejectsFile, Stage, Store, layout};
use trawl_url::SuffixList;

/// Why rows cannot go beside those of a dataset.
pub(crate) const OTHER_LIST: &str =
    "the dataset has rows cut by another suffix list than the lake's: run `trawl lake rebuild`, then again";

/// A suffix list, and the hash by which the lake knows it.
pub(crate) struct Suffixes {
    pub list: SuffixList,
    pub hash: String,
}

impl Suffixes {
    pub fn parse(bytes: &[u8], hash: String) -> Result<Self> {
        let setting = |found: String| Error::Setting { what: "suffix list", expected: "a list of this lake", found };
        let text = std::str::from_utf8(bytes).map_err(|e| setting(e.to_string()))?;
        Ok(Self { list: SuffixList::parse(text).map_err(|e| setting(e.to_string()))?, hash })
    }

    /// The list of the lake.
    pub fn of(lake: &Lake) -> Result<Self> {
        let manifest = lake.current()?;
        let hash = manifest.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        Self::parse(&lake.suffix_list(&manifest)?, hash)
    }
}

/// Refuses a dataset that is not there, or whose drop was interrupted.
pub(crate) fn check_dataset(lake: &Lake, dataset_id: u32) -> Result<()> {
    if lake.dataset_newest(dataset_id)?.is_some_and(|newest| newest.is_dropped()) {
        return Err(trawl_store::Error::Dropped { dataset_id }.into());
    }
    if lake.current()?.dataset(dataset_id).is_none_or(|dataset| dataset.dropped) {
        return Err(trawl_store::Error::UnknownDataset { found: dataset_id.to_string() }.into());
    }
    Ok(())
}

/// What a run has written, before it is committed.
pub(crate) struct Written {
    pub files: Vec<DataFile>,
    pub tails: Tails,
}

/// One run: a writer at work on one dataset.
pub(crate) struct Run<'a> {
    pub lake: &'a Lake,
    pub dataset_id: u32,
    pub act: &'static str,
    pub settings: &'a IngestSettings,
    pub clock: &'a dyn Fn() -> UnixMillis,
    pub progress: &'a dyn Fn(Progress),
    pub suffixes: &'a Suffixes,
    /// Hex digits of `domain_prefix=`.
    pub digits: u8,
    /// How many of the sources, the last ones, are files of the lake: each of their rows is written again.
    pub of_lake: usize,
    /// What is left out.
    pub denied: Option<&'a Denied<'a>>,
    /// Asked once everything is read: whether that was what it was to be.
    pub check_read: &'a dyn Fn() -> Result<()>,
}

impl Run<'_> {
    /// Reads `sources`, writes files and commits `change`. Until the commit nothing is visible; after an error nothing is, unless
    /// it says that this is not known.
    pub fn work(
        &self,
        sources: &[&dyn UrlSource],
        report: &mut IngestReport,
        mut change: impl FnMut(&mut DatasetCommit, &Written) -> trawl_store::Result<()>,
    ) -> Result<()> {
        let Run { lake, dataset_id, clock, settings, .. } = *self;
        let at_work = AtWork::start(lake, clock, &settings.writer, self.act, layout::dataset_dir(dataset_id))?;
        let tick = |progress| {
            (self.progress)(progress);
            at_work.now_and_then();
        };
        report.prefix_digits = self.digits;
        let began = clock();
        let input = MapInput {
            sources,
            splits: plan(sources, settings.split_bytes)?,
            of_lake: self.of_lake,
            suffixes: &self.suffixes.list,
            digits: self.digits,
            denied: self.denied,
            rejects: layout::rejects(dataset_id, &settings.writer)?,
        };
        let Mapped { mut run, report: mapped } = map(&**lake.store(), &input, settings, &tick)?;
        (self.check_read)()?;
        let read = clock();
        report.read_seconds = seconds(began, read);

        let rows = mapped.rows;
        let progress = |stage, done| tick(Progress { stage, rows: done, done, total: rows });
        let write = settings.write_settings(dataset_id, &self.suffixes.hash);
        let writing = |done| progress(Stage::Writing, done);
        let files = reduce(&**lake.store(), &mut run, self.digits, write, &settings.cancel, &writing)?;
        let written = clock();
        report.write_seconds = seconds(read, written);
        report.spilled_bytes = run.stats().spilled_bytes;

        progress(Stage::Committing, rows);
        report.rejects_file.clone_from(&mapped.rejected.file);
        let rejects = rejects_file(&**lake.store(), mapped.rejected.file.as_deref())?;
        report.count(rows, mapped.rejected, &files);
        let tails = mapped.tails;
        let new = Written { files, tails };
        report.commit = at_work.commit(|| {
            let committed = lake.commit_dataset(dataset_id, clock(), &settings.writer, |commit| {
                change(commit, &new)?;
                commit.rejects.extend(rejects.clone());
                commit.suffix_list.clone_from(&self.suffixes.hash);
                Ok(true)
            });
            Ok(Some(committed?.0.sequence))
        })?;
        report.commit_seconds = seconds(written, clock());
        Ok(())
    }
}

/// What a commit says of a file of rejected items.
pub(crate) fn rejects_file(store: &dyn Store, path: Option<&str>) -> Result<Option<(String, RejectsFile)>> {
    let Some(path) = path else { return Ok(None) };
    let bytes = store.len(path)?;
    let hash = trawl_store::object_hash(store, path, bytes)?;
    Ok(Some((path.to_owned(), RejectsFile { bytes, hash })))
}

fn seconds(from: UnixMillis, to: UnixMillis) -> f64 {
    (to.0 - from.0) as f64 / 1000.0
}
