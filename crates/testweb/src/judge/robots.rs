//! robots.txt: fetched first, fresh, obeyed, and not asked for all the time.

use super::politeness::url;
use super::{Fetch, Kind, Verdict};
use crate::character::Character;
use crate::settings::CrawlSettings;
use crate::world::{Host, Outcome, Resource, World};

/// Redirects of a robots.txt that a crawler follows.
const MAX_ROBOTS_REDIRECTS: u64 = 5;

/// What a crawler knows of one origin (http or https) of a host.
#[derive(Default, Clone, Copy)]
struct Known {
    /// When `/robots.txt` was last answered, and by which line.
    asked: Option<(u64, u64)>,
    /// When the end of its redirects was last answered: rules, or that there are none.
    settled: Option<(u64, u64)>,
}

/// Checks the fetches of one host, which are in order of time.
pub(super) fn host(fetches: &[Fetch], world: &World, settings: &CrawlSettings, verdict: &mut Verdict) {
    let Some(host) = fetches.first().and_then(|f| world.host(f.host)) else { return };
    let mut check = Check { host, known: [Known::default(); 2], detours: 0, circles: 0, world, settings, verdict };
    let mut by_end: Vec<&Fetch> = fetches.iter().filter(|f| f.is_robots()).collect();
    by_end.sort_by_key(|f| f.end_us);
    let mut answers = by_end.into_iter().peekable();
    for fetch in fetches {
        while let Some(answer) = answers.next_if(|a| a.is_before(fetch)) {
            check.learn(answer);
        }
        if fetch.is_robots() {
            check.robots(fetch);
        } else {
            check.page(fetch);
        }
    }
}

/// The state of a crawler that keeps the rules, as far as one host is concerned.
struct Check<'a> {
    host: &'a Host,
    /// By origin: http, https.
    known: [Known; 2],
    /// Answers at the wrong scheme that sent the crawler to the robots.txt of the right one.
    detours: u32,
    /// Requests on a circle of redirects.
    circles: u64,
    world: &'a World,
    settings: &'a CrawlSettings,
    verdict: &'a mut Verdict,
}

impl Check<'_> {
    fn of(&self, secure: bool) -> Known {
        let [plain, encrypted] = self.known;
        if secure { encrypted } else { plain }
    }

    fn add(&mut self, kind: Kind, fetch: &Fetch, with: Option<(u64, u64)>, detail: String) {
        let with = with.map(|(_, line)| line);
        self.verdict.add(kind, Some(fetch.line), with, url(self.world, fetch), detail);
    }

    /// Takes note of an answer to a request for a robots.txt.
    fn learn(&mut self, answer: &Fetch) {
        let Some(node) = answer.node.filter(|_| answer.status != 0) else { return };
        let when = Some((answer.end_us, answer.line));
        self.detours += u32::from(answer.secure != self.host.is_secure());
        let settles = match self.world.outcome_of(node) {
            // A circle never settles; having asked is all a crawler can do.
            Outcome::Redirect { .. } => self.is_circle() && answer.secure == self.host.is_secure(),
            _ => answer.is_enough_robots() && answer.status < 500 && answer.status != 429,
        };
        let [plain, encrypted] = &mut self.known;
        let known = if answer.secure { encrypted } else { plain };
        if node.what == Resource::Robots {
            known.asked = when;
        }
        if settles {
            known.settled = when;
        }
    }

    fn is_circle(&self) -> bool {
        self.host.robots == Some(Character::RobotsLoop)
    }

    /// A request for a robots.txt: not too soon after the last.
    fn robots(&mut self, fetch: &Fetch) {
        if self.is_circle() {
            self.circles += 1;
            if self.circles > (MAX_ROBOTS_REDIRECTS + 1) * (u64::from(self.settings.retries) + 1) {
                let detail = format!("{} requests for a robots.txt that redirects for ever", self.circles);
                self.add(Kind::RedirectLimit, fetch, None, detail);
            }
            return;
        }
        let first_of_chain = fetch.node.map(|n| n.what) == Some(Resource::Robots);
        let Some(last) = self.of(fetch.secure).settled.filter(|_| first_of_chain) else { return };
        let age_us = fetch.start_us.saturating_sub(last.0);
        if age_us >= self.settings.robots_min_age_s.saturating_mul(1_000_000) {
            return;
        }
        // The robots.txt of the wrong scheme leads to that of the right one, so it may be asked for once more.
        if fetch.secure == self.host.is_secure() && self.detours > 0 {
            self.detours -= 1;
            return;
        }
        self.add(Kind::RobotsRefetched, fetch, Some(last), format!("the last answer was {} ms old", age_us / 1000));
    }

    /// Any other request: only with fresh rules that allow it.
    fn page(&mut self, fetch: &Fetch) {
        let asked = self.of(fetch.secure).asked;
        if self.world.robots_unreachable(fetch.host) {
            self.add(Kind::RobotsUnreachable, fetch, asked, String::new());
            return;
        }
        // The wrong scheme has the rules of the right one, by a redirect.
        let settled = self.of(self.host.is_secure()).settled;
        let rules = if fetch.secure == self.host.is_secure() { settled } else { asked.and(settled) };
        match rules {
            None if asked.is_some() => {
                self.add(Kind::RobotsNotFetched, fetch, asked, "its redirect was not followed".into());
            }
            None => self.add(Kind::RobotsNotFetched, fetch, None, String::new()),
            Some((then, _)) => {
                let age_s = fetch.start_us.saturating_sub(then) / 1_000_000;
                if age_s > self.settings.robots_max_age_s {
                    self.add(Kind::RobotsStale, fetch, rules, format!("the rules were {age_s} s old"));
                }
            }
        }
        if fetch.node.is_some_and(|node| !self.world.allows_node(self.settings, node)) {
            self.add(Kind::RobotsDisallowed, fetch, rules, String::new());
        }
    }
}
