//! Domains by prefix: the search box.

use crate::answer::{DomainSummary, NamesAnswer};
use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trawl_index::Slot;

/// Names asked of each segment at a time.
const BATCH: usize = 256;
/// Names looked at before the effort is asked again.
const ROUND: u64 = 256;

/// Which names.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamesQuery<'a> {
    /// They begin so.
    pub prefix: &'a str,
    /// They end so.
    pub suffix: &'a str,
    /// They come after this one.
    pub after: Option<&'a str>,
    /// This dataset holds them; rows are then those of it alone.
    pub dataset: Option<u32>,
    /// How many at most.
    pub limit: usize,
}

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
        let wanted = NamesQuery { prefix, after, limit, ..NamesQuery::default() };
        Ok(self.names(&wanted, who)?.domains)
    }

    /// A page of names. Beginnings are looked up; endings and datasets are compared name by name, until the page is full or
    /// the effort ends.
    pub fn names(&self, wanted: &NamesQuery<'_>, who: &Principal) -> Result<NamesAnswer, QueryError> {
        let (prefix, suffix) = (wanted.prefix.to_lowercase(), wanted.suffix.to_lowercase());
        let after = wanted.after.map(str::to_lowercase);
        if let Some(dataset_id) = wanted.dataset
            && self.visible(dataset_id, who).is_none()
        {
            return Err(QueryError::NoDataset { dataset_id });
        }
        let mut answer =
            NamesAnswer { version: self.version().to_owned(), domains: Vec::new(), next_after: None, seen: 0 };
        let shows_all = self.shows_all(who);
        let (mut last, mut looked, mut tired) = (None, 0u64, false);
        self.each_name(&prefix, after, &mut |name, found| {
            looked += 1;
            tired |= looked.is_multiple_of(ROUND) && self.is_enough()?;
            // Names of which nothing is shown are not there: not in numbers, and not as the place where a page ends.
            let of_all = if shows_all { None } else { Some(self.summary(name, found, None, who)?) };
            if of_all.as_ref().is_some_and(Option::is_none) {
                return Ok(ControlFlow::Continue(()));
            }
            // One more than wanted, to know whether there are more; its name is not told.
            if answer.domains.len() >= wanted.limit || (tired && last.is_some()) {
                answer.next_after = last.take();
                return Ok(ControlFlow::Break(()));
            }
            answer.seen += 1;
            if name.ends_with(&suffix) {
                let known = of_all.flatten().filter(|_| wanted.dataset.is_none());
                let found =
                    known.map_or_else(|| self.summary(name, found, wanted.dataset, who), |known| Ok(Some(known)));
                answer.domains.extend(found?);
            }
            last = Some(name.to_owned());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(answer)
    }

    /// Whether every row there is may be shown to `who`.
    fn shows_all(&self, who: &Principal) -> bool {
        let (manifest, deny) = (self.manifest(), self.deny.names().next().is_none());
        deny && manifest.datasets.iter().all(|dataset| self.visible(dataset.id, who).is_some())
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

    fn summary(
        &self,
        name: &str,
        found: &[Found<'_>],
        dataset: Option<u32>,
        who: &Principal,
    ) -> Result<Option<DomainSummary>, QueryError> {
        if self.deny.domain(name) {
            return Ok(None);
        }
        let mut summary = DomainSummary { domain: name.to_owned(), datasets: 0, rows: 0 };
        let counts = self.shown_counts(name, found, who)?.into_iter();
        for (_, count) in counts.filter(|(id, _)| dataset.is_none_or(|wanted| wanted == *id)) {
            summary.datasets += 1;
            summary.rows += count.rows;
        }
        Ok((summary.datasets > 0).then_some(summary))
    }
}
