//! Where the denied rows of a (domain, dataset) are, in bounded memory.
//!
//! ```text
//! rows      . x x . . x . x . x . . . . x x .      x: denied
//! gaps        [2]     [1] [1] [1]       [2]        each exactly what is denied, while there are few
//! joined      [ 3 of 5  ] [ 2 of 3]     [2]        past the bound, two become one: rows in them are looked at again
//! ```

use crate::postings::Postings;
use trawl_index::postings::Run;

/// Rows of one row group, of which some are denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    segment: usize,
    run: Run,
    /// Denied rows among them: all, unless gaps were joined.
    pub lost: u64,
}

impl Gap {
    fn is_whole(&self) -> bool {
        self.lost == self.run.row_count
    }

    fn end(&self) -> u64 {
        self.run.first_row.saturating_add(self.run.row_count)
    }

    fn group(&self) -> (usize, u32, u32) {
        (self.segment, self.run.file_id, self.run.row_group)
    }

    /// Takes in what begins no earlier, and all between.
    fn join(&mut self, more: &Gap) {
        self.run.row_count = more.end().saturating_sub(self.run.first_row);
        self.lost += more.lost;
    }
}

/// Gathers denied rows in order.
#[derive(Debug)]
pub(crate) struct GapsBuilder {
    list: Vec<Gap>,
    max: usize,
    /// How many gaps may be joined to one, and how many the last one is made of.
    per: u64,
    last: u64,
}

impl GapsBuilder {
    /// Of at most `max` gaps, or one or two for each row group where these are more.
    pub fn new(max: usize) -> Self {
        Self { list: Vec::new(), max: max.max(2), per: 1, last: 0 }
    }

    /// Adds a row after all others.
    pub fn push(&mut self, segment: usize, row: Run) {
        let new = Gap { segment, run: Run { row_count: 1, ..row }, lost: 1 };
        if let Some(last) = self.list.last_mut().filter(|last| last.group() == new.group()) {
            let meets = last.end() == new.run.first_row;
            if meets || self.last < self.per {
                last.join(&new);
                self.last += u64::from(!meets);
                return;
            }
        }
        self.list.push(new);
        self.last = 1;
        if self.list.len() > self.max {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let mut joined: Vec<Gap> = Vec::with_capacity(self.list.len() / 2 + 1);
        let mut open = false;
        for gap in self.list.drain(..) {
            match joined.last_mut().filter(|last| open && last.group() == gap.group()) {
                Some(last) => {
                    last.join(&gap);
                    open = false;
                }
                None => {
                    joined.push(gap);
                    open = true;
                }
            }
        }
        self.list = joined;
        self.per = self.per.saturating_mul(2);
        // Full, so that the next one is not joined to it past measure.
        self.last = self.per;
        // As many row groups as that: gaps of different ones cannot be joined.
        if self.list.len() > self.max / 4 * 3 {
            self.max = self.list.len().saturating_mul(2);
        }
    }

    pub fn finish(self) -> Gaps {
        Gaps(self.list.into_boxed_slice())
    }
}

/// Where denied rows are, in order.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Box<[Gap]>);

impl Gaps {
    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        std::mem::size_of_val(&*self.0)
    }

    /// Gaps that fit into so many bytes.
    pub fn fit(bytes: u64) -> usize {
        usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Gap>()
    }

    /// `all` without gaps that are denied whole. What is only denied in part is a run of its own.
    pub fn left_of(&self, all: Postings) -> Postings {
        if self.0.is_empty() {
            return all;
        }
        let mut runs = Vec::new();
        for (segment, run) in all.runs {
            let group = (segment, run.file_id, run.row_group);
            let end = run.first_row + run.row_count;
            let mut at = run.first_row;
            let mut push = |from: u64, until: u64| {
                if from < until {
                    runs.push((segment, Run { first_row: from, row_count: until - from, ..run }));
                }
            };
            for gap in self.0.iter().skip(self.first_after(group, at)) {
                if gap.group() != group || gap.run.first_row >= end {
                    break;
                }
                let (from, until) = (gap.run.first_row.max(at), gap.end().min(end));
                push(at, from);
                if !gap.is_whole() {
                    push(from, until);
                }
                at = until;
            }
            push(at, end);
        }
        Postings { runs }
    }

    /// The gap, denied in part, that a run of [`Gaps::left_of`] is or is a piece of.
    pub fn mixed(&self, segment: usize, run: &Run) -> Option<&Gap> {
        let group = (segment, run.file_id, run.row_group);
        let gap = self.0.get(self.first_after(group, run.first_row))?;
        (gap.group() == group && gap.run.first_row <= run.first_row && !gap.is_whole()).then_some(gap)
    }

    /// The first gap that ends after a row.
    fn first_after(&self, group: (usize, u32, u32), row: u64) -> usize {
        self.0.partition_point(|gap| (gap.group(), gap.end()) <= (group, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(row_group: u32, first_row: u64, row_count: u64) -> Run {
        Run { file_id: 0, row_group, first_row, row_count }
    }

    fn gaps(max: usize, rows: impl IntoIterator<Item = (u32, u64)>) -> Gaps {
        let mut builder = GapsBuilder::new(max);
        rows.into_iter().for_each(|(group, row)| builder.push(0, run(group, row, 1)));
        builder.finish()
    }

    #[test]
    fn what_meets_is_one_and_what_is_left_lies_between() {
        let gaps = gaps(100, [(0, 1), (0, 2), (0, 5), (2, 0)]);
        assert_eq!(gaps.0.len(), 3);
        let all = Postings { runs: [(0, 6), (1, 4), (2, 1)].map(|(group, rows)| (0, run(group, 0, rows))).to_vec() };
        let left: Vec<_> = gaps.left_of(all).runs.into_iter().map(|(_, run)| run).collect();
        assert_eq!(left, [run(0, 0, 1), run(0, 3, 2), run(1, 0, 4)]);
        assert!(left.iter().all(|run| gaps.mixed(0, run).is_none()));
    }

    #[test]
    fn past_the_bound_gaps_are_joined_and_lose_no_count() {
        for (max, groups) in [(2, 1), (4, 1), (7, 3), (64, 2), (3, 40)] {
            let rows: Vec<_> = (0..groups).flat_map(|g| (0..1000).map(move |row| (g, row * 2 + row / 7))).collect();
            let gaps = gaps(max, rows.iter().copied());
            let bound = max.max(4 * groups as usize);
            assert!(gaps.0.len() <= bound, "{} of {bound}", gaps.0.len());
            assert!(gaps.memory() <= bound * size_of::<Gap>() && Gaps::fit(gaps.memory() as u64) == gaps.0.len());
            assert_eq!(gaps.0.iter().map(|gap| gap.lost).sum::<u64>(), rows.len() as u64);
            let longest = gaps.0.iter().map(|gap| gap.lost).max().unwrap();
            assert!(longest <= 8 * (rows.len() / gaps.0.len()) as u64, "{longest} in one of {}", gaps.0.len());
            for (group, row) in rows {
                let within = |gap: &&Gap| gap.run.row_group == group && (gap.run.first_row..gap.end()).contains(&row);
                assert_eq!(gaps.0.iter().filter(within).count(), 1);
            }
        }
    }

    #[test]
    fn a_cut_gap_is_still_known_as_mixed() {
        let gaps = gaps(2, (0..100).map(|row| (0, row * 2)));
        let left = gaps.left_of(Postings { runs: vec![(0, run(0, 31, 20)), (1, run(0, 0, 9))] });
        assert!(left.runs.iter().filter(|(segment, _)| *segment == 0).all(|(s, run)| gaps.mixed(*s, run).is_some()));
        assert_eq!(left.total(), 29);
        assert_eq!(left.runs.last(), Some(&(1, run(0, 0, 9))));
    }
}
