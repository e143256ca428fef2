//! The state of a frontier, and its clock.

use crate::candidate::{Answer, LeaseId, Source, Work};
use crate::config::Config;
use crate::error::Result;
use crate::host::{Errand, Host, Placed};
use crate::identity::UrlId;
use crate::index::{Index, hash_of};
use crate::memtable::{KeyMap, Memtable};
use crate::policy::trap::Sessions;
use crate::queue::{ReadyBank, WaitHeap};
use crate::refill::Refilling;
use crate::row::Row;
use crate::seen::{Exact, Recent};
use crate::store::Store;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use trawl_model::UnixMillis;

/// Decides what is fetched next. URLs are on disk, hosts in memory; see the crate's page.
///
/// ```text
/// offer ─► seen? trap? ─► row in the memtable ─► window of its host ─► gates: host, address, delay, robots
///                            │        ▲                                             │
///           flush, merge ◄───┘        └── settle (done, or to be tried again) ◄── lease
/// ```
pub struct Frontier {
    pub(crate) config: Config,
    pub(crate) hosts: Vec<Host>,
    /// Places of hosts by their keys.
    pub(crate) host_ids: Index,
    pub(crate) seen: Seen,
    /// Changes since the last flush, and those that are being flushed.
    pub(crate) active: Memtable,
    pub(crate) sealed: Option<Arc<Memtable>>,
    pub(crate) ready: ReadyBank,
    pub(crate) waiting: WaitHeap,
    /// Hosts whose address is wanted: those whose address was not asked for yet, and those that are away.
    pub(crate) to_ask: VecDeque<u32>,
    pub(crate) to_ask_again: VecDeque<u32>,
    /// Hosts whose window is nearly empty, and those that have nothing to do before it is refilled.
    pub(crate) to_refill: VecDeque<u32>,
    pub(crate) idle: VecDeque<u32>,
    pub(crate) refilling: Option<Refilling>,
    /// Lookups under way.
    pub(crate) asked: usize,
    /// Pages whose host could not be looked up: leased, and to be handed out as refused.
    pub(crate) unresolved: VecDeque<Work>,
    pub(crate) addresses: KeyMap<u128, AddressGate>,
    /// Addresses that a ready host left again, perhaps without a fetch: its turn there is another's.
    pub(crate) turns: Vec<IpAddr>,
    /// Pages under way.
    pub(crate) leases: KeyMap<UrlId, Out>,
    /// Errands under way.
    pub(crate) errands: KeyMap<u64, (Hold, Errand)>,
    pub(crate) expiries: BinaryHeap<Reverse<(i64, LeaseId)>>,
    pub(crate) next_errand: u64,
    pub(crate) sessions: Sessions,
    /// Hosts whose rules are in memory, the oldest first.
    pub(crate) rules: VecDeque<(u32, Arc<str>)>,
    /// Hosts that stand somewhere.
    pub(crate) placed: usize,
    pub(crate) totals: Totals,
    /// Rows in windows, in bytes.
    pub(crate) window_bytes: usize,
    pub(crate) dispatched: u64,
    /// When, by the number of leases, windows are refilled at the latest.
    pub(crate) refill_at: u64,
    pub(crate) seeds_open: bool,
    /// Links deeper than this were turned away and are known nowhere.
    pub(crate) turned_away_at: Option<u32>,
    /// After a restart no host is asked before this: one may have been asked without a record of it.
    pub(crate) floor_ms: i64,
    pub(crate) clock: Clock,
    pub(crate) store: Option<Store>,
    /// What the next batch of the log says.
    pub(crate) batch: Batch,
}

/// What is known of URLs; see [`crate::seen`].
pub(crate) enum Seen {
    Exact(Exact),
    Files(Recent),
}

/// Counts over all hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// URLs known.
    pub known: u64,
    /// URLs that wait, those leased not.
    pub waiting: u64,
    /// Pages ever handed out.
    pub admitted: u64,
    /// The next number of arrival.
    pub arrival: u64,
    pub parked: u64,
    /// Seeds that were never handed out: a limit on pages keeps room for them.
    pub seeds_waiting: u64,
    /// Seeds that are leased for the first time: after a crash they were never handed out.
    pub seeds_out: u64,
}

/// A page that is leased.
pub(crate) struct Out {
    pub row: Row,
    pub host: u32,
    /// What it holds until it is released; `None` for refusals and what was released already.
    pub hold: Option<Hold>,
    pub expires: i64,
    /// What the release said, for the settle that follows.
    pub answered: Option<Answer>,
}

/// The gates a lease holds: its host's, and that of the address it was known under then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub host: u32,
    pub ip: Option<IpAddr>,
    /// Pleas in a row of the host when it was leased. With more of them by the time it ends, it met the same trouble as another.
    pub backoffs: u16,
}

/// An address and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct AddressGate {
    pub in_flight: u32,
    pub next_ms: i64,
    pub waiting: VecDeque<u32>,
}

pub(crate) fn address_key(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip.to_owned())) | 0xffff << 32,
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// Records on their way into the log.
#[derive(Default)]
pub(crate) struct Batch {
    pub bytes: Vec<u8>,
    /// Hosts that changed.
    pub hosts: Vec<u32>,
    /// Hosts that changed since the last flush.
    pub unflushed: Vec<u32>,
    pub notes: BTreeMap<u8, Vec<u8>>,
    /// All notes as they were last set.
    pub kept: BTreeMap<u8, Vec<u8>>,
    /// Seeds that were never handed out, as the log has them.
    pub seeds: u64,
    /// When the last batch was made durable, for [`crate::Durability::Interval`].
    pub synced_ms: i64,
}

/// Time as the frontier has it: the caller's, but it never goes back. A clock that is set back, within a run or between two,
/// stops nothing: time goes on from where it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub latest: i64,
    /// Added to the caller's time.
    pub ahead: i64,
}

impl Clock {
    pub fn tick(&mut self, now: UnixMillis) -> i64 {
        let here = now.0.saturating_add(self.ahead);
        if here < self.latest {
            self.ahead = self.ahead.saturating_add(self.latest.saturating_sub(here));
        }
        self.latest = self.latest.max(here);
        self.latest
    }

    /// A time of the frontier, as the caller has it.
    pub fn outside(&self, at: i64) -> UnixMillis {
        UnixMillis(at.saturating_sub(self.ahead))
    }
}

impl Frontier {
    /// A frontier without files: what it knows goes with it.
    pub fn in_memory(config: Config) -> Self {
        Self::empty(config, None)
    }

    pub(crate) fn empty(config: Config, store: Option<Store>) -> Self {
        Self {
            hosts: Vec::new(),
            host_ids: Index::default(),
            seen: Seen::Exact(Exact::default()),
            active: Memtable::default(),
            sealed: None,
            ready: ReadyBank::default(),
            waiting: WaitHeap::default(),
            to_ask: VecDeque::new(),
            to_ask_again: VecDeque::new(),
            to_refill: VecDeque::new(),
            idle: VecDeque::new(),
            refilling: None,
            asked: 0,
            unresolved: VecDeque::new(),
            addresses: KeyMap::default(),
            turns: Vec::new(),
            leases: KeyMap::default(),
            errands: KeyMap::default(),
            expiries: BinaryHeap::new(),
            next_errand: 0,
            sessions: Sessions::default(),
            rules: VecDeque::new(),
            placed: 0,
            totals: Totals { arrival: 1, ..Totals::default() },
            window_bytes: 0,
            dispatched: 0,
            refill_at: 0,
            seeds_open: false,
            turned_away_at: None,
            floor_ms: i64::MIN,
            clock: Clock { latest: i64::MIN, ahead: 0 },
            store,
            batch: Batch::default(),
            config,
        }
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// URLs ever taken.
    pub fn known(&self) -> u64 {
        self.totals.known
    }

    /// URLs taken and not done, those under way included.
    pub fn pending(&self) -> u64 {
        self.totals.waiting + self.leases.len() as u64
    }

    /// How long the host with the longest queue takes at least, by its delay: what the rate of all hosts together does not tell.
    /// Looks at every host.
    pub fn longest_queue(&self) -> Duration {
        let takes = |host: &Host| i64::from(host.waiting).saturating_mul(host.delay_ms(&self.config));
        let longest =
            self.hosts.iter().filter(|host| !host.marks.held && !host.is_dead()).map(takes).max().unwrap_or(0);
        Duration::from_millis(longest.unsigned_abs()) / self.config.per_host.max(1)
    }

    /// URLs parked because a trap made them.
    pub fn parked(&self) -> u64 {
        self.totals.parked
    }

    /// Pages ever handed out, whatever came of them.
    pub fn admitted(&self) -> u64 {
        self.totals.admitted
    }

    /// Leases that were handed out and not settled, and errands that were not answered.
    pub fn out(&self) -> usize {
        self.leases.len() + self.errands.len()
    }

    /// The URL of a page that is leased.
    pub fn leased_url(&self, id: UrlId) -> Option<&str> {
        self.leases.get(&id).map(|out| out.row.url())
    }

    /// How a leased page is known by now to be found, with its depth and hops: a shorter way may have come up since the lease.
    pub fn leased_source(&self, id: UrlId) -> Option<(Source, u32, u32)> {
        let row = &self.leases.get(&id)?.row;
        Some((Source::of(row.found, row.texts.via()), row.depth.into(), row.hops.into()))
    }

    /// Hosts known.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Whether more seeds follow: then a limit on pages leaves links waiting, so that every seed comes before them.
    pub fn set_seeds_open(&mut self, open: bool) {
        let ended = self.seeds_open && !open;
        self.seeds_open = open;
        if ended && self.config.limits_pages() {
            self.place_idle();
        }
    }

    /// After a restart: how many seeds were never handed out, for which a limit on pages keeps room. The log says so; a caller that
    /// counts seeds by other rules tells its own number.
    pub fn set_seeds_waiting(&mut self, seeds: u64) {
        self.totals.seeds_waiting = seeds;
    }

    /// Gives up the room that a limit on pages keeps for seeds which cannot be handed out (their host has its own limit, or
    /// was given up); tells whether that may have let other pages go.
    pub fn release_seed_room(&mut self) -> bool {
        let held = std::mem::take(&mut self.totals.seeds_waiting) > 0;
        let room = self.config.max_pages.is_some_and(|most| self.totals.admitted < most);
        if held && room {
            self.place_idle();
        }
        held && room
    }

    /// Places all hosts that stand nowhere: a limit was lifted.
    pub(crate) fn place_idle(&mut self) {
        let now = self.clock.latest;
        for id in 0..self.hosts.len() as u32 {
            self.hosts[id as usize].is_let_go();
            if self.hosts[id as usize].placed == Placed::Nowhere && self.hosts[id as usize].waiting > 0 {
                self.place(id, now);
            }
        }
    }

    /// The host of a key; created under the name that `name` tells.
    pub(crate) fn host_of(&mut self, key: u64, name: impl FnOnce() -> String) -> u32 {
        let next = self.hosts.len() as u32;
        let id = self.host_ids.get_or_add(hash_of(key.into()), next, |id| self.hosts[id as usize].key == key);
        if id == next {
            self.hosts.push(Host::new(key, &name(), self.floor_ms));
        }
        id
    }

    /// The host of a key, if it is known.
    pub(crate) fn known_host(&self, key: u64) -> Option<u32> {
        self.host_ids.get(hash_of(key.into()), |id| self.hosts[id as usize].key == key)
    }

    /// Bytes that windows may still take.
    pub(crate) fn window_room(&self) -> usize {
        self.config.window_bytes().saturating_sub(self.window_bytes)
    }

    /// Marks a host as changed.
    pub(crate) fn touch(&mut self, id: u32) {
        if self.store.is_none() {
            return;
        }
        let marks = &mut self.hosts[id as usize].marks;
        if !std::mem::replace(&mut marks.unlogged, true) {
            self.batch.hosts.push(id);
        }
        if !std::mem::replace(&mut marks.unflushed, true) {
            self.batch.unflushed.push(id);
        }
    }

    /// Writes a row down: in the log, and among the recent changes.
    pub(crate) fn write(&mut self, host: u32, row: Row) {
        self.touch(host);
        if self.store.is_some() {
            self.batch.row(&row);
        }
        self.active.put(host, row);
    }

    /// What ends a call that changed something.
    pub(crate) fn changed(&mut self, now: i64) -> Result<()> {
        self.keep_up(now)
    }
}
