//! What comes back: gates open again when a fetch ends, a URL is settled when its capture is durable.

use crate::candidate::{Answer, LeaseId, Outcome, Settled};
use crate::error::Result;
use crate::frontier::{Frontier, Hold, Out, address_key};
use crate::host::{PLEAS_IN_DOUBT, Placed, split_site};
use crate::identity::QueueBy;
use crate::intake::hour;
use crate::policy::politeness::{backoff_ms, is_absence, is_passing, is_plea, millis, slowed_ms, trouble_ms};
use crate::row::{Found, Row, Status};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::IpAddr;
use trawl_model::{ErrorClass, UnixMillis};

/// A host that waits for longer than this keeps only its best row in memory.
const LONG_WAIT_MS: i64 = 600_000;

impl Frontier {
    /// A fetch ended: its host may be asked again after its delay, or later if it asks for that. `ip` is the peer's
    /// address, unless hosts share it by the operator's choice. The page itself is settled later, by [`Frontier::settle`].
    pub fn released(&mut self, now: UnixMillis, id: LeaseId, answer: Answer, ip: Option<IpAddr>) -> Result<()> {
        let now = self.clock.tick(now);
        let asked = match id {
            LeaseId::Page(id) => self.leases.get_mut(&id).and_then(|out| {
                out.answered = Some(answer);
                Some((out.hold.take()?, split_site(out.row.url()).0.to_owned()))
            }),
            LeaseId::Robots(number) => {
                let errand = self.errands.get(&number);
                errand.map(|(hold, errand)| (*hold, split_site(&errand.url).0.to_owned()))
            }
        };
        if let Some((hold, site)) = asked {
            self.open_gates(now, hold, &site, answer, ip);
        }
        Ok(())
    }

    fn open_gates(&mut self, now: i64, hold: Hold, site: &str, answer: Answer, ip: Option<IpAddr>) {
        let Hold { host: id, ip: was, backoffs } = hold;
        self.touch(id);
        let host = &mut self.hosts[id as usize];
        host.in_flight = host.in_flight.saturating_sub(1);
        host.ended_ms = host.ended_ms.max(now);
        let dice = host.key;
        let mut wait = 0;
        if !is_absence(answer)
            && let Some(state) = host.sites.iter_mut().find(|known| *known.name == *site)
        {
            state.away = None;
        }
        match answer {
            _ if is_plea(answer) => {
                // Of several requests at a time the first one counts: they met the same trouble.
                if host.backoffs <= backoffs {
                    host.backoffs = host.backoffs.saturating_add(1);
                    host.slowed_ms = slowed_ms(host.slowed_ms, true, &self.config);
                }
                let own = |n: u16| backoff_ms(&self.config, n.into(), dice);
                wait = match answer {
                    Answer::Response { retry_after_ms: Some(ms), .. } => {
                        // A host that was left alone for as long as it asked, and pleads again, does not know how long its
                        // trouble lasts: an outage of a minute with `Retry-After: 1` would use up all attempts of a page.
                        let least = if host.backoffs > 1 { own(host.backoffs - 1) } else { 0 };
                        ms.clamp(0, millis(self.config.backoff_cap)).max(least)
                    }
                    _ => own(host.backoffs),
                };
            }
            _ if is_absence(answer) => self.absent(id, site, now),
            _ => {
                host.is_back();
                host.slowed_ms = slowed_ms(host.slowed_ms, false, &self.config);
            }
        }
        let host = &mut self.hosts[id as usize];
        let rested = now.saturating_add(host.delay_ms(&self.config));
        host.next_ms = host.next_ms.max(rested).max(now.saturating_add(wait));
        if host.is_dead() {
            // The host is not asked any more: its URLs are refused without waiting.
            host.next_ms = now;
        } else if host.next_ms.saturating_sub(now) > LONG_WAIT_MS {
            self.shrink(id);
        } else if host.backoffs == PLEAS_IN_DOUBT {
            // All of the window may be of one section that is always busy: rows by chance come to it.
            self.want_refill(id, now);
        }
        if ip.is_some() {
            self.hosts[id as usize].ip = ip;
        }
        self.keep_distance(ip.or(was), rested);
        if let Some(was) = was {
            self.leave(was, now);
        }
        self.place(id, now);
    }

    /// Gives back the memory of a window that is not needed soon.
    fn shrink(&mut self, id: u32) {
        let host = &mut self.hosts[id as usize];
        let mut kept = VecDeque::new();
        // Those that were tried are kept anyway. Of a host that asks for patience, the one that it is asked for next.
        let best = match host.backoffs {
            0 => host.window.ready.iter().rposition(|(_, row)| !row.is_admitted()),
            _ => host.window.by_chance(|_| true),
        };
        for (at, (rank, row)) in std::mem::take(&mut host.window.ready).into_iter().enumerate() {
            if Some(at) == best || row.is_admitted() {
                kept.push_back((rank, row));
            } else {
                self.window_bytes -= row.memory();
                host.goes_outside(0);
            }
        }
        host.window.ready = kept;
    }

    /// Where all hosts behind an address are one queue, the delay counts from the end of a fetch there, as it does for a host.
    fn keep_distance(&mut self, ip: Option<IpAddr>, until: i64) {
        if let (QueueBy::Ip, Some(ip)) = (self.config.queue, ip) {
            let gate = self.addresses.entry(address_key(ip)).or_default();
            gate.next_ms = gate.next_ms.max(until);
        }
    }

    /// A fetch left an address: the next in line may go there.
    fn leave(&mut self, ip: IpAddr, now: i64) {
        let key = address_key(ip);
        let Some(gate) = self.addresses.get_mut(&key) else { return };
        gate.in_flight = gate.in_flight.saturating_sub(1);
        self.call_next(ip, now);
        let spaced = self.config.queue == QueueBy::Ip;
        let idle = |gate: &crate::frontier::AddressGate| {
            gate.in_flight == 0 && gate.waiting.is_empty() && (!spaced || gate.next_ms <= now)
        };
        if self.addresses.get(&key).is_some_and(idle) {
            self.addresses.remove(&key);
        }
    }

    /// Places the first host in line for an address that may be asked now.
    fn call_next(&mut self, ip: IpAddr, now: i64) {
        let key = address_key(ip);
        while let Some(next) = self.addresses.get_mut(&key).and_then(|gate| gate.waiting.pop_front()) {
            if self.hosts[next as usize].placed == Placed::Address(ip) {
                self.place(next, now);
                // One that has to wait for another reason leaves its turn to the one behind it.
                if matches!(self.hosts[next as usize].placed, Placed::Ready(..)) {
                    break;
                }
            }
        }
    }

    /// A host that was called and whose page is then refused, or that has to wait after all, makes no fetch that ends: without
    /// this, the next in line would not be called, and the run would wait for ever.
    pub(crate) fn pass_turns_on(&mut self, now: i64) {
        while let Some(ip) = self.turns.pop() {
            let limit = self.address_limit(ip);
            let has_room = |gate: &crate::frontier::AddressGate| limit.is_none_or(|limit| gate.in_flight < limit);
            if self.addresses.get(&address_key(ip)).is_some_and(|gate| !gate.waiting.is_empty() && has_room(gate)) {
                self.call_next(ip, now);
            }
        }
    }

    /// What became of pages, to be durable with the next batch together with the links that are offered along. A page that
    /// was not released is released here.
    pub fn settle(&mut self, now: UnixMillis, outcomes: &[Outcome]) -> Result<Vec<Settled>> {
        let now = self.clock.tick(now);
        let mut settled = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let Some(mut out) = self.leases.remove(&outcome.id) else {
                settled.push(Settled::Unknown);
                continue;
            };
            if let Some(hold) = out.hold.take() {
                let site = split_site(out.row.url()).0.to_owned();
                self.open_gates(now, hold, &site, outcome.answer, hold.ip);
            }
            settled.push(self.settle_row(out, outcome, now));
        }
        self.changed(now)?;
        Ok(settled)
    }

    fn settle_row(&mut self, out: Out, outcome: &Outcome, now: i64) -> Settled {
        let Out { mut row, host: id, .. } = out;
        let answer = outcome.answer;
        let host = &mut self.hosts[id as usize];
        host.out -= 1;
        host.fresh_out -= u32::from(!row.is_admitted());
        self.totals.seeds_out -= u64::from(!row.is_admitted() && row.found == Found::Seed);
        // One that was due again, or a trap's and released, is an ordinary one once it was tried.
        row.status = Status::Scheduled;
        match answer {
            Answer::Response { status, .. } => {
                row.crawls = row.crawls.saturating_add(1);
                row.http_status = status;
                row.last_crawled = hour(now);
                host.crawls = host.crawls.saturating_add(1);
            }
            Answer::Failed(_) => {
                row.errors = row.errors.saturating_add(1);
                host.errors = host.errors.saturating_add(1);
            }
        }
        row.note = outcome.note.unwrap_or(0);
        // No server answered for this URL: its origin waits, or is given up, with all its URLs.
        row.strikes = row.strikes.saturating_add(u8::from(!is_absence(answer)));
        let depth = u32::from(row.depth);
        // Found on a shorter way while it was refused.
        let in_reach =
            answer == Answer::Failed(ErrorClass::RedirectLimit) && u32::from(row.hops) <= self.config.max_hops;
        if in_reach {
            (row.strikes, row.due_ms) = (0, 0);
            self.write(id, row.clone());
            self.add_waiting(id, row, now);
            self.stir(id, now);
            return Settled::Again { depth };
        }
        let refused = matches!(answer, Answer::Failed(ErrorClass::DeadHost | ErrorClass::RobotsUnavailable));
        // Strikes are counted up to 255.
        let most = self.config.max_attempts.min(u32::from(u8::MAX));
        if !is_passing(answer) || refused || u32::from(row.strikes) >= most {
            row.due_ms = 0;
            // Files have the strikes as failures in a row. These end with an answer that settles the page, and a page that
            // robots.txt closes has none: it was never requested.
            if !is_passing(answer)
                && matches!(answer, Answer::Response { .. } | Answer::Failed(ErrorClass::RobotsDenied))
            {
                row.strikes = 0;
            }
            row.status = match answer {
                Answer::Failed(ErrorClass::RobotsDenied) => Status::Excluded,
                Answer::Failed(_) | Answer::Response { status: 410, .. } => Status::Gone,
                Answer::Response { .. } => Status::Crawled,
            };
            if row.status == Status::Excluded {
                self.note_depth(&row);
            }
            self.write(id, row);
            return Settled::Done { depth };
        }
        row.due_ms = match answer {
            _ if is_absence(answer) => 0,
            Answer::Response { retry_after_ms: Some(ms), .. } => {
                now.saturating_add(ms.clamp(0, millis(self.config.backoff_cap)))
            }
            _ => now.saturating_add(backoff_ms(&self.config, row.strikes.into(), row.id.path())),
        };
        self.write(id, row.clone());
        self.add_waiting(id, row, now);
        self.stir(id, now);
        Settled::Again { depth }
    }

    /// A lease comes back unused, because this machine could not make the fetch (no descriptor, no port, no route, no name
    /// server). Nothing is settled and nothing counted; its host is asked again after a while.
    pub fn returned(&mut self, now: UnixMillis, id: LeaseId) -> Result<()> {
        let now = self.clock.tick(now);
        if let Some(hold) = self.take_back(id, now) {
            self.rest(hold.host, now);
        }
        Ok(())
    }

    /// Puts a leased page back among those that wait, an errand back to its host.
    fn take_back(&mut self, id: LeaseId, now: i64) -> Option<Hold> {
        let hold = match id {
            LeaseId::Page(id) => {
                let Out { row, host, hold, .. } = self.leases.remove(&id)?;
                self.put_back(host, row, now);
                hold
            }
            LeaseId::Robots(number) => {
                let (hold, errand) = self.errands.remove(&number)?;
                self.hosts[hold.host as usize].errands.get_or_insert_default().push_back(errand);
                Some(hold)
            }
        }?;
        let host = &mut self.hosts[hold.host as usize];
        host.in_flight = host.in_flight.saturating_sub(1);
        let rested = now.saturating_add(host.delay_ms(&self.config));
        self.keep_distance(hold.ip, rested);
        if let Some(ip) = hold.ip {
            self.leave(ip, now);
        }
        Some(hold)
    }

    fn put_back(&mut self, id: u32, row: Row, now: i64) {
        let host = &mut self.hosts[id as usize];
        host.out -= 1;
        if !row.is_admitted() {
            host.admitted -= 1;
            host.fresh_out -= 1;
            self.totals.admitted -= 1;
            self.totals.seeds_waiting += u64::from(row.found == Found::Seed);
            self.totals.seeds_out -= u64::from(row.found == Found::Seed);
        }
        self.add_waiting(id, row, now);
        self.stir(id, now);
    }

    /// Leases that were out for too long: their pages wait again, and a late answer to them is refused.
    pub(crate) fn expire(&mut self, now: i64) -> Result<()> {
        while let Some(Reverse((at, id))) = self.expiries.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.expiries.pop();
            if self.is_out(id, at)
                && let Some(hold) = self.take_back(id, now)
            {
                let host = &mut self.hosts[hold.host as usize];
                host.next_ms = host.next_ms.max(now.saturating_add(host.delay_ms(&self.config)));
                self.place(hold.host, now);
            }
        }
        Ok(())
    }

    /// Whether the lease that expires at this moment is still out.
    pub(crate) fn is_out(&self, id: LeaseId, at: i64) -> bool {
        match id {
            LeaseId::Page(page) => self.leases.get(&page).is_some_and(|out| out.expires == at),
            LeaseId::Robots(number) => self.errands.contains_key(&number),
        }
    }

    /// A host waits for this machine to recover.
    pub(crate) fn rest(&mut self, id: u32, now: i64) {
        self.touch(id);
        let host = &mut self.hosts[id as usize];
        host.troubles = host.troubles.saturating_add(1);
        host.next_ms = host.next_ms.max(now.saturating_add(trouble_ms(host.troubles.into())));
        self.place(id, now);
    }
}
