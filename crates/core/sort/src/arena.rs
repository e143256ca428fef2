//! A buffer of records, and the index by which it is sorted, in one piece of memory.
//!
//! ```text
//! slab:   records -->                    free                    <-- index
//! record: uvarint key length, key, uvarint value length, value
//! entry:  eight key bytes | position of the key, key length (32 bits each)
//! ```
//! The index is built when the buffer is full; until then only its size is counted. Slabs are reused from run to run, so
//! that the budget holds whatever an allocator does with freed memory.

use crate::plan::Plan;
use crate::run::RunWriter;
use crate::{msd, prefix};
use trawl_io::varint::{put_uvarint, uvarint};
use zerocopy::IntoBytes;

/// One record's place in the order: eight bytes of the key from the current depth on (most significant first, zeros past
/// its end), then position and key length.
pub(crate) type Entry = [u64; 2];

/// How many records are fetched from memory together; 16 to 64 measured alike, none is a fifth slower.
pub(crate) const TOGETHER: usize = 32;

/// Bytes of an [`Entry`].
const ENTRY: usize = size_of::<Entry>();

#[inline]
fn entry(key: &[u8], position: usize) -> Entry {
    // Slabs are smaller than 4 GiB.
    [msd::load(key, 0), (position as u64) << 32 | key.len() as u64]
}

#[inline]
pub(crate) fn key_len(entry: &Entry) -> u32 {
    let [_, place] = *entry;
    place as u32
}

/// Grows in the order of pushing, which is what makes sorting stable.
#[inline]
pub(crate) fn position(entry: &Entry) -> u32 {
    let [_, place] = *entry;
    (place >> 32) as u32
}

#[inline]
pub(crate) fn key<'a>(data: &'a [u8], entry: &Entry) -> &'a [u8] {
    let at = position(entry) as usize;
    data.get(at..at + key_len(entry) as usize).unwrap_or_default()
}

/// The memory of one buffer.
#[derive(Debug)]
pub(crate) struct Slab(Vec<Entry>);

impl Slab {
    /// The system hands out the pages when they are first touched.
    pub fn new(plan: &Plan) -> Self {
        Slab(vec![[0; 2]; plan.buffer / ENTRY])
    }
}

/// Records in the order they came.
#[derive(Debug)]
pub(crate) struct Buffer {
    slab: Slab,
    records: usize,
    /// Bytes of records.
    len: usize,
    /// A record being assembled.
    head: Vec<u8>,
}

impl Buffer {
    pub fn new(slab: Slab) -> Self {
        Buffer { slab, records: 0, len: 0, head: Vec::new() }
    }

    /// Takes a record, or says `false` when it is full. An empty buffer takes any record the plan allows.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.head.clear();
        put_uvarint(&mut self.head, key.len() as u64);
        let key_head = self.head.len();
        put_uvarint(&mut self.head, value.len() as u64);
        let (key_head, value_head) = self.head.split_at_checked(key_head).unwrap_or_default();
        let end = self.len + self.head.len() + key.len() + value.len();
        let index = (self.records + 1) * ENTRY;
        let bytes = self.slab.0.as_mut_bytes();
        if end + index > bytes.len() {
            return false;
        }
        let Some(mut to) = bytes.get_mut(self.len..end) else { return false };
        for piece in [key_head, key, value_head, value] {
            let Some((now, rest)) = to.split_at_mut_checked(piece.len()) else { return false };
            now.copy_from_slice(piece);
            to = rest;
        }
        self.len = end;
        self.records += 1;
        true
    }

    /// Sorts the records by key; equal keys stay in the order they came.
    pub fn sort(mut self) -> SortedBuffer {
        let words = self.slab.0.len();
        if let Some((data, index)) = self.slab.0.split_at_mut_checked(words - self.records) {
            let data = data.as_bytes();
            let mut at = 0;
            for slot in index.iter_mut() {
                let Some((start, length, _, end)) = record_at(data, at) else { break };
                *slot = entry(data.get(start..start + length).unwrap_or_default(), start);
                at = end;
            }
            msd::sort(data, index);
        }
        SortedBuffer { slab: self.slab, records: self.records }
    }
}

/// Where the record at `at` has its key and value: key start, key length, value start, end.
#[inline]
fn record_at(data: &[u8], at: usize) -> Option<(usize, usize, usize, usize)> {
    let (key_len, used) = uvarint(data.get(at..)?).ok()?;
    let (key_at, key_len) = (at + used, key_len as usize);
    let (value_len, used) = uvarint(data.get(key_at + key_len..)?).ok()?;
    let value_at = key_at + key_len + used;
    Some((key_at, key_len, value_at, value_at + value_len as usize))
}

/// Records in order.
#[derive(Debug)]
pub(crate) struct SortedBuffer {
    slab: Slab,
    records: usize,
}

impl SortedBuffer {
    fn parts(&self) -> (&[u8], &[Entry]) {
        let (data, index) = self.slab.0.split_at_checked(self.slab.0.len() - self.records).unwrap_or_default();
        (data.as_bytes(), index)
    }

    /// Key and value of the n-th record in order.
    #[inline]
    pub fn get(&self, n: usize) -> Option<(&[u8], &[u8])> {
        let (data, index) = self.parts();
        get(data, index.get(n)?)
    }

    pub fn len(&self) -> usize {
        self.records
    }

    /// How many records have keys below `bound`.
    pub fn lower_bound(&self, bound: &[u8]) -> usize {
        let (data, index) = self.parts();
        index.partition_point(|e| key(data, e) < bound)
    }

    /// Brings `count` records from the n-th on near.
    #[inline]
    pub fn touch(&self, n: usize, count: usize) {
        let (data, index) = self.parts();
        touch(data, index.get(n..index.len().min(n + count)).unwrap_or_default());
    }

    /// Writes all records as a run and gives the memory back.
    pub fn write(self, writer: &mut RunWriter) -> trawl_io::Result<Slab> {
        let (data, index) = self.parts();
        let mut last: &[u8] = &[];
        for group in index.chunks(TOGETHER) {
            touch(data, group);
            for (key, value) in group.iter().filter_map(|e| get(data, e)) {
                writer.push(key, value, prefix::shared(last, key))?;
                last = key;
            }
        }
        Ok(self.slab)
    }
}

/// Records are anywhere in memory: asking for several at once waits for them together, not one by one. A record may lie
/// across a line of the cache, so its end is asked for too.
#[inline]
fn touch(data: &[u8], entries: &[Entry]) {
    let byte = |at: u32| data.get(at as usize).copied().unwrap_or(0);
    let both = |e: &Entry| byte(position(e)) ^ byte(position(e) + key_len(e));
    std::hint::black_box(entries.iter().map(both).fold(0, |a, b| a ^ b));
}

#[inline]
fn get<'a>(data: &'a [u8], entry: &Entry) -> Option<(&'a [u8], &'a [u8])> {
    let (key, rest) = data.get(position(entry) as usize..)?.split_at_checked(key_len(entry) as usize)?;
    let (value_len, used) = uvarint(rest).ok()?;
    Some((key, rest.get(used..)?.get(..value_len as usize)?))
}
