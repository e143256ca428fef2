//! Reading Writables out of a byte slice: big-endian, without indexing, with the offset in every error.

use crate::ValueError;
use crate::text::{self, Text};
use std::borrow::Cow;

/// Result of decoding a value.
pub type Decoded<T> = Result<T, ValueError>;

/// Takes values from the front of a slice. `what` names the value in messages.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    at: usize,
    depth: u8,
}

/// Maps inside maps that are followed. A hostile value could nest as deep as it is long and overflow the stack.
const MAX_DEPTH: u8 = 16;

impl<'a> Decoder<'a> {
    /// Reads `bytes` from their first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes, at: 0, depth: 0 }
    }

    /// Offset of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// What was not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error at the next byte.
    pub fn error(&self, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> ValueError {
        ValueError { at: self.at, expected: expected.into(), found: found.into() }
    }

    /// Fails unless everything was taken: every value comes with its exact length, so a rest means a wrong reading.
    pub fn end(&self) -> Decoded<()> {
        match self.rest.len() {
            0 => Ok(()),
            n => Err(self.error("the end of the value", format!("{n} more bytes"))),
        }
    }

    /// Goes into a value that can hold values of its own kind; fails when that is too deep.
    pub fn enter(&mut self, what: &'static str) -> Decoded<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("at most {MAX_DEPTH} levels"), format!("{what} inside {MAX_DEPTH} others")));
        }
        Ok(())
    }

    /// Leaves what [`Decoder::enter`] went into.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The bytes that `read` moves past.
    pub fn measured(&mut self, read: impl FnOnce(&mut Self) -> Decoded<()>) -> Decoded<&'a [u8]> {
        let (before, at) = (self.rest, self.at);
        read(self)?;
        before.get(..self.at - at).ok_or_else(|| self.error("to move forward", "a move back"))
    }

    fn short(&self, what: &'static str, wanted: usize) -> ValueError {
        self.error(format!("{what} ({wanted} bytes)"), format!("{} bytes", self.rest.len()))
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize, what: &'static str) -> Decoded<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                self.at += n;
                Ok(taken)
            }
            None => Err(self.short(what, n)),
        }
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Decoded<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                self.at += N;
                Ok(*taken)
            }
            None => Err(self.short(what, N)),
        }
    }

    /// One byte, unsigned.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Decoded<u8> {
        self.array(what).map(|[b]| b)
    }

    /// One byte, signed.
    #[inline]
    pub fn i8(&mut self, what: &'static str) -> Decoded<i8> {
        self.array(what).map(i8::from_be_bytes)
    }

    /// One byte; anything but 0 is true, as Java reads it.
    #[inline]
    pub fn bool(&mut self, what: &'static str) -> Decoded<bool> {
        self.u8(what).map(|b| b != 0)
    }

    /// 16 bits, signed.
    pub fn i16(&mut self, what: &'static str) -> Decoded<i16> {
        self.array(what).map(i16::from_be_bytes)
    }

    /// 16 bits, unsigned.
    pub fn u16(&mut self, what: &'static str) -> Decoded<u16> {
        self.array(what).map(u16::from_be_bytes)
    }

    /// 32 bits, signed.
    #[inline]
    pub fn i32(&mut self, what: &'static str) -> Decoded<i32> {
        self.array(what).map(i32::from_be_bytes)
    }

    /// 64 bits, signed.
    #[inline]
    pub fn i64(&mut self, what: &'static str) -> Decoded<i64> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// An IEEE-754 single; every bit pattern is kept.
    #[inline]
    pub fn f32(&mut self, what: &'static str) -> Decoded<f32> {
        self.array(what).map(f32::from_be_bytes)
    }

    /// An IEEE-754 double; every bit pattern is kept.
    pub fn f64(&mut self, what: &'static str) -> Decoded<f64> {
        self.array(what).map(f64::from_be_bytes)
    }

    /// A VLong: 1 to 9 bytes. Magnitudes that are longer than they need to be are accepted.
    #[inline]
    pub fn vlong(&mut self, what: &'static str) -> Decoded<i64> {
        let marker = self.i8(what)?;
        if marker >= -112 {
            return Ok(i64::from(marker));
        }
        let (negative, len) = if marker >= -120 { (false, -112 - marker) } else { (true, -120 - marker) };
        let len = usize::from(len.unsigned_abs());
        let magnitude = self.take(len, what)?.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let value = magnitude.cast_signed();
        Ok(if negative { !value } else { value })
    }

    /// A VInt: a VLong that fits 32 bits.
    #[inline]
    pub fn vint(&mut self, what: &'static str) -> Decoded<i32> {
        let at = self.at;
        let value = self.vlong(what)?;
        i32::try_from(value).map_err(|_| ValueError { at, expected: "32 bits".into(), found: value.to_string() })
    }

    /// A length or count of things that take at least `least` bytes each: refused when the rest is too short for it, so
    /// that no caller reserves memory on the word of a damaged value.
    pub fn count(&mut self, least: usize, what: &'static str) -> Decoded<usize> {
        let start = self.clone();
        let claimed = self.i32(what)?;
        start.fits(i64::from(claimed), self.rest.len(), least, what)
    }

    /// As [`Decoder::count`], where -1 stands for "there is none".
    pub fn optional_count(&mut self, least: usize, what: &'static str) -> Decoded<Option<usize>> {
        if self.rest.starts_with(&[0xff; 4]) {
            self.take(4, what)?;
            return Ok(None);
        }
        self.count(least, what).map(Some)
    }

    /// As [`Decoder::count`], written as a VInt.
    #[inline]
    pub fn vint_count(&mut self, least: usize, what: &'static str) -> Decoded<usize> {
        let start = self.clone();
        let claimed = self.vlong(what)?;
        start.fits(claimed, self.rest.len(), least, what)
    }

    #[inline]
    fn fits(&self, claimed: i64, left: usize, least: usize, what: &'static str) -> Decoded<usize> {
        match usize::try_from(claimed) {
            Ok(n) if n.checked_mul(least.max(1)).is_some_and(|bytes| bytes <= left) => Ok(n),
            _ => Err(self.error(format!("{what} that fits the {left} bytes left"), claimed.to_string())),
        }
    }

    /// The bytes of a `Text`, without its length.
    #[inline]
    pub fn text_bytes(&mut self, what: &'static str) -> Decoded<&'a [u8]> {
        let len = self.vint_count(1, what)?;
        self.take(len, what)
    }

    /// A `Text`.
    #[inline]
    pub fn text(&mut self, what: &'static str) -> Decoded<Text<'a>> {
        self.text_bytes(what).map(Text::new)
    }

    /// The bytes of a `UTF8` or of Java's `writeUTF`, as stored and without their length.
    pub fn utf8_bytes(&mut self, what: &'static str) -> Decoded<&'a [u8]> {
        let len = self.u16(what)?;
        self.take(usize::from(len), what)
    }

    /// A `UTF8` or a string of Java's `writeUTF`, as standard UTF-8.
    pub fn utf8(&mut self, what: &'static str) -> Decoded<Text<'a>> {
        self.utf8_bytes(what).map(text::from_cesu)
    }

    /// A byte string with its length as an i32 before it; -1 is `None`.
    pub fn optional_bytes(&mut self, what: &'static str) -> Decoded<Option<&'a [u8]>> {
        self.optional_count(1, what)?.map(|len| self.take(len, what)).transpose()
    }

    /// A byte string with its length as an i32 before it: `BytesWritable`.
    pub fn bytes(&mut self, what: &'static str) -> Decoded<&'a [u8]> {
        let len = self.count(1, what)?;
        self.take(len, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_beyond_the_value_is_refused() {
        let bytes = [0x7f, 0xff, 0xff, 0xff, 1, 2, 3];
        let error = Decoder::new(&bytes).count(1, "links").unwrap_err();
        assert_eq!(error.to_string(), "+0: expected links that fits the 3 bytes left, found 2147483647");
        assert!(Decoder::new(&[0xff, 0xff, 0xff, 0xfe]).optional_count(1, "links").is_err());
        assert_eq!(Decoder::new(&[0xff; 4]).optional_count(1, "links"), Ok(None));
        assert!(Decoder::new(&[0x8c, 0x7f, 0xff, 0xff, 0xff]).text_bytes("url").is_err());
    }

    #[test]
    fn a_failed_read_says_where() {
        let mut d = Decoder::new(&[1, 2, 3]);
        d.u8("version").unwrap();
        assert_eq!(d.i32("status").unwrap_err().to_string(), "+1: expected status (4 bytes), found 2 bytes");
        assert_eq!(d.end().unwrap_err().to_string(), "+1: expected the end of the value, found 2 more bytes");
    }
}
