//! A lake whose `index/` is lost, from its dataset commits alone.

use crate::gc::{dataset_of, states};
use crate::lake::MAX_COPY_BYTES;
use crate::series::{Known, Series};
use crate::{CommitMode, Created, Dataset, DatasetCommit, DatasetInfo, Error, Lake, Manifest, Result, Store, layout};
use std::collections::BTreeSet;
use std::sync::Arc;
use trawl_model::UnixMillis;

/// What the dataset commits tell of the lake they are of. The deny list is not among it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remains {
    /// The datasets by rising id, with what the registry knew of them at their last commit.
    pub datasets: Vec<Dataset>,
    /// Hashes of the suffix lists by which their rows are cut into domains; more than one if a change was interrupted.
    pub suffix_lists: BTreeSet<String>,
    /// Datasets whose commits tell no name: they are called `dataset-<id>`.
    pub nameless: Vec<u32>,
    next_dataset_id: u32,
}

/// Reads the newest commit of every dataset there is below `urls/`.
pub fn remains(store: &dyn Store) -> Result<Remains> {
    let ids: BTreeSet<u32> = store.list("urls")?.iter().filter_map(|listed| dataset_of(&listed.path)).collect();
    let next_dataset_id = ids.last().map_or(1, |last| last.saturating_add(1));
    let mut found =
        Remains { datasets: Vec::new(), suffix_lists: BTreeSet::new(), nameless: Vec::new(), next_dataset_id };
    let mut names = BTreeSet::new();
    for id in ids {
        let dir = layout::commits_dir(id);
        let series = Series { store, dir: &dir };
        let Some(state) = series.newest(Known::Nothing)? else { continue };
        let path = series.path(state.number);
        let commit = DatasetCommit::parse(&path, &state.bytes)?;
        if (commit.dataset_id, commit.sequence) != (id, state.number) {
            let found = format!("dataset {}, number {}", commit.dataset_id, commit.sequence);
            return Err(Error::Corrupt { path, offset: 0, expected: "the dataset and number of its path", found });
        }
        if !commit.files.is_empty() {
            found.suffix_lists.insert(commit.suffix_list);
        }
        let dropped = commit.mode == CommitMode::Drop;
        let info = match commit.about {
            Some(info) if info.check().is_ok() && (dropped || !names.contains(&info.name)) => info,
            _ => {
                found.nameless.push(id);
                DatasetInfo::named(free_name(id, &names))
            }
        };
        if !dropped {
            names.insert(info.name.clone());
        }
        // The oldest commit that is left is the nearest to the day it was registered.
        let oldest = states(store, &dir)?.first().and_then(|(_, number)| series.get(*number).ok().flatten());
        let oldest = oldest.and_then(|state| DatasetCommit::parse(&path, &state.bytes).ok());
        let created = oldest.map_or(commit.written, |oldest| oldest.written);
        found.datasets.push(Dataset { id, info, created, dropped });
    }
    Ok(found)
}

fn free_name(id: u32, taken: &BTreeSet<String>) -> String {
    let mut name = format!("dataset-{id}");
    while taken.contains(&name) {
        name.push('+');
    }
    name
}

impl Lake {
    /// Makes the lake of `remains` anew, with one manifest that names its datasets and no version; an index is the
    /// caller's next step. `nonce` names the probe and must be new.
    pub fn restore(
        store: Arc<dyn Store>,
        now: UnixMillis,
        nonce: &str,
        suffix_list: &[u8],
        remains: &Remains,
    ) -> Result<Self> {
        let (datasets, next_dataset_id) = (remains.datasets.clone(), remains.next_dataset_id);
        Self::init_with(store, now, nonce, suffix_list, Manifest { datasets, next_dataset_id, ..Manifest::empty() })
    }

    /// Opens a lake whose numbered manifests are lost while the copy of a recent one is there: deny list and all.
    /// `None`: there is no copy, or it cannot be relied on.
    pub fn restore_from_copy(store: Arc<dyn Store>) -> Result<Option<Self>> {
        let bytes = match store.get(layout::MANIFEST_COPY, MAX_COPY_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match Manifest::parse(layout::MANIFEST_COPY, &bytes) {
            Ok(copy) if copy.sequence > 0 => {
                if store.create(&layout::numbered(layout::MANIFESTS, copy.sequence), &bytes)? == Created::Exists {
                    return Err(Error::AlreadyALake { place: store.place() });
                }
                Self::open(store).map(Some)
            }
            _ => Ok(None),
        }
    }
}
