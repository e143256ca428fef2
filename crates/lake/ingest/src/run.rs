//! What ingest and rewrite share: heartbeat, read, sort, write, commit, and cleaning up.

use crate::map::{Input, Mapped, Tails, map};
use crate::record;
use crate::rejects::{Rejected, Rejects};
use crate::settings::{IngestReport, IngestSettings, Progress, Stage};
use crate::writer::{Writer, WriterSettings, columns};
use crate::{Error, Result};
use trawl_model::{UnixMillis, UrlSource};
use trawl_store::denial::Denied;
use trawl_store::rows::ZSTD_LEVEL;
use trawl_store::{DataFile, DatasetCommit, Heartbeat, Lake, layout};
use trawl_url::SuffixList;

/// Milliseconds between two signs of life.
const BEAT_MS: i64 = 30_000;
/// Rows between two looks at the clock while writing.
const TICK_ROWS: u64 = 65_536;

/// Why rows cannot go beside those of a dataset.
pub(crate) const OTHER_LIST: &str =
    "the dataset has rows cut by another suffix list than the lake's: run `trawl lake rebuild`, then again";

/// Why a run failed, and whether it is certain that its commit did not and will not happen.
pub(crate) struct Failed {
    error: Error,
    certain: bool,
}

impl<E: Into<Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { error: error.into(), certain: true }
    }
}

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
    /// Reads `sources`, writes files and commits `change`. Until the commit nothing is visible; after an error nothing is.
    pub fn work(
        &self,
        sources: &[&dyn UrlSource],
        report: &mut IngestReport,
        change: impl FnMut(&mut DatasetCommit, &Written) -> trawl_store::Result<()>,
    ) -> Result<()> {
        let mut pulse = Pulse::start(self)?;
        match self.try_work(sources, report, &mut pulse, change) {
            Ok(()) => Ok(self.lake.end_beat(&self.settings.writer)?),
            Err(Failed { error, certain }) => {
                // A commit whose fate is unknown may still appear: its files and the heartbeat stay, and a collector
                // decides once the heartbeat is old, by a commit of its own that comes before or after.
                if certain {
                    self.clean_up();
                }
                Err(error)
            }
        }
    }

    fn try_work(
        &self,
        sources: &[&dyn UrlSource],
        report: &mut IngestReport,
        pulse: &mut Pulse<'_>,
        change: impl FnMut(&mut DatasetCommit, &Written) -> trawl_store::Result<()>,
    ) -> Result<(), Failed> {
        report.prefix_digits = self.digits;
        let began = (self.clock)();
        let path = layout::rejects(self.dataset_id, &self.settings.writer)?;
        let rejects = Rejects::new(&**self.lake.store(), path, self.settings.max_rejects, self.denied);
        let input = Input { sources, of_lake: self.of_lake, suffixes: &self.suffixes.list, digits: self.digits };
        let mapped = map(input, &rejects, self.settings, &mut |progress| pulse.tick(progress))?;
        let read = (self.clock)();
        report.read_seconds = seconds(began, read);

        let (rows, rejected) = (mapped.rows, rejects.total());
        let tails = mapped.tails.clone();
        let (files, spilled) = self.write(mapped, |done| {
            pulse.tick(Progress { stage: Stage::Writing, rows: done, rejected, done, total: rows })
        })?;
        let written = (self.clock)();
        report.write_seconds = seconds(read, written);
        report.spilled_bytes = spilled;

        pulse.tick(Progress { stage: Stage::Committing, rows, rejected, done: 0, total: 1 })?;
        let Rejected { counts, total, file, denied } = rejects.finish()?;
        report.denied = denied;
        (report.rejected, report.rejected_by_code, report.rejects_file) = (total, counts, file);
        let new = Written { files, tails };
        report.commit = Some(self.commit(&new, change)?);
        report.rows = rows;
        report.distinct_urls = new.files.iter().map(|f| f.distinct_urls).sum();
        report.files = new.files.len() as u64;
        report.bytes = new.files.iter().map(|f| f.bytes).sum();
        report.commit_seconds = seconds(written, (self.clock)());
        Ok(())
    }

    fn write(&self, mapped: Mapped, mut tick: impl FnMut(u64) -> Result<()>) -> Result<(Vec<DataFile>, u64)> {
        let settings = self.settings;
        let mut writer = Writer::new(
            self.lake,
            WriterSettings {
                dataset_id: self.dataset_id,
                writer: settings.writer.clone(),
                columns: columns(mapped.shape, settings.store_ids),
                key_values: vec![
                    ("trawl.suffix_list".into(), self.suffixes.hash.clone()),
                    (ZSTD_LEVEL.into(), settings.zstd_level.to_string()),
                ],
                zstd_level: settings.zstd_level,
                page_rows: settings.page_rows,
                row_group_bytes: settings.row_group_limit(),
                file_bytes: settings.file_bytes,
                threads: settings.threads.max(1),
            },
        )?;
        let mut sorted = mapped.sorted;
        let (mut host, mut prefix) = (record::Host::default(), record::Prefix::default());
        let mut rows = 0u64;
        while let Some(sorted) = sorted.next_record()? {
            let row = record::decode(sorted.key, self.digits, &mut host);
            let row = row.ok_or(Error::Ended { what: "a sorted record" })?;
            writer.push(prefix.of(sorted.key, self.digits), &row)?;
            rows += 1;
            if rows.is_multiple_of(TICK_ROWS) {
                tick(rows)?;
            }
        }
        Ok((writer.finish()?, sorted.stats().spilled_bytes))
    }

    fn commit(
        &self,
        new: &Written,
        mut change: impl FnMut(&mut DatasetCommit, &Written) -> trawl_store::Result<()>,
    ) -> Result<u64, Failed> {
        let now = (self.clock)();
        let committed = self.lake.commit_dataset(self.dataset_id, now, &self.settings.writer, |commit| {
            change(commit, new)?;
            commit.suffix_list.clone_from(&self.suffixes.hash);
            Ok(true)
        });
        match committed {
            Ok((commit, _)) => Ok(commit.sequence),
            Err(error) => {
                use trawl_store::Error::{Contended, Dropped, Refused, Revoked};
                let certain = matches!(error, Refused { .. } | Revoked { .. } | Dropped { .. } | Contended { .. });
                Err(Failed { error: error.into(), certain })
            }
        }
    }

    /// Removes everything this run has written, none of which any commit names. Whatever cannot be removed now is found
    /// by a collector, since nobody claims it once the heartbeat is gone.
    fn clean_up(&self) {
        let store = self.lake.store();
        let Self { dataset_id, settings, .. } = self;
        let part = format!("/part-{}-", settings.writer);
        let rejects = layout::rejects(*dataset_id, &settings.writer).unwrap_or_default();
        for listed in store.list(&layout::dataset_dir(*dataset_id)).unwrap_or_default() {
            if listed.path.contains(&part) || listed.path == rejects {
                let _ = store.delete(&listed.path);
            }
        }
        let _ = self.lake.end_beat(&settings.writer);
    }
}

fn seconds(from: UnixMillis, to: UnixMillis) -> f64 {
    (to.0 - from.0) as f64 / 1000.0
}

/// Signs of life while the work goes on.
struct Pulse<'a> {
    run: &'a Run<'a>,
    last: UnixMillis,
}

impl<'a> Pulse<'a> {
    fn start(run: &'a Run<'a>) -> Result<Self> {
        let pulse = Self { run, last: (run.clock)() };
        pulse.beat()?;
        Ok(pulse)
    }

    fn beat(&self) -> Result<()> {
        let Run { lake, dataset_id, settings, act, .. } = self.run;
        let prefixes = vec![format!("{}/", layout::dataset_dir(*dataset_id))];
        let heartbeat = Heartbeat { writer: settings.writer.clone(), act: (*act).into(), beat: self.last, prefixes };
        Ok(lake.beat(&heartbeat)?)
    }

    fn tick(&mut self, progress: Progress) -> Result<()> {
        (self.run.progress)(progress);
        let now = (self.run.clock)();
        if now.0.saturating_sub(self.last.0) >= BEAT_MS {
            self.last = now;
            self.beat()?;
        }
        Ok(())
    }
}
