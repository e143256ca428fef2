//! From sockets to requests: connections with limits of time and number, TLS, HTTP/1.1 and HTTP/2.

use crate::asker::Peer;
use crate::bare::Bare;
use crate::connections::{Busy, Connections, Place};
use crate::failure::Failure;
use crate::tls::Tls;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response, Version};
use axum::response::IntoResponse;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Sleep;

/// Bytes of a request's head at most.
const MAX_HEAD: usize = 32 << 10;
/// Requests of one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 100;
/// The answer to a connection when there is no room for it.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\
Content-Length: 68\r\n\r\n{\"error\":\"busy\",\"message\":\"too many connections at once: try again\"}";

/// Limits of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For the head of a request, and for a TLS handshake.
    pub head: Duration,
    /// For a connection on which nothing is asked.
    pub idle: Duration,
    /// For a client that takes nothing of an answer.
    pub write: Duration,
}

/// Listens, with room for `waiting` connections that are not accepted yet. The library's 128 are too few: when 800 clients came at
/// once, the kernel fell back to SYN cookies for some and reset three of them instead of handing them to us for a 503. The
/// kernel lowers `waiting` to its own limit (`net.core.somaxconn`).
pub(crate) fn listen(address: SocketAddr, waiting: usize) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As a bind by the library does: a server that was stopped can be started again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(waiting.min(1 << 16) as u32)
}

/// Accepts connections until `stopped`, then lets open requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    tls: Option<Arc<Tls>>,
    connections: Arc<Connections>,
    patience: Patience,
    stopped: watch::Receiver<()>,
    grace: Duration,
) -> io::Result<()> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = crate::server::dropped(stopped.clone()) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            // No descriptors, or a connection that was gone before it was accepted: others may be fine.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        match connections.enter() {
            Some(place) => {
                let (app, tls, stopped) = (app.clone(), tls.clone(), stopped.clone());
                tokio::spawn(async move { connection(stream, peer, place, app, tls, patience, stopped).await });
            }
            None => {
                tokio::spawn(refuse(stream, tls.is_some()));
            }
        }
    }
    drop(listener);
    // Requests that take longer are cut off with the runtime.
    let _ = tokio::time::timeout(grace, connections.drained()).await;
    Ok(())
}

/// Says 503, then waits until the client has closed: a socket that is closed with its request unread sends a reset, and a reset
/// can overtake the answer.
async fn refuse(mut stream: TcpStream, is_tls: bool) {
    if is_tls {
        return;
    }
    let farewell = async move {
        stream.write_all(NO_ROOM).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(MAX_HEAD as u64), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), farewell).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    app: Router,
    tls: Option<Arc<Tls>>,
    patience: Patience,
    stopped: watch::Receiver<()>,
) {
    let one = place.0.clone();
    let stream = Stalls { inner: stream, limit: patience.write, stalled: None, resets: false, one };
    match tls {
        None => requests(stream, peer, place, app, patience, stopped).await,
        Some(tls) => {
            let handshake = tls.acceptor().accept(stream);
            let accepted = tokio::select! {
                accepted = tokio::time::timeout(patience.head, handshake) => accepted,
                // It makes room for another one: who says nothing is idle before the handshake, too.
                () = place.0.close.notified() => return,
            };
            if let Ok(Ok(stream)) = accepted {
                requests(stream, peer, place, app, patience, stopped).await;
            }
        }
    }
}

async fn requests<S>(
    stream: S,
    peer: SocketAddr,
    place: Place,
    app: Router,
    patience: Patience,
    stopped: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let one = place.0.clone();
    let service = tower_service_fn(app, peer, one.clone());
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(HeadTimer(one.clone())).header_read_timeout(patience.head).max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .keep_alive_interval(patience.idle / 2)
        .keep_alive_timeout(patience.head);
    let connection =
        builder.serve_connection(TokioIo::new(Bare::new(stream, one.clone())), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let mut closing = false;
    let over = one.is_over(patience.idle, patience.write);
    let mut over = std::pin::pin!(over);
    loop {
        tokio::select! {
            // What breaks a connection is the client's to know.
            _ = connection.as_mut() => return,
            () = one.close.notified() => return,
            () = &mut over => return,
            () = crate::server::dropped(stopped.clone()), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The clock for heads. The library starts it as soon as it waits for a request, so it would close connections that are merely
/// idle after `Patience::head` instead of `Patience::idle`; this one starts with the first byte of a head.
struct HeadTimer(Arc<crate::connections::Connection>);

impl hyper::rt::Timer for HeadTimer {
    fn sleep(&self, limit: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeadLimit { one: self.0.clone(), limit, left: None })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

/// Ends when a head has been coming in for longer than `limit`.
struct HeadLimit {
    one: Arc<crate::connections::Connection>,
    limit: Duration,
    left: Option<Pin<Box<Sleep>>>,
}

impl hyper::rt::Sleep for HeadLimit {}

impl Future for HeadLimit {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Nothing has to wake this before a byte comes: the library asks again after each read.
        let Some(age) = self.one.head_age() else { return Poll::Pending };
        let left = self.limit.saturating_sub(age);
        self.left.get_or_insert_with(|| Box::pin(tokio::time::sleep(left))).as_mut().poll(cx)
    }
}

/// The application as a service of one connection: requests know their peer, and the connection knows of its requests.
fn tower_service_fn(app: Router, peer: SocketAddr, one: Arc<crate::connections::Connection>) -> OneConnection {
    OneConnection { app, peer, one }
}

#[derive(Clone)]
struct OneConnection {
    app: Router,
    peer: SocketAddr,
    one: Arc<crate::connections::Connection>,
}

impl tower_service::Service<Request<Incoming>> for OneConnection {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let mut busy = self.one.request();
        let (mut app, one) = (self.app.clone(), self.one.clone());
        let is_old = request.version() == Version::HTTP_10 && request.method() != Method::HEAD;
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(Peer(self.peer.ip())));
        Box::pin(async move {
            let mut response = tower_service::Service::call(&mut app, request).await?;
            if !busy.holds(response.body().size_hint().exact().unwrap_or(0)) {
                response = Failure::busy().into_response();
            }
            if is_old && response.body().size_hint().exact().is_none() {
                one.end_answer();
            }
            busy.offers(true);
            Ok(response.map(|body| Body::new(Sent { body, rest: Bytes::new(), busy })))
        })
    }
}

/// Bytes handed to the connection at a time: what it has taken counts as sent.
const PIECE: usize = 64 << 10;

/// A body that keeps its connection busy until it is sent.
struct Sent {
    body: Body,
    /// What is left of the frame at hand.
    rest: Bytes,
    busy: Busy,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.busy.offers(polled.is_ready());
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        } else {
            self.busy.offers(true);
        }
        let len = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut all = SizeHint::new();
        all.set_lower(body.lower().saturating_add(rest));
        body.upper().into_iter().for_each(|upper| all.set_upper(upper.saturating_add(rest)));
        all
    }
}

/// Bytes that a few frames without content take, encrypted or not.
const PING: usize = 100;

/// A stream that ends when its peer takes nothing for too long.
struct Stalls {
    inner: TcpStream,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether the system resets it when it is dropped.
    resets: bool,
    one: Arc<crate::connections::Connection>,
}

impl Stalls {
    /// Has the system reset the connection, whyever it ends, while an answer is on its way whose end is that of the connection. A
    /// client, such as a proxy that speaks HTTP/1.0, would take an answer that was cut off for whole, and so would its own clients.
    fn guard(&mut self) {
        if !self.resets && self.one.ends_answer() {
            self.resets = self.inner.set_zero_linger().is_ok();
        }
    }

    /// The answer is whole: what is on its way arrives.
    #[allow(deprecated, reason = "it is deprecated for the times that can be set, at which a drop waits")]
    fn unguard(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.resets) { self.inner.set_linger(None) } else { Ok(()) }
    }

    /// The end of an answer may be on its way long after its last piece was handed over: such a connection is not idle.
    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        // Pings of HTTP/2 are no use of a connection.
        if matches!(polled, Poll::Ready(Ok(written)) if *written > PING) {
            self.one.touch();
        }
    }

    fn watch<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let limit = self.limit;
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stalls {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stalls {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.guard();
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(&polled);
        self.watch(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.guard();
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.wrote(&polled);
        self.watch(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unguard()?;
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch(polled, cx)
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn clients_that_come_at_once_wait_to_be_accepted() {
        let limit =
            std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok());
        let many = limit.unwrap_or(128).min(600);
        let listener = super::listen("127.0.0.1:0".parse().unwrap(), 4096).unwrap();
        let address = listener.local_addr().unwrap();
        // A queue that is full lets no client in until its patience ends.
        let patience = std::time::Duration::from_secs(20);
        let waiting: Vec<_> =
            (0..many).map(|_| std::net::TcpStream::connect_timeout(&address, patience).unwrap()).collect();
        assert_eq!(waiting.len(), many);
    }

    #[test]
    fn the_refusal_says_its_own_length() {
        let text = std::str::from_utf8(super::NO_ROOM).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }
}
