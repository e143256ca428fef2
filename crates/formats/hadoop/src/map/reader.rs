//! Lookups in a MapFile.

use super::bloom::BloomFilter;
use super::index::Index;
use super::{data_path, index_path};
use crate::order::Order;
use crate::seq::{Compression, Header, OpenOptions, Reader, Record};
use crate::{Error, Result, ValueError, class};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A map that is open for lookups.
#[derive(Debug)]
pub struct MapReader {
    dir: PathBuf,
    data: Reader,
    index: Index,
    order: Order,
    bloom: Option<BloomFilter>,
    read_bytes: u64,
    learned: Learned,
}

/// Places between two entries of the index that earlier lookups passed: every eighth record. A lookup then reads a page or two
/// instead of 128 records, which makes random lookups about three times as fast. Not for blocks, which are read whole.
#[derive(Debug, Default)]
struct Learned {
    /// By the entry of the index behind them.
    between: HashMap<usize, Index>,
    bytes: usize,
}

/// Records between two places that are remembered.
const STEP: usize = 8;
/// Memory for such places; beyond, no more are remembered.
const LEARNED_BYTES: usize = 32 << 20;
/// What a lookup reads at once: about [`STEP`] records of a CrawlDb.
const PIECE: u64 = 2048;

impl MapReader {
    /// Opens the map in `dir` and reads its index into memory.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        Self::open_ordered(dir, options, None)
    }

    /// The same for keys whose class does not say how they compare. A map without an index is searched from its start.
    pub fn open_ordered(dir: &Path, options: &OpenOptions, order: Option<Order>) -> Result<Self> {
        let data = options.open(&data_path(dir))?;
        let class = data.header().key_class();
        let order = order.or_else(|| Order::of_class(&class)).ok_or_else(|| Error::Unsupported {
            file: data.path().into(),
            what: format!("the order of keys of class {class}"),
        })?;
        let index = if options.fs.exists(&index_path(dir))? { Index::read(dir, options)? } else { Index::default() };
        let bloom = BloomFilter::read(dir, options)?;
        let read_bytes = options.read_bytes;
        Ok(MapReader { dir: dir.into(), data, index, order, bloom, read_bytes, learned: Learned::default() })
    }

    /// What `data` says of itself.
    pub fn header(&self) -> &Arc<Header> {
        self.data.header()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The index in memory.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The value of a serialised key; of several equal keys the first. `None` if there is none.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.may_contain(key)) {
            return Ok(None);
        }
        if self.seek(key)? { self.data.value().map(Some) } else { Ok(None) }
    }

    /// The first record with this key, and so where it lies.
    pub fn get_record(&mut self, key: &[u8]) -> Result<Option<Record<'_>>> {
        if self.seek(key)? { self.current() } else { Ok(None) }
    }

    /// A reader of all records from the first that is not below `key`; it stands on that record, if there is one.
    pub fn into_reader_at(mut self, key: &[u8]) -> Result<Reader> {
        self.seek(key)?;
        self.data.set_read_bytes(self.read_bytes);
        Ok(self.data)
    }

    /// The first record whose key is `key`, or else the first behind it; `None` if all are below.
    pub fn closest(&mut self, key: &[u8]) -> Result<Option<Record<'_>>> {
        self.seek(key)?;
        if self.at_end() { Ok(None) } else { self.current() }
    }

    /// The first record whose key is `key`, or else the last before it; `None` if all are behind.
    pub fn closest_before(&mut self, key: &[u8]) -> Result<Option<Record<'_>>> {
        if self.seek(key)? {
            return self.current();
        }
        // Equal keys before the wanted one count from their first, so that the answer does not depend on the index.
        let before = self.last_below(key)?;
        match before {
            None => Ok(None),
            Some(found) => {
                self.seek(&found)?;
                self.current()
            }
        }
    }

    /// Records whose keys lie in `from..to`; no `to` is the end of the map.
    pub fn range(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<Range<'_>> {
        self.seek(from)?;
        self.data.set_read_bytes(self.read_bytes);
        let started = self.at_end();
        Ok(Range { map: self, to: to.map(<[u8]>::to_vec), on_first: !started, done: started })
    }

    /// All records from the first on.
    pub fn scan(&mut self) -> Result<&mut Reader> {
        self.data.seek(0);
        self.data.set_read_bytes(self.read_bytes);
        Ok(&mut self.data)
    }

    fn current(&mut self) -> Result<Option<Record<'_>>> {
        self.data.record().map(Some)
    }

    fn at_end(&self) -> bool {
        !self.data.has_record()
    }

    fn value_error(&self, source: ValueError) -> Error {
        let (at, class) = (self.data.at(), self.data.header().stored_key_class.clone());
        Error::Value { file: self.data.path().into(), offset: at.offset, index: at.index, class, source }
    }

    /// Puts the reader on the first record that is not below `key`; whether it is `key`.
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let order = self.order;
        let bad =
            |source| Error::Value { file: self.dir.clone(), offset: 0, index: 0, class: "wanted key ".into(), source };
        // Equal keys can begin before the entry that has the key, so the entry below it is where to start.
        let next = self.index.lower_bound(key, order).map_err(bad)?;
        let entry = next.checked_sub(1).and_then(|n| self.index.entry(n));
        let start = entry.map_or(0, |(_, at)| at);
        let end = self.index.entry(next).map_or(self.data.file_len(), |(_, at)| at);
        if start >= self.data.file_len() && start > 0 {
            let found = format!("an index entry at {start} of {} bytes", self.data.file_len());
            return Err(Error::corrupt(&index_path(&self.dir), 0, "positions within data", found));
        }
        if self.data.header().compression == Compression::Block {
            self.data.seek(start);
            return self.scan_to(key, next);
        }
        let known = self.learned.between.entry(next).or_default();
        let below = known.lower_bound(key, order).map_err(bad)?;
        // A place that was learned has been read; what the index says of one may be untrue.
        let mut stated = entry.map(|(stated, _)| stated).filter(|_| below == 0);
        let start = below.checked_sub(1).and_then(|n| known.entry(n)).map_or(start, |(_, at)| at);
        self.data.set_read_bytes(PIECE);
        self.data.seek(start);
        let mut passed = below.saturating_sub(1) * STEP;
        while self.data.advance()? {
            let at = self.data.at().offset;
            if let Some(stated) = stated.take().filter(|stated| *stated != self.data.key()) {
                return Err(untrue(self.data.path(), start, stated));
            }
            if passed == known.len() * STEP && at < end && self.learned.bytes < LEARNED_BYTES {
                self.learned.bytes += self.data.key().len() + 16;
                known.push(self.data.key(), at);
            }
            passed += 1;
            match order.compare(self.data.key(), key) {
                Ok(Ordering::Less) => {}
                Ok(found) => return Ok(found == Ordering::Equal),
                Err(e) => return Err(self.value_error(e)),
            }
        }
        stated.map_or(Ok(false), |stated| Err(untrue(self.data.path(), start, stated)))
    }

    /// Reads on to `key` in blocks. The entry of the index before `next` has led here: its key lies in this block.
    fn scan_to(&mut self, key: &[u8], next: usize) -> Result<bool> {
        let mut entry = next.checked_sub(1).and_then(|n| self.index.entry(n));
        while self.data.advance()? {
            if let Some((stated, start)) = entry {
                match self.order.compare(self.data.key(), stated).map_err(|e| self.value_error(e))? {
                    Ordering::Less => {}
                    Ordering::Equal => entry = None,
                    Ordering::Greater => return Err(untrue(self.data.path(), start, stated)),
                }
            }
            match self.order.compare(self.data.key(), key).map_err(|e| self.value_error(e))? {
                Ordering::Less => {}
                found => return Ok(found == Ordering::Equal),
            }
        }
        entry.map_or(Ok(false), |(stated, start)| Err(untrue(self.data.path(), start, stated)))
    }

    /// The greatest key below `key`.
    fn last_below(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let next = self.index.lower_bound(key, self.order).map_err(|e| self.value_error(e))?;
        let start = next.checked_sub(1).and_then(|n| self.index.entry(n)).map_or(0, |(_, at)| at);
        self.data.seek(start);
        let mut last: Option<Vec<u8>> = None;
        while self.data.advance()? {
            if self.order.compare(self.data.key(), key).map_err(|e| self.value_error(e))? != Ordering::Less {
                break;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(self.data.key());
        }
        Ok(last)
    }

    /// Value number `n` of an ArrayFile.
    pub fn get_element(&mut self, n: i64) -> Result<Option<&[u8]>> {
        let class = self.header().key_class();
        if class != class::LONG {
            return Err(Error::refused(
                &self.dir,
                format!("an ArrayFile has keys of LongWritable, this map of {class}"),
            ));
        }
        self.get(&n.to_be_bytes())
    }
}

/// The error of an index whose entry for `start` has a key that is not there.
fn untrue(data: &Path, start: u64, stated: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(stated.get(..stated.len().min(100)).unwrap_or_default());
    let expected =
        format!("the key {:?}, which the index has for this place", shown.trim_start_matches(char::is_control));
    Error::corrupt(data, start, expected, "another key: rebuild the index")
}

/// Records of a range, in order.
#[derive(Debug)]
pub struct Range<'a> {
    map: &'a mut MapReader,
    to: Option<Vec<u8>>,
    /// The reader stands on the first record, which was not given out yet.
    on_first: bool,
    done: bool,
}

impl Range<'_> {
    /// The next record of the range; `None` at its end.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        if self.done {
            return Ok(None);
        }
        if !std::mem::take(&mut self.on_first) && !self.map.data.advance()? {
            self.done = true;
            return Ok(None);
        }
        if let Some(to) = &self.to {
            let compared = self.map.order.compare(self.map.data.key(), to);
            if compared.map_err(|e| self.map.value_error(e))? != Ordering::Less {
                self.done = true;
                return Ok(None);
            }
        }
        self.map.current()
    }
}
