//! A lake: a store with a series of manifests.

use crate::fill::lost_manifest;
use crate::manifest::{
    Base, Bases, Dataset, DatasetInfo, Manifest, RELATIVE_FORMAT, SuffixListRef, base_of, check_head, put_deny,
    read_manifest, write_checkpoint,
};
use crate::object::{claim, probe};
use crate::series::{Known, MAX_STATE_BYTES, Series, State};
use crate::{DatasetCommit, Error, Heartbeat, Result, Store, deny_record, layout};
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_model::UnixMillis;
use xxhash_rust::xxh3::xxh3_64;

/// Largest suffix list that is read.
const MAX_SUFFIX_LIST_BYTES: u64 = 16 << 20;

/// The name a suffix list has in manifests, commits and paths: xxh3_64 of its bytes, 16 hex digits.
pub fn suffix_list_hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// A lake. Cheap to share behind an `Arc`; it remembers the newest manifest it has seen.
#[derive(Debug)]
pub struct Lake {
    store: Arc<dyn Store>,
    seen: Mutex<Option<Seen>>,
    bases: Bases,
    sizes: Sizes,
    /// Whether lakes of earlier programs are opened: only to upgrade them.
    old: bool,
}

/// When manifests are written as what differs from a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Longest manifest that is written whole.
    pub whole: u64,
    /// Length of a relative manifest from which on a new checkpoint pays.
    pub relative: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { whole: 12 << 10, relative: 12 << 10 }
    }
}

#[derive(Debug, Clone)]
struct Seen {
    state: State,
    manifest: Arc<Manifest>,
}

/// A commit that happened.
#[derive(Debug)]
pub struct Committed<T> {
    /// What the change returned.
    pub value: T,
    /// The state that holds the change.
    pub manifest: Arc<Manifest>,
    /// Why `index/manifest.json` could not be refreshed, or a record of the deny list that somebody else left out be written,
    /// if so: the commit stands, simple readers see it later.
    pub copy_error: Option<Error>,
}

impl Lake {
    /// Makes a lake: probes the store, stores the suffix list and commits an empty manifest. `nonce` names the probe and the
    /// writer of that manifest, and must be new.
    pub fn init(store: Arc<dyn Store>, now: UnixMillis, nonce: &str, suffix_list: &[u8]) -> Result<Self> {
        if Series::new(&*store, layout::MANIFESTS).newest(Known::Nothing)?.is_some() {
            return Err(Error::AlreadyALake { place: store.place() });
        }
        Self::begin(store, now, nonce, suffix_list, Manifest::empty(), 1)
    }

    /// Begins a series of manifests with one whose number is one more than `first` has, and fills it up with the same from
    /// number `from` on, where it goes on after older ones.
    pub fn begin(
        store: Arc<dyn Store>,
        now: UnixMillis,
        nonce: &str,
        suffix_list: &[u8],
        first: Manifest,
        from: u64,
    ) -> Result<Self> {
        probe(&*store, nonce)?;
        let lake = Self::new(store);
        let suffix_list = lake.put_suffix_list(suffix_list)?;
        let sequence = first.sequence.saturating_add(1);
        let (written, writer, suffix_list) = (now.to_string(), nonce.to_owned(), Some(suffix_list));
        // A lake that is begun again after it lost its manifests is still the same one, where anybody knows which it was.
        let lake_id = if first.lake_id.is_empty() { nonce.to_owned() } else { first.lake_id };
        let first = Manifest { sequence, lake_id, written, writer, suffix_list, ..first };
        lake.fill(&first, from, sequence.saturating_sub(1))?;
        let bytes = first.to_json();
        if !claim(&*lake.store, &lake.series().path(sequence), &bytes)? {
            return Err(Error::AlreadyALake { place: lake.store.place() });
        }
        lake.store.put(layout::MANIFEST_COPY, &bytes)?;
        lake.remember(State { number: sequence, bytes: bytes.into() })?;
        Ok(lake)
    }

    /// Opens a lake.
    pub fn open(store: Arc<dyn Store>) -> Result<Self> {
        let lake = Self::new(store);
        lake.current()?;
        Ok(lake)
    }

    /// Opens a lake of whatever program, to upgrade it.
    pub fn open_old(store: Arc<dyn Store>) -> Result<Self> {
        let lake = Self { old: true, ..Self::new(store) };
        lake.current()?;
        Ok(lake)
    }

    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, seen: Mutex::new(None), bases: Bases::default(), sizes: Sizes::default(), old: false }
    }

    /// The same lake, whose commits keep to other sizes: for tests, which have no thousands of datasets.
    #[must_use]
    pub fn with_sizes(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// A manifest of this lake from its text.
    pub fn parse_manifest(&self, path: &str, bytes: &[u8]) -> Result<Manifest> {
        read_manifest(&*self.store, &self.bases, path, bytes)
    }

    /// The manifest of a state, which need not be parsed if it is the one seen last.
    fn manifest_of(&self, state: &State) -> Result<Arc<Manifest>> {
        let seen =
            self.lock().clone().filter(|seen| seen.state.number == state.number && seen.state.bytes == state.bytes);
        match seen {
            Some(seen) => Ok(seen.manifest),
            None => Ok(Arc::new(self.parse_manifest(&self.series().path(state.number), &state.bytes)?)),
        }
    }

    /// The text of `after`, the state that follows `before`: whole while that is short, else what differs from a checkpoint,
    /// which is written first where the last one has become too old.
    fn encode(&self, before_text: &[u8], before: &Arc<Manifest>, after: &Manifest) -> Result<Vec<u8>> {
        let path = self.series().path(after.sequence);
        let (_, known) = base_of(&path, before_text)?;
        if known.is_none() {
            let whole = after.to_json();
            if whole.len() as u64 <= self.sizes.whole {
                // What is written must be readable: a bad name is the caller's error, not the next reader's.
                Manifest::parse(&path, &whole)?;
                return Ok(whole);
            }
        }
        let relative = |base: &Base, from: &Manifest| -> Result<Vec<u8>> {
            let mut wire = after.to_wire(Some((from, base)));
            put_deny(&*self.store, &mut wire)?;
            let text = wire.to_json();
            let read = self.parse_manifest(&path, &text)?;
            // A state that cannot be written so, such as one that came from elsewhere, is written whole.
            Ok(if read == *after { text } else { after.to_json() })
        };
        let fits = |text: &[u8], base: &Base| {
            let (bytes, commits) = (text.len() as u64, after.sequence.saturating_sub(base.sequence));
            // What has been spent on differences, against what a checkpoint costs.
            bytes <= self.sizes.relative || bytes.saturating_mul(commits) / 2 < base.bytes
        };
        if let Some(base) = known {
            // Read again only if the manifest before was not read through this lake.
            let from = self.parse_manifest(&path, before_text).map(|_| self.bases.get(&base))?;
            if let Some(from) = from {
                let text = relative(&base, &from)?;
                if fits(&text, &base) {
                    return Ok(text);
                }
            }
        }
        let base = write_checkpoint(&*self.store, before)?;
        self.bases.set(base.clone(), before.clone());
        relative(&base, before)
    }

    /// Where its objects are.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn series(&self) -> Series<'_> {
        Series::new(&*self.store, layout::MANIFESTS)
    }

    /// The newest state. If nothing has changed since the last call, two questions that move no bytes.
    pub fn current(&self) -> Result<Arc<Manifest>> {
        let seen = self.lock().as_ref().map(|seen| seen.state.clone());
        self.remember(self.newest(seen)?)
    }

    /// The newest state, searched from one that was seen before; without, or if that one is gone, from the copy on.
    pub(crate) fn newest(&self, seen: Option<State>) -> Result<State> {
        let series = self.series();
        let remote = self.store.is_remote();
        if let Some(seen) = seen {
            let number = seen.number;
            if remote && self.is_newest(&seen, None)? {
                return Ok(seen);
            }
            if let Some(newest) = series.newest(Known::State(seen))?.filter(|newest| newest.number >= number) {
                return Ok(newest);
            }
        }
        let copy = self.copy()?;
        if let Some(copy) = copy.as_ref().filter(|_| remote)
            && self.is_newest(copy, Some(&copy.bytes))?
        {
            return Ok(copy.clone());
        }
        let newest = series.newest(copy.as_ref().map_or(Known::Nothing, |copy| Known::Number(copy.number)))?;
        let newest = newest.ok_or_else(|| Error::NotALake { place: self.store.place() })?;
        // A copy is written after what it is a copy of, and was read before: if it is ahead, the newest ones are gone. It is
        // whole, and older ones would answer what was taken down since.
        Ok(copy.filter(|copy| copy.number > newest.number).unwrap_or(newest))
    }

    /// Whether a state is there and none follows it: all that must be asked, at the same time. So is the checkpoint of the
    /// manifest `text`, which is needed next.
    fn is_newest(&self, state: &State, text: Option<&[u8]>) -> Result<bool> {
        let series = self.series();
        let next = series.path(state.number.saturating_add(1));
        std::thread::scope(|scope| {
            let base = text.map(|text| scope.spawn(|| drop(self.parse_manifest(layout::MANIFEST_COPY, text))));
            let follows = scope.spawn(|| self.store.exists(&next));
            let here = self.store.exists(&series.path(state.number));
            let lost = || Error::Refused { reason: "a thread that asked the store ended without an answer".into() };
            let follows = follows.join().map_err(|_| lost())?;
            if let Some(base) = base {
                // What it found out is remembered; if it failed, reading the manifest fails and says why.
                let _ = base.join();
            }
            // In this order, as in a search: a successor that was collected leaves no predecessor.
            Ok(!follows? && here?)
        })
    }

    /// The state seen last, without asking the store.
    pub fn seen(&self) -> Option<Arc<Manifest>> {
        self.lock().as_ref().map(|seen| seen.manifest.clone())
    }

    /// State `sequence`, or `None` if it never was or has been collected.
    pub fn manifest(&self, sequence: u64) -> Result<Option<Manifest>> {
        let series = self.series();
        series.get(sequence)?.map(|state| self.parse_manifest(&series.path(sequence), &state.bytes)).transpose()
    }

    /// State `sequence` and the checkpoint it refers to, if any.
    pub fn manifest_and_base(&self, sequence: u64) -> Result<Option<(Manifest, Option<Base>)>> {
        let series = self.series();
        let Some(state) = series.get(sequence)? else { return Ok(None) };
        let path = series.path(sequence);
        Ok(Some((self.parse_manifest(&path, &state.bytes)?, base_of(&path, &state.bytes)?.1)))
    }

    /// The state of a checkpoint, if it was the one read last.
    pub(crate) fn known_base(&self, base: &Base) -> Option<Arc<Manifest>> {
        self.bases.get(base)
    }

    /// The copy, if it is one.
    fn copy(&self) -> Result<Option<State>> {
        match self.store.get(layout::MANIFEST_COPY, MAX_STATE_BYTES) {
            Ok(bytes) => {
                // Its number and its checksum: what it says is read from the numbered one, if there is one.
                let whole = check_head(layout::MANIFEST_COPY, &bytes, RELATIVE_FORMAT);
                let number =
                    whole.and_then(|()| base_of(layout::MANIFEST_COPY, &bytes)).map_or(0, |(number, _)| number);
                Ok(Some(State { number, bytes }).filter(|copy| copy.number > 0))
            }
            Err(e) if e.is_not_found() || matches!(e, Error::OverLimit { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn remember(&self, state: State) -> Result<Arc<Manifest>> {
        // A younger one that is gone was never collected before this one: the lake was put back to an older state.
        let younger = self.lock().as_ref().map(|seen| seen.state.number).filter(|seen| *seen > state.number);
        let put_back = younger.filter(|number| !self.store.exists(&self.series().path(*number)).unwrap_or(true));
        let mut seen = self.lock();
        if let Some(seen) = &*seen
            && seen.state.number >= state.number
            && Some(seen.state.number) != put_back
        {
            return Ok(seen.manifest.clone());
        }
        let manifest = Arc::new(self.parse_manifest(&self.series().path(state.number), &state.bytes)?);
        if manifest.format < crate::manifest::MANIFEST_FORMAT && !self.old {
            return Err(Error::OldLayout { place: self.store.place() });
        }
        *seen = Some(Seen { state, manifest: manifest.clone() });
        Ok(manifest)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Seen>> {
        // What it guards is replaced whole, so a panic elsewhere leaves it sound.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the manifest: `change` gets the newest state, and runs again on a newer one whenever another writer was
    /// faster. A change that changes nothing commits nothing. `writer` must be new for each operation, and is refused if a
    /// collector gave it up.
    ///
    /// After [`Error::Unsettled`] it is unknown whether the commit was made; after any other error it was not. A change of the
    /// deny list is done once it is recorded beside the datasets too, and is unsettled while only this is missing: the next
    /// commit sees to it.
    pub fn commit<T>(
        &self,
        now: UnixMillis,
        writer: &str,
        mut change: impl FnMut(&mut Manifest) -> Result<T>,
    ) -> Result<Committed<T>> {
        crate::check_name(writer)?;
        let series = self.series();
        let (mut value, mut denies) = (None, false);
        // In this order: a list is recorded after its manifest.
        let recorded = deny_record(&*self.store).ok().flatten().map_or(0, |record| record.manifest);
        let newest = self.newest(None)?;
        self.fill_up(&newest)?;
        let (state, made) = series.append(Known::State(newest), 0, |newest| {
            let newest = newest.ok_or_else(|| Error::NotALake { place: self.store.place() })?;
            if newest.number < recorded {
                return Err(lost_manifest(newest.number, recorded));
            }
            let before = self.manifest_of(newest)?;
            before.refuse_revoked(writer)?;
            let mut after = (*before).clone();
            value = Some(change(&mut after)?);
            if after == *before {
                return Ok(None);
            }
            denies = after.deny != before.deny;
            after.format = crate::manifest::MANIFEST_FORMAT;
            after.sequence = newest.number.saturating_add(1);
            after.written = now.to_string();
            writer.clone_into(&mut after.writer);
            let bytes = self.encode(&newest.bytes, &before, &after)?;
            crate::series::check_size(&series.path(after.sequence), bytes.len())?;
            Ok(Some(bytes))
        })?;
        let (Some(value), Some(state)) = (value, state) else {
            return Err(Error::NotALake { place: self.store.place() });
        };
        let own = self.manifest_of(&state)?;
        // A takedown that was acknowledged must outlive index/; whether it is seen by simple readers comes after that.
        let recorded = self.record_deny(&own, writer, made && denies);
        // Behind may also be that of a writer that did not hear of its commit, or was cut after it: a collector would take what
        // simple readers find there.
        let behind = || self.copy().map_or(true, |copy| copy.is_none_or(|copy| copy.number < state.number));
        let copy_error = if made || behind() { self.refresh_copy(state).err() } else { None };
        let copy_error = match recorded {
            // Also if nothing is changed: this may be the repetition of what ended here.
            Err(error) if denies || !made => return Err(error.unsettled(layout::DENY)),
            recorded => copy_error.or(recorded.err()),
        };
        Ok(Committed { value, manifest: own, copy_error })
    }

    /// Copies `state` to `index/manifest.json`, and any newer one that has appeared meanwhile: the last writer
    /// looks again, so the copy ends up with the newest.
    pub(crate) fn refresh_copy(&self, mut state: State) -> Result<()> {
        loop {
            self.remember(state.clone())?;
            self.store.put(layout::MANIFEST_COPY, &state.bytes)?;
            match self.series().newest(Known::State(state.clone()))? {
                Some(newer) if newer.number > state.number => state = newer,
                _ => return Ok(()),
            }
        }
    }

    /// Registers a dataset, or finds the one that has the name.
    pub fn register_dataset(&self, now: UnixMillis, writer: &str, info: &DatasetInfo) -> Result<u32> {
        Ok(self.commit(now, writer, |manifest| manifest.register(now, info.clone()))?.value)
    }

    /// Takes a dataset off the registry that was registered for an ingest that failed: if it has no commit and nobody writes
    /// to it. Its id stays taken. Tells whether it did.
    pub fn withdraw_dataset(&self, now: UnixMillis, writer: &str, dataset_id: u32) -> Result<bool> {
        let dir = format!("{}/", layout::dataset_dir(dataset_id));
        // The heartbeat of the ingest that failed stays while it is unknown whether its commit was made.
        let is_here = |beat: &Heartbeat| beat.prefixes.iter().any(|p| p.starts_with(&dir));
        if self.heartbeats()?.iter().any(is_here) || self.dataset_newest(dataset_id)?.is_some() {
            return Ok(false);
        }
        let committed = self.commit(now, writer, |manifest| {
            let before = manifest.datasets.len();
            manifest.datasets.retain(|dataset| dataset.id != dataset_id);
            Ok(manifest.datasets.len() < before)
        })?;
        Ok(committed.value)
    }

    /// Registers a dataset again, under its id, if somebody withdrew it while another was filling it.
    pub fn reinstate_dataset(&self, now: UnixMillis, writer: &str, dataset: &Dataset) -> Result<()> {
        self.commit(now, writer, |manifest| {
            let Err(at) = manifest.datasets.binary_search_by_key(&dataset.id, |d| d.id) else { return Ok(()) };
            if let Some(other) = manifest.dataset_named(&dataset.info.name) {
                let (name, id, other) = (&dataset.info.name, dataset.id, other.id);
                let reason = format!("dataset {id} was withdrawn, and {name:?} is now dataset {other}: ingest again");
                return Err(Error::Refused { reason });
            }
            manifest.datasets.insert(at, Arc::new(dataset.clone()));
            Ok(())
        })?;
        Ok(())
    }

    /// Drops a dataset: from now on it is answered nowhere, and its files go with a later collection. Its id stays taken.
    ///
    /// Its own commit comes first, so that no writer can commit into a dataset of which the registry knows no more; a
    /// drop that ends between the two is repeated.
    pub fn drop_dataset(&self, now: UnixMillis, writer: &str, dataset_id: u32) -> Result<()> {
        let unknown = || Error::UnknownDataset { found: dataset_id.to_string() };
        self.current()?.dataset(dataset_id).ok_or_else(unknown)?;
        // What goes need not be readable, nor there.
        let damaged = |error: Error| match error {
            Error::Corrupt { .. } | Error::Lost { .. } => Ok(DatasetCommit::empty(dataset_id)),
            error => Err(error),
        };
        self.commit_over(dataset_id, now, writer, self.served(dataset_id)?, damaged, |commit| {
            let alive = !commit.is_dropped();
            if alive {
                commit.clear();
            }
            Ok(alive)
        })?;
        self.commit(now, writer, |manifest| manifest.drop_dataset(now, dataset_id))?;
        Ok(())
    }

    /// Stores a suffix list under the hash of its bytes; naming it in the manifest is the caller's commit.
    pub fn put_suffix_list(&self, bytes: &[u8]) -> Result<SuffixListRef> {
        let hash = suffix_list_hash(bytes);
        let path = layout::suffix_list(&hash)?;
        let list = SuffixListRef { path, hash };
        // Equal names have equal bytes, so who won does not matter, unless those there are damaged.
        if !claim(&*self.store, &list.path, bytes)? {
            self.store.put(&list.path, bytes)?;
        }
        // A lake that loses `index/` gets it from there. Read back whole, since another compressor gives other bytes.
        if read_list_copy(&*self.store, &list.hash)?.is_none() {
            let broken = |error: std::io::Error| Error::Refused { reason: format!("cannot compress a list: {error}") };
            let packed = zstd::encode_all(bytes, 9).map_err(broken)?;
            self.store.put(&layout::suffix_list_copy(&list.hash)?, &packed)?;
        }
        Ok(list)
    }

    /// The suffix list `manifest` names, its hash checked.
    pub fn suffix_list(&self, manifest: &Manifest) -> Result<Bytes> {
        let named = manifest
            .suffix_list
            .as_ref()
            .ok_or_else(|| Error::Refused { reason: "the manifest names no suffix list".into() })?;
        self.stored_suffix_list(named)
    }

    /// A suffix list of the lake, its hash checked.
    pub fn stored_suffix_list(&self, named: &SuffixListRef) -> Result<Bytes> {
        read_suffix_list(&*self.store, named)
    }
}

/// A suffix list by its name, its hash checked; from its copy, if it is lost or damaged.
pub fn read_suffix_list(store: &dyn Store, named: &SuffixListRef) -> Result<Bytes> {
    match read_list(store, named) {
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. } | Error::OverLimit { .. }) => {
            read_list_copy(store, &named.hash)?.ok_or(error)
        }
        read => read,
    }
}

/// The same without the copy.
pub fn read_list(store: &dyn Store, named: &SuffixListRef) -> Result<Bytes> {
    let bytes = store.get(&named.path, MAX_SUFFIX_LIST_BYTES)?;
    let found = suffix_list_hash(&bytes);
    if found != named.hash {
        let found = format!("hash {found}");
        let expected = "the suffix list of that hash";
        return Err(Error::Corrupt { path: named.path.clone(), offset: 0, expected, found });
    }
    Ok(bytes)
}

/// The copy of a suffix list. `None`: there is none, or none that can be read.
pub fn read_list_copy(store: &dyn Store, hash: &str) -> Result<Option<Bytes>> {
    use std::io::Read;
    let packed = match store.get(&layout::suffix_list_copy(hash)?, MAX_SUFFIX_LIST_BYTES) {
        Err(error) if error.is_not_found() || matches!(error, Error::OverLimit { .. }) => return Ok(None),
        packed => packed?,
    };
    let mut bytes = Vec::new();
    let read = zstd::Decoder::new(&*packed).and_then(|d| d.take(MAX_SUFFIX_LIST_BYTES).read_to_end(&mut bytes));
    Ok(read.is_ok().then(|| Bytes::from(bytes)).filter(|bytes| suffix_list_hash(bytes) == hash))
}
