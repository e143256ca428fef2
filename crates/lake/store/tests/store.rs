//! What every store promises, run on each implementation.

mod doubles;

use doubles::{CountingStore, Counts};
use std::sync::Arc;
use trawl_store::{
    BlockCache, CachedStore, Created, DirStore, Error, Listed, MemStore, RangeRead, RemoteSettings, RemoteStore, Store,
};

fn conformance(store: &dyn Store) {
    trawl_store::conformance::basics(store);
}

#[test]
fn memory_and_a_client_over_memory() {
    let memory = Arc::new(object_store::memory::InMemory::new());
    let root = object_store::path::Path::from("a/lake");
    let remote = RemoteStore::new(memory.clone(), Some(memory), root, "remote".into(), RemoteSettings::default());
    let stores: [Arc<dyn Store>; 2] = [Arc::new(MemStore::new()), Arc::new(remote)];
    for store in stores {
        conformance(&*store);
        trawl_store::conformance::races(&store, 5, 24);
        trawl_store::conformance::volume(&*store, 20);
        trawl_store::conformance::publishers(&store, &store, 3, 4);
    }
    let cache = tempfile::tempdir().unwrap();
    let cache = Arc::new(BlockCache::open(cache.path(), 1 << 20).unwrap());
    conformance(&CachedStore::new(Arc::new(MemStore::new()), cache));
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
