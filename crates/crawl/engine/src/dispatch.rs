//! What the crawl starts: lookups, fetches, the CPU work behind them.

use crate::crawl::{Crawl, Wake};
use crate::error::Error;
use crate::governor::Blame;
use crate::lease::Lease;
use crate::message::{Spent, TaskMessage};
use crate::page::{answer_of, facts_of};
use crate::sitemaps;
use std::time::Duration;
use tokio::time::Instant;
use trawl_fetch::{Ask, Validators};
use trawl_frontier::{HostId, LeaseId, Next, Work};
use trawl_model::{Capability, ErrorClass, Outcome};
use trawl_parse::robots::MAX_BYTES;
use trawl_url::WebUrl;
use trawl_url::key::host_key;

impl Crawl<'_> {
    /// Hands out everything that may be fetched now; tells when to look again.
    pub(crate) fn dispatch(&mut self) -> Result<Wake, Error> {
        let mut work = Vec::new();
        loop {
            let now = self.now();
            for wanted in self.state.frontier.wanted(now, usize::MAX) {
                self.look_up(wanted.id, &wanted.site)?;
            }
            // What is under way when the bytes of the run are used up is still finished.
            if self.config.budget.bytes.is_some_and(|most| self.spent_bytes >= most) {
                return Ok(if self.in_flight == 0 { Wake::Done } else { Wake::Told });
            }
            let free = self.governor.limit().saturating_sub(self.in_flight);
            let room = free.min(self.config.max_unacked.saturating_sub(self.unacked));
            if room == 0 {
                return Ok(Wake::Told);
            }
            let next = self.state.frontier.lease(now, room, &mut work)?;
            for work in work.drain(..) {
                match work {
                    Work::Fetch(lease) => self.fetch(lease.try_into()?),
                    Work::Refuse(lease, class, message) => self.refuse(lease.try_into()?, class, message),
                }
            }
            if self.state.frontier.wants_addresses() {
                continue;
            }
            match next {
                Next::Now => {}
                Next::WaitUntil(at) => {
                    let wait = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
                    return Ok(Wake::At(Instant::now() + Duration::from_millis(wait.min(60_000))));
                }
                Next::Blocked => return Ok(Wake::Told),
                Next::Empty if self.seeds_ended && self.in_flight == 0 && self.state.frontier.release_seed_room() => {}
                Next::Empty => return Ok(Wake::Done),
            }
        }
    }

    fn look_up(&mut self, id: HostId, site: &str) -> Result<(), Error> {
        let url = WebUrl::parse(site)
            .map_err(|reject| Error::Note { what: "a site of the frontier", found: reject.to_string() })?;
        // Hosts that share an address by the operator's choice are not neighbours.
        if self.fetcher.is_redirected(&url) {
            let now = self.now();
            self.state.frontier.ready(now, id, Ok(None));
            return Ok(());
        }
        let (fetcher, told) = (self.fetcher.clone(), self.told.clone());
        self.tasks.spawn(async move {
            use ErrorClass::{DnsFailure, DnsRefused, DnsServfail, DnsTimeout, LocalResource};
            let found = match fetcher.address(&url).await {
                Ok(found) => TaskMessage::Resolved(id, Ok(Some(found))),
                Err(failed) => match failed.class {
                    LocalResource => TaskMessage::Resolved(id, Err(failed.message)),
                    // A fetch would wait for the same answer, and hold a worker meanwhile.
                    DnsFailure | DnsRefused | DnsServfail | DnsTimeout => {
                        TaskMessage::Unresolved(id, failed.class, failed.message)
                    }
                    // The fetch will meet the same failure at once, and record it.
                    _ => TaskMessage::Resolved(id, Ok(None)),
                },
            };
            let _ = told.send(found).await;
        });
        Ok(())
    }

    fn fetch(&mut self, lease: Lease) {
        let now = self.clock.now();
        self.in_flight += 1;
        self.unacked += 1;
        let (fetcher, worker) = (self.fetcher.clone(), self.worker.clone());
        let (told, jobs) = (self.told.clone(), self.pages.jobs());
        let (governor, started) = (self.governor.clone(), self.governor.started());
        // A 304 has no links. A page that leads on is requested in full, and its digest tells whether it changed.
        let needs_links = lease.depth < self.config.frontier.max_depth;
        let body_limit = match lease.id {
            LeaseId::Robots(_) => Some(MAX_BYTES as u64 + 1),
            // It is read for what it lists, also where no body of its media type is wanted.
            LeaseId::Page(_) if self.config.sitemaps && sitemaps::is_announced(&lease) => {
                Some(self.config.fetch.limits.body_bytes)
            }
            LeaseId::Page(_) => None,
        };
        self.tasks.spawn(async move {
            let facts = facts_of(&lease, &worker.run_id);
            // An archive without revisits needs every body.
            let revisits = worker.carries.has(Capability::Revisits);
            let may_be_empty = revisits && !needs_links;
            let validators = if may_be_empty { worker.prior_of(&lease).validators } else { Validators::default() };
            let ask = Ask { facts, body_limit, validators, spacing: lease.delay, ..Ask::new(lease.url.clone(), now) };
            let fetched = fetcher.fetch(ask).await;
            // Hosts that share an address by the operator's choice are not neighbours.
            let shares = fetcher.is_redirected(&lease.url);
            let ip = fetched.facts.ip.filter(|_| !shares);
            if let Outcome::Failed(failed) = &fetched.outcome
                && failed.class == ErrorClass::LocalResource
            {
                // A full disk does not get better by downloading again.
                if let Some(error) = fetcher.take_storage_error() {
                    let _ = told.send(TaskMessage::Failed(error.into())).await;
                    return;
                }
                let _ = told.send(TaskMessage::Returned(lease.id, failed.message.clone())).await;
                return;
            }
            let (failure, bytes) = match &fetched.outcome {
                Outcome::Failed(failed) => (Some(failed.class), 0),
                Outcome::Response { message, .. } => (None, message.body.len_bytes()),
                Outcome::Revisit(_) => (None, 0),
            };
            if governor.ended(started, host_key(lease.url.host()), failure) == Blame::Ours {
                let why = "too many fetches at once: many hosts fell silent together, and answer when fewer are asked";
                let _ = told.send(TaskMessage::Returned(lease.id, why.to_owned())).await;
                return;
            }
            let (host, fetch_ms) = (lease.url.host().to_owned(), fetched.facts.timings.total_ms.map_or(0, u64::from));
            let spent = Spent { host, bytes, fetch_ms };
            let _ = told.send(TaskMessage::Ended(lease.id, answer_of(&fetched), ip, spent)).await;
            jobs.add(move || worker.event(lease, fetched));
        });
    }

    fn refuse(&mut self, lease: Lease, class: ErrorClass, message: String) {
        let now = self.clock.now();
        self.unacked += 1;
        let worker = self.worker.clone();
        self.pages.jobs().add(move || worker.refusal(lease, class, message, now));
    }
}
