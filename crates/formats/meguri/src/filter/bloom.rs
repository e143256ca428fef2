//! The blocked Bloom filter: all bits of a key lie in one block of 512, so a lookup costs one cache line.

use super::{Head, KIND_BLOOM};
use crate::error::Malformed;
use trawl_url::key::UrlKey;

const BLOCK_BITS: u64 = 512;
const BLOCK_WORDS: u64 = BLOCK_BITS / 64;

/// A blocked Bloom filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bloom {
    k: u8,
    blocks: u64,
    keys: u64,
    capacity: u64,
    words: Vec<u64>,
}

impl Bloom {
    /// An empty filter for `capacity` keys of which a share of `rate` strangers passes. 0 keys count as 1, a rate outside
    /// (0, 1) as 0.01.
    pub fn with_capacity(capacity: u64, rate: f64) -> Bloom {
        let capacity = capacity.max(1);
        let rate = if rate > 0.0 && rate < 1.0 { rate } else { 0.01 };
        let ln2 = std::f64::consts::LN_2;
        // A block is fuller or emptier than the mean: 15 % more bits make up for it.
        let bits_per_key = -rate.ln() / (ln2 * ln2) * 1.15;
        let blocks = (capacity as f64 * bits_per_key).ceil() as u64 / BLOCK_BITS + 1;
        let k = (bits_per_key * ln2).round().clamp(1.0, 16.0) as u8;
        let words = vec![0; usize::try_from(blocks * BLOCK_WORDS).unwrap_or(usize::MAX)];
        Bloom { k, blocks, keys: 0, capacity, words }
    }

    /// Bits set for a key.
    pub fn bits_per_key(&self) -> u8 {
        self.k
    }

    /// Blocks of 512 bits.
    pub fn block_count(&self) -> u64 {
        self.blocks
    }

    /// Keys added, repeats included.
    pub fn key_count(&self) -> u64 {
        self.keys
    }

    /// Adds a key.
    pub fn add(&mut self, key: UrlKey) {
        for (word, mask) in places(key, self.k, self.blocks) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= mask;
            }
        }
        self.keys += 1;
    }

    /// Whether the key may have been added.
    pub fn may_contain(&self, key: UrlKey) -> bool {
        places(key, self.k, self.blocks).all(|(word, mask)| self.words.get(word).is_some_and(|w| w & mask != 0))
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.words.len() * 8);
        Head { kind: KIND_BLOOM, parameter: self.k, word: 0, counts: [self.blocks, self.keys] }.encode(&mut out);
        out.extend_from_slice(&self.capacity.to_le_bytes());
        self.words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out
    }

    pub(super) fn decode(head: &Head, body: &[u8]) -> Result<Bloom, Malformed> {
        let [blocks, keys] = head.counts;
        let (words, rest) = body.as_chunks::<8>();
        let Some((capacity, words)) = words.split_first().filter(|_| rest.is_empty()) else {
            return Err(Malformed::new("a Bloom filter of whole words", format!("{} bytes", body.len())));
        };
        if blocks == 0 || Some(words.len() as u64) != blocks.checked_mul(BLOCK_WORDS) {
            return Err(Malformed::new("64 bytes a block", format!("{} words in {blocks} blocks", words.len())));
        }
        if !(1..=16).contains(&head.parameter) {
            return Err(Malformed::new("1 to 16 bits a key", head.parameter));
        }
        let words = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
        Ok(Bloom { k: head.parameter, blocks, keys, capacity: u64::from_le_bytes(*capacity), words })
    }
}

/// The words and bits of a key.
fn places(key: UrlKey, k: u8, blocks: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut h = key.host.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(key.path);
    h = (h ^ h >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    h ^= h >> 33;
    // A filter has at least one block.
    let first = h % blocks.max(1) * BLOCK_WORDS;
    let stride = key.path | 1;
    (0..u64::from(k)).map(move |i| {
        let bit = h.wrapping_add(i.wrapping_mul(stride)) & (BLOCK_BITS - 1);
        (usize::try_from(first + bit / 64).unwrap_or(usize::MAX), 1 << (bit % 64))
    })
}

#[cfg(test)]
pub(super) fn bits_of(key: UrlKey, k: u8) -> Vec<u64> {
    places(key, k, 1).map(|(word, mask)| word as u64 * 64 + u64::from(mask.trailing_zeros())).collect()
}
