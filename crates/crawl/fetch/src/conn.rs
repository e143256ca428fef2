//! One connection: a stream and what was read from it too far.

use crate::error::{class_of, failure};
use crate::http2::Http2;
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use trawl_model::{ErrorClass, Failure, TlsFacts};

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// The socket underneath.
    fn socket(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Stream for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

impl Stream for s2n_tls_tokio::TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref()
    }
}

/// An open connection, by what is spoken on it.
pub(crate) enum Link {
    Http1(Conn),
    Http2(Http2),
}

impl Link {
    pub(crate) fn peer(&self) -> IpAddr {
        match self {
            Link::Http1(conn) => conn.peer,
            Link::Http2(conn) => conn.peer,
        }
    }

    /// How long it idles at least before it is used again, given the setting for that.
    pub(crate) fn settles(&self, setting: Duration) -> Duration {
        match self {
            Link::Http1(conn) => setting + conn.round_trip,
            // Nothing can come on it that would be taken for an answer.
            Link::Http2(_) => Duration::ZERO,
        }
    }
}

/// An open connection that speaks HTTP/1.1.
pub(crate) struct Conn {
    pub stream: Box<dyn Stream>,
    /// Read, not yet used.
    pub buf: BytesMut,
    pub peer: IpAddr,
    pub tls: Option<TlsFacts>,
    /// Whether it has already served a response.
    pub reused: bool,
    /// How long connecting took: one way there and back.
    pub round_trip: Duration,
}

/// What waits to be read on a connection without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Nothing: it may be asked.
    Nothing,
    /// Bytes that belong to no response, and that would be taken for the answer to the next request.
    Bytes,
    /// Its end or an error, or something of TLS that is not understood yet.
    End,
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The peer ended it.
    Eof,
    /// Nothing came in time.
    Timeout,
    /// Something broke.
    Broken(io::Error),
}

const READ_BYTES: usize = 16 * 1024;

impl Conn {
    /// Looks at what waits to be read, without waiting.
    ///
    /// The socket is asked itself, because the runtime learns of new bytes only some time after they came.
    pub(crate) fn waiting(&mut self) -> Waiting {
        let mut byte = [0];
        let socket = recv(self.stream.socket(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        // What TLS has unpacked already is no longer in the socket.
        let mut unpacked = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut unpacked);
        match (socket, read) {
            _ if !self.buf.is_empty() || !unpacked.filled().is_empty() => Waiting::Bytes,
            (Err(Errno::AGAIN), Poll::Pending) => Waiting::Nothing,
            (Ok((1.., _)), _) if self.tls.is_none() => Waiting::Bytes,
            _ => Waiting::End,
        }
    }

    /// Acknowledges at once what was received. A peer that wrote more than its response may hold the rest back until
    /// then; it shall come while the connection idles, not with the answer to the next request.
    pub(crate) fn acknowledge(&self) {
        // Only a wish: where the system does not know it, the peer waits for some 40 ms.
        let _ = rustix::net::sockopt::set_tcp_quickack(self.stream.socket(), true);
    }

    /// Reads something into `buf`, by the sooner of two moments.
    pub(crate) async fn fill(&mut self, idle: Instant, total: Instant) -> Result<(), Stop> {
        self.buf.reserve(READ_BYTES);
        match timeout_at(idle.min(total), self.stream.read_buf(&mut self.buf)).await {
            Err(_) => Err(Stop::Timeout),
            Ok(Ok(0)) => Err(Stop::Eof),
            Ok(Ok(_)) => Ok(()),
            // A peer that drops TCP without closing TLS ends its message like one that closes: most old servers do.
            Ok(Err(e)) if e.kind() == io::ErrorKind::UnexpectedEof => Err(Stop::Eof),
            Ok(Err(e)) => Err(Stop::Broken(e)),
        }
    }

    /// Writes all of `bytes`.
    pub(crate) async fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        let work = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout_at(deadline, work).await {
            Err(_) => Err(failure(ErrorClass::HeaderTimeout, "the request could not be sent in time")),
            Ok(Err(e)) => Err(failure(class_of(&e, ErrorClass::Reset), format!("sending the request: {e}"))),
            Ok(Ok(())) => Ok(()),
        }
    }
}

/// Runs one part of a fetch under its own limit and the total; `part` names it.
pub(crate) async fn within<T>(
    limit: Duration,
    total: Instant,
    class: ErrorClass,
    part: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let own = Instant::now() + limit;
    match timeout_at(own.min(total), work).await {
        Ok(result) => result,
        Err(_) if own <= total => Err(failure(class, format!("{part}: nothing within {limit:?}"))),
        Err(_) => Err(failure(class, format!("{part}: the time for the whole fetch is over"))),
    }
}
