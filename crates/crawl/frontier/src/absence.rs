//! Origins that do not answer. A host name has one politeness, but each of its ports is there or away on its own: a closed
//! `https:` must not hold the pages of `http:`.
//!
//! ```text
//! there --refused, timed out, no address--> resting --time--> (asked again) --answer--> there
//!                                              ▲                   └──no answer──┐
//!                                              └────────── longer ───────────────┴──too long──> given up
//! ```
//! Rows of an origin that rests are outside the window of their host and due when it may be asked again, so that they neither
//! hide the rows of other origins nor cost a write.

use crate::frontier::Frontier;
use crate::host::{Host, Robots, Site, split_site};
use crate::policy::politeness::{backoff_ms, millis};
use crate::row::Row;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// An origin that is absent is left alone at least this long, whatever the settings: without any pause it would be asked as fast as connections
/// fail, for as long as it takes to give it up, and never count as waited for.
const LEAST_REST_MS: i64 = 100;

/// An origin that did not answer lately.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Away {
    /// When the first of the attempts in a row failed.
    pub since: i64,
    pub failures: u16,
    /// Not asked before this.
    pub until: i64,
    /// Set once it is asked no more: why.
    pub given_up: Option<Box<str>>,
}

/// An [`Away`] as the log and the files have it.
#[derive(Deserialize)]
pub(crate) struct Kept {
    site: String,
    #[serde(flatten)]
    away: Away,
}

impl Kept {
    /// Reads what [`Host::away_json`] wrote.
    pub fn parse(json: &[u8]) -> Result<Vec<Kept>, serde_json::Error> {
        if json.is_empty() { Ok(Vec::new()) } else { serde_json::from_slice(json) }
    }
}

impl Site {
    /// Why it is asked no more, if so.
    pub fn given_up(&self) -> Option<&str> {
        self.away.as_ref().and_then(|away| away.given_up.as_deref())
    }

    /// Until when nothing of it is asked, because it or its robots.txt failed.
    pub fn rests_until(&self, now: i64) -> Option<i64> {
        if self.given_up().is_some() {
            return None;
        }
        let away = self.away.as_ref().map(|away| away.until);
        let robots = match self.robots {
            Robots::Resting { until, .. } => Some(until),
            _ => None,
        };
        away.into_iter().chain(robots).max().filter(|until| *until > now)
    }
}

impl Host {
    pub fn site_of(&self, url: &str) -> Option<&Site> {
        if self.sites.is_empty() {
            return None;
        }
        let (name, _) = split_site(url);
        self.sites.iter().find(|site| *site.name == *name)
    }

    /// Until when nothing of the origin of a URL is asked.
    pub fn rests_until(&self, url: &str, now: i64) -> Option<i64> {
        self.site_of(url)?.rests_until(now)
    }

    /// Why the origin of a URL is asked no more, if so.
    pub fn why_given_up(&self, url: &str) -> Option<&str> {
        self.given_up.as_deref().or_else(|| self.site_of(url)?.given_up())
    }

    /// The origins that rest, and until when.
    pub fn resting(&self, now: i64) -> Vec<(Arc<str>, i64)> {
        let rests = |site: &Site| Some((site.name.clone(), site.rests_until(now)?));
        self.sites.iter().filter_map(rests).collect()
    }

    /// The place of the first errand that may be sent.
    pub fn next_errand(&self, now: i64) -> Option<usize> {
        let errands = self.errands.as_ref()?;
        errands.iter().position(|errand| self.is_dead() || self.rests_until(&errand.url, now).is_none())
    }

    /// What is kept of its absent origins, as JSON; empty if all are there.
    pub fn away_json(&self) -> Vec<u8> {
        let kept = |site: &Site| {
            let Away { since, failures, until, given_up } = site.away.as_deref()?;
            let (site, why) = (&*site.name, given_up.as_deref());
            Some(json!({ "site": site, "since": since, "failures": failures, "until": until, "given_up": why }))
        };
        let kept: Vec<Value> = self.sites.iter().filter_map(kept).collect();
        if kept.is_empty() { Vec::new() } else { Value::Array(kept).to_string().into_bytes() }
    }

    /// Takes over what [`Host::away_json`] said.
    pub fn restore_away(&mut self, kept: Vec<Kept>) {
        for site in &mut self.sites {
            site.away = None;
        }
        self.marks.away_kept = !kept.is_empty();
        for Kept { site, away } in kept {
            self.site(&site).away = Some(Box::new(away));
        }
    }
}

impl Frontier {
    /// An origin did not answer: it rests, or is given up.
    pub(crate) fn absent(&mut self, id: u32, site: &str, now: i64) {
        let host = &mut self.hosts[id as usize];
        let dice = host.key;
        let state = host.site(site);
        let away = state
            .away
            .get_or_insert_with(|| Box::new(Away { since: now, failures: 0, until: i64::MIN, given_up: None }));
        // Of several requests at a time the first one counts: they met the same trouble.
        if away.until > now || away.given_up.is_some() {
            return;
        }
        away.failures = away.failures.saturating_add(1);
        let rest = backoff_ms(&self.config, away.failures.into(), dice).max(LEAST_REST_MS);
        away.until = now.saturating_add(rest);
        let (failures, for_ms) = (away.failures, now.saturating_sub(away.since));
        if for_ms >= millis(self.config.give_up_after) {
            let why = format!("{failures} connections in a row failed, over {} s", for_ms / 1000);
            self.give_up_site(id, site, &why);
        } else {
            self.put_out(id, site, now);
        }
    }

    /// An origin is asked no more: its rows are refused.
    pub(crate) fn give_up_site(&mut self, id: u32, site: &str, why: &str) {
        self.touch(id);
        let host = &mut self.hosts[id as usize];
        if let Some(away) = &mut host.site(site).away {
            away.given_up = Some(why.into());
        }
        host.goes_outside(0);
    }

    /// Takes the rows of an origin that rests out of the window of its host.
    pub(crate) fn put_out(&mut self, id: u32, site: &str, now: i64) {
        let host = &mut self.hosts[id as usize];
        let Some(until) = host.site(site).rests_until(now) else { return };
        let is_of_site = |row: &Row| split_site(row.url()).0 == site;
        let (before, mut freed, mut tried) = (host.window.ready.len(), 0, false);
        host.window.ready.retain(|(_, row)| {
            let goes = is_of_site(row);
            tried |= goes && row.is_admitted();
            freed += if goes { row.memory() } else { 0 };
            !goes
        });
        self.window_bytes -= freed;
        if host.window.ready.len() < before {
            host.marks.tried_outside |= tried;
            host.goes_outside(until);
        }
    }
}
