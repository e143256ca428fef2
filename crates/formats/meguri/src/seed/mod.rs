//! URLs in any order into a file: what a list or an index of captures knows becomes rows.

mod pending;

use crate::error::{Error, Result};
use crate::footer::Metadata;
use crate::keys::{HOST_GROUP, KEY_POLICY, KeyPolicy};
use crate::reader::{HostRow, MeguriFile, Row};
use crate::schema::{Extension, HostRecord, extension};
use crate::writer::Writer;
use crate::writer::hosts::{decode_host, encode_host};
use bytes::Bytes;
pub use pending::meta_json;
use pending::{Pending, encode_record, encode_row};
use std::collections::BTreeMap;
use std::path::Path;
use trawl_model::{UnixMillis, UrlRecord as SourceRecord};
use trawl_sort::Sorter;
use trawl_url::SuffixList;
use trawl_url::key::{HostGroup, UrlKey};

const MILLIS_PER_HOUR: i64 = 3_600_000;

/// The hour of a time: the first before 1970, the last that a column holds behind it.
pub fn hour_of(time: UnixMillis) -> u32 {
    time.0.div_euclid(MILLIS_PER_HOUR).clamp(0, i64::from(u32::MAX)) as u32
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
    /// Of every row that does not come with its own.
    pub priority: f32,
    /// Of every host that does not come with its own, in tenths of a second.
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
    /// Hosts written; a file says so itself.
    #[serde(skip)]
    pub hosts: u64,
    /// Rows that came with their state and due time, from another file or a database.
    pub carried: u64,
    /// Hosts that came with their facts.
    pub carried_hosts: u64,
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
    /// Extension columns of hosts that are kept.
    host_extensions: Vec<Extension>,
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
        let (host_extensions, value) = (Vec::new(), Vec::new());
        Ok(Seeder { options, psl, sorter, host_extensions, seeded: Seeded::default(), value })
    }

    /// Keeps these extension columns of hosts, which the writer must have too.
    pub fn keep_host_extensions(&mut self, extensions: Vec<Extension>) {
        self.host_extensions = extensions;
    }

    /// Takes one record of a list or an index. A URL without a key is counted, not refused.
    pub fn push(&mut self, record: &SourceRecord) -> Result<()> {
        let Some((key, group)) = self.key(&record.url) else { return Ok(()) };
        encode_record(record, &group, &mut self.value);
        self.sorter.push(&key, &self.value)?;
        Ok(())
    }

    /// Takes a row with its state: everything it says stays. Its key is made anew, unless it is of a file whose keys are those
    /// of this seeder: a frontier has rows beside the page of their URL, such as that of a robots.txt.
    pub fn push_row(&mut self, url: &str, row: &Row, of: Option<&MeguriFile>) -> Result<()> {
        let Some((mut key, group)) = self.key(url) else { return Ok(()) };
        if of.is_some_and(|file| self.has_keys_of(file)) {
            key = sort_key(row.key());
        }
        encode_row(row, &group, &mut self.value);
        self.sorter.push(&key, &self.value)?;
        Ok(())
    }

    /// Whether a file says that its keys are made as those of this seeder are.
    fn has_keys_of(&self, file: &MeguriFile) -> bool {
        let stated = KeyPolicy::stated(&file.footer().metadata);
        stated == Some(self.options.policy) && file.host_group() == self.options.group
    }

    /// Takes a host with its facts. Its key must be one of this seeder's policy and grouping. Of hosts with one key the last
    /// stays.
    pub fn push_host(&mut self, host: &HostRow) -> Result<()> {
        self.value.clear();
        encode_host(host, &self.host_extensions, &mut self.value);
        self.sorter.push(&host.record.host_key.to_be_bytes(), &self.value)?;
        Ok(())
    }

    /// The key that a URL is sorted by, and its host group.
    fn key(&mut self, url: &str) -> Option<([u8; 16], String)> {
        self.seeded.urls_in += 1;
        match self.options.policy.key(url, self.options.group, self.psl) {
            Ok((key, group)) => Some((sort_key(key), group)),
            Err(reject) => {
                *self.seeded.rejected.entry(reject.code()).or_default() += 1;
                None
            }
        }
    }

    /// Writes the rows and their hosts.
    pub fn finish(self, writer: &mut Writer) -> Result<Seeded> {
        let Seeder { options, psl, sorter, host_extensions, seeded, .. } = self;
        let mut sorted = sorter.finish()?;
        let mut out = Out { options, psl, writer, host: None, seeded };
        let mut pending: Option<Pending> = None;
        let bad = |e: trawl_io::slice::SliceError| Error::Refused(format!("the sorter gave back another record: {e}"));
        while let Some(record) = sorted.next_record()? {
            let Ok(key) = <[u8; 16]>::try_from(record.key) else {
                // A host: the rows before it are complete.
                pending.take().map_or(Ok(()), |row| out.row(row))?;
                out.host(decode_host(record.value, &host_extensions).map_err(bad)?)?;
                continue;
            };
            let next = Pending::decode(u128::from_be_bytes(key), record.value, &options).map_err(bad)?;
            match &mut pending {
                Some(same) if same.key == next.key => {
                    out.seeded.duplicates += 1;
                    same.take_newer(next);
                }
                _ => pending.replace(next).map_or(Ok(()), |row| out.row(row))?,
            }
        }
        pending.map_or(Ok(()), |row| out.row(row))?;
        out.end_host()?;
        Ok(out.seeded)
    }
}

/// Big-endian: bytes then compare as keys do.
fn sort_key(key: UrlKey) -> [u8; 16] {
    (u128::from(key.host) << 64 | u128::from(key.path)).to_be_bytes()
}

/// Rows and hosts on their way to the writer, in order.
struct Out<'a> {
    options: SeedOptions,
    psl: &'a SuffixList,
    writer: &'a mut Writer,
    host: Option<HostRow>,
    seeded: Seeded,
}

impl Out<'_> {
    fn row(&mut self, mut pending: Pending) -> Result<()> {
        let key = UrlKey { host: (pending.key >> 64) as u64, path: pending.key as u64 };
        if self.host.as_ref().is_none_or(|host| host.record.host_key != key.host) {
            self.end_host()?;
            self.host = Some(self.new_host(key.host, pending.group));
        }
        (pending.row.record.host_key, pending.row.record.path_key) = (key.host, key.path);
        self.writer.push((&pending.row).into())?;
        self.seeded.rows += 1;
        self.seeded.carried += u64::from(pending.carried);
        Ok(())
    }

    fn host(&mut self, host: HostRow) -> Result<()> {
        if self.host.as_ref().is_some_and(|before| before.record.host_key != host.record.host_key) {
            self.end_host()?;
        }
        self.seeded.carried_hosts += u64::from(self.host.is_none());
        self.host = Some(host);
        Ok(())
    }

    /// The writer counts the rows of hosts.
    fn end_host(&mut self) -> Result<()> {
        let Some(host) = self.host.take() else { return Ok(()) };
        self.seeded.hosts += 1;
        self.writer.push_host(&host)
    }

    fn new_host(&self, host_key: u64, group: String) -> HostRow {
        let grouping = grouping_of(self.options.group);
        let registrable = self.psl.registrable(&group).to_owned();
        let record = HostRecord { host_key, grouping, crawl_delay: self.options.crawl_delay, ..HostRecord::default() };
        HostRow { record, host: Bytes::from(group), registrable: Bytes::from(registrable), ..HostRow::default() }
    }
}

/// `grouping` of a host.
pub fn grouping_of(group: HostGroup) -> u8 {
    u8::from(group == HostGroup::FullHost)
}
