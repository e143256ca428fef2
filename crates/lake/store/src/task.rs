//! Tasks of a job: each may be tried any number of times, at once and again, and has one report.
//!
//! ```text
//! attempt (a name of its own) ─► files with that name in theirs ─► create the report if absent
//!                                                                        ├ it is ours: the task is done
//!                                                                        └ another's: its files count, ours go
//! ```
//! So it does not matter how often an engine starts a task, or whether an attempt that was given up still lives. What an
//! attempt wrote that no report names is never read; a collector takes it once the job shows no sign of life.

use crate::manifest::{check_head, json_error, to_sealed_json_of};
use crate::object::claim;
use crate::{Result, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Largest report or job that is read: one that lists some millions of files or sections.
const MAX_TASK_BYTES: u64 = crate::MAX_STATE_BYTES;

/// What became of an attempt.
enum Settled<T> {
    /// Its report is the one that counts.
    Ours,
    /// Another attempt was faster; this is its report.
    Others(T),
}

/// The JSON object at `path`, a job or a report; `None` if there is none.
pub fn read_task<T: DeserializeOwned>(store: &dyn Store, path: &str) -> Result<Option<T>> {
    let bytes = match store.get(path, MAX_TASK_BYTES) {
        Err(error) if error.is_not_found() => return Ok(None),
        got => got?,
    };
    check_head(path, &bytes, 1)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|e| json_error(path, &bytes, &e))
}

/// Creates the JSON object at `path` unless there is one. `value` must have a name in it that no other attempt has, or be such
/// that it does not matter who wrote it. After [`crate::Error::Unsettled`] it may be there, now or later: then nothing that it
/// names may be removed.
fn settle_task<T: Serialize + DeserializeOwned>(store: &dyn Store, path: &str, value: &T) -> Result<Settled<T>> {
    let broken = |error: serde_json::Error| crate::Error::Refused { reason: format!("cannot write {path}: {error}") };
    // Not indented: a map task of a large job has hundreds of sections.
    let text = to_sealed_json_of(serde_json::to_vec(value).map_err(broken)?);
    if claim(store, path, &text)? {
        return Ok(Settled::Ours);
    }
    // It was there a moment ago: the process that removed it has ended the job.
    let gone = || crate::Error::NotFound { path: path.to_owned() };
    Ok(Settled::Others(read_task(store, path)?.ok_or_else(gone)?))
}

/// Creates a JSON object that does not exist yet, such as a job. Returns whether the one that is there now is this caller's.
pub fn create_task<T: Serialize + DeserializeOwned>(store: &dyn Store, path: &str, value: &T) -> Result<bool> {
    Ok(matches!(settle_task(store, path, value)?, Settled::Ours))
}

/// Files of one attempt below a directory: they go when this is dropped, unless they are kept.
pub struct OwnFiles<'a> {
    store: &'a dyn Store,
    dir: String,
    is_own: Box<dyn Fn(&str) -> bool + 'a>,
    kept: bool,
}

impl<'a> OwnFiles<'a> {
    /// Those below `dir` whose paths `is_own` knows.
    pub fn below(store: &'a dyn Store, dir: impl Into<String>, is_own: impl Fn(&str) -> bool + 'a) -> Self {
        Self { store, dir: dir.into(), is_own: Box::new(is_own), kept: false }
    }

    /// Creates the report that names these files. They stay if it is the one that counts, or if that is not known.
    pub fn settle<T: Serialize + DeserializeOwned>(mut self, path: &str, report: T) -> Result<T> {
        self.kept = true; // should it panic
        let settled = settle_task(self.store, path, &report);
        self.kept = matches!(settled, Ok(Settled::Ours) | Err(crate::Error::Unsettled { .. }));
        Ok(match settled? {
            Settled::Ours => report,
            Settled::Others(report) => report,
        })
    }
}

impl fmt::Debug for OwnFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnFiles").field("dir", &self.dir).field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Drop for OwnFiles<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Whatever cannot be removed is found by a collector.
        let listed = self.store.list(&self.dir).unwrap_or_default();
        for own in listed.iter().filter(|listed| (self.is_own)(&listed.path)) {
            let _ = self.store.delete(&own.path);
        }
    }
}
