//! The index of a MapFile.

use super::writer::index_options;
use super::{data_path, index_path};
use crate::order::Order;
use crate::seq::{OpenOptions, Writer, WriterOptions};
use crate::{Decoder, Error, Result, class};
use std::cmp::Ordering;
use std::path::Path;

/// Every so many keys and where they are, in memory.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Serialised keys, one after another.
    keys: Vec<u8>,
    /// Where each key ends in `keys`, and the offset in `data`.
    entries: Vec<(usize, u64)>,
}

impl Index {
    /// Reads the index of the map in `dir`. One that ends inside a record is used as far as it goes, as Java does; any other
    /// damage is an error.
    pub fn read(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let path = index_path(dir);
        let mut reader = options.open(&path)?;
        if reader.header().value_class() != class::LONG {
            let found = reader.header().stored_value_class.clone();
            return Err(Error::corrupt(&path, 4, "values of class LongWritable", found));
        }
        let mut index = Index::default();
        loop {
            let end = reader.file_len();
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(index),
                Err(Error::Corrupt { found, .. }) if found.ends_with("before the end of the file") && end > 0 => {
                    return Ok(index);
                }
                Err(e) => return Err(e),
            };
            let position = Decoder::new(record.value).i64("a position");
            let position = position.ok().and_then(|p| u64::try_from(p).ok()).ok_or_else(|| {
                Error::corrupt(&path, record.at.offset, "a position in data", format!("{:02x?}", record.value))
            })?;
            // Entries count too: keys may be empty, and a few bytes of a packed block millions of them.
            let entries = (index.entries.len() + 1).saturating_mul(size_of::<(usize, u64)>());
            let claimed = entries.saturating_add(index.keys.len()).saturating_add(record.key.len());
            if claimed > options.limits.index_bytes {
                let (claimed, limit) = (claimed as u64, options.limits.index_bytes as u64);
                let offset = record.at.offset;
                return Err(trawl_io::Error::OverLimit { path, offset, what: "index", claimed, limit }.into());
            }
            index.push(record.key, position);
        }
    }

    pub(super) fn push(&mut self, key: &[u8], position: u64) {
        self.keys.extend_from_slice(key);
        self.entries.push((self.keys.len(), position));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry: then every lookup begins at the first record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Key and position of entry `n`.
    pub fn entry(&self, n: usize) -> Option<(&[u8], u64)> {
        let (end, position) = *self.entries.get(n)?;
        let start = match n.checked_sub(1) {
            Some(before) => self.entries.get(before)?.0,
            None => 0,
        };
        Some((self.keys.get(start..end)?, position))
    }

    /// The first entry whose key is not below `key`, by `order`.
    pub(super) fn lower_bound(&self, key: &[u8], order: Order) -> Result<usize, crate::ValueError> {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some((entry, _)) = self.entry(middle) else { break };
            if order.compare(entry, key)? == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }
}

/// Writes the index of the map in `dir` anew from its data. Entries stand where the writer would have put them: at every
/// `interval`th record, for blocks at the first such record of a block. Returns their number.
pub fn rebuild_index(dir: &Path, options: &OpenOptions, interval: u64, marker: [u8; 16]) -> Result<u64> {
    let mut reader = options.open(&data_path(dir))?;
    let key_class = reader.header().stored_key_class.clone();
    let order = Order::of_class(&reader.header().key_class());
    let writer = WriterOptions { fs: options.fs.clone(), ..index_options(&key_class, marker) };
    let mut out = Writer::create(&index_path(dir), writer)?;
    let mut rule = IndexRule::new(interval);
    let mut last: Option<Vec<u8>> = None;
    while reader.advance()? {
        let (at, key) = (reader.at(), reader.key());
        if let Some(order) = order {
            let compared = last.as_ref().map_or(Ok(Ordering::Less), |last| order.compare(last, key));
            match compared {
                Ok(Ordering::Greater) => {
                    let found = "a smaller one: the map must be sorted first";
                    return Err(Error::corrupt(reader.path(), at.offset, "a key not below the one before", found));
                }
                Ok(_) => {}
                Err(source) => {
                    let (file, class) = (reader.path().into(), key_class);
                    return Err(Error::Value { file, offset: at.offset, index: at.index, class, source });
                }
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
        if rule.wants(at.offset) {
            out.append(key, &at.offset.cast_signed().to_be_bytes())?;
        }
    }
    Ok(out.finish()?.records)
}

/// Which records get an entry: the first, then each that is `interval` records behind the last one that got an entry and
/// does not begin at the same place.
#[derive(Debug)]
pub(super) struct IndexRule {
    interval: u64,
    record: u64,
    last: Option<(u64, u64)>,
}

impl IndexRule {
    pub fn new(interval: u64) -> Self {
        IndexRule { interval: interval.max(1), record: 0, last: None }
    }

    /// Whether the next record, which begins at `position`, gets an entry.
    pub fn wants(&mut self, position: u64) -> bool {
        let record = self.record;
        self.record += 1;
        let wanted = self.last.is_none_or(|(n, at)| record >= n + self.interval && position > at);
        if wanted {
            self.last = Some((record, position));
        }
        wanted
    }
}
