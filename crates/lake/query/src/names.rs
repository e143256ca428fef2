//! Domains by prefix: the search box.

use crate::answer::DomainSummary;
use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use trawl_index::Slot;

/// Names asked of each segment at a time.
const BATCH: usize = 256;
/// Names looked at for one answer at most, so that many hidden ones do not make it slow: fewer may come back.
const MAX_SEEN: usize = 20_000;

impl Pinned {
    /// Up to `limit` domains that begin with `prefix` and come after `after`, in order, that `who` may see.
    pub fn domains(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        who: &Principal,
    ) -> Result<Vec<DomainSummary>, QueryError> {
        let prefix = prefix.to_lowercase();
        let mut after = after.map(str::to_lowercase);
        let mut summaries = Vec::new();
        let mut seen = 0;
        while summaries.len() < limit && seen < MAX_SEEN {
            let (names, complete) = self.next_names(&prefix, after.as_deref())?;
            for (name, slots) in &names {
                seen += 1;
                if let Some(summary) = self.summary(name, slots, who)? {
                    summaries.push(summary);
                    if summaries.len() >= limit {
                        return Ok(summaries);
                    }
                }
            }
            if complete {
                break;
            }
            after = names.into_keys().next_back();
        }
        Ok(summaries)
    }

    /// The next names of all segments, merged, with their slots; and whether these are the last.
    #[allow(clippy::type_complexity)]
    pub(crate) fn next_names(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<(BTreeMap<String, Vec<(usize, Slot)>>, bool), QueryError> {
        let mut names: BTreeMap<String, Vec<(usize, Slot)>> = BTreeMap::new();
        // A segment that has more stopped at some name; past the earliest such name the merge is incomplete.
        let mut horizon: Option<String> = None;
        for (index, (segment, _)) in self.segments().iter().enumerate() {
            let mut last = String::new();
            let mut count = 0;
            segment.names_with_prefix(prefix, after, &mut |slot, name| {
                names.entry(name.to_owned()).or_default().push((index, slot));
                name.clone_into(&mut last);
                count += 1;
                count < BATCH
            })?;
            if count == BATCH && horizon.as_ref().is_none_or(|known| last < *known) {
                horizon = Some(last);
            }
        }
        if let Some(horizon) = &horizon {
            names.retain(|name, _| name <= horizon);
        }
        Ok((names, horizon.is_none()))
    }

    fn summary(
        &self,
        name: &str,
        slots: &[(usize, Slot)],
        who: &Principal,
    ) -> Result<Option<DomainSummary>, QueryError> {
        if self.deny().domain(name) {
            return Ok(None);
        }
        let places = slots.iter().filter_map(|(index, slot)| {
            let (segment, reference) = self.segments().get(*index)?;
            Some(Found { index: *index, segment, reference, slot: *slot })
        });
        let counts = self.shown_counts(name, &places.collect::<Vec<_>>(), who)?;
        let mut summary = DomainSummary { domain: name.to_owned(), datasets: 0, rows: 0 };
        for count in counts.into_values() {
            summary.datasets += 1;
            summary.rows += count.rows;
        }
        Ok((summary.datasets > 0).then_some(summary))
    }
}
