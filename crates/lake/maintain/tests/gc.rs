//! What is collected, and what is not.

mod common;

use common::{DAY, data_file, day, new_lake, part};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_index::PUBLISH;
use trawl_io::fault::{FaultFs, Loss, Stepped};
use trawl_io::{Fs, Op};
use trawl_maintain::{GcReport, GcSettings, collect};
use trawl_model::UnixMillis;
use trawl_store::{DatasetInfo, DirStore, Error, Heartbeat, Lake, SegmentRef, Store, layout};

/// Writes a file and commits it, in place of the others if `replace`.
fn ingest(lake: &Lake, writer: &str, now: UnixMillis, replace: bool) -> u64 {
    lake.store().put(&part(writer), writer.as_bytes()).unwrap();
    let file = data_file(part(writer), writer.len() as u64, writer);
    let (commit, _) = lake
        .commit_dataset(1, now, writer, |commit| {
            if replace {
                commit.files.clear();
            }
            commit.files.push(file.clone());
            Ok(true)
        })
        .unwrap();
    commit.sequence
}

fn publish(lake: &Lake, segment: &str, commit: u64, now: UnixMillis) -> String {
    lake.store().put(&layout::segment_file(segment, "postings/0/postings.idx.zst").unwrap(), b"x").unwrap();
    let segments = vec![SegmentRef { id: segment.into(), ..SegmentRef::default() }];
    lake.commit(now, "test", |m| Ok(m.publish(now, segments.clone(), BTreeMap::from([(1, commit)])))).unwrap().value
}

fn settings(keep_versions: usize) -> GcSettings {
    GcSettings { keep_versions, keep_states: 1, ..GcSettings::new("gc") }
}

fn files(store: &dyn Store) -> BTreeSet<String> {
    let listed = store.list("urls").unwrap().into_iter().chain(store.list("index").unwrap());
    listed
        .map(|l| l.path)
        .filter(|p| !p.contains("/manifest") && !p.contains("/commits/") && !p.contains("suffix"))
        .collect()
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|p| (*p).to_owned()).collect()
}

#[test]
fn what_was_current_until_a_moment_ago_stays_for_those_who_read_it() {
    let (store, lake) = new_lake();
    let first = ingest(&lake, "w1", day(0), false);
    let old = publish(&lake, "s1", first, day(0));
    // Everything is replaced on the tenth day, twice; a collector comes at once, and again.
    ingest(&lake, "w2", day(10), true);
    let third = ingest(&lake, "w3", day(10), true);
    publish(&lake, "s3", third, day(10));
    for hours in [0, 1, 23] {
        let now = UnixMillis(day(10).0 + hours * DAY / 24);
        collect(&lake, now, &settings(1)).unwrap();
        assert!(lake.current().unwrap().version(&old).is_some(), "after {hours} hours");
        assert_eq!(files(&*store).len(), 5, "after {hours} hours");
    }
    collect(&lake, UnixMillis(day(11).0 + 1), &settings(1)).unwrap();
    assert_eq!(files(&*store), set(&[&part("w3"), "index/s3/postings/0/postings.idx.zst"]));

    // Without a grace period nothing stays.
    let fourth = ingest(&lake, "w4", day(12), true);
    publish(&lake, "s4", fourth, day(12));
    let at_once = GcSettings { grace_ms: 0, ..settings(1) };
    collect(&lake, UnixMillis(day(12).0 + 1), &at_once).unwrap();
    assert_eq!(files(&*store), set(&[&part("w4"), "index/s4/postings/0/postings.idx.zst"]));
}

#[test]
fn a_lake_is_found_while_all_states_that_were_listed_are_collected() {
    let before = FaultFs::new();
    Lake::init(Arc::new(DirStore::with_fs(before.shared(), "lake")), day(0), "n", b"com\n").unwrap();
    let after = before.reboot(Loss::None);
    let lake = Lake::open(Arc::new(DirStore::with_fs(after.shared(), "lake"))).unwrap();
    lake.register_dataset(day(1), "test", &DatasetInfo::named("d")).unwrap();
    collect(&lake, day(9), &settings(1)).unwrap();
    for disk in [&before, &after] {
        // No copy tells where to look, so that states are listed.
        disk.remove_file(Path::new("lake/index/manifest.json")).unwrap();
    }
    for step in 0.. {
        let (taken, disks) = (Arc::new(AtomicU64::new(0)), [before.shared(), after.shared()]);
        let counter = taken.clone();
        let stepped =
            Stepped::new(move |_, _| disks[usize::from(counter.fetch_add(1, Ordering::Relaxed) >= step)].clone());
        let store = DirStore::with_fs(Arc::new(stepped), "lake");
        let found = Lake::open(Arc::new(store)).unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert!(found.current().unwrap().sequence > 0);
        if taken.load(Ordering::Relaxed) <= step {
            break;
        }
    }
}

/// It takes the oldest states first. One that is written again below those that it takes next would leave a gap.
#[test]
fn what_is_collected_meanwhile_is_not_mended() {
    let disk = FaultFs::new().shared();
    let store = DirStore::with_fs(disk.clone(), "lake");
    let lake = Lake::init(Arc::new(store.clone()), day(0), "n", b"com\n").unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        lake.register_dataset(day(0), "test", &DatasetInfo::named(name)).unwrap();
    }
    let collector = store.clone();
    let stepped = Stepped::new(move |op, path| {
        if op == Op::Open && path.ends_with("manifests/0000000003.json") {
            (1..=3).for_each(|number| collector.delete(&layout::numbered(layout::MANIFESTS, number)).unwrap());
        }
        disk.clone()
    });
    let other = Lake::open(Arc::new(DirStore::with_fs(Arc::new(stepped), "lake"))).unwrap();
    assert_eq!(other.mend_states(day(1), "mend").unwrap(), [""; 0]);
    assert!(!store.exists(&layout::numbered(layout::MANIFESTS, 3)).unwrap());
    // One that is missing between others is a gap.
    store.delete(&layout::numbered(layout::MANIFESTS, 5)).unwrap();
    assert_eq!(lake.mend_states(day(1), "mend").unwrap(), [layout::numbered(layout::MANIFESTS, 5)]);
}

#[test]
fn only_what_kept_versions_need_stays() {
    let (store, lake) = new_lake();
    let first = ingest(&lake, "w1", day(0), false);
    publish(&lake, "s1", first, day(0));
    let second = ingest(&lake, "w2", day(1), true);
    publish(&lake, "s2", second, day(1));
    // Nothing is old enough yet.
    assert_eq!(collect(&lake, day(1), &settings(1)).unwrap().objects, 0);

    let dry = GcSettings { dry_run: true, ..settings(1) };
    let would = collect(&lake, day(9), &dry).unwrap();
    assert_eq!(files(&*store).len(), 4, "a dry run deletes nothing");
    assert_eq!(lake.current().unwrap().versions.len(), 2);

    // Two kept versions need everything.
    collect(&lake, day(9), &settings(2)).unwrap();
    assert_eq!(files(&*store).len(), 4);

    let report = collect(&lake, day(9), &settings(1)).unwrap();
    assert_eq!((report.versions.len(), would.versions.len()), (1, 1));
    assert_eq!(files(&*store), set(&[&part("w2"), "index/s2/postings/0/postings.idx.zst"]));
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().files[0].path, part("w2"));
    // What is left opens, and the lake goes on.
    let again = Lake::open(store.clone()).unwrap();
    assert_eq!(again.current().unwrap().versions.len(), 1);
    let third = ingest(&again, "w3", day(9), false);
    assert_eq!(third, 3);
    assert_eq!(collect(&again, day(9), &settings(1)).unwrap().objects, 0);
}

#[test]
fn unpublished_commits_and_the_states_between_stay() {
    let (store, lake) = new_lake();
    let first = ingest(&lake, "w1", day(0), false);
    publish(&lake, "s1", first, day(0));
    for writer in ["w2", "w3", "w4"] {
        ingest(&lake, writer, day(0), false);
    }
    collect(&lake, day(9), &settings(1)).unwrap();
    // A fresh reader starts from the published commit and must find the newest: no number may be missing between.
    let reader = Lake::open(store).unwrap();
    assert_eq!(reader.dataset_newest(1).unwrap().unwrap().sequence, 4);
    assert_eq!(ingest(&reader, "w5", day(9), false), 5);
    assert_eq!(reader.dataset_newest(1).unwrap().unwrap().files.len(), 5);
}

fn beat(writer: &str, time: UnixMillis, prefix: &str) -> Heartbeat {
    Heartbeat { writer: writer.into(), act: "ingest".into(), beat: time, prefixes: vec![prefix.into()] }
}

#[test]
fn the_living_are_spared_and_the_dead_are_given_up() {
    let (store, lake) = new_lake();
    ingest(&lake, "w1", day(0), false);
    store.put(&part("alive"), b"x").unwrap();
    store.put("index/seg-alive/counts.bin", b"x").unwrap();
    store.put("index/seg-nobody/counts.bin", b"x").unwrap();
    lake.beat(&beat("alive", day(9), "urls/dataset_id=1/")).unwrap();
    lake.beat(&beat("builder", day(9), "index/seg-alive/")).unwrap();
    collect(&lake, day(9), &settings(1)).unwrap();
    assert!(store.exists(&part("alive")).unwrap() && store.exists("index/seg-alive/counts.bin").unwrap());
    assert!(!store.exists("index/seg-nobody/counts.bin").unwrap());
    assert_eq!(lake.heartbeats().unwrap().len(), 2);

    let report: GcReport = collect(&lake, day(11), &settings(1)).unwrap();
    assert_eq!(report.writers, ["alive", "builder"]);
    assert!(!store.exists(&part("alive")).unwrap() && !store.exists("index/seg-alive/counts.bin").unwrap());
    assert!(lake.heartbeats().unwrap().is_empty());
    // They were not dead after all: too late.
    let woken = lake.commit_dataset(1, day(11), "alive", |_| Ok(true));
    assert!(matches!(woken, Err(Error::Revoked { .. })));
    assert!(matches!(lake.commit(day(11), "builder", |_| Ok(())), Err(Error::Revoked { .. })));
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().files.len(), 1);
}

/// The commit that it makes a version of may be replaced before it is done.
#[test]
fn what_a_publisher_reads_stays() {
    let (store, lake) = new_lake();
    ingest(&lake, "w1", day(0), false);
    let newest = ingest(&lake, "w2", day(0), true);
    lake.beat(&Heartbeat { act: PUBLISH.into(), ..beat("publisher", day(9), "urls/dataset_id=1/") }).unwrap();
    collect(&lake, day(9), &settings(1)).unwrap();
    assert!(store.exists(&part("w1")).unwrap());
    // Dead, it is refused by the lake alone: it commits to no dataset.
    collect(&lake, day(11), &settings(1)).unwrap();
    assert!(!store.exists(&part("w1")).unwrap());
    assert!(matches!(lake.commit(day(11), "publisher", |_| Ok(())), Err(Error::Revoked { .. })));
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().sequence, newest);
}

#[test]
fn a_dropped_dataset_goes_once_no_version_serves_it() {
    let (store, lake) = new_lake();
    let first = ingest(&lake, "w1", day(0), false);
    publish(&lake, "s1", first, day(0));
    lake.drop_dataset(day(1), "dropper", 1).unwrap();
    assert!(lake.current().unwrap().dataset(1).unwrap().dropped);
    assert!(lake.dataset_newest(1).unwrap().unwrap().files.is_empty());
    assert_eq!(lake.current().unwrap().live_commit(1), 0, "a drop that is cut now is complete");
    collect(&lake, UnixMillis(day(1).0 + DAY / 2), &settings(1)).unwrap();
    assert!(store.exists(&part("w1")).unwrap(), "the version of a moment ago names it");
    collect(&lake, day(9), &settings(1)).unwrap();
    assert!(files(&*store).is_empty());
    assert!(matches!(lake.drop_dataset(day(1), "dropper", 7), Err(Error::UnknownDataset { .. })));
}

#[test]
fn the_list_of_a_rewritten_dataset_stays_before_it_is_the_lakes() {
    let (store, lake) = new_lake();
    ingest(&lake, "w1", day(0), false);
    let (next, nobodys) = (lake.put_suffix_list(b"io\n").unwrap(), lake.put_suffix_list(b"org\n").unwrap());
    lake.commit_dataset(1, day(0), "rewriter", |commit| {
        commit.suffix_list.clone_from(&next.hash);
        Ok(true)
    })
    .unwrap();
    collect(&lake, day(9), &settings(1)).unwrap();
    assert!(store.exists(&next.path).unwrap() && !store.exists(&nobodys.path).unwrap());
    let first = lake.current().unwrap().suffix_list.clone().unwrap();
    assert!(store.exists(&first.path).unwrap());
    // The list before stays for a while, for readers of the state before.
    lake.register_dataset(day(9), "test", &DatasetInfo::named("x")).unwrap();
    lake.commit(day(9), "test", |manifest| {
        manifest.suffix_list = Some(next.clone());
        Ok(())
    })
    .unwrap();
    collect(&lake, day(9), &settings(1)).unwrap();
    assert!(store.exists(&next.path).unwrap() && store.exists(&first.path).unwrap());
    collect(&lake, day(11), &settings(1)).unwrap();
    assert!(store.exists(&next.path).unwrap() && !store.exists(&first.path).unwrap());
}

#[test]
fn half_written_files_of_dead_processes_go() {
    let fs = FaultFs::new();
    let lake = Lake::init(Arc::new(DirStore::with_fs(fs.shared(), "lake")), day(0), "n", b"com\n").unwrap();
    let mut upload = lake.store().upload("index/s/f").unwrap();
    upload.write_all(b"half").unwrap();
    upload.flush().unwrap();
    // The process dies: its locks are gone after a reboot, its files are not.
    let rebooted = fs.reboot(trawl_io::fault::Loss::None);
    let lake = Lake::open(Arc::new(DirStore::with_fs(rebooted.shared(), "lake"))).unwrap();
    assert_eq!(collect(&lake, day(0), &settings(1)).unwrap().leftovers, 1);
    assert_eq!(collect(&lake, day(0), &settings(1)).unwrap().leftovers, 0);
}
