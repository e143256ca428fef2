//! One connection: a stream and what was read from it too far.

use crate::error::{class_of, failure};
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

/// An open connection.
pub(crate) struct Conn {
    pub stream: Box<dyn Stream>,
    /// Read, not yet used.
    pub buf: BytesMut,
    pub peer: IpAddr,
    pub tls: Option<TlsFacts>,
    /// Whether it has already served a response.
    pub reused: bool,
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
    /// Whether nothing waits to be read: no bytes that belong to no response, no end, no error. Bytes that wait here would
    /// be taken for the answer to the next request, and archived under its URL.
    ///
    /// The socket is asked itself, because the runtime learns of new bytes only some time after they came.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let socket = match recv(self.stream.socket(), &mut byte, flags) {
            Err(Errno::AGAIN) => true,
            Ok(_) | Err(_) => false,
        };
        // What TLS has unpacked already is no longer in the socket.
        let mut unpacked = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(std::task::Waker::noop());
        self.buf.is_empty()
            && socket
            && matches!(Pin::new(&mut self.stream).poll_read(&mut context, &mut unpacked), Poll::Pending)
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
