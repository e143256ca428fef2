//! Which encoding a page gets.
//!
//! The reference's way: the column's nominal encoding if its page is strictly shorter than the RAW one, both after the
//! block codec. Ours: the shortest of all that are worth a try, stored without the block codec if that makes it no
//! longer. Trying costs time, so it is done on a sample at the fastest level, and a column keeps its winner for [`AGAIN`]
//! pages; the choice is a function of the column's pages so far, hence the same on every run.

use super::bits::{packed_len, width_of};
use super::{Encoding, deltas, encode};
use crate::codec::{Codec, Packer};
use crate::error::Result;
use trawl_io::varint::uvarint_len;

/// Pages after which a column is looked at afresh.
const AGAIN: u32 = 8;
/// Values that candidates are tried on.
const SAMPLE: usize = 2048;

/// An encoding and the bits it packs to (0: as few as it needs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub encoding: Encoding,
    pub bits: u32,
}

impl Choice {
    const RAW: Choice = Choice { encoding: Encoding::Raw, bits: 0 };
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
    /// Among all.
    Best(Best),
}

/// What a column remembers.
#[derive(Debug, Clone)]
pub(crate) struct Best {
    /// Whether a base may be used. Only a zone map checks a base (see [`crate::page`]), so a column without one must
    /// not depend on it.
    differences: bool,
    /// Pages for which a winner stays.
    again: u32,
    /// Values that candidates are tried on.
    sample: usize,
    /// The winner, payload bytes a value when it won, and pages since then.
    last: Option<(Choice, f64, u32)>,
}

impl Chooser {
    /// Among all encodings, or all that need no base. A `steady` column's pages resemble each other. `patient` tries every
    /// page whole at its real level.
    pub fn best(differences: bool, steady: bool, patient: bool) -> Self {
        let again = if steady && !patient { AGAIN } else { 1 };
        Chooser::Best(Best { differences, again, sample: if patient { usize::MAX } else { SAMPLE }, last: None })
    }

    /// Encodes one page.
    pub fn page(&mut self, values: &[u64], width: u8, packer: &mut Packer) -> Result<Stored> {
        match self {
            Chooser::Nominal(nominal) => {
                let raw = stored(Choice::RAW, values, width, packer, false)?;
                if *nominal == Encoding::Raw {
                    return Ok(raw);
                }
                let other = stored(Choice { encoding: *nominal, bits: 0 }, values, width, packer, false)?;
                Ok(if other.bytes.len() < raw.bytes.len() { other } else { raw })
            }
            Chooser::Best(best) => {
                let choice = best.choose(values, width, packer)?;
                stored(choice, values, width, packer, true)
            }
        }
    }
}

impl Best {
    fn choose(&mut self, values: &[u64], width: u8, packer: &mut Packer) -> Result<Choice> {
        let shape = Shape { values, width };
        if values.windows(2).all(|pair| matches!(pair, [a, b] if a == b)) {
            return Ok(Choice { encoding: Encoding::Rle, bits: 0 });
        }
        let per_value = |size: usize| size as f64 / values.len() as f64;
        if let Some((choice, before, pages)) = &mut self.last {
            *pages += 1;
            // A page on which the winner does badly is looked at afresh too.
            if *pages < self.again && per_value(shape.size(*choice)) <= *before * 1.25 {
                return Ok(*choice);
            }
        }
        let candidates = shape.candidates(self.differences);
        let choice = shortest(&candidates, values, width, self.sample, packer)?;
        self.last = Some((choice, per_value(shape.size(choice)), 0));
        Ok(choice)
    }
}

/// The choice that makes the page shortest, as far as a sample tells; of equals the first.
fn shortest(
    candidates: &[(usize, Choice)],
    values: &[u64],
    width: u8,
    sample: usize,
    packer: &mut Packer,
) -> Result<Choice> {
    let least = candidates.iter().map(|(size, _)| *size).min().unwrap_or(0);
    let whole = sample >= values.len();
    let sample = values.get(..sample.min(values.len())).unwrap_or(values);
    let mut best = (f64::MAX, Choice::RAW);
    let mut payload = Vec::new();
    for &(size, choice) in candidates {
        // The block codec rarely makes up for more than a factor of three; RAW has the plainest pattern.
        let most = if choice == Choice::RAW { 8 } else { 3 };
        if size > least.saturating_mul(most) {
            continue;
        }
        payload.clear();
        encode(choice.encoding, sample, width, choice.bits, &mut payload);
        let packed = packer.trial(&payload, whole)?.min(payload.len());
        let estimate = size as f64 * packed as f64 / payload.len().max(1) as f64;
        if estimate < best.0 {
            best = (estimate, choice);
        }
    }
    Ok(best.1)
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

/// What decides which encodings are worth a try. Nothing is counted before it is asked for: most pages go to the last
/// winner.
#[derive(Debug)]
struct Shape<'a> {
    values: &'a [u64],
    width: u8,
}

/// Distinct values are counted in a table of this many slots.
const SLOTS: usize = 1 << 13;

impl Shape<'_> {
    /// Payload bytes of a choice; of a dictionary those of its codes alone if it was chosen before.
    fn size(&self, choice: Choice) -> usize {
        let n = self.values.len();
        let bits = |tight: u32| packed_len(n, choice.bits.max(tight));
        match choice.encoding {
            Encoding::Raw => n * usize::from(self.width),
            Encoding::Rle => self.values.chunk_by(|a, b| a == b).count() * (usize::from(self.width) + 1),
            Encoding::Dict => 0,
            Encoding::For => 1 + bits(width_of(self.range())),
            Encoding::Delta => deltas(self.values).map(uvarint_len).sum(),
            Encoding::DeltaFor => 1 + bits(self.delta_bits()),
        }
    }

    /// Largest less smallest value.
    fn range(&self) -> u64 {
        let (min, max) = self.values.iter().fold((u64::MAX, 0), |(min, max), &v| (min.min(v), max.max(v)));
        max.saturating_sub(min)
    }

    fn delta_bits(&self) -> u32 {
        let (min, max) = deltas(self.values).fold((u64::MAX, 0u64), |(min, max), z| (min.min(z), max.max(z)));
        width_of(max.saturating_sub(min))
    }

    /// Every encoding that is possible, with the bytes of its payload.
    fn candidates(&self, differences: bool) -> Vec<(usize, Choice)> {
        use Encoding::{Delta, DeltaFor, Dict, For, Rle};
        let n = self.values.len();
        let mut all = Vec::new();
        let plain = |encoding| Choice { encoding, bits: 0 };
        all.extend([Choice::RAW, plain(Rle)].map(|choice| (self.size(choice), choice)));
        // Whole bytes compress better than they look.
        let whole = |tight: u32| Some(tight.next_multiple_of(8)).filter(|whole| *whole != tight && *whole <= 32);
        if let Some(distinct) = distinct(self.values) {
            let (tight, entries) = (width_of(distinct.saturating_sub(1) as u64), distinct * usize::from(self.width));
            let sizes = [Some(0), whole(tight)].into_iter().flatten();
            all.extend(sizes.map(|bits| (entries + packed_len(n, bits.max(tight)), Choice { encoding: Dict, bits })));
        }
        if differences {
            let sizes = [Some(0), whole(width_of(self.range()))].into_iter().flatten();
            let choices = sizes.map(|bits| Choice { encoding: For, bits }).chain([plain(Delta), plain(DeltaFor)]);
            all.extend(choices.map(|choice| (self.size(choice), choice)));
        }
        all
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
