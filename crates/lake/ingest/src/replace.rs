//! Which files go when sources of a dataset have changed.
//!
//! ```text
//! commit 3   files of 3: rows of a.txt and b.txt      a.txt changed: they go, and a.txt and b.txt are read again
//! commit 4   files of 4: rows of c.txt                stay
//! ```
//! Rows do not tell which source they came from, but each source tells which commits' files have its rows. So what is
//! replaced is whole groups of files, with all sources that are in them.

use crate::source::{UNFINISHED, of_name};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trawl_model::SourceIdentity;
use trawl_store::{DatasetCommit, Error, KnownSource, Result};

/// What goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replaced {
    /// Files that these commits added.
    pub commits: BTreeSet<u64>,
    /// The sources as the dataset knows them.
    pub sources: Vec<SourceIdentity>,
}

/// At most this many sources are named one by one.
const MAX_NAMES: usize = 5;

impl Replaced {
    /// What goes for `given`, the sources that are there to be read. Refuses if not all are given that are needed.
    pub fn plan(before: &DatasetCommit, given: &[SourceIdentity]) -> Result<Self> {
        let mut names: BTreeMap<&str, BTreeSet<&SourceIdentity>> = BTreeMap::new();
        for identity in given {
            names.entry(&identity.uri).or_default().insert(identity);
        }
        // What is read whole under its final name would be there under the earlier one, too.
        let is_known = |uri: &str| !of_name(&before.sources, uri).is_empty();
        for uri in names.keys() {
            let unfinished = format!("{uri}{UNFINISHED}");
            if is_known(&unfinished) && !is_known(uri) && !names.contains_key(&*unfinished) {
                return refuse(format!(
                    "the dataset has taken {unfinished}, which may be called {uri} now: ingest it without replacing sources, and only \
                     what is new of it is read"
                ));
            }
        }
        let has_changed = |known: &&KnownSource| {
            names.get(known.identity.uri.as_str()).is_some_and(|given| !given.contains(&known.identity))
        };
        let mut going: BTreeSet<&SourceIdentity> =
            before.sources.iter().filter(has_changed).map(|known| &known.identity).collect();
        if going.is_empty() {
            return Ok(Self::default());
        }
        if let Some(unknown) = before.sources.iter().find(|known| known.commits.is_none()) {
            return refuse(format!(
                "the dataset does not know which of its files have the rows of {}, which an earlier program took: ingest all \
                 sources again with --replace",
                unknown.identity.uri
            ));
        }
        let mut commits = BTreeSet::new();
        loop {
            let of = |known: &&KnownSource| going.contains(&known.identity);
            commits.extend(before.sources.iter().filter(of).filter_map(|known| known.commits.as_ref()).flatten());
            let shares = |known: &&KnownSource| known.commits.iter().flatten().any(|number| commits.contains(number));
            let more: Vec<_> = before.sources.iter().filter(shares).map(|known| &known.identity).collect();
            let count = going.len();
            going.extend(more);
            if going.len() == count {
                break;
            }
        }
        let missing: BTreeSet<&str> =
            going.iter().map(|identity| identity.uri.as_str()).filter(|uri| !names.contains_key(uri)).collect();
        if !missing.is_empty() {
            let shown: Vec<&str> = missing.iter().copied().take(MAX_NAMES).collect();
            let more = missing.len().saturating_sub(MAX_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return refuse(format!(
                "rows of {}{more} are in the same files as those of the sources that have changed: name these, too, so that \
                 they can be read again (or ingest all sources with --replace)",
                shown.join(", ")
            ));
        }
        Ok(Self { commits, sources: going.into_iter().cloned().collect() })
    }

    /// Takes out of `commit` what goes. Refuses if that is no longer what was planned.
    pub fn take_out(&self, commit: &mut DatasetCommit, given: &[SourceIdentity]) -> Result<u64> {
        if Self::plan(commit, given)? != *self {
            return refuse(
                "another writer changed what the dataset has of these sources meanwhile; run again".to_owned(),
            );
        }
        let goes = |added: u64| self.commits.contains(&added);
        let rows = commit.files.iter().filter(|file| goes(file.added)).map(|file| file.rows).sum();
        commit.files.retain(|file| !goes(file.added));
        for source in &self.sources {
            commit.remove_source(source);
        }
        Ok(rows)
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Refused { reason })
}
