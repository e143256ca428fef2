//! The first stage: splits of sources to one sorted run. Threads read and parse splits, one sorter takes what they make.
//!
//! A run is sorted by domain prefix first, so the records of one prefix are a section of it: what [`crate::reduce`] takes.
//! Nothing here asks the time, commits, or looks at the lake: all it needs is in its arguments, and all it found out in its
//! report, so that tasks on any machine make the same of the same splits.

use crate::record;
use crate::rejects::{Rejected, Rejects};
use crate::settings::IngestSettings;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use trawl_model::{Advice, Aside, DoorError, Place, Split, UrlRecord, UrlSource};
use trawl_rows::Shape;
use trawl_sort::{Sorted, Sorter};
use trawl_store::denial::Denied;
use trawl_store::{Progress, Stage, Store};
use trawl_url::{LakeUrl, SuffixList};

/// Bytes of records a thread gathers before it hands them over.
const ARENA_BYTES: usize = 1 << 20;

/// Bytes of a record at most, however much memory there is: a rewrite with the usual memory must be able to take every row.
pub(crate) const MAX_RECORD_BYTES: usize = (32 << 20) - (64 << 10);

/// Records one after the other, with the end of each.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// What is read, and how it is cut into domains.
pub struct MapInput<'a> {
    /// The sources.
    pub sources: &'a [&'a dyn UrlSource],
    /// Which splits of them are read: the source's number, and the split.
    pub splits: Vec<(usize, Split)>,
    /// How many of the sources, the last ones, are files of the lake: every row of theirs must come out again.
    pub of_lake: usize,
    /// What cuts hosts into domains.
    pub suffixes: &'a SuffixList,
    /// Hex digits of `domain_prefix=`: 0, 1 or 2.
    pub digits: u8,
    /// What is left out, and only counted.
    pub denied: Option<&'a Denied<'a>>,
    /// Path in the store of the file that gets rejected items, if there are any.
    pub rejects: String,
}

/// All splits of some sources, of about so many bytes each.
pub fn plan(sources: &[&dyn UrlSource], split_bytes: u64) -> Result<Vec<(usize, Split)>> {
    let mut splits = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        splits.extend(source.splits(split_bytes.max(1))?.into_iter().map(|split| (i, split)));
    }
    Ok(splits)
}

/// What all threads share.
struct Shared<'a> {
    input: &'a MapInput<'a>,
    next: AtomicUsize,
    stop: AtomicBool,
    bytes_done: AtomicU64,
    rejects: &'a Rejects<'a>,
    /// A larger record is rejected.
    max_record: usize,
    /// A larger record cannot be sorted.
    room: usize,
}

/// What the splits held.
pub struct Mapped {
    /// Their records, in the order of rows.
    pub run: Sorted,
    /// What was found out on the way.
    pub report: MapReport,
}

/// What a map found out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapReport {
    /// Records of the run.
    pub rows: u64,
    /// The columns they need: the files of a dataset's commit have those that any of its runs needs.
    pub shape: Shape,
    /// The last record of each source.
    pub tails: Tails,
    /// What is not in the run.
    pub rejected: Rejected,
}

/// The last record of every source that has any, by the source's number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tails(BTreeMap<usize, Tail>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    /// Where the split begins that it is in.
    split: u64,
    /// Its URL, if it became a row.
    url: Option<String>,
}

impl Tails {
    /// The URL of the last record of a source, if it became a row; `None` if there was no record.
    pub fn of(&self, source: usize) -> Option<Option<&str>> {
        self.0.get(&source).map(|tail| tail.url.as_deref())
    }

    fn add(&mut self, source: usize, tail: Tail) {
        if self.0.get(&source).is_none_or(|known| known.split <= tail.split) {
            self.0.insert(source, tail);
        }
    }

    /// The same, of sources that have other numbers elsewhere.
    pub(crate) fn renumbered(self, number: impl Fn(usize) -> Option<usize>) -> Self {
        Self(self.0.into_iter().filter_map(|(source, tail)| Some((number(source)?, tail))).collect())
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(source, tail)| self.add(source, tail));
    }
}

/// Reads splits of sources into a sorted run. `progress` is called often, from the calling thread. Of the settings it uses
/// memory, threads, the temporary directory, the limit of rejects, and the cancellation.
pub fn map(
    store: &dyn Store,
    input: &MapInput<'_>,
    settings: &IngestSettings,
    progress: &dyn Fn(Progress),
) -> Result<Mapped> {
    let rejects = Rejects::new(store, input.rejects.clone(), settings.max_rejects, input.denied);
    let total = input.splits.iter().map(|(_, split)| split.end.saturating_sub(split.start)).sum();
    let threads = settings.threads.max(1);
    let mut sorter = Sorter::builder(&settings.temp_dir)
        .fs(settings.temp_fs.clone())
        .memory_bytes(settings.memory_bytes / 2)
        .threads(threads)
        .holder(format!("ingest {}", settings.writer))
        .build()?;
    let shared = Shared {
        input,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        bytes_done: AtomicU64::new(0),
        rejects: &rejects,
        max_record: settings.max_record_bytes.unwrap_or(sorter.max_record_bytes()).min(MAX_RECORD_BYTES),
        room: sorter.max_record_bytes(),
    };
    let (shape, tails, rows) = std::thread::scope(|scope| {
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
            let done = shared.bytes_done.load(Relaxed);
            progress(Progress { stage: Stage::Reading, rows, done, total });
            Ok(settings.cancel.check()?)
        });
        // A sorter that failed takes no more: let the threads notice.
        if pushed.is_err() {
            shared.stop.store(true, Relaxed);
        }
        drop(receive);
        let (mut shape, mut tails) = (Shape::default(), Tails::default());
        let mut failed = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(found)) => {
                    shape = shape.or(found.0);
                    tails.merge(found.1);
                }
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(_) => failed = failed.or(Some(Error::Ended { what: "a thread that reads sources" })),
            }
        }
        // The sorter's error is the cause when both have one.
        let rows = pushed?;
        failed.map_or(Ok((shape, tails, rows)), Err)
    })?;
    let rejected = rejects.finish()?;
    Ok(Mapped { run: sorter.finish()?, report: MapReport { rows, shape, tails, rejected } })
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

fn work_off(shared: &Shared<'_>, send: &SyncSender<Arena>) -> Result<(Shape, Tails)> {
    let mut worker = Worker {
        shared,
        send,
        arena: Arena::default(),
        shape: Shape::default(),
        url: LakeUrl::default(),
        key: String::new(),
        last: None,
    };
    let mut tails = Tails::default();
    let of_lake = shared.input.sources.len() - shared.input.of_lake.min(shared.input.sources.len());
    while let Some((number, split)) = shared.input.splits.get(shared.next.fetch_add(1, Relaxed)) {
        if shared.stop.load(Relaxed) {
            break;
        }
        let Some(source) = shared.input.sources.get(*number) else { break };
        let from = From { uri: &source.identity().uri, of_lake: *number >= of_lake };
        let mut aside = |at, what: Aside<'_>| shared.rejects.aside(from.uri, at, what);
        source.read_all(*split, &mut |at, item| worker.take(from, at, item), &mut aside)?;
        if let Some(url) = worker.last.take() {
            tails.add(*number, Tail { split: split.start, url });
        }
        shared.bytes_done.fetch_add(split.end.saturating_sub(split.start), Relaxed);
    }
    // The receiver is gone if the sorter failed; the sorter's error is the one to report.
    let _ = worker.hand_over();
    Ok((worker.shape, tails))
}

/// Where an item comes from.
#[derive(Clone, Copy)]
struct From<'a> {
    uri: &'a str,
    of_lake: bool,
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    send: &'a SyncSender<Arena>,
    arena: Arena,
    shape: Shape,
    url: LakeUrl,
    /// Room for a SURT key.
    key: String,
    /// The last record of the split, if there was one: its URL if it became a row.
    last: Option<Option<String>>,
}

impl Worker<'_> {
    fn take(&mut self, from: From<'_>, at: u64, item: Result<UrlRecord, DoorError>) -> Result<(), DoorError> {
        let record = match item {
            Ok(record) => record,
            Err(error) if error.advice == Advice::Skip => {
                self.shared.rejects.item(&error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.last = Some(None);
        let MapInput { suffixes, digits, .. } = *self.shared.input;
        if let Err(reject) = self.url.assign(&record.url, suffixes) {
            return self.reject(from, at, reject.code(), &reject.to_string(), &record.url);
        }
        if !from.of_lake && self.shared.rejects.leaves_out(self.url.host(), self.url.as_str()) {
            return Ok(());
        }
        let start = self.arena.bytes.len();
        match record::encode(&self.url, &record, digits, &mut self.key, &mut self.arena.bytes) {
            Ok(_) if self.arena.bytes.len() - start > self.shared.max_record => {
                self.arena.bytes.truncate(start);
                let message = "expected a record that fits the memory, found a larger one";
                self.reject(from, at, "record_too_large", message, &record.url)?;
            }
            Ok(_) if self.arena.bytes.len() - start > self.shared.room => {
                let error = format!(
                    "expected a record of at most {} bytes, which the memory allows, found one of {}: run this task with more memory",
                    self.shared.room,
                    self.arena.bytes.len() - start
                );
                return Err(DoorError::new(Advice::Stop, error).at(Place::new(from.uri, at, 0)));
            }
            Ok(shape) => {
                self.shape = self.shape.or(shape);
                self.arena.ends.push(self.arena.bytes.len());
                self.last = Some(Some(record.url));
            }
            Err(code) => {
                self.arena.bytes.truncate(start);
                self.reject(from, at, code, "expected values that fit their columns", &record.url)?;
            }
        }
        if self.arena.bytes.len() >= ARENA_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    /// A row of the lake that cannot be written again ends the work: nothing may be lost.
    fn reject(&self, from: From<'_>, at: u64, code: &str, message: &str, url: &str) -> Result<(), DoorError> {
        if from.of_lake {
            let error = format!("a row cannot be written again: {message}: {url:?}");
            return Err(DoorError::new(Advice::Stop, error).at(Place::new(from.uri, at, 0)));
        }
        self.shared.rejects.url(from.uri, at, code, message, url);
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
