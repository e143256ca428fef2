//! How a key or a value is stored: its length before it, a fixed length, or a limited one in a fixed place.
//!
//! ```text
//! "ab"   R=0    02 61 62                          R=6   (fixed 2)    61 62
//!        R=1    00 02 61 62                       R=261 (limited 2)  02 61 62
//!        R=2    00 00 00 02 61 62                 R=263 (limited 4)  02 61 62 00 00
//!        R=3    00 00 00 00 00 00 00 02 61 62
//! ```

use std::fmt;
use std::str::FromStr;

/// The class of a stored string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repr {
    /// A length of 1 byte, then the string (R = 0).
    Int8,
    /// A length of 2 bytes, then the string (R = 1).
    Int16,
    /// A length of 4 bytes, then the string (R = 2).
    Int32,
    /// A length of 8 bytes, then the string (R = 3).
    Int64,
    /// Exactly so many bytes (R = 4 + n).
    Fixed(u8),
    /// A length of 1 byte, then room for so many bytes (R = 259 + n, n from 1).
    Lim8(u8),
}

impl Repr {
    /// The class with this value of KEYREPR or VALREPR.
    pub fn from_value(value: i64) -> Option<Self> {
        match value {
            0 => Some(Repr::Int8),
            1 => Some(Repr::Int16),
            2 => Some(Repr::Int32),
            3 => Some(Repr::Int64),
            4..=259 => u8::try_from(value - 4).ok().map(Repr::Fixed),
            260..=514 => u8::try_from(value - 259).ok().map(Repr::Lim8),
            _ => None,
        }
    }

    /// The value of KEYREPR or VALREPR.
    pub fn to_value(self) -> i64 {
        match self {
            Repr::Int8 => 0,
            Repr::Int16 => 1,
            Repr::Int32 => 2,
            Repr::Int64 => 3,
            Repr::Fixed(n) => 4 + i64::from(n),
            Repr::Lim8(n) => 259 + i64::from(n),
        }
    }

    /// Bytes of the length before the string.
    #[inline]
    pub fn prefix_bytes(self) -> usize {
        match self {
            Repr::Int8 | Repr::Lim8(_) => 1,
            Repr::Int16 => 2,
            Repr::Int32 => 4,
            Repr::Int64 => 8,
            Repr::Fixed(_) => 0,
        }
    }

    /// The longest string it can hold.
    #[inline]
    pub fn max_len(self) -> u64 {
        match self {
            Repr::Int8 => 0xff,
            Repr::Int16 => 0xffff,
            Repr::Int32 => 0xffff_ffff,
            Repr::Int64 => i64::MAX.unsigned_abs(),
            Repr::Fixed(n) | Repr::Lim8(n) => u64::from(n),
        }
    }

    /// Whether it can hold a string of `len` bytes.
    #[inline]
    pub fn holds(self, len: u64) -> bool {
        match self {
            Repr::Fixed(n) => len == u64::from(n),
            _ => len <= self.max_len(),
        }
    }

    /// Bytes that a string of `len` bytes takes after the length.
    #[inline]
    pub fn room_for(self, len: u64) -> u64 {
        match self {
            Repr::Lim8(n) => u64::from(n),
            _ => len,
        }
    }

    /// Whether a stored string may become longer at the end of the file.
    pub fn can_grow(self) -> bool {
        matches!(self, Repr::Int8 | Repr::Int16 | Repr::Int32 | Repr::Int64)
    }

    /// The length of the string whose prefix is at the start of `bytes`; `None` if there are too few.
    #[inline]
    pub(crate) fn read_len(self, bytes: &[u8]) -> Option<u64> {
        Some(match self {
            Repr::Int8 | Repr::Lim8(_) => u64::from(*bytes.first()?),
            Repr::Int16 => u64::from(u16::from_be_bytes(*bytes.first_chunk()?)),
            Repr::Int32 => u64::from(u32::from_be_bytes(*bytes.first_chunk()?)),
            Repr::Int64 => u64::from_be_bytes(*bytes.first_chunk()?),
            Repr::Fixed(n) => u64::from(n),
        })
    }

    /// The prefix of a string of `len` bytes: the last bytes of a big-endian number.
    #[inline]
    pub(crate) fn prefix(self, len: u64) -> Prefix {
        Prefix { number: len.to_be_bytes(), width: self.prefix_bytes() }
    }
}

/// A length as it is stored.
pub(crate) struct Prefix {
    number: [u8; 8],
    width: usize,
}

impl std::ops::Deref for Prefix {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.number.split_at(8 - self.width).1
    }
}

/// `int8`, `int16`, `int32`, `int64`, `fixed:N` or `lim8:N`.
impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repr::Int8 => f.write_str("int8"),
            Repr::Int16 => f.write_str("int16"),
            Repr::Int32 => f.write_str("int32"),
            Repr::Int64 => f.write_str("int64"),
            Repr::Fixed(n) => write!(f, "fixed:{n}"),
            Repr::Lim8(n) => write!(f, "lim8:{n}"),
        }
    }
}

impl FromStr for Repr {
    type Err = String;

    /// The name, or the number as stored.
    fn from_str(text: &str) -> Result<Self, String> {
        let sized = |n: &str, make: fn(u8) -> Repr| n.parse().ok().map(make);
        let repr = match text.split_once(':') {
            Some(("fixed", n)) => sized(n, Repr::Fixed),
            Some(("lim8", n)) => sized(n, Repr::Lim8).filter(|r| r.max_len() > 0),
            Some(_) => None,
            None => match text {
                "int8" => Some(Repr::Int8),
                "int16" => Some(Repr::Int16),
                "int32" => Some(Repr::Int32),
                "int64" => Some(Repr::Int64),
                number => number.parse().ok().and_then(Repr::from_value),
            },
        };
        repr.ok_or_else(|| {
            format!("expected int8, int16, int32, int64, fixed:0-255, lim8:1-255 or 0-514, found {text:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_one_class_and_one_name() {
        for value in 0..=514 {
            let repr = Repr::from_value(value).unwrap();
            assert_eq!(repr.to_value(), value);
            assert_eq!(repr.to_string().parse(), Ok(repr));
            assert_eq!(value.to_string().parse(), Ok(repr));
        }
        for value in [-1, 515, i64::MIN, i64::MAX] {
            assert_eq!(Repr::from_value(value), None);
        }
        for text in ["", "int9", "fixed:256", "lim8:0", "lim8:", "515", "fixed"] {
            assert!(text.parse::<Repr>().is_err(), "{text}");
        }
        assert_eq!([259, 260].map(Repr::from_value), [Some(Repr::Fixed(255)), Some(Repr::Lim8(1))]);
    }

    #[test]
    fn lengths_come_back() {
        for repr in [Repr::Int8, Repr::Int16, Repr::Int32, Repr::Int64, Repr::Lim8(7)] {
            for len in [0, 1, 255, 256, 65535, 65536, 0xffff_ffff, 1 << 32, i64::MAX as u64] {
                if repr.holds(len) {
                    let prefix = repr.prefix(len);
                    assert_eq!(repr.read_len(&prefix), Some(len), "{repr} {len}");
                    assert_eq!(repr.read_len(&prefix[1..]), None);
                }
            }
            assert!(!repr.holds(repr.max_len() + 1));
        }
        assert_eq!(Repr::Fixed(0).read_len(&[]), Some(0));
        assert!(Repr::Fixed(2).holds(2) && !Repr::Fixed(2).holds(1));
    }
}
