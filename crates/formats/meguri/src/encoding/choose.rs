//! Which encoding a page gets.
//!
//! The reference's way: the column's nominal encoding if its page is strictly shorter than the RAW one, both after the
//! block codec. Ours: the shortest of all that are worth a try, stored without the block codec if that makes it no
//! longer. Trying costs time, so a column keeps its last winner and tries again every [`AGAIN`] pages; the choice is a
//! function of the column's pages so far, hence the same on every run.

use super::bits::{packed_len, width_of};
use super::{Encoding, deltas, encode};
use crate::codec::{Codec, Packer};
use crate::error::Result;
use trawl_io::varint::uvarint_len;

/// Pages after which a column is looked at afresh.
const AGAIN: u32 = 8;

/// An encoding and the bits it packs to (0: as few as it needs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub encoding: Encoding,
    pub bits: u32,
}

/// A page's payload as it will be stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub encoding: Encoding,
    pub codec: Codec,
    pub base: u64,
    pub uncompressed_len: usize,
    pub bytes: Vec<u8>,
}

/// Chooses for one column.
#[derive(Debug, Clone)]
pub(crate) enum Chooser {
    /// Between RAW and this one.
    Nominal(Encoding),
    /// Among all; `differences` says whether a base may be used (see [`crate::page`]: a base is only checked against a
    /// zone map, so a column without one must not depend on it).
    Best { differences: bool, last: Option<Choice>, pages: u32 },
}

impl Chooser {
    pub fn best(differences: bool) -> Self {
        Chooser::Best { differences, last: None, pages: 0 }
    }

    /// Encodes one page.
    pub fn page(&mut self, values: &[u64], width: u8, packer: &mut Packer) -> Result<Stored> {
        match self {
            Chooser::Nominal(nominal) => {
                let raw = stored(Choice { encoding: Encoding::Raw, bits: 0 }, values, width, packer, false)?;
                if *nominal == Encoding::Raw {
                    return Ok(raw);
                }
                let other = stored(Choice { encoding: *nominal, bits: 0 }, values, width, packer, false)?;
                Ok(if other.bytes.len() < raw.bytes.len() { other } else { raw })
            }
            Chooser::Best { differences, last, pages } => {
                *pages = pages.wrapping_add(1);
                let shape = Shape::of(values, width);
                if shape.runs <= 1 {
                    let rle = Choice { encoding: Encoding::Rle, bits: 0 };
                    return stored(rle, values, width, packer, true);
                }
                let again = *pages % AGAIN == 1;
                let worth = match last {
                    Some(choice) if !again && shape.allows(*choice, *differences) => vec![*choice],
                    _ => shape.worth_trying(*differences),
                };
                let mut best: Option<(Choice, Stored)> = None;
                for choice in worth {
                    let other = stored(choice, values, width, packer, true)?;
                    if best.as_ref().is_none_or(|(_, best)| other.bytes.len() < best.bytes.len()) {
                        best = Some((choice, other));
                    }
                }
                match best {
                    Some((choice, stored)) => {
                        *last = Some(choice);
                        Ok(stored)
                    }
                    None => stored(Choice { encoding: Encoding::Raw, bits: 0 }, values, width, packer, true),
                }
            }
        }
    }
}

/// Encodes and compresses; `may_stay` lets the payload stay as it is if compressing does not shorten it.
fn stored(choice: Choice, values: &[u64], width: u8, packer: &mut Packer, may_stay: bool) -> Result<Stored> {
    let Choice { encoding, bits } = choice;
    let mut payload = Vec::new();
    let base = encode(encoding, values, width, bits, &mut payload);
    let uncompressed_len = payload.len();
    let (codec, bytes) = if may_stay { packer.pack_or_keep(payload)? } else { packer.pack(payload)? };
    Ok(Stored { encoding, codec, base, uncompressed_len, bytes })
}

/// What decides which encodings are worth a try.
#[derive(Debug)]
struct Shape {
    n: usize,
    width: u8,
    min: u64,
    max: u64,
    runs: usize,
    /// Smallest and largest zigzag difference, and the bytes of all of them as varints.
    delta_min: u64,
    delta_max: u64,
    delta_bytes: usize,
    /// Distinct values; `None` if there are more than a dictionary is good for.
    distinct: Option<usize>,
}

/// Distinct values are counted in a table of this many slots.
const SLOTS: usize = 1 << 13;

impl Shape {
    fn of(values: &[u64], width: u8) -> Shape {
        let (mut min, mut max) = (u64::MAX, 0);
        values.iter().for_each(|&v| (min, max) = (min.min(v), max.max(v)));
        let (mut delta_min, mut delta_max, mut delta_bytes, mut runs) =
            (u64::MAX, 0, 0, usize::from(!values.is_empty()));
        for z in deltas(values) {
            (delta_min, delta_max) = (delta_min.min(z), delta_max.max(z));
            delta_bytes += uvarint_len(z);
            runs += usize::from(z != 0);
        }
        let distinct = if runs <= 1 { Some(runs) } else { distinct(values) };
        Shape {
            n: values.len(),
            width,
            min,
            max,
            runs,
            delta_min: delta_min.min(delta_max),
            delta_max,
            delta_bytes,
            distinct,
        }
    }

    fn for_bits(&self) -> u32 {
        width_of(self.max - self.min)
    }

    fn delta_bits(&self) -> u32 {
        width_of(self.delta_max - self.delta_min)
    }

    fn dict_bits(&self) -> Option<u32> {
        self.distinct.map(|d| width_of(d.saturating_sub(1) as u64))
    }

    /// Whether a choice made for an earlier page can be this one's.
    fn allows(&self, choice: Choice, differences: bool) -> bool {
        match choice.encoding {
            Encoding::Dict => self.distinct.is_some(),
            Encoding::Raw | Encoding::Rle => true,
            Encoding::Delta | Encoding::For | Encoding::DeltaFor => differences,
        }
    }

    /// Those whose payload could come out shortest, with the smallest size estimate first. Random values (hashes) are
    /// told apart here, so that nothing is compressed in vain.
    fn worth_trying(&self, differences: bool) -> Vec<Choice> {
        use Encoding::{Delta, DeltaFor, Dict, For, Raw, Rle};
        let raw = self.n * usize::from(self.width);
        let mut all = vec![(raw, Choice { encoding: Raw, bits: 0 })];
        all.push((self.runs * (usize::from(self.width) + 1), Choice { encoding: Rle, bits: 0 }));
        let mut packed = |encoding, tight: u32, extra: usize| {
            all.push((extra + packed_len(self.n, tight), Choice { encoding, bits: 0 }));
            let whole = tight.next_multiple_of(8);
            if whole != tight && whole <= 32 {
                // Compresses better than its size says.
                all.push((extra + packed_len(self.n, tight), Choice { encoding, bits: whole }));
            }
        };
        if let (Some(bits), Some(distinct)) = (self.dict_bits(), self.distinct) {
            packed(Dict, bits, distinct * usize::from(self.width));
        }
        if differences {
            packed(For, self.for_bits(), 1);
            all.push((self.delta_bytes, Choice { encoding: Delta, bits: 0 }));
            all.push((1 + packed_len(self.n, self.delta_bits()), Choice { encoding: DeltaFor, bits: 0 }));
        }
        let least = all.iter().map(|(size, _)| *size).min().unwrap_or(raw);
        all.sort_by_key(|(size, _)| *size);
        // The block codec rarely makes up for more than a factor of three; RAW stays, its bytes have the plainest pattern.
        let worth = |size: usize, choice: Choice| {
            size <= least.saturating_mul(3) || choice.encoding == Raw && size <= least * 8
        };
        all.into_iter().filter(|&(size, choice)| worth(size, choice)).map(|(_, choice)| choice).collect()
    }
}

/// How many distinct values there are, if few enough for a dictionary to pay.
fn distinct(values: &[u64]) -> Option<usize> {
    let most = (values.len() / 2).clamp(16, SLOTS / 2);
    let mut slots: Vec<Option<u64>> = vec![None; SLOTS];
    let mut count = 0;
    for &value in values {
        let mut slot = (value.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as usize;
        loop {
            match slots.get_mut(slot % SLOTS) {
                Some(Some(known)) if *known == value => break,
                Some(empty @ None) => {
                    *empty = Some(value);
                    count += 1;
                    if count > most {
                        return None;
                    }
                    break;
                }
                _ => slot += 1,
            }
        }
    }
    Some(count)
}
