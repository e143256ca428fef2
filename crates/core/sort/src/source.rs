//! One sorted sequence to merge: a buffer in memory or a run on disk.

use crate::arena::{SortedBuffer, TOGETHER};
use crate::block::{RawRecord, Unpacker, malformed, record_at};
use crate::prefix;
use crate::run::Run;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use trawl_io::{Error, File, Op, Result};

/// A sequence of records in order, positioned at one of them.
pub(crate) trait Source {
    /// Moves to the next record. Returns how many key bytes it shares with the one before (0 for the first), or `None`
    /// at the end.
    fn advance(&mut self) -> Result<Option<usize>>;
    fn key(&self) -> &[u8];
    fn value(&self) -> &[u8];
}

/// Keys from `from` on and below `until`; without a bound, all.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRange {
    pub from: Option<Arc<[u8]>>,
    pub until: Option<Arc<[u8]>>,
}

/// Records of a sorted buffer.
#[derive(Debug)]
pub(crate) struct MemorySource {
    buffer: Arc<SortedBuffer>,
    /// The current record, the one after it, and where to end.
    current: Option<usize>,
    next: usize,
    end: usize,
}

impl MemorySource {
    pub fn new(buffer: Arc<SortedBuffer>, keys: &KeyRange) -> Self {
        let place = |bound: &Arc<[u8]>| buffer.lower_bound(bound);
        let next = keys.from.as_ref().map_or(0, place);
        let end = keys.until.as_ref().map_or(buffer.len(), place);
        MemorySource { buffer, current: None, next, end }
    }

    fn current(&self) -> (&[u8], &[u8]) {
        self.current.and_then(|n| self.buffer.get(n)).unwrap_or_default()
    }
}

impl Source for MemorySource {
    #[inline]
    fn advance(&mut self) -> Result<Option<usize>> {
        if self.next.is_multiple_of(TOGETHER) {
            self.buffer.touch(self.next, TOGETHER);
        }
        let Some((key, _)) = self.buffer.get(self.next).filter(|_| self.next < self.end) else { return Ok(None) };
        let shared = prefix::shared(self.current().0, key);
        self.current = Some(self.next);
        self.next += 1;
        Ok(Some(shared))
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().0
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().1
    }
}

/// An unpacked block and where the next one begins.
type Block = Result<(Vec<u8>, u64)>;

/// A request to the reading thread.
struct Fetch {
    file: Arc<dyn File>,
    offset: u64,
    limit: usize,
    /// Memory to reuse.
    raw: Vec<u8>,
    reply: SyncSender<Block>,
}

/// Unpacks blocks ahead of the merge on a thread of its own.
pub(crate) struct Reader {
    requests: Option<SyncSender<Fetch>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// For up to `sources` sequences, each with one request at a time.
    pub fn start(sources: usize) -> Result<Self> {
        let (requests, queue) = sync_channel::<Fetch>(sources);
        let mut unpacker = Unpacker::new().map_err(|e| Error::io(Op::Read, "(zstd)", e))?;
        let thread = std::thread::spawn(move || {
            for fetch in queue {
                let Fetch { file, offset, limit, mut raw, reply } = fetch;
                let block = unpacker.read(&*file, offset, limit, &mut raw).map(|next| (raw, next));
                // A source that was dropped does not want it any more.
                let _ = reply.send(block);
            }
        });
        Ok(Reader { requests: Some(requests), thread: Some(thread) })
    }

    /// Reads a run's records within `keys`, all of which are in or after the block at `start`.
    pub fn open(&self, run: Arc<Run>, start: u64, keys: KeyRange) -> Result<RunSource> {
        let file = run.open()?;
        let (reply, replies) = sync_channel(1);
        let requests = self.requests.clone().ok_or_else(|| stopped(&run))?;
        let mut source = RunSource {
            file,
            requests,
            reply,
            replies,
            keys,
            // Both blocks are allocated here and for good: threads that come and go would each keep what they freed.
            raw: Vec::with_capacity(run.need.block),
            block_at: start,
            next_block: start,
            record: RawRecord { shared: 0, key_at: 0, value_at: 0, end: 0 },
            key: Vec::with_capacity(run.need.key),
            run,
        };
        source.request(start, Vec::with_capacity(source.run.need.block))?;
        Ok(source)
    }
}

fn stopped(run: &Run) -> Error {
    Error::io(Op::Read, &run.path, std::io::Error::other("the reading thread stopped"))
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // It ends when the last source does; a panic in it has surfaced as a missing reply.
            let _ = thread.join();
        }
    }
}

/// Records of a run.
pub(crate) struct RunSource {
    run: Arc<Run>,
    /// `from` is taken once its place was found.
    keys: KeyRange,
    file: Arc<dyn File>,
    requests: SyncSender<Fetch>,
    reply: SyncSender<Block>,
    replies: Receiver<Block>,
    /// The current block, where it begins, and where the next one does.
    raw: Vec<u8>,
    block_at: u64,
    next_block: u64,
    record: RawRecord,
    key: Vec<u8>,
}

impl RunSource {
    fn request(&mut self, offset: u64, raw: Vec<u8>) -> Result<()> {
        let fetch =
            Fetch { file: self.file.clone(), offset, limit: self.run.need.block, raw, reply: self.reply.clone() };
        self.requests.send(fetch).map_err(|_| stopped(&self.run))
    }

    /// Takes the block that was asked for and asks for the one after it. `false` at the end of the run.
    fn next_block(&mut self) -> Result<bool> {
        if self.next_block >= self.run.end() {
            return Ok(false);
        }
        let (raw, next) = self.replies.recv().map_err(|_| stopped(&self.run))??;
        let old = std::mem::replace(&mut self.raw, raw);
        self.block_at = std::mem::replace(&mut self.next_block, next);
        self.record.end = 0;
        if next < self.run.end() {
            self.request(next, old)?;
        }
        Ok(true)
    }
}

impl RunSource {
    /// Moves to the run's next record, whatever its key.
    #[inline]
    fn step(&mut self) -> Result<Option<usize>> {
        let first = self.record.end == self.raw.len();
        if first && !self.next_block()? {
            return Ok(None);
        }
        let record = record_at(&self.raw, self.record.end).filter(|r| r.shared <= self.key.len());
        let record = record.ok_or_else(|| malformed(&self.run.path, self.block_at))?;
        let rest = self.raw.get(record.key_at..record.value_at).unwrap_or_default();
        // A block begins with a whole key, which may share more with the one before than it says.
        let shared = if first { prefix::shared(&self.key, rest) } else { record.shared };
        self.key.truncate(record.shared);
        self.key.extend_from_slice(rest);
        self.record = record;
        Ok(Some(shared))
    }
}

impl Source for RunSource {
    #[inline]
    fn advance(&mut self) -> Result<Option<usize>> {
        let mut shared = self.step()?;
        if let Some(from) = self.keys.from.take() {
            while shared.is_some() && *self.key < *from {
                shared = self.step()?;
            }
            // The first record handed out shares nothing with one before it.
            shared = shared.map(|_| 0);
        }
        match &self.keys.until {
            Some(until) if shared.is_some() && *self.key >= **until => Ok(None),
            _ => Ok(shared),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.raw.get(self.record.value_at..self.record.end).unwrap_or_default()
    }
}
