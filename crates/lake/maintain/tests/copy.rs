//! Copies of lakes: whole, incremental, of a state that existed, and never of damaged files.

#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;

use doubles::GatedStore;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use trawl_ingest::{IngestSettings, ingest, source};
use trawl_io::{Fs, RealFs};
use trawl_maintain::{Copied, Event, GcSettings, Keeper, collect, copy};
use trawl_model::UnixMillis;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Cancel, DatasetInfo, Error, Heartbeat, Lake, MemStore, Sizes, Store, layout};

static CLOCK: AtomicI64 = AtomicI64::new(1_782_262_923_456);

fn now() -> UnixMillis {
    UnixMillis(CLOCK.fetch_add(1000, Relaxed))
}

fn new_lake() -> (Arc<dyn Store>, Lake) {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let lake = Lake::init(store.clone(), now(), "n1", b"com\norg\n").unwrap();
    // As a lake of thousands of datasets would have it: manifests against checkpoints.
    (store, lake.with_sizes(Sizes { whole: 1500, relative: 2500 }))
}

/// Takes some URLs into a dataset and publishes it; the version that serves it.
fn add(lake: &Lake, dir: &Path, dataset: &str, part: u32, replace: bool) -> Option<String> {
    let name = format!("{dataset}-{part}");
    let id = lake.register_dataset(now(), &format!("r-{name}"), &DatasetInfo::named(dataset)).unwrap();
    let path = dir.join(format!("{name}.txt"));
    let lines: String = (0..30).map(|n| format!("https://www.{dataset}{}.org/{part}/{n}\n", n % 7)).collect();
    std::fs::write(&path, lines + "https://bad.org:99999/\n").unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let sources = [source::open(&fs, &path, None).unwrap()];
    let mut settings = IngestSettings::new(format!("i-{name}"), dir);
    if replace {
        settings.mode = trawl_ingest::Mode::Replace;
    }
    ingest(lake, id, &sources, &settings, &now, &|_| ()).unwrap();
    let writer = format!("p-{name}");
    Keeper::new(writer, dir, &now, &|_| ()).publish_datasets(lake, &[id]).unwrap().version
}

fn faults(lake: &Lake, dir: &Path) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let tell = |event| {
        if let Event::Fault { fault, .. } = event {
            found.borrow_mut().push(fault.to_string());
        }
    };
    Keeper::new("v", dir, &now, &tell).verify(lake, &lake.current().unwrap(), false).unwrap();
    found.into_inner()
}

fn copied(from: &Arc<dyn Store>, to: &Arc<dyn Store>, writer: &str) -> Copied {
    copy(from, to, &now, writer, &Cancel::default(), &|_, _| ()).unwrap()
}

/// A collector keeps all rejected items of a dataset, and a copy cannot be purged itself: it would count as written to.
#[test]
fn what_was_purged_of_rejected_items_leaves_the_copy_too() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    add(&lake, dir.path(), "a", 0, false);
    let to: Arc<dyn Store> = Arc::new(MemStore::new());
    copied(&from, &to, "c1");
    let rejects = || to.list(&layout::rejects_dir(1)).unwrap().len();
    assert_eq!(rejects(), 1);
    let deny = Deny { target: DenyTarget::Domain("bad.org".into()), since: now().to_string(), reason: None };
    lake.commit(now(), "deny", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
    Keeper::new("purge", dir.path(), &now, &|_| ()).purge(&lake, None, false).unwrap();
    assert!(from.list(&layout::rejects_dir(1)).unwrap().is_empty());
    copied(&from, &to, "c2");
    assert_eq!(rejects(), 0);
    assert_eq!(faults(&Lake::open(to.clone()).unwrap(), dir.path()), Vec::<String>::new());
}

/// What only the lake lost is still in its copy.
#[test]
fn lost_rejected_items_stay_in_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    add(&lake, dir.path(), "a", 0, false);
    let to: Arc<dyn Store> = Arc::new(MemStore::new());
    copied(&from, &to, "c1");
    let path = from.list(&layout::rejects_dir(1)).unwrap().remove(0).path;
    from.delete(&path).unwrap();
    copied(&from, &to, "c2");
    assert!(to.exists(&path).unwrap());
    // Also where the commits are lost, too: the index, which tells what the newest had, knows of no rejected items.
    lake.commit_dataset(1, now(), "found", |commit| {
        commit.rejects.clear();
        Ok(true)
    })
    .unwrap();
    copied(&from, &to, "c3");
    assert!(to.exists(&path).unwrap());
}

/// Whoever looks for damage in the copy finds none, before its own collector ran and after.
#[test]
fn rejected_items_of_a_dropped_dataset_stay_until_the_copy_is_collected() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    for dataset in ["a", "b"] {
        add(&lake, dir.path(), dataset, 0, false);
    }
    let to: Arc<dyn Store> = Arc::new(MemStore::new());
    copied(&from, &to, "c1");
    Keeper::new("drop", dir.path(), &now, &|_| ()).drop_dataset(&lake, 1).unwrap();
    let settings =
        |writer: &str| GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new(writer) };
    collect(&lake, now(), &settings("gc1")).unwrap();
    assert!(from.list(&layout::rejects_dir(1)).unwrap().is_empty());
    copied(&from, &to, "c2");
    let there = Lake::open(to.clone()).unwrap();
    assert_eq!(faults(&there, dir.path()), [""; 0]);
    collect(&there, now(), &settings("gc2")).unwrap();
    assert!(to.list(&layout::rejects_dir(1)).unwrap().is_empty());
    assert_eq!(faults(&there, dir.path()), [""; 0]);
}

#[test]
fn a_copy_is_whole_and_the_next_one_brings_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    for (dataset, part) in [("a", 0), ("b", 0), ("a", 1)] {
        add(&lake, dir.path(), dataset, part, false);
    }
    let deny = Deny { target: DenyTarget::Domain("a1.org".into()), since: now().to_string(), reason: None };
    lake.commit(now(), "deny", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
    let to: Arc<dyn Store> = Arc::new(MemStore::new());
    let first = copied(&from, &to, "c1");
    let there = Lake::open(to.clone()).unwrap();
    assert_eq!(there.current().unwrap().deny, [deny]);
    assert_eq!(there.current().unwrap().datasets, lake.current().unwrap().datasets);
    assert_eq!(first.version, lake.current().unwrap().current_version);
    assert_eq!(faults(&there, dir.path()), [""; 0]);
    assert!(!to.list(&layout::rejects_dir(1)).unwrap().is_empty());

    let again = copied(&from, &to, "c2");
    assert!(again.up_to_date && again.unchanged > 10, "{again:?}");
    add(&lake, dir.path(), "c", 0, false);
    add(&lake, dir.path(), "a", 2, true);
    let more = copied(&from, &to, "c3");
    assert!(!more.up_to_date && more.objects < first.objects, "{more:?} after {first:?}");
    let there = Lake::open(to.clone()).unwrap();
    assert_eq!(there.current().unwrap().current_version, lake.current().unwrap().current_version);
    assert_eq!(faults(&there, dir.path()), [""; 0]);

    // Another lake is no target.
    let (other, other_lake) = new_lake();
    add(&other_lake, dir.path(), "z", 0, false);
    let refused = copy(&other, &to, &now, "c4", &Cancel::default(), &|_, _| ()).unwrap_err();
    assert!(refused.to_string().contains("another lake"), "{refused}");
}

#[test]
fn a_copy_beside_writers_and_a_collector_is_a_version_that_existed() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    add(&lake, dir.path(), "first", 0, false);
    let versions = Mutex::new(BTreeSet::from([lake.current().unwrap().current_version.clone()]));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = ["x", "y", "z"]
            .into_iter()
            .map(|dataset| {
                let (from, versions, dir) = (&from, &versions, dir.path());
                scope.spawn(move || {
                    let lake = Lake::open(from.clone()).unwrap().with_sizes(Sizes { whole: 1500, relative: 2500 });
                    for part in 0..6 {
                        let version = add(&lake, dir, dataset, part, part % 3 == 2);
                        versions.lock().unwrap().extend(version);
                        let all: Vec<_> = lake.current().unwrap().versions.iter().map(|v| v.version.clone()).collect();
                        versions.lock().unwrap().extend(all);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let lake = Lake::open(from.clone()).unwrap();
            for n in 0.. {
                if done.load(Relaxed) {
                    break;
                }
                // Everything that may go goes at once. Clocks run a second a call here, so living writers look old soon.
                let settings = GcSettings {
                    keep_versions: 1,
                    keep_states: 1,
                    grace_ms: 300_000,
                    ..GcSettings::new(format!("gc{n}"))
                };
                collect(&lake, now(), &settings).unwrap();
            }
        });
        let mut copies = 0;
        while writers.iter().any(|writer| !writer.is_finished()) || copies == 0 {
            let to: Arc<dyn Store> = Arc::new(MemStore::new());
            let copied = copied(&from, &to, &format!("c{copies}"));
            let there = Lake::open(to).unwrap();
            assert_eq!(there.current().unwrap().current_version, copied.version);
            assert_eq!(faults(&there, dir.path()), [""; 0], "copy {copies}");
            let all: Vec<_> = lake.current().unwrap().versions.iter().map(|v| v.version.clone()).collect();
            versions.lock().unwrap().extend(all);
            versions.lock().unwrap().insert(copied.version);
            copies += 1;
        }
        done.store(true, Relaxed);
    });
    assert_eq!(faults(&lake, dir.path()), [""; 0]);
}

fn deny(lake: &Lake, domain: &str) {
    let deny = Deny { target: DenyTarget::Domain(domain.into()), since: now().to_string(), reason: None };
    lake.commit(now(), &format!("deny-{domain}"), |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
}

/// What somebody wrote to a copy would be lost with the next copy: rows, published or not, and denials.
#[test]
fn a_copy_that_was_written_to_is_no_target() {
    type Write = fn(&Lake, &Path);
    let writes: [(&str, Write); 4] = [
        ("rows", |lake, dir| drop(add(lake, dir, "a", 7, false))),
        ("rows that wait", |lake, dir| {
            let path = dir.join("waits.txt");
            std::fs::write(&path, "https://waits.org/\n").unwrap();
            let fs: Arc<dyn Fs> = Arc::new(RealFs);
            let settings = IngestSettings::new("waits", dir);
            ingest(lake, 1, &[source::open(&fs, &path, None).unwrap()], &settings, &now, &|_| ()).unwrap();
        }),
        ("a denial", |lake, _| deny(lake, "a2.org")),
        ("a dataset", |lake, dir| drop(add(lake, dir, "new", 0, false))),
    ];
    for (what, write) in writes {
        for goes_on in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (from, lake) = new_lake();
            add(&lake, dir.path(), "a", 0, false);
            let to: Arc<dyn Store> = Arc::new(MemStore::new());
            copied(&from, &to, "c1");
            let there = Lake::open(to.clone()).unwrap();
            // A collector of the copy writes nothing that could be lost, also if it gives up a copy that was cut.
            let beat = Heartbeat {
                writer: "cut".into(),
                act: "copy".into(),
                beat: UnixMillis(0),
                prefixes: vec!["urls/".into(), "datasets/".into()],
            };
            there.beat(&beat).unwrap();
            let settings = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") };
            collect(&there, now(), &settings).unwrap();
            assert!(copied(&from, &to, "c2").up_to_date);
            write(&there, dir.path());
            if goes_on {
                add(&lake, dir.path(), "a", 1, false);
                add(&lake, dir.path(), "a", 2, true);
            }
            let state = |lake: &Lake| (lake.current().unwrap(), lake.dataset_newest(1).unwrap());
            let before = state(&there);
            let error = copy(&from, &to, &now, "c3", &Cancel::default(), &|_, _| ()).expect_err(what);
            assert!(error.to_string().contains("written to") || error.to_string().contains("another lake"), "{error}");
            assert_eq!(state(&Lake::open(to.clone()).unwrap()), before, "{what}");
            assert_eq!(there.heartbeats().unwrap(), [], "{what}");
            // Nor is the lake itself a target for its copy.
            if goes_on {
                copy(&to, &from, &now, "c4", &Cancel::default(), &|_, _| ()).expect_err(what);
            }
        }
    }
}

/// A collector of a copy may run between any two copies, also after the lake dropped datasets; what somebody wrote to such a
/// dataset of the copy is not lost all the same.
#[test]
fn dropped_datasets_and_collections_of_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (from, lake) = new_lake();
    for dataset in ["a", "b", "c"] {
        add(&lake, dir.path(), dataset, 0, false);
    }
    let to: Arc<dyn Store> = Arc::new(MemStore::new());
    copied(&from, &to, "c1");
    let tell = |_: Event| ();
    let keeper = Keeper::new("drop", dir.path(), &now, &tell);
    for (n, dataset) in [1, 2].into_iter().enumerate() {
        keeper.drop_dataset(&lake, dataset).unwrap();
        for round in 0..3 {
            copied(&from, &to, &format!("c{n}-{round}"));
            let there = Lake::open(to.clone()).unwrap();
            let (keep_states, grace_ms) = if round == 0 { (100, 86_400_000) } else { (1, 0) };
            let writer = format!("gc{n}-{round}");
            let settings = GcSettings { keep_versions: 1, keep_states, grace_ms, ..GcSettings::new(writer) };
            collect(&there, now(), &settings).unwrap();
            assert_eq!(faults(&there, dir.path()), [""; 0]);
        }
    }
    let there = Lake::open(to.clone()).unwrap();
    assert_eq!(there.current().unwrap().current_version, lake.current().unwrap().current_version);

    let late = dir.path().join("late.txt");
    std::fs::write(&late, "https://late.org/\n").unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let settings = IngestSettings::new("late", dir.path());
    ingest(&there, 3, &[source::open(&fs, &late, None).unwrap()], &settings, &now, &|_| ()).unwrap();
    keeper.drop_dataset(&lake, 3).unwrap();
    let error = copy(&from, &to, &now, "last", &Cancel::default(), &|_, _| ()).unwrap_err();
    assert!(error.to_string().contains("written to"), "{error}");
}

/// A dataset whose first ingest fails is taken back by the lake. A copy that was made before that is still a copy of it, unless
/// somebody put rows into that dataset there.
#[test]
fn a_dataset_that_is_taken_back_after_a_copy() {
    for written in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (from, lake) = new_lake();
        add(&lake, dir.path(), "a", 0, false);
        let id = lake.register_dataset(now(), "r-new", &DatasetInfo::named("new")).unwrap();
        let to: Arc<dyn Store> = Arc::new(MemStore::new());
        copied(&from, &to, "c1");
        let there = Lake::open(to.clone()).unwrap();
        assert!(lake.withdraw_dataset(now(), "w-new", id).unwrap());
        let version = add(&lake, dir.path(), "b", 0, false);
        if written {
            let path = dir.path().join("own.txt");
            std::fs::write(&path, "https://own.org/\n").unwrap();
            let fs: Arc<dyn Fs> = Arc::new(RealFs);
            let settings = IngestSettings::new("own", dir.path());
            ingest(&there, id, &[source::open(&fs, &path, None).unwrap()], &settings, &now, &|_| ()).unwrap();
            let error = copy(&from, &to, &now, "c2", &Cancel::default(), &|_, _| ()).unwrap_err();
            assert!(error.to_string().contains("copy to an empty place"), "{error}");
            continue;
        }
        assert_eq!(Some(copied(&from, &to, "c2").version), version);
        assert!(there.current().unwrap().dataset(id).is_none());
        assert_eq!(faults(&there, dir.path()), [""; 0]);
        assert!(copied(&from, &to, "c3").up_to_date);
    }
}

/// Whatever happens while files are copied, to the lake or to the copy, the copy is sound and can be written to.
#[test]
fn denials_and_collections_come_in_between() {
    for first in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (inner, lake) = new_lake();
        add(&lake, dir.path(), "a", 0, false);
        deny(&lake, "a3.org");
        let gated = Arc::new(GatedStore::new(inner, "urls/"));
        let from: Arc<dyn Store> = gated.clone();
        let to: Arc<dyn Store> = Arc::new(MemStore::new());
        if !first {
            copied(&from, &to, "c1");
            add(&lake, dir.path(), "b", 0, false);
            add(&lake, dir.path(), "a", 1, false);
        }
        gated.shut();
        std::thread::scope(|scope| {
            let copy = scope.spawn(|| copied(&from, &to, "c2"));
            while gated.came() == 0 {
                std::thread::yield_now();
            }
            deny(&lake, "a1.org");
            if !first {
                let there = Lake::open(to.clone()).unwrap();
                let settings = GcSettings { keep_versions: 1, keep_states: 1, ..GcSettings::new("gc") };
                collect(&there, now(), &settings).unwrap();
            }
            gated.open();
            copy.join().unwrap();
        });
        let there = Lake::open(to.clone()).unwrap();
        assert_eq!(faults(&there, dir.path()), [""; 0], "first: {first}");
        assert!(copied(&from, &to, "c3").version == lake.current().unwrap().current_version);
        add(&there, dir.path(), "own", 0, false).expect("a copy can be written to");
        assert_eq!(faults(&there, dir.path()), [""; 0], "first: {first}");
    }
}

/// One bit of each file of each kind: `verify` names the file, or nothing was changed that anybody reads.
#[test]
fn a_turned_bit_in_any_kind_of_file_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (store, lake) = new_lake();
    for part in 0..6 {
        add(&lake, dir.path(), if part % 2 == 0 { "a" } else { "b" }, part, false);
    }
    let deny = Deny { target: DenyTarget::Domain("a1.org".into()), since: now().to_string(), reason: None };
    lake.commit(now(), "deny", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
    assert!(!store.list(layout::CHECKPOINTS).unwrap().is_empty());
    let current = lake.current().unwrap();
    let mut kinds = BTreeSet::new();
    for object in ["urls", "datasets", "index"].iter().flat_map(|dir| store.list(dir).unwrap()) {
        let kind: String = object.path.chars().filter(|c| !c.is_ascii_digit()).collect();
        // Segments that only older versions have are looked at too; one file of each kind is enough.
        let old = object.path.starts_with("index/2") && {
            let id = object.path.split('/').nth(1).unwrap();
            !current.versions.iter().flat_map(|v| &v.segments).any(|s| s.id == id)
        };
        if old || !kinds.insert(kind) {
            continue;
        }
        let bytes = store.get(&object.path, 1 << 30).unwrap();
        let mut turned = bytes.to_vec();
        turned[bytes.len() / 2] ^= 0x10;
        store.put(&object.path, &turned).unwrap();
        let named = match Lake::open(store.clone()) {
            Ok(lake) => faults(&lake, dir.path()),
            Err(error) => vec![error.to_string()],
        };
        let name = object.path.rsplit('/').next().unwrap();
        assert!(named.iter().any(|fault| fault.contains(name)), "{}: {named:?}", object.path);
        // Nor is it copied.
        if [".parquet", ".bin", ".jsonl"].iter().any(|end| object.path.ends_with(end)) {
            let to: Arc<dyn Store> = Arc::new(MemStore::new());
            let error = copy(&store, &to, &now, "c", &Cancel::default(), &|_, _| ()).unwrap_err();
            assert!(error.to_string().contains(&object.path), "{error}");
            assert!(matches!(Lake::open(to), Err(Error::NotALake { .. })));
        }
        store.put(&object.path, &bytes).unwrap();
    }
    assert!(kinds.len() > 12, "{kinds:?}");
    assert_eq!(faults(&lake, dir.path()), [""; 0]);
}
