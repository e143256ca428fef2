//! Answers too large to be made before they are sent.
//!
//! ```text
//! blocking thread: rows ─► encoder ─► Sink ─ 64 KiB pieces ─► channel of a few ─► body ─► client
//! ```
//! The channel bounds memory and slows the reader down to the client; a client that leaves closes it, and the next write
//! fails. What goes wrong before the first piece is an ordinary failure; after it the answer is cut off without its proper
//! end, so that no client takes it for complete.

use crate::asker::{Asker, Coding};
use crate::failure::Failure;
use crate::server::State;
use crate::work::{Answer, Reached, Waits, cacheable};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use trawl_query::{Pinned, Principal, QueryError};

/// Bytes sent at a time.
const PIECE: usize = 64 << 10;
/// Pieces that wait for the client at most.
const WAITING: usize = 4;

/// How an answer begins.
pub(crate) struct Start {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

/// Takes the bytes of an answer.
pub(crate) struct Sink {
    buffer: Vec<u8>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    begun: Option<oneshot::Sender<Start>>,
    start: Option<Start>,
}

impl Sink {
    /// Says how the answer begins; the default is 200 without more headers.
    pub(crate) fn start(&mut self, status: StatusCode, headers: HeaderMap) {
        self.start = Some(Start { status, headers });
    }

    fn begin(&mut self) {
        if let Some(begun) = self.begun.take() {
            let start = self.start.take().unwrap_or(Start { status: StatusCode::OK, headers: HeaderMap::new() });
            // The client has left: the next piece finds out.
            let _ = begun.send(start);
        }
    }

    fn send(&mut self) -> io::Result<()> {
        self.begin();
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client has left");
        self.pieces.blocking_send(Ok(piece)).map_err(gone)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}

/// Answers with what `produce` writes. It must not be asked again once it has written: so a version that is collected
/// meanwhile ends the answer.
pub(crate) async fn stream<F>(
    state: &Arc<State>,
    asker: Asker,
    content_type: HeaderValue,
    packing: Packing,
    produce: F,
) -> Answer
where
    F: FnOnce(&Pinned, &Principal, &mut Out<'_>) -> Result<(), QueryError> + Send + 'static,
{
    let turn = state.clients.enter(&asker, state.max_per_client)?;
    let permit = state.turn_to_stream(packing.may_begin_late).await?;
    let (pieces, receiver) = mpsc::channel(WAITING);
    let (begun, begins) = oneshot::channel();
    let (waits, effort) = Waits::new(state.stream_timeout, state.stream_timeout);
    let (mine, private, coding) = (Arc::clone(state), asker.mark != 0, packing.coding(&asker));
    let name = asker.name.clone();
    let reached = Reached::default();
    let seen = reached.clone();
    let work = tokio::task::spawn_blocking(move || {
        let _held = (permit, turn);
        let mut sink = Sink { buffer: Vec::new(), pieces, begun: Some(begun), start: None };
        let made = mine.lake.pin().map_err(|error| QueryError::Unavailable { source: Box::new(error) });
        let made = made.and_then(|pinned| {
            seen.set();
            let pinned = pinned.within(effort);
            let mut out = Packed::new(&mut sink, coding);
            produce(&pinned, &asker.principal, &mut out)?;
            out.finish().map_err(gone)
        });
        match made.and_then(|()| sink.flush().map_err(gone)).map_err(|error| mine.lake.explain(error)) {
            Ok(()) => {
                sink.begin();
                None
            }
            Err(error) if sink.begun.is_some() => Some(mine.failed(error)),
            Err(error) => {
                mine.failed(error);
                let _ = sink.pieces.blocking_send(Err(io::Error::other("the answer could not be completed")));
                None
            }
        }
    });
    let first = if packing.may_begin_late { state.stream_timeout } else { state.timeout };
    let Ok(begun) = tokio::time::timeout(first, begins).await else { return Err(reached.too_late()) };
    let Ok(start) = begun else {
        // It ended before it began.
        return match tokio::time::timeout(state.timeout, work).await {
            Ok(Ok(Some(failure))) => Err(failure),
            _ => Err(Failure::internal()),
        };
    };
    let mut response = axum::response::Response::new(Body::new(Pieces { receiver, _waits: waits }));
    *response.status_mut() = start.status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().extend(start.headers);
    if let Some(name) = coding.name() {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    cacheable(&mut response, private);
    response.extensions_mut().insert(name);
    Ok(response)
}

/// Where a streamed answer goes.
pub(crate) type Out<'a> = dyn StreamTo + Send + 'a;

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Whether it is worth compressing: by gzip, which every client takes.
    text: bool,
    /// Whether it may have nothing to say for longer than an ordinary answer takes: an export looks at every row for the few
    /// that a filter takes.
    may_begin_late: bool,
}

impl Packing {
    /// Text.
    pub(crate) const TEXT: Self = Self { text: true, may_begin_late: false };
    /// Compressed already, or not ours to change.
    pub(crate) const AS_IS: Self = Self { text: false, may_begin_late: false };

    /// The same, of an answer that goes through all rows.
    pub(crate) const fn of_all_rows(self) -> Self {
        Self { may_begin_late: true, ..self }
    }

    fn coding(self, asker: &Asker) -> Coding {
        if self.text && asker.takes_gzip { Coding::Gzip } else { Coding::Plain }
    }
}

/// An error for a client that has left is not sent.
pub(crate) fn gone(_: io::Error) -> QueryError {
    QueryError::Cancelled
}

/// Where a streamed answer goes.
pub(crate) trait StreamTo: Write {
    /// Says how the answer begins, before the first byte.
    fn start(&mut self, status: StatusCode, headers: HeaderMap);
}

/// Compresses on the way.
enum Packed<'a> {
    Plain(&'a mut Sink),
    Gzip(Box<flate2::write::GzEncoder<&'a mut Sink>>),
}

impl<'a> Packed<'a> {
    fn new(sink: &'a mut Sink, coding: Coding) -> Self {
        match coding {
            Coding::Plain => Self::Plain(sink),
            _ => Self::Gzip(Box::new(flate2::write::GzEncoder::new(sink, flate2::Compression::fast()))),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(|_| ()),
        }
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(sink) => sink,
            Self::Gzip(encoder) => encoder,
        }
    }
}

impl Write for Packed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}

impl StreamTo for Packed<'_> {
    fn start(&mut self, status: StatusCode, headers: HeaderMap) {
        match self {
            Self::Plain(sink) => sink.start(status, headers),
            Self::Gzip(encoder) => encoder.get_mut().start(status, headers),
        }
    }
}

/// The pieces as a body.
struct Pieces {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    _waits: Waits,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.receiver.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
