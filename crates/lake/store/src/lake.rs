//! A lake: a store with a series of manifests.

use crate::fill::lost_manifest;
use crate::manifest::{Dataset, DatasetInfo, Manifest, SuffixListRef};
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
        let lake = Self { store, seen: Mutex::new(None) };
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
        let lake = Self { store, seen: Mutex::new(None) };
        lake.current()?;
        Ok(lake)
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
        if let Some(seen) = seen {
            let number = seen.number;
            if let Some(newest) = series.newest(Known::State(seen))?.filter(|newest| newest.number >= number) {
                return Ok(newest);
            }
        }
        let copy = self.copy()?;
        let newest = series.newest(copy.as_ref().map_or(Known::Nothing, |copy| Known::Number(copy.number)))?;
        let newest = newest.ok_or_else(|| Error::NotALake { place: self.store.place() })?;
        // A copy is written after what it is a copy of, and was read before: if it is ahead, the newest ones are gone. It is
        // whole, and older ones would answer what was taken down since.
        Ok(copy.filter(|copy| copy.number > newest.number).unwrap_or(newest))
    }

    /// The state seen last, without asking the store.
    pub fn seen(&self) -> Option<Arc<Manifest>> {
        self.lock().as_ref().map(|seen| seen.manifest.clone())
    }

    /// State `sequence`, or `None` if it never was or has been collected.
    pub fn manifest(&self, sequence: u64) -> Result<Option<Manifest>> {
        let series = self.series();
        series.get(sequence)?.map(|state| Manifest::parse(&series.path(sequence), &state.bytes)).transpose()
    }

    /// The copy, if it is one.
    fn copy(&self) -> Result<Option<State>> {
        match self.store.get(layout::MANIFEST_COPY, MAX_STATE_BYTES) {
            Ok(bytes) => {
                let number = Manifest::parse(layout::MANIFEST_COPY, &bytes).map_or(0, |copy| copy.sequence);
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
        let manifest = Arc::new(Manifest::parse(&self.series().path(state.number), &state.bytes)?);
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
    /// After [`Error::Unsettled`] nobody knows whether the commit was made; after any other error it was not. A change of the
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
            let before = Manifest::parse(&series.path(newest.number), &newest.bytes)?;
            before.refuse_revoked(writer)?;
            let mut after = before.clone();
            value = Some(change(&mut after)?);
            if after == before {
                return Ok(None);
            }
            denies = after.deny != before.deny;
            after.format = crate::manifest::MANIFEST_FORMAT;
            after.sequence = newest.number.saturating_add(1);
            after.written = now.to_string();
            writer.clone_into(&mut after.writer);
            let bytes = after.to_json();
            // What is written must be readable: a bad name is the caller's error, not the next reader's.
            crate::series::check_size(&series.path(after.sequence), bytes.len())?;
            Manifest::parse(&series.path(after.sequence), &bytes)?;
            Ok(Some(bytes))
        })?;
        let (Some(value), Some(state)) = (value, state) else {
            return Err(Error::NotALake { place: self.store.place() });
        };
        let own = Arc::new(Manifest::parse(&series.path(state.number), &state.bytes)?);
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

    /// Copies `state` to `index/manifest.json`, and any newer one that has appeared meanwhile: whoever writes the copy
    /// last looks again, so it ends up with the newest.
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
        // The heartbeat of the ingest that failed stays while nobody knows whether its commit was made.
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
            manifest.datasets.insert(at, dataset.clone());
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
        self.commit(now, writer, |manifest| {
            manifest.dataset_mut(dataset_id).ok_or_else(unknown)?.dropped = true;
            Ok(())
        })?;
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

/// A suffix list by its name, its hash checked.
pub fn read_suffix_list(store: &dyn Store, named: &SuffixListRef) -> Result<Bytes> {
    let bytes = store.get(&named.path, MAX_SUFFIX_LIST_BYTES)?;
    let found = suffix_list_hash(&bytes);
    if found != named.hash {
        let found = format!("hash {found}");
        let expected = "the suffix list of that hash";
        return Err(Error::Corrupt { path: named.path.clone(), offset: 0, expected, found });
    }
    Ok(bytes)
}
