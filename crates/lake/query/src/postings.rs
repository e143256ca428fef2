//! The rows of a (domain, dataset) in the order of pages, and reading them.

use crate::cursor::Cursor;
use crate::hidden::runs_of;
use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use trawl_index::FileEntry;
use trawl_index::postings::Run;
use trawl_rows::{Columns, GroupTable, Plan, Rows};

/// Runs read for one page at most; a domain in very many small files gets shorter pages.
const MAX_RUNS: usize = 256;

/// All rows of a (domain, dataset) in the order of pages.
pub(crate) struct Postings {
    /// Place of the segment in the version, and the run.
    pub runs: Vec<(usize, Run)>,
}

impl Postings {
    /// Rows of all runs.
    pub fn total(&self) -> u64 {
        self.runs.iter().fold(0, |sum, (_, run)| sum.saturating_add(run.row_count))
    }

    /// The parts of runs that hold `len` rows from `offset` on; no more than some hundred of them.
    pub fn pieces(&self, offset: u64, len: u64) -> Vec<(usize, Run)> {
        cut(&self.runs, offset, offset.saturating_add(len)).take(MAX_RUNS).collect()
    }

    /// The offset of the row a cursor points at, or of the first one after it.
    pub fn offset_of(&self, cursor: &Cursor) -> u64 {
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

/// The rows of `runs` from `start` to `end`, counted over all of them, as runs.
pub(crate) fn cut(runs: &[(usize, Run)], start: u64, end: u64) -> impl Iterator<Item = (usize, Run)> {
    let mut before = 0u64;
    let parts = runs.iter().map_while(move |(segment, run)| {
        let (from, to) = (start.max(before), end.min(before.saturating_add(run.row_count)));
        let first_row = run.first_row.saturating_add(from.saturating_sub(before));
        let part = (before < end).then(|| (*segment, Run { first_row, row_count: to.saturating_sub(from), ..*run }));
        before = before.saturating_add(run.row_count);
        part
    });
    parts.filter(|(_, run)| run.row_count > 0)
}

impl Pinned {
    /// The runs of a pair. Absent and hidden alike are found out from the membership, before any postings are read.
    pub(crate) fn postings(&self, domain: &str, dataset_id: u32, who: &Principal) -> Result<Postings, QueryError> {
        let found = self.find(domain)?;
        let mut holders: Vec<&Found<'_>> = Vec::new();
        let mut any = false;
        for place in &found {
            for id in place.segment.datasets(place.slot)? {
                let shown = place.tells_of(id) && self.visible(id, who).is_some();
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
        runs_of(holders, dataset_id)
    }

    /// Reads pieces of runs: one round, whatever their number.
    pub(crate) fn read(&self, pieces: &[(usize, Run)], wanted: Columns) -> Result<Vec<Rows>, QueryError> {
        self.is_enough()?;
        let mut plans = Vec::with_capacity(pieces.len());
        for of_one in pieces.chunk_by(|a, b| a.0 == b.0) {
            let Some((segment, _)) = of_one.first().and_then(|(index, _)| self.segments.get(*index)) else {
                continue;
            };
            let groups: Vec<_> = of_one.iter().map(|(_, run)| (run.file_id, run.row_group)).collect();
            for ((_, run), table) in of_one.iter().zip(segment.page_tables(&groups)?) {
                let path = segment.file(run.file_id)?.path;
                let table = GroupTable::new(&path, &table)?;
                let rows = run.rows().ok_or_else(|| trawl_store::Error::Corrupt {
                    path: path.clone(),
                    offset: 0,
                    expected: "a row group with the rows of its postings",
                    found: format!("{} rows from row {} on", run.row_count, run.first_row),
                })?;
                plans.push(Plan::new(&path, &table, rows, wanted)?);
            }
        }
        match trawl_rows::read(&**self.inner.store(), &plans) {
            Err(error) if error.is_not_found() => Err(self.lost_rows(pieces)?.unwrap_or(error).into()),
            rows => Ok(rows?),
        }
    }

    /// The first of the files that pieces lie in which is gone, with its rows.
    fn lost_rows(&self, pieces: &[(usize, Run)]) -> Result<Option<trawl_store::Error>, QueryError> {
        for (index, run) in pieces {
            let Some((segment, _)) = self.segments.get(*index) else { continue };
            let FileEntry { path, dataset_id, rows, .. } = segment.file(run.file_id)?;
            if !self.inner.store().exists(&path)? {
                return Ok(Some(trawl_store::Error::LostRows { path, dataset_id, rows }));
            }
        }
        Ok(None)
    }
}
