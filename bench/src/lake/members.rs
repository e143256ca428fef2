//! Membership in other forms than the lake's, to know what its form costs. Both hold every distinct set of datasets once,
//! as the lake does, and are looked up in memory.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

/// Distinct sets, the most frequent first, and which of them each slot has.
pub struct Sets {
    sets: Vec<Vec<u32>>,
    of: Vec<usize>,
}

impl Sets {
    /// From the datasets of each slot, in slot order.
    pub fn new(slots: &[Vec<u32>]) -> Self {
        let mut often: HashMap<&Vec<u32>, u64> = HashMap::new();
        for set in slots {
            *often.entry(set).or_default() += 1;
        }
        let mut order: Vec<_> = often.into_iter().collect();
        order.sort_unstable_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        let numbers: HashMap<&Vec<u32>, usize> = order.iter().enumerate().map(|(i, (set, _))| (*set, i)).collect();
        let of = slots.iter().map(|set| numbers[set]).collect();
        Self { sets: order.into_iter().map(|(set, _)| set.clone()).collect(), of }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Bytes of all sets as portable Roaring bitmaps of small ids: 16 and two for each.
    fn bitmaps(&self) -> u64 {
        self.sets.iter().map(|set| 16 + 2 * set.len() as u64).sum()
    }

    /// A bit-packed number for each slot: bytes, and nanoseconds a lookup.
    pub fn numbered(&self) -> (u64, f64) {
        let width = usize::BITS as usize - (self.len() - 1).leading_zeros() as usize;
        let mut packed = vec![0u8; (self.of.len() * width).div_ceil(8) + 8];
        for (slot, number) in self.of.iter().enumerate() {
            for bit in 0..width {
                let at = slot * width + bit;
                packed[at / 8] |= (number >> bit & 1) as u8 * (1 << (at % 8));
            }
        }
        let nanos = self.time(|slot| {
            let at = slot * width;
            let word = u64::from_le_bytes(packed[at / 8..at / 8 + 8].try_into().unwrap_or_default());
            (word >> (at % 8)) as usize & ((1 << width) - 1)
        });
        (checked(24 + self.bitmaps() + packed.len() as u64), nanos)
    }

    /// A uvarint in front of each slot's record in `counts.bin`, whose blocks of 64 slots are found by their table: bytes
    /// that adds, and nanoseconds a lookup that passes over the records before it. `counts` is each slot's record.
    pub fn in_counts(&self, counts: &[Vec<u8>]) -> (u64, f64) {
        let (mut bytes, mut blocks, mut added) = (Vec::new(), Vec::new(), 0);
        for (slot, (number, record)) in self.of.iter().zip(counts).enumerate() {
            if slot % 64 == 0 {
                blocks.push(bytes.len());
            }
            let before = bytes.len();
            let mut n = *number;
            while n >= 0x80 {
                bytes.push(n as u8 | 0x80);
                n >>= 7;
            }
            bytes.push(n as u8);
            added += (bytes.len() - before) as u64;
            bytes.push(record.len() as u8);
            bytes.extend_from_slice(record);
        }
        let nanos = self.time(|slot| {
            let mut at = blocks[slot / 64];
            for place in 0..=slot % 64 {
                let (mut number, mut shift) = (0, 0);
                loop {
                    let byte = bytes[at];
                    number |= usize::from(byte & 0x7f) << shift;
                    (at, shift) = (at + 1, shift + 7);
                    if byte < 0x80 {
                        break;
                    }
                }
                if place == slot % 64 {
                    return number;
                }
                at += 1 + usize::from(bytes[at]);
            }
            usize::MAX
        });
        (checked(self.bitmaps() + added), nanos)
    }

    /// Nanoseconds a lookup, slots in no order; every one must be right.
    fn time(&self, look: impl Fn(usize) -> usize) -> f64 {
        let slots: Vec<usize> = (0..self.of.len()).map(|n| n.wrapping_mul(0x9e37_79b9) % self.of.len()).collect();
        let began = Instant::now();
        let right = slots.iter().filter(|slot| black_box(&self.sets[look(**slot)]) == &self.sets[self.of[**slot]]);
        assert_eq!(right.count(), slots.len(), "a lookup went wrong");
        began.elapsed().as_nanos() as f64 / slots.len() as f64
    }
}

/// With a checksum for each page, as every file of a segment has it.
fn checked(bytes: u64) -> u64 {
    bytes + 4 * bytes.div_ceil(4096) + 16
}
