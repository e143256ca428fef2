//! Manifests of large lakes: written as what differs from a checkpoint, read as what they are.

mod common;

use common::day;
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_store::manifest::{Bases, Deny, DenyTarget, read_manifest};
use trawl_store::{DatasetInfo, Lake, Manifest, MemStore, SegmentRef, Sizes, Store, layout};

const SMALL: Sizes = Sizes { whole: 2_000, relative: 3_000 };

fn new_lake() -> (Arc<MemStore>, Lake) {
    let store = Arc::new(MemStore::new());
    let lake = Lake::init(store.clone(), day(0), "n", b"com\n").unwrap().with_sizes(SMALL);
    (store, lake)
}

fn segment(id: &str, datasets: Vec<u32>) -> SegmentRef {
    let file = |key: &str| (key.to_owned(), format!("index/{id}/{key}.bin"));
    let files = BTreeMap::from(["domains_txt", "counts", "pages"].map(file));
    SegmentRef { id: id.into(), shards: 1, rows: 7, datasets, files, ..SegmentRef::default() }
}

/// Registers and publishes one more dataset, as an ingest does; now and then segments are merged, datasets dropped.
fn step(lake: &Lake, n: u32) -> Arc<Manifest> {
    let info = DatasetInfo { source: Some(format!("list {n}")), ..DatasetInfo::named(format!("d{n}")) };
    let id = lake.register_dataset(day(0), &format!("r{n}"), &info).unwrap();
    let committed = lake.commit(day(i64::from(n)), &format!("p{n}"), |manifest| {
        let current = manifest.current().cloned().unwrap_or_default();
        let mut segments = current.segments;
        segments.push(segment(&format!("s{n}"), vec![id]));
        if segments.len() > 8 {
            let old: Vec<_> = segments.drain(1..).collect();
            segments.push(segment(&format!("m{n}"), old.iter().flat_map(|s| s.datasets.clone()).collect()));
        }
        let mut commits = (*current.commits).clone();
        commits.insert(id, 1);
        if n % 7 == 3 {
            commits.remove(&(id - 1));
            commits.entry(1).and_modify(|number| *number += 1);
            segments[0].masked.push(id);
            manifest.dataset_mut(id - 1).unwrap().dropped = true;
        }
        if n.is_multiple_of(5) {
            let target = DenyTarget::Url(format!("http://a.com/{}", "x".repeat(n as usize * 3)));
            manifest.deny.push(Deny { target, since: day(0).to_string(), reason: None });
        }
        if n.is_multiple_of(11) && id > 3 {
            manifest.datasets.retain(|dataset| dataset.id != id - 2);
        }
        manifest.revoked = vec![format!("dead-{n}")];
        manifest.publish(day(i64::from(n)), segments, commits);
        Ok(())
    });
    committed.unwrap().manifest
}

#[test]
fn every_state_reads_back_as_it_was_committed() {
    let (store, lake) = new_lake();
    let mut states = Vec::new();
    for n in 1..120 {
        states.push(step(&lake, n));
    }
    assert!(store.list(layout::CHECKPOINTS).unwrap().len() > 3, "checkpoints were written");
    for state in &states {
        // By this lake, by one that has just been opened, and whole.
        assert_eq!(lake.manifest(state.sequence).unwrap().as_ref(), Some(&**state));
        let fresh = Lake::open(store.clone()).unwrap();
        assert_eq!(fresh.manifest(state.sequence).unwrap().as_ref(), Some(&**state));
        assert_eq!(Manifest::parse("m", &state.to_json()).unwrap(), **state);
    }
    let newest = states.last().unwrap();
    assert_eq!(Lake::open(store.clone()).unwrap().current().unwrap(), *newest);
    assert_eq!(newest.versions.len(), trawl_store::manifest::MAX_VERSIONS);
    assert!(newest.deny.len() > 20);
    assert!(!store.list("index/deny").unwrap().is_empty(), "a long list is an object of its own");
}

#[test]
fn the_loss_of_any_one_file_loses_nothing() {
    let (store, lake) = new_lake();
    let mut newest = step(&lake, 1);
    for n in 2..60 {
        newest = step(&lake, n);
    }
    let objects = store.list("index").unwrap();
    let paths = objects.iter().map(|object| object.path.clone()).filter(|path| !path.contains("suffix"));
    for path in paths {
        let bytes = store.get(&path, 1 << 20).unwrap();
        store.delete(&path).unwrap();
        let found = Lake::open(store.clone()).unwrap_or_else(|e| panic!("without {path}: {e}")).current().unwrap();
        assert_eq!(found, newest, "without {path}");
        let mut turned = bytes.to_vec();
        turned[bytes.len() / 2] ^= 4;
        store.put(&path, &turned).unwrap();
        // Damage is noticed: right, or an error that names the file; never something else.
        match Lake::open(store.clone()).and_then(|lake| lake.current()) {
            Ok(found) => assert_eq!(found, newest, "with {path} damaged"),
            Err(error) => assert!(error.to_string().contains(&path), "{path}: {error}"),
        }
        store.put(&path, &bytes).unwrap();
    }
}

#[test]
fn a_commit_costs_what_it_changes() {
    let store = Arc::new(MemStore::new());
    let lake = Lake::init(store.clone(), day(0), "n", b"com\n").unwrap();
    let mut sizes = Vec::new();
    let bytes = |store: &MemStore| store.list("index").unwrap().iter().map(|object| object.len).sum::<u64>();
    for n in 1..=600 {
        let info = DatasetInfo::named(format!("dataset-{n}"));
        let id = lake.register_dataset(day(0), &format!("r{n}"), &info).unwrap();
        lake.commit(day(0), &format!("p{n}"), |manifest| {
            let current = manifest.current().cloned().unwrap_or_default();
            let mut segments = current.segments;
            segments.drain(..segments.len().saturating_sub(7));
            segments.push(segment(&format!("20260102030405-{n:032}-0"), vec![id]));
            let mut commits = (*current.commits).clone();
            commits.insert(id, 1);
            Ok(manifest.publish(day(0), segments, commits))
        })
        .unwrap();
        sizes.push(bytes(&store));
    }
    let (early, late) = (sizes[119] - sizes[19], sizes[599] - sizes[499]);
    assert!(late < early * 3 / 2, "{early} bytes for 100 commits at first, {late} later");
    assert!(sizes[599] < 12_000_000, "{}", sizes[599]);
    let copy = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&copy).unwrap();
    let version = text["versions"].as_array().unwrap().last().unwrap();
    assert_eq!(version["version"], text["current_version"], "the seed's keys are in the copy");
    assert_eq!(version["segments"].as_array().unwrap().len(), 8, "the current version is whole");
    assert!(read_manifest(&*store, &Bases::default(), "copy", &copy).is_ok());
}
