//! What every store promises, run on each implementation.

mod doubles;

use doubles::{CountingStore, Counts};
use std::sync::Arc;
use trawl_store::{Created, DirStore, Error, Listed, RangeRead, Store, probe};

fn conformance(store: &dyn Store) {
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

#[test]
fn directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirStore::new(dir.path().join("lake"));
    conformance(&store);
    assert_eq!(std::fs::read(store.open_local("a/c/d").unwrap()).unwrap(), b"0123456789");
}

#[test]
fn counting() {
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::new(Arc::new(DirStore::new(dir.path())));
    conformance(&store);
    store.take();
    let _ = store.get_ranges("a/c/d", &[0..2, 3..4]).unwrap();
    let _ = store.get("a/c/d", 10).unwrap();
    store.put("x", b"").unwrap();
    assert_eq!(store.take(), Counts { rounds: 3, reads: 3, bytes_read: 13, writes: 1 });
    assert_eq!(store.take(), Counts::default());
    assert_eq!(store.open_local("a/c/d"), None, "nothing may be read past the counters");
}

#[test]
fn of_racing_creators_exactly_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirStore::new(dir.path());
    for round in 0..20 {
        let path = format!("r/{round}");
        let wins: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8u8)
                .map(|i| {
                    let (store, path) = (&store, &path);
                    scope.spawn(move || store.create(path, &[i; 100]).unwrap() == Created::New)
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let winner = wins.iter().position(|w| *w).unwrap();
        assert_eq!(wins.iter().filter(|w| **w).count(), 1);
        assert_eq!(store.get(&path, 100).unwrap(), vec![winner as u8; 100]);
    }
}

/// A store whose create overwrites, as some servers do.
#[derive(Debug)]
struct Liar(DirStore);

impl Store for Liar {
    fn create(&self, path: &str, bytes: &[u8]) -> trawl_store::Result<Created> {
        self.0.put(path, bytes).map(|()| Created::New)
    }
    fn get(&self, path: &str, limit: u64) -> trawl_store::Result<bytes::Bytes> {
        self.0.get(path, limit)
    }
    fn get_batch(&self, reads: &[RangeRead]) -> trawl_store::Result<Vec<bytes::Bytes>> {
        self.0.get_batch(reads)
    }
    fn len(&self, path: &str) -> trawl_store::Result<u64> {
        self.0.len(path)
    }
    fn put(&self, path: &str, bytes: &[u8]) -> trawl_store::Result<()> {
        self.0.put(path, bytes)
    }
    fn upload(&self, path: &str) -> trawl_store::Result<Box<dyn trawl_store::Upload>> {
        self.0.upload(path)
    }
    fn list(&self, dir: &str) -> trawl_store::Result<Vec<Listed>> {
        self.0.list(dir)
    }
    fn delete(&self, path: &str) -> trawl_store::Result<()> {
        self.0.delete(path)
    }
    fn open_local(&self, path: &str) -> Option<std::path::PathBuf> {
        self.0.open_local(path)
    }
    fn place(&self) -> String {
        self.0.place()
    }
}

#[test]
fn a_store_that_lies_is_refused_before_the_first_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Liar(DirStore::new(dir.path())));
    let error = trawl_store::Lake::init(store.clone(), trawl_model::UnixMillis(0), "n", b"com").unwrap_err();
    assert!(matches!(error, Error::NotExclusive { .. }), "{error}");
    assert!(store.list("index").unwrap().is_empty());
}
