//! The URLs of a domain in a dataset, page by page.

use crate::answer::{UrlItem, UrlsAnswer};
use crate::ask::{Filter, MAX_LIMIT, Page};
use crate::cursor::Cursor;
use crate::pinned::{Found, unmasked};
use crate::{Pinned, Principal, QueryError};
use trawl_index::postings::Run;
use trawl_store::rows::{self, Column, Columns, GroupTable, Plan, Rows};
use trawl_url::{domain_id, url_id};

/// Runs read for one page at most; a domain in very many small files gets shorter pages.
const MAX_RUNS: usize = 256;
/// Rows looked at for one page with a filter at most.
const MAX_FILTERED: u64 = 50_000;
/// Rows read at a time with a filter.
const FILTER_STEP: u64 = 5_000;

/// Everything an item shows.
const WANTED: Columns = Columns::URL.and(Columns::of(&[
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

/// All rows of a (domain, dataset) in the order of pages.
struct Postings {
    /// Place of the segment in the version, and the run.
    runs: Vec<(usize, Run)>,
    total: u64,
}

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
        let postings = self.postings(&domain, dataset_id, who)?;
        let start = match &cursor {
            Some(cursor) => postings.offset_of(cursor),
            None => page.offset.min(postings.total),
        };
        let (items, end) = self.page(&postings, start, u64::from(page.limit.min(MAX_LIMIT)), filter)?;
        let more = end < postings.total && page.limit > 0;
        Ok(UrlsAnswer {
            version: self.version().to_owned(),
            total_est: postings.total,
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

    /// The runs of a pair. Absent and hidden alike are found out from the membership, before any postings are read.
    fn postings(&self, domain: &str, dataset_id: u32, who: &Principal) -> Result<Postings, QueryError> {
        let found = self.find(domain)?;
        let mut holders: Vec<&Found<'_>> = Vec::new();
        let mut any = false;
        for place in &found {
            for id in place.segment.datasets(place.slot)? {
                let shown = unmasked(place.reference, id) && self.visible(id, who).is_some();
                any |= shown;
                if shown && id == dataset_id {
                    holders.push(place);
                }
            }
        }
        if !any {
            return Err(QueryError::UnknownDomain { domain: domain.to_owned() });
        }
        if holders.is_empty() {
            return Err(QueryError::UnknownDataset { domain: domain.to_owned(), dataset_id });
        }
        let mut postings = Postings { runs: Vec::new(), total: 0 };
        for place in holders {
            for run in place.segment.postings(place.slot, dataset_id)? {
                postings.total = postings.total.saturating_add(run.row_count);
                postings.runs.push((place.index, run));
            }
        }
        Ok(postings)
    }

    /// Items from `start` on, and where the page ended.
    fn page(
        &self,
        postings: &Postings,
        start: u64,
        limit: u64,
        filter: &Filter,
    ) -> Result<(Vec<UrlItem>, u64), QueryError> {
        let mut items = Vec::new();
        let mut at = start;
        let until = if filter.is_empty() { start.saturating_add(limit) } else { start.saturating_add(MAX_FILTERED) };
        let until = until.min(postings.total);
        while at < until && (items.len() as u64) < limit {
            let step = if filter.is_empty() { limit } else { FILTER_STEP };
            let pieces = postings.pieces(at, (until - at).min(step));
            for rows in self.read(&pieces)? {
                for i in 0..rows.len() {
                    if items.len() as u64 >= limit {
                        return Ok((items, at));
                    }
                    at += 1;
                    if self.passes(&rows, i, filter) {
                        items.push(item(&rows, i));
                    }
                }
            }
            if filter.is_empty() {
                break;
            }
        }
        Ok((items, at))
    }

    /// Reads pieces of runs: one round, whatever their number.
    fn read(&self, pieces: &[(usize, Run)]) -> Result<Vec<Rows>, QueryError> {
        let mut plans = Vec::with_capacity(pieces.len());
        for of_one in pieces.chunk_by(|a, b| a.0 == b.0) {
            let Some((segment, _)) = of_one.first().and_then(|(index, _)| self.segments().get(*index)) else {
                continue;
            };
            let wanted: Vec<_> = of_one.iter().map(|(_, run)| (run.file_id, run.row_group)).collect();
            for ((_, run), table) in of_one.iter().zip(segment.page_tables(&wanted)?) {
                let path = segment.file(run.file_id)?.path;
                let table = GroupTable::new(&path, &table)?;
                let row = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let rows = row(run.first_row)..row(run.first_row.saturating_add(run.row_count));
                plans.push(Plan::new(&path, &table, rows, WANTED)?);
            }
        }
        Ok(rows::read(&**self.inner().store(), &plans)?)
    }

    fn passes(&self, rows: &Rows, i: usize, filter: &Filter) -> bool {
        if self.deny().has_urls() {
            let mut url = String::new();
            rows.lake_url_into(i, &mut url);
            if self.deny().url(&url) {
                return false;
            }
        }
        let text_is = |wanted: &Option<String>, column, fits: fn(&str, &str) -> bool| {
            wanted.as_ref().is_none_or(|wanted| rows.text(column, i).is_some_and(|found| fits(found, wanted)))
        };
        text_is(&filter.host, Column::Host, |found, wanted| found == wanted)
            && text_is(&filter.path_prefix, Column::PathQuery, |found, wanted| found.starts_with(wanted))
            && filter.from.is_none_or(|from| rows.ts(i).is_some_and(|ts| ts >= from))
            && filter.until.is_none_or(|until| rows.ts(i).is_some_and(|ts| ts < until))
            && filter.status.is_none_or(|status| rows.number(Column::Status, i) == Some(i64::from(status)))
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

impl Postings {
    /// The parts of runs that hold `len` rows from `offset` on; no more than some hundred of them.
    fn pieces(&self, offset: u64, len: u64) -> Vec<(usize, Run)> {
        let (mut skip, mut left) = (offset, len);
        let mut pieces = Vec::new();
        for (segment, run) in &self.runs {
            if left == 0 || pieces.len() >= MAX_RUNS {
                break;
            }
            if skip >= run.row_count {
                skip -= run.row_count;
                continue;
            }
            let row_count = (run.row_count - skip).min(left);
            pieces.push((*segment, Run { first_row: run.first_row + skip, row_count, ..*run }));
            left -= row_count;
            skip = 0;
        }
        pieces
    }

    /// The offset of the row a cursor points at, or of the first one after it.
    fn offset_of(&self, cursor: &Cursor) -> u64 {
        let mut offset = 0;
        for (segment, run) in &self.runs {
            let place = (*segment as u64, run.file_id, run.row_group);
            let wanted = (u64::from(cursor.segment), cursor.file_id, cursor.row_group);
            if place > wanted {
                break;
            }
            if place == wanted && cursor.row < run.first_row + run.row_count {
                return offset + cursor.row.saturating_sub(run.first_row);
            }
            offset += run.row_count;
        }
        offset
    }
}

fn item(rows: &Rows, i: usize) -> UrlItem {
    let row = rows.row(i);
    UrlItem {
        url_id: url_id(row.url.as_bytes()),
        url: row.url,
        ts: row.ts,
        status: row.status,
        content_type: row.content_type,
        digest: row.digest,
        body_length: row.body_length,
        warc_file: row.warc_file,
        warc_offset: row.warc_offset,
        warc_length: row.warc_length,
        extras: row.extras.map(|text| serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))),
    }
}
