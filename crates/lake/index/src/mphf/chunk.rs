//! One array: built by peeling, asked by four lookups.
//!
//! Each name is an edge of a 4-uniform hypergraph over the array's places. A place with a single edge can take whatever
//! that name still needs, so edges are peeled off one such place at a time and the array is filled in reverse. Places
//! of one name lie in consecutive segments ("binary fuse"), which lets graphs with 7 to 12 % slack peel. A seed that
//! does not peel is followed by the next; names that share all 128 bits never peel, and then the chunk has no array.

use super::{NameHash, SIGNATURE_BITS};

/// Places of a name.
const ARITY: usize = 4;
/// Seeds tried before a chunk goes without an array. One in a few fails by chance; sixty in a row do not.
const SEEDS: u8 = 60;
/// Padding that lets a reader take eight bytes at any value.
const PAD: usize = 8;

/// What a reader must know of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub seed: u8,
    pub offset_bits: u8,
    pub segment_log2: u8,
    pub segments: u32,
}

impl Shape {
    /// Bits of a value.
    fn width(&self) -> u64 {
        u64::from(SIGNATURE_BITS) + u64::from(self.offset_bits)
    }

    /// Number of values.
    fn places(&self) -> u64 {
        (u64::from(self.segments) + ARITY as u64 - 1) << self.segment_log2
    }

    /// Bytes of the array.
    pub fn len_bytes(&self) -> u64 {
        (self.places() * self.width()).div_ceil(8) + PAD as u64
    }

    /// Whether the numbers are ones a writer writes.
    pub fn is_sound(&self) -> bool {
        self.offset_bits <= 16 && self.segment_log2 <= 16 && self.segments >= 1 && self.segments < 1 << 28
    }

    fn places_of(&self, hash: u128) -> [u64; ARITY] {
        let (hi, lo) = halves(hash);
        let range = u64::from(self.segments) << self.segment_log2;
        let first = halves(u128::from(hi) * u128::from(range)).0;
        let (length, mask) = (1u64 << self.segment_log2, (1u64 << self.segment_log2) - 1);
        [
            first,
            (first + length) ^ (lo & mask),
            (first + 2 * length) ^ (lo >> 16 & mask),
            (first + 3 * length) ^ (lo >> 32 & mask),
        ]
    }

    /// Segment sizes that peel: lengths and slack as published for 4-wise binary fuse graphs.
    fn for_names(names: usize, offset_bits: u8, attempt: u8) -> Self {
        let n = (names.max(2)) as f64;
        let segment_log2 = (n.ln() / 2.91f64.ln() - 0.5).floor().clamp(2.0, 16.0) as u8;
        // More slack after every eight failures: small graphs are luckless.
        let slack = (0.77 + 0.305 * 600_000f64.ln() / n.ln()).max(1.075) + f64::from(attempt / 8) * 0.1;
        let length = 1u64 << segment_log2;
        let places = (n * slack).ceil() as u64;
        let segments = places.div_ceil(length).saturating_sub(ARITY as u64 - 1).max(1);
        Self { seed: attempt, offset_bits, segment_log2, segments: u32::try_from(segments).unwrap_or(u32::MAX) }
    }
}

fn halves(hash: u128) -> (u64, u64) {
    ((hash >> 64) as u64, hash as u64)
}

/// The seed with a number; numbers are small, seeds should differ in many bits.
pub(super) fn seed(number: u8) -> u64 {
    u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn signature(hash: u128) -> u32 {
    (halves(hash).1 >> 48) as u32
}

/// The line number `hash` may have within its block; `None` for a stranger.
pub(super) fn get(shape: &Shape, array: &[u8], hash: u128) -> Option<u32> {
    let mut value = 0u64;
    for place in shape.places_of(hash) {
        let bit = place * shape.width();
        let at = usize::try_from(bit / 8).ok()?;
        let word = array.get(at..)?.first_chunk::<8>()?;
        value ^= u64::from_le_bytes(*word) >> (bit % 8);
    }
    let value = (value & ((1 << shape.width()) - 1)) as u32;
    (value & 0xffff == signature(hash)).then_some(value >> SIGNATURE_BITS)
}

/// Builds the array over names and their line numbers within blocks; `None` if no seed works.
pub(super) fn build(names: &Names, hash: NameHash) -> Option<(Shape, Vec<u8>)> {
    let offset_bits = (32 - names.offsets.iter().max().copied().unwrap_or(0).leading_zeros()) as u8;
    (0..SEEDS).find_map(|attempt| {
        let shape = Shape::for_names(names.len(), offset_bits, attempt);
        let hashes: Vec<u128> = names.iter().map(|name| hash(name, seed(attempt))).collect();
        let order = peel(&shape, &hashes)?;
        Some((shape, fill(&shape, &hashes, &names.offsets, &order)))
    })
}

/// Names of a chunk, one after another, and their line numbers within their blocks.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: Vec<u8>,
    ends: Vec<u32>,
    offsets: Vec<u32>,
}

impl Names {
    pub fn push(&mut self, name: &[u8], offset: u32) {
        self.text.extend_from_slice(name);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.offsets.push(offset);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.offsets.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.text.get(start as usize..*end as usize).unwrap_or_default())
    }
}

/// A place and how many unpeeled names still touch it.
#[derive(Debug, Clone, Copy, Default)]
struct Vertex {
    degree: u32,
    /// Xor of the names that touch it: the name itself once the degree is one.
    names: u32,
}

/// The order in which names peel, each with the place it peels from; `None` when some never do.
fn peel(shape: &Shape, hashes: &[u128]) -> Option<Vec<(u32, u64)>> {
    let mut graph = vec![Vertex::default(); usize::try_from(shape.places()).ok()?];
    for (name, hash) in (0u32..).zip(hashes) {
        for place in shape.places_of(*hash) {
            let vertex = graph.get_mut(place as usize)?;
            vertex.degree += 1;
            vertex.names ^= name;
        }
    }
    let mut free: Vec<u64> = (0u64..).zip(&graph).filter(|(_, v)| v.degree == 1).map(|(place, _)| place).collect();
    let mut order = Vec::with_capacity(hashes.len());
    while let Some(place) = free.pop() {
        let Vertex { degree: 1, names: name } = *graph.get(place as usize)? else { continue };
        order.push((name, place));
        for touched in shape.places_of(*hashes.get(name as usize)?) {
            let vertex = graph.get_mut(touched as usize)?;
            vertex.degree -= 1;
            vertex.names ^= name;
            if vertex.degree == 1 {
                free.push(touched);
            }
        }
    }
    (order.len() == hashes.len()).then_some(order)
}

fn fill(shape: &Shape, hashes: &[u128], offsets: &[u32], order: &[(u32, u64)]) -> Vec<u8> {
    let mut values = vec![0u32; shape.places() as usize];
    for (name, place) in order.iter().rev() {
        let hash = hashes.get(*name as usize).copied().unwrap_or_default();
        let offset = offsets.get(*name as usize).copied().unwrap_or_default();
        let others = shape.places_of(hash).into_iter().filter(|p| p != place);
        let taken = others.fold(0, |x, p| x ^ values.get(p as usize).copied().unwrap_or_default());
        if let Some(value) = values.get_mut(*place as usize) {
            *value = taken ^ (offset << SIGNATURE_BITS | signature(hash));
        }
    }
    pack(&values, shape.width())
}

/// Values of `width` bits each, low bits first, and the padding.
fn pack(values: &[u32], width: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut pending, mut bits) = (0u64, 0);
    for value in values {
        pending |= u64::from(*value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(pending as u8);
    }
    out.extend_from_slice(&[0; PAD]);
    out
}
