//! The URLs of a domain in a dataset, page by page.

use crate::answer::{Progress, UrlItem, UrlsAnswer, extras};
use crate::ask::{Filter, MAX_LIMIT, Page};
use crate::cursor::{Cursor, mark_of};
use crate::denied::Lost;
use crate::postings::Postings;
use crate::seek::KeyRange;
use crate::{Pinned, Principal, QueryError};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use trawl_model::Digest;
use trawl_rows::{Column, Columns, Rows};
use trawl_store::denial::begins_in_some_order;
use trawl_url::{domain_id, url_id};

/// Rows read at a time with a filter.
const FILTER_STEP: u64 = 5_000;
/// Rows read at a time without one, or to find the next one that is not denied.
const LOOK: u64 = 1_000;
/// Texts of a page, about. A list may keep a megabyte beside each URL, which takes next to nothing on disk where they are alike: ten
/// thousand of them would be one answer. Such pages are shorter.
const PAGE_BYTES: usize = 16 << 20;

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

/// Gets row `i` of some rows.
pub(crate) type TakeRow<'a> = dyn FnMut(&Rows, usize) -> Result<(), QueryError> + 'a;

/// The members of [`UrlsAnswer`] in front of its items.
#[derive(Serialize)]
pub(crate) struct PageAbout {
    domain: String,
    dataset_id: u32,
    version: String,
    total_est: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_filtered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

/// Those behind them.
#[derive(Serialize)]
pub(crate) struct PageNext {
    next_offset: Option<u64>,
    next_cursor: Option<String>,
}

/// Rows that a filter may take.
pub(crate) struct Selected {
    pub postings: Postings,
    pub lost: Arc<Lost>,
    /// Rows of the (domain, dataset), without denied ones.
    pub total_est: u64,
    /// Whether the postings are the rows of one host that have the beginning of a path.
    is_narrow: bool,
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
        let mut items = Vec::new();
        let (about, next) = self.urls_into(name, dataset_id, page, filter, who, &mut |rows, i| {
            let mut item = item(rows, i);
            item.finish(dataset_id, who);
            items.push(item);
            Ok(())
        })?;
        let PageAbout { domain, dataset_id, version, total_est, total_filtered, progress } = about;
        let PageNext { next_offset, next_cursor } = next;
        Ok(UrlsAnswer {
            domain,
            dataset_id,
            version,
            total_est,
            total_filtered,
            progress,
            items,
            next_offset,
            next_cursor,
        })
    }

    /// The same; `take` gets the rows of the page.
    pub(crate) fn urls_into(
        &self,
        name: &str,
        dataset_id: u32,
        page: &Page,
        filter: &Filter,
        who: &Principal,
        take: &mut TakeRow<'_>,
    ) -> Result<(PageAbout, PageNext), QueryError> {
        let domain = self.domain_of(name)?;
        let filter = &self.spelt(filter)?;
        let cursor = page.cursor.as_deref().map(Cursor::decode).transpose()?;
        if let Some(cursor) = &cursor {
            let asked = (domain_id(&domain), dataset_id, mark_of(filter));
            if (cursor.domain_id, cursor.dataset_id, cursor.filter) != asked {
                return Err(QueryError::BadCursor { why: "it belongs to another question" });
            }
            if cursor.version != self.version() {
                return self.older(&cursor.version)?.urls_into(name, dataset_id, page, filter, who, take);
            }
        } else if page.offset > 0 && !filter.is_empty() {
            return Err(QueryError::BadRequest {
                why: "with a filter, page by cursor: an offset counts unfiltered rows",
            });
        }
        let Selected { postings, lost, total_est, is_narrow } = self.select(&domain, dataset_id, filter, who)?;
        let start = match &cursor {
            Some(cursor) => postings.offset_of(cursor),
            // A filter may have cut a gap, of which it is not known how many denied rows are in which part.
            None if !filter.is_empty() => 0,
            None => self.place_of(page.offset, &postings, &lost.gaps)?,
        };
        let limit = u64::from(page.limit.min(MAX_LIMIT));
        let (taken, next) = self.page(&postings, start, limit, filter, &lost, take)?;
        // Denied rows are not told by numbers either.
        let of = if filter.is_empty() { 0 } else { self.shown_until(u64::MAX, &postings, &lost.gaps)? };
        let progress = match next {
            _ if filter.is_empty() => None,
            Some(next) => Some(Progress { seen: self.shown_until(next, &postings, &lost.gaps)?, of }),
            None => Some(Progress { seen: of, of }),
        };
        let total_filtered = (is_narrow && filter.is_range()).then_some(of);
        // Offsets are those of the newest version: a walk through an older one goes on by cursor.
        let next_offset = match next {
            Some(_) if self.version() != self.manifest().current_version => None,
            Some(_) if filter.is_empty() && cursor.is_none() => Some(page.offset + taken),
            Some(next) if filter.is_empty() => Some(self.shown_before(next, &postings, &lost.gaps)?),
            _ => None,
        };
        let next_cursor = next.and_then(|next| self.cursor_at(&postings, next, &domain, dataset_id, filter));
        let version = self.version().to_owned();
        let about = PageAbout { domain, dataset_id, version, total_est, total_filtered, progress };
        Ok((about, PageNext { next_offset, next_cursor }))
    }

    /// The rows of a (domain, dataset) that a filter, in the spelling of rows, may take.
    pub(crate) fn select(
        &self,
        domain: &str,
        dataset_id: u32,
        filter: &Filter,
        who: &Principal,
    ) -> Result<Selected, QueryError> {
        let mut postings = self.postings(domain, dataset_id, who)?;
        let lost = self.lost(domain, dataset_id, &postings)?;
        let total_est = postings.total() - lost.rows;
        if total_est == 0 {
            // All that is left of it is denied.
            let others = self.shown_counts(domain, &self.find(domain)?, who)?;
            let domain = domain.to_owned();
            return Err(match others.is_empty() {
                true => QueryError::UnknownDomain { domain },
                false => QueryError::UnknownDataset { domain, dataset_id },
            });
        }
        // Rows have their parameters sorted: only those that begin alike before these stand together.
        let path = filter.path_prefix.as_deref().map(|prefix| prefix.split_inclusive('?').next().unwrap_or_default());
        match (&filter.host, path) {
            (Some(host), path) => {
                self.narrow(&mut postings, &KeyRange::prefix(host, path.unwrap_or_default()))?;
            }
            (None, Some(path)) => self.narrow_hosts(&mut postings, path)?,
            (None, None) => {}
        }
        // From here on denied rows are not there: pages are full, and offsets count what is shown.
        let postings = lost.gaps.left_of(postings);
        let is_narrow = filter.host.is_some() && path == filter.path_prefix.as_deref();
        Ok(Selected { postings, lost, total_est, is_narrow })
    }

    /// A filter in the spelling of rows.
    pub(crate) fn spelt(&self, filter: &Filter) -> Result<Filter, QueryError> {
        let host = filter.host.as_deref().map(|host| crate::name::host(host, &self.suffixes)).transpose()?;
        let path_prefix = filter.path_prefix.as_deref().map(|path| crate::name::path_prefix(path, &self.suffixes));
        Ok(Filter { host, path_prefix, ..filter.clone() })
    }

    /// An older version, as the newest manifest still lists it.
    pub(crate) fn older(&self, name: &str) -> Result<Pinned, QueryError> {
        let version = self.manifest().version(name).filter(|v| v.version != self.version());
        let gone = || QueryError::Gone { version: name.chars().take(40).collect() };
        self.inner.open_version(self.manifest(), version.ok_or_else(gone)?, self.effort().clone())
    }

    /// Hands out rows from the place `start` on; how many they are, and the place of the next row that is shown, if there is one.
    pub(crate) fn page(
        &self,
        postings: &Postings,
        start: u64,
        limit: u64,
        filter: &Filter,
        lost: &Lost,
        take: &mut TakeRow<'_>,
    ) -> Result<(u64, Option<u64>), QueryError> {
        let (mut at, mut seen, mut taken, mut bytes) = (start, 0, 0, 0);
        let (step, most) = if filter.is_empty() { (limit.clamp(1, LOOK), limit) } else { (FILTER_STEP, u64::MAX) };
        loop {
            // At least one step with a filter, or a page asked for again would never get any further.
            let tired = !filter.is_empty() && seen > 0 && self.is_enough()?;
            let enough = taken >= limit || seen >= most || bytes >= PAGE_BYTES || tired;
            let wanted = step.min(if enough { LOOK } else { most - seen });
            let pieces = postings.pieces(at, wanted);
            let Some((segment, first)) = pieces.first() else { return Ok((taken, None)) };
            if enough && lost.gaps.mixed(*segment, first).is_none() {
                return Ok((taken, Some(at)));
            }
            for ((segment, run), rows) in pieces.iter().zip(self.read(&pieces, WANTED)?) {
                let mixed = lost.gaps.mixed(*segment, run).is_some();
                for i in 0..rows.len() {
                    if !(mixed && self.is_denied(&rows, i)) {
                        if enough || taken >= limit || seen >= most || bytes >= PAGE_BYTES {
                            return Ok((taken, Some(at)));
                        }
                        seen += 1;
                        if passes(&rows, i, filter) {
                            take(&rows, i)?;
                            taken += 1;
                            bytes += text_bytes(&rows, i);
                        }
                    }
                    at += 1;
                }
            }
            // Denied rows cut runs to pieces, of which a page may need more than are read in one round. A domain in very
            // many files is another matter: it gets shorter pages.
            let is_short = pieces.iter().map(|(_, run)| run.row_count).sum::<u64>() < wanted;
            if filter.is_empty() && lost.rows == 0 && (is_short || taken >= limit) {
                return Ok((taken, (at < postings.total()).then_some(at)));
            }
        }
    }

    fn cursor_at(
        &self,
        postings: &Postings,
        offset: u64,
        domain: &str,
        dataset_id: u32,
        filter: &Filter,
    ) -> Option<String> {
        let (segment, run) = *postings.pieces(offset, 1).first()?;
        let cursor = Cursor {
            version: self.version().to_owned(),
            domain_id: domain_id(domain),
            dataset_id,
            filter: mark_of(filter),
            segment: u32::try_from(segment).ok()?,
            file_id: run.file_id,
            row_group: run.row_group,
            row: run.first_row,
        };
        Some(cursor.encode())
    }
}

/// Bytes of what may be long in a row.
fn text_bytes(rows: &Rows, i: usize) -> usize {
    let columns = [Column::PathQuery, Column::RawUrl, Column::Extras];
    columns.into_iter().filter_map(|column| rows.text(column, i)).map(str::len).sum()
}

/// Whether a filter takes a row.
pub(crate) fn passes(rows: &Rows, i: usize, filter: &Filter) -> bool {
    let text_is = |wanted: &Option<String>, column, fits: fn(&str, &str) -> bool| {
        wanted.as_ref().is_none_or(|wanted| rows.text(column, i).is_some_and(|found| fits(found, wanted)))
    };
    text_is(&filter.host, Column::Host, |found, wanted| found == wanted)
        && text_is(&filter.path_prefix, Column::PathQuery, begins_so)
        && filter.from.is_none_or(|from| rows.ts(i).is_some_and(|ts| ts >= from))
        && filter.until.is_none_or(|until| rows.ts(i).is_some_and(|ts| ts < until))
        && filter.status.is_none_or(|status| rows.number(Column::Status, i) == Some(i64::from(status)))
        && filter.error_class.as_ref().is_none_or(|class| error_class(rows, i).as_ref() == Some(class))
}

/// Whether a path and query begin with `wanted`, if their parameters may have any order.
fn begins_so(found: &str, wanted: &str) -> bool {
    let in_some_order = |(path, wanted): (&str, &str)| {
        let query = found.strip_prefix(path).and_then(|rest| rest.strip_prefix('?'));
        query.is_some_and(|query| begins_in_some_order(query, wanted))
    };
    found.starts_with(wanted) || wanted.split_once('?').is_some_and(in_some_order)
}

/// The class of a failed fetch. Most rows have none, so a look at the text comes before the parser.
pub(crate) fn error_class(rows: &Rows, i: usize) -> Option<String> {
    let extras = rows.text(Column::Extras, i).filter(|text| text.contains("\"error_class\""))?;
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(extras).ok()?.remove("error_class")? {
        serde_json::Value::String(class) => Some(class),
        _ => None,
    }
}

/// A digest as lakes spell it now; files of earlier programs have `sha1:` and Base32.
pub(crate) fn digest_text(stored: &str) -> Cow<'_, str> {
    let old = stored.starts_with("sha1:").then(|| Digest::parse(stored).ok()).flatten();
    old.map_or(Cow::Borrowed(stored), |digest| Cow::Owned(digest.column()))
}

pub(crate) fn item(rows: &Rows, i: usize) -> UrlItem {
    let text = |column| rows.text(column, i).map(str::to_owned);
    let url = rows.url(i);
    UrlItem {
        url_id: url_id(url.as_bytes()),
        url,
        ts: rows.ts(i),
        status: rows.unsigned(Column::Status, i),
        content_type: text(Column::ContentType),
        digest: rows.text(Column::Digest, i).map(|stored| digest_text(stored).into_owned()),
        body_length: rows.unsigned(Column::BodyLength, i),
        warc_file: text(Column::WarcFile),
        warc_offset: rows.unsigned(Column::WarcOffset, i),
        warc_length: rows.unsigned(Column::WarcLength, i),
        locator: None,
        extras: rows.text(Column::Extras, i).map(extras),
    }
}
