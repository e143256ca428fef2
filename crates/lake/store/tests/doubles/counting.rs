//! A store that counts what is asked of it: how tests hold a lookup to its number of reads.

use bytes::Bytes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use trawl_store::{Created, Listed, RangeRead, Result, Store, Upload};

/// What was asked of a [`CountingStore`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that had to wait for the store, a batch counting once: what latency multiplies.
    pub rounds: u64,
    /// Objects or ranges read.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Objects written.
    pub writes: u64,
}

/// Wraps a store and counts. It hides local files, so that nothing is read past the counters.
#[derive(Debug)]
pub struct CountingStore {
    inner: Arc<dyn Store>,
    rounds: AtomicU64,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    delay: Duration,
    poll_every: Duration,
    /// Whether questions wait, and how many have come since.
    held: Mutex<(bool, u64)>,
    changed: Condvar,
}

/// Until it is dropped, whoever asks whether an object is there waits.
pub struct Held<'a>(&'a CountingStore);

impl Held<'_> {
    /// Waits until somebody asks.
    pub fn came(&self) {
        let held = self.0.held.lock().unwrap();
        drop(self.0.changed.wait_while(held, |(_, came)| *came == 0).unwrap());
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.held.lock().unwrap() = (false, 0);
        self.0.changed.notify_all();
    }
}

impl CountingStore {
    /// Starts at zero.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self::polled(inner, Duration::ZERO)
    }

    /// The same, as a store that is asked for the newest state only so often.
    pub fn polled(inner: Arc<dyn Store>, poll_every: Duration) -> Self {
        Self {
            inner,
            poll_every,
            held: Mutex::default(),
            changed: Condvar::new(),
            rounds: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            delay: Duration::ZERO,
        }
    }

    /// One that answers each round so much later, as a server far away.
    pub fn delayed(inner: Arc<dyn Store>, delay: Duration) -> Self {
        Self { delay, ..Self::new(inner) }
    }

    /// Everything since the start or the last call of this, which sets back to zero.
    pub fn take(&self) -> Counts {
        Counts {
            rounds: self.rounds.swap(0, Relaxed),
            reads: self.reads.swap(0, Relaxed),
            bytes_read: self.bytes_read.swap(0, Relaxed),
            writes: self.writes.swap(0, Relaxed),
        }
    }

    /// Holds questions for objects back.
    pub fn hold(&self) -> Held<'_> {
        *self.held.lock().unwrap() = (true, 0);
        Held(self)
    }

    fn round(&self) {
        self.rounds.fetch_add(1, Relaxed);
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
    }

    fn read(&self, bytes: &Bytes) {
        self.reads.fetch_add(1, Relaxed);
        self.bytes_read.fetch_add(bytes.len() as u64, Relaxed);
    }
}

impl Store for CountingStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        self.round();
        self.inner.get(path, limit).inspect(|bytes| self.read(bytes))
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        self.round();
        self.inner.get_batch(reads).inspect(|all| all.iter().for_each(|bytes| self.read(bytes)))
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.round();
        let mut held = self.held.lock().unwrap();
        held.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(held, |(held, _)| *held).unwrap());
        self.inner.len(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.round();
        self.writes.fetch_add(1, Relaxed);
        self.inner.put(path, bytes)
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        self.round();
        self.writes.fetch_add(1, Relaxed);
        self.inner.create(path, bytes)
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.writes.fetch_add(1, Relaxed);
        self.inner.upload(path)
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.round();
        self.inner.list(dir)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.round();
        self.inner.delete(path)
    }

    fn open_local(&self, _path: &str) -> Option<PathBuf> {
        None
    }

    fn sweep(&self) -> Result<u64> {
        self.inner.sweep()
    }

    fn poll_every(&self) -> Duration {
        self.poll_every
    }

    fn is_remote(&self) -> bool {
        !self.poll_every.is_zero()
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}
