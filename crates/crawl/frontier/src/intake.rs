//! Intake: seen? nearer? a trap's? Else a row, in the log, among the recent changes, and if it is good enough in the window of
//! its host.

use crate::candidate::{Admission, Candidate};
use crate::error::Result;
use crate::frontier::{Frontier, Seen};
use crate::host::Placed;
use crate::identity::UrlId;
use crate::policy::priority::{bucket_of, rank};
use crate::policy::trap;
use crate::row::{Row, Status, Texts};
use crate::seen::Known;
use trawl_model::UnixMillis;

/// Ready rows that a window takes from intake while all rows of its host are in it.
const SMALL_WINDOW: usize = 16;
/// Rows to be tried later that a window keeps.
const LATER_KEPT: usize = 64;

impl Frontier {
    /// Takes candidates, and tells what became of each. They are durable with the next batch.
    pub fn offer(&mut self, now: UnixMillis, candidates: &[Candidate]) -> Result<Vec<Admission>> {
        let now = self.clock.tick(now);
        let mut admissions = Vec::with_capacity(candidates.len());
        let known = self.known_depths(candidates)?;
        let mut nearer = Vec::new();
        for (n, candidate) in candidates.iter().enumerate() {
            let depth = u8::try_from(candidate.depth).unwrap_or(u8::MAX);
            let found = match (&mut self.seen, known.get(n)) {
                (Seen::Exact(set), _) if candidate.depth > self.config.max_depth => set.get(candidate.id.path()),
                (Seen::Exact(set), _) => match set.insert(candidate.id.path(), depth) {
                    Known::New => None,
                    Known::At(depth) => Some(depth),
                },
                (Seen::Files(recent), known) => {
                    if candidate.depth <= self.config.max_depth {
                        recent.put(candidate.id.path());
                    }
                    // The same URL twice in one batch: the first of them is among the recent changes by now.
                    let written = self.active.get(candidate.id).map(|row| u8::try_from(row.depth).unwrap_or(u8::MAX));
                    written.or(known.copied().flatten())
                }
            };
            admissions.push(match found {
                Some(known) if self.config.depth_matters() && depth < known => {
                    nearer.push(n);
                    Admission::Nearer
                }
                Some(_) => Admission::Seen,
                None if candidate.depth > self.config.max_depth => Admission::TooDeep,
                None => self.admit(candidate, now),
            });
        }
        if !nearer.is_empty() {
            self.approach(candidates, &nearer, &mut admissions, now)?;
        }
        self.changed(now)?;
        Ok(admissions)
    }

    /// A URL that was never seen.
    fn admit(&mut self, candidate: &Candidate, now: i64) -> Admission {
        let Candidate { id, url, source, depth, hops, priority, meta_json } = candidate;
        let config = &self.config;
        let name = || match config.identity.in_queue(url, config.queue).1 {
            Some(name) => name,
            None => url.host().to_owned(),
        };
        let next = self.hosts.len() as u32;
        let host_id = *self.host_ids.entry(id.host()).or_insert(next);
        if host_id == next {
            self.hosts.push(crate::host::Host::new(id.host(), &name(), self.floor_ms));
        }
        let host = &mut self.hosts[host_id as usize];
        let (found, via) = source.parts();
        // A list that someone wrote is fetched as it is: the detector looks at links only.
        let parked = *depth > 0
            && config.trap_threshold > 0
            && trap::observe(
                &mut host.trap,
                &mut self.sessions,
                (id.host(), config.trap_threshold),
                url,
                trap::month_of(now),
            );
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
            depth: u16::try_from(*depth).unwrap_or(u16::MAX),
            hops: u16::try_from(*hops).unwrap_or(u16::MAX),
            http_status: 0,
            strikes: 0,
            bucket: bucket_of(*priority),
            status: if parked { Status::Trapped } else { Status::Scheduled },
            found,
        };
        self.totals.arrival += 1;
        self.totals.known += 1;
        host.urls += 1;
        if parked {
            host.parked += 1;
            self.totals.parked += 1;
            self.write(host_id, row);
            return Admission::Parked;
        }
        self.write(host_id, row.clone());
        self.add_waiting(host_id, row, now);
        self.stir(host_id, now);
        Admission::New
    }

    /// A row waits: in the window of its host if it is good enough, else it is found again when the window is refilled.
    pub(crate) fn add_waiting(&mut self, id: u32, row: Row, now: i64) {
        let rank = rank(&row, now, &self.config);
        let has_room = self.window_bytes < self.config.memory_bytes / 8;
        let host = &mut self.hosts[id as usize];
        let complete = !host.has_outside();
        host.waiting += 1;
        self.totals.waiting += 1;
        // A row that was tried already stays at hand: there are never more of them than were leased.
        let tried = row.is_admitted();
        if row.due_ms > now {
            if host.window.later.len() < LATER_KEPT {
                self.window_bytes += row.memory();
                host.window.add_later(row);
            } else {
                host.outside_due = host.outside_due.min(row.due_ms);
            }
            return;
        }
        let window = &mut host.window;
        let is_better = window.ready.first().is_some_and(|(worst, _)| rank < *worst);
        if tried
            || complete && has_room && window.ready.len() < SMALL_WINDOW
            || complete && window.len() == 0
            || is_better
        {
            self.window_bytes += row.memory();
            window.add_ready(rank, row);
            if is_better && !tried && window.ready.len() > SMALL_WINDOW && !window.ready[0].1.is_admitted() {
                let (_, worst) = window.ready.remove(0);
                self.window_bytes -= worst.memory();
                host.outside_due = 0;
            }
        } else {
            host.outside_due = 0;
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
            let Candidate { id, depth, .. } = candidates[*n];
            let depth = u16::try_from(depth).unwrap_or(u16::MAX);
            if let Some(out) = self.leases.get_mut(&id) {
                // It is written down when it is settled, and its links then count from here.
                out.row.depth = out.row.depth.min(depth);
                self.note_depth(id, depth);
                continue;
            }
            let stored = || away.binary_search(&id).ok().and_then(|at| rows.get(at).cloned().flatten());
            let Some(mut row) = self.recent_row(id).cloned().or_else(stored) else {
                // Two URLs share a fingerprint, or a merge dropped what was gone.
                admissions[*n] = Admission::Seen;
                continue;
            };
            if row.depth <= depth {
                admissions[*n] = Admission::Seen;
                continue;
            }
            row.depth = depth;
            self.note_depth(id, depth);
            let Some(host) = self.host_ids.get(&id.host()).copied() else { continue };
            if row.status == Status::Scheduled {
                let state = &mut self.hosts[host as usize];
                if let Some(old) = state.window.remove(id) {
                    self.window_bytes -= old.memory();
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

    fn note_depth(&mut self, id: UrlId, depth: u16) {
        if let Seen::Exact(set) = &mut self.seen {
            set.set_depth(id.path(), u8::try_from(depth).unwrap_or(u8::MAX));
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
            if let Some(row) = self.recent_row(candidate.id) {
                known[n] = Some(u8::try_from(row.depth).unwrap_or(u8::MAX));
            } else if !self.config.depth_matters() && recent.has(candidate.id.path()) {
                known[n] = Some(0);
            } else {
                unsure.push((candidate.id, n));
            }
        }
        unsure.sort_unstable();
        if let Some(store) = &self.store {
            store.files.depths(&unsure, &mut known)?;
        }
        Ok(known)
    }
}

/// Hours since 1970.
pub(crate) fn hour(now_ms: i64) -> u32 {
    u32::try_from(now_ms.max(0) / 3_600_000).unwrap_or(u32::MAX)
}
