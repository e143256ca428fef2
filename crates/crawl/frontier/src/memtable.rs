//! Rows changed since the last flush, found by key and by host.
//!
//! A hash table and a slab, sorted only when it is flushed: a tree kept in order costs more at every settle than one sort.

use crate::identity::UrlId;
use crate::row::Row;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Keys are hashes already.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(32) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u128(&mut self, value: u128) {
        // The lower half, of the URL, is the one that differs.
        self.0 = (value as u64 ^ ((value >> 64) as u64).rotate_left(21)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
}

pub(crate) type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// No further row of the host.
const END: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct Memtable {
    index: KeyMap<UrlId, u32>,
    rows: Vec<Row>,
    /// The row of the same host that came before, by row.
    before: Vec<u32>,
    /// The newest row of each host.
    heads: Vec<u32>,
    bytes: usize,
}

impl Memtable {
    /// Memory of a row beside itself: index, links.
    const OVERHEAD: usize = 40;

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn get(&self, id: UrlId) -> Option<&Row> {
        self.index.get(&id).and_then(|at| self.rows.get(*at as usize))
    }

    /// Adds a row of a host, in place of the older one of its key.
    pub fn put(&mut self, host: u32, row: Row) {
        let next = self.rows.len() as u32;
        let at = *self.index.entry(row.id).or_insert(next);
        if at < next {
            let old = &mut self.rows[at as usize];
            self.bytes = self.bytes + row.memory() - old.memory();
            *old = row;
            return;
        }
        self.bytes += row.memory() + Self::OVERHEAD;
        let host = host as usize;
        if self.heads.len() <= host {
            self.heads.resize(host + 1, END);
        }
        self.before.push(std::mem::replace(&mut self.heads[host], next));
        self.rows.push(row);
    }

    /// The rows of a host, the newest first.
    pub fn of_host(&self, host: u32) -> impl Iterator<Item = &Row> {
        let mut at = self.heads.get(host as usize).copied().unwrap_or(END);
        std::iter::from_fn(move || {
            let row = self.rows.get(at as usize)?;
            at = self.before[at as usize];
            Some(row)
        })
    }

    /// All rows in the order of their keys.
    pub fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_unstable_by_key(|row| row.id);
        rows
    }
}
