//! The copy of a dataset's newest commit, `datasets/N/commit.json`: the same bytes once more.
//!
//! ```text
//! commits 1  2  ·      copy: 3      3 is lost: the copy counts, and the next commit writes 3 again from it
//! commits 1  2  3  4   copy: 3      its writer was cut before it wrote the copy: readers go on from 3
//! ```
//! A commit alone knows which sources its dataset has taken and, until it is published, that its files exist at all. The copy
//! also spares a process that looks for the newest commit the listing of a directory, which on an object store is the dearest
//! request.

use crate::object::claim;
use crate::series::{Known, MAX_STATE_BYTES, Series, State};
use crate::{DatasetCommit, Error, Result, Store, layout};

/// The copy of a dataset's newest commit. `None`: there is none, or none that can be read.
pub fn commit_copy(store: &dyn Store, dataset_id: u32) -> Result<Option<State>> {
    let path = layout::commit_copy(dataset_id);
    let bytes = match store.get(&path, MAX_STATE_BYTES) {
        Err(error) if error.is_not_found() || matches!(error, Error::OverLimit { .. }) => return Ok(None),
        bytes => bytes?,
    };
    let commit = DatasetCommit::parse(&path, &bytes).ok();
    let own = commit.filter(|commit| commit.dataset_id == dataset_id && commit.sequence > 0);
    Ok(own.map(|commit| State { number: commit.sequence, bytes }))
}

/// The newest commit of a dataset, from the copy if the commits have lost it.
pub fn newest_commit(store: &dyn Store, dataset_id: u32) -> Result<Option<State>> {
    let copy = commit_copy(store, dataset_id)?;
    let known = copy.clone().map_or(Known::Nothing, Known::State);
    let newest = Series::of_dataset(store, dataset_id).newest(known)?;
    // The newest commit is never collected, and the copy was read first: one that is ahead has outlived it.
    let ahead = copy.filter(|copy| newest.as_ref().is_none_or(|newest| newest.number < copy.number));
    Ok(ahead.or(newest))
}

/// Writes a lost commit again from its copy, before its number could be given to another.
pub(crate) fn refill(series: &Series<'_>, store: &dyn Store, copy: &State) -> Result<()> {
    let path = series.path(copy.number);
    if !store.exists(&path)? && series.highest_listed()?.is_none_or(|highest| highest < copy.number) {
        // A faster process has written the same.
        claim(store, &path, &copy.bytes)?;
    }
    Ok(())
}

/// Copies a commit, and any newer one that has appeared meanwhile: the last writer of the copy looks again.
pub(crate) fn write_copy(series: &Series<'_>, store: &dyn Store, dataset_id: u32, mut state: State) -> Result<()> {
    loop {
        store.put(&layout::commit_copy(dataset_id), &state.bytes)?;
        match series.get(state.number.saturating_add(1))? {
            Some(newer) => state = newer,
            None => return Ok(()),
        }
    }
}
