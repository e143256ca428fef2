//! Rows and hosts as a `.meguri` file has them.

use crate::config::Config;
use crate::error::Result;
use crate::host::LoggedHost;
use crate::identity::{Identity, QueueBy};
use crate::intake::hour;
use crate::memtable::Memtable;
use crate::policy::priority::priority_of;
use crate::row::Row;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_io::slice::SliceReader;
use trawl_meguri::footer::Metadata;
use trawl_meguri::keys::{HOST_GROUP, KEY_POLICY, KeyPolicy};
use trawl_meguri::schema::{Extension, HostRecord, UrlRecord, extension as ext};
use trawl_meguri::settings::{SeenFilter, Settings};
use trawl_meguri::{HostCounts, HostRow, Keep, MeguriFile, Merged, UrlRow, Writer, WriterOptions, Written};

/// zstd level of runs and base: they live for minutes to hours. A pack is written with more patience.
const LEVEL: i32 = 1;

pub(crate) fn url_extensions() -> Vec<Extension> {
    let ids = [
        (ext::DUE_MS, 8),
        (ext::HOPS, 2),
        (ext::ARRIVAL, 8),
        (ext::NOTE, 8),
        (ext::ROBOTS_UNTIL, 8),
        (ext::BUCKET, 1),
        (ext::VIA, 8),
        (ext::META_JSON, 8),
    ];
    ids.map(|(id, width)| Extension { id, width }).into()
}

pub(crate) fn host_extensions() -> Vec<Extension> {
    let ids = [
        (ext::WAITING, 4),
        (ext::EARLIEST_DUE, 8),
        (ext::NEXT_MS, 8),
        (ext::BACKOFF, 8),
        (ext::AWAY_SINCE, 8),
        (ext::ADMITTED, 4),
        (ext::TRAP, 4),
        (ext::DELAY_MS, 4),
        (ext::EXTRA_DELAY_MS, 4),
        (ext::PARKED, 4),
        (ext::ORDERS, 1),
        (ext::SLOWED_MS, 4),
        (ext::GIVEN_UP, 8),
        (ext::AWAY, 8),
    ];
    ids.map(|(id, width)| Extension { id, width }).into()
}

/// How the files of a frontier are written.
pub(crate) fn options(fs: &Arc<dyn Fs>, dir: &Path, config: &Config, filter: bool) -> WriterOptions {
    let policy = match config.identity {
        Identity::Key => KeyPolicy::Trawl,
        Identity::Exact => KeyPolicy::Exact,
    };
    let group = if config.queue == QueueBy::Domain { "registrable" } else { "full_host" };
    let mut metadata = Metadata::new();
    metadata.insert(KEY_POLICY.to_vec(), policy.name().into());
    metadata.insert(HOST_GROUP.to_vec(), group.into());
    let filter = if filter { Settings::default().filter } else { SeenFilter::None };
    WriterOptions {
        settings: Settings { level: LEVEL, schedule: false, filter, ..Settings::default() },
        identity: trawl_meguri::Identity { metadata, ..trawl_meguri::Identity::default() },
        url_extensions: url_extensions(),
        host_extensions: host_extensions(),
        // Hosts count the pages of all files, and no robots.txt.
        host_counts: HostCounts::AsGiven,
        memory_bytes: config.writer_bytes(),
        temp: dir.to_owned(),
        fs: fs.clone(),
    }
}

/// Writes recent changes as a run. `hosts` are those that changed, in order, as the log has them, each with its origins that
/// are away: a million take 60 MB so.
pub(crate) fn write_run(
    options: WriterOptions,
    path: &Path,
    table: &Memtable,
    hosts: &[u8],
    queue: QueueBy,
) -> Result<Written> {
    let mut writer = Writer::new(options)?;
    let mut r = SliceReader::new(hosts);
    while !r.is_empty() {
        let host = LoggedHost::decode(&mut r).map_err(|e| e.in_file(path))?;
        let away = r.prefixed(hosts.len(), "the origins of a host that are away").map_err(|e| e.in_file(path))?;
        writer.push_host(&host_row(&host, away, queue))?;
    }
    for row in table.sorted() {
        push(&mut writer, row)?;
    }
    Ok(writer.finish_file(path)?)
}

/// Merges files, the oldest first, into one.
pub(crate) fn write_merged(
    options: WriterOptions,
    path: &Path,
    inputs: &[MeguriFile],
    keep: &Keep,
    on_rows: &mut dyn FnMut(u64),
) -> Result<(Merged, Written)> {
    let mut writer = Writer::new(options)?;
    let merged = trawl_meguri::merge(inputs, keep, &mut writer, on_rows)?;
    Ok((merged, writer.finish_file(path)?))
}

fn push(writer: &mut Writer, row: &Row) -> Result<()> {
    let waits = row.status.waits() && row.robots_until == 0;
    // Rounded up: a program that reads the hour alone does not come early. The exact time has a column of its own.
    let due = hour(row.due_ms.saturating_add(3_599_999));
    let record = UrlRecord {
        host_key: row.id.host(),
        path_key: row.id.path(),
        status: row.status as u8,
        priority: priority_of(row.bucket),
        depth: row.depth,
        discovery_source: row.found as u8,
        first_seen: row.first_seen,
        last_crawled: row.last_crawled,
        next_due: if waits { due.max(row.first_seen).max(1) } else { 0 },
        crawl_count: row.crawls,
        http_status: row.http_status,
        retry_count: row.strikes,
        error_count: row.errors,
        ..UrlRecord::default()
    };
    let numbers = [
        (ext::DUE_MS, row.due_ms.max(0) as u64),
        (ext::HOPS, u64::from(row.hops)),
        (ext::ARRIVAL, row.arrival),
        (ext::NOTE, row.note),
        (ext::ROBOTS_UNTIL, row.robots_until.max(0) as u64),
        (ext::BUCKET, u64::from(row.bucket)),
    ];
    let text = |text: &str| if text.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(text.as_bytes()) };
    let texts = [(ext::VIA, text(row.texts.via())), (ext::META_JSON, text(row.texts.meta()))];
    let (url, etag, redirect) = (row.url().as_bytes(), &[][..], &[][..]);
    writer.push(UrlRow { record: &record, url, etag, redirect, numbers: &numbers, texts: &texts })?;
    Ok(())
}

/// A host as a file has it.
fn host_row(host: &LoggedHost, away: &[u8], queue: QueueBy) -> HostRow {
    let [waiting, urls, admitted, parked, crawls, errors, next, since, backoff, bits, trap, delay, extra, slowed, due] =
        host.numbers;
    // The fixed columns are narrower than what is kept; the extension columns below have the values as they are.
    let cut = |value: u64| value.min(u64::from(u32::MAX)) as u32;
    let mut flags = u16::from(trap & 0x00ff_0000 != 0);
    flags |= u16::from(!host.given_up.is_empty()) << 2;
    let record = HostRecord {
        host_key: host.key,
        grouping: u8::from(queue != QueueBy::Domain),
        crawl_delay: delay.div_ceil(100).min(u64::from(u16::MAX)) as u16,
        host_next_eligible: cut(next.div_ceil(1000)),
        url_count: cut(urls),
        crawl_total: cut(crawls),
        error_total: cut(errors),
        flags,
        ..HostRecord::default()
    };
    let numbers = vec![
        (ext::WAITING, waiting),
        (ext::EARLIEST_DUE, due),
        (ext::NEXT_MS, next),
        (ext::BACKOFF, backoff),
        (ext::AWAY_SINCE, since),
        (ext::ADMITTED, admitted),
        (ext::TRAP, trap),
        (ext::DELAY_MS, delay),
        (ext::EXTRA_DELAY_MS, extra),
        (ext::PARKED, parked),
        (ext::ORDERS, bits),
        (ext::SLOWED_MS, slowed),
    ];
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let registrable = trawl_url::SuffixList::builtin().registrable(&host.name);
    let given_up = (!host.given_up.is_empty()).then(|| (ext::GIVEN_UP, text(&host.given_up)));
    let away = (!away.is_empty()).then(|| (ext::AWAY, Bytes::copy_from_slice(away)));
    let texts = given_up.into_iter().chain(away).collect();
    HostRow { record, host: text(&host.name), registrable: text(registrable), numbers, texts, ..HostRow::default() }
}

/// What [`host_row`] kept, for [`crate::host::Host::restore`]. A file of another program has the fixed columns only.
pub(crate) fn host_numbers(row: &HostRow) -> ([u64; 15], String) {
    let number = |id: u16| row.numbers.iter().find(|(known, _)| *known == id).map_or(0, |(_, value)| *value);
    let r = &row.record;
    let has_waiting = row.numbers.iter().any(|(id, _)| *id == ext::WAITING);
    // Who did not say how many wait may have all of them waiting: a refill counts them.
    let waiting = if has_waiting { number(ext::WAITING) } else { u64::from(r.url_count) };
    let delay = number(ext::DELAY_MS).max(u64::from(r.crawl_delay) * if has_waiting { 0 } else { 100 });
    let given_up = row.texts.iter().find(|(id, _)| *id == ext::GIVEN_UP).map(|(_, text)| text);
    let numbers = [
        waiting,
        u64::from(r.url_count),
        number(ext::ADMITTED),
        number(ext::PARKED),
        u64::from(r.crawl_total),
        u64::from(r.error_total),
        number(ext::NEXT_MS),
        number(ext::AWAY_SINCE),
        number(ext::BACKOFF),
        number(ext::ORDERS),
        number(ext::TRAP),
        delay,
        number(ext::EXTRA_DELAY_MS),
        number(ext::SLOWED_MS),
        number(ext::EARLIEST_DUE),
    ];
    (numbers, given_up.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default())
}
