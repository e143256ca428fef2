//! Listening, answering, watching, stopping.

use crate::access::{Access, AccessRules};
use crate::connections::Connections;
use crate::event::{Event, Facts};
use crate::listen::{self, Patience};
use crate::metrics::Metrics;
use crate::tls::{Tls, TlsFiles};
use crate::work::Clients;
use crate::{front, routes, watch};
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch as signal};
use trawl_query::{Archives, Lake};

/// How the server behaves.
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where metrics and admin calls are; `None` leaves metrics with the rest, and no admin calls.
    pub admin: Option<SocketAddr>,
    /// Questions asked of the lake at once; more wait for their turn.
    pub max_concurrent: usize,
    /// Questions that wait for their turn; more are answered 503.
    pub max_waiting: usize,
    /// How long a question waits for its turn before it is answered 503.
    pub max_wait: Duration,
    /// Exports at once, and as many other streamed answers (captures, CDX); more wait for their turn, as many and as long as
    /// questions may.
    pub max_streams: usize,
    /// Requests of one client (a token, or an address) at once; more are answered 429. 0 is no limit.
    pub max_per_client: usize,
    /// Connections at once: past it the one that has been idle longest is closed.
    pub max_connections: usize,
    /// How long a question may take; longer is answered 504.
    pub timeout: Duration,
    /// How long a search among rows goes on before it answers with what it has.
    pub budget: Duration,
    /// How long a streamed answer may take.
    pub stream_timeout: Duration,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a connection may stay open on which nothing is asked.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of an answer.
    pub write_timeout: Duration,
    /// How long open requests may take once the server was told to stop.
    pub grace: Duration,
    /// How often the lake, tokens and certificates are looked at for changes.
    pub poll: Duration,
    /// Memory for answers about domains that are asked for often.
    pub hot_bytes: u64,
    /// Origins whose pages may use the API from a browser; `*` for all.
    pub cors: Vec<String>,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<TlsFiles>,
    /// A file of tokens; without one, anyone sees public datasets.
    pub access: Option<PathBuf>,
    /// The archives that captures are read from; `None` answers no captures.
    pub archives: Option<Archives>,
    /// Hears what happens.
    pub on_event: Box<dyn Fn(&Event<'_>) + Send + Sync>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin: None,
            max_concurrent: 64,
            max_waiting: 256,
            max_wait: Duration::from_secs(1),
            max_streams: 8,
            max_per_client: 0,
            max_connections: 4096,
            timeout: Duration::from_secs(30),
            budget: Duration::from_secs(2),
            stream_timeout: Duration::from_secs(3600),
            head_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            hot_bytes: 64 << 20,
            cors: Vec::new(),
            tls: None,
            access: None,
            archives: None,
            on_event: Box::new(|_| {}),
        }
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file of tokens cannot be used.
    #[error("{}: {why}", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate cannot be used.
    #[error("{0}")]
    Tls(std::io::Error),
    /// No threads to serve with, or the listener broke.
    #[error("cannot serve: {0}")]
    Serve(#[from] std::io::Error),
}

/// Answers kept by version, rights and name; the name of an answer is what was asked.
type Hot = Cache<(u64, String), (Bytes, Facts), HotWeight>;

#[derive(Clone)]
pub(crate) struct HotWeight;

impl Weighter<(u64, String), (Bytes, Facts)> for HotWeight {
    fn weight(&self, (_, name): &(u64, String), (body, _): &(Bytes, Facts)) -> u64 {
        (name.len() + body.len() + 128) as u64
    }
}

/// What every handler shares.
pub(crate) struct State {
    pub(crate) lake: Arc<Lake>,
    pub(crate) archives: Option<Archives>,
    pub(crate) permits: Arc<Semaphore>,
    /// Captures and CDX.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) waiting: Arc<Semaphore>,
    /// Apart, so that exports that wait take no place from questions.
    pub(crate) waiting_to_stream: Semaphore,
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) max_wait: Duration,
    pub(crate) max_streams: usize,
    pub(crate) max_per_client: usize,
    pub(crate) clients: Arc<Clients>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) timeout: Duration,
    pub(crate) budget: Duration,
    pub(crate) stream_timeout: Duration,
    pub(crate) hot: Hot,
    pub(crate) metrics: Metrics,
    pub(crate) cors: Vec<String>,
    pub(crate) openapi: Bytes,
    pub(crate) has_admin: bool,
    pub(crate) stopping: AtomicBool,
    pub(crate) lake_state: watch::LakeState,
    pub(crate) on_event: Box<dyn Fn(&Event<'_>) + Send + Sync>,
    access: RwLock<Arc<Access>>,
    pub(crate) access_file: Option<PathBuf>,
}

impl State {
    pub(crate) fn access(&self) -> Arc<Access> {
        self.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_access(&self, access: Access) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }
}

/// The rules in a file.
pub(crate) fn read_access(path: &std::path::Path) -> Result<Access, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read the access rules: {error}"))?;
    if text.trim().is_empty() {
        // Half-way through being written again, most likely: not an order to shut everybody out.
        return Err("expected tokens or `anonymous`, found an empty file".into());
    }
    let rules: AccessRules = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    Access::new(&rules)
}

/// A lake ready to be served.
pub struct Server;

/// A server that answers until it is stopped or dropped.
pub struct Running {
    address: SocketAddr,
    admin: Option<SocketAddr>,
    state: Arc<State>,
    stop: Option<signal::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Server {
    /// Listens and answers on threads of its own.
    pub fn start(lake: Arc<Lake>, config: Config) -> Result<Running, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let bind = |address: SocketAddr| {
            let _inside = runtime.enter();
            listen::listen(address, config.max_connections).map_err(|source| Error::Listen { address, source })
        };
        let listener = bind(config.listen)?;
        let address = listener.local_addr()?;
        let admin = config.admin.map(bind).transpose()?;
        let admin_address = admin.as_ref().map(tokio::net::TcpListener::local_addr).transpose()?;
        let access = match &config.access {
            Some(path) => read_access(path).map_err(|why| Error::Access { path: path.clone(), why })?,
            None => Access::new(&AccessRules::default()).unwrap_or_else(|_| Access::nobody()),
        };
        let tls = config.tls.map(Tls::open).transpose().map_err(Error::Tls)?.map(Arc::new);
        let patience = Patience { head: config.head_timeout, idle: config.idle_timeout, write: config.write_timeout };
        let (max_concurrent, max_streams) = (config.max_concurrent.max(1), config.max_streams.max(1));
        let state = Arc::new(State {
            lake_state: watch::LakeState::of(&lake),
            lake,
            archives: config.archives,
            permits: Arc::new(Semaphore::new(max_concurrent)),
            streams: Arc::new(Semaphore::new(max_streams)),
            exports: Arc::new(Semaphore::new(max_streams)),
            waiting: Arc::new(Semaphore::new(config.max_waiting.min(Semaphore::MAX_PERMITS))),
            waiting_to_stream: Semaphore::new(config.max_waiting.min(Semaphore::MAX_PERMITS)),
            max_concurrent,
            max_waiting: config.max_waiting.min(Semaphore::MAX_PERMITS),
            max_wait: config.max_wait,
            max_streams,
            max_per_client: config.max_per_client,
            clients: Arc::default(),
            connections: Connections::new(config.max_connections),
            timeout: config.timeout,
            budget: config.budget,
            stream_timeout: config.stream_timeout,
            hot: Cache::with_weighter(4096, config.hot_bytes.max(1), HotWeight),
            metrics: Metrics::new(routes::names()),
            cors: config.cors,
            openapi: routes::document(),
            has_admin: admin.is_some(),
            stopping: AtomicBool::new(false),
            on_event: config.on_event,
            access: RwLock::new(Arc::new(access)),
            access_file: config.access,
        });
        let (stop, stopped) = signal::channel(());
        let (grace, poll, mine) = (config.grace, config.poll, state.clone());
        let thread = std::thread::Builder::new().name("serve".into()).spawn(move || {
            let served = runtime.block_on(async move {
                tokio::spawn(watch::files(mine.clone(), tls.clone(), poll, stopped.clone()));
                watch::lake(mine.clone(), poll, stopped.clone())?;
                let connections = mine.connections.clone();
                if let Some(admin) = admin {
                    let (app, all) = (front::wrap(routes::admin(mine.clone()), &mine), connections.clone());
                    let serve = listen::serve(admin, app, None, all, patience, stopped.clone(), grace);
                    tokio::spawn(serve);
                }
                let app = front::wrap(routes::public(mine.clone()), &mine);
                listen::serve(listener, app, tls, connections, patience, stopped, grace).await
            });
            // A question that hangs in a read of a store that hangs must not keep the process.
            runtime.shutdown_timeout(Duration::from_secs(1));
            served
        })?;
        Ok(Running { address, admin: admin_address, state, stop: Some(stop), thread: Some(thread) })
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics and admin calls are, if not with the rest.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Stops listening, lets open requests finish.
    pub fn stop(mut self) -> Result<(), Error> {
        Ok(self.shut_down()?)
    }

    fn shut_down(&mut self) -> std::io::Result<()> {
        self.state.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        drop(self.stop.take());
        match self.thread.take().map(std::thread::JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(std::io::Error::other("the serving thread panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.shut_down();
    }
}

/// Until the sender is gone.
pub(crate) async fn dropped(mut stopped: signal::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}
