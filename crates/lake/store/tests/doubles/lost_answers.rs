//! A store that does what it is asked and loses the answer: how tests hold every writer to the rule that neither an
//! error nor a timeout nor an `Exists` says whose object is there.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trawl_store::{Created, Listed, RangeRead, Result, Store, Upload};

/// How the answer to a write gets lost. The write itself is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The connection breaks.
    Error,
    /// No answer comes in time.
    Timeout,
    /// The client sends the request again by itself, and a create is refused because of what the first request made. Other
    /// writes can be repeated, so they succeed.
    Resent,
    /// As [`Lost::Error`], and the next read of an object that was created fails too: nobody can tell whether it is there.
    Unreadable,
}

/// Wraps a store; its writes are numbered from 0: creates, puts, finished uploads and deletions, in the order they come.
#[derive(Debug)]
pub struct LostAnswers {
    inner: Arc<dyn Store>,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    faults: BTreeMap<u64, Lost>,
    next: AtomicU64,
    unreadable: Mutex<BTreeSet<String>>,
}

impl LostAnswers {
    /// Loses the answers to the writes of these numbers.
    pub fn new(inner: Arc<dyn Store>, faults: impl IntoIterator<Item = (u64, Lost)>) -> Self {
        let faults = faults.into_iter().collect();
        Self { inner, plan: Arc::new(Plan { faults, next: AtomicU64::new(0), unreadable: Mutex::default() }) }
    }

    /// How many writes there were.
    pub fn writes(&self) -> u64 {
        self.plan.next.load(Relaxed)
    }
}

impl Plan {
    fn unreadable(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // A set of paths is sound after any panic.
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a write that was done, on its way; `resent` is what a repeated request is told.
    fn answer<T>(&self, path: &str, told: T, resent: impl FnOnce(T) -> T) -> Result<T> {
        let fault = self.faults.get(&self.next.fetch_add(1, Relaxed));
        match fault {
            None => Ok(told),
            Some(Lost::Resent) => Ok(resent(told)),
            Some(Lost::Timeout) => Err(failed(path, ErrorKind::TimedOut)),
            Some(Lost::Error | Lost::Unreadable) => Err(failed(path, ErrorKind::ConnectionReset)),
        }
    }
}

fn failed(path: &str, kind: ErrorKind) -> trawl_store::Error {
    trawl_io::Error::io(trawl_io::Op::Write, path, kind.into()).into()
}

impl Store for LostAnswers {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        if self.plan.unreadable().remove(path) {
            return Err(failed(path, ErrorKind::ConnectionReset));
        }
        self.inner.get(path, limit)
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        self.inner.get_batch(reads)
    }

    fn len(&self, path: &str) -> Result<u64> {
        self.inner.len(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.inner.put(path, bytes)?;
        self.plan.answer(path, (), |()| ())
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        if self.plan.faults.get(&self.writes()) == Some(&Lost::Unreadable) {
            self.plan.unreadable().insert(path.to_owned());
        }
        let told = self.inner.create(path, bytes)?;
        self.plan.answer(path, told, |_| Created::Exists)
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        let inner = self.inner.upload(path)?;
        Ok(Box::new(LostUpload { inner, path: path.to_owned(), plan: self.plan.clone() }))
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.inner.list(dir)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.inner.delete(path)?;
        self.plan.answer(path, (), |()| ())
    }

    fn open_local(&self, path: &str) -> Option<PathBuf> {
        self.inner.open_local(path)
    }

    fn sweep(&self) -> Result<u64> {
        self.inner.sweep()
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

struct LostUpload {
    inner: Box<dyn Upload>,
    path: String,
    plan: Arc<Plan>,
}

impl Write for LostUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.inner.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Upload for LostUpload {
    fn finish(self: Box<Self>) -> Result<()> {
        self.inner.finish()?;
        self.plan.answer(&self.path, (), |()| ())
    }
}
