//! Which datasets hold a domain.

use crate::answer::{DatasetCount, DomainAnswer, DomainDataset, TopPath};
use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use trawl_index::counts::Count;
use trawl_index::{Segment, Slot};
use trawl_url::domain_id;

impl Pinned {
    /// The datasets that hold the registrable domain of `name`, with counts.
    pub fn domain(&self, name: &str, who: &Principal) -> Result<DomainAnswer, QueryError> {
        let domain = self.domain_of(name)?;
        let mut datasets = Vec::new();
        for (dataset_id, count) in self.shown(&domain, &self.find(&domain)?, who, Segment::counts)? {
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

    /// The datasets that hold the registrable domain of `name`, with counts and times: what [`Pinned::domain`] answers,
    /// without names and top paths, for callers that ask very often.
    pub fn domain_counts(&self, name: &str, who: &Principal) -> Result<Vec<DatasetCount>, QueryError> {
        let domain = self.domain_of(name)?;
        let mut datasets = Vec::new();
        for (dataset_id, count) in self.shown(&domain, &self.find(&domain)?, who, Segment::bare_counts)? {
            datasets.push(DatasetCount {
                dataset_id,
                rows: count.rows,
                distinct_urls: count.distinct,
                distinct_exact: count.exact,
                first_ts: count.times.map(|t| t.0),
                last_ts: count.times.map(|t| t.1),
            });
        }
        if datasets.is_empty() { Err(QueryError::UnknownDomain { domain }) } else { Ok(datasets) }
    }
}

/// What all segments know of a domain, by rising dataset.
pub(crate) fn gather(
    found: &[Found<'_>],
    counts: impl Fn(&Segment, Slot) -> trawl_index::Result<Vec<(u32, Count)>>,
) -> Result<Vec<(u32, Count)>, QueryError> {
    let mut all: Vec<(u32, Count)> = Vec::new();
    for place in found {
        let mut more = counts(place.segment, place.slot)?;
        more.retain(|(dataset_id, _)| place.tells_of(*dataset_id));
        if all.is_empty() {
            all = more;
            continue;
        }
        for (dataset_id, count) in more {
            match all.binary_search_by_key(&dataset_id, |(id, _)| *id) {
                // A URL in both is counted twice, so the sum of distinct URLs is a bound.
                Ok(at) => {
                    if let Some((_, sum)) = all.get_mut(at) {
                        sum.add(count);
                        sum.rank_paths();
                    }
                }
                Err(at) => all.insert(at, (dataset_id, count)),
            }
        }
    }
    Ok(all)
}
