//! Rows changed since the last flush, found by key and by host.
//!
//! A hash table and a slab, sorted only when it is flushed: a tree kept in order costs more at every settle than one sort.

use crate::identity::UrlId;
use crate::index::{Index, hash_of};
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
/// Rows of a piece. Rows are never moved: a list that doubles takes three times its memory while it grows.
const PIECE: usize = 1024;

#[derive(Default)]
pub(crate) struct Memtable {
    index: Index,
    pieces: Vec<Piece>,
    /// The newest row of each host.
    heads: Vec<u32>,
    /// Of all texts.
    text_bytes: usize,
}

#[derive(Default)]
struct Piece {
    rows: Vec<Row>,
    /// The row of the same host that came before, by row.
    before: Vec<u32>,
}

impl Memtable {
    fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.rows.len())
    }

    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        let rows = self.len() * (size_of::<Row>() + size_of::<u32>());
        rows + self.text_bytes + self.index.bytes() + self.heads.capacity() * size_of::<u32>()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn row(&self, number: u32) -> Option<&Row> {
        self.pieces.get(number as usize / PIECE)?.rows.get(number as usize % PIECE)
    }

    fn has(&self, id: UrlId) -> impl Fn(u32) -> bool {
        move |number| self.row(number).is_some_and(|row| row.id == id)
    }

    pub fn get(&self, id: UrlId) -> Option<&Row> {
        self.index.get(hash_of(id.0), self.has(id)).and_then(|number| self.row(number))
    }

    /// Adds a row of a host, in place of the older one of its key.
    pub fn put(&mut self, host: u32, row: Row) {
        let (next, id) = (self.len() as u32, row.id);
        self.text_bytes += row.texts.memory();
        let mut index = std::mem::take(&mut self.index);
        let at = index.get_or_add(hash_of(id.0), next, self.has(id));
        self.index = index;
        if at < next {
            let old = &mut self.pieces[at as usize / PIECE].rows[at as usize % PIECE];
            self.text_bytes -= old.texts.memory();
            *old = row;
            return;
        }
        let host = host as usize;
        if self.heads.len() <= host {
            self.heads.resize(host + 1, END);
        }
        let before = std::mem::replace(&mut self.heads[host], next);
        if self.pieces.last().is_none_or(|piece| piece.rows.len() == PIECE) {
            self.pieces.push(Piece::default());
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.rows.push(row);
            piece.before.push(before);
        }
    }

    /// The rows of a host, the newest first.
    pub fn of_host(&self, host: u32) -> impl Iterator<Item = &Row> {
        let mut at = self.heads.get(host as usize).copied().unwrap_or(END);
        std::iter::from_fn(move || {
            let piece = self.pieces.get(at as usize / PIECE)?;
            let row = piece.rows.get(at as usize % PIECE)?;
            at = piece.before[at as usize % PIECE];
            Some(row)
        })
    }

    /// All rows in the order of their keys.
    pub fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = Vec::with_capacity(self.len());
        rows.extend(self.pieces.iter().flat_map(|piece| &piece.rows));
        rows.sort_unstable_by_key(|row| row.id);
        rows
    }
}
