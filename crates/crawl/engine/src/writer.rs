//! The writer's thread: takes what is ready, commits on time, acknowledges; writes indexes of closed archive files aside.

use crate::commit::{Committer, Item, Message};
use crate::derived::write_captures;
use crate::error::Error;
use crate::layout::Layout;
use crate::record::SpoolEnd;
use std::collections::VecDeque;
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
    pub messages: mpsc::Receiver<Message>,
    pub thread: JoinHandle<Result<(), Error>>,
}

/// Starts the writer. At most `capacity` items may be on their way at a time.
pub(crate) fn start(
    fs: Arc<dyn Fs>,
    layout: Layout,
    format: Arc<dyn Format>,
    committer: Committer,
    rhythm: Rhythm,
    capacity: usize,
) -> Result<Writer, Error> {
    let (items, rx) = sync_channel(capacity);
    let (tx, messages) = mpsc::channel(capacity);
    let indexer = Indexer::start(fs, layout, format)?;
    let thread = std::thread::Builder::new()
        .name("trawl-writer".into())
        .spawn(move || write(committer, indexer, rhythm, &rx, &tx))
        .map_err(|source| Error::Thread { what: "writer", source })?;
    Ok(Writer { items, messages, thread })
}

fn write(
    mut committer: Committer,
    mut indexer: Indexer,
    rhythm: Rhythm,
    items: &Receiver<Item>,
    messages: &mpsc::Sender<Message>,
) -> Result<(), Error> {
    let mut due = Instant::now();
    loop {
        let next = if committer.is_idle() {
            items.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            items.recv_timeout(due.saturating_duration_since(Instant::now()))
        };
        let was_idle = committer.is_idle();
        let mut hurry = false;
        match next {
            Ok(Item::Event(event, site)) => committer.add_event(*event, site)?,
            Ok(Item::Seeds(batch)) => committer.add_seeds(batch),
            Ok(Item::Hurry) => hurry = true,
            Ok(Item::Acknowledge(ticket, share)) => {
                committer.acknowledge(ticket)?;
                if !indexer.acknowledged() {
                    return indexer.finish();
                }
                let _ = messages.blocking_send(Message::Acked(share));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                // What is not in the journal must not get a final name: a resume cuts it off.
                if committer.is_clean() {
                    committer.finish()?;
                }
                return indexer.finish();
            }
        }
        if was_idle && !committer.is_idle() {
            due = Instant::now() + rhythm.interval;
        }
        let is_due = hurry || committer.waiting_bytes() >= rhythm.bytes || Instant::now() >= due;
        if is_due && let Some(synced) = committer.sync()? {
            indexer.closed.push_back(synced.ends.closed.clone());
            // The receiver is gone when the crawl failed: a resume cuts off what was synced.
            let _ = messages.blocking_send(Message::Synced(synced));
        }
    }
}

/// Writes the index of an archive file once it is closed, one at a time, on a thread of its own.
struct Indexer {
    /// For each batch that is not acknowledged, the spool that it closed.
    closed: VecDeque<Option<SpoolEnd>>,
    /// Takes a spool once the one before it is written.
    spools: SyncSender<SpoolEnd>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Indexer {
    fn start(fs: Arc<dyn Fs>, layout: Layout, format: Arc<dyn Format>) -> Result<Self, Error> {
        let (spools, rx) = sync_channel::<SpoolEnd>(0);
        // One thread for all files: glibc gave a new thread another of its 16 arenas each time, and each kept the 35 MiB that the rows of
        // a file take while they are encoded, so that a crawl grew by as much with each archive file.
        let thread = std::thread::Builder::new()
            .name("trawl-index".into())
            .spawn(move || rx.iter().try_for_each(|spool| write_captures(&fs, &layout, &spool, &*format)))
            .map_err(|source| Error::Thread { what: "index writer", source })?;
        Ok(Self { closed: VecDeque::new(), spools, thread })
    }

    /// The oldest batch is durable, and so are the rows of all before it. `false` if the thread has failed.
    fn acknowledged(&mut self) -> bool {
        self.closed.pop_front().flatten().is_none_or(|spool| self.spools.send(spool).is_ok())
    }

    fn finish(self) -> Result<(), Error> {
        drop(self.spools);
        self.thread.join().map_err(|_| failed("index writer"))?
    }
}

/// A thread of ours panicked.
pub(crate) fn failed(what: &'static str) -> Error {
    Error::Thread { what, source: io::Error::other("the thread panicked") }
}
