//! The threads that speak to servers. One small runtime for the process: stores come and go, and to end a runtime on a
//! thread of another one is not allowed.

use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Threads; they only wait and copy.
const THREADS: usize = 2;

/// The runtime, and the process whose it is: after a fork (Python's process pools, Spark's workers) the child has the memory of a
/// runtime but none of its threads, and would wait for them for ever. That memory is never given back.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

fn runtime() -> Result<&'static Runtime> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = known.filter(|(of, _)| *of == process) {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let made = builder.worker_threads(THREADS).thread_name("trawl-store").enable_all().build();
    let reason = "cannot start the threads that speak to object stores: is a limit of threads or files reached?";
    let made = made.map_err(|_| Error::Refused { reason: reason.into() })?;
    let runtime: &'static Runtime = Box::leak(Box::new(made));
    *known = Some((process, runtime));
    Ok(runtime)
}

/// Runs a future to its end while the calling thread waits. Also from a thread of another runtime's blocking pool.
pub(super) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // The receiver is gone only if the waiting thread is.
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
