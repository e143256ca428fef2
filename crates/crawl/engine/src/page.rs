//! From what was fetched to what is written: digests, links, rules, an event made ready. CPU work, on threads of its own.

use crate::error::Error;
use crate::lease::Lease;
use crate::look::Looked;
use crate::prior::{self, Prior};
use crate::record::LinkCounts;
use crate::rules::LinkRules;
use crate::scope::Scope;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trawl_archive::{CaptureRow, Digests};
use trawl_frontier::{AllowAll, Answer, Identity, LeaseId, QueueBy, RobotsAnswer, Rules, Source, UrlId};
use trawl_http::Head;
use trawl_model::{
    Capability, Capture, CaptureFacts, Carries, Digest, DoorError, ErrorClass, Failure, Outcome, Prepared, Preparer,
    Revisit, RevisitProfile, Truncated, UnixMillis,
};
use trawl_parse::headers::retry_after;
use trawl_parse::robots::{AgentRules, MAX_BYTES, Robots, text_of};
use trawl_url::{Reject, WebUrl};

/// Turns captures into events. Clones share everything.
#[derive(Clone)]
pub(crate) struct Worker {
    pub preparer: Arc<dyn Preparer>,
    pub carries: Carries,
    /// Bodies that are archived already.
    pub digests: Option<Arc<dyn Digests>>,
    pub identity: Identity,
    pub queue: QueueBy,
    pub scope: Scope,
    pub rules: LinkRules,
    /// Whether pages that did not change are archived whole.
    pub store_unchanged: bool,
    /// Whether links are followed at all, and those of sitemaps.
    pub follow: bool,
    pub sitemaps: bool,
    pub embeds: bool,
    /// Whether pages that ask not to be followed are not.
    pub obey: bool,
    /// Product token for robots.txt.
    pub agent: String,
    pub run_id: String,
    pub decode_bytes: u64,
    /// Links kept of one page.
    pub max_links: usize,
}

/// A capture ready to be committed, and what the frontier will make of it.
pub(crate) struct Event {
    pub lease: Lease,
    pub answer: Answer,
    /// Distinct links of the page that are in scope.
    pub links: Vec<(UrlId, WebUrl)>,
    /// Sitemaps that it names.
    pub sitemaps: Vec<(UrlId, WebUrl)>,
    /// Its other links.
    pub left_out: LinkCounts,
    /// Of a document that should be a sitemap: why it lists less than it could.
    pub unread: Option<String>,
    pub redirect: Option<WebUrl>,
    /// Why its redirect is not followed.
    pub bad_redirect: Option<ErrorClass>,
    pub robots: Option<Finding>,
    pub row: CaptureRow,
    /// `None` if the archive cannot carry such a capture: then the index alone has it.
    pub prepared: Option<Prepared>,
}

/// What a robots.txt errand found.
pub(crate) struct Finding {
    pub answer: RobotsAnswer,
    /// The text, where it settles the matter; empty where everything is allowed.
    pub text: Option<String>,
    /// Sitemaps that it names.
    pub sitemaps: Vec<WebUrl>,
    /// Names of sitemaps that are not URLs.
    pub not_urls: u64,
}

/// Facts of a capture that the scheduler knows before it is made.
pub(crate) fn facts_of(lease: &Lease, run_id: &str) -> CaptureFacts {
    let (via, redirect_of) = match &lease.source {
        Source::Seed => (None, None),
        Source::Link(page) => (Some(page.to_string()), None),
        Source::Redirect(page) => (None, Some(page.to_string())),
    };
    let mut meta_json = lease.meta_json.as_ref().map(|meta| meta.to_string());
    prior::take(&mut meta_json);
    CaptureFacts {
        run_id: Some(run_id.to_owned()),
        via,
        redirect_of,
        depth: lease.depth,
        attempt: lease.attempt,
        // A robots.txt is fetched whatever it says about itself.
        robots: matches!(lease.id, LeaseId::Page(_)).then_some(lease.robots),
        meta_json,
        ..CaptureFacts::default()
    }
}

/// What the frontier has to know at once of a fetch that ended.
pub(crate) fn answer_of(capture: &Capture<'_>) -> Answer {
    let (head, cut) = match &capture.outcome {
        Outcome::Response { message, truncated, .. } => {
            (&message.head, matches!(truncated, Some(Truncated::Disconnect | Truncated::Time)))
        }
        Outcome::Revisit(revisit) => (&revisit.head, false),
        Outcome::Failed(failure) => return Answer::Failed(failure.class),
    };
    let head = Head::new(head);
    let Some(status) = head.status() else { return Answer::Failed(ErrorClass::ProtocolError) };
    let wait = head.text("retry-after").and_then(|value| retry_after(&value, capture.facts.fetched_at));
    let retry_after_ms = wait.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    // The text below a redirect or an error is worth no second request: the head has said it all.
    let cut = cut && (200..300).contains(&status);
    Answer::Response { status, retry_after_ms, cut }
}

impl Worker {
    /// The event of a fetch that was made.
    pub(crate) fn event(&self, lease: Lease, mut capture: Capture<'static>) -> Result<Event, Error> {
        let answer = answer_of(&capture);
        let (mut redirect, mut bad_redirect) = (None, None);
        let mut looked = Looked::default();
        let now = capture.facts.fetched_at;
        if let Outcome::Response { message, .. } = &mut capture.outcome {
            (redirect, bad_redirect) = target(&lease.url, &Head::new(&message.head));
            looked = self.look(&lease, message, now);
            capture.facts.body_digest = looked.digest.take();
        }
        let robots = matches!(lease.id, LeaseId::Robots(_)).then(|| self.finding(answer, &redirect, &looked, &capture));
        // Redirects of a robots.txt are followed as errands, not as pages.
        let redirect = redirect.filter(|_| robots.is_none());
        let (links, mut left_out) = self.links(&lease, looked.links, looked.over_limit);
        left_out.nofollow = looked.nofollow;
        left_out.not_urls = looked.not_urls + robots.as_ref().map_or(0, |finding| finding.not_urls);
        let unread = self.why_unread(&lease, answer, looked.unread, redirect.is_some());
        let named = looked.sitemaps.into_iter().chain(robots.iter().flat_map(|finding| finding.sitemaps.clone()));
        let sitemaps = self.sitemaps(&lease.url, named, &mut left_out);
        self.ready(
            capture,
            Unprepared { lease, answer, links, sitemaps, left_out, unread, redirect, bad_redirect, robots },
        )
    }

    /// The event of a fetch that was not made.
    pub(crate) fn refusal(
        &self,
        lease: Lease,
        class: ErrorClass,
        message: String,
        now: UnixMillis,
    ) -> Result<Event, Error> {
        let mut facts = facts_of(&lease, &self.run_id);
        facts.fetched_at = now;
        let outcome = Outcome::Failed(Failure { class, message });
        let capture = Capture { url: lease.url.to_string(), started_at: now, request: None, outcome, facts };
        let answer = Answer::Failed(class);
        let (links, sitemaps, left_out) = (Vec::new(), Vec::new(), LinkCounts::default());
        let unread = self.why_unread(&lease, answer, None, false);
        let (redirect, bad_redirect, robots) = (None, None, None);
        self.ready(
            capture,
            Unprepared { lease, answer, links, sitemaps, left_out, unread, redirect, bad_redirect, robots },
        )
    }

    fn ready(&self, mut capture: Capture<'static>, event: Unprepared) -> Result<Event, Error> {
        let mut row = row_of(&mut capture)?;
        if let Outcome::Response { payload_digest, .. } = &mut capture.outcome {
            // The row's digest is the archive's: computed once.
            *payload_digest = Digest::parse(&format!("sha1:{}", row.digest)).ok();
        }
        let unchanged = self.carries.has(Capability::Revisits) && self.prior_of(&event.lease).unchanged(&mut capture);
        if unchanged || self.leave_out_known_body(&mut capture, &row)? {
            row = row_of(&mut capture)?;
        }
        let prepared = match self.carries.takes(&capture) {
            true => Some(self.preparer.prepare(capture)?),
            false => None,
        };
        if row.record_type.is_some() {
            row.record_id = prepared.as_ref().and_then(|prepared| prepared.record_ids.first().cloned());
        }
        let Unprepared { lease, answer, links, sitemaps, left_out, unread, redirect, bad_redirect, robots } = event;
        Ok(Event { lease, answer, links, sitemaps, left_out, unread, redirect, bad_redirect, robots, row, prepared })
    }

    /// What is known of an earlier capture, unless everything is to be archived whole.
    pub(crate) fn prior_of(&self, lease: &Lease) -> Prior {
        let mut meta_json = lease.meta_json.as_ref().map(|meta| meta.to_string());
        if self.store_unchanged { Prior::default() } else { prior::take(&mut meta_json) }
    }

    /// Makes a response whose body is archived already a revisit of the capture that holds it; says whether it did.
    fn leave_out_known_body(&self, capture: &mut Capture<'static>, row: &CaptureRow) -> Result<bool, Error> {
        let Some(digests) =
            self.digests.as_ref().filter(|_| row.has_whole_body() && self.carries.has(Capability::Revisits))
        else {
            return Ok(false);
        };
        let Outcome::Response { message, payload_digest: Some(digest), .. } = &capture.outcome else {
            return Ok(false);
        };
        let Some(earlier) = digests.find(digest)? else { return Ok(false) };
        capture.outcome = Outcome::Revisit(Revisit {
            head: message.head.clone(),
            profile: RevisitProfile::IdenticalPayloadDigest,
            payload_digest: Some(digest.clone()),
            refers_to_url: Some(earlier.url),
            refers_to_date: Some(earlier.date),
            refers_to_id: Some(earlier.record_id),
            body_length: message.body.len_bytes(),
        });
        Ok(true)
    }

    /// Distinct links in scope, in order, without the page itself; and how many there are besides. Several spellings of one page are all
    /// kept: robots.txt may close the first of them, and then it does not stand for the page.
    fn links(&self, lease: &Lease, found: Vec<WebUrl>, over_limit: u64) -> (Vec<(UrlId, WebUrl)>, LinkCounts) {
        let mut counts = LinkCounts { over_limit, ..LinkCounts::default() };
        let LeaseId::Page(own) = lease.id else { return (Vec::new(), counts) };
        let (mut first, mut others) = (HashMap::new(), HashSet::new());
        let mut links: Vec<(UrlId, WebUrl)> = Vec::new();
        for url in found {
            if !self.scope.allows(&lease.url, &url) {
                counts.outside += 1;
                continue;
            }
            if let Some(rule) = self.rules.refuses(&url) {
                counts.refuse(rule);
                continue;
            }
            let id = self.identity.in_queue(&url, self.queue).0;
            let is_new = id != own
                && match first.entry(id) {
                    Entry::Vacant(entry) => {
                        entry.insert(links.len());
                        true
                    }
                    Entry::Occupied(entry) => {
                        links.get(*entry.get()).is_none_or(|(_, known)| *known != url) && others.insert(url.clone())
                    }
                };
            match is_new {
                true => links.push((id, url)),
                false => counts.repeated += 1,
            }
        }
        (links, counts)
    }

    /// RFC 9309, 2.3.1: rules; none for a 4xx; not now for a 5xx or no answer.
    fn finding(&self, answer: Answer, redirect: &Option<WebUrl>, looked: &Looked, capture: &Capture<'_>) -> Finding {
        let found = |answer, text| Finding { answer, text, sitemaps: Vec::new(), not_urls: 0 };
        let allow = || found(RobotsAnswer::Rules(Arc::new(AllowAll)), Some(String::new()));
        let unavailable = |class, message| found(RobotsAnswer::Unavailable(class, message), None);
        match answer {
            // Half of a robots.txt may lack the very rule that matters. One that is merely long counts up to a limit.
            Answer::Response { status: 200..=299, cut: true, .. } => {
                unavailable(ErrorClass::RobotsUnavailable, "it broke off before its end".to_owned())
            }
            Answer::Response { status: 200..=299, .. } if !looked.is_whole && looked.text.len() < MAX_BYTES => {
                unavailable(ErrorClass::RobotsUnavailable, "its content coding cannot be undone".to_owned())
            }
            Answer::Response { status: 200..=299, .. } => {
                let text = text_of(&looked.text);
                let (sitemaps, not_urls) = self.sitemaps_of_robots(&capture.url, &text);
                let answer = RobotsAnswer::Rules(rules_of(&text, &self.agent));
                Finding { answer, text: Some(text), sitemaps, not_urls }
            }
            Answer::Response { status: 300..=399, .. } => match redirect {
                Some(to) => found(RobotsAnswer::Redirect(to.clone()), None),
                None => allow(),
            },
            // These are 4xx by number, but say "not now", as a 5xx does.
            Answer::Response { status: status @ (408 | 425 | 429 | 500..), .. } => {
                unavailable(ErrorClass::RobotsUnavailable, format!("status {status}"))
            }
            Answer::Response { .. } => allow(),
            Answer::Failed(class) => match &capture.outcome {
                Outcome::Failed(failure) => unavailable(class, failure.message.clone()),
                _ => unavailable(class, class.to_string()),
            },
        }
    }
}

fn row_of(capture: &mut Capture<'static>) -> Result<CaptureRow, Error> {
    Ok(CaptureRow::from_capture(capture, None).map_err(DoorError::from)?)
}

/// An event before it is made ready.
struct Unprepared {
    lease: Lease,
    answer: Answer,
    links: Vec<(UrlId, WebUrl)>,
    sitemaps: Vec<(UrlId, WebUrl)>,
    left_out: LinkCounts,
    unread: Option<String>,
    redirect: Option<WebUrl>,
    bad_redirect: Option<ErrorClass>,
    robots: Option<Finding>,
}

/// Where a response redirects to, or why the redirect is not followed.
fn target(from: &WebUrl, head: &Head<'_>) -> (Option<WebUrl>, Option<ErrorClass>) {
    let Some(to) = head.redirect() else { return (None, None) };
    match from.join(&to) {
        // It would be asked for again and again.
        Ok(to) if to == *from => (None, Some(ErrorClass::RedirectBad)),
        Ok(to) => (Some(to), None),
        Err(Reject::Scheme { .. }) => (None, Some(ErrorClass::BadScheme)),
        Err(_) => (None, Some(ErrorClass::RedirectBad)),
    }
}

/// The rules of a robots.txt for an agent.
pub(crate) fn rules_of(text: &str, agent: &str) -> Arc<dyn Rules> {
    Arc::new(ParsedRules(Robots::parse(text.as_bytes()).agent(agent)))
}

struct ParsedRules(AgentRules);

impl Rules for ParsedRules {
    fn allows(&self, path_and_query: &str) -> bool {
        self.0.allows(path_and_query).allowed
    }

    fn crawl_delay_ms(&self) -> Option<i64> {
        self.0.crawl_delay().map(|delay| i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests;
