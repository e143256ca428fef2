//! What people do to a lake, as the commands do it.

use crate::common::VecSource;
use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use trawl_index::{BuildOptions, Compaction};
use trawl_ingest::{Files, IngestSettings, Mode, Rewrite, RewriteReport};
use trawl_io::Fs;
use trawl_io::fault::FaultFs;
use trawl_maintain::GcSettings;
use trawl_model::{UnixMillis, UrlRecord};
use trawl_store::denial::Denied;
use trawl_store::manifest::{Deny, DenyTarget, SuffixListRef};
use trawl_store::{Acl, DataFile, DatasetInfo, DirStore, Heartbeat, Lake, Manifest, Store};
use trawl_url::SuffixList;

pub type Disk = Arc<dyn Store>;
pub type Done<T = ()> = Result<T, String>;

/// When the lake was made.
pub const BEGAN: UnixMillis = UnixMillis(1_782_262_923_456);
/// When everything else happens: what the lake began with is old.
pub const NOW: UnixMillis = UnixMillis(BEGAN.0 + 10 * DAY);
const DAY: i64 = 86_400_000;

pub const LIST: &str = "com\norg\n";
pub const OTHER_LIST: &str = "com\norg\nall.org\n";

static SCRATCH: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

pub fn disk(fs: Arc<dyn Fs>) -> Disk {
    Arc::new(DirStore::with_fs(fs, "lake"))
}

/// How much a collector keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As little as can be, of what is older than a day.
    ADay,
    /// As little as can be.
    Nothing,
    /// What is kept unless told otherwise.
    Usual,
}

/// Somebody at work.
pub struct Actor {
    pub store: Disk,
    name: &'static str,
    now: UnixMillis,
    runs: Cell<u32>,
}

/// What was dropped meanwhile needs no rewriting.
fn unless_dropped(done: trawl_ingest::Result<RewriteReport>) -> Done {
    use trawl_store::Error::{Dropped, UnknownDataset};
    match done {
        Err(trawl_ingest::Error::Store(Dropped { .. } | UnknownDataset { .. })) => Ok(()),
        done => done.map(|_| ()).map_err(text),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Actor {
    pub fn new(store: Disk, name: &'static str) -> Self {
        Self { store, name, now: NOW, runs: Cell::new(0) }
    }

    fn writer(&self) -> String {
        self.runs.set(self.runs.get() + 1);
        format!("{}{}", self.name, self.runs.get())
    }

    fn lake(&self) -> Done<Lake> {
        Lake::open(self.store.clone()).map_err(text)
    }

    fn settings(&self) -> IngestSettings {
        IngestSettings {
            temp_fs: FaultFs::new().shared(),
            memory_bytes: 16 << 20,
            threads: 1,
            prefix_digits: crate::common::forced_split(),
            ..IngestSettings::new(self.writer(), "tmp")
        }
    }

    fn options() -> BuildOptions {
        crate::common::small_options(SCRATCH.path())
    }

    /// `trawl lake ingest`: the source is known by its URLs.
    pub fn ingest(&self, dataset: &str, mode: Mode, urls: &[&str]) -> Done {
        let lake = self.lake()?;
        let committed = lake
            .commit(self.now, &self.writer(), |manifest| manifest.register(self.now, DatasetInfo::named(dataset)))
            .map_err(text)?;
        let (id, registered) = (committed.value, committed.manifest.dataset(committed.value).cloned());
        let records = urls.iter().map(|url| UrlRecord::bare(*url)).collect();
        let source = vec![trawl_ingest::source::Source::new(VecSource { name: urls.join(" "), records })];
        let settings = IngestSettings { mode, ..self.settings() };
        trawl_ingest::ingest(&lake, id, &source, &settings, &|| self.now, &|_| ()).map_err(text)?;
        lake.reinstate_dataset(self.now, &self.writer(), &registered.unwrap()).map_err(text)?;
        let waiting = self.publish_in(&lake)?;
        if waiting.contains(&id) { Err("it waits for a rebuild".to_owned()) } else { Ok(()) }
    }

    pub fn publish(&self) -> Done {
        self.publish_in(&self.lake()?).map(|_| ())
    }

    /// Tells which datasets wait for a rebuild.
    fn publish_in(&self, lake: &Lake) -> Done<Vec<u32>> {
        let done = trawl_index::publish(lake, &|| self.now, &self.writer(), &Self::options(), &|_| ()).map_err(text)?;
        // It was published; merging is for the next one.
        match done.tidy_error.filter(|error| !error.contains("given up")) {
            Some(error) => Err(error),
            None => Ok(done.waiting),
        }
    }

    fn merge(&self, lake: &Lake, how: Compaction) -> Done<bool> {
        let done = trawl_index::compact(lake, &|| self.now, &self.writer(), how, &Self::options(), &|_| ());
        Ok(done.map_err(text)?.is_some())
    }

    /// `trawl lake compact --full`.
    pub fn compact(&self) -> Done {
        let lake = self.lake()?;
        let mut any = false;
        for dataset in lake.current().map_err(text)?.datasets.iter().filter(|d| !d.dropped) {
            let commit = lake.dataset_newest(dataset.id).map_err(text)?;
            let files: Vec<_> = commit.map(|c| c.files.into_iter().map(|f| f.path).collect()).unwrap_or_default();
            if files.len() > 1 {
                let chosen = |file: &DataFile| files.contains(&file.path);
                let what = Rewrite { keep: &|_| true, files: Files::Chosen(&chosen), suffix_list: None };
                unless_dropped(trawl_ingest::rewrite(
                    &lake,
                    dataset.id,
                    &what,
                    &self.settings(),
                    &|| self.now,
                    &|_| (),
                ))?;
                any = true;
            }
        }
        if any {
            self.publish_in(&lake)?;
        }
        self.merge(&lake, Compaction::Full).map(|_| ())
    }

    /// `trawl lake gc`.
    pub fn collect(&self, keep: Keep) -> Done {
        let settings = GcSettings::new(self.writer());
        let settings = match keep {
            Keep::Usual => settings,
            Keep::ADay => GcSettings { keep_versions: 1, keep_states: 1, ..settings },
            Keep::Nothing => GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..settings },
        };
        // A millisecond later: what was done just now is older than no grace at all.
        let now = UnixMillis(self.now.0 + 1);
        trawl_maintain::collect(&self.lake()?, now, &settings).map(|_| ()).map_err(text)
    }

    /// `trawl lake deny add` and `remove`.
    pub fn deny(&self, target: &DenyTarget, denied: bool) -> Done {
        let change = |manifest: &mut Manifest| {
            let listed = manifest.deny.iter().any(|deny| deny.target == *target);
            if denied && !listed {
                manifest.deny.push(Deny { target: target.clone(), since: self.now.to_string(), reason: None });
            }
            manifest.deny.retain(|deny| denied || deny.target != *target);
            Ok(())
        };
        self.lake()?.commit(self.now, &self.writer(), change).map(|_| ()).map_err(text)
    }

    /// `trawl lake purge`.
    pub fn purge(&self) -> Done {
        let lake = self.lake()?;
        let manifest = lake.current().map_err(text)?;
        let list = lake.suffix_list(&manifest).map_err(text)?;
        let suffixes = SuffixList::parse(std::str::from_utf8(&list).map_err(text)?).map_err(text)?;
        let denied = Denied::new(&manifest, &suffixes);
        for dataset in manifest.datasets.iter().filter(|d| !d.dropped) {
            if denied.list().dataset(dataset.id) {
                lake.drop_dataset(self.now, &self.writer(), dataset.id).map_err(text)?;
                continue;
            }
            let (keep, may) =
                (|record: &UrlRecord| denied.keeps(&record.url), |file: &DataFile| denied.may_be_in(file));
            let what = Rewrite { keep: &keep, files: Files::Losing(&may), suffix_list: None };
            unless_dropped(trawl_ingest::rewrite(&lake, dataset.id, &what, &self.settings(), &|| self.now, &|_| ()))?;
        }
        self.publish_in(&lake)?;
        while self.merge(&lake, Compaction::Masked)? {}
        Ok(())
    }

    /// `trawl lake drop`.
    pub fn drop(&self, dataset: &str) -> Done {
        let lake = self.lake()?;
        let id = self.id_of(&lake, dataset)?;
        lake.drop_dataset(self.now, &self.writer(), id).map_err(text)?;
        self.publish_in(&lake)?;
        while self.merge(&lake, Compaction::Masked)? {}
        Ok(())
    }

    fn id_of(&self, lake: &Lake, dataset: &str) -> Done<u32> {
        let manifest = lake.current().map_err(text)?;
        manifest.dataset_named(dataset).map(|d| d.id).ok_or_else(|| format!("there is no dataset {dataset}"))
    }

    /// `trawl lake rebuild`, under a list if one is given.
    pub fn rebuild(&self, list: Option<&str>) -> Done {
        let (lake, writer) = (self.lake()?, self.writer());
        let spare = |path: &str| {
            let (writer, act) = (writer.clone(), "rebuild".to_owned());
            lake.beat(&Heartbeat { writer, act, beat: self.now, prefixes: vec![path.to_owned()] }).map_err(text)
        };
        for attempt in 0..5 {
            let list_ref = match list {
                Some(list) => {
                    spare(trawl_store::layout::SUFFIX_LISTS)?;
                    lake.put_suffix_list(list.as_bytes()).map_err(text)?
                }
                None => lake.current().map_err(text)?.suffix_list.clone().unwrap(),
            };
            let built = self.build(&lake, &list_ref, list.is_some(), &spare);
            let overtaken = built.as_ref().is_err_and(|error| error.contains("cut by another suffix list"));
            if !overtaken || attempt == 4 {
                built?;
                break;
            }
        }
        lake.end_beat(&writer).map_err(text)
    }

    fn build(&self, lake: &Lake, list: &SuffixListRef, new: bool, spare: &dyn Fn(&str) -> Done) -> Done {
        for dataset in lake.current().map_err(text)?.datasets.iter().filter(|d| !d.dropped) {
            self.recut(lake, dataset.id, list)?;
            if new {
                spare(&list.path)?;
            }
        }
        let (now, options) = (|| self.now, Self::options());
        let list = new.then_some(list);
        let built = trawl_index::rebuild(lake, list, &now, &self.writer(), &options, &|_| ());
        built.map(|_| ()).map_err(text)
    }

    fn recut(&self, lake: &Lake, id: u32, list: &SuffixListRef) -> Done {
        let mut refused = Ok(());
        for _ in 0..5 {
            let Some(commit) = lake.dataset_newest(id).map_err(text)? else { return Ok(()) };
            if commit.suffix_list == list.hash || commit.files.is_empty() {
                return Ok(());
            }
            let what = Rewrite { keep: &|_| true, files: Files::All, suffix_list: Some(list) };
            match trawl_ingest::rewrite(lake, id, &what, &self.settings(), &|| self.now, &|_| ()) {
                Err(error @ trawl_ingest::Error::Store(trawl_store::Error::Refused { .. })) => {
                    refused = Err(error.to_string());
                }
                done => return unless_dropped(done),
            }
        }
        refused
    }

    /// `trawl lake dataset set --hidden` and `--public`.
    pub fn show(&self, dataset: &str, public: bool) -> Done {
        let lake = self.lake()?;
        let id = self.id_of(&lake, dataset)?;
        let acl = if public { Acl::Public } else { Acl::Principals(Vec::new()) };
        lake.set_dataset(self.now, &self.writer(), id, |info| info.acl.clone_from(&acl)).map(|_| ()).map_err(text)
    }
}

/// Three datasets in eight segments, so that the next publish merges; one was replaced once.
pub fn base() -> FaultFs {
    let fs = FaultFs::new();
    let store = disk(fs.shared());
    Lake::init(store.clone(), BEGAN, "probe", LIST.as_bytes()).unwrap();
    let actor = Actor { now: BEGAN, ..Actor::new(store, "base") };
    let append = |dataset, urls: &[&str]| actor.ingest(dataset, Mode::Append, urls).unwrap();
    append("a", &["http://one.com/1", "http://one.com/2", "http://two.com/1", "http://sub.all.org/a"]);
    append("a", &["http://one.com/2", "http://one.com/3", "http://six.com/1"]);
    append("b", &["http://two.com/1", "http://sub.all.org/b", "http://one.com/bad"]);
    append("c", &["http://gone.com/1", "http://sub.all.org/c"]);
    actor.ingest("c", Mode::Replace, &["http://sub.all.org/c", "http://six.com/9"]).unwrap();
    append("a", &["http://one.com/4"]);
    append("b", &["http://one.com/5", "http://sub.all.org/a"]);
    append("b", &["http://one.com/6"]);
    append("c", &["http://one.com/bad"]);
    fs
}
