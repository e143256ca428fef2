//! The threads that speak to servers. One small runtime for the process: stores come and go, and to end a runtime on a
//! thread of another one is not allowed.

use crate::{Error, Result};
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// Threads; they only wait and copy.
const THREADS: usize = 2;

static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();

fn runtime() -> Result<&'static Runtime> {
    let made = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("trawl-store").enable_all().build().ok()
    });
    let reason = "cannot start the threads that speak to object stores: is a limit of threads or files reached?";
    made.as_ref().ok_or_else(|| Error::Refused { reason: reason.into() })
}

/// Runs a future to its end while the calling thread waits. Also from a thread of another runtime's blocking pool.
pub(super) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody waits any more only if the waiting thread is gone.
        let _ = send.send(future.await);
    });
    receive.recv().map_err(|error| lost(&error))
}

/// A task that ended without an answer: it panicked.
pub(super) fn lost(error: &dyn std::fmt::Display) -> Error {
    Error::Refused {
        reason: format!("a request to an object store ended without an answer ({error}): please report it"),
    }
}
