//! What a crawl did: counts, progress, the final report.

use crate::record::EventRecord;
use crate::rules::Rule;
use crate::seeds::{SeedIdentity, SeedInput};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_frontier::{Admission, Answer, Forgotten, LeaseId};
use trawl_model::{ErrorClass, UnixMillis};

/// Counts of a run, over all its restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// URLs that are done and had a response, whatever its status.
    pub fetched: u64,
    /// URLs that are done and had none.
    pub failed: u64,
    /// URLs that robots.txt closes.
    pub denied: u64,
    /// Of the URLs that are done, those that might have answered later: hosts that stayed away, attempts used up.
    pub given_up: u64,
    /// Hosts that were given up, with the number of their URLs; at most [`GIVEN_UP_NAMES`] of them by name.
    pub given_up_hosts: BTreeMap<String, u64>,
    /// URLs of hosts given up that are not named.
    pub given_up_more: u64,
    /// Attempts that were not the last of their URL.
    pub retries: u64,
    /// Captures whose body is not whole, by what cut it: `length`, `time`, `disconnect`.
    pub truncated: BTreeMap<String, u64>,
    /// Links and seeds that were known already.
    pub known_links: u64,
    /// Links out of scope or too deep.
    pub outside: u64,
    /// Links that a rule refused, by rule: `prefix`, `surt`, `include`, `exclude`, `shard`, `nofollow`.
    pub refused: BTreeMap<String, u64>,
    /// URLs that a limit on pages leaves waiting, counted when the run ends.
    pub over_limit: u64,
    /// URLs parked because a trap made them.
    pub parked: u64,
    /// Links past the number that is kept of one page.
    pub cut_links: u64,
    /// Redirects that lead nowhere a crawler can go, by class.
    pub bad_redirects: BTreeMap<String, u64>,
    /// Entries of sitemaps, and sitemaps that robots.txt files name, that are not URLs.
    pub sitemap_rejects: u64,
    /// Sitemaps that were not read, or only in part, by why: a class of failure, `status_404` and the like, `not_a_sitemap`,
    /// `damaged`.
    pub sitemaps_unread: BTreeMap<String, u64>,
}

/// Hosts given up that are kept by name.
pub const GIVEN_UP_NAMES: usize = 1_000;

impl Counts {
    /// Distinct URLs that were offered, and items of seeds that are not URLs: `fetched + failed + excluded + rejected +
    /// waiting`, where `waiting` is what the run has left.
    pub fn offered(&self) -> u64 {
        self.admitted + self.parked + self.rejects
    }

    /// URLs that are not fetched: closed by robots.txt, left waiting by a limit, or parked.
    pub fn excluded(&self) -> u64 {
        self.denied + self.over_limit + self.parked
    }

    /// Captures with a response.
    pub fn responses(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Captures without one.
    pub fn failed_captures(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(crate) fn capture(&mut self, event: &EventRecord) {
        self.captures += 1;
        self.robots_files += u64::from(matches!(event.id, LeaseId::Robots(_)));
        self.body_bytes += u64::try_from(event.row.body_length).unwrap_or(0);
        match event.answer {
            Answer::Failed(class) => *self.failures.entry(class.to_string()).or_default() += 1,
            Answer::Response { status, .. } => *self.statuses.entry(status).or_default() += 1,
        }
        if let Some(why) = &event.row.truncated {
            *self.truncated.entry(why.clone()).or_default() += 1;
        }
        if let Some(class) = event.bad_to {
            *self.bad_redirects.entry(class.to_string()).or_default() += 1;
        }
        self.outside += event.left_out.outside;
        for (rule, count) in event.left_out.refused() {
            *self.refused.entry(rule.as_str().to_owned()).or_default() += count;
        }
        self.cut_links += event.left_out.over_limit;
        self.known_links += event.left_out.repeated;
    }

    /// A redirect is not followed: a rule refuses where it leads to, or that is out of scope.
    pub(crate) fn left_out(&mut self, rule: Option<Rule>) {
        match rule {
            Some(rule) => *self.refused.entry(rule.as_str().to_owned()).or_default() += 1,
            None => self.outside += 1,
        }
    }

    /// An attempt at a URL ended; `again` if another one follows.
    pub(crate) fn attempt(&mut self, event: &EventRecord, again: bool) {
        let answer = event.answer;
        match answer {
            _ if again => {
                self.retries += 1;
                return;
            }
            Answer::Failed(ErrorClass::RobotsDenied) => self.denied += 1,
            Answer::Failed(_) => self.failed += 1,
            Answer::Response { .. } => self.fetched += 1,
        }
        self.sitemap(event);
        self.given_up += u64::from(answer.is_passing());
        if answer == Answer::Failed(ErrorClass::DeadHost) {
            let host = event.row.host.as_str();
            let has_room = self.given_up_hosts.len() < GIVEN_UP_NAMES;
            match self.given_up_hosts.get_mut(host) {
                Some(n) => *n += 1,
                None if has_room => {
                    self.given_up_hosts.insert(host.to_owned(), 1);
                }
                None => self.given_up_more += 1,
            }
        }
    }

    /// What is wrong with a sitemap, or with the names of sitemaps in a robots.txt.
    pub(crate) fn sitemap(&mut self, event: &EventRecord) {
        self.sitemap_rejects += event.left_out.not_urls;
        if let Some(why) = &event.unread {
            *self.sitemaps_unread.entry(why.clone()).or_default() += 1;
        }
    }

    /// URLs that waited to be tried again were given up.
    pub(crate) fn forgotten(&mut self, Forgotten { answered, unanswered }: Forgotten) {
        self.fetched += answered;
        self.failed += unanswered;
        self.given_up += answered + unanswered;
    }

    pub(crate) fn admission(&mut self, admission: Admission) {
        match admission {
            Admission::New => self.admitted += 1,
            Admission::Seen | Admission::Nearer | Admission::AskedFor | Admission::Reopened(_) => self.known_links += 1,
            Admission::InReach => {
                self.known_links += 1;
                self.failed = self.failed.saturating_sub(1);
            }
            Admission::Unparked => {
                self.parked = self.parked.saturating_sub(1);
                self.admitted += 1;
            }
            Admission::TooDeep => self.outside += 1,
            Admission::Parked => self.parked += 1,
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
    /// Fetches that may be: fewer than the setting while this machine's line seems too full.
    pub limit: usize,
    /// The setting, or less where this process may not have as many files open.
    pub most: usize,
    /// About how many seconds what waits would take at the present rate, or the host with the longest queue at its delay.
    /// Links that are yet to be found are not in it.
    pub eta_s: Option<u64>,
    /// While there is room for more fetches: the host that may be asked next.
    pub next: Option<Waiting>,
    /// Captures not yet durable, fetches under way included.
    pub unacked: usize,
    /// URLs waiting, those under way included.
    pub queued: u64,
    /// URLs known.
    pub known: u64,
    /// Hosts known.
    pub hosts: usize,
    /// What keeps this machine from fetching, if something does.
    pub trouble: Option<String>,
    /// While fetches are under way: seconds since any server answered.
    pub silence: Option<u64>,
    /// Whether all that is left is in backoff, and how many seconds the run still waits for it.
    pub waiting: Option<u64>,
    /// Whether a stop was asked for.
    pub stopping: bool,
}

/// A host that may not be asked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub host: String,
    /// For how long.
    pub wait_ms: u64,
    /// Whether it failed or asked for patience; else it is only its turn that it waits for.
    pub backoff: bool,
}

/// One start of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// When.
    pub started_at: UnixMillis,
    /// When it ended; of one that was killed, its last capture.
    pub ended_at: Option<UnixMillis>,
    /// Arguments of the command.
    pub arguments: Vec<String>,
    /// Seeds that it added.
    pub seeds: Vec<SeedInput>,
    /// Settings by name.
    pub settings: BTreeMap<String, Vec<String>>,
}

/// What became of all URLs that were offered: `fetched + failed + excluded + rejected + waiting = offered`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlSums {
    /// Distinct URLs of seeds, links and redirects within scope and depth, and items of seeds that are not URLs.
    pub offered: u64,
    /// Done, with a response.
    pub fetched: u64,
    /// Done, without one.
    pub failed: u64,
    /// Closed by robots.txt, or left out for a limit.
    pub excluded: u64,
    /// Items of seeds that are not URLs.
    pub rejected: u64,
    /// Not done.
    pub waiting: u64,
}

impl UrlSums {
    pub(crate) fn new(counts: &Counts, waiting: u64) -> Self {
        Self {
            offered: counts.offered(),
            fetched: counts.fetched,
            failed: counts.failed,
            excluded: counts.excluded(),
            rejected: counts.rejects,
            waiting,
        }
    }

    /// Whether nothing is counted twice or not at all.
    pub fn add_up(&self) -> bool {
        self.fetched + self.failed + self.excluded + self.rejected + self.waiting == self.offered
    }
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
    /// Each time the run was started: first, and by `--resume`.
    pub legs: Vec<Leg>,
    /// The seeds that were read to their end.
    pub seeds: Vec<SeedIdentity>,
    /// When the run was started first.
    pub started_at: UnixMillis,
    /// When it ended or stopped; absent while it runs.
    pub ended_at: Option<UnixMillis>,
    /// Whether nothing is left to do.
    pub complete: bool,
    /// URLs that are left, of those that are known.
    pub left: u64,
    /// Whether the seeds were not read to their end: then the number of further URLs is unknown.
    #[serde(default)]
    pub seeds_unread: bool,
    /// What became of all URLs.
    pub urls: UrlSums,
    /// Counts per outcome.
    pub counts: Counts,
    /// Archive and index files.
    pub files: Vec<FileEntry>,
}
