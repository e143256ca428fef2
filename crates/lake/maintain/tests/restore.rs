//! Lakes that lost their manifests, and drops that last.

mod common;

use common::{data_file, day};
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_maintain::{GcSettings, collect, remains, stored_list};
use trawl_model::UnixMillis;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Acl, CommitMode, DatasetInfo, DirStore, Error, Heartbeat, Lake, SegmentRef, Store, layout};

fn new_lake() -> (tempfile::TempDir, Arc<DirStore>, Lake) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(DirStore::new(dir.path()));
    let lake = Lake::init(store.clone(), day(0), "n1", b"com\norg\n").unwrap();
    (dir, store, lake)
}

fn register(lake: &Lake, name: &str, now: UnixMillis) -> u32 {
    lake.register_dataset(now, "test", &DatasetInfo::named(name)).unwrap()
}

fn append(lake: &Lake, id: u32, writer: &str, now: UnixMillis) -> trawl_store::Result<u64> {
    let path = layout::part(id, "all", writer, 0)?;
    lake.store().put(&path, b"rows")?;
    let file = data_file(path, 4, "com,a)/");
    let hash = lake.current()?.suffix_list.as_ref().unwrap().hash.clone();
    let (commit, _) = lake.commit_dataset(id, now, writer, |commit| {
        commit.mode = CommitMode::Append;
        commit.suffix_list.clone_from(&hash);
        commit.files.push(file.clone());
        Ok(true)
    })?;
    Ok(commit.sequence)
}

fn lose_index(dir: &std::path::Path, but: &[&str]) {
    for entry in std::fs::read_dir(dir.join("index")).unwrap() {
        let path = entry.unwrap().path();
        if !but.iter().any(|name| path.ends_with(name)) {
            std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
        }
    }
}

fn restore(store: &Arc<DirStore>) -> Lake {
    let left = remains(&**store).unwrap();
    trawl_maintain::restore(store.clone(), day(20), "n2", b"com\norg\n", &left).unwrap()
}

#[test]
fn what_came_after_an_old_copy_is_not_lost() {
    let (dir, store, lake) = new_lake();
    let (a, b) = (register(&lake, "a", day(0)), register(&lake, "b", day(0)));
    append(&lake, a, "w1", day(1)).unwrap();
    append(&lake, b, "w2", day(1)).unwrap();
    let target = DenyTarget::Domain("bad.com".into());
    let deny = Deny { target, reason: None, since: day(1).to_string() };
    lake.commit(day(1), "test", |m| {
        m.deny.push(deny.clone());
        m.publish(day(1), vec![SegmentRef { id: "s1".into(), ..SegmentRef::default() }], BTreeMap::from([(a, 1)]));
        Ok(())
    })
    .unwrap();
    let copy = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();

    // Since then: a third dataset, one dropped, one that only some may see.
    let c = register(&lake, "c", day(2));
    append(&lake, c, "w3", day(2)).unwrap();
    lake.drop_dataset(day(3), "w4", b).unwrap();
    let closed = Acl::Principals(vec!["me".into()]);
    lake.commit(day(4), "test", |m| {
        m.dataset_mut(a).unwrap().info.acl = closed.clone();
        Ok(())
    })
    .unwrap();
    append(&lake, a, "w5", day(5)).unwrap();
    let last = lake.current().unwrap().sequence;

    lose_index(dir.path(), &["suffix_lists"]);
    store.put(layout::MANIFEST_COPY, &copy).unwrap();
    let left = remains(&*store).unwrap();
    assert_eq!((&left.younger[..], &left.nameless[..]), (&[c][..], &[][..]));
    let wanted = left.wanted_lists();
    assert_eq!(stored_list(&*store, wanted[0]).unwrap().unwrap(), b"com\norg\n");

    let reader = lake;
    let lake = restore(&store);
    let manifest = lake.current().unwrap();
    assert_eq!(reader.current().unwrap(), manifest, "who had the lake open sees it too");
    let seen: Vec<_> = manifest.datasets.iter().map(|d| (d.id, d.info.name.as_str(), d.dropped)).collect();
    assert_eq!(seen, [(a, "a", false), (b, "b", true), (c, "c", false)]);
    assert_eq!(manifest.dataset(a).unwrap().info.acl, closed, "the commit is younger than the copy");
    assert_eq!(manifest.deny, [deny]);
    assert!(manifest.versions.is_empty() && manifest.current_version.is_empty(), "their segments are lost");
    assert!(manifest.sequence > last, "readers who knew the lost ones follow");
    assert_eq!(register(&lake, "d", day(21)), c + 1, "ids are never used again");
    assert_eq!(Lake::open(store).unwrap().current().unwrap().datasets.len(), 4);
}

#[test]
fn versions_whose_segments_are_there_come_back_with_the_copy() {
    let (dir, store, lake) = new_lake();
    let a = register(&lake, "a", day(0));
    append(&lake, a, "w1", day(1)).unwrap();
    let publish = |segment: &str, now| {
        let segments = vec![SegmentRef { id: segment.into(), ..SegmentRef::default() }];
        lake.commit(now, "test", |m| Ok(m.publish(now, segments.clone(), BTreeMap::from([(a, 1)])))).unwrap().value
    };
    let first = publish("s1", day(1));
    publish("s2", day(2));
    store.put(&layout::segment_file("s1", "segment.json").unwrap(), b"{}").unwrap();
    lose_index(dir.path(), &["suffix_lists", "manifest.json", "s1"]);
    let manifest = restore(&store).current().unwrap();
    assert_eq!(manifest.versions.iter().map(|v| &v.version).collect::<Vec<_>>(), [&first]);
    assert_eq!(manifest.current_version, first);
}

#[test]
fn a_collector_keeps_datasets_it_has_never_heard_of() {
    let (dir, store, lake) = new_lake();
    let (a, b) = (register(&lake, "a", day(0)), register(&lake, "b", day(0)));
    append(&lake, a, "w1", day(0)).unwrap();
    append(&lake, b, "w2", day(0)).unwrap();
    // Somebody put an old manifest back by hand.
    lose_index(dir.path(), &["suffix_lists"]);
    Lake::init(store.clone(), day(0), "n2", b"com\norg\n").unwrap();
    let lake = Lake::open(store.clone()).unwrap();
    assert_eq!(register(&lake, "a", day(0)), a);
    let settings = GcSettings { keep_states: 1, ..GcSettings::new("gc") };
    let report = collect(&lake, day(10), &settings).unwrap();
    assert_eq!(report.strangers, [b]);
    for (id, writer) in [(a, "w1"), (b, "w2")] {
        assert!(store.exists(&layout::part(id, "all", writer, 0).unwrap()).unwrap(), "{id}");
    }
}

#[test]
fn a_drop_is_final() {
    let (dir, store, lake) = new_lake();
    let (a, bare) = (register(&lake, "a", day(0)), register(&lake, "bare", day(0)));
    append(&lake, a, "w1", day(0)).unwrap();
    // Two writers that began before the drops and commit after them.
    for id in [a, bare] {
        lake.drop_dataset(day(1), "dropper", id).unwrap();
        lake.drop_dataset(day(1), "dropper", id).unwrap();
        assert!(matches!(append(&lake, id, "late", day(1)), Err(Error::Dropped { dataset_id }) if dataset_id == id));
    }
    assert_eq!(lake.dataset_newest(a).unwrap().unwrap().sequence, 2, "dropped once");

    // A collector that gives up a dead writer adds a note; it does not bring the dataset back.
    let prefixes = vec![format!("{}/", layout::dataset_dir(a))];
    lake.beat(&Heartbeat { writer: "late".into(), act: "ingest".into(), beat: day(1), prefixes }).unwrap();
    collect(&lake, day(9), &GcSettings { keep_states: 1, ..GcSettings::new("gc") }).unwrap();
    let newest = lake.dataset_newest(a).unwrap().unwrap();
    assert_eq!((newest.mode, newest.is_dropped(), newest.revoked.len()), (CommitMode::Note, true, 1));
    assert!(matches!(append(&lake, a, "later", day(9)), Err(Error::Dropped { .. })));

    // Its name was given to another meanwhile.
    let again = register(&lake, "a", day(9));
    append(&lake, again, "w2", day(9)).unwrap();
    lose_index(dir.path(), &[]);
    let manifest = restore(&store).current().unwrap();
    let seen: Vec<_> = manifest.datasets.iter().map(|d| (d.id, d.info.name.as_str(), d.dropped)).collect();
    assert_eq!(seen, [(a, "a", true), (bare, "bare", true), (again, "a", false)]);
}

#[test]
fn an_interrupted_drop_takes_nothing_in_and_can_be_repeated() {
    let (_dir, _store, lake) = new_lake();
    let a = register(&lake, "a", day(0));
    append(&lake, a, "w1", day(0)).unwrap();
    let clear = |commit: &mut trawl_store::DatasetCommit| {
        commit.clear();
        Ok(true)
    };
    lake.commit_dataset(a, day(1), "dropper", clear).unwrap();
    assert!(!lake.current().unwrap().dataset(a).unwrap().dropped);
    let error = append(&lake, a, "late", day(1)).unwrap_err().to_string();
    assert!(error.contains("interrupted"), "{error}");
    lake.drop_dataset(day(2), "dropper", a).unwrap();
    assert!(lake.current().unwrap().dataset(a).unwrap().dropped);
    assert_ne!(register(&lake, "a", day(3)), a);
}

#[test]
fn a_damaged_newest_manifest_is_followed_by_a_restored_one() {
    let (_dir, store, lake) = new_lake();
    let a = register(&lake, "a", day(0));
    append(&lake, a, "w1", day(1)).unwrap();
    let newest = lake.current().unwrap().sequence;
    store.put(&layout::numbered(layout::MANIFESTS, newest), b"{ not it").unwrap();
    assert!(matches!(Lake::open(store.clone()), Err(Error::Corrupt { .. })));
    let restored = restore(&store);
    assert_eq!(restored.current().unwrap().sequence, newest + 1);
    assert_eq!(Lake::open(store.clone()).unwrap().current().unwrap().datasets.len(), 1);
    assert_eq!(lake.current().unwrap().sequence, newest + 1);
    // The damaged one goes with a collection, in its turn.
    collect(&restored, day(30), &GcSettings { keep_states: 1, ..GcSettings::new("gc") }).unwrap();
    assert!(!store.exists(&layout::numbered(layout::MANIFESTS, newest)).unwrap());
}

#[test]
fn a_lake_put_back_to_an_older_state_is_seen_by_who_has_it_open() {
    let (dir, store, lake) = new_lake();
    register(&lake, "a", day(0));
    let backup = tempfile::tempdir().unwrap();
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    };
    let manifests = dir.path().join(layout::MANIFESTS);
    copy(&manifests, backup.path());
    let simple = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();
    let old = lake.current().unwrap();
    register(&lake, "b", day(1));
    assert_eq!(lake.current().unwrap().datasets.len(), 2);
    std::fs::remove_dir_all(&manifests).unwrap();
    copy(backup.path(), &manifests);
    // With a copy that is not put back, the newest ones are only lost.
    assert_eq!(lake.current().unwrap().datasets.len(), 2);
    store.put(layout::MANIFEST_COPY, &simple).unwrap();
    assert_eq!(lake.current().unwrap(), old);
    assert_eq!(Lake::open(store).unwrap().current().unwrap(), old);
}

#[test]
fn a_full_disk_can_be_emptied_and_strange_files_stay() {
    let fs = FaultFs::new();
    let store = Arc::new(DirStore::with_fs(fs.shared(), "lake"));
    let lake = Lake::init(store.clone(), day(0), "n1", b"com\norg\n").unwrap();
    let a = register(&lake, "a", day(0));
    append(&lake, a, "w1", day(0)).unwrap();
    let orphan = layout::part(a, "all", "nobody", 0).unwrap();
    store.put(&orphan, b"rows of a writer long gone").unwrap();
    let foreign = ["urls/dataset_id=99/mine.parquet", "urls/readme.md", "index/notes.txt"];
    for path in foreign {
        store.put(path, b"a person's").unwrap();
    }
    let beat = Heartbeat { writer: "dead".into(), act: "x".into(), beat: day(0), prefixes: vec!["urls/x".into()] };
    lake.beat(&beat).unwrap();
    let settings = GcSettings { keep_states: 1, ..GcSettings::new("gc") };
    fs.set_capacity(1);
    collect(&lake, day(30), &settings).unwrap_err();
    assert!(!store.exists(&orphan).unwrap(), "what needs no commit went all the same");
    fs.set_capacity(1 << 30);
    let report = collect(&lake, day(30), &settings).unwrap();
    assert_eq!(report.foreign, foreign);
    for path in foreign {
        assert!(store.exists(path).unwrap(), "{path}");
    }
}

#[test]
fn a_collector_finishes_the_drops_of_earlier_programs() {
    // They told the manifest first, and could be cut before they told the dataset.
    let (dir, store, lake) = new_lake();
    let a = register(&lake, "a", day(0));
    append(&lake, a, "w1", day(0)).unwrap();
    lake.commit(day(1), "test", |m| {
        m.dataset_mut(a).unwrap().dropped = true;
        Ok(())
    })
    .unwrap();
    collect(&lake, day(30), &GcSettings::new("gc")).unwrap();
    assert!(lake.dataset_newest(a).unwrap().unwrap().is_dropped());
    lose_index(dir.path(), &[]);
    assert!(restore(&store).current().unwrap().dataset(a).unwrap().dropped);
}

#[test]
fn what_the_registry_is_told_outlives_it() {
    let (dir, store, lake) = new_lake();
    let (a, b) = (register(&lake, "a", day(0)), register(&lake, "b", day(0)));
    append(&lake, a, "w1", day(1)).unwrap();
    append(&lake, b, "w2", day(1)).unwrap();
    let secret = Acl::Principals(vec!["me".into()]);
    let hide = |info: &mut DatasetInfo| info.acl = secret.clone();
    // Somebody has the lake open that saw the manifest before.
    let late = Lake::open(store.clone()).unwrap();
    let (set, changed) = lake.set_dataset(day(2), "w3", a, hide).unwrap();
    assert!(changed && set.info.acl == secret && lake.current().unwrap().dataset(a) == Some(&set));
    assert!(!lake.set_dataset(day(2), "w4", a, hide).unwrap().1, "nothing to do");
    assert_eq!(lake.dataset_newest(a).unwrap().unwrap().sequence, 2);
    append(&late, a, "w5", day(3)).unwrap();

    let named = |name: &'static str| move |info: &mut DatasetInfo| info.name = name.into();
    for bad in ["b", "", "7", "x\ny"] {
        assert!(lake.set_dataset(day(3), "w6", a, named(bad)).is_err(), "{bad:?}");
    }
    lake.set_dataset(day(3), "w7", b, named("c")).unwrap();
    assert!(matches!(lake.set_dataset(day(3), "w8", 9, hide), Err(Error::UnknownDataset { .. })));
    // The manifest had it, but the note was cut off: asked again, it is written.
    lake.commit(day(4), "test", |manifest| {
        manifest.dataset_mut(b).unwrap().info.source = Some("s".into());
        Ok(())
    })
    .unwrap();
    assert!(lake.set_dataset(day(4), "w9", b, |info| info.source = Some("s".into())).unwrap().1);

    lose_index(dir.path(), &[]);
    let lake = restore(&store);
    let manifest = lake.current().unwrap();
    assert_eq!(
        (&manifest.dataset(a).unwrap().info.acl, manifest.dataset(a).unwrap().info.name.as_str()),
        (&secret, "a")
    );
    let b = &manifest.dataset(b).unwrap().info;
    assert_eq!((b.name.as_str(), b.source.as_deref()), ("c", Some("s")));
    lake.drop_dataset(day(5), "w10", a).unwrap();
    assert!(matches!(lake.set_dataset(day(5), "w11", a, hide), Err(Error::UnknownDataset { .. })));
}
