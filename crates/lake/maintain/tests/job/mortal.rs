//! A store as one process sees it: the process may be killed at any operation, lose an answer, or be stopped for a while.

use bytes::Bytes;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use trawl_io::Op;
use trawl_store::{Created, Error, Listed, RangeRead, Result, Store, Upload};

/// What befalls the process at one of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Lives,
    /// It ends there; whether that operation was still done is told by the flag.
    Dies {
        done: bool,
    },
    /// It hears that the operation failed, and goes on.
    LosesAnswer {
        done: bool,
    },
    /// It waits there until the gate opens.
    Sleeps,
}

/// Holds those who sleep.
#[derive(Debug, Default)]
pub struct Gate(Mutex<bool>, Condvar);

impl Gate {
    pub fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

#[derive(Debug, Clone)]
pub struct Mortal(Arc<Life>);

#[derive(Debug)]
struct Life {
    inner: Arc<dyn Store>,
    fate: Fate,
    at: u64,
    steps: AtomicU64,
    dead: AtomicBool,
    gate: Arc<Gate>,
}

impl Mortal {
    /// A process that meets its fate at its `at`-th operation.
    pub fn new(inner: &Arc<dyn Store>, fate: Fate, at: u64, gate: &Arc<Gate>) -> Self {
        let (steps, dead) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Life { inner: inner.clone(), fate, at, steps, dead, gate: gate.clone() }))
    }

    fn act<T>(&self, path: &str, act: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        let life = &*self.0;
        let killed =
            || Err(Error::Io(trawl_io::Error::io(Op::Write, path, io::Error::other("the process was killed"))));
        if life.dead.load(SeqCst) {
            return killed();
        }
        let fate = if life.steps.fetch_add(1, SeqCst) == life.at { life.fate } else { Fate::Lives };
        match fate {
            Fate::Lives => {}
            Fate::Sleeps => life.gate.wait(),
            Fate::Dies { done } | Fate::LosesAnswer { done } => {
                life.dead.store(matches!(fate, Fate::Dies { .. }), SeqCst);
                if done {
                    let _ = act(&*life.inner);
                }
                return killed();
            }
        }
        act(&*life.inner)
    }
}

impl Store for Mortal {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        self.act(path, |store| store.get(path, limit))
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        self.act("ranges", |store| store.get_batch(reads))
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.act(path, |store| store.len(path))
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.act(path, |store| store.put(path, bytes))
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        self.act(path, |store| store.create(path, bytes))
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        let inner = self.act(path, |store| store.upload(path))?;
        Ok(Box::new(MortalUpload { store: self.clone(), path: path.to_owned(), inner }))
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.act(dir, |store| store.list(dir))
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.act(path, |store| store.delete(path))
    }

    fn open_local(&self, _path: &str) -> Option<PathBuf> {
        None
    }

    fn place(&self) -> String {
        "a process".into()
    }
}

struct MortalUpload {
    store: Mortal,
    path: String,
    inner: Box<dyn Upload>,
}

impl Write for MortalUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.inner.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Upload for MortalUpload {
    fn finish(self: Box<Self>) -> Result<()> {
        let Self { store, path, inner } = *self;
        store.act(&path, |_| inner.finish())
    }
}
