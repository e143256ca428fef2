//! Sources that know more of a URL than a list does: its state, and when it is due.

use serde_json::Value;
use trawl_meguri::Row;
use trawl_meguri::schema::{Extension, STATUS_GONE, UrlRecord as Columns, extension};
use trawl_meguri::seed::{hour_of, meta_json};
use trawl_model::{UnixMillis, UrlRecord};

const STATUS_SCHEDULED: u8 = 1;
const STATUS_CRAWLED: u8 = 4;

/// The extension columns that [`of_crawldb`] fills beside those of a list.
pub const EXTENSIONS: [Extension; 1] = [Extension { id: extension::DUE_MS, width: 8 }];

/// An entry of a CrawlDb as a row; `None` if the record is not one. What has no column, or does not fit it, stays in
/// `meta_json` as it was.
pub fn of_crawldb(record: &UrlRecord, now_hour: u32) -> Option<Row> {
    let extras: Value = serde_json::from_str(record.extras.as_deref()?).ok()?;
    let status = extras.get("nutch_status")?.as_str().filter(|status| status.starts_with("db_"))?;
    let time = |name: &str| extras.get(name)?.as_str().and_then(|text| UnixMillis::parse(text).ok());
    let due = time("fetch_time")?;
    let fetched = record.ts.filter(|_| !matches!(status, "db_unfetched" | "db_gone"));
    let score = extras.get("score").and_then(Value::as_f64).map(|score| score as f32);
    let retries = extras.get("retries").and_then(Value::as_i64).unwrap_or(0);
    let columns = Columns {
        status: match status {
            "db_unfetched" => STATUS_SCHEDULED,
            "db_gone" => STATUS_GONE,
            _ => STATUS_CRAWLED,
        },
        priority: score.filter(|score| score.is_finite()).unwrap_or_default(),
        first_seen: record.ts.map_or(now_hour, hour_of),
        last_crawled: fetched.map_or(0, hour_of),
        crawl_count: u32::from(fetched.is_some()),
        // Hour 0 means never; one that was due before 1970 is due.
        next_due: hour_of(due).max(1),
        last_modified: time("modified_time").map_or(0, hour_of),
        http_status: record.status.unwrap_or(0),
        // Nutch counts them in a signed byte.
        retry_count: retries.clamp(0, i64::from(u8::MAX)) as u8,
        ..Columns::default()
    };
    Some(Row {
        record: columns,
        url: record.url.clone().into(),
        // The column has no sign: what was due before 1970 is due at once, which is 0.
        numbers: vec![(extension::DUE_MS, due.0.max(0) as u64)],
        texts: vec![(extension::META_JSON, meta_json(record).into())],
        ..Row::default()
    })
}
