//! Listening, answering, stopping.

use crate::{api, page};
use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use trawl_query::{Lake, QueryError};

/// How the server behaves.
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Questions asked of the lake at once; more are answered 503.
    pub max_concurrent: usize,
    /// How long a question may take; longer is answered 504.
    pub timeout: Duration,
    /// Hears what went wrong inside the lake.
    pub on_error: Box<dyn Fn(&QueryError) + Send + Sync>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            max_concurrent: 64,
            timeout: Duration::from_secs(30),
            on_error: Box::new(|_| {}),
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
    /// No threads to serve with, or the listener broke.
    #[error("cannot serve: {0}")]
    Serve(#[from] std::io::Error),
}

/// How long open requests may take once the server was told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What every handler shares.
pub(crate) struct State {
    pub(crate) lake: Arc<Lake>,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) timeout: Duration,
    pub(crate) on_error: Box<dyn Fn(&QueryError) + Send + Sync>,
}

/// A lake ready to be served.
pub struct Server;

/// A server that answers until it is stopped or dropped.
pub struct Running {
    address: SocketAddr,
    stop: Option<watch::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Server {
    /// Listens and answers on threads of its own.
    pub fn start(lake: Arc<Lake>, config: Config) -> Result<Running, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let address = config.listen;
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(address))
            .map_err(|source| Error::Listen { address, source })?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            lake,
            permits: Arc::new(Semaphore::new(config.max_concurrent.max(1))),
            timeout: config.timeout,
            on_error: config.on_error,
        });
        let (stop, stopped) = watch::channel(());
        let thread = std::thread::Builder::new().name("serve".into()).spawn(move || {
            runtime.block_on(async move {
                let serve = axum::serve(listener, router(state)).with_graceful_shutdown(dropped(stopped.clone()));
                tokio::select! {
                    result = serve.into_future() => result,
                    () = async { dropped(stopped).await; tokio::time::sleep(GRACE).await } => Ok(()),
                }
            })
        })?;
        Ok(Running { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, lets open requests finish.
    pub fn stop(mut self) -> Result<(), Error> {
        Ok(self.shut_down()?)
    }

    fn shut_down(&mut self) -> std::io::Result<()> {
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
async fn dropped(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

fn router(state: Arc<State>) -> Router {
    Router::new()
        .route("/", get(page::html))
        .route("/explorer.css", get(page::css))
        .route("/explorer.js", get(page::js))
        .route("/health", get(api::health))
        .route("/v1/domain/{domain}", get(api::domain))
        .route("/v1/domain/{domain}/datasets/{dataset_id}/urls", get(api::urls))
        .route("/v1/domains", get(api::domains))
        .route("/v1/datasets", get(api::datasets))
        .route("/v1/stats", get(api::stats))
        .fallback(api::nowhere)
        .with_state(state)
}
