//! Collecting what no kept version needs.
//!
//! ```text
//! list all objects ─► read heartbeats ─► read what is kept ─► delete what is unclaimed
//!                  ─► give up dead writers (commits) ─► read what is kept now ─► delete the rest
//! ```
//! What goes first needs no commit, so that a full disk can be emptied.
//!
//! The order is what makes it safe beside living writers. A writer shows its heartbeat before its first file and ends it
//! after its commit. So a file in the list belongs to a living writer (spared), to a commit (read after the list, so it is
//! seen), or to no writer. A writer taken for dead is first named in a commit of every series it might write to; if it
//! wakes up, its own commit comes before that one and is seen, or after it and is refused.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use trawl_index::PUBLISH;
use trawl_model::UnixMillis;
use trawl_store::{
    Cancel, CommitMode, DatasetCommit, DenyRecord, Error, Heartbeat, Lake, Listed, MAX_STATE_BYTES, Manifest, Result,
    Series, Version, check_name, layout,
};

/// Dead writers a series remembers; the oldest are forgotten first.
const MAX_REVOKED: usize = 1000;

/// What is kept.
#[derive(Debug, Clone)]
pub struct GcSettings {
    /// Names this run in commits: new for every run.
    pub writer: String,
    /// Newest versions that are kept, at least 1.
    pub keep_versions: usize,
    /// Newest manifests and dataset commits that are kept, at least 1: readers pinned to an older one get 410.
    pub keep_states: u64,
    /// Milliseconds: younger versions and states are kept too, and writers whose last sign of life is younger are spared.
    pub grace_ms: i64,
    /// Finds out what would go, and changes nothing.
    pub dry_run: bool,
    /// Ends the work early: what is gone by then no kept version needs.
    pub cancel: Cancel,
}

impl GcSettings {
    /// Ten versions, a hundred states, one day.
    pub fn new(writer: impl Into<String>) -> Self {
        Self {
            writer: writer.into(),
            keep_versions: 10,
            keep_states: 100,
            grace_ms: 86_400_000,
            dry_run: false,
            cancel: Cancel::default(),
        }
    }
}

/// What went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Versions dropped from the manifest.
    pub versions: Vec<String>,
    /// Writers given up.
    pub writers: Vec<String>,
    /// Objects deleted.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Half-written files of dead processes removed.
    pub leftovers: u64,
    /// Objects kept.
    pub kept: u64,
    /// Datasets below `urls/` that the manifest does not know and no commit dropped: theirs is kept.
    pub strangers: Vec<u32>,
    /// What is wrong with the newest commits of datasets, or served ones that are gone: of these datasets all was kept.
    pub damaged: Vec<String>,
    /// Files in the lake's directories that are of none of its forms: left alone.
    pub foreign: Vec<String>,
    /// The objects that went, or would go in a dry run, by path.
    #[serde(skip)]
    pub gone: Vec<Listed>,
}

/// Collects. `now` is the time.
pub fn collect(lake: &Lake, now: UnixMillis, settings: &GcSettings) -> Result<GcReport> {
    check_name(&settings.writer)?;
    let gc = Gc { lake, now, settings };
    let store = lake.store();
    let mut objects = store.list(layout::URLS)?;
    objects.extend(store.list(layout::DATASETS)?);
    objects.extend(store.list(layout::JOBS)?);
    objects.extend(store.list("index")?);
    let (living, dead): (Vec<_>, Vec<_>) = lake.heartbeats()?.into_iter().partition(|beat| gc.is_young(beat.beat));

    let mut report = GcReport { writers: dead.iter().map(|beat| beat.writer.clone()).collect(), ..GcReport::default() };
    let datasets: BTreeSet<u32> = objects.iter().filter_map(|object| layout::dataset_of(&object.path)).collect();
    // Of what writers do not name, only paths of the lake's own forms are its to delete.
    let (mut objects, foreign): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|object| layout::is_ours(&object.path));
    report.foreign = foreign.into_iter().map(|object| object.path).collect();

    let known = Known {
        writers: living.iter().chain(&dead).map(|beat| beat.writer.clone()).collect(),
        versions: lake.current()?.versions.iter().map(|version| version.version.clone()).collect(),
    };
    let manifest = if settings.dry_run {
        let mut manifest = (*lake.current()?).clone();
        report.versions = gc.drop_versions(&mut manifest);
        manifest
    } else {
        report.leftovers = store.sweep()?;
        let (keep, begun) = gc.kept_now(&*lake.current()?, &datasets, &known)?;
        let writers: Vec<_> = living.iter().chain(&dead).chain(&begun).cloned().collect();
        gc.delete(&mut objects, &keep, &writers, &mut report)?;
        let committed = lake.commit(now, &settings.writer, |manifest| {
            revoke(&mut manifest.revoked, &dead);
            Ok(gc.drop_versions(manifest))
        })?;
        report.versions = committed.value;
        for dataset in &datasets {
            let dropped = committed.manifest.dataset(*dataset).is_some_and(|dataset| dataset.dropped);
            match gc.give_up(*dataset, dropped, &dead) {
                // All of a dataset whose newest commit cannot be read, or is gone, is kept.
                Err(Error::Corrupt { .. } | Error::Lost { .. }) => {}
                done => done?,
            }
        }
        (*committed.manifest).clone()
    };
    for id in &datasets {
        match lake.dataset_newest(*id) {
            Ok(Some(newest)) if manifest.dataset(*id).is_none() && !newest.is_dropped() => report.strangers.push(*id),
            Ok(_) => {
                report.damaged.extend(gc.missing(&manifest, *id)?.map(|path| Error::NotFound { path }.to_string()))
            }
            Err(error) => report.damaged.push(error.to_string()),
        }
    }
    let (keep, begun) = gc.kept_now(&manifest, &datasets, &known)?;
    let writers: Vec<_> = living.iter().chain(&begun).cloned().collect();
    gc.delete(&mut objects, &keep, &writers, &mut report)?;
    if !settings.dry_run {
        for beat in dead {
            lake.end_beat(&beat.writer)?;
        }
        store.prune()?;
    }
    report.kept = (objects.len() + report.foreign.len()) as u64;
    report.gone.sort();
    Ok(report)
}

fn is_spared(path: &str, living: &[Heartbeat]) -> bool {
    living.iter().any(|beat| {
        beat.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
            || layout::heartbeat(&beat.writer).is_ok_and(|own| own == path)
    })
}

fn revoke(revoked: &mut Vec<String>, dead: &[Heartbeat]) {
    for beat in dead {
        if !revoked.contains(&beat.writer) {
            revoked.push(beat.writer.clone());
        }
    }
    let excess = revoked.len().saturating_sub(MAX_REVOKED);
    revoked.drain(..excess);
}

/// Who was at work when a collection began, and what was published.
struct Known {
    writers: BTreeSet<String>,
    versions: BTreeSet<String>,
}

/// A collection at work.
struct Gc<'a> {
    lake: &'a Lake,
    now: UnixMillis,
    settings: &'a GcSettings,
}

impl Gc<'_> {
    fn is_young(&self, time: UnixMillis) -> bool {
        // A time far ahead is that of a wrong clock: it must not keep things for years.
        self.now.0.saturating_sub(time.0).saturating_abs() <= self.settings.grace_ms
    }

    fn is_young_text(&self, time: &str) -> bool {
        // A time that cannot be read says nothing, so what has it is kept.
        UnixMillis::parse(time).map_or(true, |time| self.is_young(time))
    }

    /// Deletes those of `objects` that are neither kept nor a writer's, and takes them from the list; in a dry run only the
    /// latter.
    fn delete(
        &self,
        objects: &mut Vec<Listed>,
        keep: &Keep,
        writers: &[Heartbeat],
        report: &mut GcReport,
    ) -> Result<()> {
        let (stay, go): (Vec<_>, Vec<_>) =
            objects.drain(..).partition(|object| keep.has(&object.path) || is_spared(&object.path, writers));
        *objects = stay;
        for object in go {
            self.settings.cancel.check()?;
            if !self.settings.dry_run {
                self.lake.store().delete(&object.path)?;
            }
            report.objects += 1;
            report.bytes += object.len;
            report.gone.push(object);
        }
        Ok(())
    }

    fn drop_versions(&self, manifest: &mut Manifest) -> Vec<String> {
        let old = manifest.versions.len().saturating_sub(self.settings.keep_versions.max(1));
        let current = manifest.current_version.clone();
        // A version is current until the next one is published: then its last readers begin, however old it is.
        let ends: Vec<_> = manifest.versions.iter().skip(1).map(|version| version.version.clone()).collect();
        let mut index = 0;
        let mut dropped = Vec::new();
        manifest.versions.retain(|version| {
            let young = ends.get(index).is_none_or(|end| self.is_young_text(end));
            index += 1;
            let keep = index > old || version.version == current || young;
            if !keep {
                dropped.push(version.version.clone());
            }
            keep
        });
        dropped
    }

    /// Names the dead in a dataset they may have been writing to, and tells it of a drop that only the manifest knows.
    fn give_up(&self, dataset: u32, dropped: bool, dead: &[Heartbeat]) -> Result<()> {
        let dir = format!("{}/", layout::dataset_dir(dataset));
        // A copy names all datasets, a publisher those that it reads. They commit to none: only the manifest has to refuse them.
        let here = |beat: &&Heartbeat| {
            ![crate::copy::ACT, PUBLISH].contains(&beat.act.as_str())
                && beat.prefixes.iter().any(|p| p.starts_with(&dir) || dir.starts_with(p.as_str()))
        };
        let dead: Vec<_> = dead.iter().filter(here).cloned().collect();
        self.lake.commit_dataset(dataset, self.now, &self.settings.writer, |commit| {
            let before = commit.revoked.len();
            revoke(&mut commit.revoked, &dead);
            commit.mode = CommitMode::Note;
            let untold = dropped && !commit.is_dropped() && commit.sequence > 0;
            if untold {
                commit.clear();
            }
            Ok(untold || commit.revoked.len() != before)
        })?;
        Ok(())
    }

    /// What is kept, and the writers that began since. A publisher may have read a commit just before another replaced it: it is
    /// seen at work, or its version is there.
    fn kept_now(&self, manifest: &Manifest, datasets: &BTreeSet<u32>, known: &Known) -> Result<(Keep, Vec<Heartbeat>)> {
        let mut keep = self.kept(manifest, datasets)?;
        let begun = self.lake.heartbeats()?.into_iter().filter(|beat| !known.writers.contains(&beat.writer)).collect();
        let now = self.lake.current()?;
        let is_new = |version: &&Version| !known.versions.contains(&version.version);
        let new: Vec<_> = now.versions.iter().filter(is_new).cloned().collect();
        let mut pinned = BTreeMap::new();
        pin(&new, &mut keep, &mut pinned)?;
        for (dataset, numbers) in pinned {
            for number in numbers {
                if let Some(commit) = self.lake.dataset_commit(dataset, number)? {
                    keep.paths.insert(layout::numbered(&layout::commits_dir(dataset), number));
                    keep.paths.extend(commit.files.into_iter().map(|file| file.path));
                }
            }
        }
        Ok((keep, begun))
    }

    fn kept(&self, manifest: &Manifest, datasets: &BTreeSet<u32>) -> Result<Keep> {
        let (lake, settings) = (self.lake, self.settings);
        let mut keep = Keep::default();
        keep.paths.insert(layout::MANIFEST_COPY.to_owned());
        keep.paths.extend(manifest.suffix_list.iter().map(|list| list.path.clone()));
        let newest = lake.current()?.sequence;
        let mut pinned: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        pin(&manifest.versions, &mut keep, &mut pinned)?;
        let (mut lists, mut young, mut next) = (Vec::new(), Vec::new(), None::<Manifest>);
        // Manifests from this number on are needed in place of a checkpoint that may get lost.
        let mut floor = u64::MAX;
        self.keep_states(layout::MANIFESTS, &mut keep, |number| {
            let recent = number.saturating_add(settings.keep_states.max(1)) > newest;
            let Ok(Some((state, base))) = lake.manifest_and_base(number) else { return Ok(recent) };
            // A process that has just read it looks for its list and its segments next.
            let same = |next: &Manifest| {
                (&next.current_version, &next.suffix_list) == (&state.current_version, &state.suffix_list)
            };
            let young_end = next.as_ref().is_some_and(|next| !same(next) && self.is_young_text(&next.written));
            let is_young = young_end || self.is_young_text(&state.written);
            if is_young {
                young.extend(state.current().cloned());
                lists.extend(state.suffix_list.iter().map(|list| list.path.clone()));
            }
            // Also what earlier manifests refer to that stay for the sake of this one.
            let needed = number >= floor;
            if recent || is_young || needed {
                lists.extend(base.iter().map(|base| layout::checkpoint(base.sequence)));
                lists.extend(state.deny_object());
            }
            if recent || is_young {
                floor = floor.min(base.map_or(floor, |base| base.sequence));
            }
            next = Some(state);
            Ok(recent || is_young || needed)
        })?;
        keep.paths.extend(lists);
        // Other versions of these states were current in other ones, whose own turn tells whether they stay.
        pin(&young, &mut keep, &mut pinned)?;
        let last = Series::new(&**lake.store(), layout::DENY).highest_listed()?.unwrap_or(0);
        self.keep_states(layout::DENY, &mut keep, |number| {
            let recent = number.saturating_add(settings.keep_states.max(1)) > last;
            let path = layout::numbered(layout::DENY, number);
            let young = |bytes: &[u8]| {
                // One that cannot be read says nothing of its age; the newest is kept all the same.
                DenyRecord::parse(&path, bytes).is_ok_and(|record| self.is_young_text(&record.written))
            };
            Ok(recent || lake.store().get(&path, MAX_STATE_BYTES).is_ok_and(|bytes| young(&bytes)))
        })?;
        for dataset in datasets {
            self.keep_dataset(manifest, *dataset, pinned.get(dataset), &mut keep)?;
        }
        let hash = |path: &String| {
            Some(path.strip_prefix(layout::SUFFIX_LISTS)?.strip_prefix('/')?.strip_suffix(".dat")?.to_owned())
        };
        let hashes: Vec<String> = keep.paths.iter().filter_map(hash).collect();
        for hash in hashes {
            keep.paths.insert(layout::suffix_list_copy(&hash)?);
        }
        Ok(keep)
    }

    fn keep_dataset(
        &self,
        manifest: &Manifest,
        dataset: u32,
        pinned: Option<&BTreeSet<u64>>,
        keep: &mut Keep,
    ) -> Result<()> {
        let lake = self.lake;
        keep.paths.insert(layout::commit_copy(dataset));
        // What a commit names that is gone, or cannot be read, is not known.
        if self.missing(manifest, dataset)?.is_some() {
            keep.dirs.extend([layout::dataset_dir(dataset), layout::records_dir(dataset)]);
        }
        let newest = match lake.dataset_newest(dataset) {
            Ok(Some(newest)) => newest,
            Ok(None) => return Ok(()),
            Err(Error::Corrupt { .. } | Error::Lost { .. }) => {
                keep.dirs.extend([layout::dataset_dir(dataset), layout::records_dir(dataset)]);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // What the manifest does not know must not be deleted: it may have been restored from an old copy.
        let live = manifest.dataset(dataset).map_or(!newest.is_dropped(), |known| !known.dropped);
        if live {
            // Not the lake's yet while it changes lists.
            keep.paths.extend(layout::suffix_list(&newest.suffix_list));
            // All of them, also such as commits of earlier programs do not name; but for those of writers that were given up.
            for rejects in lake.store().list(&layout::rejects_dir(dataset))? {
                let given_up = newest.revoked.iter().any(|writer| layout::is_written_by(&rejects.path, writer));
                if !given_up || newest.rejects.contains_key(&rejects.path) {
                    keep.paths.insert(rejects.path);
                }
            }
        }
        let (mut files, mut next) = (BTreeSet::new(), None::<DatasetCommit>);
        self.keep_states(&layout::commits_dir(dataset), keep, |number| {
            let is_newest = number == newest.sequence;
            let needed = pinned.is_some_and(|pinned| pinned.contains(&number));
            let recent = number.saturating_add(self.settings.keep_states.max(1)) > newest.sequence;
            let Some(commit) = lake.dataset_commit(dataset, number)? else { return Ok(false) };
            // It was the newest until the next one came, which may have put other files in the place of its own.
            let lost = |next: &DatasetCommit| {
                let stay: BTreeSet<&str> = next.files.iter().map(|file| file.path.as_str()).collect();
                commit.files.iter().any(|file| !stay.contains(file.path.as_str()))
            };
            let young_end = next.as_ref().is_some_and(|next| self.is_young_text(&next.written) && lost(next));
            let young = young_end || self.is_young_text(&commit.written);
            // A dropped dataset keeps its id and numbers, and files only for versions that still serve it.
            if needed || is_newest && live || young {
                files.extend(commit.files.iter().map(|file| file.path.clone()));
            }
            next = Some(commit);
            Ok(is_newest || needed || recent || young)
        })?;
        keep.paths.extend(files);
        Ok(())
    }

    /// The commit of a dataset that a kept version serves and that is gone, if there is one.
    fn missing(&self, manifest: &Manifest, dataset: u32) -> Result<Option<String>> {
        let numbers: BTreeSet<u64> =
            manifest.versions.iter().filter_map(|v| v.commits.get(&dataset).copied()).collect();
        for number in numbers {
            let path = layout::numbered(&layout::commits_dir(dataset), number);
            // Another collector may have forgotten those versions meanwhile, and taken it.
            let is_served = |version: &Version| version.commits.get(&dataset) == Some(&number);
            if !self.lake.store().exists(&path)? && self.lake.current()?.versions.iter().any(is_served) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Keeps every state of a series from the oldest that `wanted` asks for, which hears of the newest first. No hole may be
    /// left: a reader takes a number without a successor for the newest.
    fn keep_states(&self, dir: &str, keep: &mut Keep, mut wanted: impl FnMut(u64) -> Result<bool>) -> Result<()> {
        let states = Series::new(&**self.lake.store(), dir).listed()?;
        let mut oldest = states.len();
        for (index, (_, number)) in states.iter().enumerate().rev() {
            // Asked for each, since the answer may keep files too.
            if wanted(*number)? {
                oldest = index;
            }
        }
        keep.paths.extend(states.into_iter().skip(oldest).map(|(path, _)| path));
        Ok(())
    }
}

/// What stays.
#[derive(Debug, Default)]
struct Keep {
    paths: BTreeSet<String>,
    dirs: BTreeSet<String>,
}

impl Keep {
    fn has(&self, path: &str) -> bool {
        let in_dir =
            || path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|dir| self.dirs.contains(dir)));
        self.paths.contains(path) || in_dir()
    }
}

/// Keeps what versions name.
fn pin(versions: &[Version], keep: &mut Keep, pinned: &mut BTreeMap<u32, BTreeSet<u64>>) -> Result<()> {
    for version in versions {
        for segment in &version.segments {
            keep.dirs.insert(layout::segment_dir(&segment.id)?);
        }
        // Versions that name files themselves, as the seed's own do.
        let dir = version.files.as_ref().and_then(|files| files.domains_txt.rsplit_once('/')).map(|(dir, _)| dir);
        keep.dirs.extend(dir.filter(|dir| dir.starts_with("index/")).map(str::to_owned));
        for (dataset, commit) in version.commits.iter() {
            pinned.entry(*dataset).or_default().insert(*commit);
        }
    }
    Ok(())
}
