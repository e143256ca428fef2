//! URLs in any order into a file: what a list or an index of captures knows becomes rows.

use crate::error::{Error, Result};
use crate::footer::Metadata;
use crate::keys::{HOST_GROUP, KEY_POLICY, KeyPolicy};
use crate::reader::{HostRow, Row};
use crate::schema::{Extension, HostRecord, UrlRecord, extension};
use crate::writer::Writer;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::{UnixMillis, UrlRecord as SourceRecord};
use trawl_sort::Sorter;
use trawl_url::SuffixList;
use trawl_url::key::{HostGroup, UrlKey};

const STATUS_SCHEDULED: u8 = 1;
const STATUS_CRAWLED: u8 = 4;
const MILLIS_PER_HOUR: i64 = 3_600_000;

/// The hour of a time; 0 before 1970.
pub fn hour_of(time: UnixMillis) -> u32 {
    u32::try_from(time.0.div_euclid(MILLIS_PER_HOUR)).unwrap_or(0)
}

/// When an hour begins.
pub fn start_of_hour(hour: u32) -> UnixMillis {
    UnixMillis(i64::from(hour) * MILLIS_PER_HOUR)
}

/// How seeds become rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeedOptions {
    /// How keys are made.
    pub policy: KeyPolicy,
    /// What counts as one host.
    pub group: HostGroup,
    /// Of every row.
    pub priority: f32,
    /// Of every host, in tenths of a second.
    pub crawl_delay: u16,
    /// `first_seen` of a URL whose source knows no time.
    pub now_hour: u32,
}

impl Default for SeedOptions {
    fn default() -> Self {
        let policy = KeyPolicy::Trawl;
        SeedOptions { policy, group: policy.default_group(), priority: 0.5, crawl_delay: 10, now_hour: 0 }
    }
}

impl SeedOptions {
    /// What the file is to say of its keys.
    pub fn metadata(&self) -> Metadata {
        let group = if self.group == HostGroup::FullHost { "full_host" } else { "registrable" };
        let name = |key: &[u8], value: &str| (key.to_vec(), value.as_bytes().to_vec());
        [name(KEY_POLICY, self.policy.name()), name(HOST_GROUP, group)].into()
    }

    /// The extension columns that [`Seeder::finish`] fills.
    pub fn extensions() -> Vec<Extension> {
        vec![
            Extension { id: extension::ARCHIVE_OFFSET, width: 8 },
            Extension { id: extension::META_JSON, width: 8 },
            Extension { id: extension::ARCHIVE_FILE, width: 8 },
        ]
    }
}

/// What became of the seeds.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Seeded {
    /// URLs taken.
    pub urls_in: u64,
    /// Rows written.
    pub rows: u64,
    /// Hosts written.
    pub hosts: u64,
    /// URLs whose key another one has. The newest capture's facts are kept, and the first spelling.
    pub duplicates: u64,
    /// URLs that have no key, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
}

/// Takes URLs in any order; memory is that of its sorter.
pub struct Seeder<'a> {
    options: SeedOptions,
    psl: &'a SuffixList,
    sorter: Sorter,
    seeded: Seeded,
    value: Vec<u8>,
}

impl std::fmt::Debug for Seeder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seeder").field("options", &self.options).field("seeded", &self.seeded).finish_non_exhaustive()
    }
}

impl<'a> Seeder<'a> {
    /// Sorts within `memory_bytes`; more goes to files in `temp`.
    pub fn new(options: SeedOptions, psl: &'a SuffixList, temp: &Path, memory_bytes: usize) -> Result<Self> {
        let sorter = Sorter::builder(temp).memory_bytes(memory_bytes).holder("seeds of a frontier").build()?;
        Ok(Seeder { options, psl, sorter, seeded: Seeded::default(), value: Vec::new() })
    }

    /// Takes one record of a list or an index. A URL without a key is counted, not refused.
    pub fn push(&mut self, record: &SourceRecord) -> Result<()> {
        self.seeded.urls_in += 1;
        let (key, group) = match self.options.policy.key(&record.url, self.options.group, self.psl) {
            Ok(found) => found,
            Err(reject) => {
                *self.seeded.rejected.entry(reject.code()).or_default() += 1;
                return Ok(());
            }
        };
        let value = &mut self.value;
        value.clear();
        // A time that is not known is the oldest: any capture is newer.
        put_ivarint(value, record.ts.map_or(i64::MIN, |time| time.0));
        put_uvarint(value, u64::from(record.status.unwrap_or(0)));
        put_uvarint(value, record.place.as_ref().map_or(0, |place| place.offset));
        let file = record.place.as_ref().map_or("", |place| &place.file);
        for text in [record.url.as_str(), &group, file, record.extras.as_deref().unwrap_or_default()] {
            put_uvarint(value, text.len() as u64);
            value.extend_from_slice(text.as_bytes());
        }
        // Big-endian: bytes then compare as keys do.
        let sort_key = (u128::from(key.host) << 64 | u128::from(key.path)).to_be_bytes();
        self.sorter.push(&sort_key, &self.value)?;
        Ok(())
    }

    /// Writes the rows and their hosts.
    pub fn finish(self, writer: &mut Writer) -> Result<Seeded> {
        let Seeder { options, psl, sorter, mut seeded, .. } = self;
        let mut sorted = sorter.finish()?;
        let mut pending: Option<Pending> = None;
        let mut host: Option<(HostRow, u32)> = None;
        while let Some(record) = sorted.next_record()? {
            let key = <[u8; 16]>::try_from(record.key).map(u128::from_be_bytes);
            let key = key.map_err(|_| Error::Refused("the sorter gave back another key".into()))?;
            let next = Pending::decode(key, record.value).map_err(|e| Error::Refused(e.to_string()))?;
            match &mut pending {
                Some(same) if same.key == key => {
                    seeded.duplicates += 1;
                    same.take_newer(next);
                }
                _ => {
                    if let Some(row) = pending.replace(next) {
                        row.write(&options, psl, &mut host, writer, &mut seeded)?;
                    }
                }
            }
        }
        if let Some(row) = pending {
            row.write(&options, psl, &mut host, writer, &mut seeded)?;
        }
        if let Some((host, urls)) = host {
            push_host(host, urls, writer, &mut seeded)?;
        }
        Ok(seeded)
    }
}

/// A row that may still get facts of a newer capture.
struct Pending {
    key: u128,
    url: String,
    group: String,
    time: i64,
    status: u16,
    offset: u64,
    file: String,
    extras: String,
}

impl Pending {
    fn decode(key: u128, value: &[u8]) -> Result<Pending, SliceError> {
        let mut r = SliceReader::new(value);
        let (time, status, offset) = (r.ivarint("a time")?, r.uvarint("a status")?, r.uvarint("an offset")?);
        let mut text = || r.prefixed(usize::MAX, "a text").map(|t| String::from_utf8_lossy(t).into_owned());
        let (url, group, file, extras) = (text()?, text()?, text()?, text()?);
        Ok(Pending { key, url, group, time, status: status as u16, offset, file, extras })
    }

    fn take_newer(&mut self, other: Pending) {
        if other.time > self.time {
            let url = std::mem::take(&mut self.url);
            *self = Pending { url, ..other };
        }
    }

    fn write(
        self,
        options: &SeedOptions,
        psl: &SuffixList,
        host: &mut Option<(HostRow, u32)>,
        writer: &mut Writer,
        seeded: &mut Seeded,
    ) -> Result<()> {
        let key = UrlKey { host: (self.key >> 64) as u64, path: self.key as u64 };
        if host.as_ref().is_none_or(|(host, _)| host.record.host_key != key.host) {
            if let Some((before, urls)) = host.take() {
                push_host(before, urls, writer, seeded)?;
            }
            *host = Some((new_host(key.host, self.group, options, psl), 0));
        }
        if let Some((_, urls)) = host {
            *urls = urls.saturating_add(1);
        }
        let hour = if self.time == i64::MIN { options.now_hour } else { hour_of(UnixMillis(self.time)) };
        let crawled = self.status != 0;
        let record = UrlRecord {
            host_key: key.host,
            path_key: key.path,
            status: if crawled { STATUS_CRAWLED } else { STATUS_SCHEDULED },
            priority: options.priority,
            first_seen: hour,
            last_crawled: if crawled { hour } else { 0 },
            crawl_count: u32::from(crawled),
            http_status: self.status,
            ..UrlRecord::default()
        };
        let row = Row {
            record,
            url: self.url.into(),
            numbers: vec![(extension::ARCHIVE_OFFSET, self.offset)],
            texts: vec![(extension::META_JSON, self.extras.into()), (extension::ARCHIVE_FILE, self.file.into())],
            ..Row::default()
        };
        writer.push((&row).into())?;
        seeded.rows += 1;
        Ok(())
    }
}

fn new_host(host_key: u64, group: String, options: &SeedOptions, psl: &SuffixList) -> HostRow {
    let grouping = u8::from(options.group == HostGroup::FullHost);
    let registrable = psl.registrable(&group).to_owned();
    let record = HostRecord { host_key, grouping, crawl_delay: options.crawl_delay, ..HostRecord::default() };
    HostRow { record, host: Bytes::from(group), registrable: Bytes::from(registrable), ..HostRow::default() }
}

fn push_host(mut host: HostRow, urls: u32, writer: &mut Writer, seeded: &mut Seeded) -> Result<()> {
    host.record.url_count = urls;
    seeded.hosts += 1;
    writer.push_host(&host)
}
