//! What a crawl knows: the frontier, counts, how far the seeds were read, how far its files are good.

use crate::commit::{Done, Ends, Share, Synced};
use crate::config::Config;
use crate::error::Error;
use crate::hosts::HostBook;
use crate::layout::Layout;
use crate::record::{EventRecord, PROGRESS_SLOT, ProgressNote, RUN_SLOT, RunNote, SpoolEnd, SpoolRecord};
use crate::report::{Counts, Leg};
use crate::rules::{LinkRules, Rule};
use crate::scope::Scope;
use crate::seeds::{SeedBatch, SeedInput};
use crate::sitemaps::is_named;
use crate::spool::{place_of, read_record};
use std::collections::HashSet;
use std::sync::Arc;
use trawl_archive::{CaptureRow, Digests};
use trawl_frontier::{
    Admission, AtLimit, Candidate, Frontier, Identity, LeaseId, Outcome, QueueBy, Settled, Ticket, UrlId,
};
use trawl_io::Fs;
use trawl_model::UnixMillis;
use trawl_url::WebUrl;

/// Pages whose links are offered again between two batches of the log.
const REOPENED_AT_ONCE: usize = 256;

/// Frontier, counts, and how far the seeds were read.
pub(crate) struct State {
    pub frontier: Frontier,
    pub run: RunNote,
    pub progress: ProgressNote,
    /// Whether the note of the run has to be written again.
    run_changed: bool,
    identity: Identity,
    queue: QueueBy,
    scope: Scope,
    rules: LinkRules,
    fs: Arc<dyn Fs>,
    layout: Layout,
    pub hosts: HostBook,
    /// Hosts that an earlier start of the run gave up. A seed that is added later is a reason to ask them again.
    given_up_before: HashSet<String>,
}

/// A page whose links are to be offered.
struct Page {
    id: UrlId,
    url: WebUrl,
    depth: u32,
    links: Vec<(UrlId, WebUrl)>,
    sitemaps: Vec<(UrlId, WebUrl)>,
    redirect: Option<WebUrl>,
    hops: u32,
    meta_json: Option<Arc<str>>,
    /// Whether a robots.txt or a sitemap names it: it may be as near as a seed, but was not asked for.
    is_sitemap: bool,
}

/// Whether a row is of a page that a robots.txt or a sitemap names as a sitemap.
fn is_named_sitemap(row: &CaptureRow, hops: u32) -> bool {
    row.via.is_some() && (row.depth == Some(0) || hops > 0)
}

impl State {
    pub(crate) fn new(
        config: &Config,
        fs: &Arc<dyn Fs>,
        layout: &Layout,
        frontier: Frontier,
        run: RunNote,
        mut progress: ProgressNote,
    ) -> Self {
        // Counted anew when the run ends: a limit may be another one by now.
        progress.counts.over_limit = 0;
        let mut state = Self {
            frontier,
            run,
            progress,
            run_changed: true,
            identity: config.frontier.identity,
            queue: config.frontier.queue,
            scope: config.scope,
            rules: config.rules.clone(),
            fs: fs.clone(),
            layout: layout.clone(),
            hosts: HostBook::new(config.budget),
            given_up_before: HashSet::new(),
        };
        state.rules.restore(&state.run.directories);
        state.frontier.set_seeds_waiting(state.progress.seeds_waiting);
        state.frontier.set_seeds_open(!state.seeds_ended());
        state
    }

    /// Takes up what hosts took before; those that used up their budget are asked no more.
    pub(crate) fn read_hosts(
        &mut self,
        spools: &[SpoolEnd],
        digests: Option<&dyn Digests>,
        now: UnixMillis,
    ) -> Result<(), Error> {
        // What was remembered shortly before a kill is not in the store.
        let was_killed = self.run.legs.last().is_some_and(|leg| leg.ended_at.is_none());
        for host in self.hosts.read(&self.fs, &self.layout, spools, digests.filter(|_| was_killed))? {
            self.frontier.hold(now, &host)?;
        }
        Ok(())
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.progress.counts
    }

    /// Hands everything since the last batch to the log.
    pub(crate) fn commit(&mut self) -> Result<Option<Ticket>, Error> {
        let unwritable = |e: serde_json::Error| Error::Note { what: "a note that JSON can hold", found: e.to_string() };
        if std::mem::take(&mut self.run_changed) {
            self.frontier.note(RUN_SLOT, serde_json::to_vec(&self.run).map_err(unwritable)?);
        }
        self.frontier.note(PROGRESS_SLOT, serde_json::to_vec(&self.progress).map_err(unwritable)?);
        Ok(self.frontier.commit()?)
    }

    /// Takes what was synced into the frontier and into its log; not durable yet.
    pub(crate) fn synced(&mut self, synced: Synced, now: UnixMillis) -> Result<(Option<Ticket>, Share), Error> {
        let mut share = Share::default();
        for done in synced.done {
            match done {
                Done::Seeds(batch) => {
                    share.seeds += 1;
                    self.seeds(batch, now)?;
                }
                Done::Event(event) => {
                    share.events += 1;
                    self.event(*event, now)?;
                }
            }
        }
        let Ends { archive, spool, closed, rejects, log } = synced.ends;
        self.progress.archive = Some(archive);
        self.progress.spool = Some(spool);
        (self.progress.rejects, self.progress.log) = (rejects, log);
        if let Some(closed) = closed {
            self.run.spools.push(closed);
            self.run_changed = true;
        }
        Ok((self.commit()?, share))
    }

    /// The run ended or stopped: its note says when.
    pub(crate) fn note_end(&mut self) {
        self.run_changed = true;
    }

    /// The spools of the run, the one that takes rows last.
    pub(crate) fn spools(&self) -> Vec<SpoolEnd> {
        self.run.spools.iter().chain(&self.progress.spool).cloned().collect()
    }

    fn seeds(&mut self, batch: SeedBatch, now: UnixMillis) -> Result<(), Error> {
        self.progress.counts.seeds += batch.seeds.len() as u64;
        self.progress.counts.rejects += batch.rejects.len() as u64;
        (self.progress.items, self.progress.items_digest) = (batch.items, Some(batch.digest));
        for seed in &batch.seeds {
            let directory = self.rules.note_seed(&seed.url)?;
            self.keep_directory(directory);
        }
        let seed = |seed: crate::seeds::Seed| {
            let id = self.identity.in_queue(&seed.url, self.queue).0;
            Candidate { id, ..Candidate::seed(self.identity, seed.url, seed.meta.map(Into::into)) }
        };
        let candidates: Vec<_> = batch.seeds.into_iter().map(seed).collect();
        for (candidate, admission) in candidates.iter().zip(self.frontier.offer(now, &candidates)?) {
            self.progress.counts.admission(admission);
            let waits = matches!(admission, Admission::New | Admission::AskedFor | Admission::Unparked);
            self.progress.seeds_waiting += u64::from(waits);
            if waits && self.given_up_before.remove(candidate.url.host()) {
                self.frontier.take_up(now, candidate.url.host())?;
            }
            // It was fetched already, farther from a seed than it is now: what it leads to may be within reach.
            if let Admission::Reopened(note) = admission {
                let page = self.reopened(note, candidate)?;
                self.follow(page, now)?;
            }
        }
        if let Some(end) = batch.end {
            self.run.seeds.extend(end);
            self.run.inputs.clear();
            (self.progress.items, self.progress.items_digest) = (0, None);
            self.run_changed = true;
            self.frontier.set_seeds_open(false);
        }
        Ok(())
    }

    /// Keeps a new directory that links may lead into.
    fn keep_directory(&mut self, directory: Option<(String, String)>) {
        self.run_changed |= directory.is_some();
        self.run.directories.extend(directory);
    }

    /// The run was started.
    pub(crate) fn leg(&mut self, leg: Leg) {
        if let Some(before) = self.run.legs.last_mut() {
            before.ended_at = before.ended_at.or(self.progress.last.max(Some(before.started_at)));
        }
        if !leg.seeds.is_empty() {
            let names = &mut self.given_up_before;
            self.frontier.host_reports(&mut |host| {
                names.extend(host.given_up.is_some().then_some(host.host));
                true
            });
        }
        self.run.inputs.extend(leg.seeds.iter().cloned());
        self.run.legs.push(leg);
        self.run_changed = true;
        self.frontier.set_seeds_open(!self.seeds_ended());
    }

    /// Whether all seeds were read.
    pub(crate) fn seeds_ended(&self) -> bool {
        self.run.inputs.is_empty() && !self.run.legs.is_empty()
    }

    /// Of seeds that a start of the run names, those that are new to it.
    pub(crate) fn new_seeds(&self, named: &[SeedInput]) -> Result<Vec<SeedInput>, Error> {
        let mut new = Vec::new();
        for seed in named {
            let seed = seed.clone().for_keeps();
            let name = seed.name();
            let read: Vec<_> = self.run.seeds.iter().filter(|known| known.name == name).collect();
            // A file may have changed since. What was not read to its end is read on, pipes included.
            let known = match &seed {
                _ if seed.is_always_new() => false,
                SeedInput::File(_) if !read.is_empty() => {
                    let found = seed.sha256()?;
                    read.iter().any(|known| known.sha256 == found)
                }
                _ => !read.is_empty(),
            };
            if !known && !self.run.inputs.contains(&seed) && !new.contains(&seed) {
                new.push(seed);
            }
        }
        Ok(new)
    }

    fn event(&mut self, event: EventRecord, now: UnixMillis) -> Result<(), Error> {
        self.progress.counts.capture(&event);
        self.progress.last = self.progress.last.max(Some(UnixMillis(event.row.fetched_at)));
        self.hosts.count(&event.row.host);
        let LeaseId::Page(id) = event.id else {
            self.progress.counts.sitemap(&event);
            if let (Some(site), Some(text)) = (&event.site, &event.robots) {
                self.frontier.keep_robots(now, site, text)?;
            }
            // What the owner of a site names is as near as its seeds.
            let from: Arc<str> = event.url.as_str().into();
            let sitemaps: Vec<_> = event.sitemaps.into_iter().map(|(id, url)| sitemap(id, url, &from, 0, 0)).collect();
            for (candidate, admission) in sitemaps.iter().zip(self.frontier.offer(now, &sitemaps)?) {
                self.progress.counts.admission(admission);
                // A link led to it before: what it lists is nearer than that.
                if let Admission::Reopened(note) = admission {
                    let page = self.reopened(note, candidate)?;
                    self.follow(page, now)?;
                }
            }
            return Ok(());
        };
        // A robots.txt may have named it as a sitemap since it was leased.
        let found = self.frontier.leased_source(id);
        let is_sitemap = found.is_some_and(|(source, depth, hops)| is_named(&source, depth, hops));
        let outcome = Outcome { id, answer: event.answer, note: event.note };
        let waiting = &mut self.progress.seeds_waiting;
        *waiting = waiting.saturating_sub(u64::from(event.first_of_seed));
        let depth = match self.frontier.settle(now, &[outcome])?.first() {
            Some(Settled::Done { depth }) => {
                self.progress.counts.attempt(&event, false);
                *depth
            }
            Some(Settled::Again { depth }) => {
                self.progress.counts.attempt(&event, true);
                *depth
            }
            Some(Settled::Unknown) | None => return Ok(()),
        };
        let meta_json = (!event.row.meta_json.is_empty()).then(|| event.row.meta_json.as_str().into());
        let EventRecord { url, links, sitemaps, to, hops, .. } = event;
        self.follow(Page { id, url, depth, links, sitemaps, redirect: to, hops, meta_json, is_sitemap }, now)
    }

    /// Offers what a page leads to; pages that turn out to be nearer than was thought lead on again.
    fn follow(&mut self, first: Page, now: UnixMillis) -> Result<(), Error> {
        let mut todo = vec![first];
        while let Some(page) = todo.pop() {
            let from: Arc<str> = page.url.as_str().into();
            let links = page.links.into_iter().map(|(id, url)| Candidate::link(id, url, &from, page.depth));
            let target = match page.redirect {
                // What leads back to itself leads nowhere.
                Some(to) if to == page.url => None,
                // It is still a sitemap that is found by a link: as a redirect it would pass for that of a seed, which may lead anywhere.
                Some(to) if page.is_sitemap => {
                    let in_scope = self.scope.allows(&page.url, &to);
                    let refused = self.rules.refuses_sitemap(&to).filter(|_| in_scope);
                    if in_scope && refused.is_none() {
                        let id = self.frontier.id_of_redirect(page.id, &to)?;
                        Some(sitemap(id, to, &from, page.depth, page.hops + 1))
                    } else {
                        self.progress.counts.left_out(refused);
                        None
                    }
                }
                Some(to) if self.scope.follows(page.depth, &page.url, &to) && self.rules.follows(page.depth, &to) => {
                    if page.depth == 0 {
                        self.keep_directory(self.rules.note_moved(&page.url, &to));
                    }
                    let id = self.frontier.id_of_redirect(page.id, &to)?;
                    Some(Candidate::redirect(id, to, &from, page.depth, page.hops, page.meta_json))
                }
                Some(to) => {
                    let in_scope = self.scope.follows(page.depth, &page.url, &to);
                    self.progress.counts.left_out(self.rules.refuses(&to).filter(|_| in_scope));
                    None
                }
                None => None,
            };
            let sitemaps =
                page.sitemaps.into_iter().map(|(id, url)| sitemap(id, url, &from, page.depth, page.hops + 1));
            let candidates: Vec<Candidate> = links.chain(sitemaps).chain(target).collect();
            for (candidate, admission) in candidates.iter().zip(self.frontier.offer(now, &candidates)?) {
                self.progress.counts.admission(admission);
                if let Admission::Reopened(note) = admission {
                    todo.push(self.reopened(note, candidate)?);
                }
            }
        }
        Ok(())
    }

    /// Links that an older, smaller depth limit turned away are offered again, as far as the new one reaches.
    pub(crate) fn reopen(&mut self, now: UnixMillis) -> Result<(), Error> {
        let Some(mut pages) = self.frontier.reopening()? else { return Ok(()) };
        loop {
            let some = pages.next(REOPENED_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for AtLimit { id, depth, note } in some {
                let page = self.load(note, id, depth)?;
                self.follow(page, now)?;
            }
            self.commit()?;
        }
        self.frontier.reopened();
        self.commit()?;
        Ok(())
    }

    /// A page that turned out to be nearer. If it is named as a sitemap now, it leads where sitemaps do, however it was found first.
    fn reopened(&mut self, note: u64, now_found: &Candidate) -> Result<Page, Error> {
        let Candidate { id, source, depth, hops, .. } = now_found;
        let page = self.load(note, *id, *depth)?;
        Ok(Page { is_sitemap: page.is_sitemap || is_named(source, *depth, *hops), ..page })
    }

    /// Reads a page back from its spool.
    fn load(&mut self, note: u64, id: UrlId, depth: u32) -> Result<Page, Error> {
        let (number, offset) = place_of(note);
        let path = self.layout.rows(number);
        let SpoolRecord { row, links, to, sitemaps, hops } = read_record(&*self.fs, &path, offset)?;
        let url = WebUrl::parse(&row.url).map_err(|_| Error::Spool {
            path,
            offset,
            expected: "the URL of a capture",
            found: row.url.clone(),
        })?;
        // The run may have another scope by now.
        let found = links.len() + sitemaps.len();
        let inside = |all: Vec<WebUrl>, refuses: &dyn Fn(&WebUrl) -> Option<Rule>| -> Vec<_> {
            let kept = all.into_iter().filter(|to| self.scope.allows(&url, to) && refuses(to).is_none());
            kept.map(|to| (self.identity.in_queue(&to, self.queue).0, to)).collect()
        };
        let links = inside(links, &|to| self.rules.refuses(to));
        let sitemaps = inside(sitemaps, &|to| self.rules.refuses_sitemap(to));
        self.progress.counts.outside += (found - links.len() - sitemaps.len()) as u64;
        let meta_json = (!row.meta_json.is_empty()).then(|| row.meta_json.as_str().into());
        let is_sitemap = is_named_sitemap(&row, hops);
        Ok(Page { id, url, depth, links, sitemaps, redirect: to, hops, meta_json, is_sitemap })
    }
}

/// A sitemap: as far from a seed as what names it, so that its pages are one link away. Indexes that name indexes count as
/// redirects do: no depth would end them.
fn sitemap(id: UrlId, url: WebUrl, from: &Arc<str>, depth: u32, hops: u32) -> Candidate {
    Candidate { depth, hops, ..Candidate::link(id, url, from, depth) }
}
