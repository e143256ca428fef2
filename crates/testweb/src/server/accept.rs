//! From a listening socket to a protocol: one port speaks http and https, HTTP/1.1 and HTTP/2.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Shared, http1, http2};
use crate::config::Addresses;

/// The first byte of a TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Connections waiting to be accepted.
const BACKLOG: u32 = 4_096;

/// A connection that can be reset instead of closed.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    /// The socket below any encryption.
    fn socket(&self) -> &TcpStream;

    /// Makes closing the connection a reset: the peer sees an error, not an end.
    fn reset_on_close(&self) {
        // Without linger the worst that can happen is an ordinary close.
        let _ = self.socket().set_zero_linger();
    }
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Opens the listening socket. With many addresses it is bound to all of them, but only on the loopback device.
pub(super) fn listen(addr: SocketAddr, addresses: Addresses) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    match addresses {
        Addresses::One => socket.bind(addr)?,
        Addresses::Many => {
            bind_loopback_device(&socket)?;
            socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), addr.port()))?;
        }
    }
    socket.listen(BACKLOG)
}

#[cfg(target_os = "linux")]
fn bind_loopback_device(socket: &TcpSocket) -> std::io::Result<()> {
    socket.bind_device(Some(b"lo"))
}

#[cfg(not(target_os = "linux"))]
fn bind_loopback_device(_: &TcpSocket) -> std::io::Result<()> {
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "many addresses need Linux"))
}

/// Where clients come in, and whether they may.
pub(super) struct Door {
    pub(super) addr: SocketAddr,
    pub(super) addresses: Addresses,
    pub(super) open: watch::Receiver<bool>,
    pub(super) stopped: watch::Receiver<bool>,
}

pub(super) async fn accept(mut listener: TcpListener, shared: Arc<Shared>, mut door: Door) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            true = shut(&mut door.open) => {
                // Without a listening socket the system itself refuses connections.
                drop(listener);
                match door.listen_again().await {
                    Some(again) => listener = again,
                    None => return,
                }
                continue;
            }
            _ = door.stopped.changed() => return,
        };
        match accepted {
            Ok((stream, remote)) if remote.ip().is_loopback() => {
                tokio::spawn(serve(stream, remote, Arc::clone(&shared), door.open.clone(), door.stopped.clone()));
            }
            Ok(_) => {}
            // Out of file descriptors, mostly: wait for connections to end rather than spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Whether the door was shut; waits until it is.
async fn shut(open: &mut watch::Receiver<bool>) -> bool {
    open.wait_for(|open| !open).await.is_ok()
}

impl Door {
    /// A new listening socket at the old port once the door is open again; `None` if the server stops first.
    async fn listen_again(&mut self) -> Option<TcpListener> {
        tokio::select! {
            _ = self.open.wait_for(|open| *open) => {}
            _ = self.stopped.changed() => return None,
        }
        loop {
            match listen(self.addr, self.addresses) {
                Ok(listener) => return Some(listener),
                // The last connections to the old socket may still be closing.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    remote: SocketAddr,
    shared: Arc<Shared>,
    mut open: watch::Receiver<bool>,
    mut stopped: watch::Receiver<bool>,
) {
    let conn = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    if let Ok(local) = stream.local_addr() {
        shared.log.opened(conn, local, remote);
    }
    // Small responses must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    // The streams of HTTP/2 are tasks of their own; whatever ends the connection, they end first, and are logged.
    let mut streams = JoinSet::new();
    tokio::select! {
        _ = speak(stream, conn, &shared, &mut streams) => {}
        _ = shut(&mut open) => {}
        _ = stopped.changed() => {}
    }
    streams.shutdown().await;
    shared.log.closed(conn);
}

async fn speak(stream: TcpStream, conn: u64, shared: &Arc<Shared>, streams: &mut JoinSet<()>) -> std::io::Result<()> {
    let mut first = [0; 1];
    let Some(tls) = &shared.tls else { return http1::connection(stream, conn, shared, false).await };
    if stream.peek(&mut first).await? == 0 || first != [TLS_HANDSHAKE] {
        return http1::connection(stream, conn, shared, false).await;
    }
    let started = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let name = started.client_hello().server_name().map(str::to_ascii_lowercase);
    let Some(config) = tls.config_for(&shared.world, name.as_deref()) else {
        shared.log.secured(conn, name.as_deref(), None);
        // Dropping the half-done handshake closes the connection.
        return Ok(());
    };
    let stream = started.into_stream(config).await?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    shared.log.secured(conn, name.as_deref(), Some(if http2 { "h2" } else { "http/1.1" }));
    if http2 {
        http2::connection(stream, conn, shared, streams).await
    } else {
        http1::connection(stream, conn, shared, true).await
    }
}
