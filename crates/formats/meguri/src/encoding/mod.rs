//! How the values of one page are spelled before the block codec.
//!
//! ```text
//! id name       payload                                                         page_base
//!  0 RAW        n values of `width` bytes, little-endian                        0
//!  1 DICT       uvarint d | d values of `width` bytes | u8 code bits | codes    0
//!  2 DELTA      n-1 x uvarint zigzag(v[i] - v[i-1])                             v[0]
//!  3 FOR        u8 bits | packed v[i] - min                                     min
//!  4 RLE        uvarint runs | runs x (value of `width` bytes, uvarint length)  0
//!  6 DELTA_FOR  u8 bits | uvarint m | packed zigzag(v[i] - v[i-1]) - m          v[0]
//! ```
//! Values are unsigned, of 1, 2, 4 or 8 bytes; floats by their bit pattern. Differences are modulo 2^64. Bits are packed
//! as [`bits`] says. The number of bits is in the payload, so a writer may take more than the values need: whole bytes
//! often compress better.

pub mod bits;
mod choose;
mod decode;
#[cfg(test)]
mod tests;

pub(crate) use choose::{Chooser, Stored};
pub(crate) use decode::{Decoder, Payload};

use bits::{pack, width_of};
use std::collections::HashMap;
use trawl_io::varint::{put_uvarint, zigzag};

/// An encoding of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Encoding {
    /// As they are.
    Raw = 0,
    /// A dictionary and codes.
    Dict = 1,
    /// Differences as varints.
    Delta = 2,
    /// Packed distances to the minimum.
    For = 3,
    /// Runs.
    Rle = 4,
    /// Packed differences.
    DeltaFor = 6,
}

impl Encoding {
    /// By its number in a file; 5 is reserved.
    pub fn from_id(id: u8) -> Option<Encoding> {
        use Encoding::{Delta, DeltaFor, Dict, For, Raw, Rle};
        [Raw, Dict, Delta, For, Rle, DeltaFor].into_iter().find(|e| *e as u8 == id)
    }
}

/// The largest value that `width` bytes hold.
pub(crate) fn max_of(width: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(width.clamp(1, 8)))
}

/// Appends one value of `width` bytes.
pub(crate) fn put_value(out: &mut Vec<u8>, value: u64, width: u8) {
    out.extend(value.to_le_bytes().iter().take(usize::from(width)));
}

/// Reads one value of all of `bytes`, which are at most eight.
pub(crate) fn get_value(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Appends the payload of `values` and gives the page base. Packed numbers take `bits` bits each, or as few as they
/// need if that is more.
pub(crate) fn encode(encoding: Encoding, values: &[u64], width: u8, bits: u32, out: &mut Vec<u8>) -> u64 {
    match encoding {
        Encoding::Raw => encode_raw(values, width, out),
        Encoding::Dict => encode_dict(values, width, bits, out),
        Encoding::Rle => encode_rle(values, width, out),
        Encoding::Delta => {
            deltas(values).for_each(|z| put_uvarint(out, z));
            return values.first().copied().unwrap_or(0);
        }
        Encoding::For => return encode_for(values, bits, out),
        Encoding::DeltaFor => return encode_delta_for(values, bits, out),
    }
    0
}

/// Zigzag differences of neighbours, one fewer than values.
pub(crate) fn deltas(values: &[u64]) -> impl Iterator<Item = u64> + Clone {
    values.iter().zip(values.iter().skip(1)).map(|(a, b)| zigzag(b.wrapping_sub(*a) as i64))
}

fn encode_raw(values: &[u64], width: u8, out: &mut Vec<u8>) {
    out.reserve(values.len() * usize::from(width));
    match width {
        1 => out.extend(values.iter().map(|&v| v as u8)),
        2 => values.iter().for_each(|&v| out.extend_from_slice(&(v as u16).to_le_bytes())),
        4 => values.iter().for_each(|&v| out.extend_from_slice(&(v as u32).to_le_bytes())),
        _ => values.iter().for_each(|&v| out.extend_from_slice(&v.to_le_bytes())),
    }
}

fn encode_rle(values: &[u64], width: u8, out: &mut Vec<u8>) {
    let runs = values.chunk_by(|a, b| a == b);
    put_uvarint(out, runs.clone().count() as u64);
    for run in runs {
        put_value(out, run.first().copied().unwrap_or(0), width);
        put_uvarint(out, run.len() as u64);
    }
}

/// The RLE payload of `n` equal values.
pub(crate) fn encode_run(value: u64, n: u64, width: u8, out: &mut Vec<u8>) {
    put_uvarint(out, 1);
    put_value(out, value, width);
    put_uvarint(out, n);
}

fn encode_dict(values: &[u64], width: u8, bits: u32, out: &mut Vec<u8>) {
    let mut codes = Vec::with_capacity(values.len());
    let mut dictionary = Vec::new();
    let mut known: HashMap<u64, u64, FastHash> = HashMap::default();
    for &value in values {
        codes.push(*known.entry(value).or_insert_with(|| {
            dictionary.push(value);
            dictionary.len() as u64 - 1
        }));
    }
    put_uvarint(out, dictionary.len() as u64);
    dictionary.iter().for_each(|&value| put_value(out, value, width));
    let needed = width_of((dictionary.len() as u64).saturating_sub(1));
    // One value needs no codes, however many bits the caller likes.
    let bits = if needed == 0 { 0 } else { bits.max(needed) };
    out.push(bits as u8);
    pack(codes.into_iter(), bits, out);
}

fn encode_for(values: &[u64], bits: u32, out: &mut Vec<u8>) -> u64 {
    let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else { return 0 };
    let bits = bits.max(width_of(max - min));
    out.push(bits as u8);
    pack(values.iter().map(|v| v - min), bits, out);
    min
}

fn encode_delta_for(values: &[u64], bits: u32, out: &mut Vec<u8>) -> u64 {
    let Some(&first) = values.first() else { return 0 };
    let (min, max) = deltas(values).fold((u64::MAX, 0), |(min, max), z| (min.min(z), max.max(z)));
    let min = min.min(max);
    let bits = bits.max(width_of(max - min));
    out.push(bits as u8);
    put_uvarint(out, min);
    pack(deltas(values).map(|z| z - min), bits, out);
    first
}

/// Multiplies: the values of a page are no secret and come from files that are read in full anyway, so a dictionary
/// needs no keyed hash. An attacker gains a slow page of bounded length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FastHash;

impl std::hash::BuildHasher for FastHash {
    type Hasher = Multiply;
    fn build_hasher(&self) -> Multiply {
        Multiply(0)
    }
}

#[derive(Debug)]
pub(crate) struct Multiply(u64);

impl std::hash::Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }
}
