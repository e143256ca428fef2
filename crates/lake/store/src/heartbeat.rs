//! Heartbeats: what a living writer is about to publish, so that a collector spares it.

use crate::manifest::{check_head, json_error, to_sealed_json};
use crate::{Error, Lake, Result, layout};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fmt;
use trawl_model::UnixMillis;

const MAX_HEARTBEAT_BYTES: u64 = 1 << 20;
/// Milliseconds between two signs of life.
const BEAT_EVERY_MS: i64 = 20_000;

/// A writer's sign of life. Every file of a writer has its id in its name or lies in a directory named here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The writer: unique for each run, and a name by [`crate::check_name`].
    pub writer: String,
    /// What it is doing: `ingest`, `publish`, `compact`. A collector asks it of copies and publishers, which commit to no dataset.
    pub act: String,
    /// Last sign of life.
    pub beat: UnixMillis,
    /// Paths that it is about to publish, or that its commit will name, begin with one of these.
    pub prefixes: Vec<String>,
}

/// A writer at work on files below one directory: it gives signs of life, and when it is dropped, its files go unless a
/// commit names them, or may.
///
/// ```text
/// start ─► files ─► commit ──made──────────► heartbeat goes
///            │         ├─────known not to be──► files and heartbeat go
///            │         └─────unsettled──────────► both stay: a collector decides, by a commit of its own
///            └─ fails or gives up ──────────► files and heartbeat go
/// ```
/// Whatever cannot be removed is found by a collector, since it is unclaimed once the heartbeat is gone or old.
pub struct AtWork<'a> {
    pulse: Pulse<'a>,
    dirs: Vec<String>,
    fate: Cell<Fate>,
}

/// Signs of life of a writer, or of one of several processes that are one writer: nothing ends when it is dropped.
pub struct Pulse<'a> {
    lake: &'a Lake,
    clock: &'a dyn Fn() -> UnixMillis,
    heartbeat: Heartbeat,
    last: Cell<UnixMillis>,
}

impl fmt::Debug for Pulse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulse").field("heartbeat", &self.heartbeat).finish_non_exhaustive()
    }
}

impl<'a> Pulse<'a> {
    /// Shows the heartbeat of `writer`, whose files have paths that begin with one of `prefixes`; `act` is for people.
    pub fn start(
        lake: &'a Lake,
        clock: &'a dyn Fn() -> UnixMillis,
        writer: &str,
        act: &str,
        prefixes: Vec<String>,
    ) -> Result<Self> {
        let beat = clock();
        let heartbeat = Heartbeat { writer: writer.to_owned(), act: act.to_owned(), beat, prefixes };
        lake.beat(&heartbeat)?;
        Ok(Self { lake, clock, heartbeat, last: Cell::new(beat) })
    }

    /// A sign of life, if the last one is some time ago. A missed one is no reason to stop: the commit finds out whether a
    /// collector gave this writer up.
    pub fn now_and_then(&self) {
        let now = (self.clock)();
        if now.0.saturating_sub(self.last.get().0) >= BEAT_EVERY_MS {
            self.last.set(now);
            let _ = self.lake.beat(&Heartbeat { beat: now, ..self.heartbeat.clone() });
        }
    }
}

/// What is known of the commit that names a writer's files.
#[derive(Debug, Clone, Copy)]
enum Fate {
    NotMade,
    Made,
    Unknown,
}

impl fmt::Debug for AtWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtWork").field("pulse", &self.pulse).field("fate", &self.fate).finish_non_exhaustive()
    }
}

impl<'a> AtWork<'a> {
    /// Shows the heartbeat, before the first file. `writer` must be new for each operation; `act` is for people; `dir` is the
    /// directory of a dataset or a segment.
    pub fn start(
        lake: &'a Lake,
        clock: &'a dyn Fn() -> UnixMillis,
        writer: &str,
        act: &str,
        dir: String,
    ) -> Result<Self> {
        Self::start_reading(lake, clock, writer, act, dir, &[])
    }

    /// The same of a writer whose commit will also name what lies below the directories `reads`: others may replace it meanwhile,
    /// and a collector must not take it.
    pub fn start_reading(
        lake: &'a Lake,
        clock: &'a dyn Fn() -> UnixMillis,
        writer: &str,
        act: &str,
        dir: String,
        reads: &[String],
    ) -> Result<Self> {
        // What a writer of a dataset could not take lies beside its commits, not beside its rows.
        let records = layout::dataset_of(&format!("{dir}/")).map(layout::records_dir);
        let dirs: Vec<String> = [Some(dir), records].into_iter().flatten().collect();
        let prefixes = dirs.iter().chain(reads).map(|dir| format!("{dir}/")).collect();
        let pulse = Pulse::start(lake, clock, writer, act, prefixes)?;
        Ok(Self { pulse, dirs, fate: Cell::new(Fate::NotMade) })
    }

    /// A sign of life, if the last one is some time ago.
    pub fn now_and_then(&self) {
        self.pulse.now_and_then();
    }

    /// Makes the commit that names the files: `commit` is [`Lake::commit`] or [`Lake::commit_dataset`], and answers `None` if it
    /// changed nothing, since the files are of no use any more.
    pub fn commit<T>(&self, commit: impl FnOnce() -> Result<Option<T>>) -> Result<Option<T>> {
        self.fate.set(Fate::Unknown); // should it panic
        let done = commit();
        self.fate.set(match &done {
            Ok(Some(_)) => Fate::Made,
            Err(Error::Unsettled { .. }) => Fate::Unknown,
            Ok(None) | Err(_) => Fate::NotMade,
        });
        done
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let Pulse { lake, heartbeat: Heartbeat { writer, .. }, .. } = &self.pulse;
        let store = lake.store();
        match self.fate.get() {
            Fate::Unknown => return,
            Fate::Made => {}
            Fate::NotMade => {
                let listed = self.dirs.iter().flat_map(|dir| store.list(dir).unwrap_or_default());
                for own in listed.filter(|listed| layout::is_written_by(&listed.path, writer)) {
                    let _ = store.delete(&own.path);
                }
            }
        }
        let _ = lake.end_beat(writer);
    }
}

impl Lake {
    /// Writes a sign of life. To be repeated well within the collector's grace period.
    pub fn beat(&self, heartbeat: &Heartbeat) -> Result<()> {
        self.store().put(&layout::heartbeat(&heartbeat.writer)?, &to_sealed_json(heartbeat))
    }

    /// Ends a writer's life in good order: after its commit, or when it gave up.
    pub fn end_beat(&self, writer: &str) -> Result<()> {
        self.store().delete(&layout::heartbeat(writer)?)
    }

    /// All writers that have not ended, dead ones included.
    pub fn heartbeats(&self) -> Result<Vec<Heartbeat>> {
        let mut out = Vec::new();
        let listed = self.store().list(layout::HEARTBEATS)?.into_iter();
        // A note that somebody left there is not a writer.
        for listed in listed.filter(|listed| layout::is_ours(&listed.path)) {
            let bytes = match self.store().get(&listed.path, MAX_HEARTBEAT_BYTES) {
                Err(e) if e.is_not_found() => continue, // ended meanwhile
                got => got?,
            };
            check_head(&listed.path, &bytes, 1)?;
            let beat: Heartbeat = serde_json::from_slice(&bytes).map_err(|e| json_error(&listed.path, &bytes, &e))?;
            if layout::heartbeat(&beat.writer)? != listed.path {
                let expected = "a heartbeat of the writer in its name";
                return Err(Error::Corrupt { path: listed.path, offset: 0, expected, found: beat.writer });
            }
            out.push(beat);
        }
        Ok(out)
    }
}
