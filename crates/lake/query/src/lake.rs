//! An open lake: the segments that are open, and the version pinned last.

use crate::denied::KnownLosses;
use crate::pinned::View;
use crate::{Effort, Pinned, QueryError};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use trawl_index::{Caches, OpenOptions, Segment};
use trawl_store::denial::DenyList;
use trawl_store::{Manifest, SegmentRef, Store, Version};
use trawl_url::SuffixList;

/// Settings of an open lake.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Memory for what was read a moment ago, over all segments: blocks of the index, and in a sixteenth of it where the
    /// denied rows of domains are.
    pub cache_bytes: u64,
    /// An index file with at most this many bytes is read whole when a segment is opened, where it cannot be mapped.
    pub resident_bytes: u64,
}

impl Default for Options {
    /// 128 MiB of cache (half of it postings), files up to 64 MiB resident.
    fn default() -> Self {
        Self { cache_bytes: trawl_index::DEFAULT_CACHE_BYTES, resident_bytes: OpenOptions::default().resident_bytes }
    }
}

/// Times a question is asked again because the lake has gone on while it was answered.
const MAX_ROUNDS: u32 = 10;

/// How a lake changed other than by going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LakeChange {
    /// It was put back to an older state.
    WentBack,
    /// Another lake is in its place.
    Another,
}

/// An open lake. Share it behind an `Arc`; every request pins a version of its own.
pub struct Lake {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    /// Replaced where another lake was found in its place.
    lake: Mutex<Arc<trawl_store::Lake>>,
    options: Options,
    caches: Arc<Caches>,
    losses: KnownLosses,
    state: Mutex<State>,
    /// Held by the thread that opens the segments of a new version.
    opening: Mutex<()>,
    /// When the newest state was asked for, where asking costs a wait.
    asked: Mutex<Asked>,
    /// The time that has passed since some moment.
    passed: Box<Passed>,
}

type Passed = dyn Fn() -> Duration + Send + Sync;

#[derive(Default)]
struct Asked {
    /// When the question was asked whose answer was the newest state.
    confirmed: Option<Duration>,
    /// When it was asked last, answered or not.
    begun: Option<Duration>,
}

#[derive(Default)]
struct State {
    newest: Option<Arc<Pinned>>,
    /// The state that [`Lake::check`] saw last: not that of the version pinned last, which may be of another lake already.
    known: Option<Arc<Manifest>>,
    segments: HashMap<String, Arc<Segment>>,
    suffixes: Option<(String, Arc<SuffixList>)>,
}

impl Lake {
    /// Opens the lake in `store` and pins its newest version.
    pub fn open(store: Arc<dyn Store>, options: Options) -> Result<Self, QueryError> {
        let begun = Instant::now();
        Self::open_at(store, options, move || begun.elapsed())
    }

    /// The same by another clock: `passed` tells the time since some moment.
    pub fn open_at(
        store: Arc<dyn Store>,
        options: Options,
        passed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, QueryError> {
        let lake = Mutex::new(Arc::new(trawl_store::Lake::open(store.clone())?));
        let losses = KnownLosses::new(options.cache_bytes / 16);
        let caches = Arc::new(Caches::new(options.cache_bytes - options.cache_bytes / 16));
        let (state, opening, asked) = (Mutex::default(), Mutex::default(), Mutex::default());
        let passed = Box::new(passed);
        let inner = Inner { store, lake, options, caches, losses, state, opening, asked, passed };
        let lake = Self { inner: Arc::new(inner) };
        let pinned = lake.pin()?;
        lake.inner.state().known = Some(pinned.manifest().clone());
        Ok(lake)
    }

    /// Asks the newest version. Where a collector took it away while it was being read, the one that took its place is
    /// asked; so the question may be asked more than once.
    pub fn ask<T>(&self, question: impl FnMut(&Pinned) -> Result<T, QueryError>) -> Result<T, QueryError> {
        self.ask_within(&Effort::unbounded(), question)
    }

    /// As [`Lake::ask`], with no more effort than that.
    pub fn ask_within<T>(
        &self,
        effort: &Effort,
        mut question: impl FnMut(&Pinned) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let (mut rounds, mut forgotten) = (0, BTreeSet::new());
        loop {
            let pinned = self.pin().map_err(unavailable)?.within(effort.clone());
            let error = match question(&pinned) {
                Err(error @ QueryError::Lake { .. }) if rounds < MAX_ROUNDS => error,
                answer => return answer,
            };
            match self.inner.is_past(pinned.manifest()) {
                Ok(true) => rounds += 1,
                Ok(false) if self.inner.forget(&error, &mut forgotten) => rounds += 1,
                Ok(false) => return Err(error),
                // It went away while it was read: that is not damage.
                Err(_) => return Err(unavailable(error)),
            }
        }
    }

    /// What to make of an error of an answer that cannot be asked for again: if the lake is away, that it is.
    pub fn explain(&self, error: QueryError) -> QueryError {
        self.inner.forget(&error, &mut BTreeSet::new());
        if matches!(error, QueryError::Lake { .. }) && self.inner.newest().is_err() {
            unavailable(error)
        } else {
            error
        }
    }

    /// The newest version. While it is unchanged this asks the store two questions and opens nothing; while somebody
    /// else is opening a newer one, it answers with the version before, unless that is no longer kept, or something was denied,
    /// dropped or closed since: then it waits.
    pub fn pin(&self) -> Result<Arc<Pinned>, QueryError> {
        let (mut rounds, mut forgotten) = (0, BTreeSet::new());
        loop {
            let manifest = if rounds == 0 { self.inner.polled()? } else { self.inner.newest()? };
            match self.pin_of(&manifest) {
                // Collected while it was being opened.
                Err(_) if rounds < MAX_ROUNDS && self.inner.is_past(&manifest)? => rounds += 1,
                Err(error) if rounds < MAX_ROUNDS && self.inner.forget(&error, &mut forgotten) => rounds += 1,
                pinned => return pinned,
            }
        }
    }

    /// A version by its name, as long as the lake keeps it: for processes that must all read the same one.
    pub fn pin_version(&self, version: &str) -> Result<Arc<Pinned>, QueryError> {
        let manifest = self.inner.newest()?;
        let gone = || QueryError::Gone { version: version.to_owned() };
        let wanted = manifest.version(version).cloned().ok_or_else(gone)?;
        Ok(Arc::new(self.inner.open_version(&manifest, &wanted, Effort::unbounded())?))
    }

    fn pin_of(&self, manifest: &Arc<Manifest>) -> Result<Arc<Pinned>, QueryError> {
        let known = self.inner.state().newest.clone();
        let fits = |pinned: &Arc<Pinned>| pinned.manifest().sequence >= manifest.sequence;
        if let Some(pinned) = known.as_ref().filter(|pinned| fits(pinned)) {
            return Ok(pinned.clone());
        }
        let _opening = match (self.inner.opening.try_lock(), known) {
            (Ok(guard), _) => guard,
            (Err(TryLockError::WouldBlock), Some(pinned)) if pinned.may_answer_for(manifest) => return Ok(pinned),
            (Err(TryLockError::Poisoned(guard)), _) => guard.into_inner(),
            (Err(TryLockError::WouldBlock), _) => self.inner.opening.lock().unwrap_or_else(PoisonError::into_inner),
        };
        // The thread that held the lock before may have done the work.
        if let Some(pinned) = self.inner.state().newest.clone().filter(fits) {
            return Ok(pinned);
        }
        let version = manifest.current().cloned().unwrap_or_default();
        let pinned = Arc::new(self.inner.open_version(manifest, &version, Effort::unbounded())?);
        let mut state = self.inner.state();
        state.newest = Some(pinned.clone());
        // Segments of versions no longer listed are closed once the last request that pinned them ends.
        let kept = |id: &String| manifest.versions.iter().flat_map(|v| &v.segments).any(|s| s.id == *id);
        state.segments.retain(|id, _| kept(id));
        Ok(pinned)
    }

    /// Looks whether the lake is still the one that answers come from, and how it changed if not: what is there is answered
    /// from then on. A lake that only went on is noticed by [`Lake::pin`].
    pub fn check(&self) -> Result<Option<LakeChange>, QueryError> {
        let (known, seen) = (self.inner.state().known.clone(), self.inner.lake().seen());
        let mut change = known.as_ref().map(|known| self.change_since(known)).transpose()?.flatten();
        // What was seen last need not have been pinned: a lake that could not be opened may have been replaced since.
        let is_known = |seen: &Manifest| {
            known.as_ref().is_some_and(|known| (known.sequence, &known.writer) == (seen.sequence, &seen.writer))
        };
        if let Some(seen) = seen.filter(|seen| change.is_none() && !is_known(seen)) {
            change = self.change_since(&seen)?;
        }
        let pinned = self.pin()?;
        self.inner.state().known = Some(pinned.manifest().clone());
        Ok(change)
    }

    fn change_since(&self, known: &Manifest) -> Result<Option<LakeChange>, QueryError> {
        let found = self.inner.lake().manifest(known.sequence)?;
        let mark = |manifest: &Manifest| [&manifest.lake_id, &manifest.writer, &manifest.written].map(String::clone);
        let is_it = |found: &Manifest| mark(found) == mark(known);
        if found.as_ref().is_some_and(is_it) {
            return Ok(None);
        }
        let fresh = trawl_store::Lake::open(self.inner.store.clone())?;
        let newest = fresh.current()?;
        let change = match found {
            _ if newest.lake_id != known.lake_id => LakeChange::Another,
            // Lakes of earlier programs have no identity: if others wrote the state of this number, it is another lake.
            Some(_) if known.lake_id.is_empty() => LakeChange::Another,
            // Put back, and gone on from there.
            Some(_) => LakeChange::WentBack,
            // Collected.
            None if newest.sequence > known.sequence => return Ok(None),
            None => LakeChange::WentBack,
        };
        *self.inner.lake.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        *self.inner.state() = State::default();
        Ok(Some(change))
    }

    /// Bytes by which it remembers where denied rows are: a sixteenth of its cache at most.
    pub fn denied_memory(&self) -> u64 {
        self.inner.losses.memory()
    }

    /// The store beneath.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }
}

fn unavailable(error: QueryError) -> QueryError {
    match error {
        QueryError::Lake { source } => QueryError::Unavailable { source },
        error => error,
    }
}

impl Drop for Lake {
    /// The version it remembers holds the lake in turn: forgotten, both go once the last request is answered.
    fn drop(&mut self) {
        self.inner.state().newest = None;
    }
}

impl Inner {
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn lake(&self) -> Arc<trawl_store::Lake> {
        self.lake.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has a damaged file read again that was read from a cache: it may have come here damaged, or been put back since. Tells
    /// whether that is worth another try, which it is once for each file.
    fn forget(&self, error: &QueryError, forgotten: &mut BTreeSet<String>) -> bool {
        error.damaged().is_some_and(|path| forgotten.insert(path.to_owned()) && self.store.forget(path))
    }

    pub(crate) fn losses(&self) -> &KnownLosses {
        &self.losses
    }

    /// Whether the lake has gone on since, so that what cannot be read any more may have been collected.
    pub(crate) fn is_past(&self, manifest: &Manifest) -> Result<bool, QueryError> {
        Ok(self.newest()?.sequence != manifest.sequence)
    }

    pub(crate) fn newest(&self) -> Result<Arc<Manifest>, QueryError> {
        Ok(self.lake().current()?)
    }

    /// The newest state, or one that was the newest less than the store's polling interval ago. At half of it one request
    /// asks, and the others need not wait for it; at its end all do: what was denied must not be shown any longer because a
    /// store is slow to answer.
    fn polled(&self) -> Result<Arc<Manifest>, QueryError> {
        let every = self.store.poll_every();
        if every.is_zero() {
            return self.newest();
        }
        let now = (self.passed)();
        let since = |then: Option<Duration>| then.map_or(Duration::MAX, |then| now.saturating_sub(then));
        {
            let mut asked = self.asked();
            let is_known = since(asked.confirmed) < every;
            let is_asked = since(asked.confirmed).min(since(asked.begun)) < every / 2;
            if let Some(seen) = self.lake().seen().filter(|_| is_known && is_asked) {
                return Ok(seen);
            }
            asked.begun = Some(now);
        }
        let newest = self.newest();
        let mut asked = self.asked();
        match &newest {
            Ok(_) => asked.confirmed = asked.confirmed.max(Some(now)),
            Err(_) => *asked = Asked::default(),
        }
        newest
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What it guards is replaced whole, so a panic elsewhere leaves it sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a version of `manifest`, sharing segments that are open already.
    pub(crate) fn open_version(
        self: &Arc<Self>,
        manifest: &Arc<Manifest>,
        version: &Version,
        effort: Effort,
    ) -> Result<Pinned, QueryError> {
        let suffixes = self.suffixes(manifest)?;
        let mut segments = Vec::with_capacity(version.segments.len());
        for (segment, reference) in self.open_segments(&version.segments)?.into_iter().zip(&version.segments) {
            segments.push((segment, reference.clone()));
        }
        let deny = DenyList::new(manifest, &suffixes);
        let (inner, manifest, version) = (self.clone(), manifest.clone(), version.version.clone());
        let (known_hidden, shared_names) = (Mutex::default(), OnceLock::new());
        let view = View { inner, manifest, version, segments, suffixes, deny, known_hidden, shared_names };
        Ok(Pinned::new(view, effort))
    }

    /// The segments, sharing those that are open already; the others are opened at the same time, since each waits for its
    /// store a few times.
    fn open_segments(&self, wanted: &[SegmentRef]) -> Result<Vec<Arc<Segment>>, QueryError> {
        let open = |reference: &SegmentRef| {
            if let Some(known) = self.state().segments.get(&reference.id).cloned() {
                return Ok(known);
            }
            let options = OpenOptions { resident_bytes: self.options.resident_bytes };
            let opened = Arc::new(Segment::open(self.store(), reference, &self.caches, options)?);
            Ok(self.state().segments.entry(reference.id.clone()).or_insert(opened).clone())
        };
        // Where files are mapped nothing waits.
        if !self.store.is_remote() || wanted.len() < 2 {
            return wanted.iter().map(open).collect();
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = wanted.iter().map(|reference| scope.spawn(move || open(reference))).collect();
            let gone =
                || QueryError::lake(std::io::Error::other("a thread that opens a segment ended without an answer"));
            threads.into_iter().map(|thread| thread.join().map_err(|_| gone())?).collect()
        })
    }

    fn suffixes(&self, manifest: &Manifest) -> Result<Arc<SuffixList>, QueryError> {
        let hash = manifest.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        if let Some((known, list)) = &self.state().suffixes
            && *known == hash
        {
            return Ok(list.clone());
        }
        let bytes = self.lake().suffix_list(manifest)?;
        let text = std::str::from_utf8(&bytes).map_err(QueryError::lake)?;
        let list = Arc::new(SuffixList::parse(text).map_err(QueryError::lake)?);
        self.state().suffixes = Some((hash, list.clone()));
        Ok(list)
    }
}
