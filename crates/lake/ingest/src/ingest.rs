//! The whole way: sources in, a commit out.
//!
//! ```text
//! heartbeat ─► read, parse, sort ─► write files ─► rejects ─► commit ─► end of heartbeat
//!                                                             └ nothing is visible before
//! ```

use crate::rewrite::{digits_of, with_marks_of};
use crate::run::{OTHER_LIST, Run, Suffixes, check_dataset};
use crate::settings::{IngestReport, IngestSettings, Mode, Progress};
use crate::source::{LakeSource, of_name};
use crate::{Error, Result, stale};
use std::collections::{HashMap, HashSet};
use trawl_model::{Grown, SourceIdentity, Stamp, UnixMillis, UrlRecord, UrlSource};
use trawl_store::denial::Denied;
use trawl_store::manifest::Deny;
use trawl_store::{CommitMode, DatasetCommit, KnownSource, Lake, Manifest};

/// Reads `sources` into a dataset. `clock` tells the time, for commits, signs of life and the report.
///
/// Sources the dataset has already are skipped; one that has grown since ([`UrlSource::grown`]) takes the place of what it
/// was, and a row that its last item was taken for while it was cut goes. What the deny list covers is left out; a dataset
/// that is denied itself takes nothing. Until the commit nothing is visible; after an error nothing is.
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
    let began = lake.current()?;
    let denied = Denied::new(&began, &suffixes.list);
    if denied.list().dataset(dataset_id) {
        return Err(trawl_store::Error::Refused { reason: DENIED.to_owned() }.into());
    }
    let mut report = IngestReport { dataset_id, ..IngestReport::default() };
    let before = lake.dataset_newest(dataset_id)?.unwrap_or_else(|| DatasetCommit::empty(dataset_id));
    let Chosen { mut taken, new, stamped } = choose(sources, &before, settings.mode, &mut report);
    if let Some(changed) = changed_since(&taken, &before, settings.mode) {
        return Err(trawl_store::Error::Refused { reason: changed }.into());
    }
    if taken.is_empty() && settings.mode == Mode::Append {
        // Nobody need read them the next time.
        lake.commit_dataset(dataset_id, clock(), &settings.writer, |commit| Ok(note_stamps(commit, &stamped)))?;
        return Ok(report);
    }
    let grown: Vec<&Grown> = taken.iter().filter_map(|source| source.grown()).collect();
    if settings.mode == Mode::Replace && !grown.is_empty() {
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
    taken.extend(again.iter().map(|source| source as &dyn UrlSource));
    let mut marked = with_marks_of(&again, settings)?;
    marked.zstd_level = marked.zstd_level.max(settings.zstd_level);
    let settings = &marked;
    report.taken_back = losing.iter().map(|losing| losing.rows.count()).sum();
    report.grown = grown.iter().map(|grown| grown.known.clone()).collect();

    let old = digits_of(losing.iter().map(|losing| losing.file));
    let digits = settings.prefix_digits.unwrap_or_else(|| digits_for(new.iter().map(|new| &new.identity)).max(old));
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
    };
    let mut denied_since = 0;
    run.work(&taken, &mut report, |commit, written| {
        let files = &written.files;
        let refuse = |reason: String| Err(trawl_store::Error::Refused { reason });
        // A lake that changed its suffix list meanwhile would get rows cut by another one.
        let current = lake.current()?;
        let hash = current.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        if hash != suffixes.hash {
            return refuse("the lake's suffix list changed during the ingest; run it again".to_owned());
        }
        let since = Manifest { deny: new_entries(&began, &current), ..Manifest::empty() };
        let denied = Denied::new(&since, &suffixes.list);
        if denied.list().dataset(dataset_id) {
            return refuse(DENIED.to_owned());
        }
        // No answer shows such rows, so they do not make the work in vain.
        let covers_rows = !denied.is_empty() && files.iter().any(|file| denied.may_be_in(file));
        denied_since = if covers_rows { since.deny.len() as u64 } else { 0 };
        if settings.mode == Mode::Replace {
            if files.is_empty() && !commit.files.is_empty() && !settings.allow_empty {
                return refuse(format!("the sources hold no rows to put in the place of {}", commit.rows));
            }
            commit.files.clear();
            commit.sources.clear();
        }
        if !commit.files.is_empty() && commit.suffix_list != suffixes.hash {
            return refuse(OTHER_LIST.to_owned());
        }
        // Rows of all sources are in the same files, so a source that another writer brought meanwhile cannot be left out.
        if let Some(twice) = new.iter().find(|new| commit.has_source(&new.identity)) {
            let uri = &twice.identity.uri;
            return refuse(format!("another writer ingested {uri} meanwhile; run again to skip it"));
        }
        if let Some(changed) = changed_since(&taken, commit, settings.mode) {
            return refuse(changed);
        }
        let mut was = HashMap::new();
        for grown in &grown {
            let Some(known) = commit.remove_source(&grown.known) else { return refuse(changed_name(&grown.known.uri)) };
            was.insert(&grown.known, known);
        }
        for losing in &losing {
            let Some(at) = commit.files.iter().position(|file| file.path == losing.file.path) else {
                return refuse("another writer replaced files that were being rewritten; run again".to_owned());
            };
            commit.files.remove(at);
        }
        note_stamps(commit, &stamped);
        commit.mode = if settings.mode == Mode::Replace { CommitMode::Replace } else { CommitMode::Append };
        commit.files.extend(files.iter().cloned());
        for (number, (new, source)) in new.iter().zip(&taken).enumerate() {
            let tail = match (written.tails.of(number), source.grown()) {
                (Some(url), _) => url.map(stale::tail_of),
                // Nothing came since, and the last record is what it was.
                (None, Some(Grown { known, stale: None })) => was.get(known).and_then(|known| known.tail.clone()),
                (None, _) => None,
            };
            commit.add_source(KnownSource { tail, ..new.clone() });
        }
        Ok(())
    })?;
    report.denied_since = denied_since;
    // What was in the lake before is not what came in.
    report.rows += report.taken_back;
    for losing in &losing {
        report.rows = report.rows.saturating_sub(losing.file.rows);
        report.distinct_urls = (report.distinct_urls + losing.urls).saturating_sub(losing.file.distinct_urls);
    }
    Ok(report)
}

/// Says if the dataset has something else of the name of a source than it had when the source was opened: the same file, at
/// another length, whose rows would be there twice.
fn changed_since(taken: &[&dyn UrlSource], commit: &DatasetCommit, mode: Mode) -> Option<String> {
    let mut files = taken.iter().filter(|_| mode == Mode::Append);
    let changed = files.find(|source| {
        let uri = source.identity().uri;
        let now = of_name(&commit.sources, &uri).iter().map(|known| &known.identity);
        source.known_by_name().is_some_and(|opened| now.ne(opened))
    });
    changed.map(|source| changed_name(&source.identity().uri))
}

fn changed_name(uri: &str) -> String {
    format!("another writer changed what the dataset has of {uri} meanwhile; run again")
}

/// Why a dataset takes nothing.
const DENIED: &str = "the dataset is denied: `trawl lake deny remove --dataset` allows it again";

/// The entries of a deny list that an earlier state had not.
fn new_entries(before: &Manifest, after: &Manifest) -> Vec<Deny> {
    // New ones come last, so there is mostly nothing to compare.
    let same = before.deny.iter().zip(&after.deny).take_while(|(old, new)| old == new).count();
    let old: HashSet<_> = before.deny.iter().skip(same).map(|deny| &deny.target).collect();
    let new = after.deny.iter().skip(same);
    new.filter(|deny| !old.contains(&deny.target)).cloned().collect()
}

/// What the sources are to a dataset.
struct Chosen<'a> {
    taken: Vec<&'a dyn UrlSource>,
    /// Which those are, in the same order.
    new: Vec<KnownSource>,
    /// Sources that the dataset has, of which their file system says something else than it did.
    stamped: Vec<(SourceIdentity, Stamp)>,
}

/// Tells of sources that the dataset has what is said of them now; whether there was anything to tell.
fn note_stamps(commit: &mut DatasetCommit, stamped: &[(SourceIdentity, Stamp)]) -> bool {
    let mut changed = false;
    for (identity, stamp) in stamped {
        let known = commit.known_source(identity).filter(|known| known.stamp != Some(*stamp)).cloned();
        if let Some(known) = known {
            commit.add_source(KnownSource { stamp: Some(*stamp), ..known });
            changed = true;
        }
    }
    changed
}

/// The sources that are new, each once.
fn choose<'a>(
    sources: &'a [Box<dyn UrlSource>],
    before: &DatasetCommit,
    mode: Mode,
    report: &mut IngestReport,
) -> Chosen<'a> {
    let mut chosen = Chosen { taken: Vec::new(), new: Vec::new(), stamped: Vec::new() };
    let (mut seen, mut names) = (HashSet::new(), HashSet::new());
    for source in sources {
        let (identity, stamp) = (source.identity(), source.stamp());
        let known = before.known_source(&identity).filter(|_| mode == Mode::Append);
        // A file that is named twice and has grown in between is one file still; the rest of it comes the next time.
        let is_file = source.known_by_name().is_some();
        if known.is_some() || !seen.insert(identity.clone()) || is_file && !names.insert(identity.uri.clone()) {
            let told = known.zip(stamp).filter(|(known, stamp)| known.stamp != Some(*stamp));
            chosen.stamped.extend(told.map(|(_, stamp)| (identity.clone(), stamp)));
            report.skipped.push(identity);
            continue;
        }
        report.sources += 1;
        report.source_bytes += identity.size;
        chosen.new.push(KnownSource { identity, stamp, tail: None });
        chosen.taken.push(&**source);
    }
    chosen
}

/// How many prefixes the sources deserve: about a hundred bytes a row plain, a tenth of that compressed.
fn digits_for<'a>(identities: impl Iterator<Item = &'a SourceIdentity>) -> u8 {
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
