//! Sources to sorted records: threads read and parse splits, one sorter takes what they make.

use crate::record::{self, Shape};
use crate::rejects::Rejects;
use crate::settings::{IngestSettings, Progress, Stage};
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use trawl_model::{Advice, DoorError, Split, UrlSource};
use trawl_sort::{Sorted, Sorter};
use trawl_url::{LakeUrl, SuffixList};

/// Bytes of records a thread gathers before it hands them over.
const ARENA_BYTES: usize = 1 << 20;

/// Bytes of a record at most, however much memory there is: a rewrite with the usual memory must be able to take every row.
const MAX_RECORD_BYTES: usize = (32 << 20) - (64 << 10);

/// Records one after the other, with the end of each.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// What all threads share.
struct Shared<'a> {
    sources: &'a [&'a dyn UrlSource],
    work: Vec<(usize, Split)>,
    next: AtomicUsize,
    stop: AtomicBool,
    bytes_done: AtomicU64,
    suffixes: &'a SuffixList,
    rejects: &'a Rejects<'a>,
    digits: u8,
    max_record: usize,
}

/// What the sources held.
pub(crate) struct Mapped {
    pub sorted: Sorted,
    pub shape: Shape,
    pub rows: u64,
}

/// Reads all sources. `tick` is called often, from the calling thread.
pub(crate) fn map(
    sources: &[&dyn UrlSource],
    suffixes: &SuffixList,
    digits: u8,
    rejects: &Rejects<'_>,
    settings: &IngestSettings,
    tick: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Mapped> {
    let mut work = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        work.extend(source.splits(settings.split_bytes.max(1))?.into_iter().map(|split| (i, split)));
    }
    let total = work.iter().map(|(_, split)| split.end.saturating_sub(split.start)).sum();
    let threads = settings.threads.max(1);
    let mut sorter = Sorter::builder(&settings.temp_dir)
        .fs(settings.temp_fs.clone())
        .memory_bytes(settings.memory_bytes / 2)
        .threads(threads)
        .holder(format!("ingest {}", settings.writer))
        .build()?;
    let shared = Shared {
        sources,
        work,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        bytes_done: AtomicU64::new(0),
        suffixes,
        rejects,
        digits,
        max_record: sorter.max_record_bytes().min(MAX_RECORD_BYTES),
    };
    let (shape, rows) = std::thread::scope(|scope| {
        let (send, receive) = sync_channel(threads);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (send, shared) = (send.clone(), &shared);
                scope.spawn(move || {
                    let done = work_off(shared, &send);
                    if done.is_err() {
                        shared.stop.store(true, Relaxed);
                    }
                    done
                })
            })
            .collect();
        drop(send);
        let pushed = push_all(&receive, &mut sorter, |rows| {
            let rejected = rejects.total();
            let done = shared.bytes_done.load(Relaxed);
            tick(Progress { stage: Stage::Reading, rows, rejected, done, total })
        });
        // A sorter that failed takes no more: let the threads notice.
        if pushed.is_err() {
            shared.stop.store(true, Relaxed);
        }
        drop(receive);
        let mut shape = Shape::default();
        let mut failed = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(found)) => shape = shape.or(found),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(_) => failed = failed.or(Some(Error::Ended { what: "a thread that reads sources" })),
            }
        }
        // The sorter's error is the cause when both have one.
        let rows = pushed?;
        failed.map_or(Ok((shape, rows)), Err)
    })?;
    Ok(Mapped { sorted: sorter.finish()?, shape, rows })
}

fn push_all(receive: &Receiver<Arena>, sorter: &mut Sorter, mut tick: impl FnMut(u64) -> Result<()>) -> Result<u64> {
    let mut rows = 0;
    for arena in receive {
        let mut start = 0;
        for end in arena.ends {
            sorter.push(arena.bytes.get(start..end).unwrap_or_default(), &[])?;
            start = end;
            rows += 1;
        }
        tick(rows)?;
    }
    Ok(rows)
}

fn work_off(shared: &Shared<'_>, send: &SyncSender<Arena>) -> Result<Shape> {
    let mut worker = Worker {
        shared,
        send,
        arena: Arena::default(),
        shape: Shape::default(),
        url: LakeUrl::default(),
        key: String::new(),
    };
    while let Some((source, split)) = shared.work.get(shared.next.fetch_add(1, Relaxed)) {
        if shared.stop.load(Relaxed) {
            break;
        }
        let Some(source) = shared.sources.get(*source) else { break };
        let uri = source.identity().uri;
        source.read(*split, &mut |item| worker.take(&uri, item))?;
        shared.bytes_done.fetch_add(split.end.saturating_sub(split.start), Relaxed);
    }
    // Nobody listens any more if the sorter failed; its error is the one to tell.
    let _ = worker.hand_over();
    Ok(worker.shape)
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    send: &'a SyncSender<Arena>,
    arena: Arena,
    shape: Shape,
    url: LakeUrl,
    /// Room for a SURT key.
    key: String,
}

impl Worker<'_> {
    fn take(&mut self, uri: &str, item: Result<trawl_model::UrlRecord, DoorError>) -> Result<(), DoorError> {
        let record = match item {
            Ok(record) => record,
            Err(error) if error.advice == Advice::Skip => {
                self.shared.rejects.item(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Err(reject) = self.url.assign(&record.url, self.shared.suffixes) {
            self.shared.rejects.url(uri, reject.code(), &reject.to_string(), &record.url);
            return Ok(());
        }
        if self.shared.rejects.leaves_out(self.url.host(), self.url.as_str()) {
            return Ok(());
        }
        let start = self.arena.bytes.len();
        match record::encode(&self.url, &record, self.shared.digits, &mut self.key, &mut self.arena.bytes) {
            Ok(_) if self.arena.bytes.len() - start > self.shared.max_record => {
                self.arena.bytes.truncate(start);
                let message = "expected a record that fits the memory, found a larger one";
                self.shared.rejects.url(uri, "record_too_large", message, &record.url);
            }
            Ok(shape) => {
                self.shape = self.shape.or(shape);
                self.arena.ends.push(self.arena.bytes.len());
            }
            Err(code) => {
                self.arena.bytes.truncate(start);
                self.shared.rejects.url(uri, code, "expected values that fit their columns", &record.url);
            }
        }
        if self.arena.bytes.len() >= ARENA_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), DoorError> {
        if self.arena.ends.is_empty() {
            return Ok(());
        }
        let arena = std::mem::take(&mut self.arena);
        self.send.send(arena).map_err(|_| DoorError::new(Advice::Stop, "the sorter takes no more records"))
    }
}
