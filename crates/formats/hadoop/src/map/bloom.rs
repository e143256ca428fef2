//! The filter of a BloomMapFile.
//!
//! ```text
//! i32 -1  i32 hashes  i8 hash (0 Jenkins, 1 Murmur)  i32 bits  i32 keys a row  i32 keys in the last row  i32 rows
//! a row:  i32 -1  i32 hashes  i8 hash  i32 bits  ceil(bits / 8) bytes, bit i in byte i / 8, the lowest first
//! ```

use crate::decode::{Decoded, Decoder};
use crate::seq::OpenOptions;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Rules most absent keys out.
#[derive(Debug, Clone)]
pub struct BloomFilter {
    hashes: u32,
    murmur: bool,
    bits: u32,
    rows: Vec<Vec<u8>>,
}

/// The file of the filter.
pub(super) fn bloom_path(dir: &Path) -> PathBuf {
    dir.join("bloom")
}

impl BloomFilter {
    /// The filter of the map in `dir`; `None` if it has none.
    pub fn read(dir: &Path, options: &OpenOptions) -> Result<Option<Self>> {
        let path = bloom_path(dir);
        let file = match crate::crc::open(&*options.fs, &path, options.verify_checksums) {
            Ok(file) => file,
            Err(Error::Io(e)) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e),
        };
        let limit = options.limits.index_bytes as u64;
        if file.len() > limit {
            let claimed = file.len();
            return Err(trawl_io::Error::OverLimit { path, offset: 0, what: "bloom filter", claimed, limit }.into());
        }
        let bytes = file.read_range(0..file.len())?;
        let filter = Self::decode(&mut Decoder::new(&bytes));
        filter.map(Some).map_err(|e| Error::corrupt(&path, e.at as u64, e.expected, e.found))
    }

    /// Decodes a `DynamicBloomFilter`.
    pub fn decode(d: &mut Decoder<'_>) -> Decoded<Self> {
        let (hashes, murmur, bits) = header(d)?;
        d.i32("keys a row")?;
        d.i32("keys in the last row")?;
        let count = d.count(13, "number of rows")?;
        let mut rows = Vec::new();
        for _ in 0..count {
            let at = d.clone();
            if header(d)? != (hashes, murmur, bits) {
                return Err(at.error("a row like the filter", "another kind"));
            }
            rows.push(d.take((bits as usize).div_ceil(8), "bits of a row")?.to_vec());
        }
        d.end()?;
        Ok(BloomFilter { hashes, murmur, bits, rows })
    }

    /// False only if no such key was added. The filter hashes the serialised key.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        let mut positions = Vec::with_capacity(self.hashes as usize);
        let mut seed = 0u32;
        for _ in 0..self.hashes {
            seed = if self.murmur { murmur(key, seed) } else { jenkins(key, seed) };
            // Java takes the absolute value of a signed remainder.
            positions.push((seed.cast_signed() % self.bits.cast_signed()).unsigned_abs());
        }
        let set = |row: &Vec<u8>, n: &u32| row.get((n / 8) as usize).is_some_and(|byte| byte >> (n % 8) & 1 == 1);
        // A filter without rows has no keys; one whose key hashes to nothing rules nothing out.
        key.is_empty() || self.rows.iter().any(|row| positions.iter().all(|n| set(row, n)))
    }
}

fn header(d: &mut Decoder<'_>) -> Decoded<(u32, bool, u32)> {
    let start = d.clone();
    let version = d.i32("version")?;
    if version != -1 {
        return Err(start.error("version -1", version.to_string()));
    }
    let hashes = d.i32("number of hashes")?;
    let kind = d.i8("kind of hash")?;
    let bits = d.i32("number of bits")?;
    match (hashes, kind, bits) {
        (1..=64, 0 | 1, 1..) => Ok((hashes.cast_unsigned(), kind == 1, bits.cast_unsigned())),
        _ => Err(start.error("1 to 64 hashes of kind 0 or 1 and some bits", format!("{hashes}, {kind} and {bits}"))),
    }
}

/// MurmurHash 2 as Hadoop has it: the last bytes are taken as signed and in the other order.
fn murmur(data: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = seed ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let k = word.first_chunk().map_or(0, |w| u32::from_le_bytes(*w)).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ (k ^ k >> 24).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (i, b) in rest.iter().enumerate() {
            h ^= (i32::from(b.cast_signed()) << (8 * (rest.len() - 1 - i))).cast_unsigned();
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ h >> 15
}

/// Bob Jenkins' lookup3 (`hashlittle`).
fn jenkins(data: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beefu32.wrapping_add(data.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let mut rest = data;
    while rest.len() > 12 {
        let (head, tail) = rest.split_at_checked(12).unwrap_or((rest, &[]));
        let mut words = head.chunks(4).map(word);
        a = a.wrapping_add(words.next().unwrap_or(0));
        b = b.wrapping_add(words.next().unwrap_or(0));
        c = c.wrapping_add(words.next().unwrap_or(0));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = tail;
    }
    if rest.is_empty() {
        return c;
    }
    let mut words = rest.chunks(4).map(word);
    a = a.wrapping_add(words.next().unwrap_or(0));
    b = b.wrapping_add(words.next().unwrap_or(0));
    c = c.wrapping_add(words.next().unwrap_or(0));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}
