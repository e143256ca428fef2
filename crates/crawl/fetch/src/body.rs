//! Receiving a body: in memory while small, spooled when large, cut at a limit.

use crate::conn::{Conn, Stop};
use crate::error::failure;
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
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
}

/// Reads the body of a response off `conn`. What came before a timeout or a disconnect is kept and marked; when nothing
/// at all came, that is a failure.
pub(crate) async fn receive(conn: &mut Conn, framing: Framing, terms: Terms<'_>) -> Result<Received, Failure> {
    let writer = SpoolWriter::new(terms.fs.clone(), terms.spool_dir, terms.memory_body);
    let spools = terms.spools.clone();
    let mut sink =
        Sink { writer: Some(writer), pending: Vec::new(), len: 0, limit: terms.body_bytes, spools, permit: None };
    let mut decoder = Decoder::new(framing);
    let mut unpacker = terms.packed.then(|| MultiGzDecoder::new(Vec::new()));
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
            None => sink.put(&before, terms.memory_body).await? && sink.put(content_bytes, terms.memory_body).await?,
            Some(gzip) => {
                let good = gzip.write_all(&before).is_ok() && gzip.write_all(content_bytes).is_ok();
                let unpacked = std::mem::take(gzip.get_mut());
                match good {
                    // Some servers say so and do not: then it is taken as it comes.
                    false if sink.len == 0 && unpacked.is_empty() => {
                        unpacker = None;
                        sink.put(&before, terms.memory_body).await?
                            && sink.put(content_bytes, terms.memory_body).await?
                    }
                    false => break End::Cut(Truncated::Disconnect),
                    true => sink.put(&unpacked, terms.memory_body).await?,
                }
            }
        };
        if !fits {
            break End::Cut(Truncated::Length);
        }
        conn.buf.advance(content.end.min(conn.buf.len()));
    };
    let end = match (end, unpacker) {
        (End::Complete { at_end }, Some(mut gzip)) => {
            let whole = gzip.try_finish().is_ok();
            let fits = sink.put(&std::mem::take(gzip.get_mut()), terms.memory_body).await?;
            match (whole, fits) {
                (true, true) => End::Complete { at_end },
                (_, false) => End::Cut(Truncated::Length),
                (false, _) => End::Cut(Truncated::Disconnect),
            }
        }
        (end, _) => end,
    };
    let empty = sink.len == 0;
    match end {
        End::Cut(Truncated::Time) if empty => {
            Err(failure(ErrorClass::BodyTimeout, "the head came, then nothing in time"))
        }
        End::Cut(Truncated::Disconnect) if empty => {
            Err(failure(ErrorClass::Reset, "the head came, then the connection ended"))
        }
        End::Cut(why) => Ok(Received { body: sink.finish().await?, truncated: Some(why), at_end: false }),
        End::Complete { at_end } => Ok(Received { body: sink.finish().await?, truncated: None, at_end }),
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
struct Sink {
    /// Absent only while a thread writes with it.
    writer: Option<SpoolWriter>,
    /// Gathered for the file, once there is one.
    pending: Vec<u8>,
    len: u64,
    limit: u64,
    spools: Arc<Semaphore>,
    /// Leave to hold a file, once there is one.
    permit: Option<OwnedSemaphorePermit>,
}

/// Bytes handed to a thread at a time: a hand-over costs some microseconds.
const HANDOVER_BYTES: usize = 256 * 1024;

impl Sink {
    /// Takes bytes; `false` when they went past the limit.
    async fn put(&mut self, bytes: &[u8], memory: usize) -> Result<bool, Failure> {
        let room = usize::try_from(self.limit - self.len).unwrap_or(usize::MAX);
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.len += kept.len() as u64;
        match &mut self.writer {
            Some(writer) if self.len <= memory as u64 => writer.put(kept).map_err(|e| local(&e))?,
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
        let (writer, pending) = job.await.map_err(|e| local(&e))?.map_err(|e| local(&e))?;
        (self.writer, self.pending) = (Some(writer), pending);
        Ok(())
    }

    async fn finish(mut self) -> Result<Body<'static>, Failure> {
        if !self.pending.is_empty() {
            self.hand_over().await?;
        }
        let Some(writer) = self.writer else { return Ok(Body::empty()) };
        let spool = match writer.is_spilled() {
            false => writer.finish().map_err(|e| local(&e))?,
            true => {
                let job = tokio::task::spawn_blocking(move || writer.finish());
                job.await.map_err(|e| local(&e))?.map_err(|e| local(&e))?
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
