//! Domains by prefix: the search box.

use crate::answer::DomainSummary;
use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trawl_index::Slot;

/// Names asked of each segment at a time.
const BATCH: usize = 256;
/// Names looked at for one answer at most, so that many hidden ones do not make it slow: fewer may come back.
const MAX_SEEN: usize = 20_000;

/// Hears of a name and of its places.
type EachName<'a> = dyn FnMut(&str, &[Found<'_>]) -> Result<ControlFlow<()>, QueryError> + 'a;

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
        let after = after.map(str::to_lowercase);
        let (mut summaries, mut seen) = (Vec::new(), 0);
        if limit > 0 {
            self.each_name(&prefix, after, &mut |name, found| {
                seen += 1;
                summaries.extend(self.summary(name, found, who)?);
                let enough = summaries.len() >= limit || seen >= MAX_SEEN;
                Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        Ok(summaries)
    }

    /// Walks the names of all segments that begin with `prefix` and come after `after`, in order, denied ones too.
    pub(crate) fn each_name(
        &self,
        prefix: &str,
        mut after: Option<String>,
        each: &mut EachName<'_>,
    ) -> Result<(), QueryError> {
        loop {
            let (names, complete) = self.next_names(prefix, after.as_deref())?;
            for (name, slots) in &names {
                if each(name, &self.places(slots))?.is_break() {
                    return Ok(());
                }
            }
            if complete {
                return Ok(());
            }
            after = names.into_keys().next_back();
        }
    }

    /// The next names of all segments, merged, with their slots; and whether these are the last.
    #[allow(clippy::type_complexity)]
    fn next_names(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<(BTreeMap<String, Vec<(usize, Slot)>>, bool), QueryError> {
        let mut names: BTreeMap<String, Vec<(usize, Slot)>> = BTreeMap::new();
        // A segment that has more stopped at some name; past the earliest such name the merge is incomplete.
        let mut horizon: Option<String> = None;
        for (index, (segment, _)) in self.segments.iter().enumerate() {
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

    fn summary(&self, name: &str, found: &[Found<'_>], who: &Principal) -> Result<Option<DomainSummary>, QueryError> {
        if self.deny.domain(name) {
            return Ok(None);
        }
        let mut summary = DomainSummary { domain: name.to_owned(), datasets: 0, rows: 0 };
        for count in self.shown_counts(name, found, who)?.into_values() {
            summary.datasets += 1;
            summary.rows += count.rows;
        }
        Ok((summary.datasets > 0).then_some(summary))
    }
}
