//! A store whose reads can be held back: how tests look at a reader in the middle of an answer.

use bytes::Bytes;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use trawl_store::{Created, Listed, RangeRead, Result, Store, Upload};

/// Wraps a store; while it is shut, reads of some objects wait.
#[derive(Debug)]
pub struct GatedStore {
    inner: Arc<dyn Store>,
    /// Which ones, by how their paths begin.
    prefix: &'static str,
    remote: bool,
    /// Whether it is shut, and how many reads of them have come.
    gate: Mutex<(bool, u64)>,
    changed: Condvar,
}

impl GatedStore {
    /// Open, no reads yet; it will hold back reads of objects whose paths begin so.
    pub fn new(inner: Arc<dyn Store>, prefix: &'static str) -> Self {
        Self { inner, prefix, remote: false, gate: Mutex::new((false, 0)), changed: Condvar::new() }
    }

    /// The same, as a store far away.
    pub fn remote(inner: Arc<dyn Store>, prefix: &'static str) -> Self {
        Self { remote: true, ..Self::new(inner, prefix) }
    }

    /// Holds reads back from now on, and counts them from zero.
    pub fn shut(&self) {
        *self.gate.lock().unwrap() = (true, 0);
    }

    /// Lets all of them go on.
    pub fn open(&self) {
        self.gate.lock().unwrap().0 = false;
        self.changed.notify_all();
    }

    /// Reads that have come since it was shut, held back or not.
    pub fn came(&self) -> u64 {
        self.gate.lock().unwrap().1
    }
}

impl GatedStore {
    fn pass(&self, path: &str) {
        if path.starts_with(self.prefix) {
            let mut gate = self.gate.lock().unwrap();
            gate.1 += 1;
            drop(self.changed.wait_while(gate, |(shut, _)| *shut).unwrap());
        }
    }
}

impl Store for GatedStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        self.pass(path);
        self.inner.get(path, limit)
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        // Batches come grouped by file.
        reads.first().into_iter().for_each(|read| self.pass(&read.path));
        self.inner.get_batch(reads)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.inner.len(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put(path, bytes)
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        self.inner.create(path, bytes)
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.inner.upload(path)
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.inner.list(dir)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.inner.delete(path)
    }

    fn open_local(&self, _path: &str) -> Option<PathBuf> {
        // Nothing is read past the gate.
        None
    }

    fn is_remote(&self) -> bool {
        self.remote
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}
