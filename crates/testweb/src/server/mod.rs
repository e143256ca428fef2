//! The server: one listener, real HTTP, threads of its own behind a blocking interface.
//!
//! ```text
//! accept ─► first byte ─┬─ TLS ─► name ─► certificate ─► ALPN ─┬─ h2 ──────► http2 ┐
//!                       │                                     └─ http/1.1 ┐       ├─► plan ─► send ─► log
//!                       └─ else ─────────────────────────────────────────►┴ http1 ┘
//! ```

mod accept;
mod clock;
mod coding;
mod dns;
mod http1;
mod http2;
mod plan;
mod send;
mod state;
mod tls;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

pub use dns::NameService;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::world::World;

/// How often the log reaches the file.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How long connections may take to notice a stop.
const STOP_WITHIN: Duration = Duration::from_secs(15);

/// What all connections share.
struct Shared {
    world: Arc<World>,
    log: Log,
    clock: clock::Clock,
    state: state::State,
    tls: Option<tls::Tls>,
    latency: Duration,
    connections: AtomicU64,
    names: dns::Names,
    names_mode: watch::Sender<NameService>,
}

/// Starts synthetic webs.
#[derive(Debug)]
pub struct TestWeb;

impl TestWeb {
    /// Computes the web of `config` and serves it until the result is stopped or dropped.
    pub fn start(config: Config) -> Result<Running> {
        let world = Arc::new(World::new(&config)?);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let unix_us = u64::try_from(unix).unwrap_or(u64::MAX);
        let log = Log::open(config.log.as_deref(), config.seed, Instant::now(), unix_us)?;
        let clock = clock::Clock::new(config.clock_rate, config.epoch_s);
        log.clock_set(clock.now_s(), clock.rate());
        let secure = world.hosts().iter().any(|h| h.is_secure());
        let tls = if secure { Some(tls::Tls::new(Arc::clone(&world))?) } else { None };
        let latency = Duration::from_millis(config.latency_ms);
        let (state, connections) = (state::State::default(), AtomicU64::new(0));
        let (names, names_mode) = (dns::Names::default(), watch::Sender::default());
        let shared = Arc::new(Shared { world, log, clock, state, tls, latency, connections, names, names_mode });
        let runtime = Builder::new_multi_thread()
            .worker_threads(usize::try_from(config.threads).unwrap_or(1))
            .thread_name("testweb")
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let (stop, stopped) = watch::channel(false);
        let (open, opened) = watch::channel(true);
        let fail = |source| Error::Listen { addr: config.listen.to_string(), source };
        let (addr, names_addr) = {
            let _guard = runtime.enter();
            let listener = accept::listen(config.listen, config.addresses).map_err(fail)?;
            let addr = SocketAddr::new(config.listen.ip(), listener.local_addr().map_err(fail)?.port());
            let door = accept::Door { addr, addresses: config.addresses, open: opened, stopped: stopped.clone() };
            runtime.spawn(accept::accept(listener, Arc::clone(&shared), door));
            let socket = std::net::UdpSocket::bind(SocketAddr::new(config.listen.ip(), 0)).map_err(fail)?;
            socket.set_nonblocking(true).map_err(fail)?;
            let socket = UdpSocket::from_std(socket).map_err(fail)?;
            let names_addr = socket.local_addr().map_err(fail)?;
            runtime.spawn(dns::serve(socket, Arc::clone(&shared), stopped));
            (addr, names_addr)
        };
        runtime.spawn(flush(Arc::clone(&shared)));
        Ok(Running { addr, names_addr, shared, open, stop, runtime: Some(runtime) })
    }
}

/// A synthetic web that is being served; dropping it stops it.
pub struct Running {
    addr: SocketAddr,
    names_addr: SocketAddr,
    shared: Arc<Shared>,
    open: watch::Sender<bool>,
    stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Running {
    /// Where it listens; every host can be reached here.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where its name server listens (UDP): it resolves the hosts of this web.
    pub fn names_addr(&self) -> SocketAddr {
        self.names_addr
    }

    /// How the name server treats questions from now on.
    pub fn set_names(&self, mode: NameService) {
        self.shared.names_mode.send_replace(mode);
    }

    /// Shuts every host (`false`): connections are dropped and new ones refused, as while a server restarts; or lets
    /// clients in again.
    pub fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// All addresses at which hosts are to be found, without repeats.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        let world = &self.shared.world;
        let mut out: Vec<SocketAddr> =
            world.host_ids().map(|id| SocketAddr::new(world.address(id).into(), self.addr.port())).collect();
        out.dedup();
        out
    }

    /// The model behind it.
    pub fn world(&self) -> &World {
        &self.shared.world
    }

    /// The request log, if one is kept.
    pub fn log_path(&self) -> Option<&Path> {
        self.shared.log.path()
    }

    /// The certificate of the authority that signs the hosts' certificates (PEM); `None` if no host speaks https.
    pub fn ca_pem(&self) -> Option<&str> {
        self.shared.tls.as_ref().map(tls::Tls::ca_pem)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Requests that have come so far; the log has them when they end.
    pub fn requests(&self) -> u64 {
        self.shared.log.begun()
    }

    /// Virtual time now, Unix seconds.
    pub fn time(&self) -> u64 {
        self.shared.clock.now_s()
    }

    /// Sets virtual time: pages take on the versions of that time.
    pub fn set_time(&self, unix_s: u64) {
        self.shared.clock.set(unix_s);
        self.shared.log.clock_set(unix_s, self.shared.clock.rate());
    }

    /// Writes everything logged so far to the log file.
    pub fn flush_log(&self) {
        self.shared.log.flush();
    }

    /// Closes all connections and completes the log.
    pub fn stop(mut self) -> Result<()> {
        self.shut_down();
        self.shared.log.finish()
    }

    fn shut_down(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let _ = self.stop.send(true);
        // Every connection holds a receiver; once all are gone, every last request is in the log. The wait happens on
        // the runtime's own threads, so that a web may also be stopped by somebody who is inside another runtime.
        let (done, all_gone) = std::sync::mpsc::channel();
        let stop = self.stop.clone();
        runtime.spawn(async move {
            stop.closed().await;
            let _ = done.send(());
        });
        let _ = all_gone.recv_timeout(STOP_WITHIN);
        runtime.shutdown_background();
        self.shared.log.flush();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shut_down();
    }
}

async fn flush(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        shared.log.flush();
    }
}
