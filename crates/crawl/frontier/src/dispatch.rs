//! What is next: gates, leases, refusals.

use crate::candidate::{HostId, Lease, LeaseId, Next, RobotsAnswer, Wanted, Work};
use crate::config::RobotsPolicy;
use crate::error::Result;
use crate::frontier::{Frontier, Hold, Out, address_key};
use crate::host::{Errand, NEVER, NameState, Placed, Robots, split_site};
use crate::identity::QueueBy;
use crate::policy::politeness::millis;
use crate::refill::READING_MS;
use crate::row::{Found, Row, Texts};
use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;
use trawl_model::{ErrorClass, RobotsVerdict, UnixMillis};

/// So many windows are refilled at once, and the others after so many leases.
const MANY_REFILLS: usize = 4096;
pub(crate) const REFILL_AFTER: u64 = 1024;

impl Frontier {
    /// Hands out up to `n` pages and errands that may be fetched now, and tells when there is more. Without room in `work` it
    /// does nothing.
    pub fn lease(&mut self, now: UnixMillis, n: usize, work: &mut Vec<Work>) -> Result<Next> {
        let now = self.clock.tick(now);
        self.keep_up(now)?;
        self.expire(now)?;
        self.refill_if_read(now)?;
        let before = work.len();
        while work.len() - before < n
            && let Some(refused) = self.unresolved.pop_front()
        {
            work.push(refused);
        }
        // Hosts whose window is empty must not wait for as long as others have work.
        let wanted = self.idle.len() + self.to_refill.len();
        if wanted > 0 && (wanted >= MANY_REFILLS && self.has_refill_room() || self.dispatched >= self.refill_at) {
            self.refill(now)?;
        }
        loop {
            while let Some(host) = {
                let hosts = &self.hosts;
                self.waiting.due(now, |at, id| matches!(hosts[id as usize].placed, Placed::Waiting(t, _) if t == at))
            } {
                self.place(host, now);
            }
            while work.len() - before < n {
                self.pass_turns_on(now);
                let fair = self.config.fair_every > 0
                    && self.dispatched % u64::from(self.config.fair_every) == u64::from(self.config.fair_every) - 1;
                let hosts = &self.hosts;
                let live = |id: u32, turn| matches!(hosts[id as usize].placed, Placed::Ready(_, t) if t == turn);
                let Some(host) = self.ready.pop(fair, live) else { break };
                self.dispatched += 1;
                self.unplace(host);
                let taken = self.take(host, now)?;
                self.place(host, now);
                work.extend(taken);
            }
            if work.len() - before >= n {
                return Ok(Next::Now);
            }
            // No host is ready: those with more on disk are looked up now, all at once.
            if self.idle.is_empty() && self.to_refill.is_empty() || !self.refill(now)? {
                break;
            }
        }
        Ok(self.next_moment())
    }

    fn next_moment(&mut self) -> Next {
        let hosts = &self.hosts;
        let first = self.waiting.first(|at, id| matches!(hosts[id as usize].placed, Placed::Waiting(t, _) if t == at));
        while let Some(Reverse((at, id))) = self.expiries.peek().copied()
            && !self.is_out(id, at)
        {
            self.expiries.pop();
        }
        let expiry = self.expiries.peek().map(|Reverse((at, _))| *at);
        let reading = self.refilling.is_some().then(|| self.clock.latest.saturating_add(READING_MS));
        match first.into_iter().chain(expiry).chain(reading).min() {
            Some(at) => Next::WaitUntil(self.clock.outside(at)),
            None if self.placed == 0 && self.out() == 0 && self.asked == 0 => Next::Empty,
            None => Next::Blocked,
        }
    }

    /// Takes the best work of a host that may be asked; `None` when there is none after all.
    fn take(&mut self, id: u32, now: i64) -> Result<Option<Work>> {
        let host = &self.hosts[id as usize];
        let dead = self.refuses_next(host, now);
        // Another host on the same address may have been faster, or a release moved the gate since.
        let closed = host.next_ms > now || !self.address_is_free(id, now);
        if host.in_flight >= self.config.per_host || !dead && closed {
            return Ok(None);
        }
        let next = self.hosts[id as usize].next_errand(now);
        let host = &mut self.hosts[id as usize];
        if let Some(errand) = host.errands.as_mut().zip(next).and_then(|(errands, at)| errands.remove(at)) {
            return Ok(match host.why_given_up(&errand.url).map(str::to_owned) {
                None => Some(self.send_errand(id, errand, now)),
                // Whose robots.txt lies on a dead host has none for now.
                Some(why) => {
                    let why = RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, why);
                    self.learn(now, errand.host, &errand.site, errand.hops == 0, why)?;
                    None
                }
            });
        }
        let Some(at) = self.best_row(&self.hosts[id as usize], now) else { return Ok(None) };
        let host = &mut self.hosts[id as usize];
        let honour = self.config.robots == RobotsPolicy::Honour;
        let dead = host.why_given_up(host.window.ready[at].1.url()).is_some();
        if honour && !dead {
            let (site, _) = split_site(host.window.ready[at].1.url());
            let site: std::sync::Arc<str> = site.into();
            let state = host.site(&site);
            let stale = match &state.robots {
                Robots::Unknown { .. } | Robots::Resting { .. } => true,
                Robots::Known { until, .. } => *until <= now,
                Robots::Fetching { .. } | Robots::GivenUp { .. } => false,
            };
            if stale {
                state.robots = Robots::Fetching { attempts: state.robots.attempts(), old: state.robots.last_rules() };
                let url = format!("{site}/robots.txt").into();
                let errand = Errand { url, host: id, site, hops: 0 };
                return Ok(Some(self.send_errand(id, errand, now)));
            }
        }
        Ok(self.hand_out(id, at, None, now))
    }

    /// Leases the row at a place in the window: to be fetched, or refused if it may not be, or if it failed before it began.
    pub(crate) fn hand_out(
        &mut self,
        id: u32,
        at: usize,
        failed: Option<(ErrorClass, String)>,
        now: i64,
    ) -> Option<Work> {
        let host = &mut self.hosts[id as usize];
        let (_, row) = host.window.ready.remove(at)?;
        host.window.fit();
        self.window_bytes -= row.memory();
        host.waiting -= 1;
        host.out += 1;
        self.totals.waiting -= 1;
        if !row.is_admitted() {
            host.admitted += 1;
            host.fresh_out += 1;
            self.totals.admitted += 1;
            let seeds = &mut self.totals.seeds_waiting;
            *seeds = seeds.saturating_sub(u64::from(row.found == Found::Seed));
            self.totals.seeds_out += u64::from(row.found == Found::Seed);
        }
        let given_up = self.hosts[id as usize].why_given_up(row.url()).is_some();
        let (verdict, refusal) = match failed.filter(|_| !given_up) {
            Some(failed) => (RobotsVerdict::Unavailable, Some(failed)),
            None => self.verdict(id, &row),
        };
        let lease = lease_of(LeaseId::Page(row.id), &row, verdict, self.delay_of(id));
        if self.hosts[id as usize].window.is_low() {
            self.want_refill(id, now);
        }
        let hold = if refusal.is_none() { Some(self.occupy(id, now)) } else { None };
        let expires = self.config.lease_ttl.map_or(NEVER, |ttl| now.saturating_add(millis(ttl)));
        if expires < NEVER {
            self.expiries.push(Reverse((expires, lease.id)));
        }
        self.leases.insert(row.id, Out { row, host: id, hold, expires, answered: None });
        Some(match refusal {
            Some((class, message)) => Work::Refuse(lease, class, message),
            None => Work::Fetch(lease),
        })
    }

    /// Whether a row may be fetched, and why not.
    fn verdict(&self, id: u32, row: &Row) -> (RobotsVerdict, Option<(ErrorClass, String)>) {
        let host = &self.hosts[id as usize];
        if u32::from(row.hops) > self.config.max_hops || row.hops == u16::MAX {
            let why = "too many redirects, or sitemaps that name sitemaps, in a row".to_owned();
            return (RobotsVerdict::Ignored, Some((ErrorClass::RedirectLimit, why)));
        }
        if let Some(why) = host.why_given_up(row.url()) {
            return (RobotsVerdict::Unavailable, Some((ErrorClass::DeadHost, why.to_owned())));
        }
        if self.config.robots == RobotsPolicy::Ignore {
            return (RobotsVerdict::Ignored, None);
        }
        let (_, path) = split_site(row.url());
        match host.site_of(row.url()).map(|site| &site.robots) {
            Some(Robots::Known { rules, .. }) if rules.allows(path) => (RobotsVerdict::Allowed, None),
            Some(Robots::GivenUp { class, message }) => {
                (RobotsVerdict::Unavailable, Some((*class, format!("robots.txt: {message}"))))
            }
            _ => (RobotsVerdict::Denied, Some((ErrorClass::RobotsDenied, "robots.txt disallows it".to_owned()))),
        }
    }

    fn delay_of(&self, id: u32) -> Duration {
        Duration::from_millis(self.hosts[id as usize].delay_ms(&self.config).unsigned_abs())
    }

    fn send_errand(&mut self, id: u32, errand: Errand, now: i64) -> Work {
        let number = self.next_errand;
        self.next_errand += 1;
        let attempts = self.hosts[errand.host as usize].site(&errand.site).robots.attempts();
        let hold = self.occupy(id, now);
        let lease = Lease {
            id: LeaseId::Robots(number),
            texts: Texts::new(&errand.url, "", ""),
            found: Found::Seed,
            depth: 0,
            hops: errand.hops,
            attempt: attempts + 1,
            robots: RobotsVerdict::Allowed,
            delay: self.delay_of(id),
        };
        if let Some(ttl) = self.config.lease_ttl {
            self.expiries.push(Reverse((now.saturating_add(millis(ttl)), lease.id)));
        }
        self.errands.insert(number, (hold, errand));
        Work::Fetch(lease)
    }

    /// Spends politeness: the host, and its address if known, are busy.
    fn occupy(&mut self, id: u32, now: i64) -> Hold {
        let host = &mut self.hosts[id as usize];
        host.in_flight += 1;
        let next = now.saturating_add(host.delay_ms(&self.config));
        host.next_ms = next;
        let (ip, backoffs) = (host.ip, host.backoffs);
        if let Some(ip) = ip {
            let gate = self.addresses.entry(address_key(ip)).or_default();
            gate.in_flight += 1;
            gate.next_ms = gate.next_ms.max(next);
        }
        Hold { host: id, ip, backoffs }
    }

    /// Fetches that an address may have at a time.
    pub(crate) fn address_limit(&self, ip: IpAddr) -> Option<u32> {
        let limit = match self.config.queue {
            QueueBy::Ip => Some(self.config.per_host),
            QueueBy::Host | QueueBy::Domain => self.config.per_ip,
        };
        limit.filter(|_| !self.config.exempt.contains(&ip))
    }

    pub(crate) fn address_is_free(&self, id: u32, now: i64) -> bool {
        let Some(ip) = self.hosts[id as usize].ip else { return true };
        let (Some(limit), Some(gate)) = (self.address_limit(ip), self.addresses.get(&address_key(ip))) else {
            return true;
        };
        gate.in_flight < limit && (self.config.queue != QueueBy::Ip || gate.next_ms <= now)
    }

    /// Whether [`Frontier::wanted`] may name a host.
    pub fn wants_addresses(&self) -> bool {
        let again = !self.to_ask_again.is_empty() && self.asked < self.lookups_again();
        again || !self.to_ask.is_empty() && self.asked < self.config.lookups
    }

    /// Names that could not be looked up before get half of the lookups: each may take as long as a lookup can, and new ones
    /// wait behind it.
    fn lookups_again(&self) -> usize {
        self.config.lookups.div_ceil(2)
    }

    /// Names up to `n` hosts whose address must be known before they are asked; the caller answers each by [`Frontier::ready`].
    pub fn wanted(&mut self, now: UnixMillis, n: usize) -> Vec<Wanted> {
        let now = self.clock.tick(now);
        let mut wanted = Vec::new();
        while wanted.len() < n && self.asked < self.config.lookups {
            let again = self.asked < self.lookups_again();
            let next = self.to_ask.pop_front();
            let next = if next.is_none() && again { self.to_ask_again.pop_front() } else { next };
            let Some(id) = next else { break };
            if self.hosts[id as usize].placed != Placed::Name {
                continue;
            }
            let host = &self.hosts[id as usize];
            let errand = host.errands.as_ref().zip(host.next_errand(now)).map(|(errands, at)| &*errands[at].url);
            let url = errand.or_else(|| self.best_row(host, now).map(|at| host.window.ready[at].1.url()));
            let Some(site) = url.map(|url| split_site(url).0.to_owned()) else {
                self.place(id, now);
                continue;
            };
            self.unplace(id);
            self.hosts[id as usize].name_state = NameState::ASKED;
            self.asked += 1;
            wanted.push(Wanted { id: HostId(id), site });
        }
        wanted
    }
}

pub(crate) fn lease_of(id: LeaseId, row: &Row, robots: RobotsVerdict, delay: Duration) -> Lease {
    Lease {
        id,
        texts: row.texts.clone(),
        found: row.found,
        depth: u32::from(row.depth),
        hops: u32::from(row.hops),
        attempt: row.attempts() + 1,
        robots,
        delay,
    }
}
