//! What a partition's rows come to, from a few columns.

use crate::error::Result;
use crate::reader::MeguriFile;
use crate::schema::{SOURCE_NAMES, STATUS_NAMES, Table};
use std::collections::BTreeMap;

const STATUS: u16 = 2;
const SOURCE: u16 = 5;
const NEXT_DUE: u16 = 10;
const HTTP_STATUS: u16 = 19;
/// Rows counted at a time.
const CHUNK: u64 = 8192;

/// Counts of rows.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Counts {
    /// All rows.
    pub urls: u64,
    /// All hosts.
    pub hosts: u64,
    /// By state.
    pub statuses: BTreeMap<String, u64>,
    /// By where they were found.
    pub sources: BTreeMap<String, u64>,
    /// By status of the last fetch, 0 for none.
    pub http_statuses: BTreeMap<u64, u64>,
    /// Rows in a state that waits for a fetch: discovered, scheduled, ready, due for another.
    pub pending: u64,
    /// Rows that are due at the hour asked for.
    pub due: u64,
    /// Rows with a due hour.
    pub scheduled: u64,
    /// Bits of the seen filter for each URL; `None` without a filter.
    pub seen_bits_per_url: Option<f64>,
}

/// Counts rows; `now` is the hour that decides what is due.
pub fn count(file: &MeguriFile, now: u32) -> Result<Counts> {
    let header = file.header();
    let mut counts = Counts { urls: header.url_count, hosts: header.host_count, ..Counts::default() };
    let by_value = |id: u16| -> Result<BTreeMap<u64, u64>> {
        let mut stream = file.stream(Table::Urls, id, 0)?;
        let (mut left, mut values, mut found) = (header.url_count, Vec::new(), BTreeMap::new());
        while left > 0 {
            let n = left.min(CHUNK);
            values.clear();
            stream.next(n as usize, &mut values)?;
            // Neighbours are often alike.
            values.chunk_by(|a, b| a == b).for_each(|run| {
                *found.entry(run.first().copied().unwrap_or(0)).or_insert(0) += run.len() as u64;
            });
            left -= n;
        }
        Ok(found)
    };
    let name = |names: &[&str], value: u64| {
        let known = usize::try_from(value).ok().and_then(|v| names.get(v));
        known.map_or_else(|| value.to_string(), |name| (*name).to_owned())
    };
    for (value, n) in by_value(STATUS)? {
        counts.pending += if matches!(value, 0 | 1 | 2 | 5) { n } else { 0 };
        counts.statuses.insert(name(&STATUS_NAMES, value), n);
    }
    counts.sources = by_value(SOURCE)?.into_iter().map(|(value, n)| (name(&SOURCE_NAMES, value), n)).collect();
    counts.http_statuses = by_value(HTTP_STATUS)?;
    for (hour, n) in by_value(NEXT_DUE)?.into_iter().filter(|(hour, _)| *hour != 0) {
        counts.scheduled += n;
        counts.due += if hour <= u64::from(now) { n } else { 0 };
    }
    let seen = file.footer().region(crate::footer::RegionId::Seen);
    counts.seen_bits_per_url = seen.map(|r| r.length as f64 * 8.0 / header.url_count.max(1) as f64);
    Ok(counts)
}
