//! The server: one listener, real HTTP, threads of its own behind a blocking interface.

mod http1;
mod reply;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::world::World;

/// How often the log reaches the file.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How long connections may take to notice a stop.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What all connections share.
struct Shared {
    world: World,
    log: Log,
    latency: Duration,
    connections: AtomicU64,
}

/// Starts synthetic webs.
#[derive(Debug)]
pub struct TestWeb;

impl TestWeb {
    /// Computes the web of `config` and serves it until the result is stopped or dropped.
    pub fn start(config: Config) -> Result<Running> {
        let world = World::new(&config)?;
        let zero = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let log = Log::open(config.log.as_deref(), config.seed, zero, u64::try_from(unix).unwrap_or(u64::MAX))?;
        let shared = Arc::new(Shared {
            world,
            log,
            latency: Duration::from_millis(config.latency_ms),
            connections: AtomicU64::new(0),
        });
        let fail = |source| Error::Listen { addr: config.listen.to_string(), source };
        let listener = StdListener::bind(config.listen).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let addr = listener.local_addr().map_err(fail)?;
        let threads = usize::try_from(config.threads).unwrap_or(1);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("testweb")
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let (stop, stopped) = watch::channel(false);
        {
            let _guard = runtime.enter();
            let listener = TcpListener::from_std(listener).map_err(fail)?;
            runtime.spawn(accept(listener, Arc::clone(&shared), stopped));
        }
        runtime.spawn(flush(Arc::clone(&shared)));
        Ok(Running { addr, shared, stop, runtime: Some(runtime) })
    }
}

/// A synthetic web that is being served; dropping it stops it.
pub struct Running {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// All addresses it listens on.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        vec![self.addr]
    }

    /// The model behind it.
    pub fn world(&self) -> &World {
        &self.shared.world
    }

    /// The request log, if one is kept.
    pub fn log_path(&self) -> Option<&Path> {
        self.shared.log.path()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
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
        // Every connection holds a receiver; once all are gone, every last request is in the log.
        runtime.block_on(async {
            let _ = tokio::time::timeout(STOP_WITHIN, self.stop.closed()).await;
        });
        runtime.shutdown_timeout(STOP_WITHIN);
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

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((stream, remote)) => {
                tokio::spawn(serve(stream, remote, Arc::clone(&shared), stopped.clone()));
            }
            // Out of file descriptors, mostly: wait for connections to end rather than spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, remote: SocketAddr, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let conn = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    if let Ok(local) = stream.local_addr() {
        shared.log.opened(conn, local, remote);
    }
    // Small responses must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    tokio::select! {
        _ = http1::connection(stream, conn, &shared) => {}
        _ = stopped.changed() => {}
    }
    shared.log.closed(conn);
}
