//! Receiving a body: in memory while small, spooled when large, cut at a limit.

use crate::conn::{Conn, Stop};
use crate::error::{failure, is_ours_for_now};
use crate::unpack::Unpacker;
use bytes::{Buf, Bytes};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use trawl_http::{Chunked, Framing, Step};
use trawl_io::{Fs, Spool, SpoolWriter};
use trawl_model::{Body, ErrorClass, Failure, Reopen, Truncated};

/// A body as received.
pub(crate) struct Received {
    pub body: Body<'static>,
    pub truncated: Option<Truncated>,
    /// Whether the connection stands at the end of the message.
    pub at_end: bool,
}

/// Deadlines and limits of one body.
pub(crate) struct Terms<'a> {
    pub idle: Duration,
    pub total: Instant,
    pub body_bytes: u64,
    pub memory_body: usize,
    pub fs: &'a Arc<dyn Fs>,
    pub spool_dir: &'a Path,
    pub spools: &'a Arc<Semaphore>,
    /// Whether the message is packed on its way (`Transfer-Encoding: gzip`), which is no part of the page.
    pub packed: bool,
    /// Whether the head alone is an answer, as that of a redirect is.
    pub head_answers: bool,
    /// Takes the error of a disk that will not get better by trying again.
    pub storage: &'a Mutex<Option<trawl_io::Error>>,
}

/// Reads the body of a response off `conn`. What came before a timeout or a disconnect is kept and marked; when nothing
/// at all came, that is a failure unless the head says enough.
pub(crate) async fn receive(conn: &mut Conn, framing: Framing, terms: Terms<'_>) -> Result<Received, Failure> {
    let mut sink = Sink::new(&terms);
    let mut decoder = Decoder::new(framing);
    let mut unpacker = terms.packed.then(Unpacker::default);
    let end = loop {
        if let Some(end) = decoder.done() {
            break end;
        }
        if conn.buf.is_empty() {
            match conn.fill(Instant::now() + terms.idle, terms.total).await {
                Ok(()) => {}
                Err(stop) => break decoder.stopped(stop),
            }
        }
        let Portion { before, content } = decoder.decode(&conn.buf);
        let content_bytes = conn.buf.get(content.clone()).unwrap_or_default();
        let fits = match &mut unpacker {
            None => sink.put(&before).await? && sink.put(content_bytes).await?,
            Some(unpacker) => {
                unpacker.put(&before);
                unpacker.put(content_bytes);
                sink.put(&unpacker.take()).await?
            }
        };
        if !fits {
            break End::Cut(Truncated::Length);
        }
        conn.buf.advance(content.end.min(conn.buf.len()));
        if unpacker.as_ref().is_some_and(Unpacker::is_broken) {
            break End::Cut(Truncated::Disconnect);
        }
    };
    let end = match (end, unpacker) {
        (End::Cut(Truncated::Length), _) => End::Cut(Truncated::Length),
        (end, Some(unpacker)) => {
            let (rest, whole) = unpacker.finish();
            match (sink.put(&rest).await?, whole, end) {
                (false, ..) => End::Cut(Truncated::Length),
                // Packed data has an end of its own, with a checksum: what comes up to it is whole, however the message ends.
                (true, Some(true), End::Cut(_)) => End::Complete { at_end: false },
                (true, Some(false), End::Complete { .. }) => End::Cut(Truncated::Disconnect),
                (true, _, end) => end,
            }
        }
        (end, None) => end,
    };
    match end {
        End::Cut(why) => end_of(sink, Some(why), terms.head_answers, false).await,
        End::Complete { at_end } => end_of(sink, None, terms.head_answers, at_end).await,
    }
}

/// The body that came, cut or not. When nothing at all came, that is a failure unless the head says enough.
pub(crate) async fn end_of(
    sink: Sink<'_>,
    cut: Option<Truncated>,
    head_answers: bool,
    at_end: bool,
) -> Result<Received, Failure> {
    let nothing = sink.len == 0 && !head_answers;
    match cut {
        Some(Truncated::Time) if nothing => {
            Err(failure(ErrorClass::BodyTimeout, "the head came, then nothing in time"))
        }
        Some(Truncated::Disconnect) if nothing => {
            Err(failure(ErrorClass::Reset, "the head came, then the connection ended"))
        }
        truncated => Ok(Received { body: sink.finish().await?, truncated, at_end: at_end && truncated.is_none() }),
    }
}

enum End {
    Complete { at_end: bool },
    Cut(Truncated),
}

/// Finds in what the wire carries what the body holds.
enum Decoder {
    Left(u64),
    /// With the bytes of the first size line, in case it is none.
    Chunks(Chunked, Vec<u8>),
    ToClose,
    ChunksDone,
    Broken,
}

/// What a read brought.
struct Portion {
    /// Content that came with earlier reads and was taken for a chunk size.
    before: Vec<u8>,
    /// Where content lies in this read; everything up to its end is used.
    content: Range<usize>,
}

impl Decoder {
    fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Left(0),
            Framing::Length(n) => Self::Left(n),
            Framing::Chunked => Self::Chunks(Chunked::new(), Vec::new()),
            Framing::Close => Self::ToClose,
        }
    }

    fn done(&self) -> Option<End> {
        match self {
            Self::Left(0) | Self::ChunksDone => Some(End::Complete { at_end: true }),
            Self::Broken => Some(End::Cut(Truncated::Disconnect)),
            _ => None,
        }
    }

    fn stopped(&self, stop: Stop) -> End {
        match (self, stop) {
            (Self::ToClose, Stop::Eof) => End::Complete { at_end: false },
            (Self::Chunks(chunked, _), Stop::Eof) if chunked.is_whole() => End::Complete { at_end: false },
            (_, Stop::Eof | Stop::Broken(_)) => End::Cut(Truncated::Disconnect),
            (_, Stop::Timeout) => End::Cut(Truncated::Time),
        }
    }

    fn decode(&mut self, input: &[u8]) -> Portion {
        let all = input.len();
        let content = |content| Portion { before: Vec::new(), content };
        match self {
            Self::Left(left) => {
                let take = usize::try_from(*left).map_or(all, |left| left.min(all));
                *left -= take as u64;
                content(0..take)
            }
            Self::Chunks(chunked, first_line) => match chunked.step(input) {
                Step::Data(range) => content(range),
                Step::More => {
                    if !chunked.started() {
                        first_line.extend_from_slice(input);
                    }
                    content(all..all)
                }
                Step::Done(used) => {
                    *self = Self::ChunksDone;
                    content(used..used)
                }
                // The head says chunked, the body is not: some servers do that. Take it as it comes.
                Step::Bad { first: true } => {
                    let before = std::mem::take(first_line);
                    *self = Self::ToClose;
                    Portion { before, content: 0..all }
                }
                Step::Bad { .. } => {
                    *self = Self::Broken;
                    content(all..all)
                }
            },
            Self::ToClose | Self::ChunksDone | Self::Broken => content(0..all),
        }
    }
}

/// Collects a body up to a limit.
pub(crate) struct Sink<'a> {
    /// Absent only while a thread writes with it.
    writer: Option<SpoolWriter>,
    /// Bytes kept in memory.
    memory: usize,
    /// Gathered for the file, once there is one.
    pending: Vec<u8>,
    len: u64,
    limit: u64,
    spools: Arc<Semaphore>,
    /// Leave to hold a file, once there is one.
    permit: Option<OwnedSemaphorePermit>,
    storage: &'a Mutex<Option<trawl_io::Error>>,
}

/// Bytes handed to a thread at a time: a hand-over costs some microseconds.
const HANDOVER_BYTES: usize = 256 * 1024;

impl<'a> Sink<'a> {
    pub(crate) fn new(terms: &Terms<'a>) -> Self {
        Sink {
            writer: Some(SpoolWriter::new(terms.fs.clone(), terms.spool_dir, terms.memory_body)),
            memory: terms.memory_body,
            pending: Vec::new(),
            len: 0,
            limit: terms.body_bytes,
            spools: terms.spools.clone(),
            permit: None,
            storage: terms.storage,
        }
    }

    /// Takes bytes; `false` when they went past the limit.
    pub(crate) async fn put(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        let room = usize::try_from(self.limit - self.len).unwrap_or(usize::MAX);
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.len += kept.len() as u64;
        match &mut self.writer {
            Some(writer) if self.len <= self.memory as u64 => writer.put(kept).map_err(|e| broken(self.storage, e))?,
            _ => {
                self.pending.extend_from_slice(kept);
                if self.pending.len() >= HANDOVER_BYTES {
                    self.hand_over().await?;
                }
            }
        }
        Ok(kept.len() == bytes.len())
    }

    /// Lets a thread write what is pending: disks may stall, and the network threads must not.
    async fn hand_over(&mut self) -> Result<(), Failure> {
        if self.permit.is_none() {
            self.permit = Some(self.spools.clone().acquire_owned().await.map_err(|e| local(&e))?);
        }
        let (Some(mut writer), mut pending) = (self.writer.take(), std::mem::take(&mut self.pending)) else {
            return Err(failure(ErrorClass::LocalResource, "the spool is gone"));
        };
        let job = tokio::task::spawn_blocking(move || {
            writer.put(&pending)?;
            pending.clear();
            Ok::<_, trawl_io::Error>((writer, pending))
        });
        let (writer, pending) = job.await.map_err(|e| local(&e))?.map_err(|e| broken(self.storage, e))?;
        (self.writer, self.pending) = (Some(writer), pending);
        Ok(())
    }

    async fn finish(mut self) -> Result<Body<'static>, Failure> {
        if !self.pending.is_empty() {
            self.hand_over().await?;
        }
        let Some(writer) = self.writer else { return Ok(Body::empty()) };
        let spool = match writer.is_spilled() {
            false => writer.finish().map_err(|e| broken(self.storage, e))?,
            true => {
                let job = tokio::task::spawn_blocking(move || writer.finish());
                job.await.map_err(|e| local(&e))?.map_err(|e| broken(self.storage, e))?
            }
        };
        Ok(match spool.as_bytes() {
            // A body keeps its bytes, not the buffer's spare room.
            Some(bytes) => Body::Memory(Bytes::copy_from_slice(bytes)),
            None => Body::Spooled(Arc::new(Spooled { spool, _permit: self.permit })),
        })
    }
}

fn local(error: &dyn std::fmt::Display) -> Failure {
    failure(ErrorClass::LocalResource, format!("spooling the body: {error}"))
}

/// A file that failed: kept for the caller, unless it is a matter of time.
fn broken(storage: &Mutex<Option<trawl_io::Error>>, error: trawl_io::Error) -> Failure {
    let failed = local(&error);
    if !matches!(&error, trawl_io::Error::Io { source, .. } if is_ours_for_now(source)) {
        storage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    failed
}

/// A spool as a body.
struct Spooled {
    spool: Spool,
    /// Given back with the file.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Reopen for Spooled {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.spool.reader()))
    }

    fn len_bytes(&self) -> u64 {
        self.spool.len()
    }
}
