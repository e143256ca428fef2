//! One sorted sequence to merge: a buffer in memory or a run on disk.

use crate::arena::SortedBuffer;
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

/// Records of a sorted buffer.
#[derive(Debug)]
pub(crate) struct MemorySource {
    buffer: SortedBuffer,
    /// The record after the current one.
    next: usize,
}

impl MemorySource {
    pub fn new(buffer: SortedBuffer) -> Self {
        MemorySource { buffer, next: 0 }
    }

    fn current(&self) -> (&[u8], &[u8]) {
        self.buffer.get(self.next.wrapping_sub(1)).unwrap_or_default()
    }
}

impl Source for MemorySource {
    #[inline]
    fn advance(&mut self) -> Result<Option<usize>> {
        let Some((key, _)) = self.buffer.get(self.next) else { return Ok(None) };
        let shared = prefix::shared(self.current().0, key);
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

    pub fn open(&self, run: Run) -> Result<RunSource> {
        let file: Arc<dyn File> = Arc::from(run.open()?);
        let (reply, replies) = sync_channel(1);
        let requests = self.requests.clone().ok_or_else(|| stopped(&run))?;
        let mut source = RunSource {
            file,
            requests,
            reply,
            replies,
            raw: Vec::new(),
            block_at: 0,
            next_block: 0,
            record: RawRecord { shared: 0, key_at: 0, value_at: 0, end: 0 },
            key: Vec::with_capacity(run.need.key),
            run,
        };
        source.request(0, Vec::new())?;
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
    run: Run,
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
        if self.next_block >= self.run.len {
            return Ok(false);
        }
        let (raw, next) = self.replies.recv().map_err(|_| stopped(&self.run))??;
        let old = std::mem::replace(&mut self.raw, raw);
        self.block_at = std::mem::replace(&mut self.next_block, next);
        self.record.end = 0;
        if next < self.run.len {
            self.request(next, old)?;
        }
        Ok(true)
    }
}

impl Source for RunSource {
    #[inline]
    fn advance(&mut self) -> Result<Option<usize>> {
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

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.raw.get(self.record.value_at..self.record.end).unwrap_or_default()
    }
}
