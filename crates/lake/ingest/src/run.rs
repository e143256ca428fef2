//! What ingest and rewrite share: read, sort, write and commit, as a writer at work.

use crate::map::{MapInput, Mapped, Tails, map, plan};
use crate::reduce::reduce;
use crate::rejects::Rejected;
use crate::settings::{IngestReport, IngestSettings};
use crate::{Error, Result};
use trawl_model::{UnixMillis, UrlSource};
use trawl_rows::{Column, WriteSettings};
use trawl_store::denial::Denied;
use trawl_store::{AtWork, DataFile, DatasetCommit, Lake, Progress, RejectsFile, Stage, layout};
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
        let read = clock();
        report.read_seconds = seconds(began, read);

        let rows = mapped.rows;
        let progress = |stage, done| tick(Progress { stage, rows: done, done, total: rows });
        let files = reduce(
            &**lake.store(),
            &mut run,
            self.digits,
            WriteSettings {
                dataset_id,
                writer: settings.writer.clone(),
                columns: Column::of_files(settings.store_ids),
                suffix_list: self.suffixes.hash.clone(),
                zstd_level: settings.zstd_level,
                page_rows: settings.page_rows,
                row_group_bytes: settings.row_group_limit(),
                file_bytes: settings.file_bytes,
                threads: settings.threads.max(1),
            },
            &settings.cancel,
            &|done| progress(Stage::Writing, done),
        )?;
        let written = clock();
        report.write_seconds = seconds(read, written);
        report.spilled_bytes = run.stats().spilled_bytes;

        progress(Stage::Committing, rows);
        let Rejected { counts, total, file, denied, aside } = mapped.rejected;
        report.denied = denied;
        report.not_captures = aside;
        (report.rejected, report.rejected_by_code, report.rejects_file) = (total, counts, file);
        let rejects = report.rejects_file.as_ref().map(|path| -> Result<_> {
            let bytes = lake.store().len(path)?;
            let hash = trawl_store::object_hash(&**lake.store(), path, bytes)?;
            Ok((path.clone(), RejectsFile { bytes, hash }))
        });
        let rejects = rejects.transpose()?;
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
        report.rows = rows;
        report.distinct_urls = new.files.iter().map(|f| f.distinct_urls).sum();
        report.files = new.files.len() as u64;
        report.bytes = new.files.iter().map(|f| f.bytes).sum();
        report.count_records();
        report.commit_seconds = seconds(written, clock());
        Ok(())
    }
}

fn seconds(from: UnixMillis, to: UnixMillis) -> f64 {
    (to.0 - from.0) as f64 / 1000.0
}
