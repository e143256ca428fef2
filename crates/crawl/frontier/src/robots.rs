//! robots.txt and addresses: what is found out about a host before it is asked.

use crate::candidate::{Address, AllowAll, Answer, HostId, LeaseId, RobotsAnswer};
use crate::error::Result;
use crate::frontier::Frontier;
use crate::host::{Errand, NameState, Robots, split_site};
use crate::identity::robots_id;
use crate::intake::hour;
use crate::policy::politeness::{backoff_ms, is_absence, millis};
use crate::row::{Found, Row, Status, Texts};
use std::sync::Arc;
use std::time::Duration;
use trawl_model::{ErrorClass, UnixMillis};

/// robots.txt may be looked for this many redirects away (RFC 9309, 2.3.1.2).
const ROBOTS_HOPS: u32 = 5;
/// So much of a robots.txt is kept: what the parser reads of it (RFC 9309, 2.5, asks for at least this). A server may send any amount, and
/// no file of the frontier takes a text of more than 16 MiB.
const KEPT_BYTES: usize = 500 << 10;
/// Rules hold at least this long, whatever the settings: with a shorter time and no delay between requests, a robots.txt would be out of date
/// before the first page, and be asked for for ever.
const LEAST_TTL_MS: i64 = 1_000;
/// How long a host is left alone whose address could not be found.
const UNKNOWN_HOLDS: Duration = Duration::from_secs(2);

impl Frontier {
    /// What came of [`Frontier::wanted`]: the address that the host will be asked at and how long that holds. `Ok(None)`
    /// where hosts share an address by the operator's choice, or where the lookup failed in a way that the fetch itself is
    /// to record; `Err` where this machine could not look it up.
    pub fn ready(&mut self, now: UnixMillis, HostId(id): HostId, found: Result<Option<Address>, ()>) {
        let now = self.clock.tick(now);
        let Some(host) = self.hosts.get_mut(id as usize).filter(|host| host.name_state == NameState::ASKED) else {
            return;
        };
        self.asked -= 1;
        match found {
            Err(()) => {
                host.name_state = NameState::UNKNOWN;
                self.rest(id, now);
            }
            Ok(found) => {
                let holds = found.map_or(UNKNOWN_HOLDS, |(_, holds)| holds);
                host.name_state = NameState::known_until(now.saturating_add(millis(holds).max(1_000)));
                host.ip = found.map(|(ip, _)| ip);
                self.place(id, now);
            }
        }
    }

    /// Instead of [`Frontier::ready`]: the address could not be found, for a reason that may pass. The origin rests, and the page
    /// that would have been asked for is handed out as refused by the next [`Frontier::lease`], so that the failure is recorded.
    pub fn unresolved(&mut self, now: UnixMillis, id: HostId, class: ErrorClass, message: String) -> Result<()> {
        let (now, HostId(id)) = (self.clock.tick(now), id);
        let Some(host) = self.hosts.get_mut(id as usize).filter(|host| host.name_state == NameState::ASKED) else {
            return Ok(());
        };
        self.asked -= 1;
        host.name_state = NameState::UNKNOWN;
        self.touch(id);
        let next = self.hosts[id as usize].next_errand(now);
        let errands = self.hosts[id as usize].errands.as_mut();
        if let Some(errand) = errands.zip(next).and_then(|(errands, at)| errands.remove(at)) {
            self.absent(id, split_site(&errand.url).0, now);
            self.place(id, now);
            let failed = RobotsAnswer::Unavailable(class, message);
            return self.learn(now, errand.host, &errand.site, errand.hops == 0, failed);
        }
        if let Some(at) = self.best_row(&self.hosts[id as usize], now) {
            let site = split_site(self.hosts[id as usize].window.ready[at].1.url()).0.to_owned();
            let refused = self.hand_out(id, at, Some((class, message)), now);
            self.unresolved.extend(refused);
            self.absent(id, &site, now);
        }
        self.place(id, now);
        Ok(())
    }

    /// A robots.txt errand came back; call it beside [`Frontier::released`]. Rules are applied at once, and kept over restarts
    /// by [`Frontier::keep_robots`].
    pub fn robots(&mut self, now: UnixMillis, id: LeaseId, answer: RobotsAnswer) -> Result<()> {
        let now = self.clock.tick(now);
        let LeaseId::Robots(number) = id else { return Ok(()) };
        let Some((hold, errand)) = self.errands.remove(&number) else { return Ok(()) };
        let is_away = matches!(&answer, RobotsAnswer::Unavailable(class, _) if is_absence(Answer::Failed(*class)));
        if is_away && errand.hops > 0 {
            // The origin that it was redirected to is away. The errand waits there until that is back or given up.
            self.hosts[hold.host as usize].errands.get_or_insert_default().push_back(errand);
            self.place(hold.host, now);
            return Ok(());
        }
        let Errand { host, site, hops, .. } = errand;
        match answer {
            RobotsAnswer::Unavailable(..) if is_away => {
                // No server was there: the origin waits, or is given up with all its URLs.
                let state = self.hosts[host as usize].site(&site);
                state.robots = Robots::Unknown { attempts: state.robots.attempts(), old: state.robots.last_rules() };
                self.place(host, now);
                Ok(())
            }
            RobotsAnswer::Redirect(_) if hops >= ROBOTS_HOPS => {
                self.learn(now, host, &site, false, RobotsAnswer::Rules(Arc::new(AllowAll)))
            }
            RobotsAnswer::Redirect(url) => {
                let (key, name) = self.config.identity.in_queue(&url, self.config.queue);
                let asked = self.host_of(key.host(), || name.unwrap_or_else(|| url.host().to_owned()));
                let errand = Errand { url: url.as_str().into(), host, site, hops: hops + 1 };
                self.hosts[asked as usize].errands.get_or_insert_default().push_back(errand);
                self.touch(asked);
                self.place(asked, now);
                Ok(())
            }
            settled => self.learn(now, host, &site, hops == 0, settled),
        }
    }

    /// The site whose robots.txt an errand is for: scheme, host and port.
    pub fn errand_site(&self, id: LeaseId) -> Option<&str> {
        let LeaseId::Robots(number) = id else { return None };
        self.errands.get(&number).map(|(_, errand)| &*errand.site)
    }

    /// Writes a robots.txt down, with the next batch. `site` is what [`Frontier::errand_site`] said; an empty text allows
    /// everything.
    pub fn keep_robots(&mut self, now: UnixMillis, site: &str, text: &str) -> Result<()> {
        let now = self.clock.tick(now);
        let Ok(url) = trawl_url::WebUrl::parse(site) else { return Ok(()) };
        let (text, _) = text.split_at(text.floor_char_boundary(KEPT_BYTES));
        let (id, name) = self.config.identity.in_queue(&url, self.config.queue);
        let host = self.host_of(id.host(), || name.unwrap_or_else(|| url.host().to_owned()));
        let row = Row {
            id: robots_id(id.host(), site),
            texts: Texts::new(&format!("{site}/robots.txt"), "", text),
            due_ms: 0,
            arrival: 0,
            note: 0,
            robots_until: now.saturating_add(millis(self.config.robots_ttl)).max(1),
            first_seen: hour(now),
            last_crawled: hour(now),
            crawls: 1,
            errors: 0,
            depth: 0,
            hops: 0,
            http_status: 200,
            strikes: 0,
            bucket: 0,
            status: Status::Crawled,
            found: Found::Seed,
        };
        self.write(host, row);
        Ok(())
    }

    /// Takes the rules of a stored robots.txt into memory, unless newer ones are there.
    pub(crate) fn recall_robots(&mut self, host: u32, row: &Row, now: i64) {
        let (site, _) = split_site(row.url());
        let fresh = matches!(self.hosts[host as usize].site(site).robots, Robots::Unknown { .. });
        if !fresh || row.robots_until <= now {
            return;
        }
        let rules: Arc<dyn crate::Rules> = match row.texts.meta() {
            "" => Arc::new(AllowAll),
            text => (self.config.parse_robots)(text),
        };
        self.set_rules(host, &site.into(), rules, row.robots_until);
    }

    fn set_rules(&mut self, id: u32, site: &Arc<str>, rules: Arc<dyn crate::Rules>, until: i64) {
        let host = &mut self.hosts[id as usize];
        let delay = rules.crawl_delay_ms().unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
        // Of several sites of a host the most careful one counts; with one site, what it says now.
        host.crawl_delay_ms = if host.sites.len() > 1 { host.crawl_delay_ms.max(delay) } else { delay };
        host.site(site).robots = Robots::Known { rules, until };
        self.rules.push_back((id, site.clone()));
        while self.rules.len() > self.config.rules_kept {
            let Some((old, site)) = self.rules.pop_front() else { break };
            let state = self.hosts[old as usize].site(&site);
            if old != id && matches!(state.robots, Robots::Known { .. }) {
                self.forget_rules(old, &site);
            }
        }
    }

    /// Drops rules from memory; the next refill of the host brings them back.
    fn forget_rules(&mut self, id: u32, site: &str) {
        if self.store.is_none() {
            return;
        }
        let host = &mut self.hosts[id as usize];
        host.site(site).robots = Robots::Unknown { attempts: 0, old: None };
        host.marks.rules_away = true;
        let now = self.clock.latest;
        self.place(id, now);
    }

    /// What is known of a robots.txt from now on; `is_own` unless a redirect led elsewhere for it.
    pub(crate) fn learn(
        &mut self,
        now: i64,
        id: u32,
        site: &Arc<str>,
        is_own: bool,
        answer: RobotsAnswer,
    ) -> Result<()> {
        self.touch(id);
        let dice = self.hosts[id as usize].key;
        let robots = &self.hosts[id as usize].site(site).robots;
        let (attempts, old) = (robots.attempts() + 1, robots.last_rules());
        let until = now.saturating_add(millis(self.config.robots_ttl));
        let state = match answer {
            RobotsAnswer::Rules(rules) => {
                self.set_rules(id, site, rules, until);
                None
            }
            RobotsAnswer::Redirect(_) => return Ok(()),
            // A name that does not exist, or whose address is not allowed, has no pages either, and asking again in a minute
            // will not help. Of a name that a redirect led to this says nothing about the pages here.
            RobotsAnswer::Unavailable(class @ (ErrorClass::DnsNxdomain | ErrorClass::PrivateAddress), message)
                if is_own =>
            {
                Some(Robots::GivenUp { class, message: message.into() })
            }
            RobotsAnswer::Unavailable(_, message) if attempts >= self.config.robots_attempts => match old {
                // It was there a day ago, and its host answered pages since.
                Some(rules) => {
                    self.set_rules(id, site, rules, until);
                    None
                }
                None => Some(Robots::GivenUp { class: ErrorClass::RobotsUnavailable, message: message.into() }),
            },
            RobotsAnswer::Unavailable(..) => {
                let until = now.saturating_add(backoff_ms(&self.config, attempts, dice));
                Some(Robots::Resting { attempts, old, until })
            }
        };
        let host = &mut self.hosts[id as usize];
        if let Some(state) = state {
            host.site(site).robots = state;
            self.put_out(id, site, now);
        }
        let host = &mut self.hosts[id as usize];
        // Rules that are old before the delay is over would be asked for again and again, and no page ever.
        let least = now.saturating_add(host.delay_ms(&self.config).saturating_mul(2).max(LEAST_TTL_MS));
        if let Robots::Known { until, .. } = &mut host.site(site).robots {
            *until = least.max(*until);
        }
        // From the end of the robots.txt to the first page its own crawl-delay counts already.
        let first = host.ended_ms.saturating_add(host.delay_ms(&self.config));
        host.next_ms = host.next_ms.max(if host.is_dead() { i64::MIN } else { first });
        self.place(id, now);
        Ok(())
    }
}
