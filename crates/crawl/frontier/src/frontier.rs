//! The state of a frontier, and intake.

use crate::candidate::{Admission, Candidate};
use crate::config::Config;
use crate::host::{Entry, EntryState, Errand, Host, HostId, OriginId, Placed, Rank, Robots};
use crate::identity::UrlId;
use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use trawl_model::{ErrorClass, UnixMillis};

/// Decides what is fetched next. A state machine: it does no I/O and asks no clock.
///
/// ```text
/// discover ─► seen? limits? ─► host queue (by depth, then arrival) ─► gates: host, address, delay, robots
///                                          ▲                                             │
///             acknowledged (try again) ────┘        released (gates open again) ◄── lease ┘
/// ```
pub struct Frontier {
    pub(crate) config: Config,
    pub(crate) seen: HashMap<UrlId, Known>,
    pub(crate) pending: HashMap<UrlId, Entry>,
    pub(crate) hosts: Vec<Host>,
    host_ids: HashMap<String, HostId>,
    /// Hosts that may be asked now.
    pub(crate) ready: BTreeSet<(Rank, HostId)>,
    /// Hosts that may be asked later, by when.
    pub(crate) waiting: BTreeSet<(i64, HostId)>,
    /// URLs to be tried again, by when.
    pub(crate) deferred: BTreeSet<(i64, UrlId)>,
    /// Hosts in `waiting` that nothing failed of: they wait for politeness alone.
    pub(crate) polite: usize,
    /// Lookups under way.
    pub(crate) asked: usize,
    /// Hosts that wait for a lookup.
    pub(crate) to_ask: VecDeque<HostId>,
    /// The latest time anybody told.
    pub(crate) latest_ms: i64,
    pub(crate) addresses: HashMap<IpAddr, Address>,
    /// Errands under way.
    pub(crate) errands: HashMap<u64, (Hold, Errand)>,
    /// Pages under way.
    pub(crate) leases: HashMap<UrlId, Hold>,
    pub(crate) next_errand: u64,
    pub(crate) out: usize,
    next_rank: u64,
    admitted: u64,
    floor_ms: i64,
}

/// What is remembered of every URL ever taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Links from a seed on the shortest way found so far.
    pub depth: u32,
    /// Where the links of its page are noted; [`NO_NOTE`] without any.
    pub note: u64,
}

pub(crate) const NO_NOTE: u64 = u64::MAX;

/// The gates a lease holds: its host's, and that of the address it was known under then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub host: HostId,
    pub ip: Option<IpAddr>,
}

/// An address and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Address {
    pub in_flight: u32,
    pub waiting: VecDeque<HostId>,
}

impl Frontier {
    /// An empty frontier.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            seen: HashMap::new(),
            pending: HashMap::new(),
            hosts: Vec::new(),
            host_ids: HashMap::new(),
            ready: BTreeSet::new(),
            waiting: BTreeSet::new(),
            deferred: BTreeSet::new(),
            polite: 0,
            asked: 0,
            to_ask: VecDeque::new(),
            latest_ms: i64::MIN,
            addresses: HashMap::new(),
            errands: HashMap::new(),
            leases: HashMap::new(),
            next_errand: 0,
            out: 0,
            next_rank: 1,
            admitted: 0,
            floor_ms: i64::MIN,
        }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The depth of a URL that was ever taken: links from a seed on the shortest way found so far.
    pub fn depth(&self, id: UrlId) -> Option<u32> {
        self.seen.get(&id).map(|known| known.depth)
    }

    /// Whether a URL was taken and is not done.
    pub fn is_pending(&self, id: UrlId) -> bool {
        self.pending.contains_key(&id)
    }

    /// URLs ever taken.
    pub fn known(&self) -> usize {
        self.seen.len()
    }

    /// URLs taken and not done, those under way included.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Leases and refusals that were handed out and not acknowledged; errands until they are released.
    pub fn out(&self) -> usize {
        self.out + self.errands.len()
    }

    /// Hosts known.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Takes a candidate, or says why not.
    pub fn discover(&mut self, candidate: Candidate) -> Admission {
        if let Some(known) = self.seen.get(&candidate.id) {
            let nearer = candidate.depth < known.depth;
            return if nearer { self.approach(candidate.id, candidate.depth) } else { Admission::Seen };
        }
        if candidate.depth > self.config.max_depth {
            return Admission::TooDeep;
        }
        let host = self.host(candidate.url.host());
        let over = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count >= limit);
        if over(self.admitted, self.config.max_pages)
            || over(self.hosts[host.0].admitted, self.config.max_pages_per_host)
        {
            return Admission::OverLimit;
        }
        let (known, room) = (self.seen.len(), self.config.max_known);
        let greedy = known >= room / 2 && self.hosts[host.0].admitted > (room / 10) as u64;
        if known >= room || greedy {
            return Admission::NoRoom;
        }
        self.seen.insert(candidate.id, Known { depth: candidate.depth, note: NO_NOTE });
        self.admitted += 1;
        self.hosts[host.0].admitted += 1;
        let origin = OriginId { host, index: self.hosts[host.0].origin(&candidate.url) };
        let rank = (candidate.depth, self.next_rank);
        self.next_rank += 1;
        let refused = (candidate.hops > self.config.max_hops).then_some(ErrorClass::RedirectLimit);
        let Candidate { id, url, source, hops, meta_json, .. } = candidate;
        let state = EntryState::Queued;
        self.pending
            .insert(id, Entry { url, origin, rank, hops, attempts: 0, strikes: 0, source, meta_json, refused, state });
        self.enqueue(id);
        Admission::New
    }

    /// A shorter way to a known URL was found.
    fn approach(&mut self, id: UrlId, depth: u32) -> Admission {
        let Slot::Occupied(mut known) = self.seen.entry(id) else { return Admission::Seen };
        known.get_mut().depth = depth;
        let note = known.get().note;
        let Some(entry) = self.pending.get_mut(&id) else {
            return if note == NO_NOTE { Admission::Nearer } else { Admission::Reopened(note) };
        };
        let (old, origin) = (entry.rank, entry.origin);
        entry.rank.0 = depth;
        if entry.state == EntryState::Queued {
            self.hosts[origin.host.0].origins[origin.index].queue.remove(&old);
            self.enqueue(id);
        }
        Admission::Nearer
    }

    /// Starts over after a crash: whoever was being asked then is not asked again before its delay has passed.
    pub fn recovered(&mut self, now: UnixMillis) {
        self.floor_ms = now.0;
        // A journal speaks of the time of day. If that was set back since, all of it lies too far ahead.
        let ahead = self.latest_ms.saturating_sub(now.0).max(0);
        if ahead > 0 && self.latest_ms > i64::MIN {
            self.set_back(ahead);
        }
        self.latest_ms = now.0;
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            host.next_ms = host.next_ms.max(now.0.saturating_add(host.delay_ms(&self.config)));
            self.place(HostId(index), now.0);
        }
    }

    fn set_back(&mut self, by: i64) {
        let deferred = std::mem::take(&mut self.deferred);
        for (at, id) in deferred {
            let at = at.saturating_sub(by);
            if let Some(entry) = self.pending.get_mut(&id) {
                entry.state = EntryState::Deferred(at);
            }
            self.deferred.insert((at, id));
        }
        for host in &mut self.hosts {
            host.next_ms = host.next_ms.saturating_sub(by);
            for origin in &mut host.origins {
                if let Robots::Known { until, .. } = &mut origin.robots {
                    *until = until.saturating_sub(by);
                }
            }
        }
    }

    /// The host of a name, created if new.
    pub(crate) fn host(&mut self, name: &str) -> HostId {
        if let Some(id) = self.host_ids.get(name) {
            return *id;
        }
        let id = HostId(self.hosts.len());
        self.hosts.push(Host::new(name.to_owned(), self.floor_ms));
        self.host_ids.insert(name.to_owned(), id);
        id
    }

    /// Puts a pending URL into its queue.
    pub(crate) fn enqueue(&mut self, id: UrlId) {
        let Some(entry) = self.pending.get_mut(&id) else { return };
        entry.state = EntryState::Queued;
        let (origin, rank) = (entry.origin, entry.rank);
        let host = &mut self.hosts[origin.host.0];
        host.origins[origin.index].queue.insert(rank, id);
        match host.placed {
            // It will be placed by what it waits for, and then with its best work.
            Placed::Waiting(..) | Placed::Address(_) | Placed::Name => {}
            Placed::Ready(current) if current <= rank => {}
            Placed::Ready(_) | Placed::Nowhere => self.place(origin.host, i64::MIN),
        }
    }
}
