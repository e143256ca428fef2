//! What a crawl did: counts, progress, the final report.

use crate::record::EventRecord;
use crate::seeds::SeedIdentity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_frontier::Admission;
use trawl_model::UnixMillis;

/// Counts of a run, over all its restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Seeds read.
    pub seeds: u64,
    /// Lines of seeds that were none.
    pub rejects: u64,
    /// Captures made durable: responses, failures and refusals, robots.txt files included.
    pub captures: u64,
    /// Captures of robots.txt files.
    pub robots_files: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Captures without a response by the class of their failure, refusals by robots.txt included.
    pub failures: BTreeMap<String, u64>,
    /// Stored body bytes.
    pub body_bytes: u64,
    /// URLs admitted to the frontier.
    pub admitted: u64,
    /// Links to known URLs.
    pub known_links: u64,
    /// Links out of scope or too deep.
    pub outside: u64,
    /// URLs left out for a limit on pages.
    pub over_limit: u64,
}

impl Counts {
    /// Captures with a response.
    pub fn responses(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Captures without one.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(crate) fn capture(&mut self, event: &EventRecord) {
        self.captures += 1;
        self.robots_files += u64::from(event.id.is_none());
        self.body_bytes += u64::try_from(event.row.body_length).unwrap_or(0);
        match event.answer.class {
            Some(class) => *self.failures.entry(class.to_string()).or_default() += 1,
            None => *self.statuses.entry(event.answer.status).or_default() += 1,
        }
    }

    pub(crate) fn admission(&mut self, admission: Admission) {
        match admission {
            Admission::New => self.admitted += 1,
            Admission::Seen | Admission::Nearer | Admission::Reopened(_) => self.known_links += 1,
            Admission::TooDeep => self.outside += 1,
            Admission::OverLimit => self.over_limit += 1,
        }
    }
}

/// Where a crawl stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Since this process started, in milliseconds.
    pub elapsed_ms: u64,
    /// Counts so far.
    pub counts: Counts,
    /// Captures made durable per second since the last report.
    pub rate: f64,
    /// Fetches under way.
    pub in_flight: usize,
    /// Captures not yet durable, fetches under way included.
    pub unacked: usize,
    /// URLs waiting, those under way included.
    pub queued: usize,
    /// URLs known.
    pub known: usize,
    /// Hosts known.
    pub hosts: usize,
    /// Whether a stop was asked for.
    pub stopping: bool,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name in the output directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// What a run did: also the contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Program and version.
    pub tool: String,
    /// The name of the run.
    pub run_id: String,
    /// Arguments of the command that ran last.
    pub arguments: Vec<String>,
    /// The seeds, once they are all read.
    pub seeds: Vec<SeedIdentity>,
    /// When the run was started first.
    pub started_at: UnixMillis,
    /// When it ended or stopped; absent while it runs.
    pub ended_at: Option<UnixMillis>,
    /// Whether nothing is left to do.
    pub complete: bool,
    /// URLs that are left.
    pub left: u64,
    /// Counts per outcome.
    pub counts: Counts,
    /// Archive and index files.
    pub files: Vec<FileEntry>,
}
