//! What a crawl knows, rebuilt from its journal by the same steps that made it.

use crate::commit::Live;
use crate::config::Config;
use crate::error::Error;
use crate::page::rules_of;
use crate::record::{EventRecord, Record, SeedsRecord, decode};
use crate::report::{Counts, Leg};
use crate::rules::LinkRules;
use crate::scope::Scope;
use crate::seeds::{SeedIdentity, SeedInput};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_frontier::{Admission, AllowAll, Answer, Candidate, Frontier, Identity, RobotsAnswer, UrlId};
use trawl_io::Fs;
use trawl_io::journal::{JournalReader, Options};
use trawl_model::UnixMillis;
use trawl_url::WebUrl;

/// Frontier, counts, and how far the seeds were read.
pub(crate) struct State {
    pub frontier: Frontier,
    pub counts: Counts,
    /// Seeds that were not read to their end.
    pub inputs: Vec<SeedInput>,
    /// Items of them that were read.
    pub items: u64,
    /// Seeds that were.
    pub seeds: Vec<SeedIdentity>,
    /// Each start of the run, this one last once it is journaled.
    pub legs: Vec<Leg>,
    /// When the last capture ended, by the time of day.
    last: Option<UnixMillis>,
    identity: Identity,
    scope: Scope,
    rules: LinkRules,
    /// Whether the depth of pages decides anything, so that shorter ways found late matter.
    depth_matters: bool,
    agent: String,
    fs: Arc<dyn Fs>,
    journal: PathBuf,
}

/// A page whose links are to be discovered.
struct Page {
    id: UrlId,
    url: WebUrl,
    links: Vec<(UrlId, WebUrl)>,
    redirect: Option<WebUrl>,
    hops: u32,
    meta_json: Option<Arc<str>>,
}

impl State {
    pub(crate) fn new(config: &Config, agent: String, fs: Arc<dyn Fs>, journal: PathBuf) -> Self {
        let (identity, max_depth) = (config.frontier.identity, config.frontier.max_depth);
        Self {
            frontier: Frontier::new(config.frontier.clone()),
            counts: Counts::default(),
            inputs: Vec::new(),
            items: 0,
            seeds: Vec::new(),
            legs: Vec::new(),
            last: None,
            identity,
            scope: config.scope,
            rules: config.rules.clone(),
            depth_matters: max_depth > 0 && max_depth < u32::MAX,
            agent,
            fs,
            journal,
        }
    }

    /// Seeds became durable.
    pub(crate) fn seeds(&mut self, record: SeedsRecord) {
        self.counts.seeds += record.seeds.len() as u64;
        self.counts.rejects += record.rejects.len() as u64;
        self.items = record.items;
        if let Some(end) = record.end {
            self.seeds.extend(end);
            (self.inputs, self.items) = (Vec::new(), 0);
        }
        for seed in record.seeds {
            self.rules.note_seed(&seed.url);
            let admission = self.frontier.discover(Candidate::seed(self.identity, seed.url, seed.meta.map(Into::into)));
            self.counts.admission(admission);
        }
    }

    /// The run was started.
    pub(crate) fn leg(&mut self, leg: Leg) {
        if let Some(before) = self.legs.last_mut() {
            before.ended_at = before.ended_at.or(self.last.max(Some(before.started_at)));
        }
        self.inputs.extend(leg.seeds.iter().cloned());
        self.legs.push(leg);
    }

    /// Whether all seeds were read.
    pub(crate) fn seeds_ended(&self) -> bool {
        self.inputs.is_empty() && !self.legs.is_empty()
    }

    /// Of seeds that a start of the run names, those that are new to it.
    pub(crate) fn new_seeds(&self, named: &[SeedInput]) -> Result<Vec<SeedInput>, Error> {
        let mut new = Vec::new();
        for seed in named {
            let seed = seed.clone().for_keeps();
            let name = seed.name();
            let read: Vec<_> = self.seeds.iter().filter(|known| known.name == name).collect();
            // A file may have changed since. One that is new is not looked at here: it may be a pipe.
            let known = match &seed {
                SeedInput::File(_) if !read.is_empty() => {
                    let found = seed.sha256()?;
                    read.iter().any(|known| known.sha256 == found)
                }
                _ => !read.is_empty(),
            };
            if !known && !self.inputs.contains(&seed) && !new.contains(&seed) {
                new.push(seed);
            }
        }
        Ok(new)
    }

    /// A capture became durable in the batch at `offset`. `live` is absent when it is read back from the journal; else it comes
    /// with the time, which is not that of day.
    pub(crate) fn event(
        &mut self,
        event: EventRecord,
        live: Option<(Live, UnixMillis)>,
        offset: u64,
    ) -> Result<(), Error> {
        self.counts.capture(&event);
        let captured = UnixMillis(event.row.fetched_at);
        self.last = self.last.max(Some(captured));
        let then = live.as_ref().map_or(captured, |(_, now)| *now);
        let Some(id) = event.id.as_deref() else {
            // Live, the rules were applied when the fetch ended; this is for a resumed run.
            if let (Some(site), Some(text), true) = (&event.site, &event.robots, live.is_none()) {
                let rules = if text.is_empty() { Arc::new(AllowAll) } else { rules_of(text, &self.agent) };
                self.frontier.restore_robots(then, site, RobotsAnswer::Rules(rules));
            }
            return Ok(());
        };
        let Ok(id) = id.parse::<UrlId>() else {
            return Err(self.odd(offset, "the id of a URL", id.to_owned()));
        };
        let leads_on = !event.links.is_empty() || event.to.is_some();
        let note = (leads_on && self.depth_matters).then_some(offset);
        if self.frontier.is_pending(id) {
            let again = self.frontier.acknowledged(then, id, Answer::from(event.answer), note);
            self.counts.attempt(&event, again);
        }
        let page = self.page(id, event, live.map(|(live, _)| live), offset)?;
        self.follow(page)
    }

    fn page(&mut self, id: UrlId, event: EventRecord, live: Option<Live>, offset: u64) -> Result<Page, Error> {
        let meta_json = (!event.row.meta_json.is_empty()).then(|| event.row.meta_json.as_str().into());
        let (url, links) = match live {
            Some(Live { url, ids }) => (url, ids.into_iter().zip(event.links).collect()),
            // From the journal: the run may have another scope by now.
            None => {
                let url = WebUrl::parse(&event.row.url)
                    .map_err(|_| self.odd(offset, "the URL of a capture", event.row.url.clone()))?;
                let found = event.links.len();
                let inside = event
                    .links
                    .into_iter()
                    .filter(|to| self.scope.allows(&url, to) && self.rules.refuses(to).is_none());
                let links: Vec<_> = inside.map(|to| (self.identity.of(&to), to)).collect();
                self.counts.outside += (found - links.len()) as u64;
                (url, links)
            }
        };
        Ok(Page { id, url, links, redirect: event.to, hops: event.hops, meta_json })
    }

    /// Discovers what a page leads to; pages that turn out to be nearer than was thought lead on again.
    fn follow(&mut self, first: Page) -> Result<(), Error> {
        let mut todo = vec![first];
        while let Some(page) = todo.pop() {
            let depth = self.frontier.depth(page.id).unwrap_or(0);
            let from: Arc<str> = page.url.as_str().into();
            let links = page.links.into_iter().map(|(id, url)| Candidate::link(id, url, &from, depth));
            let target = match page.redirect {
                // What leads back to itself leads nowhere.
                Some(to) if to == page.url => None,
                Some(to) if self.scope.follows(depth, &page.url, &to) && self.rules.follows(depth, &to) => {
                    let id = self.identity.of_redirect(page.id, &to);
                    Some(Candidate::redirect(id, to, &from, depth, page.hops, page.meta_json))
                }
                outside => {
                    self.counts.outside += u64::from(outside.is_some());
                    None
                }
            };
            for candidate in links.chain(target) {
                let id = candidate.id;
                let admission = self.frontier.discover(candidate);
                self.counts.admission(admission);
                if let Admission::Reopened(offset) = admission {
                    let event = self.load(offset, id)?;
                    let page = self.page(id, event, None, offset)?;
                    todo.push(page);
                }
            }
        }
        Ok(())
    }

    /// Reads an event back from the journal.
    fn load(&self, offset: u64, id: UrlId) -> Result<EventRecord, Error> {
        let mut reader = JournalReader::open(&*self.fs, &self.journal, &Options::default())?;
        reader.skip_to(offset);
        let name = id.to_string();
        if let Some(batch) = reader.next_batch()? {
            for record in batch.records() {
                if let Record::Event(event) = decode(&self.journal, offset, record)?
                    && event.id.as_deref() == Some(&name)
                {
                    return Ok(*event);
                }
            }
        }
        Err(self.odd(offset, "the capture of a known page", "a batch without it".into()))
    }

    fn odd(&self, offset: u64, expected: &'static str, found: String) -> Error {
        Error::Journal { path: self.journal.clone(), offset, expected, found }
    }
}
