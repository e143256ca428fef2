//! Rows that are due.

use super::{MeguriFile, Row};
use crate::error::{Error, Result};
use crate::footer::RegionId;
use crate::schedule::{BUCKETS, Schedule, bucket_of, start_of};
use crate::schema::Table;
use std::collections::HashMap;
use std::ops::Range;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_sort::Sorter;
use trawl_url::key::UrlKey;

const HOST_KEY: u16 = 0;
const PATH_KEY: u16 = 1;
const NEXT_DUE: u16 = 10;
/// Rows whose keys are read at a time.
const BATCH: usize = 4096;
/// Buckets of one hour: what they hold needs no confirmation.
const HOURLY: usize = 168;
/// Due rows that are looked up in the table one by one. More are found by one walk over it: rows of one hour lie all over
/// the table, so that looking up those of many hours reads the table once for each.
pub(crate) const FEW: u64 = 4096;
/// Memory for putting the rows of a walk into the order of the index; more goes to temporary files.
const SORT_BYTES: usize = 64 << 20;

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
    /// outside `hosts` (both ends included) are left out, and pages without candidates are not read. The index is believed
    /// about rows of its hourly buckets: a reader of such a row compares its hour.
    pub fn due(&self, now: u32, hosts: (u64, u64), each: &mut dyn FnMut(DueRow) -> Result<bool>) -> Result<()> {
        let stats = &self.footer().stats;
        if stats.due_min == 0 || stats.due_min > now {
            return Ok(());
        }
        let rows = self.rows_within(hosts)?;
        let Some(mut schedule) = self.schedule()? else { return self.due_by_column(now, rows, each) };
        for _ in 0..open_buckets(&schedule, now) {
            let Some((bucket, mut candidates)) = schedule.next_bucket()? else { break };
            candidates.retain(|row| rows.contains(row));
            let hours = schedule.hours_of(bucket);
            for batch in candidates.chunks(BATCH) {
                if !self.confirm(batch, Some((bucket, &hours)), now, each)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hands over at most `most` of the rows that [`MeguriFile::due`] finds, with their URLs and in its order.
    pub fn due_urls(
        &self,
        now: u32,
        hosts: (u64, u64),
        most: u64,
        each: &mut dyn FnMut(DueRow, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        if most.min(self.due_candidates(now)?) > FEW {
            return self.due_urls_by_walk(now, hosts, most, each);
        }
        let mut due = Vec::new();
        self.due(now, hosts, &mut |row| {
            due.push(row);
            Ok((due.len() as u64) < most)
        })?;
        due.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let mut numbers: Vec<u64> = due.iter().map(|due| due.row).collect();
        numbers.sort_unstable();
        let mut rows: HashMap<u64, Row> = self.read_rows(&numbers)?.into_iter().map(|row| (row.number, row)).collect();
        for found in due {
            let row = rows.remove(&found.row).unwrap_or_default();
            self.check_due(&found, row.record.next_due)?;
            if !each(found, &row.url)? {
                break;
            }
        }
        Ok(())
    }

    /// Fails if the schedule index has named a row for another hour than its own, `next_due`: such an index may leave out rows
    /// that are due, so that its answers are of no use.
    pub(crate) fn check_due(&self, found: &DueRow, next_due: u32) -> Result<()> {
        if found.next_due == next_due {
            return Ok(());
        }
        Err(self.wrong_schedule(found.row, next_due, &u64::from(found.next_due)))
    }

    fn wrong_schedule(&self, row: u64, next_due: u32, hours: &dyn std::fmt::Debug) -> Error {
        let offset = self.footer().region(RegionId::Schedule).map_or(0, |region| region.offset);
        let found = format!("row {row}, due in hour {next_due}, under {hours:?}; a merge writes the index anew");
        self.at(offset).corrupt("rows under their hours in the schedule index", found)
    }

    /// Rows that may be due at hour `now`; all of them, where no index counts them.
    pub(crate) fn due_candidates(&self, now: u32) -> Result<u64> {
        let stats = &self.footer().stats;
        if stats.due_min == 0 || stats.due_min > now {
            return Ok(0);
        }
        let Some(schedule) = self.schedule()? else { return Ok(self.header().url_count) };
        Ok(schedule.counts.iter().take(open_buckets(&schedule, now)).sum())
    }

    fn rows_within(&self, hosts: (u64, u64)) -> Result<Range<u64>> {
        if hosts == (0, u64::MAX) { Ok(0..self.header().url_count) } else { self.rows_of_hosts(hosts.0, hosts.1) }
    }

    fn due_urls_by_walk(
        &self,
        now: u32,
        hosts: (u64, u64),
        most: u64,
        each: &mut dyn FnMut(DueRow, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let base = self.schedule()?.map(|schedule| schedule.base);
        let temp = &self.settings.temp;
        let mut sorter = Sorter::builder(temp).memory_bytes(SORT_BYTES).holder("due rows of a frontier").build()?;
        let mut cursor = self.cursor_over(self.rows_within(hosts)?)?;
        let mut value = Vec::new();
        while cursor.advance()? {
            let number = cursor.number();
            let is_due = cursor.record().is_some_and(|record| (1..=now).contains(&record.next_due));
            let Some(row) = (if is_due { cursor.row()? } else { None }) else { continue };
            // Without an index: as the rows lie.
            let bucket = base.map_or(0, |base| bucket_of(row.record.next_due.saturating_sub(base)));
            let mut key = [0; 10];
            key[..2].copy_from_slice(&(bucket as u16).to_be_bytes());
            key[2..].copy_from_slice(&number.to_be_bytes());
            value.clear();
            value.extend_from_slice(&row.record.host_key.to_le_bytes());
            value.extend_from_slice(&row.record.path_key.to_le_bytes());
            value.extend_from_slice(&row.record.next_due.to_le_bytes());
            value.extend_from_slice(row.url);
            sorter.push(&key, &value)?;
        }
        let bad = |e: SliceError| Error::Refused(format!("the sorter gave back another record: {e}"));
        let mut sorted = sorter.finish()?;
        let mut left = most;
        while let Some(record) = sorted.next_record()?.filter(|_| left > 0) {
            left -= 1;
            let (row, url) = decode_due(record.key, record.value).map_err(bad)?;
            if !each(row, url)? {
                break;
            }
        }
        Ok(())
    }

    /// Hands over those of the rows that are due; `bucket` is the one of the index that names them, with its hours. `false`:
    /// no more are wanted.
    fn confirm(
        &self,
        rows: &[u64],
        bucket: Option<(usize, &Range<u64>)>,
        now: u32,
        each: &mut dyn FnMut(DueRow) -> Result<bool>,
    ) -> Result<bool> {
        let hour = bucket.filter(|(bucket, _)| *bucket < HOURLY).map(|(_, hours)| hours.start as u32);
        let ids: &[u16] = if hour.is_some() { &[HOST_KEY, PATH_KEY] } else { &[HOST_KEY, PATH_KEY, NEXT_DUE] };
        let columns = self.read_values(Table::Urls, ids, rows)?;
        let value = |column: usize, place: usize| columns.get(column).and_then(|c| c.get(place)).copied().unwrap_or(0);
        for (place, row) in rows.iter().enumerate() {
            let key = UrlKey { host: value(0, place), path: value(1, place) };
            let next_due = hour.unwrap_or_else(|| value(2, place) as u32);
            if let Some((_, hours)) = bucket.filter(|(_, hours)| !hours.contains(&u64::from(next_due))) {
                return Err(self.wrong_schedule(*row, next_due, hours));
            }
            if next_due != 0 && next_due <= now && !each(DueRow { row: *row, key, next_due })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn due_by_column(&self, now: u32, rows: Range<u64>, each: &mut dyn FnMut(DueRow) -> Result<bool>) -> Result<()> {
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

/// Buckets that have opened by `now`.
fn open_buckets(schedule: &Schedule, now: u32) -> usize {
    let open = |bucket: usize| u64::from(schedule.base) + u64::from(start_of(bucket)) <= u64::from(now);
    (0..BUCKETS).take_while(|bucket| open(*bucket)).count()
}

fn decode_due<'a>(key: &[u8], value: &'a [u8]) -> Result<(DueRow, &'a [u8]), SliceError> {
    let mut r = SliceReader::new(key);
    let [_, _]: [u8; 2] = r.array("a bucket")?;
    let row = u64::from_be_bytes(r.array("a row")?);
    let mut r = SliceReader::new(value);
    let key = UrlKey { host: r.u64("a host key")?, path: r.u64("a path key")? };
    let next_due = r.u32("an hour")?;
    let url = value.get(r.offset() as usize..).unwrap_or_default();
    Ok((DueRow { row, key, next_due }, url))
}
