//! Intake: seen? nearer? a trap's? Else a row, in the log, among the recent changes, and if it is good enough in the window of
//! its host.

use crate::candidate::{Admission, Candidate, Source};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::frontier::{Frontier, Seen};
use crate::host::{HELD, Placed, Robots, split_site};
use crate::identity::{Identity, UrlId};
use crate::index::hash_of;
use crate::policy::priority::{bucket_of, rank};
use crate::policy::trap;
use crate::refill::is_wanted;
use crate::row::{Found, Row, Status, Texts, small};
use crate::seen::{CLOSED, DEEP, FAR, Known, SENT, set_depth_of};
use trawl_meguri::arena::MAX_TEXT;
use trawl_model::UnixMillis;
use trawl_url::WebUrl;

/// Ready rows that a window takes from intake while all rows of its host are in it. Without files it takes all: they are in
/// memory anyway, and looking for the best of them again costs more than keeping them in order.
const SMALL_WINDOW: usize = 16;
/// Rows to be tried later that a window keeps.
const LATER_KEPT: usize = 64;

impl Frontier {
    /// Takes candidates, and tells what became of each. They are durable with the next batch. [`Error::Order`] if one of them has a text
    /// of more than 16 MiB: nothing is changed then.
    pub fn offer(&mut self, now: UnixMillis, candidates: &[Candidate]) -> Result<Vec<Admission>> {
        check_texts(candidates)?;
        let now = self.clock.tick(now);
        let admissions = self.take_in(candidates, now)?;
        self.changed(now)?;
        Ok(admissions)
    }

    fn take_in(&mut self, candidates: &[Candidate], now: i64) -> Result<Vec<Admission>> {
        let mut admissions = Vec::with_capacity(candidates.len());
        let known = self.known_depths(candidates)?;
        let mut nearer = Vec::new();
        for (n, candidate) in candidates.iter().enumerate() {
            let depth = set_depth_of(candidate.depth);
            if has_spellings(&self.config, candidate) {
                let is_known = match &mut self.seen {
                    Seen::Exact(set) => set.get(candidate.id.path()).is_some(),
                    Seen::Files(_) => {
                        known.get(n).is_some_and(Option::is_some) || self.active.get(candidate.id).is_some()
                    }
                };
                // Many sites close `/*?utm_`, and link `/p?utm_source=x` before `/p`: what is refused must not stand for a page.
                if !is_known && self.is_open(candidate.id, &candidate.url) == Some(false) {
                    admissions.push(self.offer_spelling(candidate, now)?);
                    continue;
                }
            }
            let found = match (&mut self.seen, known.get(n)) {
                (Seen::Exact(set), _) if candidate.depth > self.config.max_depth => set.get(candidate.id.path()),
                (Seen::Exact(set), _) => match set.insert(candidate.id.path(), depth) {
                    Known::New => None,
                    Known::At(depth) => Some(depth),
                },
                (Seen::Files(recent), known) => {
                    // What was redirected to is looked up each time: it may be past the limit, or a seed.
                    if candidate.depth <= self.config.max_depth && candidate.hops == 0 {
                        recent.put(candidate.id.path());
                    }
                    // The same URL twice in one batch: the first of them is among the recent changes by now.
                    let written = self.active.get(candidate.id).map(|row| row.mark(self.config.max_hops));
                    written.or(known.copied().flatten())
                }
            };
            let other = found.and_then(|_| self.other_spelling(candidate).cloned());
            if let Some(row) = &other {
                self.respell(row, candidate, now);
            }
            // It will be refused as soon as its turn comes: it was found before the rules were known.
            let is_refused = other.is_some_and(|row| self.is_open(row.id, row.url()) == Some(false));
            admissions.push(match found {
                Some(CLOSED) if self.is_open(candidate.id, &candidate.url) == Some(false) => Admission::Seen,
                Some(_) if is_refused => self.offer_spelling(candidate, now)?,
                Some(known) if may_change(&self.config, candidate, depth, known) => {
                    nearer.push(n);
                    Admission::Nearer
                }
                Some(_) => Admission::Seen,
                None if candidate.depth > self.config.max_depth => {
                    self.turned_away(self.config.max_depth);
                    Admission::TooDeep
                }
                None => self.admit(candidate, now)?,
            });
        }
        if !nearer.is_empty() {
            self.approach(candidates, &nearer, &mut admissions, now)?;
        }
        Ok(admissions)
    }

    /// Whether robots.txt allows a URL; `None` if its rules are not at hand.
    pub(crate) fn is_open(&self, id: UrlId, url: &str) -> Option<bool> {
        let host = &self.hosts[self.known_host(id.host())? as usize];
        match &host.site_of(url)?.robots {
            Robots::Known { rules, .. } => Some(rules.allows(split_site(url).1)),
            _ => None,
        }
    }

    /// Takes a URL under a key that no other spelling of it has.
    fn offer_spelling(&mut self, candidate: &Candidate, now: i64) -> Result<Admission> {
        let spelling = Candidate { id: candidate.id.spelt(&candidate.url), ..candidate.clone() };
        Ok(self.take_in(&[spelling], now)?.first().copied().unwrap_or(Admission::Seen))
    }

    /// The id of where a redirect leads. A redirect from one spelling of a key to another, or to one by way of other pages
    /// (`/p?utm_source=x` to `/cookies` to `/p`), is still a redirect: its target has to be fetched, under a key of its own.
    pub fn id_of_redirect(&mut self, source: UrlId, target: &WebUrl) -> Result<UrlId> {
        let (id, _) = self.config.identity.in_queue(target, self.config.queue);
        if id == source || self.is_known_as_redirect(id, target)? {
            return Ok(id.spelt(target));
        }
        Ok(id)
    }

    /// Whether what was fetched under a key is another spelling of the URL, and was a redirect.
    fn is_known_as_redirect(&mut self, id: UrlId, url: &WebUrl) -> Result<bool> {
        if let Seen::Exact(set) = &mut self.seen
            && set.get(id.path()).is_none()
        {
            return Ok(false);
        }
        let is_redirect = |row: &Row| matches!(row.http_status, 300..=399) && row.url() != url.as_str();
        if let Some(row) = self.leases.get(&id).map(|out| &out.row).or_else(|| self.recent_row(id)) {
            return Ok(is_redirect(row));
        }
        Ok(self.stored_rows(&[id])?.iter().flatten().any(is_redirect))
    }

    /// A URL that was never seen.
    fn admit(&mut self, candidate: &Candidate, now: i64) -> Result<Admission> {
        let Candidate { id, url, source, depth, hops, priority, meta_json } = candidate;
        let config = &self.config;
        let name = || match config.identity.in_queue(url, config.queue).1 {
            Some(name) => name,
            None => url.host().to_owned(),
        };
        let (next, key) = (self.hosts.len() as u32, id.host());
        let host_id = self.host_ids.get_or_add(hash_of(key.into()), next, |id| self.hosts[id as usize].key == key);
        if host_id == next {
            self.hosts.push(crate::host::Host::new(key, &name(), self.floor_ms));
        }
        let (found, via) = source.parts();
        // A list that someone wrote is fetched as it is: the detector looks at links only.
        let month = trap::month_of(now);
        let is_looked_at = *depth > 0 && self.config.trap_threshold > 0;
        if is_looked_at && self.hosts[host_id as usize].trap.forgot(&self.sessions, url, month) {
            self.recall_filters(host_id, month)?;
        }
        let config = &self.config;
        let host = &mut self.hosts[host_id as usize];
        let rule = (id.host(), config.trap_threshold);
        let parked = is_looked_at && trap::observe(&mut host.trap, &mut self.sessions, rule, url, month);
        let row = Row {
            id: *id,
            texts: Texts::new(url, via, meta_json.as_deref().unwrap_or_default()),
            due_ms: 0,
            arrival: self.totals.arrival,
            note: 0,
            robots_until: 0,
            first_seen: hour(now),
            last_crawled: 0,
            crawls: 0,
            errors: 0,
            depth: small(*depth),
            hops: small(*hops),
            http_status: 0,
            strikes: 0,
            bucket: bucket_of(*priority),
            status: if parked { Status::Trapped } else { Status::Scheduled },
            found,
        };
        let mark = row.mark(config.max_hops);
        if let Seen::Exact(set) = &mut self.seen
            && mark != set_depth_of(*depth)
        {
            set.set_depth(id.path(), mark);
        }
        self.totals.arrival += 1;
        self.totals.known += 1;
        self.totals.seeds_waiting += u64::from(found == Found::Seed);
        host.urls += 1;
        if parked {
            host.parked += 1;
            self.totals.parked += 1;
            self.write(host_id, row);
            return Ok(Admission::Parked);
        }
        self.write(host_id, row.clone());
        self.add_waiting(host_id, row, now);
        self.stir(host_id, now);
        Ok(Admission::New)
    }

    /// Looks up which combinations of filters a host has among its pages: those that were not parked stay its pages. Reads all
    /// rows of the host, once in a process; to keep the counts on disk instead, every such link would have to write them.
    fn recall_filters(&mut self, id: u32, month: u32) -> Result<()> {
        let key = self.hosts[id as usize].key;
        let sessions = &mut self.sessions;
        for table in std::iter::once(&self.active).chain(self.sealed.as_deref()) {
            for row in table.of_host(id).filter(|row| row.depth > 0 && row.status != Status::Trapped) {
                trap::recall(sessions, key, row.url(), month);
            }
        }
        if let Some(store) = &self.store {
            for mut scan in store.files.scans() {
                for number in scan.rows_of_host(key)? {
                    let standing = scan.standing(number)?;
                    if standing.depth > 0 && standing.status != Status::Trapped {
                        trap::recall(sessions, key, &scan.url(number)?, month);
                    }
                }
            }
        }
        self.hosts[id as usize].trap.generation = sessions.generation;
        Ok(())
    }

    /// A row waits: in the window of its host if it is good enough, else it is found again when the window is refilled.
    pub(crate) fn add_waiting(&mut self, id: u32, row: Row, now: i64) {
        let rank = rank(&row, now, &self.config);
        let has_room = self.window_room() > 0;
        let limits = self.limits_of(&self.hosts[id as usize]);
        let host = &mut self.hosts[id as usize];
        let complete = !host.has_outside();
        host.waiting += 1;
        self.totals.waiting += 1;
        // Its origin is away: it is found again when that may be asked.
        let tried = row.is_admitted();
        if let Some(until) = host.rests_until(row.url(), now) {
            host.marks.tried_outside |= tried;
            host.goes_outside(until.max(row.due_ms));
            return;
        }
        // A row that was tried already stays at hand: there are never more of them than were leased.
        if row.due_ms > now {
            if host.window.later.len() < LATER_KEPT {
                self.window_bytes += row.memory();
                host.window.add_later(row);
            } else {
                host.marks.tried_outside |= tried;
                host.goes_outside(row.due_ms);
            }
            return;
        }
        let window = &mut host.window;
        // Rows that were tried stay whatever comes, so the worst of the others makes room: where that is looked for at the end of the window
        // only, one tried row there lets the window grow with every better row that is offered.
        let worst = window.ready.iter().position(|(_, row)| !row.is_admitted());
        let is_better = worst.is_some_and(|at| window.ready.get(at).is_some_and(|(worst, _)| rank < *worst));
        let in_memory = self.store.is_none();
        if tried || in_memory || complete && has_room && window.ready.len() < SMALL_WINDOW || is_better {
            self.window_bytes += row.memory();
            window.add_ready(rank, row);
            let evicts = is_better && !tried && !in_memory && window.ready.len() > SMALL_WINDOW;
            // The new row is better, so it stands behind the worst one.
            if evicts && let Some((_, worst)) = worst.and_then(|at| window.ready.remove(at)) {
                self.window_bytes -= worst.memory();
                host.goes_outside(if limits.let_row_go(&worst) { 0 } else { HELD });
            }
        } else if limits.let_row_go(&row) {
            host.goes_outside(0);
        } else {
            host.is_held_outside();
        }
    }

    /// A host got work: it is placed unless what it waits for places it anyway.
    pub(crate) fn stir(&mut self, id: u32, now: i64) {
        match self.hosts[id as usize].placed {
            Placed::Address(_) | Placed::Name | Placed::Refill => {}
            // Only a better row changes anything.
            Placed::Ready(class, _) => {
                let host = &self.hosts[id as usize];
                if self.class_of(host).is_some_and(|best| best < class) {
                    self.place(id, now);
                }
            }
            Placed::Waiting(_, false) => {}
            Placed::Waiting(_, true) | Placed::Nowhere => self.place(id, now),
        }
    }

    /// Shorter ways to known URLs were found.
    fn approach(
        &mut self,
        candidates: &[Candidate],
        nearer: &[usize],
        admissions: &mut [Admission],
        now: i64,
    ) -> Result<()> {
        let mut ids: Vec<UrlId> = nearer.iter().map(|n| candidates[*n].id).collect();
        ids.sort_unstable();
        ids.dedup();
        // What is leased or changed lately is at hand; the rest is looked up together.
        let at_hand = |id: &UrlId| self.leases.contains_key(id) || self.recent_row(*id).is_some();
        let away: Vec<UrlId> = ids.iter().filter(|id| !at_hand(id)).copied().collect();
        let rows = self.stored_rows(&away)?;
        for n in nearer {
            let candidate = &candidates[*n];
            let (id, depth) = (candidate.id, small(candidate.depth));
            let in_reach =
                |row: &Row, config: &Config| u32::from(row.hops) > config.max_hops && candidate.hops <= config.max_hops;
            if let Some(out) = self.leases.get_mut(&id) {
                // Its links count from here when it is settled. It is written as it waits, because a lease ends with the process, and
                // the page that names this way is not asked for again.
                let was = (out.row.depth, out.row.hops);
                is_sent_to(&mut out.row, candidate);
                out.row.depth = out.row.depth.min(depth);
                if in_reach(&out.row, &self.config) {
                    out.row.hops = small(candidate.hops);
                }
                let is_nearer = (out.row.depth, out.row.hops) != was;
                let (host, row) = (out.host, out.row.clone());
                self.note_depth(&row);
                if is_nearer {
                    self.write(host, row);
                }
                continue;
            }
            let stored = || away.binary_search(&id).ok().and_then(|at| rows.get(at).cloned().flatten());
            let Some(mut row) = self.recent_row(id).cloned().or_else(stored) else {
                // Two URLs share a fingerprint, or a merge dropped what was gone.
                admissions[*n] = Admission::Seen;
                continue;
            };
            // It was found before the rules were known, so that it has the key of all spellings.
            if row.status == Status::Excluded && row.url() != candidate.url.as_str() {
                if self.is_open(id, &candidate.url) == Some(true)
                    && let Seen::Exact(set) = &mut self.seen
                {
                    // This one stands for all of them from now on: none need be looked up again.
                    set.set_depth(id.path(), set_depth_of(candidate.depth));
                }
                admissions[*n] = self.offer_spelling(candidate, now)?;
                continue;
            }
            let Some(host) = self.known_host(id.host()) else { continue };
            let reached = in_reach(&row, &self.config);
            // A URL that the operator names is fetched, whatever the links to it looked like.
            let asked_for = row.status == Status::Trapped && candidate.depth == 0;
            // A seed of a long list may be found by a link before it is read. It is a seed all the same.
            let is_seed = candidate.source == Source::Seed && row.found != Found::Seed;
            let waits = is_wanted(row.status, self.hosts[host as usize].trap.released);
            let becomes_seed = is_seed && waits && !row.is_admitted();
            if row.depth <= depth && !reached && !asked_for && !becomes_seed {
                admissions[*n] = Admission::Seen;
                continue;
            }
            is_sent_to(&mut row, candidate);
            row.depth = row.depth.min(depth);
            if reached || becomes_seed {
                row.hops = small(candidate.hops);
            }
            let is_parked = asked_for && !self.hosts[host as usize].trap.released;
            if is_parked || reached && row.status == Status::Gone {
                admissions[*n] = if is_parked { Admission::Unparked } else { Admission::InReach };
                self.hosts[host as usize].parked -= u32::from(is_parked);
                self.totals.parked -= u64::from(is_parked);
                let (found, via) = candidate.source.parts();
                self.totals.seeds_waiting += u64::from(is_parked && found == Found::Seed);
                row.texts = Texts::new(row.url(), via, candidate.meta_json.as_deref().unwrap_or_default());
                (row.found, row.status, row.due_ms, row.strikes) = (found, Status::Scheduled, 0, 0);
                self.note_depth(&row);
                self.write(host, row.clone());
                self.add_waiting(host, row, now);
                self.stir(host, now);
                continue;
            }
            if becomes_seed {
                admissions[*n] = Admission::AskedFor;
                let meta = candidate.meta_json.as_deref().unwrap_or(row.texts.meta());
                (row.texts, row.found) = (Texts::new(row.url(), "", meta), Found::Seed);
                self.totals.seeds_waiting += 1;
            }
            self.note_depth(&row);
            if waits {
                let state = &mut self.hosts[host as usize];
                let old = state.window.remove(id);
                self.window_bytes -= old.as_ref().map_or(0, Row::memory);
                // A seed comes into the window from outside, too.
                if old.is_some() || becomes_seed {
                    state.waiting -= 1;
                    self.totals.waiting -= 1;
                    self.write(host, row.clone());
                    self.add_waiting(host, row, now);
                    self.stir(host, now);
                    continue;
                }
            } else if row.note != 0 {
                admissions[*n] = Admission::Reopened(row.note);
            }
            self.write(host, row);
        }
        Ok(())
    }

    pub(crate) fn note_depth(&mut self, row: &Row) {
        if let Seen::Exact(set) = &mut self.seen {
            set.set_depth(row.id.path(), row.mark(self.config.max_hops));
        }
    }

    /// The row of a key among the recent changes.
    pub(crate) fn recent_row(&self, id: UrlId) -> Option<&Row> {
        self.active.get(id).or_else(|| self.sealed.as_ref()?.get(id))
    }

    /// The depths of known URLs, where the set of known URLs does not fit in memory; nothing otherwise.
    fn known_depths(&self, candidates: &[Candidate]) -> Result<Vec<Option<u8>>> {
        let Seen::Files(recent) = &self.seen else { return Ok(Vec::new()) };
        let mut known = vec![None; candidates.len()];
        let mut unsure = Vec::new();
        for (n, candidate) in candidates.iter().enumerate() {
            // A seed may have been parked as a link.
            let may_be_parked = candidate.depth == 0 && self.config.max_depth > 0;
            if let Some(row) = self.recent_row(candidate.id) {
                known[n] = Some(row.mark(self.config.max_hops));
            } else if !self.config.depth_matters() && !may_be_parked && recent.has(candidate.id.path()) {
                known[n] = Some(0);
            } else {
                unsure.push((candidate.id, n));
            }
        }
        unsure.sort_unstable();
        if let Some(store) = &self.store {
            store.files.marks(&unsure, self.config.max_hops, &mut known)?;
        }
        Ok(known)
    }
}

/// Refuses texts that no file of the frontier can have. Later, when their row is acknowledged, they would let every flush fail, and the
/// frontier could not be opened any more.
fn check_texts(candidates: &[Candidate]) -> Result<()> {
    for candidate in candidates {
        let (_, via) = candidate.source.parts();
        let meta = candidate.meta_json.as_deref().unwrap_or_default();
        for (what, len) in [
            ("a URL of at most 16 MiB", candidate.url.len()),
            ("the URL of the page of a link of at most 16 MiB", via.len()),
            ("metadata of at most 16 MiB", meta.len()),
        ] {
            if len > MAX_TEXT {
                return Err(Error::Order { what, found: format!("{len} bytes") });
            }
        }
    }
    Ok(())
}

/// Whether other spellings may have the key of a candidate. They differ in their queries; what else differs, escapes, is the same to
/// robots.txt.
fn has_spellings(config: &Config, Candidate { id, url, .. }: &Candidate) -> bool {
    config.identity == Identity::Key && url.path_query().contains('?') && *id != id.spelt(url)
}

/// Whether the row of a known URL has to be looked at: a shorter way to it counts, what was past the limit of redirects may be
/// in reach, and a seed may have been found, or parked, as a link.
fn may_change(config: &Config, candidate: &Candidate, depth: u8, known: u8) -> bool {
    match known {
        FAR => candidate.hops <= config.max_hops,
        CLOSED => true,
        SENT => candidate.source == Source::Seed,
        _ if candidate.depth == 0 => known > 0,
        _ => config.depth_matters() && (depth < known || known == DEEP),
    }
}

/// A seed redirects to a page that a link found first and that is not done: from now on it is where the seed is, with the seed's metadata,
/// and leads on as that does. A link that is as near as a seed is a sitemap's.
fn is_sent_to(row: &mut Row, candidate: &Candidate) {
    if let Source::Redirect(from) = &candidate.source
        && (candidate.depth, row.found) == (0, Found::Link)
        && row.depth > 0
        && row.status.waits()
    {
        let meta = candidate.meta_json.as_deref().unwrap_or(row.texts.meta());
        (row.texts, row.found) = (Texts::new(row.url(), from, meta), Found::Redirect);
    }
}

/// Hours since 1970, as a file has them: from 0 to 2^32 - 1, the year 491,000.
pub(crate) fn hour(now_ms: i64) -> u32 {
    (now_ms / 3_600_000).clamp(0, i64::from(u32::MAX)) as u32
}
