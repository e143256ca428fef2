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
        self.url_in(None, url, limit, who)
    }

    /// The same in one dataset, or in all.
    pub(crate) fn url_in(
        &self,
        only: Option<u32>,
        url: &str,
        limit: u32,
        who: &Principal,
    ) -> Result<UrlAnswer, QueryError> {
        let parsed = LakeUrl::parse(url, &self.suffixes)
            .map_err(|reject| QueryError::BadUrl { found: url.chars().take(100).collect(), why: reject.to_string() })?;
        let (domain, limit) = (parsed.domain().to_owned(), limit.min(MAX_LIMIT) as usize);
        let mut answer = UrlAnswer {
            url: url.to_owned(),
            url_id: url_id(url.as_bytes()),
            normalised: parsed.as_str().to_owned(),
            version: self.version().to_owned(),
            items: Vec::new(),
            more: false,
            domain,
        };
        let found = self.find(&answer.domain)?;
        for (dataset_id, _) in gather(&found, Segment::bare_counts)? {
            let asked = only.is_none_or(|only| only == dataset_id);
            let Some(dataset) = self.visible(dataset_id, who).filter(|_| asked) else { continue };
            let mut postings = self.postings(&answer.domain, dataset_id, who)?;
            self.narrow(&mut postings, &KeyRange::exactly(parsed.surt()))?;
            self.scan(&postings, WANTED, &mut |_, rows, i| {
                let mut lake_url = String::new();
                rows.lake_url_into(i, &mut lake_url);
                if lake_url == answer.normalised && !self.deny.row(parsed.host(), &lake_url) {
                    if answer.items.len() >= limit {
                        answer.more = true;
                        return ControlFlow::Break(());
                    }
                    let name = dataset.info.name.clone();
                    let mut item = item(rows, i);
                    item.finish(dataset_id, who);
                    answer.items.push(UrlHit { dataset_id, dataset: name, item });
                }
                ControlFlow::Continue(())
            })?;
            if answer.more {
                break;
            }
        }
        Ok(answer)
    }
}
