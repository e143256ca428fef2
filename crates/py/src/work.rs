//! Long calls: the interpreter is free for other threads meanwhile, and Ctrl-C ends them.

use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;
use trawl_query::{Effort, Pace};
use trawl_store::Cancel;

/// How often a call that waits looks whether somebody pressed Ctrl-C.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does `work` on a thread of its own, without the interpreter. When a signal handler raises (Ctrl-C), `cancel` tells the work to
/// end; its end is waited for, so that nothing happens after the call.
pub fn run<T: Send>(py: Python<'_>, cancel: &Cancel, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    thread::scope(|scope| {
        let (send, receive) = sync_channel(1);
        let receive = Mutex::new(receive);
        let worker = thread::Builder::new().name("trawl".into()).spawn_scoped(scope, move || {
            // The receiver is gone if the call was interrupted.
            let _ = send.send(work());
        });
        let worker = worker.map_err(|problem| crate::error::of(&problem))?;
        loop {
            let done = py.detach(|| crate::locked(&receive).recv_timeout(LOOK_EVERY));
            match done {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = py.check_signals() {
                        cancel.cancel();
                        let _ = py.detach(|| worker.join());
                        return Err(interrupt);
                    }
                }
                // It ended without an answer: a panic, which goes on here.
                Err(RecvTimeoutError::Disconnected) => match py.detach(|| worker.join()) {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(crate::error::other("the work ended without an answer")),
                },
            }
        }
    })
}

/// The effort of a question that `cancel` ends.
pub fn effort(cancel: &Cancel) -> Effort {
    let cancel = cancel.clone();
    Effort::of(move || if cancel.check().is_err() { Pace::Stop } else { Pace::GoOn })
}
