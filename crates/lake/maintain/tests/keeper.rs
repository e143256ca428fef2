//! Acts of upkeep as calls of a library: what they tell, and that they can be ended anywhere.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use trawl_ingest::{IngestSettings, ingest, source};
use trawl_io::{Fs, RealFs};
use trawl_maintain::{Compact, Error, Event, GcSettings, Keeper, Named, Rebuild, Resolver, collect};
use trawl_model::UnixMillis;
use trawl_rows::{Column, Columns, FilePages};
use trawl_store::{Cancel, DatasetInfo, DirStore, Lake, Store};

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);
const FULL: Compact =
    Compact { full: true, single: false, files: true, segments: true, dataset: None, small: 1 << 30, dry_run: false };

/// A lake of two datasets in two commits each, published.
fn new_lake(dir: &Path) -> Lake {
    let store: Arc<dyn Store> = Arc::new(DirStore::new(dir.join("lake")));
    let lake = Lake::init(store, NOW, "n1", b"com\norg\nco.org\n").unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    for dataset in ["a", "b"] {
        let id = lake.register_dataset(NOW, &format!("r-{dataset}"), &DatasetInfo::named(dataset)).unwrap();
        for part in 0..2 {
            let path = dir.join(format!("{dataset}{part}.txt"));
            let lines: String =
                (0..40).map(|n| format!("https://www.{dataset}{}.co.org/{part}/{n}\n", n % 7)).collect();
            std::fs::write(&path, lines + "https://shared.org/\nhttps://shared.org:99999/\n").unwrap();
            let sources = [source::open(&fs, &path, None).unwrap()];
            let settings = IngestSettings::new(format!("i-{dataset}-{part}"), dir);
            ingest(&lake, id, &sources, &settings, &|| NOW, &|_| ()).unwrap();
        }
        Keeper::new(format!("p-{dataset}"), dir, &|| NOW, &|_| ()).publish(&lake).unwrap();
    }
    lake
}

/// Every URL of the newest commits, by dataset, with the domain it is cut to.
fn rows(lake: &Lake) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all = BTreeMap::new();
    for dataset in lake.current().unwrap().datasets.iter().filter(|dataset| !dataset.dropped) {
        let mut found = Vec::new();
        for file in lake.dataset_newest(dataset.id).unwrap().unwrap().files {
            let pages = FilePages::read(&**lake.store(), &file).unwrap();
            for step in pages.scan(&**lake.store(), Columns::ALL, 100).unwrap() {
                let rows = step.unwrap().rows;
                found.extend((0..rows.len()).map(|i| (rows.text(Column::Domain, i).unwrap().to_owned(), rows.url(i))));
            }
        }
        found.sort();
        all.insert(dataset.info.name.clone(), found);
    }
    all
}

/// Fails unless the lake is whole.
fn assert_sound(lake: &Lake, dir: &Path, what: &str) {
    let faults = RefCell::new(Vec::new());
    let tell = |event| {
        if let Event::Fault { fault, .. } = event {
            faults.borrow_mut().push(fault);
        }
    };
    let verified = Keeper::new("v", dir, &|| NOW, &tell).verify(lake, &lake.current().unwrap(), false).unwrap();
    assert_eq!((faults.into_inner(), verified.faults), (Vec::new(), 0), "{what}");
}

/// Fails unless the newest version has the newest commit of every dataset, and none of one that was dropped: a collection would keep
/// what an act took away.
fn assert_served(lake: &Lake, what: &str) {
    let manifest = lake.current().unwrap();
    for dataset in &manifest.datasets {
        let newest = lake.dataset_newest(dataset.id).unwrap().unwrap().sequence;
        let wanted = if dataset.dropped { 0 } else { newest };
        assert_eq!(manifest.live_commit(dataset.id), wanted, "{what}: {}", dataset.info.name);
    }
}

type Act = fn(&Keeper<'_>, &Lake) -> Result<(), Error>;

const ACTS: [(&str, Act); 5] = [
    ("compact", |keeper, lake| keeper.compact(lake, &FULL).map(|_| ())),
    ("purge", |keeper, lake| {
        let manifest = lake.current()?;
        let denied = Resolver::new(lake, &manifest)?.to_add(&Named::Domain("shared.org".into()), false)?;
        keeper.deny(lake, &[denied], Some("a test"))?;
        keeper.purge(lake, None, false).map(|_| ())
    }),
    ("drop", |keeper, lake| match lake.current()?.dataset_named("b") {
        Some(dataset) => keeper.drop_dataset(lake, dataset.id),
        None => keeper.publish(lake).map(|_| ()),
    }),
    ("rebuild", |keeper, lake| keeper.rebuild(lake.store().clone(), &Rebuild::default()).map(|_| ())),
    ("rebuild under another list", |keeper, lake| {
        let what = Rebuild { list: Some(b"com\norg\n"), accept_loss: false };
        keeper.rebuild(lake.store().clone(), &what).map(|_| ())
    }),
];

#[test]
fn an_act_that_is_cancelled_leaves_a_sound_lake_and_can_be_repeated() {
    for (name, act) in ACTS {
        let expected = {
            let dir = tempfile::tempdir().unwrap();
            let lake = new_lake(dir.path());
            act(&Keeper::new("whole", dir.path(), &|| NOW, &|_| ()), &lake).unwrap();
            assert_sound(&lake, dir.path(), name);
            rows(&lake)
        };
        for events in 0.. {
            let dir = tempfile::tempdir().unwrap();
            let lake = new_lake(dir.path());
            let before = rows(&lake);
            let (cancel, told) = (Cancel::default(), Cell::new(0));
            let tell = |_| {
                told.set(told.get() + 1);
                if told.get() > events {
                    cancel.cancel();
                }
            };
            let keeper = Keeper { cancel: cancel.clone(), ..Keeper::new("cut", dir.path(), &|| NOW, &tell) };
            let done = act(&keeper, &lake);
            assert_sound(&lake, dir.path(), &format!("{name} after {events} events"));
            match done {
                Err(error) => {
                    assert!(matches!(error.of_store(), Some(trawl_store::Error::Cancelled)), "{name}: {error}")
                }
                Ok(()) => {
                    assert_eq!(rows(&lake), expected, "{name}");
                    assert!(events > 0, "{name} tells nothing of what it does, so it was never cut");
                    break;
                }
            }
            let now = rows(&lake);
            assert!(now.iter().all(|(dataset, rows)| before[dataset] == *rows || expected[dataset] == *rows), "{name}");
            act(&Keeper::new("again", dir.path(), &|| NOW, &|_| ()), &lake).unwrap();
            assert_eq!(rows(&lake), expected, "{name} repeated after {events} events");
            assert_served(&lake, &format!("{name} repeated after {events} events"));
            // Nothing that was begun is left once it is collected.
            let hard = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") };
            collect(&lake, UnixMillis(NOW.0 + 1), &hard).unwrap();
            assert_sound(&lake, dir.path(), name);
            assert_eq!(rows(&lake), expected, "{name} collected after {events} events");
        }
    }
}

#[test]
fn a_verification_that_is_cancelled_ends_and_a_collection_too() {
    let dir = tempfile::tempdir().unwrap();
    let lake = new_lake(dir.path());
    let cancel = Cancel::default();
    cancel.cancel();
    let keeper = Keeper { cancel: cancel.clone(), ..Keeper::new("v", dir.path(), &|| NOW, &|_| ()) };
    let ended = keeper.verify(&lake, &lake.current().unwrap(), false);
    assert!(matches!(ended.unwrap_err().of_store(), Some(trawl_store::Error::Cancelled)));
    Keeper::new("c", dir.path(), &|| NOW, &|_| ()).compact(&lake, &FULL).unwrap();
    let before = rows(&lake);
    let hard = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, cancel, ..GcSettings::new("gc") };
    assert!(matches!(collect(&lake, UnixMillis(NOW.0 + 1), &hard), Err(trawl_store::Error::Cancelled)));
    assert_eq!(rows(&lake), before);
    assert_sound(&lake, dir.path(), "after a collection that ended early");
}

/// What a verification may fetch is bounded: what it does not read is counted, and checked by its length.
#[test]
fn a_verification_reads_no_more_than_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let lake = new_lake(dir.path());
    let verify = |max_read_bytes: Option<u64>| {
        let (unread, faults) = (Cell::new(None), RefCell::new(Vec::new()));
        let tell = |event| match event {
            Event::Unread { files, bytes, .. } => unread.set(Some((files, bytes))),
            Event::Fault { fault, .. } => faults.borrow_mut().push(fault),
            _ => {}
        };
        let keeper = Keeper { max_read_bytes, ..Keeper::new("v", dir.path(), &|| NOW, &tell) };
        let verified = keeper.verify(&lake, &lake.current().unwrap(), false).unwrap();
        assert_eq!(verified.unread_files, unread.get().map_or(0, |(files, _)| files));
        (unread.get(), faults.into_inner())
    };
    let all: Vec<_> = (1..=2).flat_map(|id| lake.dataset_newest(id).unwrap().unwrap().files).collect();
    let rows: u64 = all.iter().map(|file| file.bytes).sum();
    let segments = lake.current().unwrap().current().unwrap().segments.clone();
    let index: u64 = segments.iter().map(|segment| segment.bytes).sum();
    assert_eq!(verify(None), (None, vec![]));
    assert_eq!(verify(Some(index + 3 * rows)), (None, vec![]), "each Parquet file is read three times");
    assert_eq!(verify(Some(index)), (Some((4, rows)), vec![]), "the index comes first");
    assert_eq!(verify(Some(0)), (Some((6, index + rows)), vec![]));
    let some = verify(Some(index + 3 * all[0].bytes)).0.unwrap();
    assert!(some.0 < 4 && some.1 < rows, "{some:?}");
    // A file that is gone or cut is found all the same.
    let whole = lake.store().get(&all[0].path, 1 << 20).unwrap();
    lake.store().put(&all[0].path, &whole[1..]).unwrap();
    lake.store().delete(&all[1].path).unwrap();
    let (_, faults) = verify(Some(0));
    assert!(faults.len() == 2 && faults.iter().any(|fault| fault.contains("41 rows are lost")), "{faults:?}");
}

/// A drop writes again only segments that hold rows of the dataset and of others.
#[test]
fn a_drop_leaves_the_segments_of_others_alone() {
    let dir = tempfile::tempdir().unwrap();
    let lake = new_lake(dir.path());
    let ids = |lake: &Lake| -> Vec<String> {
        lake.current().unwrap().current().unwrap().segments.iter().map(|segment| segment.id.clone()).collect()
    };
    let before = ids(&lake);
    assert_eq!(before.len(), 2, "one of each dataset");
    Keeper::new("drop", dir.path(), &|| NOW, &|_| ()).drop_dataset(&lake, 2).unwrap();
    assert_eq!(ids(&lake), before[..1], "that of the other dataset is the same, and nothing was merged");
    assert_sound(&lake, dir.path(), "dropped");
}
