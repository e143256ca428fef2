//! How many fetches may be under way, by what the network gives back: silence of many hosts at once may be our own doing.
//!
//! ```text
//!            many hosts fall silent                  fewer fetches, fewer failures
//! steady ───────────────────────────► probing ──┬─► it was us: the limit stays low and grows with each answer
//!    ▲                                          └─► as silent as before: it is them; all workers again
//!    └──────────────────────────────────────────────┘
//! ```
//! A line that is too full and a list full of dead hosts look alike: connections time out. To tell them apart the limit is cut
//! to a quarter, once. What was under way at that moment and failed is fetched again and counts against no host. If what was
//! started later fails as often, the hosts are dead, and that share of silence is expected from then on.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_model::ErrorClass;

/// Outcomes that are looked at together.
const WINDOW: usize = 128;
/// Outcomes of fetches that were started after a cut, before it is judged.
const PROBES: usize = 48;
/// Silent hosts that make a cut: fewer may share one network that is down.
const LEAST_HOSTS: usize = 24;
/// Fetches that are always allowed.
const FLOOR: usize = 8;

/// The limit of a crawl. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Governor(Arc<Mutex<Limits>>);

#[derive(Debug)]
struct Limits {
    most: usize,
    limit: usize,
    /// Cuts so far: a fetch remembers how many there were when it was started.
    cuts: u32,
    /// Whether a fetch was met with silence, and its host.
    recent: VecDeque<(bool, u64)>,
    /// While a cut is being judged: fetches that were started after it, and those of them that met silence.
    probe: Option<(usize, usize)>,
    /// The share of silence in percent that made the cut, and that is known to be the hosts' own.
    before: usize,
    expected: usize,
    /// Answers since the limit last grew.
    answers: usize,
}

/// Whose failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Not this machine's: it counts against the host.
    Theirs,
    /// Too much was under way: it is to be fetched again.
    Ours,
}

impl Governor {
    pub(crate) fn new(most: usize) -> Self {
        let recent = VecDeque::with_capacity(WINDOW);
        let limits = Limits { most, limit: most, cuts: 0, recent, probe: None, before: 0, expected: 0, answers: 0 };
        Self(Arc::new(Mutex::new(limits)))
    }

    /// Fetches that may be under way.
    pub(crate) fn limit(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).limit
    }

    /// Fetches that may be under way while nothing is wrong.
    pub(crate) fn most(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).most
    }

    /// A fetch starts: returns what [`Governor::ended`] needs.
    pub(crate) fn started(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cuts
    }

    /// A fetch ended: with an answer (`None`), or by a failure.
    pub(crate) fn ended(&self, started: u32, host: u64, failure: Option<ErrorClass>) -> Blame {
        let silent = match failure {
            None => false,
            Some(ErrorClass::ConnectTimeout | ErrorClass::DnsTimeout | ErrorClass::HeaderTimeout) => true,
            // A host that refuses or breaks off is there: that says nothing about the line.
            Some(_) => return Blame::Theirs,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ended(started, host, silent)
    }
}

impl Limits {
    fn ended(&mut self, started: u32, host: u64, silent: bool) -> Blame {
        if started < self.cuts {
            // It was part of what was too much.
            return if silent && self.probe.is_some() { Blame::Ours } else { Blame::Theirs };
        }
        if let Some((all, met)) = &mut self.probe {
            (*all, *met) = (*all + 1, *met + usize::from(silent));
            if *all >= PROBES {
                let share = *met * 100 / *all;
                self.probe = None;
                if share * 2 > self.before {
                    (self.expected, self.limit) = (share, self.most);
                }
            }
            return Blame::Theirs;
        }
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back((silent, host));
        if silent {
            self.maybe_cut();
        } else {
            self.grow();
        }
        Blame::Theirs
    }

    fn grow(&mut self) {
        self.answers += 1;
        if self.limit < self.most && self.answers >= self.limit {
            self.answers = 0;
            self.limit = (self.limit + self.limit.div_ceil(16)).min(self.most);
        }
    }

    fn maybe_cut(&mut self) {
        let met = self.recent.iter().filter(|(silent, _)| *silent).count();
        let share = met * 100 / self.recent.len().max(1);
        if self.recent.len() < WINDOW || share < 50 || share < self.expected + 20 || self.limit <= FLOOR {
            return;
        }
        let hosts: HashSet<u64> = self.recent.iter().filter(|(silent, _)| *silent).map(|(_, host)| *host).collect();
        if hosts.len() < LEAST_HOSTS {
            return;
        }
        self.cuts = self.cuts.wrapping_add(1);
        self.limit = (self.limit / 4).max(FLOOR);
        (self.before, self.probe) = (share, Some((0, 0)));
        self.recent.clear();
        self.answers = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Option<ErrorClass> = Some(ErrorClass::ConnectTimeout);

    fn fall_silent(governor: &Governor) -> u32 {
        let started = governor.started();
        for host in 0..WINDOW as u64 {
            assert_eq!(governor.ended(started, host, TIMEOUT), Blame::Theirs);
        }
        started
    }

    #[test]
    fn a_line_that_was_too_full_stays_relieved_and_grows_again() {
        let governor = Governor::new(256);
        let before = fall_silent(&governor);
        assert_eq!(governor.limit(), 64);
        assert_eq!(governor.ended(before, 7, TIMEOUT), Blame::Ours, "it was under way when all fell silent");
        assert_eq!(governor.ended(before, 7, None), Blame::Theirs, "an answer is an answer");
        for host in 0..PROBES as u64 {
            assert_eq!(governor.ended(governor.started(), host, None), Blame::Theirs);
        }
        assert_eq!((governor.limit(), governor.ended(before, 7, TIMEOUT)), (64, Blame::Theirs));
        for host in 0..10_000 {
            governor.ended(governor.started(), host, None);
        }
        assert_eq!(governor.limit(), 256);
    }

    #[test]
    fn dead_hosts_are_dead_however_many_there_are() {
        let governor = Governor::new(256);
        fall_silent(&governor);
        for host in 0..PROBES as u64 {
            assert_eq!(governor.ended(governor.started(), host, TIMEOUT), Blame::Theirs);
        }
        assert_eq!(governor.limit(), 256, "it was not us");
        fall_silent(&governor);
        assert_eq!(governor.limit(), 256, "and that is known now");
    }

    #[test]
    fn one_network_that_is_down_is_not_the_line() {
        let governor = Governor::new(256);
        for n in 0..1000 {
            governor.ended(governor.started(), n % 10, TIMEOUT);
        }
        for n in 0..1000 {
            governor.ended(governor.started(), n, Some(ErrorClass::ConnectRefused));
        }
        assert_eq!(governor.limit(), 256);
    }
}
