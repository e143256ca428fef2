//! Windows: the best rows of hosts that may soon be asked, found again among recent changes, runs and base.
//!
//! Hosts are taken in the order of their keys, so that a page of a file is unpacked once for all hosts on it. Of rows with one key
//! the newest counts, and none of them if that is done, leased, or in the window already.
//!
//! ```text
//! order (what to look for, what to pass over) ─► read base and runs, aside ─► reap (with the recent changes as they are by then)
//! ```
//! Leases go on while files are read: reading for thousands of hosts takes a second where the base is large. Until a refill is
//! reaped no flush ends, so that whatever changes meanwhile is among the recent changes, and hides what was read.

use crate::config::Config;
use crate::error::Result;
use crate::frontier::Frontier;
use crate::host::{HELD, NEVER, PLEAS_IN_DOUBT, split_site};
use crate::identity::UrlId;
use crate::memtable::KeyMap;
use crate::policy::limits::Limits;
use crate::policy::priority::{BEHIND, rank};
use crate::row::{Row, Status};
use crate::store::Job;
use crate::store::files::RowScan;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

/// Hosts refilled at a time: as many as there is room for, but some even if there is none.
const HOSTS: usize = 65_536;
const FEWEST_HOSTS: usize = 1024;
/// Rows that a window gets at least, and at most; and what it gets where memory is short.
const FEWEST: usize = 16;
const MOST: usize = 4096;
const SCARCE: usize = 4;
/// Memory of a row in a window, about.
const ROW_BYTES: usize = 256;
/// Up to so many hosts with so many rows in all are read for at once: a thread costs more.
const FEW_HOSTS: usize = 8;
const FEW_ROWS: u64 = 4096;
/// When to ask again while files are read.
pub(crate) const READING_MS: i64 = 2;

/// Path keys. They are hashes already.
type Paths = HashSet<u64, std::hash::BuildHasherDefault<crate::memtable::KeyHasher>>;

/// What is looked for in the files.
struct Order {
    id: u32,
    key: u64,
    room: usize,
    /// Whether rows are taken by chance and not by rank.
    by_chance: bool,
    /// Rows that are due later are not taken.
    until: i64,
    /// Whether a trap's rows are let go.
    released: bool,
    /// What limits on pages hold back is not taken: it would fill the window, and hide what may go.
    limits: Limits,
    /// Origins that rest, and until when: their rows are not due before.
    resting: Resting,
    /// Rows of the recent changes, in the window, or leased.
    hidden: Paths,
}

type Resting = Vec<(Arc<str>, i64)>;

/// When a row is due, its origin considered.
fn due(resting: &Resting, url: &str, due_ms: i64) -> i64 {
    let (name, _) = split_site(url);
    resting.iter().find(|(site, _)| **site == *name).map_or(due_ms, |(_, until)| due_ms.max(*until))
}

/// What was found for a host.
struct Found {
    id: u32,
    /// As ordered: recent changes get no more of it than the files, whose rows may be better ones.
    room: usize,
    by_chance: bool,
    limits: Limits,
    rows: Vec<(u64, Row)>,
    robots: Vec<Row>,
    outside_due: i64,
}

/// A refill whose files are being read.
pub(crate) struct Refilling {
    job: Job<Vec<Found>>,
}

/// What a row is chosen by. The best rows of a host may all be of a section that is always busy, and the rest of it would never be
/// asked for: one that keeps asking for patience gets rows from anywhere, by the hash of their paths. Seeds still go first under a
/// limit.
fn choice(rank: u64, path: u64, by_chance: bool) -> u64 {
    if by_chance { (rank & BEHIND) << 16 | path >> 1 } else { rank }
}

/// A row that may be taken, the worst first.
struct Taken<P> {
    choice: u64,
    place: P,
}

impl<P> PartialEq for Taken<P> {
    fn eq(&self, other: &Self) -> bool {
        self.choice == other.choice
    }
}
impl<P> Eq for Taken<P> {}
impl<P> PartialOrd for Taken<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Taken<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.choice.cmp(&other.choice)
    }
}

/// The best rows of a host, as many as there is room for.
struct Best<P> {
    room: usize,
    until: i64,
    taken: BinaryHeap<Taken<P>>,
    /// When the first of the rows is due that were not taken.
    outside_due: i64,
}

impl<P> Best<P> {
    fn new(room: usize, until: i64) -> Self {
        Best { room, until, taken: BinaryHeap::new(), outside_due: NEVER }
    }

    /// Passes over a row that a limit holds back.
    fn hold_back(&mut self) {
        self.outside_due = self.outside_due.min(HELD);
    }

    /// Considers a waiting row.
    fn see(&mut self, choice: u64, due: i64, place: impl FnOnce() -> P) {
        if due > self.until {
            self.outside_due = self.outside_due.min(due);
        } else if self.taken.len() < self.room {
            self.taken.push(Taken { choice, place: place() });
        } else if let Some(mut worst) = self.taken.peek_mut() {
            self.outside_due = 0;
            if choice < worst.choice {
                *worst = Taken { choice, place: place() };
            }
        }
    }
}

/// Whether a row with this status is looked for.
pub(crate) fn is_wanted(status: Status, released: bool) -> bool {
    status.waits() || status == Status::Trapped && released
}

/// Reads the files for hosts in the order of their keys.
fn read(orders: Vec<Order>, scans: &mut [RowScan], now: i64, config: &Config) -> Result<Vec<Found>> {
    orders.into_iter().map(|order| read_host(order, scans, now, config)).collect()
}

fn read_host(order: Order, scans: &mut [RowScan], now: i64, config: &Config) -> Result<Found> {
    let Order { id, key, room, by_chance, until, released, limits, resting, mut hidden } = order;
    let mut best = Best::new(room, until);
    let mut robots = Vec::new();
    let files = scans.len();
    for (file, scan) in scans.iter_mut().enumerate() {
        for number in scan.rows_of_host(key)? {
            let path = scan.path(number)?;
            // Only the oldest file has nothing behind it that a key could hide.
            let is_hidden = if file + 1 == files { hidden.contains(&path) } else { !hidden.insert(path) };
            if is_hidden {
                continue;
            }
            let id = UrlId::new(key, path);
            if scan.is_robots(number)? {
                robots.push(scan.row(id, number)?);
            } else if is_wanted(scan.status(number)?, released) {
                let standing = scan.standing(number)?;
                if limits != Limits::Open && !limits.let_go(scan.is_tried(number, standing.status)?, standing.found) {
                    best.hold_back();
                    continue;
                }
                // URLs are unpacked only where some of them rest.
                let due = match resting.is_empty() {
                    true => standing.due_ms,
                    false => due(&resting, &scan.url(number)?, standing.due_ms),
                };
                let rank = standing.rank(now, config);
                best.see(choice(rank, path, by_chance), due, || (file, number, rank));
            }
        }
    }
    let outside_due = best.outside_due;
    let mut taken = best.taken.into_vec();
    // In the order of the file, so that its pages are unpacked once.
    taken.sort_unstable_by_key(|taken| taken.place);
    let mut rows = Vec::with_capacity(taken.len());
    for Taken { place: (file, number, rank), .. } in taken {
        let path = scans[file].path(number)?;
        rows.push((rank, scans[file].row(UrlId::new(key, path), number)?));
    }
    Ok(Found { id, room, by_chance, limits, rows, robots, outside_due })
}

impl Frontier {
    /// Refills the windows that are empty or nearly so, or begins to; tells whether any host may have more to do now.
    pub(crate) fn refill(&mut self, now: i64) -> Result<bool> {
        if self.refilling.is_some() {
            return Ok(false);
        }
        // Without room windows are drained first: refilling few hosts costs nearly as much as refilling many.
        let patience = if self.has_refill_room() { 1 } else { 16 };
        self.refill_at = self.dispatched + patience * crate::dispatch::REFILL_AFTER;
        let mut ids = self.next_to_refill();
        let rows = ids.iter().map(|id| u64::from(self.hosts[*id as usize].urls)).sum::<u64>();
        let few = ids.len() <= FEW_HOSTS && rows <= FEW_ROWS;
        let orders = self.orders(&mut ids, now);
        let Some(store) = self.store.as_ref().filter(|_| self.config.background && !few) else {
            self.refill_now(orders, now)?;
            return Ok(true);
        };
        let (mut scans, config) = (store.files.scans(), self.config.clone());
        let work = move || read(orders, &mut scans, now, &config);
        self.refilling = Some(Refilling { job: Job::start(true, String::new(), work)? });
        Ok(false)
    }

    /// Whether a refill would find room for many hosts.
    pub(crate) fn has_refill_room(&self) -> bool {
        self.window_room() >= self.config.window_bytes() / 4
    }

    /// The hosts to refill now: those that wait for it first.
    fn next_to_refill(&mut self) -> Vec<u32> {
        let most = (self.window_room() / (SCARCE * ROW_BYTES)).clamp(FEWEST_HOSTS, HOSTS);
        let mut ids = Vec::new();
        while ids.len() < most {
            let idle = self.idle.pop_front();
            let Some(id) = idle.or_else(|| self.to_refill.pop_front()) else { break };
            let marks = &mut self.hosts[id as usize].marks;
            *(if idle.is_some() { &mut marks.idle } else { &mut marks.listed }) = false;
            // A host may be in both lists: the first entry counts.
            if std::mem::replace(&mut marks.to_refill, false) {
                ids.push(id);
            }
        }
        ids
    }

    /// Takes over what a refill found, if it has read everything.
    pub(crate) fn refill_if_read(&mut self, now: i64) -> Result<()> {
        match &self.refilling {
            Some(refilling) if refilling.job.is_done() => self.finish_refill(now),
            _ => Ok(()),
        }
    }

    /// Waits for the refill that is under way.
    pub(crate) fn finish_refill(&mut self, now: i64) -> Result<()> {
        let Some(Refilling { job }) = self.refilling.take() else { return Ok(()) };
        for found in job.join()? {
            self.reap(found, now, now);
        }
        Ok(())
    }

    /// Refills the windows of some hosts with rows that are due until `until`; tells whether any was found.
    pub(crate) fn refill_hosts(&mut self, ids: &mut Vec<u32>, now: i64, until: i64) -> Result<bool> {
        self.finish_refill(now)?;
        let orders = self.orders(ids, until);
        self.refill_now(orders, now)
    }

    fn refill_now(&mut self, orders: Vec<Order>, now: i64) -> Result<bool> {
        let mut scans = self.store.as_ref().map_or_else(Vec::new, |store| store.files.scans());
        let mut any = false;
        for order in orders {
            let until = order.until;
            let found = read_host(order, &mut scans, now, &self.config)?;
            any |= self.reap(found, now, until);
        }
        Ok(any)
    }

    /// What to look for. Their marks stay until they are reaped, so that no host is ordered twice.
    fn orders(&mut self, ids: &mut Vec<u32>, until: i64) -> Vec<Order> {
        ids.sort_unstable_by_key(|id| self.hosts[*id as usize].key);
        ids.dedup();
        let share = (self.window_room() / ROW_BYTES / ids.len().max(1)).max(SCARCE);
        let mut leased: HashMap<u32, Vec<u64>> = HashMap::new();
        // Without files nothing can be hidden.
        if self.store.is_some() {
            for (id, out) in &self.leases {
                leased.entry(out.host).or_default().push(id.path());
            }
        }
        let mut orders = Vec::with_capacity(ids.len());
        for id in ids.iter() {
            let mut hidden = Paths::default();
            if self.store.is_some() {
                for table in std::iter::once(&self.active).chain(self.sealed.as_deref()) {
                    hidden.extend(table.of_host(*id).map(|row| row.id.path()));
                }
                let window = &self.hosts[*id as usize].window;
                hidden.extend(window.ready.iter().map(|(_, row)| row.id.path()));
                hidden.extend(window.later.iter().map(|row| row.id.path()));
                hidden.extend(leased.remove(id).unwrap_or_default());
            }
            let limits = self.limits_of(&self.hosts[*id as usize]);
            let host = &mut self.hosts[*id as usize];
            host.marks.refilling = true;
            host.marks.outside_changed = false;
            let until = if host.is_dead() { i64::MAX } else { until };
            let by_chance = host.backoffs >= PLEAS_IN_DOUBT && !host.is_dead();
            // A few by chance are enough to find a page that answers: more would be fetched out of their order after that.
            let most = if by_chance { FEWEST } else { (host.waiting as usize / 16).clamp(FEWEST, MOST) };
            let room = most.min(share);
            let resting = if host.is_dead() { Vec::new() } else { host.resting(self.clock.latest) };
            let (key, released) = (host.key, host.trap.released);
            orders.push(Order { id: *id, key, room, by_chance, until, released, limits, resting, hidden });
        }
        orders
    }

    /// Puts what was found, and what the recent changes have, into the window.
    fn reap(&mut self, found: Found, now: i64, until: i64) -> bool {
        let Found { id, room, by_chance, limits: ordered, rows, mut robots, outside_due } = found;
        let host = &self.hosts[id as usize];
        let limits = self.limits_of(host);
        let until = if host.is_dead() { i64::MAX } else { until };
        let mut best = Best::new(room, until);
        let resting = if host.is_dead() { Vec::new() } else { host.resting(now) };
        let mut newer = Paths::default();
        let in_window: KeyMap<UrlId, ()> = {
            let (ready, later) = (&host.window.ready, &host.window.later);
            ready.iter().map(|(_, row)| (row.id, ())).chain(later.iter().map(|row| (row.id, ()))).collect()
        };
        let at_hand = |id: UrlId| self.leases.contains_key(&id) || in_window.contains_key(&id);
        let mut recent_robots = Vec::new();
        for table in std::iter::once(&self.active).chain(self.sealed.as_deref()) {
            for row in table.of_host(id) {
                if !newer.insert(row.id.path()) {
                    continue;
                }
                if row.robots_until > 0 {
                    recent_robots.push(row.clone());
                } else if is_wanted(row.status, host.trap.released) && !at_hand(row.id) {
                    if !limits.let_row_go(row) {
                        best.hold_back();
                        continue;
                    }
                    let rank = rank(row, now, &self.config);
                    let (choice, due) = (choice(rank, row.id.path(), by_chance), due(&resting, row.url(), row.due_ms));
                    best.see(choice, due, || (rank, row.clone()));
                }
            }
        }
        for (rank, row) in rows {
            if !newer.contains(&row.id.path()) && !at_hand(row.id) {
                let choice = choice(rank, row.id.path(), by_chance);
                best.see(choice, due(&resting, row.url(), row.due_ms), || (rank, row));
            }
        }
        recent_robots.append(&mut robots);
        for row in &recent_robots {
            self.recall_robots(id, row, now);
        }
        let outside_due = match outside_due.min(best.outside_due) {
            // The limits are other ones than they were when this was ordered.
            HELD if limits != ordered => 0,
            due => due,
        };
        let host = &mut self.hosts[id as usize];
        (host.marks.refilling, host.marks.rules_away) = (false, false);
        let any = !best.taken.is_empty();
        host.window.reserve(best.taken.len());
        for Taken { place: (rank, row), .. } in best.taken.into_vec() {
            self.window_bytes += row.memory();
            match row.due_ms > now {
                true => host.window.add_later(row),
                false => host.window.ready.push_back((rank, row)),
            }
        }
        host.window.fit();
        host.window.ready.make_contiguous().sort_unstable_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        // What left the window while files were read is on disk, and its due time was not looked up.
        host.outside_due = if host.marks.outside_changed { 0 } else { outside_due };
        // All that may go was taken.
        host.marks.tried_outside &= host.outside_due < HELD;
        if host.outside_due == NEVER {
            // All there is has been seen. The number differs only where another program wrote the file.
            let here = host.window.len() as u32;
            self.totals.waiting = self.totals.waiting + u64::from(here) - u64::from(host.waiting);
            host.waiting = here;
        }
        self.place(id, now);
        any
    }
}
