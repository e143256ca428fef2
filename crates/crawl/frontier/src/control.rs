//! What an operator may ask for, and what the frontier reports about a host. Orders are durable with the next batch.

use crate::error::{Error, Result};
use crate::frontier::Frontier;
use crate::host::{Host, NEVER, Placed, Site};
use std::time::Duration;
use trawl_model::UnixMillis;
use trawl_url::key::host_key;

/// What is known of a host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HostReport {
    /// Its name.
    pub host: String,
    /// URLs known.
    pub urls: u32,
    /// URLs that wait, and that are leased.
    pub waiting: u32,
    /// URLs that are leased.
    pub leased: u32,
    /// URLs parked because a trap made them.
    pub parked: u32,
    /// Fetches with a response, and without.
    pub crawled: u32,
    /// Fetches without a response.
    pub failed: u32,
    /// Where it stands: `ready`, `waiting`, `backoff`, `busy`, `address`, `lookup`, `refill`, `idle`, `held`, `paused`, `blocked`
    /// or `given_up`.
    pub state: &'static str,
    /// Milliseconds until it may be asked; 0 for now.
    pub wait_ms: i64,
    /// Delay between two fetches in milliseconds.
    pub delay_ms: i64,
    /// Failed connections in a row, of the origin with most of them.
    pub failures: u16,
    /// Pleas to slow down in a row.
    pub backoffs: u16,
    /// Kinds of traps it was flagged for: `calendar`, `session`, `facets`.
    pub traps: Vec<&'static str>,
    /// Why it, or the first of its origins that was given up, is asked no more.
    pub given_up: Option<String>,
}

impl Frontier {
    fn find(&self, host: &str) -> Option<u32> {
        self.known_host(host_key(&host.to_ascii_lowercase()))
    }

    fn order(&mut self, now: UnixMillis, host: &str, change: impl FnOnce(&mut Host)) -> Result<bool> {
        let now = self.clock.tick(now);
        let Some(id) = self.find(host) else { return Ok(false) };
        change(&mut self.hosts[id as usize]);
        self.touch(id);
        self.place(id, now);
        self.changed(now)?;
        Ok(true)
    }

    /// Stops asking a host (`paused`), or asks it again; `false` if the host is unknown.
    pub fn pause(&mut self, now: UnixMillis, host: &str, paused: bool) -> Result<bool> {
        self.order(now, host, |host| host.orders.paused = paused)
    }

    /// The same for good: its URLs are kept and count as excluded.
    pub fn block(&mut self, now: UnixMillis, host: &str, blocked: bool) -> Result<bool> {
        self.order(now, host, |host| host.orders.blocked = blocked)
    }

    /// Hands out nothing more of a host in this process, because it used up what the caller grants it; `false` if nobody
    /// knows it. Its rows go on waiting.
    pub fn hold(&mut self, now: UnixMillis, host: &str) -> Result<bool> {
        self.order(now, host, |host| host.marks.held = true)
    }

    /// The host that may be asked next, of those that wait, and when; `true` if something of it failed, so that it is not
    /// politeness alone that it waits for.
    pub fn next_waiting(&mut self) -> Option<(String, UnixMillis, bool)> {
        let hosts = &self.hosts;
        let is_live = |at, id: u32| matches!(hosts[id as usize].placed, Placed::Waiting(t, _) if t == at);
        let (at, id) = self.waiting.first_host(is_live)?;
        let host = &self.hosts[id as usize];
        let failed = matches!(host.placed, Placed::Waiting(_, true));
        Some((host.name.to_string(), self.clock.outside(at), failed))
    }

    /// Sets the least delay between two fetches of a host, at most 49 days.
    pub fn delay(&mut self, now: UnixMillis, host: &str, delay: Duration) -> Result<bool> {
        let ms = u32::try_from(delay.as_millis())
            .map_err(|_| Error::Order { what: "a delay of at most 49 days", found: format!("{delay:?}") })?;
        self.order(now, host, |host| host.extra_delay_ms = ms)
    }

    /// Takes up a host again that was given up.
    pub fn take_up(&mut self, now: UnixMillis, host: &str) -> Result<bool> {
        self.order(now, host, |host| {
            host.is_asked_again();
            host.is_back();
            for site in &mut host.sites {
                site.away = None;
            }
            host.goes_outside(0);
        })
    }

    /// Lets the URLs of a host go that were parked as a trap's, and parks none of it any more.
    pub fn release(&mut self, now: UnixMillis, host: &str) -> Result<bool> {
        let mut freed = 0;
        let found = self.order(now, host, |host| {
            freed = std::mem::take(&mut host.parked);
            host.trap.released = true;
            host.waiting += freed;
            if freed > 0 {
                host.goes_outside(0);
            }
        })?;
        self.totals.parked -= u64::from(freed);
        self.totals.waiting += u64::from(freed);
        Ok(found)
    }

    /// What is known of a host.
    pub fn host_report(&self, host: &str) -> Option<HostReport> {
        self.find(host).map(|id| self.report_of(&self.hosts[id as usize]))
    }

    /// Hands over what is known of every host, until `each` returns `false`.
    pub fn host_reports(&self, each: &mut dyn FnMut(HostReport) -> bool) {
        let _ = self.hosts.iter().all(|host| each(self.report_of(host)));
    }

    fn report_of(&self, host: &Host) -> HostReport {
        let now = self.clock.latest;
        let gone = |site: &Site| site.given_up().map(|why| format!("{}: {why}", site.name));
        let away_for_good = !host.sites.is_empty() && host.sites.iter().all(|site| gone(site).is_some());
        let failures = host.sites.iter().filter_map(|site| site.away.as_ref()).map(|away| away.failures).max();
        let given_up = host.given_up.as_deref().map(str::to_owned);
        let state = match host.placed {
            _ if host.orders.blocked => "blocked",
            _ if host.orders.paused => "paused",
            _ if host.is_dead() || away_for_good => "given_up",
            _ if host.marks.held => "held",
            Placed::Ready(..) => "ready",
            Placed::Waiting(_, true) => "backoff",
            Placed::Waiting(_, false) => "waiting",
            Placed::Name => "lookup",
            Placed::Refill => "refill",
            Placed::Address(_) => "address",
            Placed::Nowhere if host.in_flight > 0 => "busy",
            Placed::Nowhere => "idle",
        };
        let at = match host.placed {
            Placed::Waiting(at, _) if at < NEVER => at,
            _ => now,
        };
        let traps = [("calendar", 1), ("session", 2), ("facets", 4)];
        HostReport {
            host: host.name.to_string(),
            urls: host.urls,
            waiting: host.waiting,
            leased: host.out,
            parked: host.parked,
            crawled: host.crawls,
            failed: host.errors,
            state,
            wait_ms: at.saturating_sub(now).max(0),
            delay_ms: host.delay_ms(&self.config),
            failures: failures.unwrap_or(0),
            backoffs: host.backoffs,
            traps: traps.iter().filter(|(_, bit)| host.trap.flags & bit != 0).map(|(name, _)| *name).collect(),
            given_up: given_up.or_else(|| host.sites.iter().find_map(gone)),
        }
    }
}
