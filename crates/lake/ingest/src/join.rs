//! What an ingest has read and written joins what its dataset is by now.
//!
//! Others may have written meanwhile. Rows of all sources are in the same files, so nothing can be left out of them: what
//! does not fit the dataset any more is refused, whole.

use crate::replace::Replaced;
use crate::run::{OTHER_LIST, Suffixes, Written};
use crate::settings::Mode;
use crate::source::{Grown, Source, of_name};
use crate::stale::{self, Losing};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use trawl_model::{SourceIdentity, UrlSource};
use trawl_store::denial::Denied;
use trawl_store::manifest::Deny;
use trawl_store::{CommitMode, DataFile, DatasetCommit, Error, KnownSource, Lake, Manifest, Result, Stamp};

/// A source that an ingest takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// Which it is.
    pub known: KnownSource,
    /// What the dataset had of its name when it was opened ([`Source::known_by_name`]).
    pub by_name: Option<Vec<SourceIdentity>>,
    /// What it was when it was taken before.
    #[serde(skip)]
    pub grown: Option<Grown>,
}

impl Taken {
    pub fn new(source: &Source) -> Self {
        let known = KnownSource { stamp: source.stamp, ..KnownSource::new(source.identity()) };
        Self { known, by_name: source.known_by_name.clone(), grown: source.grown.clone() }
    }
}

/// What an ingest began with.
pub(crate) struct Joining<'a> {
    pub lake: &'a Lake,
    pub mode: Mode,
    pub allow_empty: bool,
    pub suffixes: &'a Suffixes,
    /// The lake when the ingest began.
    pub began: &'a Manifest,
    /// The new sources.
    pub taken: &'a [Taken],
    /// Sources that were named too, and that the dataset has.
    pub skipped: &'a [SourceIdentity],
    pub stamped: &'a [(SourceIdentity, Stamp)],
    pub losing: &'a [Losing<'a>],
    /// What changed sources had brought.
    pub replaced: &'a Replaced,
}

impl Joining<'_> {
    /// Refuses what does not fit any more. How many entries the deny list got meanwhile that cover rows of `files`.
    pub fn check(&self, commit: &DatasetCommit, files: &[DataFile]) -> Result<u64> {
        // A lake that changed its suffix list meanwhile would get rows cut by another one.
        let current = self.lake.current()?;
        let hash = current.suffix_list.as_ref().map(|list| list.hash.clone()).unwrap_or_default();
        if hash != self.suffixes.hash {
            return refuse("the lake's suffix list changed during the ingest; run it again");
        }
        let since = Manifest { deny: new_entries(self.began, &current), ..Manifest::empty() };
        let denied = Denied::new(&since, &self.suffixes.list);
        if denied.list().dataset(commit.dataset_id) {
            return refuse(DENIED);
        }
        if self.mode == Mode::Replace {
            if files.is_empty() && !commit.files.is_empty() && !self.allow_empty {
                return refuse(no_rows(commit.rows));
            }
        } else {
            self.check_append(commit)?;
        }
        // No answer shows such rows, so they do not make the work in vain.
        let covers_rows = !denied.is_empty() && files.iter().any(|file| denied.may_be_in(file));
        Ok(if covers_rows { since.deny.len() as u64 } else { 0 })
    }

    /// Whether entries of the deny list went meanwhile.
    pub fn some_allowed_since(&self) -> Result<bool> {
        Ok(!new_entries(&*self.lake.current()?, self.began).is_empty())
    }

    fn check_append(&self, commit: &DatasetCommit) -> Result<()> {
        if !commit.files.is_empty() && commit.suffix_list != self.suffixes.hash {
            return refuse(OTHER_LIST);
        }
        let again = |new: &KnownSource| self.replaced.sources.contains(&new.identity);
        let mut new = self.taken.iter().map(|taken| &taken.known);
        if let Some(twice) = new.find(|new| commit.has_source(&new.identity) && !again(new)) {
            let uri = &twice.identity.uri;
            return refuse(format!("another writer ingested {uri} meanwhile; run again to skip it"));
        }
        unchanged_since(self.taken, commit)
    }

    /// Puts what was written into `commit`.
    pub fn join(&self, commit: &mut DatasetCommit, written: &Written) -> Result<()> {
        commit.mode = CommitMode::Append;
        if !self.replaced.sources.is_empty() {
            commit.mode = CommitMode::Replace;
            // All that were named, as when it was planned: one that is skipped has what it was before taken out, too.
            let taken = self.taken.iter().map(|new| &new.known.identity);
            let given: Vec<_> = taken.chain(self.skipped).cloned().collect();
            let rows = self.replaced.take_out(commit, &given)?;
            // Where all of them are skipped, the dataset has the rows that stay.
            if rows > 0 && written.files.is_empty() && !self.taken.is_empty() && !self.allow_empty {
                return refuse(no_rows(rows));
            }
        }
        if self.mode == Mode::Replace {
            commit.mode = CommitMode::Replace;
            commit.files.clear();
            commit.sources.clear();
        }
        let mut was = HashMap::new();
        for grown in self.taken.iter().filter_map(|taken| taken.grown.as_ref()) {
            let Some(known) = commit.remove_source(&grown.known) else { return refuse(changed_name(&grown.known.uri)) };
            was.insert(&grown.known, known);
        }
        for losing in self.losing {
            let Some(at) = commit.files.iter().position(|file| file.path == losing.file.path) else {
                return refuse("another writer replaced files that were being rewritten; run again");
            };
            commit.files.remove(at);
        }
        note_stamps(commit, self.stamped);
        commit.files.extend(written.files.iter().cloned());
        for (number, Taken { known: new, grown, .. }) in self.taken.iter().enumerate() {
            let tail = match (written.tails.of(number), grown) {
                (Some(url), _) => url.map(stale::tail_of),
                // Nothing came since, and the last record is what it was.
                (None, Some(Grown { known, stale: None })) => was.get(known).and_then(|known| known.tail.clone()),
                (None, _) => None,
            };
            commit.add_source(KnownSource { tail, ..new.clone() });
        }
        Ok(())
    }
}

fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Refused { reason: reason.into() })
}

/// Refuses if the dataset has something else of the name of a source than it had when the source was opened: the same file,
/// at another length, whose rows would be there twice.
pub(crate) fn unchanged_since(taken: &[Taken], commit: &DatasetCommit) -> Result<()> {
    for Taken { known, by_name, .. } in taken {
        let uri = &known.identity.uri;
        let now = of_name(&commit.sources, uri).iter().map(|known| &known.identity);
        if by_name.as_ref().is_some_and(|opened| now.ne(opened)) {
            return refuse(changed_name(uri));
        }
    }
    Ok(())
}

fn no_rows(before: u64) -> String {
    format!(
        "the sources hold no rows, and {before} rows of the dataset would be removed: allow that with --allow-empty"
    )
}

fn changed_name(uri: &str) -> String {
    format!("another writer changed what the dataset has of {uri} meanwhile; run again")
}

/// Why a dataset takes nothing.
pub(crate) const DENIED: &str = "the dataset is denied: `trawl lake deny remove --dataset` allows it again";

/// The entries of a deny list that an earlier state had not.
fn new_entries(before: &Manifest, after: &Manifest) -> Vec<Deny> {
    // New ones come last, so there is mostly nothing to compare.
    let same = before.deny.iter().zip(&after.deny).take_while(|(old, new)| old == new).count();
    let old: HashSet<_> = before.deny.iter().skip(same).map(|deny| &deny.target).collect();
    let new = after.deny.iter().skip(same);
    new.filter(|deny| !old.contains(&deny.target)).cloned().collect()
}

/// Tells of sources that the dataset has what is said of them now; whether there was anything to tell.
pub(crate) fn note_stamps(commit: &mut DatasetCommit, stamped: &[(SourceIdentity, Stamp)]) -> bool {
    let mut changed = false;
    for (identity, stamp) in stamped {
        let known = commit.known_source(identity).filter(|known| known.stamp != Some(*stamp)).cloned();
        if let Some(known) = known {
            commit.add_source(KnownSource { stamp: Some(*stamp), ..known });
            changed = true;
        }
    }
    changed
}
