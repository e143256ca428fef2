//! What records say of other records, checked over a whole set within a memory budget.
//!
//! Every statement becomes one entry under the 128-bit hash of what it is about; sorting brings what belongs together side
//! by side. Two different ids with equal hashes would be taken for one: with 10^10 records that has odds of 10^-19.
//!
//! ```text
//! key    16  hash of a record id, or of target and date
//! value   1  tag      4  file      8  offset      8  digest of the payload (hash), 0 if unknown      4  index in its member
//! ```

use crate::cdxj::sort_error;
use crate::error::Result;
use crate::header::{RecordHeader, RecordType};
use std::path::Path;
use trawl_model::Severity;
use trawl_sort::Sorter;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const IS: u8 = 0;
const CONCURRENT: u8 = 1;
const REFERS: u8 = 2;
const IS_CAPTURE: u8 = 3;
const REFERS_CAPTURE: u8 = 4;

/// A statement that does not hold.
pub(super) struct Broken {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) severity: Severity,
    pub(super) kind: &'static str,
    pub(super) detail: String,
}

/// Statements gathered from a set of files.
#[derive(Default)]
pub(super) struct Links {
    sorter: Option<Sorter>,
}

/// One statement.
#[derive(Clone, Copy)]
struct Entry {
    tag: u8,
    file: u32,
    offset: u64,
    digest: u64,
    index: u32,
}

impl Entry {
    fn encode(self) -> [u8; 25] {
        let mut out = [0; 25];
        let parts: [&[u8]; 5] = [
            &[self.tag],
            &self.file.to_be_bytes(),
            &self.offset.to_be_bytes(),
            &self.digest.to_be_bytes(),
            &self.index.to_be_bytes(),
        ];
        for (slot, byte) in out.iter_mut().zip(parts.concat()) {
            *slot = byte;
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let (file, rest) = rest.split_first_chunk::<4>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (digest, rest) = rest.split_first_chunk::<8>()?;
        let index = rest.first_chunk::<4>()?;
        Some(Entry {
            tag: *tag,
            file: u32::from_be_bytes(*file),
            offset: u64::from_be_bytes(*offset),
            digest: u64::from_be_bytes(*digest),
            index: u32::from_be_bytes(*index),
        })
    }
}

impl Links {
    pub(super) fn new(temp_dir: &Path, memory_bytes: usize) -> Result<Self> {
        let memory_bytes = memory_bytes.max(trawl_sort::MIN_MEMORY_BYTES);
        let sorter = Sorter::builder(temp_dir).memory_bytes(memory_bytes).threads(1).build().map_err(sort_error)?;
        Ok(Links { sorter: Some(sorter) })
    }

    /// Takes down what a record is and what it names.
    pub(super) fn note(&mut self, header: &RecordHeader, file: u32, offset: u64, index: u32) -> Result<()> {
        let digest = header.digest("WARC-Payload-Digest").map_or(0, |d| xxh3_64(d.as_bytes()).max(1));
        let entry = |tag| Entry { tag, file, offset, digest, index };
        if let Some(id) = header.record_id() {
            self.push(&id_key(&id), entry(IS))?;
        }
        let named: Vec<_> = header.concurrent_to().map(|id| id_key(&id)).collect();
        for key in named {
            self.push(&key, entry(CONCURRENT))?;
        }
        if let Some(id) = header.uri("WARC-Refers-To") {
            self.push(&id_key(&id), entry(REFERS))?;
        }
        let capture = |uri: &str, date: Option<trawl_model::UnixMillis>| {
            // Dates are written to the second by some and to the millisecond by others; the second is what both have.
            xxh3_128(format!("{uri}\0{}", date.unwrap_or_default().digits14()).as_bytes()).to_be_bytes()
        };
        if matches!(header.record_type(), RecordType::Response | RecordType::Resource)
            && let Some(uri) = header.target_uri()
        {
            self.push(&capture(&uri, header.date()), entry(IS_CAPTURE))?;
        }
        if header.record_type() == RecordType::Revisit
            && let Some(uri) = header.uri("WARC-Refers-To-Target-URI")
            && header.get("WARC-Refers-To-Date").is_some()
        {
            self.push(&capture(&uri, header.time("WARC-Refers-To-Date")), entry(REFERS_CAPTURE))?;
        }
        Ok(())
    }

    fn push(&mut self, key: &[u8; 16], entry: Entry) -> Result<()> {
        match &mut self.sorter {
            Some(sorter) => sorter.push(key, &entry.encode()).map_err(sort_error),
            None => Ok(()),
        }
    }

    /// Tells `each` every statement that does not hold.
    pub(super) fn check(self, mut each: impl FnMut(Broken)) -> Result<()> {
        let Some(sorter) = self.sorter else { return Ok(()) };
        let mut sorted = sorter.finish().map_err(sort_error)?;
        let mut key = Vec::new();
        let mut group = Group::default();
        while let Some(record) = sorted.next_record().map_err(sort_error)? {
            if record.key != key.as_slice() {
                group.check(&mut each);
                group.clear();
                key.clear();
                key.extend_from_slice(record.key);
            }
            if let Some(entry) = Entry::decode(record.value) {
                group.take(entry, &mut each);
            }
        }
        group.check(&mut each);
        Ok(())
    }
}

fn id_key(id: &str) -> [u8; 16] {
    xxh3_128(id.as_bytes()).to_be_bytes()
}

/// How many statements about one thing are kept: a forged set may make any number about one id.
const MOST: usize = 4096;

/// All statements about one id, or about one target and date.
#[derive(Default)]
struct Group {
    records: Vec<Entry>,
    claims: Vec<Entry>,
}

impl Group {
    fn clear(&mut self) {
        self.records.clear();
        self.claims.clear();
    }

    fn take(&mut self, entry: Entry, each: &mut impl FnMut(Broken)) {
        match entry.tag {
            IS | IS_CAPTURE => {
                if entry.tag == IS && !self.records.is_empty() {
                    each(broken(entry, Severity::Fault, "duplicate-id", "its id is another record's too"));
                }
                if self.records.len() < MOST {
                    self.records.push(entry);
                }
            }
            _ if self.claims.len() < MOST => self.claims.push(entry),
            _ => {}
        }
    }

    fn check(&self, each: &mut impl FnMut(Broken)) {
        for claim in &self.claims {
            let same = |record: &&Entry| record.digest == 0 || claim.digest == 0 || record.digest == claim.digest;
            match claim.tag {
                CONCURRENT if !self.records.iter().any(|r| r.file == claim.file) => {
                    let detail = "WARC-Concurrent-To names a record that is not in this file";
                    each(broken(*claim, Severity::Fault, "concurrent-to", detail));
                }
                REFERS | REFERS_CAPTURE if self.records.is_empty() => {
                    let detail = "what it refers to is not in this set of files";
                    each(broken(*claim, Severity::Note, "refers-to", detail));
                }
                REFERS | REFERS_CAPTURE if !self.records.iter().any(|r| same(&r)) => {
                    let detail = "what it refers to has another payload digest";
                    each(broken(*claim, Severity::Fault, "refers-to-digest", detail));
                }
                _ => {}
            }
        }
    }
}

fn broken(entry: Entry, severity: Severity, kind: &'static str, detail: &str) -> Broken {
    let detail =
        if entry.index == 0 { detail.to_owned() } else { format!("record {} of the member: {detail}", entry.index) };
    Broken { file: entry.file, offset: entry.offset, severity, kind, detail }
}
