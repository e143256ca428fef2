//! HTTP/2, by the h2 library: one request at a time on a connection.
//!
//! HTTP/2 has no head to keep as it came: it is written as HTTP/1.1 would write it, names in lower case as they were sent, and
//! the capture says `h2`. A server that breaks the protocol, or asks for HTTP/1.1, is asked again in that.
//!
//! ```text
//! request ─► ready ─► send ─► head ─► body ─► Response
//!              │        │       │       └ broken off: cut, or failed where nothing came; by HTTP/1.1 next time if that is why
//!              │        │       └ reset: failed; by HTTP/1.1 next time if that is why
//!              └────────┴ hung up while idle: again on a new connection; not HTTP/2 at all: again by HTTP/1.1
//! ```

use crate::body::{Received, Sink, Terms, end_of};
use crate::client::{Attempt, Notes, millis_since};
use crate::config::Limits;
use crate::error::{class_of, failure};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::{Method, Request, Response, Uri, Version};
use std::net::IpAddr;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use trawl_model::{ErrorClass, Failure, TlsFacts, Truncated};

/// Bytes a server may send before we have taken any: what a fast connection holds in flight.
const WINDOW_BYTES: u32 = 1 << 20;
/// Memory for data that was received and not taken yet, of one connection.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;

/// An open connection. Its task ends when this is dropped.
pub(crate) struct Http2 {
    send: SendRequest<Bytes>,
    pub peer: IpAddr,
    pub tls: TlsFacts,
    /// Whether it has already served a response.
    pub reused: bool,
}

impl Http2 {
    /// Greets the server.
    pub(crate) async fn start(
        stream: TlsStream<TcpStream>,
        peer: IpAddr,
        tls: TlsFacts,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX));
        // The greeting is written here; whether the server understands it shows with the first answer.
        let (send, connection) = builder.handshake(stream).await.map_err(|e| failed(&e, "greeting the server"))?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Http2 { send, peer, tls, reused: false })
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn request(
        &mut self,
        uri: Uri,
        fields: &[(&'static str, &str)],
        limits: &Limits,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response<RecvStream>, Attempt> {
        let mut request = Request::builder().method(Method::GET).uri(uri).version(Version::HTTP_2);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        // What HTTP/2 cannot say, HTTP/1.1 can.
        let request = request.body(()).map_err(|_| Attempt::Http1)?;
        let deadline = total.min(Instant::now() + limits.idle);
        let late = |what: &str| Attempt::Failed(failure(ErrorClass::HeaderTimeout, what));
        let ready = timeout_at(deadline, std::future::poll_fn(|context| self.send.poll_ready(context))).await;
        let ready = ready.map_err(|_| late("the request could not be sent in time"))?;
        let unsent = |attempt| match attempt {
            Attempt::Stale => Attempt::Closed,
            other => other,
        };
        ready.map_err(|e| unsent(self.attempt(&e)))?;
        let (response, _) = self.send.send_request(request, true).map_err(|e| unsent(self.attempt(&e)))?;
        let asked = Instant::now();
        let answer = timeout_at(total.min(asked + limits.first_byte), response).await;
        let answer = answer.map_err(|_| late("no response in time"))?.map_err(|e| self.attempt(&e))?;
        notes.timings.ttfb_ms = Some(millis_since(asked));
        Ok(answer)
    }

    /// What to do about an error before the head of a response. A request that the server may have worked on is not made
    /// again here: when that may be, the scheduler knows.
    fn attempt(&self, error: &h2::Error) -> Attempt {
        if error.reason() == Some(Reason::HTTP_1_1_REQUIRED) {
            return Attempt::Http1;
        }
        let of_stream = error.is_reset() && error.is_remote();
        // Its first words are not those of HTTP/2: what it took our request for was no request.
        if is_broken(error) && !of_stream && !self.reused {
            return Attempt::Http1;
        }
        let failed = failed(error, "waiting for the response");
        match error.reason() {
            // Said of requests that were not looked at.
            Some(Reason::REFUSED_STREAM) if self.reused => Attempt::Stale,
            _ if is_broken(error) => Attempt::Broken(failed),
            // Hung up while it idled.
            _ if self.reused && !of_stream => Attempt::Stale,
            _ => Attempt::Failed(failed),
        }
    }
}

/// Whether one of the two does not speak HTTP/2 as the other does.
fn is_broken(error: &h2::Error) -> bool {
    let reasons = [
        Reason::PROTOCOL_ERROR,
        Reason::FLOW_CONTROL_ERROR,
        Reason::SETTINGS_TIMEOUT,
        Reason::STREAM_CLOSED,
        Reason::FRAME_SIZE_ERROR,
        Reason::COMPRESSION_ERROR,
        Reason::INADEQUATE_SECURITY,
    ];
    error.get_io().is_none() && error.reason().is_some_and(|reason| reasons.contains(&reason))
}

fn failed(error: &h2::Error, doing: &str) -> Failure {
    let class = error.get_io().map_or(ErrorClass::Reset, |io| class_of(io, ErrorClass::Reset));
    failure(class, format!("{doing}: {error}"))
}

/// The head as HTTP/1.1 would write it.
pub(crate) fn head_of<T>(response: &Response<T>) -> Bytes {
    let status = response.status();
    let mut head =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default()).into_bytes();
    for (name, value) in response.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Reads the body of a response. What came before a timeout or a disconnect is kept and marked; when nothing at all came, that
/// is a failure unless the head says enough. Also says whether the server broke the protocol, as one does that announces another
/// length than it sends.
pub(crate) async fn receive(stream: RecvStream, terms: Terms<'_>) -> (Result<Received, Failure>, bool) {
    let mut broken = false;
    (receive_body(stream, terms, &mut broken).await, broken)
}

async fn receive_body(mut stream: RecvStream, terms: Terms<'_>, broken: &mut bool) -> Result<Received, Failure> {
    let mut sink = Sink::new(&terms);
    let cut = loop {
        let data = match timeout_at(terms.total.min(Instant::now() + terms.idle), stream.data()).await {
            Err(_) => break Some(Truncated::Time),
            Ok(None) => break None,
            Ok(Some(Err(error))) => {
                *broken = is_broken(&error);
                break Some(Truncated::Disconnect);
            }
            Ok(Some(Ok(data))) => data,
        };
        if !sink.put(&data).await? {
            break Some(Truncated::Length);
        }
        // Fails only for more than was received.
        let _ = stream.flow_control().release_capacity(data.len());
    };
    end_of(sink, cut, terms.head_answers, true).await
}
