//! The writer's thread: takes what is ready, commits on time, acknowledges; writes indexes of closed archive files aside.

use crate::commit::{Acked, Committer, Item};
use crate::derived::{Range, extend, late_archive, write_captures};
use crate::error::Error;
use crate::layout::Layout;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trawl_archive::Format;
use trawl_io::Fs;

/// When to commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rhythm {
    pub interval: Duration,
    pub bytes: u64,
}

/// The writer as the crawl sees it.
pub(crate) struct Writer {
    /// Never full: it holds as much as may be unacknowledged.
    pub items: SyncSender<Item>,
    pub acks: mpsc::Receiver<Acked>,
    pub thread: JoinHandle<Result<Vec<Range>, Error>>,
}

/// Starts the writer. At most `capacity` items may be unacknowledged at a time.
pub(crate) fn start(
    fs: Arc<dyn Fs>,
    layout: Layout,
    format: Arc<dyn Format>,
    committer: Committer,
    ranges: Vec<Range>,
    rhythm: Rhythm,
    capacity: usize,
) -> Result<Writer, Error> {
    let (items, rx) = sync_channel(capacity);
    let (tx, acks) = mpsc::channel(capacity);
    let indexer = Indexer { fs, layout, format, ranges, thread: None };
    let thread = std::thread::Builder::new()
        .name("trawl-writer".into())
        .spawn(move || write(committer, indexer, rhythm, &rx, &tx))
        .map_err(|source| Error::Thread { what: "writer", source })?;
    Ok(Writer { items, acks, thread })
}

fn write(
    mut committer: Committer,
    mut indexer: Indexer,
    rhythm: Rhythm,
    items: &Receiver<Item>,
    acks: &mpsc::Sender<Acked>,
) -> Result<Vec<Range>, Error> {
    let mut due = Instant::now();
    loop {
        let next = if committer.is_idle() {
            items.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            items.recv_timeout(due.saturating_duration_since(Instant::now()))
        };
        let ended = matches!(next, Err(RecvTimeoutError::Disconnected));
        if let Ok(item) = next {
            if committer.is_idle() {
                due = Instant::now() + rhythm.interval;
            }
            committer.add(item)?;
        }
        let is_due = ended || committer.waiting_bytes() >= rhythm.bytes || Instant::now() >= due;
        if is_due && let Some(acked) = committer.commit()? {
            indexer.committed(committer.durable().current(), acked.offset)?;
            // Nobody listens any more when the crawl failed: what was committed is safe all the same.
            let _ = acks.blocking_send(acked);
        }
        if ended {
            committer.finish()?;
            return indexer.finish();
        }
    }
}

/// Writes the index of an archive file once it is closed, one at a time, on a thread of its own.
struct Indexer {
    fs: Arc<dyn Fs>,
    layout: Layout,
    format: Arc<dyn Format>,
    ranges: Vec<Range>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Indexer {
    fn committed(&mut self, file: &str, offset: u64) -> Result<(), Error> {
        let closed = self.ranges.last().cloned();
        if let (true, Some(range)) = (extend(&mut self.ranges, file, offset), closed) {
            self.wait()?;
            let (fs, layout, n) = (self.fs.clone(), self.layout.clone(), self.ranges.len() - 2);
            let format = self.format.clone();
            let thread = std::thread::Builder::new().name("trawl-index".into()).spawn(move || {
                let late = late_archive(&fs, &layout, &range, &*format)?;
                write_captures(&fs, &layout.journal, Some(&range), &layout.captures(Some(n)), late.as_deref())
            });
            self.thread = Some(thread.map_err(|source| Error::Thread { what: "index writer", source })?);
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Error> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(failed("index writer")),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Vec<Range>, Error> {
        self.wait()?;
        Ok(self.ranges)
    }
}

/// A thread of ours panicked.
pub(crate) fn failed(what: &'static str) -> Error {
    Error::Thread { what, source: io::Error::other("the thread panicked") }
}
