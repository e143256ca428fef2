//! What may change under a running server: the lake, tokens, certificates.
//!
//! ```text
//!            every poll
//! lake ─────► checked ─┬─ as it was, or gone on ─► nothing
//!                      ├─ gone back, or another ─► told, answered from what is there
//!                      └─ cannot be reached ─────► told once; 503 until it is back
//! ```

use crate::event::Event;
use crate::server::{State, dropped, read_access};
use crate::tls::Tls;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use trawl_query::{Lake, LakeChange};

/// Shortest time between two looks.
const MIN_POLL: Duration = Duration::from_millis(100);

/// What was last seen of the lake.
pub(crate) struct LakeState {
    changes: AtomicU64,
    now: Mutex<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    /// Why it cannot be reached, for the operator; `None` while it can.
    trouble: Option<String>,
    /// How it changed last, other than by going on.
    last_change: Option<&'static str>,
}

impl LakeState {
    pub(crate) fn of(_: &Lake) -> Self {
        Self { changes: AtomicU64::new(0), now: Mutex::default() }
    }

    fn set(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn get(&self) -> Seen {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Times it went back or became another.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// How it changed last, other than by going on.
    pub(crate) fn last_change(&self) -> Option<&'static str> {
        self.get().last_change
    }
}

/// Looks at the lake on a thread of its own: a store that hangs must not hold up anything else.
pub(crate) fn lake(state: Arc<State>, poll: Duration, stopped: watch::Receiver<()>) -> std::io::Result<()> {
    let poll = poll.max(MIN_POLL);
    std::thread::Builder::new().name("watch".into()).spawn(move || {
        // The sender is dropped when the server stops.
        while stopped.has_changed().is_ok() {
            look(&state);
            std::thread::sleep(poll);
        }
    })?;
    Ok(())
}

fn look(state: &State) {
    let tell = |text: &str| (state.on_event)(&Event::LakeChanged(text));
    match state.lake.check() {
        Ok(change) => {
            if state.lake_state.get().trouble.is_some() {
                state.lake_state.set(|seen| seen.trouble = None);
                tell("the lake can be reached again");
            }
            let text = match change {
                None => return,
                Some(LakeChange::WentBack) => "the lake went back to an older state",
                Some(LakeChange::Another) => "another lake is in its place",
            };
            state.lake_state.changes.fetch_add(1, Ordering::Relaxed);
            state.lake_state.set(|seen| seen.last_change = Some(text));
            tell(text);
        }
        Err(error) => {
            let text = error.to_string();
            if state.lake_state.get().trouble.as_ref() != Some(&text) {
                tell(&format!("the lake cannot be reached: {text}"));
                state.lake_state.set(|seen| seen.trouble = Some(text));
            }
        }
    }
}

/// Looks at the files of tokens and certificates.
pub(crate) async fn files(state: Arc<State>, tls: Option<Arc<Tls>>, poll: Duration, stopped: watch::Receiver<()>) {
    let stamp = |state: &State| {
        let metadata = std::fs::metadata(state.access_file.as_ref()?).ok()?;
        Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()))
    };
    let mut known = stamp(&state);
    let stop = dropped(stopped);
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = tokio::time::sleep(poll.max(MIN_POLL)) => {}
            () = &mut stop => return,
        }
        let found = stamp(&state);
        if let Some(path) = state.access_file.as_ref().filter(|_| found != known) {
            known = found;
            let read = read_access(path).map(|access| state.set_access(access));
            (state.on_event)(&Event::Reloaded { what: "tokens", error: read.as_ref().err().map(String::as_str) });
        }
        match tls.as_ref().map(|tls| tls.refresh()) {
            Some(Ok(true)) => (state.on_event)(&Event::Reloaded { what: "certificates", error: None }),
            Some(Err(error)) => {
                let text = error.to_string();
                (state.on_event)(&Event::Reloaded { what: "certificates", error: Some(&text) });
            }
            Some(Ok(false)) | None => {}
        }
    }
}
