//! What every store promises: for the tests of implementations of [`Store`].
//!
//! Each function takes an empty store and panics where it breaks a promise. Stores in directories, in memory and on real
//! servers run the same ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails panics"
)]

use crate::{Created, DatasetInfo, Error, Lake, Listed, RangeRead, SegmentRef, Store, probe};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use trawl_model::UnixMillis;

/// Reads, writes, lists and refuses as it should.
pub fn basics(store: &dyn Store) {
    assert!(store.get("a/b", 10).unwrap_err().is_not_found());
    assert!(store.len("a/b").unwrap_err().is_not_found());
    assert!(!store.exists("a/b").unwrap());
    assert!(store.list("a").unwrap().is_empty());
    store.delete("a/b").unwrap();

    store.put("a/b", b"one").unwrap();
    store.put("a/b", b"three").unwrap();
    assert_eq!(store.get("a/b", 5).unwrap(), "three");
    assert!(matches!(store.get("a/b", 4), Err(Error::OverLimit { found: 5, limit: 4, .. })));
    assert_eq!(store.len("a/b").unwrap(), 5);
    assert!(store.len("a").unwrap_err().is_not_found(), "a directory is no object");

    assert_eq!(store.create("a/b", b"x").unwrap(), Created::Exists);
    assert_eq!(store.get("a/b", 5).unwrap(), "three");
    assert_eq!(store.create("a/c/d", b"0123456789").unwrap(), Created::New);

    let ranges = store.get_ranges("a/c/d", &[2..4, 0..0, 0..10, 9..10]).unwrap();
    assert_eq!(ranges, ["23", "", "0123456789", "9"]);
    for bad in [9..11, 11..12, u64::MAX - 1..u64::MAX] {
        assert!(store.get_ranges("a/c/d", &[bad]).is_err());
    }
    let read = |path: &str, range| RangeRead { path: path.into(), range };
    let batch = store.get_batch(&[read("a/c/d", 1..2), read("a/b", 0..2), read("a/c/d", 3..5)]).unwrap();
    assert_eq!(batch, ["1", "th", "34"]);
    assert!(store.get_batch(&[read("a/b", 0..1), read("none", 0..1)]).unwrap_err().is_not_found());

    let mut upload = store.upload("a/e").unwrap();
    upload.write_all(&[7; 300_000]).unwrap();
    assert!(!store.exists("a/e").unwrap(), "nothing appears before finish");
    upload.finish().unwrap();
    assert_eq!(store.get("a/e", 300_000).unwrap(), vec![7; 300_000]);
    let mut dropped = store.upload("a/f").unwrap();
    dropped.write_all(b"x").unwrap();
    drop(dropped);

    let listed = |path: &str, len| Listed { path: path.into(), len };
    store.put("a-b/x", b"1").unwrap();
    assert_eq!(store.list("a").unwrap(), [listed("a/b", 5), listed("a/c/d", 10), listed("a/e", 300_000)]);
    store.delete("a/b").unwrap();
    assert_eq!(store.list("a").unwrap(), [listed("a/c/d", 10), listed("a/e", 300_000)]);

    for bad in ["", "/a", "../a", "a/../../b", "a//b", ".a"] {
        assert!(store.put(bad, b"").is_err() && store.get(bad, 1).is_err() && store.create(bad, b"").is_err(), "{bad}");
        assert!(store.upload(bad).is_err() && store.len(bad).is_err() && store.delete(bad).is_err(), "{bad}");
        assert!(store.open_local(bad).is_none() && store.list(bad).is_err(), "{bad}");
    }
    probe(store, "n1").unwrap();
    assert!(store.list("index").unwrap().is_empty(), "the probe leaves nothing behind");
}

/// Of writers that create one name at the same time exactly one wins, and its bytes are there.
pub fn races(store: &Arc<dyn Store>, rounds: u32, writers: u8) {
    for round in 0..rounds {
        let path = format!("r/{round}");
        let wins: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..writers)
                .map(|i| {
                    let path = &path;
                    scope.spawn(move || store.create(path, &[i; 100]).unwrap() == Created::New)
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let winner = wins.iter().position(|w| *w).unwrap();
        assert_eq!(wins.iter().filter(|w| **w).count(), 1, "{path}: {wins:?}");
        assert_eq!(store.get(&path, 100).unwrap(), vec![winner as u8; 100]);
    }
}

/// More objects than one answer of a list holds, and one that needs several parts.
pub fn volume(store: &dyn Store, objects: u32) {
    for n in 0..objects {
        store.put(&format!("many/{n:05}"), b"x").unwrap();
    }
    let listed = store.list("many").unwrap();
    assert_eq!(listed.len(), objects as usize);
    assert!(listed.is_sorted());
    let bytes: Vec<u8> = (0..12_000_000u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let mut upload = store.upload("large").unwrap();
    bytes.chunks(333_333).for_each(|piece| upload.write_all(piece).unwrap());
    upload.finish().unwrap();
    let ranges = [0..10, 5_000_000..9_000_001, 11_999_999..12_000_000];
    let cut = |range: &std::ops::Range<u64>| bytes[range.start as usize..range.end as usize].to_vec();
    assert_eq!(store.get_ranges("large", &ranges).unwrap(), ranges.iter().map(cut).collect::<Vec<_>>());
    assert_eq!(store.len("large").unwrap(), 12_000_000);
}

/// Publishers that race on one lake: every change is in the end there once, in a series without gaps, as `judge` sees it: the same store
/// or, where that may answer with a list of a moment ago, the one behind it.
pub fn publishers(store: &Arc<dyn Store>, judge: &Arc<dyn Store>, publishers: u32, each: u32) {
    let now = UnixMillis(1_782_262_923_456);
    Lake::init(store.clone(), now, "probe", b"com\n").unwrap();
    std::thread::scope(|scope| {
        for publisher in 0..publishers {
            scope.spawn(move || {
                let lake = Lake::open(store.clone()).unwrap();
                for n in 0..each {
                    let name = format!("d-{publisher}-{n}");
                    let id = lake.register_dataset(now, &format!("r-{name}"), &DatasetInfo::named(&name)).unwrap();
                    let segment = SegmentRef { id: format!("s-{name}"), datasets: vec![id], ..SegmentRef::default() };
                    lake.commit(now, &format!("p-{name}"), |manifest| {
                        let current = manifest.current().cloned().unwrap_or_default();
                        let segments = [current.segments, vec![segment.clone()]].concat();
                        let mut commits: BTreeMap<u32, u64> = (*current.commits).clone();
                        commits.insert(id, u64::from(n) + 1);
                        Ok(manifest.publish(now, segments, commits))
                    })
                    .unwrap();
                }
            });
        }
    });
    let manifest = Lake::open(judge.clone()).unwrap().current().unwrap();
    let all = (publishers * each) as usize;
    assert_eq!(manifest.datasets.len(), all);
    let current = manifest.current().unwrap();
    assert_eq!((current.segments.len(), current.commits.len()), (all, all));
    assert_eq!(manifest.sequence, 1 + 2 * all as u64, "each commit once");
    let listed = judge.list(crate::layout::MANIFESTS).unwrap();
    assert_eq!(listed.len() as u64, manifest.sequence, "no gaps");
}
