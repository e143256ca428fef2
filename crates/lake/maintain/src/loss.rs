//! Dataset commits that are gone although the lake serves them, and going on without them.
//!
//! ```text
//! commits  1  2  ·  ·      the lake serves 4: what 3 and 4 brought is not known any more
//!          1  2  ·  ·  5   5 has what is left of 2; the numbers of the lost ones are not used again
//! ```

use trawl_model::UnixMillis;
use trawl_store::{CommitMode, DatasetCommit, Error, Lake, Manifest, Result, Store, layout, newest_commit};

/// A dataset whose newest commits are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostCommits {
    /// The dataset.
    pub dataset_id: u32,
    /// The newest commit that is left; 0 for none.
    pub newest: u64,
    /// The commit that is served.
    pub served: u64,
}

impl LostCommits {
    /// As the error that everybody else who needs the commit gets.
    pub fn error(&self) -> Error {
        let path = layout::numbered(&layout::commits_dir(self.dataset_id), self.served);
        Error::Lost { dataset_id: self.dataset_id, newest: self.newest, path }
    }
}

/// The datasets that `manifest` serves by commits later than any that is there.
pub fn lost_commits(store: &dyn Store, manifest: &Manifest) -> Result<Vec<LostCommits>> {
    let mut lost = Vec::new();
    for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
        let served = manifest.live_commit(dataset.id);
        let newest = newest_commit(store, dataset.id)?.map_or(0, |state| state.number);
        if newest < served {
            lost.push(LostCommits { dataset_id: dataset.id, newest, served });
        }
    }
    Ok(lost)
}

/// What a dataset goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct WentOn {
    /// Its new commit.
    pub commit: DatasetCommit,
    /// Files of the commit before the lost ones that are gone too. Then the dataset has forgotten its sources, since nobody
    /// can tell which of them are still whole.
    pub files_gone: u64,
}

/// Goes on without commits that are lost: makes one after them, of the files that the newest one left names and that are
/// there. What the lost ones brought is gone with that, so only a person decides it.
pub fn accept_loss(lake: &Lake, now: UnixMillis, writer: &str, lost: &LostCommits) -> Result<WentOn> {
    let id = lost.dataset_id;
    let mut left = lake.dataset_commit(id, lost.newest)?.unwrap_or_else(|| DatasetCommit::empty(id));
    let before = left.files.len();
    let mut there = Vec::with_capacity(before);
    for file in left.files {
        if lake.store().exists(&file.path)? {
            there.push(file);
        }
    }
    left.files = there;
    let files_gone = before.saturating_sub(left.files.len()) as u64;
    if files_gone > 0 {
        left.sources.clear();
    }
    let begin = |error: Error| match error {
        Error::Lost { .. } => Ok(left.clone()),
        error => Err(error),
    };
    let (commit, _) = lake.commit_over(id, now, writer, lost.served, begin, |commit| {
        commit.mode = CommitMode::Replace;
        // Somebody else may have done it.
        Ok(commit.sequence < lost.served)
    })?;
    Ok(WentOn { commit, files_gone })
}
