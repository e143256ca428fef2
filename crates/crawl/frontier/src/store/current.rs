//! `CURRENT`: which files are the frontier. Replaced in one step; what it does not name is left over and removed.

use crate::config::Config;
use crate::error::{Error, Result};
use crate::identity::{Identity, QueueBy};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use trawl_io::{Fs, publish};

pub(crate) const NAME: &str = "CURRENT";
const VERSION: u32 = 1;
const LIMIT: u64 = 1 << 20;
/// A log without a batch is shorter.
const BATCH_AT: u64 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Current {
    pub version: u32,
    /// `key` or `exact`.
    pub identity: String,
    /// `host`, `domain` or `ip`.
    pub queue: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The oldest first.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The log, after the one that is being flushed.
    pub logs: Vec<String>,
    /// The number of the next file.
    pub next: u64,
}

impl Current {
    pub fn new(config: &Config) -> Self {
        let identity = match config.identity {
            Identity::Key => "key",
            Identity::Exact => "exact",
        };
        let queue = match config.queue {
            QueueBy::Host => "host",
            QueueBy::Domain => "domain",
            QueueBy::Ip => "ip",
        };
        let (identity, queue) = (identity.to_owned(), queue.to_owned());
        Current { version: VERSION, identity, queue, base: None, runs: Vec::new(), logs: Vec::new(), next: 1 }
    }

    /// A name that no file has.
    pub fn name(&mut self, kind: &str, ending: &str) -> String {
        let name = format!("{kind}-{:08}{ending}", self.next);
        self.next += 1;
        name
    }

    /// What cannot change.
    pub fn made_with(&self) -> (Identity, QueueBy) {
        let identity = if self.identity == "exact" { Identity::Exact } else { Identity::Key };
        let queue = match self.queue.as_str() {
            "domain" => QueueBy::Domain,
            "ip" => QueueBy::Ip,
            _ => QueueBy::Host,
        };
        (identity, queue)
    }

    pub fn read_any(fs: &dyn Fs, dir: &Path) -> Result<Current> {
        let path = dir.join(NAME);
        let bytes = fs.read(&path, LIMIT)?;
        let corrupt = |found: String| Error::Corrupt { path: path.clone(), expected: "the JSON of a frontier", found };
        let current: Current = serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
        if current.version != VERSION {
            return Err(corrupt(format!("version {}, which this program does not know", current.version)));
        }
        let named = || current.base.iter().chain(&current.runs).chain(&current.logs);
        if let Some(name) = named().find(|name| name.contains(['/', '\\']) || name.starts_with('.')) {
            return Err(corrupt(format!("the file name {name:?}")));
        }
        Ok(current)
    }

    /// Reads it for a frontier with these settings.
    pub fn read(fs: &dyn Fs, dir: &Path, config: &Config) -> Result<Current> {
        let current = Self::read_any(fs, dir)?;
        let asked = Current::new(config);
        for (setting, expected, found) in
            [("identity", &current.identity, &asked.identity), ("queue", &current.queue, &asked.queue)]
        {
            // Queues by host and by address keep the same keys.
            let same_keys = setting == "queue" && (expected == "domain") == (found == "domain");
            if expected != found && !same_keys {
                let (expected, found) = (expected.clone(), found.clone());
                return Err(Error::Setting { path: dir.to_owned(), setting, expected, found });
            }
        }
        Ok(current)
    }

    pub fn publish(&self, fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
        let path = dir.join(NAME);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|e| Error::Corrupt {
            path: path.clone(),
            expected: "names that JSON can hold",
            found: e.to_string(),
        })?;
        bytes.push(b'\n');
        Ok(publish(fs, &path, &bytes)?)
    }

    /// Refuses a directory with files of a frontier that are not named anywhere: `CURRENT` was lost, perhaps by a copy, and they are all there
    /// is. A crash while a frontier was begun leaves a log without a batch at most.
    pub fn check_absent(fs: &dyn Fs, dir: &Path) -> Result<()> {
        for entry in fs.list(dir)? {
            let Some(name) = entry.name.to_str() else { continue };
            if entry.is_dir || !is_file_of_frontier(name) {
                continue;
            }
            if !name.starts_with("log-") || fs.metadata(&dir.join(name))?.len >= BATCH_AT {
                return Err(Error::Corrupt {
                    path: dir.join(NAME),
                    expected: "the names of the frontier's files",
                    found: format!("no such file, and {name} beside it"),
                });
            }
        }
        Ok(())
    }

    /// Removes files of a frontier that this one does not name: of a flush or merge that a crash ended.
    pub fn remove_others(&self, fs: &dyn Fs, dir: &Path) -> Result<()> {
        for entry in fs.list(dir)? {
            let Some(name) = entry.name.to_str() else { continue };
            let ours = is_file_of_frontier(name);
            let named = self.base.iter().chain(&self.runs).chain(&self.logs).any(|known| known == name);
            if ours && !named && !entry.is_dir {
                fs.remove_file(&dir.join(name))?;
            }
        }
        Ok(())
    }
}

/// Whether a frontier gives such names to its files: what else lies in its directory is somebody's.
fn is_file_of_frontier(name: &str) -> bool {
    let rest = ["log-", "run-", "base-"].iter().find_map(|kind| name.strip_prefix(kind));
    let number = rest.map(|rest| rest.strip_suffix(".meguri").unwrap_or(rest));
    number.is_some_and(|number| number.len() >= 8 && number.bytes().all(|b| b.is_ascii_digit()))
}
