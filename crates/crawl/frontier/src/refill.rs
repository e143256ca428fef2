//! Windows: the best rows of hosts that may soon be asked, found again among recent changes, runs and base.
//!
//! Hosts are taken in the order of their keys, so that a page of a file is unpacked once for all hosts on it. Of rows with one key
//! the newest counts, and none of them if that is done, leased, or in the window already.

use crate::error::Result;
use crate::frontier::Frontier;
use crate::host::{NEVER, Placed};
use crate::identity::UrlId;
use crate::policy::priority::rank;
use crate::row::{Row, Status};
use crate::store::files::RowScan;
use std::collections::{BinaryHeap, HashSet};

/// Hosts refilled at a time.
const HOSTS: usize = 16_384;
/// Rows that a window gets at least, and at most.
const FEWEST: usize = 16;
const MOST: usize = 4096;

/// Where a row was found, so that its texts are read only if it is taken.
enum Place {
    Recent(Row),
    File { file: usize, number: u64 },
}

/// A row that may be taken, the worst first.
struct Taken {
    rank: u64,
    place: Place,
}

impl PartialEq for Taken {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}
impl Eq for Taken {}
impl PartialOrd for Taken {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Taken {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

/// What one host gets.
struct Harvest {
    room: usize,
    taken: BinaryHeap<Taken>,
    /// When the first of the rows is due that were not taken.
    outside_due: i64,
    robots: Vec<Row>,
}

impl Frontier {
    /// Refills the windows that are empty or nearly so; tells whether any host has more to do now.
    pub(crate) fn refill(&mut self, now: i64) -> Result<bool> {
        self.refill_at = self.dispatched + crate::dispatch::REFILL_AFTER;
        let mut ids = std::mem::take(&mut self.to_refill);
        // Those who wait for it go first.
        ids.sort_unstable_by_key(|id| self.hosts[*id as usize].placed != Placed::Refill);
        self.to_refill = ids.split_off(ids.len().min(HOSTS));
        self.refill_hosts(&mut ids, now, now)?;
        Ok(true)
    }

    /// Refills the windows of some hosts with rows that are due until `until`.
    pub(crate) fn refill_hosts(&mut self, ids: &mut Vec<u32>, now: i64, until: i64) -> Result<bool> {
        ids.sort_unstable_by_key(|id| self.hosts[*id as usize].key);
        ids.dedup();
        let budget = (self.config.memory_bytes / 8).saturating_sub(self.window_bytes) / 256;
        let share = (budget / ids.len().max(1)).max(4);
        let mut scans = match &self.store {
            Some(store) => store.files.scans(),
            None => Vec::new(),
        };
        let mut any = false;
        for id in ids.iter() {
            let host = &mut self.hosts[*id as usize];
            host.marks.to_refill = false;
            let waiting = host.waiting as usize;
            let room = (waiting / 16).clamp(FEWEST, MOST).min(share);
            let harvest = self.harvest(*id, room, now, until, &mut scans)?;
            any |= self.reap(*id, harvest, now, &mut scans)?;
        }
        Ok(any)
    }

    fn harvest(&self, id: u32, room: usize, now: i64, until: i64, scans: &mut [RowScan]) -> Result<Harvest> {
        let host = &self.hosts[id as usize];
        let mut harvest = Harvest { room, taken: BinaryHeap::new(), outside_due: NEVER, robots: Vec::new() };
        let mut newer: HashSet<u64> = HashSet::new();
        let until = if host.is_dead() { i64::MAX } else { until };
        let window = &host.window;
        let in_window: HashSet<UrlId> =
            window.ready.iter().map(|(_, row)| row.id).chain(window.later.iter().map(|row| row.id)).collect();
        let at_hand = |id: UrlId| self.leases.contains_key(&id) || in_window.contains(&id);
        let wanted = |status: Status| status == Status::Scheduled || status == Status::Trapped && host.trap.released;
        for table in std::iter::once(&self.active).chain(self.sealed.as_deref()) {
            for row in table.of_host(id) {
                if !newer.insert(row.id.path()) {
                    continue;
                }
                if row.robots_until > 0 {
                    harvest.robots.push(row.clone());
                } else if wanted(row.status) && !at_hand(row.id) {
                    harvest.see(rank(row, now, &self.config), row.due_ms, until, |_| Place::Recent(row.clone()));
                }
            }
        }
        // Only the oldest file has nothing behind it that a key could hide.
        let files = scans.len();
        for (file, scan) in scans.iter_mut().enumerate() {
            let rows = scan.rows_of_host(host.key)?;
            for number in rows {
                let path = scan.path(number)?;
                let hidden = if file + 1 == files { newer.contains(&path) } else { !newer.insert(path) };
                let key = UrlId::new(host.key, path);
                if hidden {
                    continue;
                }
                if scan.is_robots(number)? {
                    harvest.robots.push(scan.row(key, number)?);
                } else if wanted(scan.status(number)?) && !at_hand(key) {
                    let head = scan.head(key, number)?;
                    let place = |_| Place::File { file, number };
                    harvest.see(rank(&head, now, &self.config), head.due_ms, until, place);
                }
            }
        }
        Ok(harvest)
    }

    /// Puts what was found into the window.
    fn reap(&mut self, id: u32, harvest: Harvest, now: i64, scans: &mut [RowScan]) -> Result<bool> {
        let Harvest { taken, outside_due, robots, .. } = harvest;
        for row in &robots {
            self.recall_robots(id, row, now);
        }
        let key = self.hosts[id as usize].key;
        let mut taken = taken.into_vec();
        // In the order of the file, so that its pages are unpacked once.
        taken.sort_unstable_by_key(|taken| match &taken.place {
            Place::Recent(_) => (usize::MAX, taken.rank),
            Place::File { file, number } => (*file, *number),
        });
        let mut rows = Vec::with_capacity(taken.len());
        for Taken { rank, place } in taken {
            let row = match place {
                Place::Recent(row) => row,
                Place::File { file, number } => {
                    let path = scans[file].path(number)?;
                    scans[file].row(UrlId::new(key, path), number)?
                }
            };
            self.window_bytes += row.memory();
            rows.push((rank, row));
        }
        let host = &mut self.hosts[id as usize];
        host.marks.rules_away = false;
        let any = !rows.is_empty();
        for (rank, row) in rows {
            match row.due_ms > now {
                true => host.window.add_later(row),
                false => host.window.ready.push((rank, row)),
            }
        }
        host.window.ready.sort_unstable_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        host.outside_due = outside_due;
        if outside_due == NEVER {
            // All there is has been seen. The number differs only where another program wrote the file.
            let here = host.window.len() as u32;
            self.totals.waiting = self.totals.waiting + u64::from(here) - u64::from(host.waiting);
            host.waiting = here;
        }
        self.place(id, now);
        Ok(any)
    }
}

impl Harvest {
    /// Considers a waiting row.
    fn see(&mut self, rank: u64, due: i64, until: i64, place: impl Fn(()) -> Place) {
        if due > until {
            self.outside_due = self.outside_due.min(due);
            return;
        }
        if self.taken.len() < self.room {
            self.taken.push(Taken { rank, place: place(()) });
        } else if let Some(mut worst) = self.taken.peek_mut() {
            self.outside_due = 0;
            if rank < worst.rank {
                *worst = Taken { rank, place: place(()) };
            }
        }
    }
}
