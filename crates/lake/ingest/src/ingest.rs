//! The whole way: sources in, a commit out.
//!
//! ```text
//! heartbeat ─► read, parse, sort ─► write files ─► rejects ─► commit ─► end of heartbeat
//!                                                             └ nothing is visible before
//! ```

use crate::Result;
use crate::run::{OTHER_LIST, Run, Suffixes, check_dataset};
use crate::settings::{IngestReport, IngestSettings, Mode, Progress};
use std::collections::BTreeSet;
use trawl_model::{SourceIdentity, UnixMillis, UrlSource};
use trawl_store::{CommitMode, DatasetCommit, Lake};

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
    check_dataset(lake, dataset_id)?;
    let suffixes = Suffixes::of(lake)?;
    let mut report = IngestReport { dataset_id, ..IngestReport::default() };
    let before = lake.dataset_newest(dataset_id)?.unwrap_or_else(|| DatasetCommit::empty(dataset_id));
    let (taken, identities) = choose(sources, &before, settings.mode, &mut report);
    if taken.is_empty() && settings.mode == Mode::Append {
        return Ok(report);
    }
    let digits = settings.prefix_digits.unwrap_or_else(|| digits_for(&identities));
    let run = Run {
        lake,
        dataset_id,
        act: "ingest",
        settings,
        clock,
        progress,
        suffixes: &suffixes,
        digits,
        lossless: false,
    };
    run.work(&taken, &mut report, |commit, files| {
        let refuse = |reason: String| Err(trawl_store::Error::Refused { reason });
        // A lake that changed its suffix list meanwhile would get rows cut by another one.
        let current = lake.current()?.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        if current != suffixes.hash {
            return refuse("the lake's suffix list changed during the ingest; run it again".to_owned());
        }
        if settings.mode == Mode::Replace {
            commit.files.clear();
            commit.sources.clear();
        }
        if !commit.files.is_empty() && commit.suffix_list != suffixes.hash {
            return refuse(OTHER_LIST.to_owned());
        }
        // Rows of all sources are in the same files, so a source that another writer brought meanwhile cannot be left out.
        if let Some(twice) = identities.iter().find(|identity| commit.has_source(identity)) {
            return refuse(format!("another writer ingested {} meanwhile; run again to skip it", twice.uri));
        }
        commit.mode = if settings.mode == Mode::Replace { CommitMode::Replace } else { CommitMode::Append };
        commit.files.extend(files.iter().cloned());
        commit.sources.extend(identities.iter().cloned());
        Ok(())
    })?;
    Ok(report)
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
