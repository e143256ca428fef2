//! What denied rows take from the sums of the whole version.
//!
//! The sums of segments are of all rows there are. Names that the deny list touches are looked up, and what is denied of
//! them is taken off: a few reads for a domain, and the rows of denied URLs and prefixes once, as for any question about
//! them. What was found out is kept while the version is pinned.

use crate::domain::gather;
use crate::pinned::{Found, unmasked};
use crate::postings::Postings;
use crate::{Pinned, QueryError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_index::Segment;

/// What is not shown of a dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub rows: u64,
    /// Domains of which nothing is shown, once per segment.
    pub domains: u64,
}

/// What is not shown.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    datasets: BTreeMap<u32, Share>,
    /// For each segment, domains of which no dataset shows anything.
    segments: BTreeMap<usize, u64>,
    /// The same shares, segment by segment: domains only.
    shares: BTreeMap<(usize, u32), u64>,
}

impl Hidden {
    pub fn of_dataset(&self, id: u32) -> Share {
        self.datasets.get(&id).copied().unwrap_or_default()
    }

    pub fn domains_of(&self, segment: usize) -> u64 {
        self.segments.get(&segment).copied().unwrap_or_default()
    }

    pub fn domains_of_share(&self, segment: usize, id: u32) -> u64 {
        self.shares.get(&(segment, id)).copied().unwrap_or_default()
    }
}

/// What was found out, once somebody asked.
pub(crate) type KnownHidden = Mutex<Option<Arc<Hidden>>>;

impl Pinned {
    /// What is not shown of the version. Queries that ask while it is being computed wait.
    pub(crate) fn hidden(&self) -> Result<Arc<Hidden>, QueryError> {
        let mut known = self.known_hidden.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hidden) = &*known {
            return Ok(hidden.clone());
        }
        let mut hidden = Hidden::default();
        for name in self.deny.names() {
            self.hide(name, &mut hidden)?;
        }
        // Names below a denied one that are domains of their own: only a walk through all finds them.
        if self.deny.cuts_below(&self.suffixes) {
            self.each_name("", None, &mut |name, _| {
                if self.deny.domain(name) && !self.deny.touches(name) {
                    self.hide(name, &mut hidden)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let hidden = Arc::new(hidden);
        *known = Some(hidden.clone());
        Ok(hidden)
    }

    fn hide(&self, name: &str, hidden: &mut Hidden) -> Result<(), QueryError> {
        let found = self.find_any(name)?;
        let whole = self.deny.domain(name);
        let mut gone = Vec::new();
        for (id, count) in gather(&found, Segment::bare_counts)? {
            let lost = if whole { count.rows } else { self.lost(name, id, &runs_of(&found, id)?)?.rows };
            let share = hidden.datasets.entry(id).or_default();
            share.rows += lost;
            if lost >= count.rows {
                gone.push(id);
            }
        }
        for place in &found {
            let mut held = place.segment.datasets(place.slot)?;
            held.retain(|id| unmasked(place.reference, *id));
            for id in held.iter().filter(|id| gone.contains(id)) {
                hidden.datasets.entry(*id).or_default().domains += 1;
                *hidden.shares.entry((place.index, *id)).or_default() += 1;
            }
            if held.iter().all(|id| gone.contains(id)) {
                *hidden.segments.entry(place.index).or_default() += 1;
            }
        }
        Ok(())
    }
}

/// The rows of a dataset where a domain was found.
pub(crate) fn runs_of<'a>(found: impl IntoIterator<Item = &'a Found<'a>>, id: u32) -> Result<Postings, QueryError> {
    let mut runs = Vec::new();
    for place in found.into_iter().filter(|place| place.tells_of(id)) {
        runs.extend(place.segment.postings(place.slot, id)?.into_iter().map(|run| (place.index, run)));
    }
    Ok(Postings { runs })
}
