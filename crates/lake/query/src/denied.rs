//! Rows that are denied for their own sake, as counts must not show them.
//!
//! Domains and datasets that are denied are left out whole. A denied URL, prefix or host takes some rows of a domain: these
//! are looked up by key and taken from its counts and pages, until a purge has taken them from the files. What a version
//! answers does not change, so what was found out of a domain is remembered, within a budget of bytes.

use crate::domain::gather;
use crate::gaps::{Gaps, GapsBuilder};
use crate::hidden::runs_of;
use crate::pinned::{Found, Pinned};
use crate::postings::Postings;
use crate::seek::{KeyRange, key_of};
use crate::{Principal, QueryError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use trawl_index::counts::Count;
use trawl_index::postings::Run;
use trawl_index::{Segment, Slot};
use trawl_model::UnixMillis;
use trawl_rows::{Column, Columns, Rows};
use trawl_store::denial::Start;
use xxhash_rust::xxh3::xxh3_128;

/// Rows read at a time.
const STEP: u64 = 5_000;
const WANTED: Columns = Columns::URL.and(Columns::of(&[Column::Ts]));
/// Rows that looking for one start in one run decodes, about: past all rows there are, reading them is cheaper.
const SEARCH_ROWS: u64 = 8_192;
/// Hashes counted at a time at least.
const MIN_HASHES: u64 = 1_000;

/// Hears of a row: the piece it was read with, the rows of that, and its place among them.
type Each<'a> = dyn FnMut(&(usize, Run), &Rows, usize) -> ControlFlow<()> + 'a;
type Times = (UnixMillis, UnixMillis);

/// The denied rows of a (domain, dataset).
#[derive(Debug, Default)]
pub(crate) struct Lost {
    pub rows: u64,
    /// Where they are.
    pub gaps: Gaps,
    /// Different raw URLs, once per segment, as counts of several segments are summed.
    distinct: u64,
    /// The earliest and the latest time of the rows that are left.
    times: Option<Times>,
}

/// The state of the lake by its mark, a version, a domain and a dataset of it.
type Key = (u64, String, String, u32);

/// What was found out already.
#[derive(Debug)]
pub(crate) struct KnownLosses {
    known: Cache<Key, Arc<Lost>, Weight>,
    budget: u64,
}

#[derive(Debug, Clone, Copy)]
struct Weight;

/// What an entry costs beside its gaps and names.
const OVERHEAD: usize = 256;

impl Weighter<Key, Arc<Lost>> for Weight {
    fn weight(&self, (_, version, domain, _): &Key, lost: &Arc<Lost>) -> u64 {
        (lost.gaps.memory() + version.len() + domain.len() + OVERHEAD) as u64
    }
}

impl KnownLosses {
    /// Remembers so many bytes; one domain may take a quarter of them.
    pub fn new(budget: u64) -> Self {
        let items = usize::try_from(budget / 1024).unwrap_or(usize::MAX).clamp(16, 1 << 16);
        Self { known: Cache::with_weighter(items, budget, Weight), budget }
    }

    /// Bytes it takes.
    pub fn memory(&self) -> u64 {
        self.known.weight()
    }

    fn max_gaps(&self) -> usize {
        Gaps::fit(self.budget / 4)
    }

    fn max_hashes(&self) -> u64 {
        (self.budget / 64).max(MIN_HASHES)
    }
}

impl Pinned {
    /// What all segments together know of a domain but top paths, by dataset, for those that `who` may see, without
    /// denied rows. Datasets that have no others are not there.
    pub(crate) fn shown_counts(
        &self,
        domain: &str,
        found: &[Found<'_>],
        who: &Principal,
    ) -> Result<BTreeMap<u32, Count>, QueryError> {
        Ok(self.shown(domain, found, who, Segment::bare_counts)?.into_iter().collect())
    }

    /// The same by rising dataset, with what `counts` says of each segment.
    pub(crate) fn shown(
        &self,
        domain: &str,
        found: &[Found<'_>],
        who: &Principal,
        counts: impl Fn(&Segment, Slot) -> trawl_index::Result<Vec<(u32, Count)>>,
    ) -> Result<Vec<(u32, Count)>, QueryError> {
        let mut counts = gather(found, counts)?;
        counts.retain(|(id, _)| self.visible(*id, who).is_some());
        if self.deny.touches(domain) {
            for (id, count) in &mut counts {
                let lost = self.lost(domain, *id, &runs_of(found, *id)?)?;
                if lost.rows > 0 {
                    count.rows = count.rows.saturating_sub(lost.rows);
                    count.distinct = count.distinct.saturating_sub(lost.distinct);
                    count.times = lost.times;
                    // They are sums over all rows, denied paths among them; a purge brings them back.
                    count.paths.clear();
                }
            }
            counts.retain(|(_, count)| count.rows > 0);
        }
        Ok(counts)
    }

    /// The denied rows among all rows of a (domain, dataset).
    pub(crate) fn lost(&self, domain: &str, dataset_id: u32, all: &Postings) -> Result<Arc<Lost>, QueryError> {
        if !self.deny.touches(domain) {
            return Ok(Arc::default());
        }
        let key = (self.state_mark(), self.version().to_owned(), domain.to_owned(), dataset_id);
        let losses = self.inner.losses();
        if let Some(lost) = losses.known.get(&key) {
            return Ok(lost);
        }
        let lost = Arc::new(self.find_lost(domain, dataset_id, all, losses)?);
        losses.known.insert(key, lost.clone());
        Ok(lost)
    }

    fn find_lost(
        &self,
        domain: &str,
        dataset_id: u32,
        all: &Postings,
        limits: &KnownLosses,
    ) -> Result<Lost, QueryError> {
        let ranges = Postings { runs: self.denied_runs(domain, all)? };
        let mut gaps = GapsBuilder::new(limits.max_gaps());
        let mut urls = Urls::default();
        let (mut rows_lost, mut times_lost) = (0, None);
        self.scan(&ranges, WANTED, &mut |(segment, run), rows, i| {
            if self.is_denied(rows, i) {
                rows_lost += 1;
                rows.ts(i).into_iter().for_each(|ts| widen(&mut times_lost, ts));
                gaps.push(*segment, Run { first_row: run.first_row + i as u64, ..*run });
                urls.push(*segment, rows, i);
            }
            ControlFlow::Continue(())
        })?;
        let mut lost = Lost { rows: rows_lost, gaps: gaps.finish(), distinct: urls.count, times: None };
        if urls.unsorted {
            lost.distinct = self.distinct_lost(&ranges, rows_lost.div_ceil(limits.max_hashes()).max(1))?;
        }
        if lost.rows > 0 && lost.rows < all.total() {
            let counts = gather(&self.find(domain)?, Segment::bare_counts)?;
            lost.times = counts.into_iter().find(|(id, _)| *id == dataset_id).and_then(|(_, count)| count.times);
            // The ends stay where they are unless a denied row has one of them.
            let at_an_end = |((first, last), lost): (Times, Times)| lost.0 <= first || lost.1 >= last;
            if lost.times.zip(times_lost).is_some_and(at_an_end) {
                lost.times = None;
                self.scan(all, WANTED, &mut |_, rows, i| {
                    let ts = rows.ts(i).filter(|_| !self.is_denied(rows, i));
                    ts.into_iter().for_each(|ts| widen(&mut lost.times, ts));
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(lost)
    }

    /// Counts the different denied URLs of each segment where files overlap, a part of all hashes at a time.
    fn distinct_lost(&self, ranges: &Postings, parts: u64) -> Result<u64, QueryError> {
        let mut count = 0;
        for part in 0..parts {
            let mut hashes: HashSet<(usize, u128)> = HashSet::new();
            self.scan(ranges, WANTED, &mut |(segment, _), rows, i| {
                if self.is_denied(rows, i) {
                    let hash = xxh3_128(rows.url(i).as_bytes());
                    if hash % u128::from(parts) == u128::from(part) {
                        hashes.insert((*segment, hash));
                    }
                }
                ControlFlow::Continue(())
            })?;
            count += hashes.len() as u64;
        }
        Ok(count)
    }

    /// The parts of runs that may hold denied rows, each once.
    fn denied_runs(&self, domain: &str, all: &Postings) -> Result<Vec<(usize, Run)>, QueryError> {
        let searches = (self.deny.starts(domain).count() as u64).saturating_mul(all.runs.len() as u64);
        if searches.saturating_mul(SEARCH_ROWS) >= all.total() {
            return Ok(all.runs.clone());
        }
        let mut runs = Vec::new();
        for start in self.deny.starts(domain) {
            let range = match start {
                Start::Path(host, path) => KeyRange::prefix(host, path),
                Start::Host(host) => KeyRange::host_and_below(host),
            };
            let mut narrowed = Postings { runs: all.runs.clone() };
            self.narrow(&mut narrowed, &range)?;
            runs.append(&mut narrowed.runs);
        }
        runs.sort_unstable_by_key(|(segment, run)| (*segment, run.file_id, run.row_group, run.first_row));
        let mut merged: Vec<(usize, Run)> = Vec::new();
        for (segment, run) in runs {
            join(&mut merged, segment, run);
        }
        Ok(merged)
    }

    /// Shows rows in the order of pages, until `each` has enough.
    pub(crate) fn scan(&self, postings: &Postings, wanted: Columns, each: &mut Each<'_>) -> Result<(), QueryError> {
        let mut at = 0;
        while at < postings.total() {
            let pieces = postings.pieces(at, STEP);
            for (piece, rows) in pieces.iter().zip(self.read(&pieces, wanted)?) {
                at += rows.len() as u64;
                for i in 0..rows.len() {
                    if each(piece, &rows, i).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Where the shown row stands that has `offset` others before it, among rows that [`Gaps::left_of`] left.
    pub(crate) fn place_of(&self, offset: u64, left: &Postings, gaps: &Gaps) -> Result<u64, QueryError> {
        let (mut at, mut skip) = (0, offset);
        for (segment, run) in &left.runs {
            let mixed = gaps.mixed(*segment, run);
            let shown = run.row_count.saturating_sub(mixed.map_or(0, |gap| gap.lost));
            if skip < shown {
                return Ok(at + if mixed.is_some() { self.nth_shown(*segment, run, skip)? } else { skip });
            }
            skip -= shown;
            at += run.row_count;
        }
        Ok(at)
    }

    /// How many shown rows stand before a place among rows that [`Gaps::left_of`] left.
    pub(crate) fn shown_before(&self, place: u64, left: &Postings, gaps: &Gaps) -> Result<u64, QueryError> {
        let (mut shown, mut rest) = (0, place);
        for (segment, run) in &left.runs {
            let mixed = gaps.mixed(*segment, run);
            if rest < run.row_count {
                let before = Run { row_count: rest, ..*run };
                return Ok(shown + if mixed.is_some() { self.count_shown(*segment, &before)? } else { rest });
            }
            shown += run.row_count.saturating_sub(mixed.map_or(0, |gap| gap.lost));
            rest -= run.row_count;
        }
        Ok(shown)
    }

    /// How many shown rows stand before a place among rows that [`Gaps::left_of`] left and a filter cut: of a gap that was cut it
    /// is not known which part has which denied rows, so these are looked at.
    pub(crate) fn shown_until(&self, place: u64, left: &Postings, gaps: &Gaps) -> Result<u64, QueryError> {
        let (mut shown, mut rest) = (0, place);
        for (segment, run) in &left.runs {
            let part = Run { row_count: run.row_count.min(rest), ..*run };
            let mixed = gaps.mixed(*segment, run).is_some();
            shown += if mixed { self.count_shown(*segment, &part)? } else { part.row_count };
            rest -= part.row_count;
            if rest == 0 {
                break;
            }
        }
        Ok(shown)
    }

    fn nth_shown(&self, segment: usize, run: &Run, n: u64) -> Result<u64, QueryError> {
        let (mut skip, mut at) = (n, 0);
        self.scan(&Postings { runs: vec![(segment, *run)] }, WANTED, &mut |_, rows, i| {
            if !self.is_denied(rows, i) {
                if skip == 0 {
                    return ControlFlow::Break(());
                }
                skip -= 1;
            }
            at += 1;
            ControlFlow::Continue(())
        })?;
        Ok(at)
    }

    fn count_shown(&self, segment: usize, run: &Run) -> Result<u64, QueryError> {
        let mut count = 0;
        self.scan(&Postings { runs: vec![(segment, *run)] }, WANTED, &mut |_, rows, i| {
            count += u64::from(!self.is_denied(rows, i));
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Whether a row is denied for its own sake.
    pub(crate) fn is_denied(&self, rows: &Rows, i: usize) -> bool {
        let mut url = String::new();
        rows.lake_url_into(i, &mut url);
        self.deny.row(rows.text(Column::Host, i).unwrap_or_default(), &url)
    }
}

/// Counts different URLs of rows in the order of keys: those of one key stand together.
#[derive(Default)]
struct Urls {
    segment: usize,
    key: String,
    of_key: HashSet<u128>,
    count: u64,
    /// A key came after a later one: files overlap, and the count is wrong.
    unsorted: bool,
}

impl Urls {
    fn push(&mut self, segment: usize, rows: &Rows, i: usize) {
        let text = |column| rows.text(column, i).unwrap_or_default();
        let key = key_of(text(Column::Host), text(Column::PathQuery));
        if (segment, &key) != (self.segment, &self.key) {
            self.unsorted |= segment == self.segment && key < self.key;
            (self.segment, self.key) = (segment, key);
            self.of_key.clear();
        }
        self.count += u64::from(self.of_key.insert(xxh3_128(rows.url(i).as_bytes())));
    }
}

fn widen(times: &mut Option<Times>, ts: UnixMillis) {
    let (first, last) = times.unwrap_or((ts, ts));
    *times = Some((first.min(ts), last.max(ts)));
}

/// Adds a run that begins no earlier than the last one, as part of it where they meet.
fn join(runs: &mut Vec<(usize, Run)>, segment: usize, run: Run) {
    let end = run.first_row + run.row_count;
    match runs.last_mut() {
        Some((s, last))
            if (*s, last.file_id, last.row_group) == (segment, run.file_id, run.row_group)
                && run.first_row <= last.first_row + last.row_count =>
        {
            last.row_count = last.row_count.max(end - last.first_row);
        }
        _ => runs.push((segment, run)),
    }
}
