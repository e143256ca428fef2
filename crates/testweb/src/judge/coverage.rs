//! What was fetched: everything that had to be, once, and nothing else.

use std::collections::{BTreeMap, HashMap};

use super::intake::Log;
use super::politeness::url;
use super::{Fetch, Kind, Verdict};
use crate::character::Character;
use crate::date;
use crate::settings::CrawlSettings;
use crate::world::{Expectation, HostId, Node, Outcome, PageId, Resource, Want, World, redirects_before};

/// What may be on its way to a client that has stopped reading: the buffers of both ends.
const IN_TRANSIT_BYTES: u64 = 16 << 20;

pub(super) fn check(log: &Log, world: &World, settings: &CrawlSettings, verdict: &mut Verdict) {
    let expected = world.expect(settings);
    let mut by_node = HashMap::<Node, Vec<&Fetch>>::new();
    let mut traps = BTreeMap::<(HostId, Option<u32>), u32>::new();
    let mut coverage = Coverage { log, world, settings, expected: &expected, verdict };
    for fetch in &log.fetches {
        coverage.one(fetch);
        match fetch.node {
            None => coverage.add(Kind::NotLinked, fetch, None, "nothing is there".into()),
            Some(node) if !fetch.is_robots() && fetch.with_body => {
                let earlier = by_node.entry(node).or_default();
                earlier.push(fetch);
                // Fetches come in order of time within a host, so the budget goes to the first.
                if earlier.len() == 1 && is_trap(node) {
                    let count = traps.entry((node.host, page_of_session(node))).or_default();
                    *count += 1;
                    if *count > settings.trap_budget {
                        let detail = format!("number {count} of {}", settings.trap_budget);
                        coverage.add(Kind::TrapOverrun, fetch, None, detail);
                    }
                }
            }
            Some(_) => {}
        }
    }
    let mut nodes: Vec<(Node, Vec<&Fetch>)> = by_node.into_iter().collect();
    nodes.sort_unstable_by_key(|&(node, _)| node);
    for (node, fetches) in &nodes {
        coverage.node(*node, fetches);
    }
    for (node, _) in expected.wanted() {
        coverage.verdict.expected += 1;
        let fetched = nodes.binary_search_by_key(&node, |&(node, _)| node).is_ok();
        coverage.verdict.fetched += u64::from(fetched);
        if !fetched && settings.complete {
            coverage.verdict.add(Kind::NeverFetched, None, None, world.url_of(node), String::new());
        }
    }
}

fn is_trap(node: Node) -> bool {
    matches!(node.what, Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_))
}

/// The page of a node that has a session id in its URL. A crawler cannot know that the ids of a page are no pages before it has seen
/// some of them; of a site with many pages, that is so for each.
fn page_of_session(node: Node) -> Option<u32> {
    match node.what {
        Resource::Session { page, .. } => Some(page),
        _ => None,
    }
}

struct Coverage<'a> {
    log: &'a Log,
    world: &'a World,
    settings: &'a CrawlSettings,
    expected: &'a Expectation<'a>,
    verdict: &'a mut Verdict,
}

impl Coverage<'_> {
    fn add(&mut self, kind: Kind, fetch: &Fetch, with: Option<&Fetch>, detail: String) {
        self.verdict.add(kind, Some(fetch.line), with.map(|f| f.line), url(self.world, fetch), detail);
    }

    /// Checks that concern one fetch alone.
    fn one(&mut self, fetch: &Fetch) {
        let limit = self.settings.max_body_bytes;
        if fetch.bytes > limit.saturating_add(IN_TRANSIT_BYTES) {
            self.add(Kind::BodyOverrun, fetch, None, format!("{} bytes were sent, {limit} may be read", fetch.bytes));
        }
        let faulty = self.world.host(fetch.host).is_some_and(|h| h.certificate.is_some());
        if self.settings.verify_tls && fetch.secure && faulty {
            self.add(Kind::CertificateIgnored, fetch, None, String::new());
        }
    }

    /// Checks all fetches of one node, in order of time.
    fn node(&mut self, node: Node, fetches: &[&Fetch]) {
        let Some(first) = fetches.first() else { return };
        let redirects = redirects_before(node);
        if redirects > self.settings.max_redirects {
            let detail = format!("redirect {redirects} of {}", self.settings.max_redirects);
            self.add(Kind::RedirectLimit, first, None, detail);
        } else if !is_trap(node) && !matches!(node.what, Resource::Sitemap(_) | Resource::Feed) {
            self.place(node, first);
        }
        self.repeats(node, fetches);
        if self.settings.recrawl {
            self.validators(node, fetches);
        }
    }

    /// Whether the crawl could know the node, and was allowed to go so far.
    fn place(&mut self, node: Node, first: &Fetch) {
        // What robots.txt closes may be linked only from where the crawl may not look; it is reported already.
        let closed = self.settings.obey_robots
            && (self.world.robots_unreachable(node.host) || !self.world.allows_node(self.settings, node));
        match self.expected.depth(node) {
            _ if closed => {}
            None => self.add(Kind::NotLinked, first, None, String::new()),
            Some(depth) if depth > self.settings.depth => {
                self.add(Kind::BeyondDepth, first, None, format!("depth {depth} of {}", self.settings.depth));
            }
            Some(_) => {}
        }
    }

    /// Whether the node was asked for once, and again only after failures.
    fn repeats(&mut self, node: Node, fetches: &[&Fetch]) {
        let outcome = self.world.outcome_of(node);
        let times = match outcome {
            Outcome::Later { times, .. } | Outcome::Broken { times, .. } => times,
            _ => 0,
        };
        let mut settled: Option<&Fetch> = None;
        let (mut failures, mut reported) = (0, false);
        for fetch in fetches {
            if settled.is_some() && !self.settings.recrawl {
                self.add(Kind::FetchedTwice, fetch, settled, String::new());
            } else if settled.is_none() && failures > self.settings.retries.max(times) && !reported {
                let detail = format!("attempt {} of {}", failures + 1, self.settings.retries.max(times) + 1);
                self.add(Kind::TooManyRetries, fetch, None, detail);
                reported = true;
            }
            if settles(outcome, fetch) {
                settled.get_or_insert(fetch);
            } else {
                failures += 1;
            }
        }
        let would_answer = matches!(
            outcome,
            Outcome::Content(_) | Outcome::Redirect { .. } | Outcome::Later { .. } | Outcome::Broken { .. }
        );
        let must = matches!(self.expected.want(node), Some(Want::Once | Want::Try));
        let enough = failures > self.settings.retries;
        if let (true, Some(last)) =
            (self.settings.complete && would_answer && must && settled.is_none() && !enough, fetches.last())
        {
            let detail = format!("after {failures} attempts, {} are allowed", self.settings.retries + 1);
            self.add(Kind::GivenUp, last, None, detail);
        }
    }

    /// Whether a page was fetched again with the validator it last came with.
    fn validators(&mut self, node: Node, fetches: &[&Fetch]) {
        let Resource::Page(number) = node.what else { return };
        let page = PageId { host: node.host, number };
        let validator = self.world.form(self.world.original(page)).validator;
        let good = |f: &&&Fetch| f.whole && matches!(f.status, 200 | 304);
        let good: Vec<&&Fetch> = fetches.iter().filter(good).collect();
        for (last, next) in good.iter().zip(good.iter().skip(1)) {
            let then_s = self.log.virtual_s(self.world, last.start_us);
            let conditions = next.conditions.as_deref();
            let (wanted, given) = match validator {
                Some(Character::Etag | Character::BothValidators) => {
                    let tag = self.world.etag(page, self.world.version(page, then_s).0);
                    (tag, conditions.and_then(|c| c.if_none_match.clone()))
                }
                Some(_) => {
                    let date = self.world.last_modified(page, then_s).map(date::http);
                    (date, conditions.and_then(|c| c.if_modified_since.clone()))
                }
                None => continue,
            };
            match (wanted, given) {
                (Some(wanted), None) => {
                    self.add(Kind::ValidatorIgnored, next, Some(last), format!("expected {wanted}"));
                }
                (Some(wanted), Some(given)) if given.trim_start_matches("W/") != wanted => {
                    self.add(Kind::ValidatorWrong, next, Some(last), format!("expected {wanted}, found {given}"));
                }
                _ => {}
            }
        }
    }
}

/// Whether an answer is final, so that there is no reason to ask again.
fn settles(outcome: Outcome, fetch: &Fetch) -> bool {
    match outcome {
        Outcome::Content(_)
        | Outcome::Redirect { .. }
        | Outcome::Later { .. }
        | Outcome::Broken { .. }
        | Outcome::NotFound(_) => fetch.whole && fetch.status != 429 && fetch.status < 500,
        Outcome::Status(status) => fetch.whole && status < 500 && fetch.status == status,
        _ => false,
    }
}
