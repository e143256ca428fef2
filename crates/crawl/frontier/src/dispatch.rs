//! What is next: gates, leases, refusals.

use crate::candidate::{Lease, LeaseId, LookupId, Next, RobotsAnswer, Source};
use crate::config::RobotsPolicy;
use crate::frontier::{Frontier, Hold};
use crate::host::{EntryState, Errand, HostId, NameState, OriginId, Placed, Robots};
use trawl_model::{ErrorClass, RobotsVerdict, UnixMillis};

impl Frontier {
    /// What to do now. Call it until it says to wait.
    pub fn next(&mut self, now: UnixMillis) -> Next {
        let now = now.0;
        self.latest_ms = self.latest_ms.max(now);
        while let Some((at, id)) = self.deferred.first().copied().filter(|(at, _)| *at <= now) {
            self.deferred.remove(&(at, id));
            self.enqueue(id);
        }
        while let Some((_, host)) = self.waiting.first().copied().filter(|(at, _)| *at <= now) {
            self.place(host, now);
        }
        while let Some((_, host)) = self.ready.first().copied() {
            self.unplace(host);
            let next = self.take(host, now);
            self.place(host, now);
            if let Some(next) = next {
                return next;
            }
        }
        let host = self.waiting.first().map(|(at, _)| *at);
        let url = self.deferred.first().map(|(at, _)| *at);
        match host.into_iter().chain(url).min() {
            Some(at) => Next::WaitUntil(UnixMillis(at)),
            None if self.pending.is_empty() && self.errands.is_empty() && self.asked == 0 => Next::Empty,
            None => Next::Blocked,
        }
    }

    /// Takes the best work of a host that may be asked; `None` when there is none after all.
    fn take(&mut self, host: HostId, now: i64) -> Option<Next> {
        let state = &mut self.hosts[host.0];
        // Another host on the same address may have been faster, or a release moved the gate since.
        if state.next_ms > now || state.in_flight >= self.config.per_host || !self.address_is_free(host) {
            return None;
        }
        let state = &mut self.hosts[host.0];
        let dead = state.is_dead();
        if !dead && self.wants_lookup(host, now) {
            if self.asked >= self.config.lookups {
                return None;
            }
            let state = &mut self.hosts[host.0];
            let url = match (state.errands.front(), state.origins.first()) {
                (Some(errand), _) => errand.url.clone(),
                (None, Some(origin)) => origin.root.clone(),
                (None, None) => return None,
            };
            state.name_state = NameState::Asked;
            self.asked += 1;
            return Some(Next::Lookup(LookupId(host.0), url));
        }
        let state = &mut self.hosts[host.0];
        if let Some(errand) = state.errands.pop_front() {
            return match &state.given_up {
                None => Some(self.send_errand(host, errand, now)),
                // Whose robots.txt lies on a dead host has none for now.
                Some(why) => {
                    let why = RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, why.clone());
                    self.learn(UnixMillis(now), errand.origin, why);
                    None
                }
            };
        }
        let (index, _) = state.best(now, dead)?;
        let origin = &mut state.origins[index];
        if !dead && self.config.robots == RobotsPolicy::Honour {
            let stale = match &origin.robots {
                Robots::Unknown { .. } | Robots::Resting { .. } => true,
                Robots::Known { until, .. } => *until <= now,
                Robots::Fetching { .. } | Robots::GivenUp { .. } => false,
            };
            if stale {
                origin.robots = Robots::Fetching { attempts: origin.robots.attempts() };
                let errand = Errand { url: origin.root.robots(), origin: OriginId { host, index }, hops: 0 };
                return Some(self.send_errand(host, errand, now));
            }
        }
        let (_, id) = origin.queue.pop_first()?;
        let entry = self.pending.get_mut(&id)?;
        entry.state = EntryState::Out;
        self.out += 1;
        let (verdict, refusal) = match (&origin.robots, entry.refused) {
            (_, Some(class)) => (RobotsVerdict::Ignored, Some((class, "too many redirects in a row".to_owned()))),
            _ if dead => {
                let message = state.given_up.clone().unwrap_or_default();
                (RobotsVerdict::Unavailable, Some((ErrorClass::DeadHost, message)))
            }
            _ if self.config.robots == RobotsPolicy::Ignore => (RobotsVerdict::Ignored, None),
            (Robots::Known { rules, .. }, _) if rules.allows(entry.url.path_query()) => (RobotsVerdict::Allowed, None),
            (Robots::GivenUp { class, message }, _) => {
                (RobotsVerdict::Unavailable, Some((*class, format!("robots.txt: {message}"))))
            }
            _ => (RobotsVerdict::Denied, Some((ErrorClass::RobotsDenied, "robots.txt disallows it".to_owned()))),
        };
        let lease = Lease {
            id: LeaseId::Page(id),
            url: entry.url.clone(),
            depth: entry.rank.0,
            hops: entry.hops,
            attempt: entry.attempts + 1,
            source: entry.source.clone(),
            robots: verdict,
            meta_json: entry.meta_json.clone(),
        };
        if let Some((class, message)) = refusal {
            return Some(Next::Refuse(lease, class, message));
        }
        let hold = self.occupy(host, now);
        self.leases.insert(id, hold);
        Some(Next::Lease(lease))
    }

    fn send_errand(&mut self, host: HostId, errand: Errand, now: i64) -> Next {
        let number = self.next_errand;
        self.next_errand += 1;
        let attempts = self.hosts[errand.origin.host.0].origins[errand.origin.index].robots.attempts();
        let lease = Lease {
            id: LeaseId::Robots(number),
            url: errand.url.clone(),
            depth: 0,
            hops: errand.hops,
            attempt: attempts + 1,
            source: Source::Seed,
            robots: RobotsVerdict::Allowed,
            meta_json: None,
        };
        let hold = self.occupy(host, now);
        self.errands.insert(number, (hold, errand));
        Next::Lease(lease)
    }

    /// Spends politeness: the host, and its address if known, are busy.
    fn occupy(&mut self, host: HostId, now: i64) -> Hold {
        let state = &mut self.hosts[host.0];
        state.in_flight += 1;
        state.next_ms = now.saturating_add(state.delay_ms(&self.config));
        if let Some(ip) = state.ip {
            self.addresses.entry(ip).or_default().in_flight += 1;
        }
        Hold { host, ip: state.ip }
    }

    pub(crate) fn address_is_free(&self, host: HostId) -> bool {
        let Some(limit) = self.config.per_ip else { return true };
        let ip = self.hosts[host.0].ip;
        ip.and_then(|ip| self.addresses.get(&ip)).is_none_or(|address| address.in_flight < limit)
    }

    /// Puts a host where it belongs: among the ready, to wait, or nowhere.
    pub(crate) fn place(&mut self, id: HostId, now: i64) {
        self.unplace(id);
        let host = &self.hosts[id.0];
        if host.in_flight >= self.config.per_host || host.name_state == NameState::Asked {
            return;
        }
        let dead = host.is_dead();
        let rank = match (host.errands.is_empty(), host.best(now, dead)) {
            (false, _) => (0, 0),
            (true, Some((_, rank))) => rank,
            (true, None) => {
                if let Some(at) = host.unblocks_at(now) {
                    // Its robots.txt could not be had: that is a failure, whatever else the host does.
                    self.wait(id, at.max(host.next_ms), true);
                }
                return;
            }
        };
        if host.next_ms > now {
            // Callers that do not know the time say i64::MIN: the host then passes through the wait heap once.
            self.wait(id, host.next_ms, host.is_in_backoff());
        } else if !dead && self.asked >= self.config.lookups && self.wants_lookup(id, now) {
            self.hosts[id.0].placed = Placed::Name;
            self.to_ask.push_back(id);
        } else if let (false, Some(ip)) = (self.address_is_free(id), host.ip) {
            self.hosts[id.0].placed = Placed::Address(ip);
            self.addresses.entry(ip).or_default().waiting.push_back(id);
        } else {
            self.hosts[id.0].placed = Placed::Ready(rank);
            self.ready.insert((rank, id));
        }
    }

    fn wait(&mut self, id: HostId, at: i64, in_backoff: bool) {
        self.hosts[id.0].placed = Placed::Waiting(at, in_backoff);
        self.polite += usize::from(!in_backoff);
        self.waiting.insert((at, id));
    }

    /// Whether the address of a host must be found out before it is asked.
    fn wants_lookup(&self, id: HostId, now: i64) -> bool {
        let fresh = matches!(self.hosts[id.0].name_state, NameState::Known(until) if until > now);
        self.config.lookups > 0 && self.config.per_ip.is_some() && !fresh
    }

    fn unplace(&mut self, id: HostId) {
        match std::mem::replace(&mut self.hosts[id.0].placed, Placed::Nowhere) {
            Placed::Ready(rank) => {
                self.ready.remove(&(rank, id));
            }
            Placed::Waiting(at, in_backoff) => {
                self.waiting.remove(&(at, id));
                self.polite -= usize::from(!in_backoff);
            }
            // Those lists are checked against `placed` when they are read.
            Placed::Address(_) | Placed::Name | Placed::Nowhere => {}
        }
    }
}
