//! Publishes what datasets have committed: one new segment, one new version.

use crate::build::{BuildOptions, SourceFile, sort_files};
use crate::compact::{Compacted, Compaction, compact};
use crate::meta::SegmentMeta;
use crate::split::build_segment;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use trawl_model::UnixMillis;
use trawl_store::manifest::SuffixListRef;
use trawl_store::{AtWork, CommitMode, Lake, Manifest, Progress, SegmentRef, layout};

/// What the heartbeats of publishers say that they do. Their commits are those of the lake, not of its datasets.
pub const PUBLISH: &str = "publish";

/// Datasets that a heartbeat names at most; of more, it names the directory of all.
const MAX_NAMED: usize = 1000;

/// Rounds a publisher or a compaction goes when others change what it rests on.
const MAX_ATTEMPTS: u32 = 10;

/// What a publish did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    /// The version readers use now; `None` if there was nothing to publish.
    pub version: Option<String>,
    /// The new segment, if files were added.
    pub segment: Option<SegmentMeta>,
    /// Datasets whose commit the version now serves.
    pub commits: BTreeMap<u32, u64>,
    /// What was merged afterwards, as the version had come to have too many segments.
    pub tidied: Option<Compacted>,
    /// Why that could not be done: the version stands without it, and the next publish tries again.
    pub tidy_error: Option<String>,
    /// Datasets whose newest commit was cut by another suffix list than the lake's: they wait for a rebuild, and are
    /// served as they were.
    pub waiting: Vec<u32>,
    /// Datasets whose newest commit cannot be read or is gone, and why: they are served as they were.
    pub damaged: Vec<(u32, String)>,
}

/// Brings the current version up to every dataset's newest commit: builds one segment of the files it does not cover
/// yet, and commits a version of the old segments and the new one. Where a dataset lost files since (replaced, rewritten,
/// dropped), the old segments are masked for it. A version of more than [`crate::MAX_SEGMENTS`] segments is then compacted by
/// tiers, without reading rows.
///
/// `writer` must be new for each call; `now` is the clock.
pub fn publish(
    lake: &Lake,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    publish_scope(lake, &Scope::New, now, writer, options, progress)
}

/// As [`publish`], for datasets that the caller has committed to, and such as no version serves yet: without asking every other
/// dataset whether it has a commit that is not published. The cost is that of what is new, not that of the lake.
pub fn publish_datasets(
    lake: &Lake,
    datasets: &[u32],
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    let scope = Scope::Of(datasets.iter().copied().collect());
    publish_scope(lake, &scope, now, writer, options, progress)
}

pub(crate) fn publish_scope(
    lake: &Lake,
    scope: &Scope,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    let mut published = version(lake, scope, None, now, writer, options, progress)?;
    if published.version.is_some() {
        tidy(lake, &mut published, now, writer, options, progress);
    }
    Ok(published)
}

/// Merges segments if a new version has come to have too many.
pub(crate) fn tidy(
    lake: &Lake,
    published: &mut Published,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) {
    match compact(lake, now, &format!("{writer}-t"), Compaction::Tiered, options, progress) {
        Ok(Some(tidied)) => {
            published.version = Some(tidied.version.clone());
            published.tidied = Some(tidied);
        }
        Ok(None) => {}
        Err(error) => published.tidy_error = Some(error.to_string()),
    }
}

/// Builds the index anew from the Parquet files of every dataset's newest commit: one segment, and a version of it alone.
/// For an index that is damaged, lost, or written by a format of the past. A `list` becomes the lake's suffix list in the same
/// commit: every dataset must have been rewritten under it before, and it must be stored in the lake.
///
/// `writer` must be new for each call; `now` is the clock.
pub fn rebuild(
    lake: &Lake,
    list: Option<&SuffixListRef>,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    version(lake, &Scope::All, list, now, writer, options, progress)
}

/// Which files a plan takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those the current version does not cover.
    New,
    /// The same, of these datasets and of those that no version serves yet.
    Of(BTreeSet<u32>),
    /// The same, of this dataset alone: what others do meanwhile must not change which files these are.
    Only(u32),
    /// All.
    All,
}

/// Tries to make a segment, under another id each time, until what it rests on did not change meanwhile: then `make` answers.
pub(crate) fn attempts<T>(
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    mut make: impl FnMut(&str) -> Result<Option<T>>,
) -> Result<T> {
    trawl_store::check_name(writer)?;
    for attempt in 0..MAX_ATTEMPTS {
        if let Some(made) = make(&format!("{}-{writer}-{attempt}", now().digits14()))? {
            return Ok(made);
        }
    }
    let path = layout::MANIFESTS.to_owned();
    Err(Error::Store(trawl_store::Error::Contended { path, attempts: MAX_ATTEMPTS }))
}

fn version(
    lake: &Lake,
    scope: &Scope,
    list: Option<&SuffixListRef>,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    attempts(now, writer, |id| {
        let manifest = lake.current()?;
        let mut plan = Plan::new(lake, &manifest, scope, list)?;
        let (waiting, damaged) = (std::mem::take(&mut plan.waiting), std::mem::take(&mut plan.damaged));
        let mut published = Published { waiting, damaged, ..Published::default() };
        if plan.is_empty() && (list.is_none() || list == manifest.suffix_list.as_ref()) {
            return Ok(Some(published));
        }
        let at_work = AtWork::start_reading(lake, now, writer, PUBLISH, layout::segment_dir(id)?, &plan.reads())?;
        for (dataset_id, sequence) in &plan.commits {
            lake.renew_commit_copy(*dataset_id, *sequence)?;
        }
        if !plan.files.is_empty() {
            sort_files(&mut plan.files);
            published.segment = Some(build_segment(lake.store(), id, &plan.files, options, &|p| {
                at_work.now_and_then();
                progress(p);
            })?);
        }
        if let Some(list) = list
            && !lake.store().exists(&list.path)?
        {
            let reason = format!("the suffix list {} is not stored in the lake", list.hash);
            return Err(Error::Store(trawl_store::Error::Refused { reason }));
        }
        let reference = published.segment.as_ref().map(|meta| meta.to_ref(0)).transpose()?;
        published.version = at_work.commit(|| {
            let commit =
                lake.commit(now(), writer, |manifest| plan.apply_if_there(lake, manifest, now, reference.clone()));
            Ok(commit?.value)
        })?;
        published.commits = plan.commits;
        // If not, somebody else published one of our datasets meanwhile, or replaced it: start from what is there now.
        Ok(published.version.is_some().then_some(published))
    })
}

/// What a version lacks.
pub(crate) struct Plan {
    pub files: Vec<SourceFile>,
    /// The commit of each dataset that was live when the plan was made; 0 for none.
    pub base: BTreeMap<u32, u64>,
    /// The commit of each dataset that will be live.
    pub commits: BTreeMap<u32, u64>,
    /// Datasets that older segments must no longer answer for.
    masked: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
    /// Datasets left as they are, since their newest rows were cut by another suffix list.
    pub waiting: Vec<u32>,
    /// Datasets left as they are, since their newest commit cannot be read or is gone.
    pub damaged: Vec<(u32, String)>,
    /// The list that the version's rows are cut by, if it is to become the lake's.
    list: Option<SuffixListRef>,
    /// The lake's list when the plan was made: under another one the rows would be found nowhere.
    list_before: Option<SuffixListRef>,
    /// The id that the next dataset would get: a list that becomes the lake's must have been seen by every dataset.
    next_dataset_id: u32,
}

impl Plan {
    pub fn new(lake: &Lake, manifest: &Manifest, scope: &Scope, list: Option<&SuffixListRef>) -> Result<Self> {
        let mut plan = Self {
            files: Vec::new(),
            base: BTreeMap::new(),
            commits: BTreeMap::new(),
            masked: BTreeSet::new(),
            dropped: BTreeSet::new(),
            waiting: Vec::new(),
            damaged: Vec::new(),
            list: list.cloned(),
            list_before: manifest.suffix_list.clone(),
            next_dataset_id: manifest.next_dataset_id,
        };
        let hash = list.or(manifest.suffix_list.as_ref()).map(|list| list.hash.as_str()).unwrap_or_default();
        for dataset in &manifest.datasets {
            let (id, live) = (dataset.id, manifest.live_commit(dataset.id));
            if dataset.dropped {
                if live > 0 {
                    plan.base.insert(id, live);
                    plan.masked.insert(id);
                    plan.dropped.insert(id);
                }
                continue;
            }
            if let Scope::Of(datasets) = scope
                && live > 0
                && !datasets.contains(&id)
            {
                continue;
            }
            if matches!(scope, Scope::Only(only) if *only != id) {
                continue;
            }
            let wanted = |sequence: u64| *scope == Scope::All || sequence > live;
            let newest = match lake.dataset_newest(id) {
                // One dataset's trouble is not that of the others.
                Err(error @ (trawl_store::Error::Corrupt { .. } | trawl_store::Error::Lost { .. }))
                    if *scope != Scope::All =>
                {
                    plan.damaged.push((id, error.to_string()));
                    continue;
                }
                newest => newest?,
            };
            let Some(newest) = newest.filter(|newest| wanted(newest.sequence)) else { continue };
            // Rows cut by another list would be found under domains that no question maps to.
            if !newest.files.is_empty() && newest.suffix_list != hash {
                if *scope != Scope::All {
                    plan.waiting.push(id);
                    continue;
                }
                let reason =
                    format!("dataset {id} has rows cut by another suffix list: run `trawl lake rebuild` again");
                return Err(Error::Store(trawl_store::Error::Refused { reason }));
            }
            let covered: Option<BTreeSet<String>> = match live {
                _ if *scope == Scope::All => None,
                0 => Some(BTreeSet::new()),
                // A commit that was collected cannot tell what is covered: take everything anew.
                live => lake.dataset_commit(id, live)?.map(|c| c.files.into_iter().map(|f| f.path).collect()),
            };
            let kept = covered.filter(|covered| {
                let files: BTreeSet<&String> = newest.files.iter().map(|f| &f.path).collect();
                covered.iter().all(|path| files.contains(path))
            });
            // What a note says is for the next writer; readers would get a version that answers as the one before.
            let is_same = kept.as_ref().is_some_and(|kept| kept.len() == newest.files.len());
            if is_same && newest.mode == CommitMode::Note && live > 0 && *scope != Scope::All {
                continue;
            }
            plan.base.insert(id, live);
            plan.commits.insert(id, newest.sequence);
            if kept.is_none() {
                plan.masked.insert(id);
            }
            let kept = kept.unwrap_or_default();
            let new = newest.files.into_iter().filter(|f| !kept.contains(&f.path));
            plan.files.extend(new.map(|file| SourceFile { dataset_id: id, file }));
        }
        Ok(plan)
    }

    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// Directories of the datasets whose files the version will name.
    fn reads(&self) -> Vec<String> {
        if self.commits.len() > MAX_NAMED {
            return [layout::URLS, layout::DATASETS].map(str::to_owned).into();
        }
        self.commits.keys().flat_map(|id| [layout::dataset_dir(*id), layout::records_dir(*id)]).collect()
    }

    /// As [`Plan::apply`]; `None` also if files are gone that were replaced meanwhile: by a collector that looked for writers at work
    /// before this one began.
    pub fn apply_if_there(
        &self,
        lake: &Lake,
        manifest: &mut Manifest,
        now: &dyn Fn() -> UnixMillis,
        segment: Option<SegmentRef>,
    ) -> trawl_store::Result<Option<String>> {
        Ok(if self.is_there(lake)? { self.apply(manifest, now(), segment) } else { None })
    }

    /// Whether the files of commits that no version serves yet are there: those that were replaced meanwhile may be gone.
    fn is_there(&self, lake: &Lake) -> trawl_store::Result<bool> {
        for (id, sequence) in self.commits.iter().filter(|(id, sequence)| self.base.get(*id) != Some(*sequence)) {
            let newest = match lake.dataset_newest(*id) {
                Err(trawl_store::Error::Corrupt { .. } | trawl_store::Error::Lost { .. }) => return Ok(false),
                newest => newest?,
            };
            let Some(newest) = newest.filter(|newest| newest.sequence != *sequence) else { continue };
            let live: BTreeSet<&str> = newest.files.iter().map(|file| file.path.as_str()).collect();
            for source in self.files.iter().filter(|source| source.dataset_id == *id) {
                if !live.contains(source.file.path.as_str()) && !lake.store().exists(&source.file.path)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Makes the new version; `None` if the plan no longer fits.
    fn apply(&self, manifest: &mut Manifest, now: UnixMillis, segment: Option<SegmentRef>) -> Option<String> {
        let fits = self.base.iter().all(|(id, live)| {
            manifest.live_commit(*id) == *live
                && manifest.dataset(*id).is_some_and(|d| d.dropped == self.dropped.contains(id))
        });
        if !fits
            || manifest.suffix_list != self.list_before
            || self.list.is_some() && manifest.next_dataset_id != self.next_dataset_id
        {
            return None;
        }
        if let Some(list) = &self.list {
            manifest.suffix_list = Some(list.clone());
        }
        let mut segments = manifest.segments_without(&self.masked);
        segments.extend(segment);
        let mut commits = manifest.current().map(|version| version.commits.clone()).unwrap_or_default();
        let changed = std::sync::Arc::make_mut(&mut commits);
        changed.extend(&self.commits);
        changed.retain(|id, _| !self.dropped.contains(id));
        Some(manifest.publish(now, segments, commits))
    }
}
