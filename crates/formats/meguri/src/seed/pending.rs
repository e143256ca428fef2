//! What waits in a seeder's sorter: rows and hosts as bytes.
//!
//! ```text
//! key  16 bytes URL key: a row     8 bytes host key: a host, sorted before its rows
//! row  u8 kind, ivarint time, then
//!      0 of a list  uvarint HTTP status, offset; texts: URL, host group, archive file, extras
//!      1 of a file  uvarint fixed columns; texts: URL, host group, ETag, redirect; numbers; texts by id
//! ```

use super::SeedOptions;
use crate::reader::Row;
use crate::schema::{STATUS_GONE, URL_COLUMNS, UrlRecord, extension};
use bytes::Bytes;
use serde_json::{Map, Value};
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::{UnixMillis, UrlRecord as SourceRecord};

const OF_LIST: u8 = 0;
const OF_FILE: u8 = 1;
const STATUS_SCHEDULED: u8 = 1;
const STATUS_CRAWLED: u8 = 4;

/// A row that may still give way to a newer one.
pub(super) struct Pending {
    pub key: u128,
    pub group: String,
    /// When it was captured or found, in milliseconds. A time that is not known is the oldest: any capture is newer.
    pub time: i64,
    /// The same without captures that the row took over: of two states the one of the later fetch stays.
    state_time: i64,
    pub row: Row,
    /// Whether the row came with its state.
    pub carried: bool,
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_uvarint(out, text.len() as u64);
    out.extend_from_slice(text);
}

pub(super) fn encode_record(record: &SourceRecord, group: &str, out: &mut Vec<u8>) {
    out.clear();
    out.push(OF_LIST);
    put_ivarint(out, record.ts.map_or(i64::MIN, |time| time.0));
    put_uvarint(out, u64::from(record.status.unwrap_or(0)));
    put_uvarint(out, record.place.as_ref().map_or(0, |place| place.offset));
    let file = record.place.as_ref().map_or("", |place| &place.file);
    for text in [record.url.as_str(), group, file, &meta_json(record)] {
        put_text(out, text.as_bytes());
    }
}

/// What a source knew of a URL and no column holds: its extras, with media type, digest and length of the body. Empty if it
/// knew nothing.
pub fn meta_json(record: &SourceRecord) -> String {
    let extras = record.extras.as_deref().unwrap_or_default();
    let mut more = Map::new();
    let mut add = |name: &str, value: Option<Value>| more.extend(value.map(|value| (name.to_owned(), value)));
    add("content_type", record.content_type.as_deref().map(Value::from));
    add("digest", record.digest.as_ref().map(|digest| digest.to_string().into()));
    add("body_length", record.body_length.map(Value::from));
    if more.is_empty() {
        return extras.to_owned();
    }
    // Extras are an object; anything else stays whole under a name of its own.
    match serde_json::from_str(extras) {
        Ok(Value::Object(known)) => more.extend(known),
        _ if extras.is_empty() => {}
        _ => drop(more.insert("extras".to_owned(), extras.into())),
    }
    Value::Object(more).to_string()
}

pub(super) fn encode_row(row: &Row, group: &str, out: &mut Vec<u8>) {
    let r = &row.record;
    let hour = if r.last_crawled != 0 { r.last_crawled } else { r.first_seen };
    out.clear();
    out.push(OF_FILE);
    put_ivarint(out, if hour == 0 { i64::MIN } else { super::start_of_hour(hour).0 });
    let mut values = Vec::with_capacity(URL_COLUMNS.len());
    for def in &URL_COLUMNS {
        UrlRecord::gather(std::slice::from_ref(r), def.id, &mut values);
    }
    values.iter().for_each(|value| put_uvarint(out, *value));
    for text in [&row.url[..], group.as_bytes(), &row.etag, &row.redirect] {
        put_text(out, text);
    }
    put_uvarint(out, row.numbers.len() as u64);
    for (id, number) in &row.numbers {
        put_uvarint(out, u64::from(*id));
        put_uvarint(out, *number);
    }
    put_uvarint(out, row.texts.len() as u64);
    for (id, text) in &row.texts {
        put_uvarint(out, u64::from(*id));
        put_text(out, text);
    }
}

impl Pending {
    pub fn decode(key: u128, value: &[u8], options: &SeedOptions) -> Result<Pending, SliceError> {
        let mut r = SliceReader::new(value);
        let [kind] = r.array("a kind")?;
        let time = r.ivarint("a time")?;
        if kind == OF_LIST {
            return of_list(key, time, &mut r, options);
        }
        let mut row = Row::default();
        for def in &URL_COLUMNS {
            let value = r.uvarint("a column")?;
            UrlRecord::scatter(std::slice::from_mut(&mut row.record), def.id, std::iter::once(value));
        }
        row.url = text(&mut r)?;
        let group = String::from_utf8_lossy(&text(&mut r)?).into_owned();
        (row.etag, row.redirect) = (text(&mut r)?, text(&mut r)?);
        for _ in 0..r.uvarint("a count")? {
            row.numbers.push((r.uvarint("a column")? as u16, r.uvarint("a number")?));
        }
        for _ in 0..r.uvarint("a count")? {
            row.texts.push((r.uvarint("a column")? as u16, text(&mut r)?));
        }
        Ok(Pending { key, group, time, state_time: time, row, carried: true })
    }

    /// Takes a row of the same key: the newer one stays, with the first spelling of the URL. One that was never fetched is
    /// older than any fetch, whenever it was found. A row that came with its state keeps it, beside captures of a page that
    /// was fetched before and beside entries without a fetch: they do not say when the page is due, and the capture of the very
    /// fetch that the state describes is always newer by some minutes. So does a row that waits for another attempt: its capture is
    /// that of the failure, and as one of a page that was crawled it would never be tried again.
    pub fn take_newer(&mut self, mut other: Pending) {
        if self.carried != other.carried {
            let (state, capture) = if self.carried { (&*self, &other) } else { (&other, &*self) };
            let retries = !state.is_fetched() && state.retries_after(capture);
            if retries || state.is_fetched() || !capture.is_fetched() {
                if other.carried {
                    std::mem::swap(self, &mut other);
                    std::mem::swap(&mut self.row.url, &mut other.row.url);
                }
                match other.is_fetched() {
                    // Not the time: with it the row would count as fetched, beside captures behind its due time too.
                    true if retries => self.take_place(other.row),
                    true => self.take_capture(other),
                    false => {}
                }
                return;
            }
        }
        let are_states = self.carried && other.carried;
        let rank = |row: &Pending| (row.is_fetched(), if are_states { row.state_time } else { row.time });
        if rank(&other) > rank(&*self) {
            let mut old = std::mem::replace(self, other);
            std::mem::swap(&mut self.row.url, &mut old.row.url);
            if are_states && old.time > old.state_time {
                self.take_capture(old);
            }
        }
    }

    /// Takes over what a capture says of a fetch, unless it is older than the last one that is known.
    fn take_capture(&mut self, capture: Pending) {
        // A state knows the hour of its fetch, a capture that it took over the millisecond: of two captures in one hour the later
        // one counts, whichever comes first.
        if capture.time < self.time {
            return;
        }
        let hour = |time: i64| time.div_euclid(super::MILLIS_PER_HOUR);
        let (record, of) = (&mut self.row.record, &capture.row.record);
        let is_there = hour(capture.time) > hour(self.time) && !matches!(of.http_status, 404 | 410);
        if record.status == STATUS_GONE && is_there {
            record.status = STATUS_CRAWLED;
        }
        if record.status != STATUS_GONE {
            record.last_crawled = record.last_crawled.max(of.last_crawled);
            record.crawl_count = record.crawl_count.max(of.crawl_count);
        }
        record.http_status = of.http_status;
        self.time = self.time.max(capture.time);
        self.take_place(capture.row);
    }

    /// Takes over where a capture is archived, if it says so.
    fn take_place(&mut self, capture: Row) {
        let Row { numbers, texts, .. } = capture;
        if texts.iter().any(|(id, file)| *id == extension::ARCHIVE_FILE && !file.is_empty()) {
            self.row.numbers.retain(|(id, _)| *id != extension::ARCHIVE_OFFSET);
            self.row.texts.retain(|(id, _)| *id != extension::ARCHIVE_FILE);
            self.row.numbers.extend(numbers.into_iter().filter(|(id, _)| *id == extension::ARCHIVE_OFFSET));
            self.row.texts.extend(texts.into_iter().filter(|(id, _)| *id == extension::ARCHIVE_FILE));
        }
    }
}

impl Pending {
    /// A database may know that a page is gone without knowing when it was last there.
    fn is_fetched(&self) -> bool {
        let record = &self.row.record;
        record.last_crawled != 0 || matches!(record.status, STATUS_CRAWLED | STATUS_GONE)
    }

    /// Whether attempts failed and the next one is due behind a capture.
    fn retries_after(&self, capture: &Pending) -> bool {
        let exact = self.row.numbers.iter().find(|(id, _)| *id == extension::DUE_MS);
        let hour = super::start_of_hour(self.row.record.next_due).0;
        let due = exact.map_or(i128::from(hour), |(_, millis)| i128::from(*millis));
        self.row.record.retry_count > 0 && due > i128::from(capture.time)
    }
}

fn text(r: &mut SliceReader<'_>) -> Result<Bytes, SliceError> {
    r.prefixed(usize::MAX, "a text").map(Bytes::copy_from_slice)
}

fn of_list(key: u128, time: i64, r: &mut SliceReader<'_>, options: &SeedOptions) -> Result<Pending, SliceError> {
    let (status, offset) = (r.uvarint("a status")? as u16, r.uvarint("an offset")?);
    let (url, group, file, extras) = (text(r)?, text(r)?, text(r)?, text(r)?);
    let hour = if time == i64::MIN { options.now_hour } else { super::hour_of(UnixMillis(time)) };
    let crawled = status != 0;
    let record = UrlRecord {
        status: if crawled { STATUS_CRAWLED } else { STATUS_SCHEDULED },
        priority: options.priority,
        first_seen: hour,
        last_crawled: if crawled { hour } else { 0 },
        crawl_count: u32::from(crawled),
        http_status: status,
        ..UrlRecord::default()
    };
    let row = Row {
        record,
        url,
        numbers: vec![(extension::ARCHIVE_OFFSET, offset)],
        texts: vec![(extension::META_JSON, extras), (extension::ARCHIVE_FILE, file)],
        ..Row::default()
    };
    let group = String::from_utf8_lossy(&group).into_owned();
    Ok(Pending { key, group, time, state_time: time, row, carried: false })
}
