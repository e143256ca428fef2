//! Files of a dataset written again: without some rows (a purge), under another suffix list, or into fewer files.

use crate::Result;
use crate::run::{OTHER_LIST, Run, Suffixes, check_dataset};
use crate::settings::{IngestReport, IngestSettings};
use crate::source::LakeSource;
use crate::stale::Going;
use serde::Serialize;
use std::collections::BTreeSet;
use trawl_model::{UnixMillis, UrlRecord, UrlSource};
use trawl_store::manifest::SuffixListRef;
use trawl_store::{CommitMode, DataFile, DatasetCommit, Lake, Progress};

/// What to write again.
pub struct Rewrite<'a> {
    /// Whether a row stays.
    pub keep: &'a (dyn Fn(&UrlRecord) -> bool + Sync),
    /// Which files.
    pub files: Files<'a>,
    /// The suffix list by which domains are cut; that of the lake if `None`. It must be stored in the lake already, and
    /// naming it in the manifest is left to the caller, once every dataset is rewritten. Needs [`Files::All`].
    pub suffix_list: Option<&'a SuffixListRef>,
}

/// Which files of a dataset are written again.
#[derive(Clone, Copy)]
pub enum Files<'a> {
    /// All.
    All,
    /// Those of which this says yes.
    Chosen(&'a dyn Fn(&DataFile) -> bool),
    /// Those that hold a row which does not stay. Only files of which this says that they might are read to find out.
    Losing(&'a dyn Fn(&DataFile) -> bool),
}

/// What a rewrite did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RewriteReport {
    /// The commit that holds the new files; `None` if there was nothing to do.
    pub commit: Option<u64>,
    /// Files read, and their rows and bytes.
    pub files_before: u64,
    /// Rows of the files read.
    pub rows_before: u64,
    /// Bytes of the files read.
    pub bytes_before: u64,
    /// Files written in their place.
    pub files_after: u64,
    /// Rows of the files written.
    pub rows_after: u64,
    /// Bytes of the files written.
    pub bytes_after: u64,
}

/// Writes files of a dataset again, in one commit. Other writers may append meanwhile; if one replaced a file that was
/// being rewritten, the rewrite is refused. The old files stay until a collector takes them. Stored ids stay where one of
/// them had any, and the highest zstd level of those that tell theirs takes the place of the settings' one.
pub fn rewrite(
    lake: &Lake,
    dataset_id: u32,
    what: &Rewrite<'_>,
    settings: &IngestSettings,
    clock: &dyn Fn() -> UnixMillis,
    progress: &dyn Fn(Progress),
) -> Result<RewriteReport> {
    settings.check()?;
    check_dataset(lake, dataset_id)?;
    let suffixes = match what.suffix_list {
        None => Suffixes::of(lake)?,
        Some(list) => Suffixes::parse(&lake.store().get(&list.path, MAX_SUFFIX_LIST_BYTES)?, list.hash.clone())?,
    };
    let before = lake.dataset_newest(dataset_id)?.unwrap_or_else(|| DatasetCommit::empty(dataset_id));
    let store = &**lake.store();
    let going = Going::new(&before);
    let keep = |record: &UrlRecord| {
        let stays = (what.keep)(record);
        if !stays {
            going.note(record);
        }
        stays
    };
    let mut sources = Vec::new();
    for file in &before.files {
        let wanted = match what.files {
            Files::All => true,
            Files::Chosen(chosen) => chosen(file),
            Files::Losing(may) => may(file) && loses_rows(&LakeSource::open(store, file, &keep)?, file)?,
        };
        if wanted {
            sources.push((file, LakeSource::open(store, file, &keep)?));
        }
    }
    let mut report = RewriteReport::default();
    if sources.is_empty() {
        return Ok(report);
    }
    for (file, _) in &sources {
        report.files_before += 1;
        report.rows_before += file.rows;
        report.bytes_before += file.bytes;
    }
    let old: BTreeSet<&str> = sources.iter().map(|(file, _)| file.path.as_str()).collect();
    let taken: Vec<&dyn UrlSource> = sources.iter().map(|(_, source)| source as &dyn UrlSource).collect();
    let digits = settings.prefix_digits.unwrap_or_else(|| digits_of(&before.files));
    let settings = with_marks_of(sources.iter().map(|(_, source)| source), settings)?;
    let run = Run {
        lake,
        dataset_id,
        act: "rewrite",
        settings: &settings,
        clock,
        progress,
        suffixes: &suffixes,
        digits,
        of_lake: taken.len(),
        denied: None,
        // Files of a lake never change.
        check_read: &|| Ok(()),
    };
    let mut done = IngestReport::default();
    run.work(&taken, &mut done, |commit, written| {
        let refuse = |reason: String| Err(trawl_store::Error::Refused { reason });
        if commit.is_dropped() {
            return Err(trawl_store::Error::Dropped { dataset_id });
        }
        if commit.files.iter().filter(|file| old.contains(file.path.as_str())).count() != old.len() {
            return refuse("another writer replaced files that were being rewritten; run again".to_owned());
        }
        // Files that stay as they are must have been cut by the same list.
        if commit.suffix_list != suffixes.hash && commit.files.len() != old.len() {
            return refuse(OTHER_LIST.to_owned());
        }
        commit.mode = CommitMode::Rewrite;
        commit.files.retain(|file| !old.contains(file.path.as_str()));
        commit.files.extend(written.files.iter().cloned());
        going.forget(commit, &before);
        Ok(())
    })?;
    report.commit = done.commit;
    (report.files_after, report.rows_after, report.bytes_after) = (done.files, done.rows, done.bytes);
    Ok(report)
}

/// `settings` for files that are written again: what was asked for when the rows came in holds for them still.
pub(crate) fn with_marks_of<'a, 'b: 'a>(
    files: impl IntoIterator<Item = &'a LakeSource<'b>>,
    settings: &IngestSettings,
) -> Result<IngestSettings> {
    let mut settings = settings.clone();
    let mut level = None;
    for file in files {
        settings.store_ids |= file.has_ids()?;
        level = level.max(file.zstd_level());
    }
    settings.zstd_level = level.unwrap_or(settings.zstd_level);
    Ok(settings)
}

/// Largest suffix list that is read.
const MAX_SUFFIX_LIST_BYTES: u64 = 16 << 20;

fn loses_rows(source: &LakeSource<'_>, file: &DataFile) -> Result<bool> {
    let mut stay = 0;
    for split in source.splits(u64::MAX)? {
        source.read(split, &mut |_, _| {
            stay += 1;
            Ok(())
        })?;
    }
    Ok(stay != file.rows)
}

/// As many digits as the files have already.
pub(crate) fn digits_of<'a>(files: impl IntoIterator<Item = &'a DataFile>) -> u8 {
    let digits = |file: &DataFile| if file.prefix == "all" { 0 } else { file.prefix.len() };
    files.into_iter().map(digits).max().and_then(|digits| u8::try_from(digits).ok()).unwrap_or(0)
}
