//! Rows that are denied for their own sake, as counts must not show them.
//!
//! Domains and datasets that are denied are left out whole. A denied URL, prefix or host takes some rows of a domain: these
//! are looked up by key and taken from its counts and pages, until a purge has taken them from the files. What a version
//! answers does not change, so each domain is looked at once.

use crate::deny::Start;
use crate::domain::gather;
use crate::pinned::{Found, Pinned, unmasked};
use crate::postings::Postings;
use crate::seek::KeyRange;
use crate::{Principal, QueryError};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_index::counts::Count;
use trawl_index::postings::Run;
use trawl_index::{Segment, Slot};
use trawl_model::UnixMillis;
use trawl_store::rows::{Column, Columns, Rows};

/// Rows read at a time.
const STEP: u64 = 5_000;
const WANTED: Columns = Columns::URL.and(Columns::of(&[Column::Ts]));

/// Hears of a row: the piece it was read with, the rows of that, and its place among them.
type Each<'a> = dyn FnMut(&(usize, Run), &Rows, usize) + 'a;

/// The denied rows of a (domain, dataset).
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    pub rows: u64,
    /// Where they are, in order: what stands together is one.
    gaps: Arc<Vec<(usize, Run)>>,
    /// Different raw URLs, once per segment, as counts of several segments are summed.
    distinct: u64,
    /// The earliest and the latest time of the rows that are left.
    times: Option<(UnixMillis, UnixMillis)>,
}

/// What was found out already.
#[derive(Debug, Default)]
pub(crate) struct KnownLosses(Mutex<HashMap<(String, u32), Lost>>);

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

    /// The same by rising dataset, with what `counts` tells of each segment.
    pub(crate) fn shown(
        &self,
        domain: &str,
        found: &[Found<'_>],
        who: &Principal,
        counts: impl Fn(&Segment, Slot) -> trawl_index::Result<Vec<(u32, Count)>>,
    ) -> Result<Vec<(u32, Count)>, QueryError> {
        let mut counts = gather(found, counts)?;
        counts.retain(|(id, _)| self.visible(*id, who).is_some());
        if self.deny().touches(domain) {
            for (id, count) in &mut counts {
                let mut runs = Vec::new();
                for place in found.iter().filter(|place| unmasked(place.reference, *id)) {
                    runs.extend(place.segment.postings(place.slot, *id)?.into_iter().map(|run| (place.index, run)));
                }
                let lost = self.lost(domain, *id, &Postings { runs })?;
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
    pub(crate) fn lost(&self, domain: &str, dataset_id: u32, all: &Postings) -> Result<Lost, QueryError> {
        if !self.deny().touches(domain) {
            return Ok(Lost::default());
        }
        let key = (domain.to_owned(), dataset_id);
        let known = || self.losses().0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lost) = known().get(&key).cloned() {
            return Ok(lost);
        }
        let lost = self.find_lost(domain, all)?;
        known().insert(key, lost.clone());
        Ok(lost)
    }

    fn find_lost(&self, domain: &str, all: &Postings) -> Result<Lost, QueryError> {
        let mut lost = Lost::default();
        let mut urls: HashSet<(usize, String)> = HashSet::new();
        let ranges = Postings { runs: self.denied_runs(domain, all)? };
        let mut gaps = Vec::new();
        self.scan(&ranges, &mut |(segment, run), rows, i| {
            if self.is_denied(rows, i) {
                lost.rows += 1;
                urls.insert((*segment, rows.url(i)));
                join(&mut gaps, *segment, Run { first_row: run.first_row + i as u64, row_count: 1, ..*run });
            }
        })?;
        lost.gaps = Arc::new(gaps);
        lost.distinct = urls.len() as u64;
        if lost.rows > 0 && lost.rows < all.total() {
            self.scan(all, &mut |_, rows, i| {
                if let Some(ts) = rows.ts(i).filter(|_| !self.is_denied(rows, i)) {
                    let (first, last) = lost.times.unwrap_or((ts, ts));
                    lost.times = Some((first.min(ts), last.max(ts)));
                }
            })?;
        }
        Ok(lost)
    }

    /// The parts of runs that may hold denied rows, each once.
    fn denied_runs(&self, domain: &str, all: &Postings) -> Result<Vec<(usize, Run)>, QueryError> {
        let mut runs = Vec::new();
        for start in self.deny().starts(domain) {
            let range = match start {
                Start::Path(host, path) => KeyRange::prefix(host, path),
                Start::Host(host) => KeyRange::host_and_below(host),
            };
            let mut narrowed = Postings { runs: all.runs.clone() };
            self.narrow(&mut narrowed, &range)?;
            runs.append(&mut narrowed.runs);
        }
        runs.sort_unstable_by_key(place);
        let mut merged: Vec<(usize, Run)> = Vec::new();
        for (segment, run) in runs {
            join(&mut merged, segment, run);
        }
        Ok(merged)
    }

    fn scan(&self, postings: &Postings, each: &mut Each<'_>) -> Result<(), QueryError> {
        let mut at = 0;
        while at < postings.total() {
            let pieces = postings.pieces(at, STEP);
            for (piece, rows) in pieces.iter().zip(self.read(&pieces, WANTED)?) {
                at += rows.len() as u64;
                (0..rows.len()).for_each(|i| each(piece, &rows, i));
            }
        }
        Ok(())
    }

    /// Whether a row is denied for its own sake.
    pub(crate) fn is_denied(&self, rows: &Rows, i: usize) -> bool {
        let mut url = String::new();
        rows.lake_url_into(i, &mut url);
        self.deny().row(rows.text(Column::Host, i).unwrap_or_default(), &url)
    }
}

impl Lost {
    /// The rows of `all` that are left.
    pub(crate) fn left_of(&self, all: Postings) -> Postings {
        if self.gaps.is_empty() {
            return all;
        }
        let mut runs = Vec::new();
        for (segment, run) in all.runs {
            let end = run.first_row + run.row_count;
            let mut at = run.first_row;
            let first = self.gaps.partition_point(|gap| {
                let (s, file_id, row_group, row) = place(gap);
                (s, file_id, row_group, row + gap.1.row_count) <= (segment, run.file_id, run.row_group, at)
            });
            for (s, gap) in self.gaps.iter().skip(first) {
                if (*s, gap.file_id, gap.row_group) != (segment, run.file_id, run.row_group) || gap.first_row >= end {
                    break;
                }
                if gap.first_row > at {
                    runs.push((segment, Run { first_row: at, row_count: gap.first_row - at, ..run }));
                }
                at = gap.first_row + gap.row_count;
            }
            if at < end {
                runs.push((segment, Run { first_row: at, row_count: end - at, ..run }));
            }
        }
        Postings { runs }
    }
}

/// What runs are ordered by.
fn place((segment, run): &(usize, Run)) -> (usize, u32, u32, u64) {
    (*segment, run.file_id, run.row_group, run.first_row)
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
