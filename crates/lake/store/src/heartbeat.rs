//! Heartbeats: what a living writer is about to publish, so that a collector spares it.

use crate::manifest::{json_error, to_json};
use crate::{Error, Lake, Result, layout};
use serde::{Deserialize, Serialize};
use trawl_model::UnixMillis;

const MAX_HEARTBEAT_BYTES: u64 = 1 << 20;

/// A writer's sign of life. Every file of a writer has its id in its name or lies in a directory named here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The writer: unique for each run, and a name by [`crate::check_name`].
    pub writer: String,
    /// What it is doing, for people: `ingest`, `publish`, `compact`.
    pub act: String,
    /// Last sign of life.
    pub beat: UnixMillis,
    /// Paths it is about to publish begin with one of these.
    pub prefixes: Vec<String>,
}

impl Lake {
    /// Writes a sign of life. To be repeated well within the collector's grace period.
    pub fn beat(&self, heartbeat: &Heartbeat) -> Result<()> {
        self.store().put(&layout::heartbeat(&heartbeat.writer)?, &to_json(heartbeat))
    }

    /// Ends a writer's life in good order: after its commit, or when it gave up.
    pub fn end_beat(&self, writer: &str) -> Result<()> {
        self.store().delete(&layout::heartbeat(writer)?)
    }

    /// All writers that have not ended, dead ones included.
    pub fn heartbeats(&self) -> Result<Vec<Heartbeat>> {
        let mut out = Vec::new();
        for listed in self.store().list(layout::HEARTBEATS)? {
            let bytes = match self.store().get(&listed.path, MAX_HEARTBEAT_BYTES) {
                Err(e) if e.is_not_found() => continue, // ended meanwhile
                got => got?,
            };
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
