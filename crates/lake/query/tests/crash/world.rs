//! A small lake on a disk in memory, what can be done to it, and everything it answers.

use crate::common::VecSource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use trawl_index::{BuildOptions, Compaction};
use trawl_ingest::{Files, IngestSettings, Mode, Rewrite};
use trawl_io::fault::{FaultFs, Loss};
use trawl_maintain::GcSettings;
use trawl_model::{UnixMillis, UrlRecord};
use trawl_query::{Filter, Options, Page, Principal};
use trawl_rows::{Columns, FilePages};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{DataFile, DatasetInfo, DirStore, Lake, Manifest, Store, layout};

pub type Outcome = Result<(), String>;
pub type Disk = Arc<dyn Store>;

pub const NOW: UnixMillis = UnixMillis(1_782_262_923_456);
/// Long after everything else: whoever was at work is dead by then.
pub const LATER: UnixMillis = UnixMillis(NOW.0 + 30 * 86_400_000);

static SCRATCH: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

pub fn disk(fs: &FaultFs) -> Disk {
    Arc::new(DirStore::with_fs(fs.shared(), "lake"))
}

pub fn lake(store: &Disk) -> Result<Lake, String> {
    Lake::open(store.clone()).map_err(|e| e.to_string())
}

fn settings(writer: &str) -> IngestSettings {
    IngestSettings {
        temp_fs: FaultFs::new().shared(),
        memory_bytes: 16 << 20,
        threads: 1,
        prefix_digits: crate::common::forced_split(),
        ..IngestSettings::new(writer, "tmp")
    }
}

/// Takes `urls` into a dataset, as a source of the name `source`.
pub fn ingest(store: &Disk, writer: &str, dataset: u32, mode: Mode, source: &str, urls: &[&str]) -> Outcome {
    let records = urls.iter().map(|url| UrlRecord::bare(*url)).collect();
    let source = vec![trawl_ingest::source::Source::new(VecSource { name: source.into(), records })];
    let settings = IngestSettings { mode, ..settings(writer) };
    trawl_ingest::ingest(&lake(store)?, dataset, &source, &settings, &|| NOW, &|_| ())
        .map(|_| ())
        .map_err(|e| e.to_string())
}

fn options() -> BuildOptions {
    crate::common::small_options(SCRATCH.path())
}

pub fn publish(store: &Disk, writer: &str) -> Outcome {
    let published = trawl_index::publish(&lake(store)?, &|| NOW, writer, &options(), &|_| ());
    published.map(|_| ()).map_err(|e| e.to_string())
}

pub fn rebuild(store: &Disk, writer: &str) -> Outcome {
    let rebuilt = trawl_index::rebuild(&lake(store)?, None, &|| NOW, writer, &options(), &|_| ());
    rebuilt.map(|_| ()).map_err(|e| e.to_string())
}

/// Writes every dataset again under another suffix list, which becomes the lake's.
pub fn rebuild_under(store: &Disk, writer: &str, list: &str) -> Outcome {
    let lake = lake(store)?;
    let list = lake.put_suffix_list(list.as_bytes()).map_err(|e| e.to_string())?;
    for dataset in lake.current().map_err(|e| e.to_string())?.datasets.iter().filter(|d| !d.dropped) {
        let newest = lake.dataset_newest(dataset.id).map_err(|e| e.to_string())?;
        if newest.is_some_and(|newest| newest.suffix_list != list.hash) {
            let (writer, what) = (format!("{writer}-{}", dataset.id), Files::All);
            let what = Rewrite { keep: &|_| true, files: what, suffix_list: Some(&list) };
            let rewritten = trawl_ingest::rewrite(&lake, dataset.id, &what, &settings(&writer), &|| NOW, &|_| ());
            rewritten.map_err(|e| e.to_string())?;
        }
    }
    let rebuilt = trawl_index::rebuild(&lake, Some(&list), &|| NOW, writer, &options(), &|_| ());
    rebuilt.map(|_| ()).map_err(|e| e.to_string())
}

pub fn compact(store: &Disk, writer: &str) -> Outcome {
    compact_how(store, writer, Compaction::Full).map(|_| ())
}

/// Whether there was anything to merge.
pub fn compact_how(store: &Disk, writer: &str, how: Compaction) -> Result<bool, String> {
    let compacted = trawl_index::compact(&lake(store)?, &|| NOW, writer, how, &options(), &|_| ());
    compacted.map(|compacted| compacted.is_some()).map_err(|e| e.to_string())
}

pub fn compact_files(store: &Disk, writer: &str, dataset: u32) -> Outcome {
    let lake = lake(store)?;
    // Done once, one file is left: nothing to merge.
    if lake.dataset_newest(dataset).map_err(|e| e.to_string())?.is_none_or(|commit| commit.files.len() < 2) {
        return Ok(());
    }
    let small = |file: &DataFile| file.bytes < 1 << 20;
    let what = Rewrite { keep: &|_| true, files: Files::Chosen(&small), suffix_list: None };
    let merged = trawl_ingest::rewrite(&lake, dataset, &what, &settings(writer), &|| NOW, &|_| ());
    merged.map(|_| ()).map_err(|e| e.to_string())
}

/// Removes every row whose URL has `text` in it.
pub fn purge(store: &Disk, writer: &str, dataset: u32, text: &str) -> Outcome {
    let keep = |record: &UrlRecord| !record.url.contains(text);
    let what = Rewrite { keep: &keep, files: Files::Losing(&|_| true), suffix_list: None };
    let purged = trawl_ingest::rewrite(&lake(store)?, dataset, &what, &settings(writer), &|| NOW, &|_| ());
    purged.map(|_| ()).map_err(|e| e.to_string())
}

/// Removes every rejected line that has `text` in it.
pub fn purge_rejects(store: &Disk, writer: &str, dataset: u32, text: &str) -> Outcome {
    let (cancel, keep) = (trawl_store::Cancel::default(), |line: &str| !line.contains(text));
    let purged = trawl_maintain::purge_rejects(&lake(store)?, dataset, NOW, Some(writer), &cancel, &keep);
    purged.map(|_| ()).map_err(|e| e.to_string())
}

pub fn drop_dataset(store: &Disk, writer: &str, dataset: u32) -> Outcome {
    lake(store)?.drop_dataset(NOW, writer, dataset).map_err(|e| e.to_string())
}

/// Denies a URL, or takes it off the list again.
pub fn deny(store: &Disk, writer: &str, url: &str, denied: bool) -> Outcome {
    let target = DenyTarget::Url(url.into());
    let change = |manifest: &mut Manifest| {
        let listed = manifest.deny.iter().any(|deny| deny.target == target);
        if denied && !listed {
            manifest.deny.push(Deny { target: target.clone(), since: NOW.to_string(), reason: None });
        }
        manifest.deny.retain(|deny| denied || deny.target != target);
        Ok(())
    };
    lake(store)?.commit(NOW, writer, change).map(|_| ()).map_err(|e| e.to_string())
}

/// What the newest manifest denies.
pub fn denied(store: &Disk) -> Vec<DenyTarget> {
    lake(store).unwrap().current().unwrap().deny.iter().map(|deny| deny.target.clone()).collect()
}

/// Takes `index/` away and makes the lake anew of what is left; what it denies then.
pub fn lose_index(store: &Disk, nonce: &str) -> Vec<DenyTarget> {
    for object in store.list("index").unwrap() {
        store.delete(&object.path).unwrap();
    }
    let remains = trawl_maintain::remains(&**store).unwrap();
    trawl_maintain::restore(store.clone(), NOW, nonce, b"com\norg\n", &remains).unwrap();
    denied(store)
}

/// Longer still: what a collector wrote at [`LATER`] is old too.
pub const MUCH_LATER: UnixMillis = UnixMillis(LATER.0 + 30 * 86_400_000);

/// Collects all that can be: one version, one state, and nobody is spared whose last sign of life is before `now`.
pub fn collect(store: &Disk, writer: &str, now: UnixMillis) -> Outcome {
    let settings = GcSettings { keep_versions: 1, keep_states: 1, ..GcSettings::new(writer) };
    trawl_maintain::collect(&lake(store)?, now, &settings).map(|_| ()).map_err(|e| e.to_string())
}

/// Three datasets of one lake: a with two files, b and c with one, published in three segments, c replaced once.
pub fn base() -> FaultFs {
    let fs = FaultFs::new();
    let store = disk(&fs);
    let lake = Lake::init(store.clone(), NOW, "probe", b"com\norg\n").unwrap();
    for name in ["a", "b", "c"] {
        lake.register_dataset(NOW, "test", &DatasetInfo::named(name)).unwrap();
    }
    let append = |writer, dataset, urls: &[&str]| {
        ingest(&store, writer, dataset, Mode::Append, writer, urls).unwrap();
        publish(&store, &format!("p{writer}")).unwrap();
    };
    append("w1", 1, &["http://one.com/1", "http://one.com/2", "http://two.com/1", "http://all.org/a"]);
    append("w2", 1, &["http://one.com/2", "http://one.com/3", "http://six.com/1"]);
    append("w3", 2, &["http://two.com/1", "http://all.org/b", "http://all.org/bad"]);
    append("w4", 3, &["http://gone.com/1", "http://all.org/c"]);
    ingest(&store, "w5", 3, Mode::Replace, "w5", &["http://all.org/c", "http://six.com/9"]).unwrap();
    publish(&store, "pw5").unwrap();
    fs.reboot(Loss::None)
}

/// Everything a lake answers, and every row its datasets hold.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub answers: BTreeMap<String, String>,
    pub rows: BTreeMap<u32, Vec<String>>,
}

pub fn state(store: &Disk) -> State {
    let mut answers = BTreeMap::new();
    let lake = trawl_query::Lake::open(store.clone(), Options::default()).unwrap();
    let (pinned, who) = (lake.pin().unwrap(), Principal::anyone());
    for summary in pinned.domains("", None, 1000, &who).unwrap() {
        let mut answer = pinned.domain(&summary.domain, &who).unwrap();
        answer.version.clear();
        let mut text = serde_json::to_string(&answer).unwrap();
        for dataset in &answer.datasets {
            let (page, all) = (Page::at(0, 1000), Filter::default());
            let urls = pinned.urls(&summary.domain, dataset.dataset_id, &page, &all, &who).unwrap();
            assert_eq!(urls.items.len() as u64, dataset.url_count_est);
            // Merging files may move rows past one another; none may come or go.
            let urls: BTreeSet<String> = urls.items.iter().map(|i| serde_json::to_string(i).unwrap()).collect();
            text += &urls.into_iter().collect::<Vec<_>>().join("\n");
        }
        answers.insert(summary.domain, text);
    }
    let lake = self::lake(store).unwrap();
    let mut rows = BTreeMap::new();
    for dataset in lake.current().unwrap().datasets.iter().filter(|d| !d.dropped) {
        let newest = lake.dataset_newest(dataset.id).unwrap();
        if newest.as_ref().is_some_and(trawl_store::DatasetCommit::is_dropped) {
            continue;
        }
        let mut urls = Vec::new();
        for file in newest.map(|c| c.files).unwrap_or_default() {
            let pages = FilePages::read(&**store, &file).unwrap();
            for step in pages.scan(&**store, Columns::ALL, 1000).unwrap() {
                let rows = step.unwrap().rows;
                urls.extend((0..rows.len()).map(|i| rows.url(i)));
            }
        }
        urls.sort();
        rows.insert(dataset.id, urls);
    }
    State { answers, rows }
}

/// After a collection exactly those objects are there that the newest state names.
pub fn assert_tidy(store: &Disk, what: &str) {
    let lake = lake(store).unwrap();
    let manifest = lake.current().unwrap();
    let mut named: BTreeSet<String> = BTreeSet::from([layout::MANIFEST_COPY.to_owned()]);
    named.insert(layout::numbered(layout::MANIFESTS, manifest.sequence));
    if let Some(list) = &manifest.suffix_list {
        named.extend([list.path.clone(), layout::suffix_list_copy(&list.hash).unwrap()]);
    }
    for segment in &manifest.current().unwrap().segments {
        let meta = trawl_index::SegmentMeta::read(&**store, segment).unwrap();
        let files = meta.files.keys().map(String::as_str).chain(["segment.json"]);
        named.extend(files.map(|file| layout::segment_file(&segment.id, file).unwrap()));
        let mut faults = Vec::new();
        trawl_index::verify_segment(store, segment, &mut |e| faults.push(e.to_string())).unwrap();
        assert_eq!(faults, [""; 0], "{what}");
    }
    for dataset in &manifest.datasets {
        let Some(newest) = lake.dataset_newest(dataset.id).unwrap() else { continue };
        named.insert(layout::commit_copy(dataset.id));
        // States between the one that is served and the newest stay, so that a reader finds its way.
        let served = match manifest.live_commit(dataset.id) {
            0 if dataset.dropped => newest.sequence,
            0 => 1,
            live => live,
        };
        for number in served..=newest.sequence {
            named.insert(layout::numbered(&layout::commits_dir(dataset.id), number));
            if let Some(commit) = lake.dataset_commit(dataset.id, number).unwrap()
                && (number == newest.sequence || number == served)
            {
                named.extend(commit.files.into_iter().map(|f| f.path));
            }
        }
    }
    if let Some(record) = trawl_store::deny_record(&**store).unwrap() {
        assert_eq!(record.deny, manifest.deny, "{what}");
        named.insert(layout::numbered(layout::DENY, record.sequence));
    }
    // A manifest is written as what differs from a checkpoint: that stays, with the manifests since.
    let checkpoints = store.list("index/checkpoints").unwrap().into_iter().map(|l| l.path);
    if let Some(newest) = checkpoints.max() {
        let number: u64 = newest.rsplit('/').next().and_then(|name| name.split('.').next()?.parse().ok()).unwrap();
        named.insert(newest);
        named.extend((number..manifest.sequence).map(|n| layout::numbered(layout::MANIFESTS, n)));
    }
    let listed = ["urls", "datasets", "index"].into_iter().flat_map(|dir| store.list(dir).unwrap());
    let found: BTreeSet<String> = listed.map(|l| l.path).collect();
    assert_eq!(found, named, "{what}");
    assert_eq!(store.sweep().unwrap(), 0, "{what}: half-written files");
}
