//! Trouble: of this machine, which settles nothing and counts against nobody, and of hosts, for which a run waits only so long.

use crate::candidate::{LeaseId, LookupId};
use crate::frontier::{Frontier, Hold};
use crate::host::{EntryState, Host, HostId, NameState, Placed};
use crate::politeness::{millis, trouble_ms};
use std::net::IpAddr;
use std::time::Duration;
use trawl_model::UnixMillis;

impl Host {
    /// It answered: whatever failed before is past.
    pub(crate) fn is_back(&mut self) {
        (self.backoffs, self.failures, self.troubles, self.away_since) = (0, 0, 0, None);
    }
}

impl Frontier {
    /// A lease comes back unused, because this machine could not make the fetch (no descriptor, no port, no route, no name
    /// server). Nothing is settled and nothing counted; its host is asked again after a while.
    pub fn returned(&mut self, now: UnixMillis, id: LeaseId) {
        let now = now.0;
        let held = match id {
            LeaseId::Page(id) => {
                let held = self.leases.remove(&id);
                if self.pending.get(&id).is_some_and(|entry| entry.state == EntryState::Out) {
                    self.out -= 1;
                    self.enqueue(id);
                }
                held
            }
            LeaseId::Robots(number) => self.errands.remove(&number).map(|(hold, errand)| {
                self.hosts[hold.host.0].errands.push_back(errand);
                hold
            }),
        };
        let Some(Hold { host, ip }) = held else { return };
        self.hosts[host.0].in_flight = self.hosts[host.0].in_flight.saturating_sub(1);
        if let Some(ip) = ip {
            self.leave(ip, now);
        }
        self.rest(host, now);
    }

    /// A host waits for this machine to recover.
    fn rest(&mut self, host: HostId, now: i64) {
        let state = &mut self.hosts[host.0];
        state.troubles += 1;
        let at = now.saturating_add(trouble_ms(state.troubles));
        state.next_ms = state.next_ms.max(at);
        self.place(host, now);
    }

    /// What came of a [`crate::Next::Lookup`]: the address that the host will be asked at and how long that holds. `Ok(None)`
    /// where hosts share an address by the operator's choice, or where the lookup failed in a way that the fetch itself is
    /// to record; `Err` where this machine could not look it up.
    pub fn resolved(
        &mut self,
        now: UnixMillis,
        LookupId(index): LookupId,
        found: Result<Option<(IpAddr, Duration)>, ()>,
    ) {
        let (id, now) = (HostId(index), now.0);
        let Some(host) = self.hosts.get_mut(index) else { return };
        self.asked = self.asked.saturating_sub(1);
        match found {
            Err(()) => {
                host.name_state = NameState::Unknown;
                self.rest(id, now);
            }
            Ok(found) => {
                let holds = found.map_or(Duration::from_secs(2), |(_, holds)| holds);
                host.name_state = NameState::Known(now.saturating_add(millis(holds).max(1_000)));
                host.ip = found.map(|(ip, _)| ip);
                self.place(id, now);
            }
        }
        while let Some(next) = self.to_ask.pop_front() {
            if self.hosts[next.0].placed == Placed::Name {
                self.place(next, now);
                // One that has to wait for another reason leaves its turn to the one behind it.
                if matches!(self.hosts[next.0].placed, Placed::Ready(_)) {
                    break;
                }
            }
        }
    }

    /// Whether all that is left to do waits because something failed: hosts in backoff, URLs to be tried again.
    pub fn only_backoff(&self) -> bool {
        let waits = !self.waiting.is_empty() || !self.deferred.is_empty();
        waits && self.polite == 0 && self.ready.is_empty() && self.out() == 0 && self.asked == 0
    }

    /// Ends the wait for all that is in backoff: such hosts are asked no more and their URLs refused by [`Frontier::next`];
    /// URLs that only waited to be tried again are forgotten, and counted here.
    pub fn give_up(&mut self, now: UnixMillis, why: &str) -> u64 {
        let mut forgotten = 0;
        for (_, id) in std::mem::take(&mut self.deferred) {
            forgotten += u64::from(self.pending.remove(&id).is_some());
        }
        let hosts: Vec<HostId> = self.waiting.iter().map(|(_, host)| *host).collect();
        for id in hosts {
            let host = &mut self.hosts[id.0];
            host.given_up = Some(match (host.failures, host.troubles) {
                (0, 0) => why.to_owned(),
                (0, n) => format!("{why}: this machine failed {n} times in a row"),
                (n, _) => format!("{why}: {n} connections in a row failed"),
            });
            host.next_ms = now.0;
            self.place(id, now.0);
        }
        forgotten
    }
}
