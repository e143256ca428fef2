//! Which datasets hold a domain.

use crate::answer::{DomainAnswer, DomainDataset, TopPath};
use crate::pinned::{Found, unmasked};
use crate::{Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use trawl_index::counts::{Count, MAX_PATHS};
use trawl_url::domain_id;

impl Pinned {
    /// The datasets that hold the registrable domain of `name`, with counts.
    pub fn domain(&self, name: &str, who: &Principal) -> Result<DomainAnswer, QueryError> {
        let domain = self.domain_of(name)?;
        let mut datasets = Vec::new();
        for (dataset_id, count) in self.shown_counts(&domain, &self.find(&domain)?, who)? {
            let Some(dataset) = self.visible(dataset_id, who) else { continue };
            datasets.push(DomainDataset {
                dataset_id,
                name: dataset.info.name.clone(),
                url_count_est: count.rows,
                distinct_urls: count.distinct,
                distinct_exact: count.exact,
                first_ts: count.times.map(|t| t.0),
                last_ts: count.times.map(|t| t.1),
                top_paths: count.paths.into_iter().map(|(path, rows)| TopPath { path, rows }).collect(),
            });
        }
        if datasets.is_empty() {
            return Err(QueryError::UnknownDomain { domain });
        }
        let id = domain_id(&domain);
        Ok(DomainAnswer { domain, domain_id: id, domain_id_hex: id, version: self.version().to_owned(), datasets })
    }

    /// What all segments together know of a domain, by dataset, seen by anyone or not.
    pub(crate) fn counts(&self, found: &[Found<'_>]) -> Result<BTreeMap<u32, Count>, QueryError> {
        let mut all: BTreeMap<u32, Count> = BTreeMap::new();
        for place in found {
            for (dataset_id, count) in place.segment.counts(place.slot)? {
                if !unmasked(place.reference, dataset_id) {
                    continue;
                }
                match all.get_mut(&dataset_id) {
                    Some(sum) => add(sum, count),
                    None => drop(all.insert(dataset_id, count)),
                }
            }
        }
        Ok(all)
    }
}

/// Adds what another segment knows. A URL in both is counted twice, so the sum of distinct URLs is a bound.
fn add(sum: &mut Count, more: Count) {
    sum.rows += more.rows;
    sum.distinct += more.distinct;
    sum.exact = false;
    sum.times = match (sum.times, more.times) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    };
    for (path, rows) in more.paths {
        match sum.paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, total)) => *total += rows,
            None => sum.paths.push((path, rows)),
        }
    }
    sum.paths.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sum.paths.truncate(MAX_PATHS);
}
