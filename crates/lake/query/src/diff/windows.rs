//! Rows read ahead. Domains come in order, and so do their rows in a file: what is decoded for one domain serves the
//! next ones, where a read for each would decode every page as often as there are domains in it.

use crate::{Pinned, QueryError};
use std::collections::HashMap;
use std::ops::Range;
use trawl_index::postings::Run;
use trawl_rows::{Column, Columns, GroupTable, Rows};

/// Rows read at a time: two pages of a file.
const AHEAD: u64 = 8192;
/// Windows kept; a file of another domain prefix comes back later.
const MAX_WINDOWS: usize = 64;
/// What a normalised URL is made of.
const WANTED: Columns = Columns::of(&[Column::Scheme, Column::Host, Column::Port, Column::PathQuery]);

/// Rows of a row group that were decoded last.
struct Window {
    first: u64,
    rows: Rows,
    used: u64,
}

/// The windows of all row groups at hand.
#[derive(Default)]
pub(super) struct Windows {
    of: HashMap<(usize, u32, u32), Window>,
    clock: u64,
}

impl Windows {
    /// Rows from the first of `wanted` on: decoded rows, and which of them. Not always all that are wanted, but some.
    pub fn rows(&mut self, pinned: &Pinned, segment: usize, wanted: &Run) -> Result<(&Rows, Range<usize>), QueryError> {
        let place = (segment, wanted.file_id, wanted.row_group);
        self.clock += 1;
        let has = |window: &Window| (window.first..window.first + window.rows.len() as u64).contains(&wanted.first_row);
        if !self.of.get(&place).is_some_and(has) {
            let rows = read_ahead(pinned, segment, wanted)?;
            if self.of.len() >= MAX_WINDOWS && !self.of.contains_key(&place) {
                let oldest = self.of.iter().min_by_key(|(_, window)| window.used).map(|(place, _)| *place);
                oldest.and_then(|place| self.of.remove(&place));
            }
            self.of.insert(place, Window { first: wanted.first_row, rows, used: 0 });
        }
        let window = self.of.entry(place).or_insert_with(|| Window { first: 0, rows: Rows::default(), used: 0 });
        window.used = self.clock;
        let at = |row: u64| usize::try_from(row.saturating_sub(window.first)).unwrap_or(usize::MAX);
        let end = at(wanted.first_row + wanted.row_count).min(window.rows.len());
        Ok((&window.rows, at(wanted.first_row).min(end)..end))
    }
}

/// The wanted rows and some behind them, as far as the row group goes.
fn read_ahead(pinned: &Pinned, segment: usize, wanted: &Run) -> Result<Rows, QueryError> {
    let Some((open, _)) = pinned.segments.get(segment) else { return Ok(Rows::default()) };
    let Some(table) = open.page_tables(&[(wanted.file_id, wanted.row_group)])?.into_iter().next() else {
        return Ok(Rows::default());
    };
    let group = u64::from(GroupTable::new(&open.file(wanted.file_id)?.path, &table)?.rows());
    let row_count = wanted.row_count.max(AHEAD).min(group.saturating_sub(wanted.first_row));
    Ok(pinned.read(&[(segment, Run { row_count, ..*wanted })], WANTED)?.into_iter().next().unwrap_or_default())
}
