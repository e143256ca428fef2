//! A buffer of records, and the index by which it is sorted.
//!
//! ```text
//! chunk:  uvarint key length, key, uvarint value length, value    ...       no record spans two chunks
//! entry:  eight key bytes | position of the key (chunk, offset) | key length
//! ```
//! The index is built when the buffer is full: until then only its size is counted.

use crate::plan::{ENTRY_BYTES, Plan};
use crate::run::RunWriter;
use crate::{msd, prefix};
use trawl_io::varint::{put_uvarint, uvarint, uvarint_len};

/// Records in the order they came.
#[derive(Debug)]
pub(crate) struct Buffer {
    chunks: Vec<Vec<u8>>,
    chunk_bits: u32,
    records: usize,
    /// Memory taken by chunks, and by the index to come.
    used: usize,
    limit: usize,
}

/// One record's place in the order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Eight bytes of the key from the current depth on, most significant first, zeros past its end.
    pub prefix: u64,
    /// Where the key is; grows in the order of pushing, which is what makes sorting stable.
    pub position: u32,
    pub key_len: u32,
}
const _: () = assert!(size_of::<Entry>() == 16);

impl Buffer {
    pub fn new(plan: &Plan) -> Self {
        Buffer { chunks: Vec::new(), chunk_bits: plan.chunk_bits, records: 0, used: 0, limit: plan.buffer }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Takes a record, or says `false` when it is full. An empty buffer takes any record up to the plan's limit.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let need = uvarint_len(key.len() as u64) + key.len() + uvarint_len(value.len() as u64) + value.len();
        let chunk = match self.chunks.last_mut() {
            Some(chunk) if chunk.capacity() - chunk.len() >= need => {
                if self.used + ENTRY_BYTES > self.limit {
                    return false;
                }
                chunk
            }
            _ => {
                let size = need.max(1 << self.chunk_bits);
                if self.used + size + ENTRY_BYTES > self.limit && self.records > 0 {
                    return false;
                }
                self.used += size;
                self.chunks.push(Vec::with_capacity(size));
                let Some(chunk) = self.chunks.last_mut() else { return false };
                chunk
            }
        };
        put_uvarint(chunk, key.len() as u64);
        chunk.extend_from_slice(key);
        put_uvarint(chunk, value.len() as u64);
        chunk.extend_from_slice(value);
        self.used += ENTRY_BYTES;
        self.records += 1;
        true
    }

    /// Sorts the records by key; equal keys stay in the order they came.
    pub fn sort(self) -> SortedBuffer {
        let mut sorted = SortedBuffer {
            chunks: self.chunks,
            chunk_bits: self.chunk_bits,
            entries: Vec::with_capacity(self.records),
        };
        for (n, chunk) in sorted.chunks.iter().enumerate() {
            let mut at = 0;
            while let Some((key_at, key_len, _, end)) = record_at(chunk, at) {
                let key = chunk.get(key_at..key_at + key_len).unwrap_or_default();
                let position = (n << self.chunk_bits | key_at) as u32;
                sorted.entries.push(Entry { prefix: msd::load(key, 0), position, key_len: key_len as u32 });
                at = end;
            }
        }
        let mut entries = std::mem::take(&mut sorted.entries);
        msd::sort(&sorted, &mut entries);
        sorted.entries = entries;
        sorted
    }
}

/// Where the record at `at` has its key and value: key start, key length, value start, end.
#[inline]
fn record_at(chunk: &[u8], at: usize) -> Option<(usize, usize, usize, usize)> {
    let (key_len, used) = uvarint(chunk.get(at..)?).ok()?;
    let (key_at, key_len) = (at + used, key_len as usize);
    let (value_len, used) = uvarint(chunk.get(key_at + key_len..)?).ok()?;
    let value_at = key_at + key_len + used;
    Some((key_at, key_len, value_at, value_at + value_len as usize))
}

/// Records in order.
#[derive(Debug)]
pub(crate) struct SortedBuffer {
    chunks: Vec<Vec<u8>>,
    chunk_bits: u32,
    entries: Vec<Entry>,
}

impl SortedBuffer {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn chunk(&self, position: u32) -> (&[u8], usize) {
        let chunk = self.chunks.get((position >> self.chunk_bits) as usize).map(Vec::as_slice).unwrap_or_default();
        (chunk, (position & ((1 << self.chunk_bits) - 1)) as usize)
    }

    #[inline]
    pub fn key(&self, entry: &Entry) -> &[u8] {
        let (chunk, at) = self.chunk(entry.position);
        chunk.get(at..at + entry.key_len as usize).unwrap_or_default()
    }

    /// Key and value of the n-th record in order.
    #[inline]
    pub fn get(&self, n: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(n)?;
        let (chunk, at) = self.chunk(entry.position);
        let (key, rest) = chunk.get(at..)?.split_at_checked(entry.key_len as usize)?;
        let (value_len, used) = uvarint(rest).ok()?;
        Some((key, rest.get(used..)?.get(..value_len as usize)?))
    }

    /// Writes all records as a run.
    pub fn write(&self, writer: &mut RunWriter) -> trawl_io::Result<()> {
        let mut last: &[u8] = &[];
        for n in 0..self.len() {
            let Some((key, value)) = self.get(n) else { break };
            writer.push(key, value, prefix::shared(last, key))?;
            last = key;
        }
        Ok(())
    }
}
