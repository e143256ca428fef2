//! A lake whose `index/` is lost, from its dataset commits, and from a manifest where one is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use trawl_model::{Advice, UnixMillis};
use trawl_store::manifest::{Bases, SuffixListRef, read_manifest};
use trawl_store::{
    Dataset, DatasetCommit, DatasetInfo, DenyRecord, Error, Lake, MAX_STATE_BYTES, Manifest, Result, Series, Store,
    deny_record, layout, newest_commit, read_suffix_list,
};

/// What is left of a lake that has lost its numbered manifests.
#[derive(Debug, Clone, PartialEq)]
pub struct Remains {
    /// The datasets by rising id, with what the registry knew of them at their last commit, or what that manifest tells if it
    /// is younger.
    pub datasets: Vec<Dataset>,
    /// Hashes of the suffix lists by which their rows are cut into domains; more than one if a change was interrupted.
    pub suffix_lists: BTreeSet<String>,
    /// Datasets whose commits tell no name: they are called `dataset-<id>`.
    pub nameless: Vec<u32>,
    /// Datasets that were registered after that manifest was written.
    pub younger: Vec<u32>,
    /// The youngest manifest that can be read, mostly the copy `index/manifest.json`, however old it is.
    pub manifest: Option<Manifest>,
    /// The newest record of the deny list; none if nothing was ever denied.
    pub deny: Option<DenyRecord>,
    next_dataset_id: u32,
}

/// Reads the youngest manifest that can be relied on, the newest record of the deny list, and the newest commit of every
/// dataset there is below `urls/` and `datasets/`.
pub fn remains(store: &dyn Store) -> Result<Remains> {
    let manifest = youngest_manifest(store)?;
    let ids: BTreeSet<u32> = store
        .list(layout::URLS)?
        .iter()
        .chain(&store.list(layout::DATASETS)?)
        .filter_map(|listed| layout::dataset_of(&listed.path))
        .collect();
    let next = ids.last().map_or(1, |last| last.saturating_add(1));
    let mut found = Remains {
        datasets: manifest.iter().flat_map(|manifest| &manifest.datasets).map(|dataset| (**dataset).clone()).collect(),
        suffix_lists: BTreeSet::new(),
        nameless: Vec::new(),
        younger: Vec::new(),
        next_dataset_id: next.max(manifest.as_ref().map_or(1, |manifest| manifest.next_dataset_id)),
        deny: deny_record(store)?,
        manifest,
    };
    for id in ids {
        let series = Series::of_dataset(store, id);
        let Some(state) = newest_commit(store, id)? else { continue };
        let path = series.path(state.number);
        let commit = DatasetCommit::parse(&path, &state.bytes)?;
        if (commit.dataset_id, commit.sequence) != (id, state.number) {
            let found = format!("dataset {}, number {}", commit.dataset_id, commit.sequence);
            return Err(Error::Corrupt { path, offset: 0, expected: "the dataset and number of its path", found });
        }
        found.add(&series, id, commit)?;
    }
    found.datasets.sort_by_key(|dataset| dataset.id);
    found.settle_names();
    Ok(found)
}

impl Remains {
    /// Takes in what the newest commit of a dataset tells.
    fn add(&mut self, series: &Series<'_>, id: u32, commit: DatasetCommit) -> Result<()> {
        let dropped = commit.is_dropped();
        if !commit.files.is_empty() {
            self.suffix_lists.insert(commit.suffix_list);
        }
        let about = commit.about.filter(|info| info.check().is_ok());
        if let Some(known) = self.datasets.iter_mut().find(|dataset| dataset.id == id) {
            known.dropped |= dropped;
            let told = self.manifest.as_ref().and_then(|manifest| UnixMillis::parse(&manifest.written).ok());
            if let Some(info) = about.filter(|_| UnixMillis::parse(&commit.written).ok() > told) {
                known.info = info;
            }
            return Ok(());
        }
        // The oldest commit that is left is the nearest to the day it was registered.
        let oldest = series.listed()?.first().and_then(|(_, n)| series.get(*n).ok().flatten());
        let oldest = oldest.and_then(|state| DatasetCommit::parse(&series.path(state.number), &state.bytes).ok());
        let created = oldest.map_or(commit.written, |oldest| oldest.written);
        if self.manifest.is_some() {
            self.younger.push(id);
        }
        // A name that is left empty here is found when all names are known.
        let info = about.unwrap_or_else(|| DatasetInfo::named(""));
        self.datasets.push(Dataset { id, info, created, dropped });
        Ok(())
    }

    /// Gives every dataset that is not dropped a name of its own.
    fn settle_names(&mut self) {
        let mut taken = BTreeSet::new();
        for dataset in &mut self.datasets {
            let free = dataset.dropped || taken.insert(dataset.info.name.clone());
            if dataset.info.name.is_empty() || !free {
                dataset.info.name.clear();
                self.nameless.push(dataset.id);
            }
        }
        for dataset in self.datasets.iter_mut().filter(|dataset| dataset.info.name.is_empty()) {
            dataset.info.name = format!("dataset-{}", dataset.id);
            while !taken.insert(dataset.info.name.clone()) {
                dataset.info.name.push('+');
            }
        }
    }

    /// Suffix lists that will do, the best one first. None: there are no rows, so that any will.
    pub fn wanted_lists(&self) -> Vec<&str> {
        let copied =
            self.manifest.as_ref().and_then(|manifest| manifest.suffix_list.as_ref()).map(|list| list.hash.as_str());
        let copied = copied.filter(|hash| self.suffix_lists.is_empty() || self.suffix_lists.contains(*hash));
        let others = self.suffix_lists.iter().map(String::as_str).filter(|hash| Some(*hash) != copied);
        copied.into_iter().chain(others).collect()
    }
}

/// A suffix list that is still there, by its hash.
pub fn stored_list(store: &dyn Store, hash: &str) -> Result<Option<Vec<u8>>> {
    let named = SuffixListRef { path: layout::suffix_list(hash)?, hash: hash.to_owned() };
    match read_suffix_list(store, &named) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The youngest manifest that can be read: the copy, or a numbered one.
fn youngest_manifest(store: &dyn Store) -> Result<Option<Manifest>> {
    let bases = Bases::default();
    let mut youngest = match store.get(layout::MANIFEST_COPY, MAX_STATE_BYTES) {
        Ok(bytes) => {
            readable(read_manifest(store, &bases, layout::MANIFEST_COPY, &bytes))?.filter(|copy| copy.sequence > 0)
        }
        Err(error) if error.is_not_found() || matches!(error, Error::OverLimit { .. }) => None,
        Err(error) => return Err(error),
    };
    let series = Series::new(store, layout::MANIFESTS);
    for (path, number) in series.listed()?.into_iter().rev() {
        if youngest.as_ref().is_some_and(|youngest| youngest.sequence >= number) {
            break;
        }
        let Some(state) = series.get(number)? else { continue };
        let read = readable(read_manifest(store, &bases, &path, &state.bytes))?;
        youngest = read.filter(|read| read.sequence == number).or(youngest);
    }
    Ok(youngest)
}

/// A manifest, unless it is damaged. A store that does not answer now is an error: the manifest may be whole, and a lake restored from
/// an older one would lack what came since.
fn readable(read: Result<Manifest>) -> Result<Option<Manifest>> {
    match read {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) if error.advice() == Advice::Retry => Err(error),
        Err(_) => Ok(None),
    }
}

/// Makes the lake of `remains` anew, also where the newest numbered manifest is there but damaged: with one manifest that
/// names its datasets, the deny list of the youngest one left or of a later record, and those of its versions whose segments and
/// commits are still there; a new index is the caller's next step. `nonce` names the probe and
/// must be new.
pub fn restore(
    store: Arc<dyn Store>,
    now: UnixMillis,
    nonce: &str,
    suffix_list: &[u8],
    remains: &Remains,
) -> Result<Lake> {
    let mut first = remains.manifest.clone().unwrap_or_else(Manifest::empty);
    let mut whole = Vec::new();
    for version in &first.versions {
        let mut segments = version.segments.iter();
        let is_there = |id: &str| store.exists(&layout::segment_file(id, "segment.json")?);
        let mut commits = version.commits.iter();
        let has = |id: u32, number: u64| store.exists(&layout::numbered(&layout::commits_dir(id), number));
        if !version.segments.is_empty()
            && segments.try_fold(true, |all, s| Ok::<_, Error>(all && is_there(&s.id)?))?
            && commits.try_fold(true, |all, (id, number)| Ok::<_, Error>(all && has(*id, *number)?))?
        {
            whole.push(version.clone());
        }
    }
    first.versions = whole;
    if first.current().is_none() {
        first.current_version = first.versions.last().map(|version| version.version.clone()).unwrap_or_default();
    }
    let recorded = remains.deny.as_ref().filter(|record| record.manifest > first.sequence);
    if let Some(record) = recorded {
        first.deny.clone_from(&record.deny);
        first.sequence = record.manifest;
    }
    let from = match Series::new(&*store, layout::MANIFESTS).highest_listed()? {
        // A series has no gaps.
        Some(highest) => {
            first.sequence = first.sequence.max(highest);
            highest.saturating_add(1)
        }
        // Above every number there ever was, so that readers who knew the lost manifests do not take this for an old
        // one: no lake has a commit a second from 1970 on.
        None => {
            first.sequence = first.sequence.max(u64::try_from(now.0 / 1000).unwrap_or(0));
            first.sequence.saturating_add(1)
        }
    };
    first.datasets = remains.datasets.iter().cloned().map(Arc::new).collect();
    first.next_dataset_id = remains.next_dataset_id;
    Lake::begin(store, now, nonce, suffix_list, first, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_damaged_manifest_is_passed_over() {
        let path = "index/manifests/0000000007.json".to_owned();
        let damaged = Error::Corrupt { path: path.clone(), offset: 0, expected: "a manifest", found: "zeros".into() };
        assert!(readable(Err(damaged)).unwrap().is_none());
        assert!(readable(Err(Error::NotFound { path: path.clone() })).unwrap().is_none());
        let silent = Error::Remote { place: "s3://b".into(), path, op: "get", attempts: 8, cause: "503".into() };
        assert!(matches!(readable(Err(silent)), Err(Error::Remote { .. })));
        assert!(readable(Ok(Manifest::empty())).unwrap().is_some());
    }
}
