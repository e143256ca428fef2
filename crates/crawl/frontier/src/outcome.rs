//! What comes back: gates open again when a fetch ends, a URL is settled when its capture is durable.

use crate::candidate::{AllowAll, Answer, LeaseId, RobotsAnswer};
use crate::frontier::{Frontier, Hold, Known, NO_NOTE};
use crate::host::{EntryState, Errand, HostId, OriginId, Placed, Robots};
use crate::identity::UrlId;
use crate::politeness::{backoff_ms, is_absence, is_passing, is_plea, millis};
use std::net::IpAddr;
use std::sync::Arc;
use trawl_model::{ErrorClass, UnixMillis};
use trawl_url::WebUrl;

/// robots.txt may be looked for this many redirects away (RFC 9309, 2.3.1.2).
const ROBOTS_HOPS: u32 = 5;

impl Frontier {
    /// A fetch ended: its host may be asked again after its delay, or later if it pleads for that. `ip` is the peer's
    /// address, unless hosts share it by the operator's choice.
    pub fn released(&mut self, now: UnixMillis, id: LeaseId, answer: Answer, ip: Option<IpAddr>) {
        let now = now.0;
        let held = match id {
            LeaseId::Page(id) => self.leases.remove(&id),
            LeaseId::Robots(number) => self.errands.get(&number).map(|(hold, _)| *hold),
        };
        let Some(Hold { host, ip: was }) = held else { return };
        self.latest_ms = self.latest_ms.max(now);
        let state = &mut self.hosts[host.0];
        state.in_flight = state.in_flight.saturating_sub(1);
        state.ended_ms = state.ended_ms.max(now);
        let mut next = now.saturating_add(state.delay_ms(&self.config));
        match answer {
            _ if is_plea(answer) => {
                state.backoffs += 1;
                let wait = self.plea_ms(host, answer);
                next = next.max(now.saturating_add(wait));
            }
            _ if is_absence(answer) => {
                state.failures += 1;
                let away = now.saturating_sub(*state.away_since.get_or_insert(now));
                let dice = xxhash_rust::xxh3::xxh3_64(state.name.as_bytes());
                next = next.max(now.saturating_add(backoff_ms(&self.config, state.failures, dice)));
                if away >= millis(self.config.give_up_after) {
                    let (n, seconds) = (state.failures, away / 1000);
                    state.given_up = Some(format!("{n} connections in a row failed, over {seconds} s"));
                }
            }
            _ => state.is_back(),
        }
        let state = &mut self.hosts[host.0];
        state.next_ms = state.next_ms.max(next);
        if state.is_dead() {
            // Nobody is asked any more: its URLs are refused without waiting.
            state.next_ms = now;
        }
        if ip.is_some() {
            state.ip = ip;
        }
        if let Some(was) = was {
            self.leave(was, now);
        }
        self.place(host, now);
    }

    /// How long a host that pleads for mercy gets: what it asks for, else more each time.
    fn plea_ms(&self, host: HostId, answer: Answer) -> i64 {
        let host = &self.hosts[host.0];
        match answer {
            Answer::Response { retry_after_ms: Some(ms), .. } => ms.clamp(0, millis(self.config.backoff_cap)),
            _ => backoff_ms(&self.config, host.backoffs, xxhash_rust::xxh3::xxh3_64(host.name.as_bytes())),
        }
    }

    /// A fetch left an address: the next in line may go there.
    pub(crate) fn leave(&mut self, ip: IpAddr, now: i64) {
        let Some(address) = self.addresses.get_mut(&ip) else { return };
        address.in_flight = address.in_flight.saturating_sub(1);
        while let Some(next) = self.addresses.get_mut(&ip).and_then(|a| a.waiting.pop_front()) {
            if self.hosts[next.0].placed == Placed::Address(ip) {
                self.place(next, now);
                // One that has to wait for another reason leaves its turn to the one behind it.
                if matches!(self.hosts[next.0].placed, Placed::Ready(_)) {
                    break;
                }
            }
        }
        if self.addresses.get(&ip).is_some_and(|a| a.in_flight == 0 && a.waiting.is_empty()) {
            self.addresses.remove(&ip);
        }
    }

    /// The capture of a page (or of its refusal) is durable: the URL is done, or comes back later. Also how a journal
    /// is replayed, where nothing was leased. `note` is where the links of its page are kept, for
    /// [`crate::Admission::Reopened`]. Tells whether it comes back.
    pub fn acknowledged(&mut self, now: UnixMillis, id: UrlId, answer: Answer, note: Option<u64>) -> bool {
        let depth = self.pending.get(&id).map_or(0, |entry| entry.rank.0);
        self.latest_ms = self.latest_ms.max(now.0);
        let known = self.seen.entry(id).or_insert(Known { depth, note: NO_NOTE });
        known.note = note.unwrap_or(NO_NOTE);
        let Some(entry) = self.pending.get_mut(&id) else { return false };
        match entry.state {
            EntryState::Out => self.out -= 1,
            EntryState::Queued => {
                let (origin, rank) = (entry.origin, entry.rank);
                self.hosts[origin.host.0].origins[origin.index].queue.remove(&rank);
            }
            EntryState::Deferred(at) => {
                self.deferred.remove(&(at, id));
            }
        }
        entry.attempts += 1;
        // Nobody was there to answer for this URL: the host waits, or is given up, with all its URLs.
        entry.strikes += u32::from(!is_absence(answer));
        let refused = matches!(answer, Answer::Failed(ErrorClass::DeadHost | ErrorClass::RobotsUnavailable));
        if !is_passing(answer) || refused || entry.strikes >= self.config.max_attempts {
            self.pending.remove(&id);
            return false;
        }
        if is_absence(answer) {
            self.enqueue(id);
            return true;
        }
        let wait = match answer {
            Answer::Response { retry_after_ms: Some(ms), .. } => ms.clamp(0, millis(self.config.backoff_cap)),
            _ => backoff_ms(&self.config, entry.strikes, id.0 as u64),
        };
        let at = now.0.saturating_add(wait);
        entry.state = EntryState::Deferred(at);
        self.deferred.insert((at, id));
        true
    }

    /// A robots.txt errand came back; call it beside [`Frontier::released`]. Later answers wait for nothing: rules are
    /// applied at once.
    pub fn robots(&mut self, now: UnixMillis, id: LeaseId, answer: RobotsAnswer) {
        let LeaseId::Robots(number) = id else { return };
        let Some((_, errand)) = self.errands.remove(&number) else { return };
        match answer {
            RobotsAnswer::Unavailable(class, _) if errand.hops == 0 && is_absence(Answer::Failed(class)) => {
                // Nobody was there: its host waits, or is given up, and says so for all its URLs.
                let origin = &mut self.hosts[errand.origin.host.0].origins[errand.origin.index];
                origin.robots = Robots::Unknown { attempts: origin.robots.attempts() };
                self.place(errand.origin.host, now.0);
            }
            RobotsAnswer::Redirect(_) if errand.hops >= ROBOTS_HOPS => {
                self.learn(now, errand.origin, RobotsAnswer::Rules(Arc::new(AllowAll)));
            }
            RobotsAnswer::Redirect(url) => {
                let host = self.host(url.host());
                let errand = Errand { url, origin: errand.origin, hops: errand.hops + 1 };
                self.hosts[host.0].errands.push_back(errand);
                self.place(host, now.0);
            }
            settled => self.learn(now, errand.origin, settled),
        }
    }

    /// What a journal remembers of the robots.txt of a URL's site, fetched at `then`.
    pub fn restore_robots(&mut self, then: UnixMillis, site: &WebUrl, answer: RobotsAnswer) {
        let host = self.host(site.host());
        let index = self.hosts[host.0].origin(site);
        if let RobotsAnswer::Rules(_) = answer {
            self.learn(then, OriginId { host, index }, answer);
        }
    }

    /// The root of the site whose robots.txt an errand is for.
    pub fn errand_site(&self, id: LeaseId) -> Option<&WebUrl> {
        let LeaseId::Robots(number) = id else { return None };
        let (_, errand) = self.errands.get(&number)?;
        Some(&self.hosts[errand.origin.host.0].origins[errand.origin.index].root)
    }

    pub(crate) fn learn(&mut self, now: UnixMillis, at: OriginId, answer: RobotsAnswer) {
        let dice = xxhash_rust::xxh3::xxh3_64(self.hosts[at.host.0].name.as_bytes());
        let origin = &mut self.hosts[at.host.0].origins[at.index];
        let attempts = origin.robots.attempts() + 1;
        origin.robots = match answer {
            RobotsAnswer::Rules(rules) => {
                Robots::Known { rules, until: now.0.saturating_add(millis(self.config.robots_ttl)) }
            }
            RobotsAnswer::Redirect(_) => return,
            // A name that does not exist, or whose address nobody allowed, has no pages either, and asking again in a minute
            // will not help.
            RobotsAnswer::Unavailable(class @ (ErrorClass::DnsNxdomain | ErrorClass::PrivateAddress), message) => {
                Robots::GivenUp { class, message }
            }
            RobotsAnswer::Unavailable(_, message) if attempts >= self.config.robots_attempts => {
                Robots::GivenUp { class: ErrorClass::RobotsUnavailable, message }
            }
            RobotsAnswer::Unavailable(..) => {
                Robots::Resting { attempts, until: now.0.saturating_add(backoff_ms(&self.config, attempts, dice)) }
            }
        };
        // From the end of the robots.txt to the first page its own crawl-delay counts already.
        let host = &mut self.hosts[at.host.0];
        let first = host.ended_ms.saturating_add(host.delay_ms(&self.config));
        host.next_ms = host.next_ms.max(if host.is_dead() { i64::MIN } else { first });
        self.place(at.host, now.0);
    }
}
