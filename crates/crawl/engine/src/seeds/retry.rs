//! What an earlier run gave up, taken from its capture index to be tried again.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use trawl_archive::{CaptureRow, CapturesReader};
use trawl_frontier::Answer;
use trawl_model::{DoorError, Items, UrlRecord};

/// A capture index, and which of its URLs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// `captures.parquet` of a run.
    pub path: PathBuf,
    /// Classes of failures, statuses like `503`, and `truncated`; empty for all that asking again may help with.
    pub classes: BTreeSet<String>,
}

impl Retry {
    /// Yields the wanted URLs with their metadata, each once. Of a URL only its last capture counts. Memory: the URLs that
    /// failed, not all of them.
    pub(super) fn read(&self, each: &mut Items<'_>) -> Result<u64, DoorError> {
        let mut wanted: HashMap<String, (u64, String)> = HashMap::new();
        let mut rows = 0;
        for (row, n) in CapturesReader::open(&self.path).map_err(DoorError::from)?.zip(0..) {
            let row = row.map_err(DoorError::from)?;
            rows = n + 1;
            // A robots.txt is fetched whatever it says about itself: rows without its verdict are of robots.txt files.
            if row.robots.is_none() {
                continue;
            }
            match self.wants(&row) {
                true => {
                    let (at, meta) = wanted.entry(row.url).or_default();
                    (*at, *meta) = (n, row.meta_json);
                }
                false => {
                    wanted.remove(&row.url);
                }
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_unstable_by_key(|(_, (n, _))| *n);
        for (url, (n, meta)) in wanted {
            each(n, Ok(UrlRecord { extras: (!meta.is_empty()).then_some(meta), ..UrlRecord::bare(url) }))?;
        }
        Ok(rows)
    }

    fn wants(&self, row: &CaptureRow) -> bool {
        let class = row.error_class.as_deref().unwrap_or_default();
        if !self.classes.is_empty() {
            let named = |class: &str| self.classes.contains(class);
            // All that were cut: the limit may be a larger one now.
            return named(class) || named(&row.status.to_string()) || row.truncated.is_some() && named("truncated");
        }
        // A body that was cut by a limit is cut again by the same one.
        let cut = matches!(row.truncated.as_deref(), Some("time" | "disconnect"));
        match class.parse() {
            Ok(class) => Answer::Failed(class).is_passing(),
            Err(_) => {
                let status = u16::try_from(row.status).unwrap_or(0);
                Answer::Response { status, retry_after_ms: None, cut }.is_passing()
            }
        }
    }
}
