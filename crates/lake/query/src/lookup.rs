//! One URL across all datasets.

use crate::answer::{UrlAnswer, UrlHit};
use crate::domain::gather;
use crate::seek::KeyRange;
use crate::urls::{WANTED, item};
use crate::{MAX_LIMIT, Pinned, Principal, QueryError};
use std::ops::ControlFlow;
use trawl_index::Segment;
use trawl_url::{LakeUrl, url_id};

impl Pinned {
    /// Every row of every dataset with this URL, whatever its spelling: rows match by their normalised form. At most
    /// `limit` of them, datasets in order, rows of each in the order of its pages.
    pub fn url(&self, url: &str, limit: u32, who: &Principal) -> Result<UrlAnswer, QueryError> {
        let parsed = self.lake_url(url)?;
        let mut answer = UrlAnswer {
            url: url.to_owned(),
            url_id: url_id(url.as_bytes()),
            normalised: parsed.as_str().to_owned(),
            domain: parsed.domain().to_owned(),
            version: self.version().to_owned(),
            items: Vec::new(),
            more: false,
        };
        let limit = limit.min(MAX_LIMIT) as usize;
        self.each_with(None, &parsed, who, &mut |hit| {
            if answer.items.len() >= limit {
                answer.more = true;
                return ControlFlow::Break(());
            }
            answer.items.push(hit);
            ControlFlow::Continue(())
        })?;
        Ok(answer)
    }

    /// Of the rows with this URL, in one dataset or in all, the one with the smallest key; those that have none are left out.
    pub(crate) fn best_with<K: Ord>(
        &self,
        only: Option<u32>,
        url: &str,
        who: &Principal,
        key: impl Fn(&UrlHit) -> Option<K>,
    ) -> Result<Option<UrlHit>, QueryError> {
        Ok(self.best_few_with(only, url, who, 1, key)?.pop())
    }

    /// The `most` rows with the smallest keys, in the order of these; of equal ones those that are read first.
    pub(crate) fn best_few_with<K: Ord>(
        &self,
        only: Option<u32>,
        url: &str,
        who: &Principal,
        most: usize,
        key: impl Fn(&UrlHit) -> Option<K>,
    ) -> Result<Vec<UrlHit>, QueryError> {
        let mut best: Vec<(K, UrlHit)> = Vec::new();
        self.each_with(only, &self.lake_url(url)?, who, &mut |hit| {
            if let Some(key) = key(&hit) {
                let place = best.partition_point(|(other, _)| *other <= key);
                // A URL may have a row for every day of many years: only those that are wanted are kept.
                if place < most {
                    best.insert(place, (key, hit));
                    best.truncate(most);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(best.into_iter().map(|(_, hit)| hit).collect())
    }

    fn lake_url(&self, url: &str) -> Result<LakeUrl, QueryError> {
        let bad = |why: String| QueryError::BadUrl { found: url.chars().take(100).collect(), why };
        LakeUrl::parse(url, &self.suffixes).map_err(|reject| bad(reject.to_string()))
    }

    /// The rows with this URL, in one dataset or in all, until `take` has enough.
    fn each_with(
        &self,
        only: Option<u32>,
        url: &LakeUrl,
        who: &Principal,
        take: &mut dyn FnMut(UrlHit) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let found = self.find(url.domain())?;
        for (dataset_id, _) in gather(&found, Segment::bare_counts)? {
            let asked = only.is_none_or(|only| only == dataset_id);
            let Some(dataset) = self.visible(dataset_id, who).filter(|_| asked) else { continue };
            let mut postings = self.postings(url.domain(), dataset_id, who)?;
            self.narrow(&mut postings, &KeyRange::exactly(url.surt()))?;
            let mut end = ControlFlow::Continue(());
            self.scan(&postings, WANTED, &mut |_, rows, i| {
                let mut lake_url = String::new();
                rows.lake_url_into(i, &mut lake_url);
                if lake_url == url.as_str() && !self.deny.row(url.host(), &lake_url) {
                    let mut item = item(rows, i);
                    item.finish(dataset_id, who);
                    end = take(UrlHit { dataset_id, dataset: dataset.info.name.clone(), item });
                }
                end
            })?;
            if end.is_break() {
                break;
            }
        }
        Ok(())
    }
}
