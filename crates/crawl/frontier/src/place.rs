//! Where a host stands: ready, waiting for a moment, an address, a name or its window, or nowhere.

use crate::config::RobotsPolicy;
use crate::frontier::{Frontier, address_key};
use crate::host::{HELD, Host, NameState, Placed, Robots};
use crate::identity::QueueBy;
use crate::policy::limits::Limits;
use crate::policy::priority::class;
use crate::row::Row;

impl Frontier {
    /// Which rows of a host the limits on pages let go.
    pub(crate) fn limits_of(&self, host: &Host) -> Limits {
        Limits::of(&self.config, &self.totals, host.admitted, self.seeds_open)
    }

    /// The place in the window of the best row that may be handed out.
    pub(crate) fn best_row(&self, host: &Host, now: i64) -> Option<usize> {
        if host.marks.held {
            return None;
        }
        let dead = host.is_dead();
        let limits = self.limits_of(host);
        let honour = self.config.robots == RobotsPolicy::Honour && !dead;
        let may_go = |row: &Row| {
            if !limits.let_row_go(row) {
                return false;
            }
            // The URLs of what is given up are refused, for which nothing need be known of its robots.txt.
            dead || host.site_of(row.url()).is_none_or(|site| {
                let is_fetched = honour && matches!(site.robots, Robots::Fetching { .. });
                site.given_up().is_some() || site.rests_until(now).is_none() && !is_fetched
            })
        };
        // Who asked for patience is asked next for any page that was never tried: pages that say 503 for ever must not use up the
        // patience for a host whose other pages are fine, nor an outage all attempts of one page.
        let by_chance = if host.backoffs > 0 { host.window.by_chance(may_go) } else { None };
        by_chance.or_else(|| host.window.ready.iter().rposition(|(_, row)| may_go(row)))
    }

    /// Whether the best work of a host is a refusal, which needs no request and waits for nothing.
    pub(crate) fn refuses_next(&self, host: &Host, now: i64) -> bool {
        if host.is_dead() || host.sites.iter().all(|site| site.given_up().is_none()) {
            return host.is_dead();
        }
        let next = self.best_row(host, now).filter(|_| host.next_errand(now).is_none());
        next.is_some_and(|at| host.why_given_up(host.window.ready[at].1.url()).is_some())
    }

    /// The class of a host's best work.
    pub(crate) fn class_of(&self, host: &Host) -> Option<u16> {
        if host.next_errand(self.clock.latest).is_some() {
            return Some(0);
        }
        let (rank, _) = &host.window.ready[self.best_row(host, self.clock.latest)?];
        Some(class(*rank, host.crawls, &self.config))
    }

    /// Puts a host where it belongs: among the ready, to wait, or nowhere.
    pub(crate) fn place(&mut self, id: u32, now: i64) {
        self.unplace(id);
        self.promote(id, now);
        let host = &self.hosts[id as usize];
        let busy = host.in_flight >= self.config.per_host || host.name_state == NameState::ASKED;
        // A host that used up its budget still gets the errands of others: their pages wait for its robots.txt.
        let held = host.marks.held && !host.has_errand();
        if busy || host.orders.paused || host.orders.blocked || held {
            return;
        }
        let Some(class) = self.class_of(host) else { return self.place_without_work(id, now) };
        let dead = self.refuses_next(host, now);
        let rules_away = host.marks.rules_away && self.config.robots == RobotsPolicy::Honour && !dead;
        if rules_away && host.next_ms <= now {
            return self.place_to_refill(id, now);
        }
        let placed = if host.next_ms > now && !dead {
            self.wait(id, host.next_ms, host.is_in_backoff())
        } else if !dead && self.wants_lookup(id, now) {
            let is_away = host.sites.iter().any(|site| site.away.is_some());
            if is_away {
                self.to_ask_again.push_back(id)
            } else {
                self.to_ask.push_back(id)
            }
            Placed::Name
        } else if let (false, Some(ip)) = (dead || self.address_is_free(id, now), host.ip) {
            let gate = self.addresses.entry(address_key(ip)).or_default();
            match gate.next_ms > now && self.config.queue == QueueBy::Ip {
                true => {
                    let at = gate.next_ms;
                    self.wait(id, at, false)
                }
                false => {
                    gate.waiting.push_back(id);
                    Placed::Address(ip)
                }
            }
        } else {
            Placed::Ready(class, self.ready.push(id, class))
        };
        self.hosts[id as usize].placed = placed;
        self.placed += 1;
    }

    /// A host that has nothing to hand out: rows may be due later, its robots.txt may be had later, or there may be more on disk.
    fn place_without_work(&mut self, id: u32, now: i64) {
        let host = &self.hosts[id as usize];
        let resting = host.sites.iter().filter_map(|site| site.rests_until(now)).min();
        let resting = resting.filter(|_| !host.window.ready.is_empty() || host.has_errand());
        // The rows of a host that used up its budget are not waited for.
        let later = host.window.later.last().map(|row| row.due_ms).filter(|_| !host.marks.held);
        let outside = (host.has_outside() && !host.marks.held).then_some(host.outside_due);
        // Rows whose robots.txt is under way are in the window and not in the way here. Those that a limit holds back would be: what it
        // lets go may be on disk behind them.
        let limits = self.limits_of(host);
        let is_used_up = !host.window.ready.iter().any(|(_, row)| limits.let_row_go(row));
        // At the end of a run of a million hosts with more pages than their limit, nothing is read of those that have no such rows.
        let may_find = match limits {
            Limits::Open => true,
            Limits::Seeds => host.marks.tried_outside || self.seeds_open || self.totals.seeds_waiting > 0,
            Limits::Reached => host.marks.tried_outside,
        };
        let refills = is_used_up && may_find && outside.is_some_and(|due| due <= now || host.is_dead() && due < HELD);
        // A refusal does not wait.
        let may_refuse = host.sites.iter().any(|site| site.given_up().is_some());
        if refills && (host.next_ms <= now || may_refuse) {
            return self.place_to_refill(id, now);
        }
        if refills {
            let (at, failed) = (host.next_ms, host.is_in_backoff());
            let placed = self.wait(id, at, failed);
            self.hosts[id as usize].placed = placed;
            self.placed += 1;
            return;
        }
        let outside = outside.filter(|due| *due > now && *due < HELD);
        let Some(at) = resting.into_iter().chain(later).chain(outside).min() else { return };
        // Something failed, or it would not wait: whatever else the host does.
        let placed = self.wait(id, at.max(host.next_ms), true);
        self.hosts[id as usize].placed = placed;
        self.placed += 1;
    }

    fn place_to_refill(&mut self, id: u32, now: i64) {
        if !std::mem::replace(&mut self.hosts[id as usize].marks.idle, true) {
            self.idle.push_back(id);
        }
        self.want_refill(id, now);
        self.hosts[id as usize].placed = Placed::Refill;
        self.placed += 1;
    }

    /// Rows whose time has come are ready; all of them, once no host is asked any more.
    fn promote(&mut self, id: u32, now: i64) {
        let host = &mut self.hosts[id as usize];
        let dead = host.is_dead();
        while host.window.later.last().is_some_and(|row| row.due_ms <= now || dead) {
            let Some(row) = host.window.later.pop() else { break };
            if let Some(until) = host.rests_until(row.url(), now).filter(|_| !dead) {
                self.window_bytes -= row.memory();
                host.marks.tried_outside |= row.is_admitted();
                host.goes_outside(until);
                continue;
            }
            let rank = crate::policy::priority::rank(&row, now, &self.config);
            host.window.add_ready(rank, row);
        }
    }

    fn wait(&mut self, id: u32, at: i64, failed: bool) -> Placed {
        self.waiting.push(at, id, failed);
        Placed::Waiting(at, failed)
    }

    /// Puts a host on the list of those whose window is refilled next.
    pub(crate) fn want_refill(&mut self, id: u32, now: i64) {
        let host = &mut self.hosts[id as usize];
        let has_more = host.has_outside() && (host.outside_due <= now || host.is_dead() && host.outside_due < HELD);
        let wanted = has_more || host.marks.rules_away;
        if !wanted || host.marks.refilling {
            return;
        }
        host.marks.to_refill = true;
        if !host.marks.idle && !std::mem::replace(&mut host.marks.listed, true) {
            self.to_refill.push_back(id);
        }
    }

    /// Whether the address of a host must be found out before it is asked.
    fn wants_lookup(&self, id: u32, now: i64) -> bool {
        let fresh = self.hosts[id as usize].name_state.is_known(now);
        let limited = self.config.per_ip.is_some() || self.config.queue == QueueBy::Ip;
        self.config.lookups > 0 && limited && !fresh
    }

    pub(crate) fn unplace(&mut self, id: u32) {
        match std::mem::replace(&mut self.hosts[id as usize].placed, Placed::Nowhere) {
            Placed::Nowhere => return,
            Placed::Ready(..) => {
                self.ready.left();
                self.turns.extend(self.hosts[id as usize].ip);
            }
            Placed::Waiting(_, failed) => self.waiting.left(failed),
            // Those lists are checked against `placed` when they are read.
            Placed::Address(_) | Placed::Name | Placed::Refill => {}
        }
        self.placed -= 1;
    }
}
