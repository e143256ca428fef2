//! A numbered series of immutable JSON files: how a lake and each of its datasets move from state to state.
//!
//! ```text
//! read state n ── change it ── create n+1 if absent ──it is ours──► done
//!      ▲                              │it is another's: that writer was faster
//!      └──────────────────────────────┘
//! ```
//! Whose it is tells the object itself, which has the id of its writer in it, not the store's answer ([`claim`]). If nobody can
//! tell, this ends with [`Error::Unsettled`]: trying the next number could commit the change twice.
//!
//! State n+1 exists only after state n, and a collector removes the oldest first. So "n+1 is absent, and afterwards n is
//! present" means that n was the newest.

use crate::layout::{self, number_of, numbered};
use crate::object::claim;
use crate::{Error, Listed, Result, Store};
use bytes::Bytes;

/// Largest state file that is read: 256 MiB of JSON describe some millions of files.
pub const MAX_STATE_BYTES: u64 = 256 << 20;
/// Rounds a loser goes before it gives up. Each lost round is another writer's success.
const MAX_ATTEMPTS: u32 = 100;

/// Refuses a state that no reader would take, before it is written.
pub(crate) fn check_size(path: &str, bytes: usize) -> Result<()> {
    if bytes as u64 > MAX_STATE_BYTES {
        let reason = format!("{path} would have {bytes} bytes, and readers take at most {MAX_STATE_BYTES}");
        return Err(Error::Refused { reason });
    }
    Ok(())
}

/// One state of a series.
#[derive(Debug, Clone)]
pub struct State {
    /// Its number.
    pub number: u64,
    /// Its text.
    pub bytes: Bytes,
}

/// A series below `dir`.
#[derive(Debug)]
pub struct Series<'a> {
    store: &'a dyn Store,
    dir: String,
}

impl<'a> Series<'a> {
    /// The series of states below a directory.
    pub fn new(store: &'a dyn Store, dir: impl Into<String>) -> Self {
        Self { store, dir: dir.into() }
    }

    /// The commits of a dataset.
    pub fn of_dataset(store: &'a dyn Store, dataset_id: u32) -> Self {
        Self::new(store, layout::commits_dir(dataset_id))
    }

    /// Path of a state.
    pub fn path(&self, number: u64) -> String {
        numbered(&self.dir, number)
    }

    /// State `number`, if it exists.
    pub fn get(&self, number: u64) -> Result<Option<State>> {
        match self.store.get(&self.path(number), MAX_STATE_BYTES) {
            Ok(bytes) => Ok(Some(State { number, bytes })),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The newest state, searched from `known` on (a state seen before, or at least its number). `None`: there is none.
    pub fn newest(&self, known: Known) -> Result<Option<State>> {
        let mut newest = match known {
            Known::State(state) => Some(state),
            Known::Number(number) => self.get(number)?,
            Known::Nothing => None,
        };
        for _ in 0..MAX_ATTEMPTS {
            let mut at = match newest {
                Some(state) => state,
                None => match self.highest_listed()? {
                    Some(number) => match self.get(number)? {
                        Some(state) => state,
                        None => {
                            newest = None; // collected between list and get: a newer one exists
                            continue;
                        }
                    },
                    None => return Ok(None),
                },
            };
            while let Some(next) = self.get(next_number(at.number)?)? {
                at = next;
            }
            // Had its successors been collected, it would have gone before them.
            if self.store.exists(&self.path(at.number))? {
                return Ok(Some(at));
            }
            newest = None;
        }
        Err(Error::Contended { path: self.dir.clone(), attempts: MAX_ATTEMPTS })
    }

    /// The highest number there is a state of.
    pub fn highest_listed(&self) -> Result<Option<u64>> {
        Ok(self.listed()?.last().map(|(_, number)| *number))
    }

    /// Paths and numbers of the states there are, by rising number.
    pub fn listed(&self) -> Result<Vec<(String, u64)>> {
        let listed = self.store.list(&self.dir)?.into_iter();
        let mut states: Vec<_> = listed.filter_map(|Listed { path, .. }| number_of(&path).map(|n| (path, n))).collect();
        states.sort_unstable_by_key(|(_, number)| *number);
        Ok(states)
    }

    /// Makes the next state out of the newest. `change` answers `None` to leave it as it is; it runs again each time
    /// another writer was faster. Numbers up to `taken` are not used, also if their states are gone. Returns the state that
    /// holds the change and whether this call made it. After any error but [`Error::Unsettled`] it is known that no state
    /// holds it.
    pub(crate) fn append(
        &self,
        mut known: Known,
        taken: u64,
        mut change: impl FnMut(Option<&State>) -> Result<Option<Vec<u8>>>,
    ) -> Result<(Option<State>, bool)> {
        let mut path = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let newest = self.newest(known)?;
            let Some(bytes) = change(newest.as_ref())? else { return Ok((newest, false)) };
            let number = next_number(newest.as_ref().map_or(0, |state| state.number).max(taken))?;
            path = self.path(number);
            if claim(self.store, &path, &bytes)? {
                return Ok((Some(State { number, bytes: bytes.into() }), true));
            }
            known = Known::Number(number);
        }
        Err(Error::Contended { path, attempts: MAX_ATTEMPTS })
    }
}

fn next_number(number: u64) -> Result<u64> {
    number.checked_add(1).ok_or_else(|| Error::Refused { reason: "the series has no further numbers".into() })
}

/// Where a search for the newest state begins.
#[derive(Debug, Clone)]
pub enum Known {
    /// Nothing is known: list.
    Nothing,
    /// A number that existed at some time.
    Number(u64),
    /// A state read before.
    State(State),
}
