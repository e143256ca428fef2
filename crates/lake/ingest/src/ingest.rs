//! The whole way: sources in, a commit out.
//!
//! ```text
//! heartbeat ─► read, parse, sort ─► write files ─► rejects ─► commit ─► end of heartbeat
//!                                                             └ nothing is visible before
//! ```

use crate::map::{Mapped, map};
use crate::record;
use crate::rejects::{Rejected, Rejects};
use crate::settings::{IngestReport, IngestSettings, Mode, Progress, Stage};
use crate::writer::{Writer, WriterSettings, columns};
use crate::{Error, Result};
use std::collections::BTreeSet;
use trawl_model::{SourceIdentity, UnixMillis, UrlSource};
use trawl_store::{CommitMode, DataFile, DatasetCommit, Heartbeat, Lake, layout};
use trawl_url::SuffixList;

/// Milliseconds between two signs of life.
const BEAT_MS: i64 = 30_000;
/// Rows between two looks at the clock while writing.
const TICK_ROWS: u64 = 65_536;

/// Reads `sources` into a dataset. `clock` tells the time, for commits, signs of life and the report.
///
/// Sources the dataset has already are skipped. Until the commit nothing is visible; after an error nothing is.
pub fn ingest(
    lake: &Lake,
    dataset_id: u32,
    sources: &[Box<dyn UrlSource>],
    settings: &IngestSettings,
    clock: &dyn Fn() -> UnixMillis,
    progress: &dyn Fn(Progress),
) -> Result<IngestReport> {
    settings.check()?;
    let manifest = lake.current()?;
    if manifest.dataset(dataset_id).is_none_or(|dataset| dataset.dropped) {
        return Err(trawl_store::Error::UnknownDataset { found: dataset_id.to_string() }.into());
    }
    let suffix_bytes = lake.suffix_list(&manifest)?;
    let suffixes = parse_suffixes(&suffix_bytes)?;
    let suffix_hash = manifest.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();

    let mut report = IngestReport { dataset_id, ..IngestReport::default() };
    let before = lake.dataset_newest(dataset_id)?.unwrap_or_else(|| DatasetCommit::empty(dataset_id));
    let (taken, identities) = choose(sources, &before, settings.mode, &mut report);
    if taken.is_empty() && settings.mode == Mode::Append {
        return Ok(report);
    }
    let run = Run { lake, dataset_id, settings, clock, progress, suffix_hash };
    let mut pulse = Pulse::start(&run)?;
    match run.work(&taken, &identities, &suffixes, &mut pulse, &mut report) {
        Ok(()) => {
            lake.end_beat(&settings.writer)?;
            Ok(report)
        }
        Err(Failed { error, certain }) => {
            // A commit whose fate is unknown may still appear: its files and the heartbeat stay, and a collector decides
            // once the heartbeat is old, by a commit of its own that comes before or after.
            if certain {
                run.clean_up();
            }
            Err(error)
        }
    }
}

/// Why a run failed, and whether it is certain that its commit did not and will not happen.
struct Failed {
    error: Error,
    certain: bool,
}

impl<E: Into<Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { error: error.into(), certain: true }
    }
}

fn parse_suffixes(bytes: &[u8]) -> Result<SuffixList> {
    let setting = |found: String| Error::Setting { what: "suffix list", expected: "a list of this lake", found };
    let text = std::str::from_utf8(bytes).map_err(|e| setting(e.to_string()))?;
    SuffixList::parse(text).map_err(|e| setting(e.to_string()))
}

/// The sources that are new, each once.
fn choose<'a>(
    sources: &'a [Box<dyn UrlSource>],
    before: &DatasetCommit,
    mode: Mode,
    report: &mut IngestReport,
) -> (Vec<&'a dyn UrlSource>, Vec<SourceIdentity>) {
    let mut taken: Vec<&dyn UrlSource> = Vec::new();
    let mut seen = BTreeSet::new();
    for source in sources {
        let identity = source.identity();
        if seen.contains(&identity) || mode == Mode::Append && before.has_source(&identity) {
            report.skipped.push(identity);
            continue;
        }
        report.sources += 1;
        report.source_bytes += identity.size;
        seen.insert(identity);
        taken.push(&**source);
    }
    (taken, seen.into_iter().collect())
}

struct Run<'a> {
    lake: &'a Lake,
    dataset_id: u32,
    settings: &'a IngestSettings,
    clock: &'a dyn Fn() -> UnixMillis,
    progress: &'a dyn Fn(Progress),
    suffix_hash: String,
}

impl Run<'_> {
    fn work(
        &self,
        taken: &[&dyn UrlSource],
        identities: &[SourceIdentity],
        suffixes: &SuffixList,
        pulse: &mut Pulse<'_>,
        report: &mut IngestReport,
    ) -> Result<(), Failed> {
        let settings = self.settings;
        let digits = settings.prefix_digits.unwrap_or_else(|| digits_for(identities));
        report.prefix_digits = digits;
        let began = (self.clock)();
        let path = layout::rejects(self.dataset_id, &settings.writer)?;
        let rejects = Rejects::new(&**self.lake.store(), path, settings.max_rejects);
        let mapped = map(taken, suffixes, digits, &rejects, settings, &mut |progress| pulse.tick(progress))?;
        let read = (self.clock)();
        report.read_seconds = seconds(began, read);

        let (rows, rejected) = (mapped.rows, rejects.total());
        let (files, spilled) = self.write(mapped, digits, |done| {
            pulse.tick(Progress { stage: Stage::Writing, rows: done, rejected, done, total: rows })
        })?;
        let written = (self.clock)();
        report.write_seconds = seconds(read, written);
        report.spilled_bytes = spilled;

        pulse.tick(Progress { stage: Stage::Committing, rows, rejected, done: 0, total: 1 })?;
        let Rejected { counts, total, file } = rejects.finish()?;
        (report.rejected, report.rejected_by_code, report.rejects_file) = (total, counts, file);
        report.commit = Some(self.commit(identities, &files)?);
        report.rows = rows;
        report.distinct_urls = files.iter().map(|f| f.distinct_urls).sum();
        report.files = files.len() as u64;
        report.bytes = files.iter().map(|f| f.bytes).sum();
        report.commit_seconds = seconds(written, (self.clock)());
        Ok(())
    }

    fn write(
        &self,
        mapped: Mapped,
        digits: u8,
        mut tick: impl FnMut(u64) -> Result<()>,
    ) -> Result<(Vec<DataFile>, u64)> {
        let settings = self.settings;
        let mut writer = Writer::new(
            self.lake,
            WriterSettings {
                dataset_id: self.dataset_id,
                writer: settings.writer.clone(),
                columns: columns(mapped.shape, settings.store_ids),
                key_values: vec![("trawl.suffix_list".into(), self.suffix_hash.clone())],
                zstd_level: settings.zstd_level,
                page_rows: settings.page_rows,
                row_group_bytes: settings.row_group_limit(),
                file_bytes: settings.file_bytes,
                threads: settings.threads.max(1),
            },
        )?;
        let mut sorted = mapped.sorted;
        let mut rows = 0u64;
        while let Some(sorted) = sorted.next_record()? {
            let row = record::decode(sorted.key, digits).ok_or(Error::Ended { what: "a sorted record" })?;
            writer.push(&record::prefix_of(sorted.key, digits), &row)?;
            rows += 1;
            if rows.is_multiple_of(TICK_ROWS) {
                tick(rows)?;
            }
        }
        Ok((writer.finish()?, sorted.stats().spilled_bytes))
    }

    fn commit(&self, identities: &[SourceIdentity], files: &[DataFile]) -> Result<u64, Failed> {
        let now = (self.clock)();
        let settings = self.settings;
        // A lake that changed its suffix list meanwhile would get rows cut by another one.
        let current = self.lake.current()?.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        if current != self.suffix_hash {
            let reason = "the lake's suffix list changed during the ingest; run it again".to_owned();
            return Err(trawl_store::Error::Refused { reason }.into());
        }
        let committed = self.lake.commit_dataset(self.dataset_id, now, &settings.writer, |commit| {
            if settings.mode == Mode::Replace {
                commit.files.clear();
                commit.sources.clear();
            }
            // Rows of all sources are in the same files, so a source that another writer brought meanwhile cannot be left out.
            if let Some(twice) = identities.iter().find(|identity| commit.has_source(identity)) {
                let reason = format!("another writer ingested {} meanwhile; run again to skip it", twice.uri);
                return Err(trawl_store::Error::Refused { reason });
            }
            commit.mode = if settings.mode == Mode::Replace { CommitMode::Replace } else { CommitMode::Append };
            commit.suffix_list.clone_from(&self.suffix_hash);
            commit.files.extend(files.iter().cloned());
            commit.sources.extend(identities.iter().cloned());
            Ok(true)
        });
        match committed {
            Ok((commit, _)) => Ok(commit.sequence),
            Err(error) => {
                use trawl_store::Error::{Contended, Refused, Revoked};
                let certain = matches!(error, Refused { .. } | Revoked { .. } | Contended { .. });
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

/// How many prefixes the sources deserve: about a hundred bytes a row plain, a tenth of that compressed.
fn digits_for(identities: &[SourceIdentity]) -> u8 {
    let rows: u64 =
        identities.iter().map(|identity| identity.size / if is_packed(&identity.uri) { 10 } else { 60 }).sum();
    match rows {
        0..50_000_000 => 0,
        50_000_000..2_000_000_000 => 1,
        _ => 2,
    }
}

fn is_packed(uri: &str) -> bool {
    [".gz", ".zst", ".zstd", ".parquet"].iter().any(|end| uri.ends_with(end))
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
        let Run { lake, dataset_id, settings, .. } = self.run;
        let prefixes = vec![format!("{}/", layout::dataset_dir(*dataset_id))];
        let heartbeat = Heartbeat { writer: settings.writer.clone(), act: "ingest".into(), beat: self.last, prefixes };
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
