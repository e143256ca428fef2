//! The ribbon filter: a linear system over bits, each key an equation of 64 neighbouring slots.
//!
//! A key has a start slot, 64 coefficients and r bits of fingerprint. The filter holds a value of r bits a slot such that,
//! for every key, the XOR of the values its coefficients choose is its fingerprint. A stranger's fits by chance, one in
//! 2^r.
//!
//! *Building within a memory budget.* Equations are taken in order of their start slots. Then no later equation touches
//! a slot before the current start, so eliminated rows can leave memory for a spool, and solving reads them back from
//! the end. The order does not change the solution: the pivots of an echelon form belong to the row space, and free
//! slots are 0. Keys are not sorted; one scan deals their equations out to ranges of start slots, each of which waits in a
//! spool of its own and fits the budget. (One scan a range, without spools, read the keys of 10 million rows 36 times.)

use super::{Head, KIND_RIBBON};
use crate::encoding::bits::packed_len;
use crate::error::{Error, Malformed, Result};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{Fs, ReadAt, Spool, SpoolWriter};
use trawl_url::key::UrlKey;

/// Bits a slot unless told otherwise: one stranger in 128 passes.
pub const DEFAULT_BITS: u8 = 7;
const BAND: u64 = 64;
const SEEDS: u32 = 64;
const SIZES: u32 = 4;
/// Bytes of an eliminated row in the spool: coefficients and fingerprint.
const ROW_BYTES: usize = 10;
/// Memory of one equation that waits for its turn, or of its row and the free ones beside it.
const EQUATION_BYTES: u64 = 24;
/// Bytes of an equation in the spool of its range: start, coefficients and fingerprint.
const DEALT_BYTES: usize = 18;
/// Ranges that one scan deals out to: each may have a file open. More of them take more scans.
const DEALT: u64 = 64;

/// A ribbon filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ribbon {
    r: u8,
    seed: u32,
    keys: u64,
    slots: u64,
    packed: Bytes,
}

/// Calls back with every key of a file, any number of times.
pub(crate) trait KeyScan {
    fn scan(&mut self, each: &mut dyn FnMut(UrlKey)) -> Result<()>;
}

impl<F: FnMut(&mut dyn FnMut(UrlKey)) -> Result<()>> KeyScan for F {
    fn scan(&mut self, each: &mut dyn FnMut(UrlKey)) -> Result<()> {
        self(each)
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x = (x ^ x >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ x >> 33
}

/// What a key asks of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Equation {
    pub start: u64,
    /// Bit j stands for slot `start + j`; bit 0 is set.
    pub coefficients: u64,
    pub fingerprint: u16,
}

pub(super) fn equation(key: UrlKey, seed: u32, slots: u64, r: u8) -> Equation {
    let s = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1656_67B1_9E37_79F9);
    let a = mix(key.host ^ s ^ key.path.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let b = mix(key.path ^ s.wrapping_mul(0xC2B2_AE3D_27D4_EB4F) ^ key.host.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    // There are at least 64 slots, and r is 1 to 16.
    let start = a % slots.saturating_sub(BAND - 1).max(1);
    let fingerprint = (mix(a ^ b << 1) >> (64 - u32::from(r.clamp(1, 16)))) as u16;
    Equation { start, coefficients: b | 1, fingerprint }
}

impl Equation {
    fn encode(&self) -> [u8; DEALT_BYTES] {
        let mut bytes = [0; DEALT_BYTES];
        let parts = self.start.to_le_bytes().into_iter().chain(self.coefficients.to_le_bytes());
        bytes.iter_mut().zip(parts.chain(self.fingerprint.to_le_bytes())).for_each(|(to, from)| *to = from);
        bytes
    }

    fn decode(bytes: &[u8; DEALT_BYTES]) -> Equation {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        let [i, j, k, l, m, n, o, p, q, r] = rest;
        Equation {
            start: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            coefficients: u64::from_le_bytes([i, j, k, l, m, n, o, p]),
            fingerprint: u16::from_le_bytes([q, r]),
        }
    }
}

/// Reads the equations of a range back.
fn read_dealt(dealt: &Spool, equations: &mut Vec<Equation>) -> Result<()> {
    const STEP: u64 = DEALT_BYTES as u64 * 4096;
    let mut at = 0;
    while at < dealt.len() {
        let end = dealt.len().min(at + STEP);
        let bytes = dealt.read_range(at..end)?;
        equations.extend(bytes.as_chunks::<DEALT_BYTES>().0.iter().map(Equation::decode));
        at = end;
    }
    Ok(())
}

impl Ribbon {
    /// Builds a filter of `r` (1 to 16) bits a slot from keys in memory; repeats do no harm.
    pub fn build(keys: &[UrlKey], r: u8) -> Result<Ribbon> {
        let mut scan = |each: &mut dyn FnMut(UrlKey)| {
            keys.iter().for_each(|key| each(*key));
            Ok(())
        };
        let fs: Arc<dyn Fs> = Arc::new(trawl_io::RealFs);
        build(&mut scan, keys.len() as u64, r, usize::MAX, &fs, Path::new("."))
    }

    /// Keys it was made of.
    pub fn key_count(&self) -> u64 {
        self.keys
    }

    /// Slots of [`Ribbon::bits_per_slot`] bits.
    pub fn slot_count(&self) -> u64 {
        self.slots
    }

    /// Bits a slot.
    pub fn bits_per_slot(&self) -> u8 {
        self.r
    }

    /// Whether the key may be among those it was made of.
    pub fn may_contain(&self, key: UrlKey) -> bool {
        let Equation { start, mut coefficients, fingerprint } = equation(key, self.seed, self.slots, self.r);
        let mut sum = 0;
        while coefficients != 0 {
            sum ^= self.slot(start + u64::from(coefficients.trailing_zeros()));
            coefficients &= coefficients - 1;
        }
        sum == fingerprint
    }

    /// The value of a slot.
    fn slot(&self, slot: u64) -> u16 {
        let bit = slot * u64::from(self.r);
        // A value of at most 16 bits at any shift lies in three bytes.
        let byte = |i: u64| {
            let place = usize::try_from(bit / 8 + i).unwrap_or(usize::MAX);
            self.packed.get(place).copied().map_or(0, u32::from)
        };
        let word = byte(0) | byte(1) << 8 | byte(2) << 16;
        (word >> (bit % 8)) as u16 & (u16::MAX >> (16 - u32::from(self.r)))
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.packed.len());
        let counts = [self.keys, self.slots];
        Head { kind: KIND_RIBBON, parameter: self.r, word: self.seed, counts }.encode(&mut out);
        out.extend_from_slice(&self.packed);
        out
    }

    pub(super) fn decode(head: &Head, packed: Bytes) -> Result<Ribbon, Malformed> {
        let [keys, slots] = head.counts;
        let r = head.parameter;
        if !(1..=16).contains(&r) {
            return Err(Malformed::new("1 to 16 bits a slot", r));
        }
        let len = u128::from(slots) * u128::from(r);
        if slots < BAND || len.div_ceil(8) != packed.len() as u128 {
            return Err(Malformed::new(
                "as many bits as slots need",
                format!("{} bytes for {slots} slots", packed.len()),
            ));
        }
        Ok(Ribbon { r, seed: head.word, keys, slots, packed })
    }
}

/// Builds a filter of about `n` keys within `memory` bytes; what does not fit goes to a spool in `dir`.
pub(crate) fn build(
    keys: &mut dyn KeyScan,
    n: u64,
    r: u8,
    memory: usize,
    fs: &Arc<dyn Fs>,
    dir: &Path,
) -> Result<Ribbon> {
    // ceil(n / 0.90) as binary64 has it, like every other implementation of the format.
    let mut slots = ((n as f64 / 0.90).ceil() as u64).max(128);
    for _ in 0..SIZES {
        for seed in 0..SEEDS {
            let mut build = Build::new(seed, slots, r, memory, fs, dir);
            if build.eliminate(keys, n)? {
                return build.solve(n);
            }
        }
        slots += slots / 20 + BAND;
    }
    Err(Error::Refused(format!("no ribbon filter of {n} keys could be built")))
}

/// One attempt.
struct Build {
    seed: u32,
    slots: u64,
    r: u8,
    /// Equations held at once.
    most: u64,
    /// Memory of each range's spool.
    buffer: usize,
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// Eliminated rows of slots before `base`, in order.
    spool: SpoolWriter,
    /// Rows from slot `base` on: coefficients (bit 0 is the slot itself; 0 for a free one) and fingerprint.
    rows: VecDeque<(u64, u16)>,
    base: u64,
}

impl Build {
    fn new(seed: u32, slots: u64, r: u8, memory: usize, fs: &Arc<dyn Fs>, dir: &Path) -> Self {
        // The rows that left have a fourth, the ranges of a scan have another, the range at work has half.
        let (half, fourth) = (memory / 2, memory / 4);
        let spool = SpoolWriter::new(fs.clone(), dir, fourth);
        let most = (half as u64 / EQUATION_BYTES).max(1024);
        let buffer = (fourth / DEALT as usize).clamp(DEALT_BYTES, 256 << 10);
        let (fs, dir) = (fs.clone(), dir.to_owned());
        Build { seed, slots, r, most, buffer, fs, dir, spool, rows: VecDeque::new(), base: 0 }
    }

    /// Brings all equations into echelon form; `false` if two of them contradict each other.
    fn eliminate(&mut self, keys: &mut dyn KeyScan, n: u64) -> Result<bool> {
        let passes = n.div_ceil(self.most).max(1);
        let (seed, slots, r) = (self.seed, self.slots, self.r);
        // Starts are spread evenly, so equal ranges hold about equally many.
        let bound = |pass: u64| (u128::from(slots) * u128::from(pass) / u128::from(passes)) as u64;
        if passes == 1 {
            // Everything fits: rows wait in place, and no order is needed.
            self.rows.resize(usize::try_from(slots).unwrap_or(usize::MAX), (0, 0));
            let mut sound = true;
            keys.scan(&mut |key| sound = sound && self.add(&equation(key, seed, slots, r)))?;
            if sound {
                self.leave(slots)?;
            }
            return Ok(sound);
        }
        let mut equations: Vec<Equation> = Vec::new();
        for first in (0..passes).step_by(DEALT as usize) {
            let ranges = first..(first + DEALT).min(passes);
            for dealt in self.deal(keys, bound(ranges.start)..bound(ranges.end), passes)? {
                equations.clear();
                read_dealt(&dealt, &mut equations)?;
                equations.sort_unstable_by_key(|e| e.start);
                for equation in &equations {
                    self.leave(equation.start)?;
                    if !self.add(equation) {
                        return Ok(false);
                    }
                }
            }
        }
        self.leave(slots)?;
        Ok(true)
    }

    /// The equations whose start lies in `starts`, in one scan, dealt out to as many ranges as `passes` cuts it into.
    fn deal(&self, keys: &mut dyn KeyScan, starts: Range<u64>, passes: u64) -> Result<Vec<Spool>> {
        // The ranges before this one end where it starts: the number of a start's range counts from there.
        let range_of = |start: u64| (u128::from(start) * u128::from(passes) / u128::from(self.slots)) as u64;
        let first = range_of(starts.start);
        let count = range_of(starts.end.saturating_sub(1)).saturating_sub(first) + 1;
        let mut dealt: Vec<SpoolWriter> =
            (0..count).map(|_| SpoolWriter::new(self.fs.clone(), &self.dir, self.buffer)).collect();
        let (seed, slots, r) = (self.seed, self.slots, self.r);
        let mut failed = None;
        keys.scan(&mut |key| {
            let equation = equation(key, seed, slots, r);
            if failed.is_some() || !starts.contains(&equation.start) {
                return;
            }
            let number = range_of(equation.start).saturating_sub(first) as usize;
            if let Some(spool) = dealt.get_mut(number) {
                failed = spool.put(&equation.encode()).err();
            }
        })?;
        if let Some(failed) = failed {
            return Err(failed.into());
        }
        dealt.into_iter().map(|spool| Ok(spool.finish()?)).collect()
    }

    /// Rows before `start` are final: they go to the spool.
    fn leave(&mut self, start: u64) -> Result<()> {
        while self.base < start {
            let (coefficients, fingerprint) = self.rows.pop_front().unwrap_or((0, 0));
            let [a, b, c, d, e, f, g, h] = coefficients.to_le_bytes();
            let [i, j] = fingerprint.to_le_bytes();
            self.spool.put(&[a, b, c, d, e, f, g, h, i, j])?;
            self.base += 1;
        }
        Ok(())
    }

    fn add(&mut self, equation: &Equation) -> bool {
        let Equation { start, mut coefficients, mut fingerprint } = *equation;
        // `leave` has brought the base to the start.
        let mut at = (start - self.base) as usize;
        loop {
            if coefficients == 0 {
                return fingerprint == 0;
            }
            let skip = coefficients.trailing_zeros();
            coefficients >>= skip;
            at += skip as usize;
            if at >= self.rows.len() {
                self.rows.resize(at + 1, (0, 0));
            }
            let Some(row) = self.rows.get_mut(at) else { return false };
            if row.0 == 0 {
                *row = (coefficients, fingerprint);
                return true;
            }
            coefficients ^= row.0;
            fingerprint ^= row.1;
        }
    }

    /// Reads the rows from the last to the first and fills the slots.
    fn solve(self, n: u64) -> Result<Ribbon> {
        const ROWS: u64 = 4096;
        let spool = self.spool.finish()?;
        let slots = usize::try_from(self.slots).map_err(|_| Error::Refused("too many keys for a filter".into()))?;
        let mut packed = vec![0; packed_len(slots, u32::from(self.r))];
        // Bit j of plane b: bit b of the value j + 1 slots further on.
        let mut planes = [0u64; 16];
        let mut end = self.slots;
        while end > 0 {
            let start = end.saturating_sub(ROWS);
            let bytes = spool.read_range(start * ROW_BYTES as u64..end * ROW_BYTES as u64)?;
            for (slot, row) in (start..end).rev().zip(bytes.as_chunks::<ROW_BYTES>().0.iter().rev()) {
                let [c @ .., f0, f1] = *row;
                let (coefficients, mut value) = (u64::from_le_bytes(c), u16::from_le_bytes([f0, f1]));
                for (bit, plane) in planes.iter().enumerate().take(usize::from(self.r)) {
                    value ^= (((coefficients >> 1 & plane).count_ones() & 1) as u16) << bit;
                }
                // A free slot is 0, and so is one without an equation.
                let value = if coefficients == 0 { 0 } else { value };
                for (bit, plane) in planes.iter_mut().enumerate().take(usize::from(self.r)) {
                    *plane = *plane << 1 | u64::from(value >> bit & 1);
                }
                put_slot(&mut packed, slot, self.r, value);
            }
            end = start;
        }
        Ok(Ribbon { r: self.r, seed: self.seed, keys: n, slots: self.slots, packed: packed.into() })
    }
}

/// Sets a slot that is 0. A value of at most 16 bits at any shift lies in three bytes.
fn put_slot(packed: &mut [u8], slot: u64, r: u8, value: u16) {
    let bit = slot * u64::from(r);
    let [b0, b1, b2, _] = (u32::from(value) << (bit % 8)).to_le_bytes();
    let first = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    packed.iter_mut().skip(first).zip([b0, b1, b2]).for_each(|(byte, part)| *byte |= part);
}
