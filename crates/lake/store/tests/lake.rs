//! Commits of the lake and of its datasets.

mod doubles;

use doubles::CountingStore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trawl_model::{SourceIdentity, UnixMillis};
use trawl_store::{
    CommitMode, DataFile, DatasetInfo, DirStore, Error, Heartbeat, KnownSource, Lake, SegmentRef, Store, layout,
};

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

fn new_lake() -> (tempfile::TempDir, Arc<DirStore>, Lake) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(DirStore::new(dir.path()));
    let lake = Lake::init(store.clone(), NOW, "n1", b"com\norg\n").unwrap();
    (dir, store, lake)
}

fn file(path: &str, rows: u64) -> DataFile {
    DataFile {
        path: path.into(),
        prefix: "all".into(),
        added: 0,
        rows,
        row_groups: 1,
        bytes: rows * 10,
        hash: "00".into(),
        schema: 1,
        min_domain: "a.com".into(),
        max_domain: "z.com".into(),
        min_key: "com,a)/".into(),
        max_key: "com,z)/".into(),
        distinct_urls: rows,
    }
}

fn part(writer: &str) -> String {
    layout::part(1, "all", writer, 0).unwrap()
}

#[test]
fn a_lake_is_made_once() {
    let (_dir, store, lake) = new_lake();
    assert_eq!(lake.current().unwrap().sequence, 1);
    assert_eq!(lake.suffix_list(&lake.current().unwrap()).unwrap(), "com\norg\n");
    assert!(matches!(Lake::init(store.clone(), NOW, "n2", b""), Err(Error::AlreadyALake { .. })));
    assert_eq!(Lake::open(store).unwrap().current().unwrap().sequence, 1);
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Lake::open(Arc::new(DirStore::new(empty.path()))), Err(Error::NotALake { .. })));
}

#[test]
fn a_suffix_list_that_is_not_the_one_named_is_refused() {
    let (_dir, store, lake) = new_lake();
    let manifest = lake.current().unwrap();
    store.put(&manifest.suffix_list.as_ref().unwrap().path, b"net\n").unwrap();
    // There is a second one.
    assert_eq!(lake.suffix_list(&manifest).unwrap(), b"com\norg\n"[..]);
    for copy in store.list("datasets/suffix_lists").unwrap() {
        store.delete(&copy.path).unwrap();
    }
    assert!(matches!(lake.suffix_list(&manifest), Err(Error::Corrupt { .. })));
    // Whoever has the right one makes it good.
    assert_eq!(lake.put_suffix_list(b"com\norg\n").unwrap(), *manifest.suffix_list.as_ref().unwrap());
    assert_eq!(lake.suffix_list(&manifest).unwrap(), b"com\norg\n"[..]);
}

#[test]
fn a_copy_that_is_behind_or_damaged_is_a_hint_and_nothing_more() {
    let (_dir, store, lake) = new_lake();
    for name in ["a", "b", "c"] {
        lake.register_dataset(NOW, "test", &DatasetInfo::named(name)).unwrap();
    }
    let newest = lake.current().unwrap();
    assert_eq!(newest.sequence, 4);
    let copy = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();
    assert_eq!(copy, store.get("index/manifests/0000000004.json", 1 << 20).unwrap());
    let first = store.get("index/manifests/0000000001.json", 1 << 20).unwrap();
    for hint in [Some(&first[..]), Some(b"{}"), Some(b"garbage"), None] {
        match hint {
            Some(bytes) => store.put(layout::MANIFEST_COPY, bytes).unwrap(),
            None => store.delete(layout::MANIFEST_COPY).unwrap(),
        }
        assert_eq!(Lake::open(store.clone()).unwrap().current().unwrap(), newest);
    }
}

#[test]
fn a_reader_left_behind_by_a_collector_catches_up() {
    let (_dir, store, lake) = new_lake();
    let old_reader = Lake::open(store.clone()).unwrap();
    for name in ["a", "b", "c"] {
        lake.register_dataset(NOW, "test", &DatasetInfo::named(name)).unwrap();
    }
    for n in 1..=3 {
        store.delete(&layout::numbered(layout::MANIFESTS, n)).unwrap();
    }
    assert_eq!(old_reader.current().unwrap().sequence, 4);
    let committed = old_reader.register_dataset(NOW, "test", &DatasetInfo::named("d")).unwrap();
    assert_eq!((committed, old_reader.current().unwrap().sequence), (4, 5));
}

#[test]
fn nothing_new_costs_two_small_questions() {
    let (_dir, store, _lake) = new_lake();
    let counting = Arc::new(CountingStore::new(store));
    let lake = Lake::open(counting.clone()).unwrap();
    counting.take();
    lake.current().unwrap();
    let counts = counting.take();
    assert_eq!((counts.rounds, counts.bytes_read), (2, 0));
}

#[test]
fn a_change_that_changes_nothing_commits_nothing() {
    let (_dir, _store, lake) = new_lake();
    let id = lake.register_dataset(NOW, "test", &DatasetInfo::named("a")).unwrap();
    let before = lake.current().unwrap().sequence;
    assert_eq!(lake.register_dataset(UnixMillis(0), "test", &DatasetInfo::named("a")).unwrap(), id);
    assert_eq!(lake.current().unwrap().sequence, before);
}

#[test]
fn a_change_that_fails_commits_nothing() {
    let (_dir, _store, lake) = new_lake();
    let refused = lake.commit(NOW, "test", |manifest| {
        manifest.register(NOW, DatasetInfo::named("a"))?;
        Err::<(), _>(Error::Refused { reason: "no".into() })
    });
    assert!(refused.is_err());
    let bad = lake.commit(NOW, "test", |manifest| {
        manifest.publish(NOW, vec![SegmentRef { id: "../x".into(), ..SegmentRef::default() }], BTreeMap::new());
        Ok(())
    });
    assert!(bad.is_err(), "a name that readers would refuse is not written");
    assert_eq!(lake.current().unwrap().sequence, 1);
}

#[test]
fn racing_publishers_all_end_up_in() {
    let (_dir, store, _lake) = new_lake();
    std::thread::scope(|scope| {
        for i in 0..6 {
            let store = store.clone();
            scope.spawn(move || {
                let (lake, writer) = (Lake::open(store).unwrap(), format!("w{i}"));
                let id = lake.register_dataset(NOW, &writer, &DatasetInfo::named(format!("d{i}"))).unwrap();
                lake.commit(NOW, &writer, |manifest| {
                    let mut segments = manifest.current().map(|v| v.segments.clone()).unwrap_or_default();
                    let mut commits = manifest.current().map(|v| (*v.commits).clone()).unwrap_or_default();
                    segments.push(SegmentRef { id: format!("s{i}"), ..SegmentRef::default() });
                    commits.insert(id, 1);
                    Ok(manifest.publish(NOW, segments, commits))
                })
                .unwrap();
            });
        }
    });
    let manifest = Lake::open(store.clone()).unwrap().current().unwrap();
    assert_eq!(manifest.sequence, 13);
    let current = manifest.current().unwrap();
    let segments: BTreeSet<_> = current.segments.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(segments, BTreeSet::from(["s0", "s1", "s2", "s3", "s4", "s5"]));
    assert_eq!(current.commits.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let names: BTreeSet<_> = manifest.versions.iter().map(|v| &v.version).collect();
    assert_eq!(names.len(), 6, "version names are unique");
    let copy = trawl_store::Manifest::parse("copy", &store.get(layout::MANIFEST_COPY, 1 << 20).unwrap()).unwrap();
    assert_eq!(copy.sequence, 13, "whoever writes the copy last writes the newest");
}

#[test]
fn racing_ingests_of_one_source_count_once() {
    let (_dir, _store, lake) = new_lake();
    let source = SourceIdentity { uri: "file:a".into(), size: 1, tag: "t".into() };
    let made: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (lake, source) = (&lake, &source);
                scope.spawn(move || {
                    let writer = format!("w{i}");
                    let (_, made) = lake
                        .commit_dataset(1, NOW, &writer, |commit| {
                            if commit.has_source(source) {
                                return Ok(false);
                            }
                            commit.mode = CommitMode::Append;
                            commit.files.push(file(&part(&writer), 10));
                            commit.add_source(KnownSource::new(source.clone()));
                            Ok(true)
                        })
                        .unwrap();
                    made
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|m| **m).count(), 1);
    let newest = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!((newest.sequence, newest.rows, newest.bytes, newest.files.len()), (1, 10, 100, 1));
    assert_eq!(newest.files[0].added, 1);
    assert_eq!(lake.dataset_commit(1, 1).unwrap().unwrap(), newest);
    assert_eq!(lake.dataset_commit(1, 2).unwrap(), None);
    assert_eq!(lake.dataset_newest(2).unwrap(), None);
}

#[test]
fn a_writer_given_up_cannot_commit() {
    let (_dir, _store, lake) = new_lake();
    let revoke = lake.commit_dataset(1, NOW, "collector", |commit| {
        commit.revoked.push("w1".into());
        Ok(true)
    });
    revoke.unwrap();
    let add = |writer: &str| {
        lake.commit_dataset(1, NOW, writer, |commit| {
            commit.files.push(file(&part(writer), 1));
            Ok(true)
        })
    };
    assert!(matches!(add("w1"), Err(Error::Revoked { .. })));
    assert!(add("w2").is_ok());
    lake.commit(NOW, "test", |manifest| {
        manifest.revoked.push("w1".into());
        Ok(())
    })
    .unwrap();
    assert!(matches!(lake.commit(NOW, "w1", |_| Ok(())), Err(Error::Revoked { .. })));
    assert!(lake.commit(NOW, "w2", |_| Ok(())).is_ok());
}

#[test]
fn commits_with_files_elsewhere_or_twice_are_refused() {
    let (_dir, _store, lake) = new_lake();
    let commit = |paths: &[&str]| {
        lake.commit_dataset(1, NOW, "w", |commit| {
            commit.files = paths.iter().map(|p| file(p, 1)).collect();
            Ok(true)
        })
    };
    assert!(commit(&["urls/dataset_id=2/domain_prefix=all/part-w-00000.parquet"]).is_err());
    assert!(commit(&["urls/dataset_id=1/../x"]).is_err());
    assert!(commit(&[&part("w"), &part("w")]).is_err());
    assert_eq!(lake.dataset_newest(1).unwrap(), None);
    assert!(commit(&[&part("w")]).is_ok());
}

#[test]
fn heartbeats_come_and_go() {
    let (_dir, store, lake) = new_lake();
    let beat = |writer: &str, beat| Heartbeat {
        writer: writer.into(),
        act: "ingest".into(),
        beat: UnixMillis(beat),
        prefixes: vec!["urls/dataset_id=1/".into()],
    };
    lake.beat(&beat("w1", 1)).unwrap();
    lake.beat(&beat("w1", 2)).unwrap();
    lake.beat(&beat("w2", 3)).unwrap();
    assert_eq!(lake.heartbeats().unwrap(), [beat("w1", 2), beat("w2", 3)]);
    lake.end_beat("w1").unwrap();
    assert_eq!(lake.heartbeats().unwrap(), [beat("w2", 3)]);
    assert!(lake.beat(&beat("../w", 1)).is_err());
    store.put("index/heartbeats/notes.txt", b"a person's").unwrap();
    assert_eq!(lake.heartbeats().unwrap(), [beat("w2", 3)]);
    store.put("index/heartbeats/w3.json", b"{").unwrap();
    assert!(lake.heartbeats().is_err());
}

#[test]
fn what_nobody_filled_is_withdrawn_and_comes_back_if_somebody_did() {
    let (_dir, _store, lake) = new_lake();
    let id = lake.register_dataset(NOW, "test", &DatasetInfo::named("a")).unwrap();
    let dataset = lake.current().unwrap().dataset(id).unwrap().clone();
    // Somebody is at work there, or does not know whether it is done.
    let prefixes = vec![format!("{}/", layout::dataset_dir(id))];
    lake.beat(&Heartbeat { writer: "other".into(), act: "ingest".into(), beat: NOW, prefixes }).unwrap();
    assert!(!lake.withdraw_dataset(NOW, "w", id).unwrap());
    assert!(!lake.withdraw_dataset(NOW, "other", id).unwrap());
    lake.end_beat("other").unwrap();
    assert!(lake.withdraw_dataset(NOW, "other", id).unwrap());
    assert!(lake.current().unwrap().datasets.is_empty());
    lake.reinstate_dataset(NOW, "test", &dataset).unwrap();
    lake.reinstate_dataset(NOW, "test", &dataset).unwrap();
    assert_eq!(lake.current().unwrap().datasets, [Arc::new(dataset.clone())]);
    // Withdrawn, and the name given anew: under another number, and the first cannot come back.
    assert!(lake.withdraw_dataset(NOW, "w", id).unwrap());
    assert!(!lake.withdraw_dataset(NOW, "w", id).unwrap());
    assert_eq!(lake.register_dataset(NOW, "test", &DatasetInfo::named("a")).unwrap(), id + 1);
    assert!(matches!(lake.reinstate_dataset(NOW, "test", &dataset), Err(Error::Refused { .. })));
    // What has a commit stays.
    let add = |commit: &mut trawl_store::DatasetCommit| {
        let identity = SourceIdentity { uri: "s".into(), size: 1, tag: String::new() };
        commit.add_source(KnownSource::new(identity));
        Ok(true)
    };
    lake.commit_dataset(id + 1, NOW, "w", add).unwrap();
    assert!(!lake.withdraw_dataset(NOW, "w", id + 1).unwrap());
}
