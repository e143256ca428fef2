//! The URLs of a domain in a dataset, page by page.

use crate::answer::{UrlItem, UrlsAnswer};
use crate::ask::{Filter, MAX_LIMIT, Page};
use crate::cursor::Cursor;
use crate::postings::Postings;
use crate::seek::KeyRange;
use crate::{Pinned, Principal, QueryError};
use trawl_store::rows::{Column, Columns, Rows};
use trawl_url::{domain_id, url_id};

/// Rows looked at for one page with a filter at most.
const MAX_FILTERED: u64 = 50_000;
/// Rows read at a time with a filter.
const FILTER_STEP: u64 = 5_000;

/// Everything an item shows.
pub(crate) const WANTED: Columns = Columns::URL.and(Columns::of(&[
    Column::Ts,
    Column::Status,
    Column::ContentType,
    Column::Digest,
    Column::BodyLength,
    Column::WarcFile,
    Column::WarcOffset,
    Column::WarcLength,
    Column::Extras,
]));

impl Pinned {
    /// The URLs of the registrable domain of `name` in a dataset. Order is (file, row) within the version.
    pub fn urls(
        &self,
        name: &str,
        dataset_id: u32,
        page: &Page,
        filter: &Filter,
        who: &Principal,
    ) -> Result<UrlsAnswer, QueryError> {
        let domain = self.domain_of(name)?;
        let host = filter.host.as_deref().map(|host| crate::name::host(host, self.suffixes())).transpose()?;
        let path_prefix = filter.path_prefix.as_deref().map(|path| crate::name::path_prefix(path, self.suffixes()));
        let filter = &Filter { host, path_prefix, ..filter.clone() };
        let cursor = page.cursor.as_deref().map(Cursor::decode).transpose()?;
        if let Some(cursor) = &cursor {
            if cursor.domain_id != domain_id(&domain) || cursor.dataset_id != dataset_id {
                return Err(QueryError::BadCursor { why: "it belongs to another question" });
            }
            if cursor.version != self.version() {
                return self.older(&cursor.version)?.urls(name, dataset_id, page, filter, who);
            }
        } else if page.offset > 0 && !filter.is_empty() {
            return Err(QueryError::BadRequest {
                why: "with a filter, page by cursor: an offset counts unfiltered rows",
            });
        }
        let mut postings = self.postings(&domain, dataset_id, who)?;
        let lost = self.lost(&domain, dataset_id, &postings)?;
        let total_est = postings.total() - lost.rows;
        if total_est == 0 {
            // All that is left of it is denied.
            let others = self.shown_counts(&domain, &self.find(&domain)?, who)?;
            return Err(match others.is_empty() {
                true => QueryError::UnknownDomain { domain },
                false => QueryError::UnknownDataset { domain, dataset_id },
            });
        }
        if let Some(keys) = filter_keys(filter) {
            self.narrow(&mut postings, &keys)?;
        }
        // From here on denied rows are not there: pages are full, and offsets count what is shown.
        let postings = lost.left_of(postings);
        let start = match &cursor {
            Some(cursor) => postings.offset_of(cursor),
            None => page.offset.min(postings.total()),
        };
        let limit = u64::from(page.limit.min(MAX_LIMIT));
        let (items, end) = self.page(&postings, start, limit, filter, lost.rows > 0)?;
        let more = end < postings.total() && page.limit > 0;
        Ok(UrlsAnswer {
            version: self.version().to_owned(),
            total_est,
            items,
            next_offset: (more && filter.is_empty()).then_some(end),
            next_cursor: more.then(|| self.cursor_at(&postings, end, &domain, dataset_id)).flatten(),
            domain,
            dataset_id,
        })
    }

    /// An older version, as the newest manifest still lists it.
    fn older(&self, name: &str) -> Result<Pinned, QueryError> {
        let version = self.manifest().version(name).filter(|v| v.version != self.version());
        let gone = || QueryError::Gone { version: name.chars().take(40).collect() };
        self.inner().open_version(self.manifest(), version.ok_or_else(gone)?)
    }

    /// Items from `start` on, and where the page ended. With `gaps`, denied rows have cut runs to pieces, of which a page
    /// may need more than are read in one round.
    fn page(
        &self,
        postings: &Postings,
        start: u64,
        limit: u64,
        filter: &Filter,
        gaps: bool,
    ) -> Result<(Vec<UrlItem>, u64), QueryError> {
        let mut items = Vec::new();
        let mut at = start;
        let until = if filter.is_empty() { start.saturating_add(limit) } else { start.saturating_add(MAX_FILTERED) };
        let until = until.min(postings.total());
        while at < until && (items.len() as u64) < limit {
            let step = if filter.is_empty() { limit } else { FILTER_STEP };
            let pieces = postings.pieces(at, (until - at).min(step));
            for rows in self.read(&pieces, WANTED)? {
                for i in 0..rows.len() {
                    if items.len() as u64 >= limit {
                        return Ok((items, at));
                    }
                    at += 1;
                    if passes(&rows, i, filter) {
                        items.push(item(&rows, i));
                    }
                }
            }
            if filter.is_empty() && !gaps {
                break;
            }
        }
        Ok((items, at))
    }

    fn cursor_at(&self, postings: &Postings, offset: u64, domain: &str, dataset_id: u32) -> Option<String> {
        let (segment, run) = *postings.pieces(offset, 1).first()?;
        let cursor = Cursor {
            version: self.version().to_owned(),
            domain_id: domain_id(domain),
            dataset_id,
            segment: u32::try_from(segment).ok()?,
            file_id: run.file_id,
            row_group: run.row_group,
            row: run.first_row,
        };
        Some(cursor.encode())
    }
}

/// Whether a filter takes a row.
fn passes(rows: &Rows, i: usize, filter: &Filter) -> bool {
    let text_is = |wanted: &Option<String>, column, fits: fn(&str, &str) -> bool| {
        wanted.as_ref().is_none_or(|wanted| rows.text(column, i).is_some_and(|found| fits(found, wanted)))
    };
    text_is(&filter.host, Column::Host, |found, wanted| found == wanted)
        && text_is(&filter.path_prefix, Column::PathQuery, |found, wanted| found.starts_with(wanted))
        && filter.from.is_none_or(|from| rows.ts(i).is_some_and(|ts| ts >= from))
        && filter.until.is_none_or(|until| rows.ts(i).is_some_and(|ts| ts < until))
        && filter.status.is_none_or(|status| rows.number(Column::Status, i) == Some(i64::from(status)))
}

/// The keys a filter leaves, where it says enough to look for them: those of its host, from its path prefix on.
fn filter_keys(filter: &Filter) -> Option<KeyRange> {
    let host = filter.host.as_ref()?;
    Some(KeyRange::prefix(host, filter.path_prefix.as_deref().unwrap_or_default()))
}

pub(crate) fn item(rows: &Rows, i: usize) -> UrlItem {
    let text = |column| rows.text(column, i).map(str::to_owned);
    let unsigned = |column| rows.number(column, i).and_then(|n| u64::try_from(n).ok());
    let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.to_owned()));
    let url = rows.url(i);
    UrlItem {
        url_id: url_id(url.as_bytes()),
        url,
        ts: rows.ts(i),
        status: rows.number(Column::Status, i).and_then(|n| u16::try_from(n).ok()),
        content_type: text(Column::ContentType),
        digest: text(Column::Digest),
        body_length: unsigned(Column::BodyLength),
        warc_file: text(Column::WarcFile),
        warc_offset: unsigned(Column::WarcOffset),
        warc_length: unsigned(Column::WarcLength),
        extras: rows.text(Column::Extras, i).map(json),
    }
}
