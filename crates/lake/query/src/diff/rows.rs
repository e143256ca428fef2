//! The rows of a domain in two datasets, merged by key.

use super::windows::Windows;
use super::{Comparison, Side};
use crate::postings::Postings;
use crate::seek::key_of;
use crate::{Pinned, Principal, QueryError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use trawl_index::postings::Run;
use trawl_rows::Column;

/// Rows in memory at most, over all files that hold the domain.
const MAX_ROWS: usize = 1 << 16;
/// Rows of one file read at a time at least.
const MIN_STEP: usize = 64;

/// A key and the URL that has it, which of both datasets it is of, and from which file: what the merge sorts by.
type Head = Reverse<(String, String, bool, usize)>;

/// The rows of one file that are of the domain: sorted, since those of a file are.
struct FileRows {
    /// Whether the file is of A.
    is_a: bool,
    /// Whether some of them may be denied.
    touched: bool,
    segment: usize,
    runs: VecDeque<Run>,
    buffer: VecDeque<(String, String)>,
}

impl Pinned {
    /// Tells every URL of a domain that either dataset holds, once, in the order of keys.
    pub(super) fn diff_rows(
        &self,
        domain: &str,
        what: &Comparison<'_>,
        who: &Principal,
        windows: &mut Windows,
        each: &mut dyn FnMut(Side, &str) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let mut files = Vec::new();
        for (is_a, dataset_id) in [(true, what.a), (false, what.b)] {
            match self.postings(domain, dataset_id, who) {
                Ok(postings) => files.extend(by_file(is_a, self.deny.touches(domain), postings)),
                Err(QueryError::UnknownDataset { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let step = (MAX_ROWS / files.len().max(1)).max(MIN_STEP) as u64;
        let mut heads = BinaryHeap::with_capacity(files.len());
        for (index, file) in files.iter_mut().enumerate() {
            self.refill(file, step, windows)?;
            heads.extend(head(file, index));
        }
        // URLs of one key differ by scheme and port, and rows of a key are ordered by time first: so gather them.
        let mut key = String::new();
        let mut urls: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        while let Some(Reverse((next, url, is_a, index))) = heads.pop() {
            if next != key {
                if tell(&mut urls, each).is_break() {
                    return Ok(());
                }
                key = next;
            }
            let (in_a, in_b) = urls.entry(url).or_default();
            *if is_a { in_a } else { in_b } = true;
            let Some(file) = files.get_mut(index) else { continue };
            self.refill(file, step, windows)?;
            heads.extend(head(file, index));
        }
        let _ = tell(&mut urls, each);
        Ok(())
    }

    /// Reads on when all rows read before are used up.
    fn refill(&self, file: &mut FileRows, step: u64, windows: &mut Windows) -> Result<(), QueryError> {
        while file.buffer.is_empty() {
            let Some(run) = file.runs.front_mut() else { return Ok(()) };
            let wanted = Run { row_count: run.row_count.min(step), ..*run };
            let (rows, range) = windows.rows(self, file.segment, &wanted)?;
            let taken = range.len() as u64;
            for i in range {
                let text = |column| rows.text(column, i).unwrap_or_default();
                let mut url = String::new();
                rows.lake_url_into(i, &mut url);
                if file.touched && self.deny.row(text(Column::Host), &url) {
                    continue;
                }
                file.buffer.push_back((key_of(text(Column::Host), text(Column::PathQuery)), url));
            }
            run.first_row += taken;
            run.row_count = run.row_count.saturating_sub(taken);
            if run.row_count == 0 || taken == 0 {
                file.runs.pop_front();
            }
        }
        Ok(())
    }
}

fn head(file: &mut FileRows, index: usize) -> Option<Head> {
    let (key, url) = file.buffer.pop_front()?;
    Some(Reverse((key, url, file.is_a, index)))
}

fn tell(
    urls: &mut BTreeMap<String, (bool, bool)>,
    each: &mut dyn FnMut(Side, &str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for (url, (in_a, in_b)) in std::mem::take(urls) {
        if let Some(side) = Side::of(in_a, in_b) {
            each(side, &url)?;
        }
    }
    ControlFlow::Continue(())
}

/// The runs of each file together, in order.
fn by_file(is_a: bool, touched: bool, postings: Postings) -> Vec<FileRows> {
    let mut files: Vec<FileRows> = Vec::new();
    for (segment, run) in postings.runs {
        let same = |file: &FileRows| {
            file.segment == segment && file.runs.back().is_some_and(|last| last.file_id == run.file_id)
        };
        match files.last_mut().filter(|file| same(file)) {
            Some(file) => file.runs.push_back(run),
            None => {
                files.push(FileRows { is_a, touched, segment, runs: VecDeque::from([run]), buffer: VecDeque::new() })
            }
        }
    }
    files
}
