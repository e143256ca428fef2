//! Decoding a payload piece by piece, so that a page of any size takes little memory.

use super::{Encoding, bits, get_value, max_of};
use crate::error::Malformed;
use bytes::Bytes;
use std::io::Read;
use std::path::Path;
use trawl_io::limits::BoundedBuf;
use trawl_io::slice::SliceReader;
use trawl_io::varint::{MAX_LEN, unzigzag};

/// Values decoded at a time. A multiple of eight, so that a step of packed values ends at a byte.
const STEP: usize = 1024;
/// Bytes of a step of the widest values.
const STEP_BYTES: usize = STEP * 8;
/// The most entries a dictionary may have: 128 MiB of them.
const MAX_DICTIONARY: u64 = 1 << 24;

/// Where payload bytes come from.
pub(crate) enum Payload {
    /// All of them in memory, and how many are used up.
    Memory(Bytes, usize),
    /// Decompressed as they are asked for.
    Stream(BoundedBuf<Box<dyn Read + Send>>),
}

impl Payload {
    pub fn memory(bytes: Bytes) -> Self {
        Payload::Memory(bytes, 0)
    }

    pub fn stream(source: Box<dyn Read + Send>, path: &Path) -> Self {
        Payload::Stream(BoundedBuf::new(source, path, 4 * STEP_BYTES))
    }

    /// Shows at least `n` bytes, or all that are left.
    fn peek(&mut self, n: usize) -> Result<&[u8], Malformed> {
        match self {
            Payload::Memory(bytes, used) => Ok(bytes.get(*used..).unwrap_or_default()),
            Payload::Stream(buf) => buf.fill(n, "payload").map_err(|e| Malformed::new("a readable payload", e)),
        }
    }

    /// Shows exactly `n` bytes.
    fn need(&mut self, n: usize, what: &'static str) -> Result<&[u8], Malformed> {
        let shown = self.peek(n)?;
        let left = shown.len();
        shown.get(..n).ok_or_else(|| Malformed::new(what, format!("{left} of {n} bytes")))
    }

    fn consume(&mut self, n: usize) {
        match self {
            Payload::Memory(_, used) => *used += n,
            Payload::Stream(buf) => buf.consume(n),
        }
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        let byte = self.need(1, what)?.first().copied().unwrap_or(0);
        self.consume(1);
        Ok(byte)
    }

    fn uvarint(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let mut reader = SliceReader::new(self.peek(MAX_LEN)?);
        let value = reader.uvarint(what)?;
        let used = reader.offset() as usize;
        self.consume(used);
        Ok(value)
    }

    fn value(&mut self, width: u8, what: &'static str) -> Result<u64, Malformed> {
        let value = get_value(self.need(usize::from(width), what)?);
        self.consume(usize::from(width));
        Ok(value)
    }
}

/// What an encoding needs to go on.
enum State {
    /// No values: the payload is not read.
    Empty,
    Raw,
    Rle {
        runs: u64,
        value: u64,
        left: u64,
    },
    Dict {
        dictionary: Vec<u64>,
        bits: u32,
    },
    Delta {
        last: u64,
    },
    For {
        bits: u32,
    },
    DeltaFor {
        last: u64,
        bits: u32,
        min: u64,
    },
}

/// Decodes values in order.
pub(crate) struct Decoder {
    payload: Payload,
    state: State,
    width: u8,
    base: u64,
    /// Values not decoded yet.
    left: u64,
    /// Values decoded and not handed out yet: what is left of a step.
    ready: Vec<u64>,
    taken: usize,
}

impl Decoder {
    /// Starts on a payload of `n` values. A width other than 1, 2, 4 or 8 is malformed.
    pub fn new(encoding: Encoding, mut payload: Payload, n: u64, width: u8, base: u64) -> Result<Self, Malformed> {
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(Malformed::new("a width of 1, 2, 4 or 8 bytes", width));
        }
        let state = match encoding {
            _ if n == 0 => State::Empty,
            Encoding::Raw => State::Raw,
            Encoding::Rle => State::Rle { runs: payload.uvarint("a number of runs")?, value: 0, left: 0 },
            Encoding::Dict => read_dictionary(&mut payload, n, width)?,
            Encoding::Delta => State::Delta { last: base },
            Encoding::For => State::For { bits: bit_width(&mut payload)? },
            Encoding::DeltaFor => {
                let bits = bit_width(&mut payload)?;
                State::DeltaFor { last: base, bits, min: payload.uvarint("a smallest difference")? }
            }
        };
        // The first value of differences is the base itself.
        let ready = if matches!(state, State::Delta { .. } | State::DeltaFor { .. }) { vec![base] } else { Vec::new() };
        if base > max_of(width) {
            return Err(Malformed::new("a base that fits the column's width", base));
        }
        Ok(Decoder { payload, state, width, base, left: n - ready.len() as u64, ready, taken: 0 })
    }

    /// Appends the next `n` values. Asking for more than there are is malformed.
    pub fn next(&mut self, mut n: usize, out: &mut Vec<u64>) -> Result<(), Malformed> {
        let waiting = self.ready.len() - self.taken;
        if n as u64 > self.left + waiting as u64 {
            let found = format!("{} of {n}", self.left + waiting as u64);
            return Err(Malformed::new("more values", found));
        }
        while n > 0 {
            let waiting = self.ready.get(self.taken..).unwrap_or_default();
            let some = waiting.get(..n.min(waiting.len())).unwrap_or_default();
            out.extend_from_slice(some);
            self.taken += some.len();
            n -= some.len();
            // Whole steps go straight to the caller.
            while n >= STEP || n as u64 == self.left && n > 0 {
                let step = n.min(STEP);
                self.step(step, out)?;
                n -= step;
            }
            if n > 0 && self.taken == self.ready.len() {
                let mut ready = std::mem::take(&mut self.ready);
                ready.clear();
                let done = self.step(STEP.min(usize::try_from(self.left).unwrap_or(STEP)), &mut ready);
                (self.ready, self.taken) = (ready, 0);
                done?;
            }
        }
        Ok(())
    }

    /// To be called after the last value: a payload that goes on is malformed, except that of DELTA, where readers have
    /// always ignored the rest.
    pub fn finish(mut self) -> Result<(), Malformed> {
        if matches!(self.state, State::Delta { .. } | State::Empty) || self.left > 0 {
            return Ok(());
        }
        if let State::Rle { runs, left, .. } = self.state
            && (runs > 0 || left > 0)
        {
            return Err(Malformed::new("runs that end with the last value", format!("{runs} more runs")));
        }
        match self.payload.peek(1)?.len() {
            0 => Ok(()),
            more => Err(Malformed::new("the end of the payload", format!("{more} more bytes"))),
        }
    }

    /// Decodes `n` values: [`STEP`], or all that are left.
    fn step(&mut self, n: usize, out: &mut Vec<u64>) -> Result<(), Malformed> {
        let from = out.len();
        self.decode(n, out)?;
        self.left -= n as u64;
        let all = out.get(from..).unwrap_or_default().iter().fold(0, |all, v| all | v);
        if all > max_of(self.width) {
            return Err(Malformed::new("values that fit the column's width", format!("bits {all:x}")));
        }
        Ok(())
    }

    fn decode(&mut self, n: usize, out: &mut Vec<u64>) -> Result<(), Malformed> {
        let payload = &mut self.payload;
        match &mut self.state {
            State::Empty => {}
            State::Raw => {
                let size = n * usize::from(self.width);
                read_raw(payload.need(size, "values as they are")?, self.width, out);
                payload.consume(size);
            }
            State::Rle { runs, value, left } => {
                let all = n as u64;
                let mut n = all;
                while n > 0 {
                    if *left == 0 {
                        if *runs == 0 {
                            return Err(Malformed::new("another run", "the end of the runs"));
                        }
                        *runs -= 1;
                        *value = payload.value(self.width, "a run's value")?;
                        *left = payload.uvarint("a run's length")?;
                        if *left == 0 || *left > self.left - (all - n) {
                            return Err(Malformed::new("a run within the page", format!("{left} values")));
                        }
                    }
                    let some = n.min(*left);
                    // At most a step, so it fits.
                    out.resize(out.len() + some as usize, *value);
                    *left -= some;
                    n -= some;
                }
            }
            State::Dict { dictionary, bits } => {
                let from = out.len();
                unpack(payload, n, *bits, 0, out)?;
                for code in out.iter_mut().skip(from) {
                    let entry = usize::try_from(*code).ok().and_then(|c| dictionary.get(c));
                    let size = dictionary.len();
                    *code = *entry
                        .ok_or_else(|| Malformed::new("a code of the dictionary", format!("{code} of {size}")))?;
                }
            }
            State::For { bits } => unpack(payload, n, *bits, self.base, out)?,
            State::Delta { last } => {
                let mut n = n;
                while n > 0 {
                    let mut reader = SliceReader::new(payload.peek(STEP_BYTES)?);
                    // A varint at the end of what is shown may be cut: then show more first.
                    while n > 0 && (reader.offset() == 0 || reader.rest().len() >= MAX_LEN) {
                        *last = last.wrapping_add(unzigzag(reader.uvarint("a difference")?) as u64);
                        out.push(*last);
                        n -= 1;
                    }
                    let used = reader.offset() as usize;
                    payload.consume(used);
                }
            }
            State::DeltaFor { last, bits, min } => {
                let from = out.len();
                unpack(payload, n, *bits, *min, out)?;
                for value in out.iter_mut().skip(from) {
                    *last = last.wrapping_add(unzigzag(*value) as u64);
                    *value = *last;
                }
            }
        }
        Ok(())
    }
}

fn read_raw(bytes: &[u8], width: u8, out: &mut Vec<u64>) {
    fn each<const N: usize>(bytes: &[u8], out: &mut Vec<u64>, value: impl Fn([u8; N]) -> u64) {
        out.extend(bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)));
    }
    match width {
        1 => out.extend(bytes.iter().map(|&b| u64::from(b))),
        2 => each(bytes, out, |b| u64::from(u16::from_le_bytes(b))),
        4 => each(bytes, out, |b| u64::from(u32::from_le_bytes(b))),
        _ => each(bytes, out, u64::from_le_bytes),
    }
}

fn unpack(payload: &mut Payload, n: usize, bits: u32, base: u64, out: &mut Vec<u64>) -> Result<(), Malformed> {
    let size = bits::packed_len(n, bits);
    bits::unpack(payload.need(size, "packed values")?, n, bits, base, out);
    payload.consume(size);
    Ok(())
}

fn bit_width(payload: &mut Payload) -> Result<u32, Malformed> {
    match payload.byte("a bit width")? {
        bits @ 0..=64 => Ok(u32::from(bits)),
        bits => Err(Malformed::new("a bit width of at most 64", bits)),
    }
}

fn read_dictionary(payload: &mut Payload, n: u64, width: u8) -> Result<State, Malformed> {
    let size = payload.uvarint("a dictionary's size")?;
    // Every entry is there because a row has it.
    if size == 0 || size > n || size > MAX_DICTIONARY {
        let found = format!("{size} entries for {n} values, limit {MAX_DICTIONARY}");
        return Err(Malformed::new("a dictionary no larger than its page", found));
    }
    let mut dictionary = Vec::new();
    for _ in 0..size {
        dictionary.push(payload.value(width, "a dictionary entry")?);
    }
    Ok(State::Dict { dictionary, bits: bit_width(payload)? })
}
