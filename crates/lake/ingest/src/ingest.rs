//! The whole way: sources in, a commit out.
//!
//! ```text
//! heartbeat ─► read, parse, sort ─► write files ─► rejects ─► commit ─► end of heartbeat
//!                                                             └ nothing is visible before
//! ```

use crate::join::{DENIED, Joining, Taken, note_stamps, unchanged_since};
use crate::replace::Replaced;
use crate::rewrite::{digits_of, with_marks_of};
use crate::run::{Run, Suffixes, check_dataset};
use crate::settings::{IngestReport, IngestSettings, Mode};
use crate::source::{Grown, LakeSource, Source};
use crate::{Error, Result, stale};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trawl_model::{SourceIdentity, UnixMillis, UrlRecord, UrlSource};
use trawl_store::denial::Denied;
use trawl_store::{DatasetCommit, Lake, Manifest, Progress, Stamp};

/// Reads `sources` into a dataset. `clock` tells the time, for commits, signs of life and the report.
///
/// Sources the dataset has already are skipped; one that has grown since ([`Source::grown`]) takes the place of what it
/// was, and a row that its last item was taken for while it was cut goes. What the deny list covers is left out; a dataset
/// that is denied itself takes nothing. Until the commit nothing is visible; after an error nothing is.
pub fn ingest(
    lake: &Lake,
    dataset_id: u32,
    sources: &[Source],
    settings: &IngestSettings,
    clock: &dyn Fn() -> UnixMillis,
    progress: &dyn Fn(Progress),
) -> Result<IngestReport> {
    settings.check()?;
    let Begun { suffixes, began, before, replaced, chosen, mut report } =
        begin(lake, dataset_id, sources, settings.mode)?;
    let Chosen { taken: sources, new: taken, stamped } = chosen;
    let denied = Denied::new(&began, &suffixes.list);
    if taken.is_empty() && settings.mode != Mode::Replace && replaced.sources.is_empty() {
        // They need not be read the next time.
        lake.commit_dataset(dataset_id, clock(), &settings.writer, |commit| Ok(note_stamps(commit, &stamped)))?;
        return Ok(report);
    }
    let grown: Vec<&Grown> = taken.iter().filter_map(|taken| taken.grown.as_ref()).collect();
    if settings.mode != Mode::Append && !grown.is_empty() {
        let expected = "sources that are read from their beginning";
        return Err(Error::Setting { what: "replace", expected, found: "one that is read from where it was".into() });
    }
    let stale: Vec<&UrlRecord> = grown.iter().filter_map(|grown| stale::of(grown, &before)).collect();
    let losing = stale::find(&**lake.store(), &before, &stale, &suffixes.list)?;
    let keeps: Vec<_> = losing.iter().map(|losing| |record: &UrlRecord| losing.rows.keep(record)).collect();
    let mut again = Vec::with_capacity(losing.len());
    for (losing, keep) in losing.iter().zip(&keeps) {
        again.push(LakeSource::open(&**lake.store(), losing.file, keep)?);
    }
    let mut read: Vec<&dyn UrlSource> = sources.iter().map(|source| *source as &dyn UrlSource).collect();
    read.extend(again.iter().map(|source| source as &dyn UrlSource));
    let mut marked = with_marks_of(&again, settings)?;
    marked.zstd_level = marked.zstd_level.max(settings.zstd_level);
    let settings = &marked;
    report.taken_back = losing.iter().map(|losing| losing.rows.count()).sum();
    report.grown = grown.iter().map(|grown| grown.known.clone()).collect();

    let old = digits_of(losing.iter().map(|losing| losing.file));
    let digits = settings.prefix_digits.unwrap_or_else(|| digits_for(&taken).max(old));
    let run = Run {
        lake,
        dataset_id,
        act: "ingest",
        settings,
        clock,
        progress,
        suffixes: &suffixes,
        digits,
        of_lake: again.len(),
        denied: (!denied.is_empty()).then_some(&denied),
        check_read: &|| sources.iter().try_for_each(|source| source.check_unchanged()),
    };
    let skipped = report.skipped.clone();
    let joining = Joining {
        lake,
        mode: settings.mode,
        allow_empty: settings.allow_empty,
        suffixes: &suffixes,
        began: &began,
        taken: &taken,
        skipped: &skipped,
        stamped: &stamped,
        losing: &losing,
        replaced: &replaced,
    };
    let mut denied_since = 0;
    run.work(&read, &mut report, |commit, written| {
        denied_since = joining.check(commit, &written.files)?;
        joining.join(commit, written)
    })?;
    report.denied_since = denied_since;
    report.replaced = replaced.sources.clone();
    // What was in the lake before is not what came in.
    report.rows += report.taken_back;
    for losing in &losing {
        report.rows = report.rows.saturating_sub(losing.file.rows);
        report.distinct_urls = (report.distinct_urls + losing.urls).saturating_sub(losing.file.distinct_urls);
    }
    report.count_records();
    Ok(report)
}

/// What an ingest finds when it begins.
pub(crate) struct Begun<'a> {
    pub suffixes: Suffixes,
    /// The lake.
    pub began: Arc<Manifest>,
    /// The dataset.
    pub before: DatasetCommit,
    pub replaced: Replaced,
    pub chosen: Chosen<'a>,
    pub report: IngestReport,
}

/// Looks at lake, dataset and sources, and refuses what cannot become a commit.
pub(crate) fn begin<'a>(lake: &Lake, dataset_id: u32, sources: &'a [Source], mode: Mode) -> Result<Begun<'a>> {
    check_dataset(lake, dataset_id)?;
    let suffixes = Suffixes::of(lake)?;
    let began = lake.current()?;
    if Denied::new(&began, &suffixes.list).list().dataset(dataset_id) {
        return Err(trawl_store::Error::Refused { reason: DENIED.to_owned() }.into());
    }
    let mut report = IngestReport { dataset_id, ..IngestReport::default() };
    let before = lake.dataset_newest(dataset_id)?.unwrap_or_else(|| DatasetCommit::empty(dataset_id));
    let replaced = match mode {
        Mode::ReplaceSources => Replaced::plan(&before, &sources.iter().map(Source::identity).collect::<Vec<_>>())?,
        Mode::Append | Mode::Replace => Replaced::default(),
    };
    let chosen = choose(sources, &before, mode, &replaced, &mut report);
    if mode == Mode::Append {
        unchanged_since(&chosen.new, &before)?;
    }
    Ok(Begun { suffixes, began, before, replaced, chosen, report })
}

/// What the sources are to a dataset.
pub(crate) struct Chosen<'a> {
    pub taken: Vec<&'a Source>,
    /// Which those are, in the same order.
    pub new: Vec<Taken>,
    /// Sources that the dataset has, of which their file system says something else than it did.
    pub stamped: Vec<(SourceIdentity, Stamp)>,
}

/// The sources that are new, each once.
fn choose<'a>(
    sources: &'a [Source],
    before: &DatasetCommit,
    mode: Mode,
    replaced: &Replaced,
    report: &mut IngestReport,
) -> Chosen<'a> {
    let mut chosen = Chosen { taken: Vec::new(), new: Vec::new(), stamped: Vec::new() };
    let (mut seen, mut paths) = (HashSet::new(), HashSet::new());
    // By whatever names a file is reached, it is taken once, and under the name that the dataset knows, if it knows one.
    let mut files: HashMap<_, (bool, usize)> = HashMap::new();
    for (number, source) in sources.iter().enumerate() {
        let Some(file) = source.file() else { continue };
        let is_new = source.grown.is_none() && !before.has_source(&source.identity());
        let best = files.entry(file).or_insert((is_new, number));
        *best = (*best).min((is_new, number));
    }
    for (number, source) in sources.iter().enumerate() {
        let is_again = source.file().and_then(|file| files.get(&file)).is_some_and(|(_, first)| *first != number);
        let (identity, stamp) = (source.identity(), source.stamp);
        // One that shares files with what is replaced is read again.
        let stays = mode == Mode::Append || mode == Mode::ReplaceSources && !replaced.sources.contains(&identity);
        let known = before.known_source(&identity).filter(|_| stays);
        // A file that is named twice and has grown in between is one file still; the rest of it comes the next time.
        let is_file = source.known_by_name.is_some();
        let mut is_named_again = || is_file && source.path().is_some_and(|path| !paths.insert(path));
        if known.is_some() || is_again || !seen.insert(identity.clone()) || is_named_again() {
            let told = known.zip(stamp).filter(|(known, stamp)| known.stamp != Some(*stamp));
            chosen.stamped.extend(told.map(|(_, stamp)| (identity.clone(), stamp)));
            report.skipped.push(identity);
            continue;
        }
        report.sources += 1;
        report.source_bytes += identity.size;
        chosen.new.push(Taken::new(source));
        chosen.taken.push(source);
    }
    chosen
}

/// How many prefixes the sources deserve: about a hundred bytes a row plain, a tenth of that compressed.
pub(crate) fn digits_for(taken: &[Taken]) -> u8 {
    let identities = taken.iter().map(|taken| &taken.known.identity);
    let rows: u64 = identities.map(|identity| identity.size / if is_packed(&identity.uri) { 10 } else { 60 }).sum();
    match rows {
        0..50_000_000 => 0,
        50_000_000..2_000_000_000 => 1,
        _ => 2,
    }
}

fn is_packed(uri: &str) -> bool {
    [".gz", ".zst", ".zstd", ".parquet"].iter().any(|end| uri.ends_with(end))
}
