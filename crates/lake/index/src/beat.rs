//! Signs of life, and the end of a segment that came to nothing.

use crate::Result;
use std::cell::Cell;
use trawl_model::UnixMillis;
use trawl_store::{Heartbeat, Lake, layout};

/// Milliseconds between signs of life.
const BEAT_EVERY_MS: i64 = 20_000;

/// Removes what was written of a segment that nobody will ever name. Failing is fine: a collector finds it later.
pub(crate) fn give_up(lake: &Lake, writer: &str, id: &str) {
    let _ = lake.end_beat(writer);
    let Ok(dir) = layout::segment_dir(id) else { return };
    for listed in lake.store().list(&dir).unwrap_or_default() {
        let _ = lake.store().delete(&listed.path);
    }
}

/// Signs of life while a build runs.
pub(crate) struct Beat<'a> {
    lake: &'a Lake,
    now: &'a dyn Fn() -> UnixMillis,
    last: Cell<UnixMillis>,
    heartbeat: Heartbeat,
}

impl<'a> Beat<'a> {
    pub fn start(lake: &'a Lake, now: &'a dyn Fn() -> UnixMillis, writer: &str, act: &str, id: &str) -> Result<Self> {
        let beat = now();
        let prefixes = vec![format!("{}/", layout::segment_dir(id)?)];
        let heartbeat = Heartbeat { writer: writer.to_owned(), act: act.to_owned(), beat, prefixes };
        lake.beat(&heartbeat)?;
        Ok(Self { lake, now, last: Cell::new(beat), heartbeat })
    }

    /// A missed beat is no reason to stop: the commit itself finds out whether a collector gave this writer up.
    pub fn now_and_then(&self) {
        let now = (self.now)();
        if now.0.saturating_sub(self.last.get().0) >= BEAT_EVERY_MS {
            self.last.set(now);
            let _ = self.lake.beat(&Heartbeat { beat: now, ..self.heartbeat.clone() });
        }
    }
}
