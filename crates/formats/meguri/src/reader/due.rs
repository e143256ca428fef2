//! Rows that are due.

use super::MeguriFile;
use crate::error::Result;
use crate::schedule::{BUCKETS, start_of};
use crate::schema::Table;
use trawl_url::key::UrlKey;

const HOST_KEY: u16 = 0;
const PATH_KEY: u16 = 1;
const NEXT_DUE: u16 = 10;
/// Rows whose keys are read at a time.
const BATCH: usize = 4096;
/// Buckets of one hour: what they hold needs no confirmation.
const HOURLY: usize = 168;

/// A row that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRow {
    /// Its number in the file.
    pub row: u64,
    /// Its key.
    pub key: UrlKey,
    /// Since which hour.
    pub next_due: u32,
}

impl MeguriFile {
    /// Hands over the rows that are due at hour `now` (`next_due` not 0 and at most `now`), until `each` returns
    /// `false`: in order of time as far as the schedule index knows it, in row order if the file has none. Rows of hosts
    /// outside `hosts` (both ends included) are left out, and pages without candidates are not read.
    pub fn due(&self, now: u32, hosts: (u64, u64), each: &mut dyn FnMut(DueRow) -> Result<bool>) -> Result<()> {
        let stats = &self.footer().stats;
        if stats.due_min == 0 || stats.due_min > now {
            return Ok(());
        }
        let rows =
            if hosts == (0, u64::MAX) { 0..self.header().url_count } else { self.rows_of_hosts(hosts.0, hosts.1)? };
        let Some(mut schedule) = self.schedule()? else { return self.due_by_column(now, rows, each) };
        let open = |bucket: usize| u64::from(schedule.base) + u64::from(start_of(bucket)) <= u64::from(now);
        let buckets = (0..BUCKETS).take_while(|bucket| open(*bucket)).count();
        for _ in 0..buckets {
            let Some((bucket, mut candidates)) = schedule.next_bucket()? else { break };
            candidates.retain(|row| rows.contains(row));
            let hour = (bucket < HOURLY).then_some(schedule.hours_of(bucket).start as u32);
            for batch in candidates.chunks(BATCH) {
                if !self.confirm(batch, hour, now, each)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands over those of the rows that are due; `hour` is theirs where it is known. `false`: no more are wanted.
    fn confirm(
        &self,
        rows: &[u64],
        hour: Option<u32>,
        now: u32,
        each: &mut dyn FnMut(DueRow) -> Result<bool>,
    ) -> Result<bool> {
        let ids: &[u16] = if hour.is_some() { &[HOST_KEY, PATH_KEY] } else { &[HOST_KEY, PATH_KEY, NEXT_DUE] };
        let columns = self.read_values(Table::Urls, ids, rows)?;
        let value = |column: usize, place: usize| columns.get(column).and_then(|c| c.get(place)).copied().unwrap_or(0);
        for (place, row) in rows.iter().enumerate() {
            let key = UrlKey { host: value(0, place), path: value(1, place) };
            let next_due = hour.unwrap_or_else(|| value(2, place) as u32);
            if next_due != 0 && next_due <= now && !each(DueRow { row: *row, key, next_due })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn due_by_column(
        &self,
        now: u32,
        rows: std::ops::Range<u64>,
        each: &mut dyn FnMut(DueRow) -> Result<bool>,
    ) -> Result<()> {
        let mut stream = self.stream(Table::Urls, NEXT_DUE, rows.start)?;
        let mut due = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let n = (rows.end - row).min(1 << 14) as usize;
            due.clear();
            stream.next(n, &mut due)?;
            let candidates: Vec<u64> = (row..)
                .zip(&due)
                .filter(|(_, hour)| (1..=u64::from(now)).contains(*hour))
                .map(|(row, _)| row)
                .collect();
            for batch in candidates.chunks(BATCH) {
                if !self.confirm(batch, None, now, each)? {
                    return Ok(());
                }
            }
            row += n as u64;
        }
        Ok(())
    }
}
