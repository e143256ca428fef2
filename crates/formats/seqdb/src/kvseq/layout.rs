//! Where the parts of an entry lie.
//!
//! ```text
//! ptr ┐                                                              ┌ end
//!     [delflag] [key length] key [padding] [value length] value [padding]  gap up to a multiple of ALIGN
//!      1 byte    KEYREPR                    VALREPR
//! ```

use super::repr::Repr;
use crate::superblock::Name;
use crate::{Kind, Result, Superblock};

/// The most bytes before a key, and of the length before a value.
pub(crate) const MAX_PREFIX: usize = 9;

/// What the superblock says of every entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Representation of keys.
    pub key: Repr,
    /// Representation of values.
    pub value: Repr,
    /// Whether entries start with a delete flag.
    pub delflag: bool,
    /// Entries start at multiples of this; at least 1.
    pub align: u64,
}

/// The first part of an entry, up to its value's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub deleted: bool,
    /// Absolute offset and length of the key.
    pub key_at: u64,
    pub key_len: u64,
    /// Absolute offset of the value's length.
    pub value_head: u64,
}

/// The places of a whole entry, absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub ptr: u64,
    pub deleted: bool,
    pub key_at: u64,
    pub key_len: u64,
    /// Where the value's length is.
    pub value_head: u64,
    pub value_at: u64,
    pub value_len: u64,
    pub end: u64,
}

/// Why bytes are no entry, before the file's name is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A delete flag that is neither 0 nor 1.
    Delflag(u8),
    /// A length that its class does not allow.
    Length { what: &'static str, len: u64 },
    /// It would end past what 63 bits can count.
    Overflow,
}

impl Layout {
    /// Two numbers, as in a perm.
    pub(crate) const PAIRS: Layout = Layout { key: Repr::Fixed(8), value: Repr::Fixed(8), delflag: false, align: 1 };

    pub(crate) fn of(sb: &Superblock) -> Result<Self> {
        if sb.kind() == Kind::Perm {
            return Ok(Self::PAIRS);
        }
        let repr = |name, expected| {
            sb.required(name, expected)?;
            sb.value(name).and_then(Repr::from_value).ok_or_else(|| sb.fault(name, "a representation from 0 to 514"))
        };
        let layout = Layout {
            key: repr(Name::KEYREPR, "the variable KEYREPR")?,
            value: repr(Name::VALREPR, "the variable VALREPR")?,
            delflag: sb.value(Name::KVDELFL) == Some(1),
            align: sb.value(Name::ALIGN).and_then(|a| u64::try_from(a).ok()).unwrap_or(0).max(1),
        };
        if layout.is_void() {
            return Err(sb.fault(Name::VALREPR, "entries of at least one byte"));
        }
        Ok(layout)
    }

    /// Whether entries would have no bytes at all: there would be no end of them.
    pub(crate) fn is_void(&self) -> bool {
        self.key == Repr::Fixed(0) && self.value == Repr::Fixed(0) && !self.delflag
    }

    /// The next place at or after `offset` where an entry may start; past the end of every file if there is none.
    #[inline]
    pub(crate) fn aligned(&self, offset: u64) -> u64 {
        if self.align == 1 { offset } else { offset.checked_next_multiple_of(self.align).unwrap_or(u64::MAX) }
    }

    /// Bytes from the start of an entry to its value's length, plus that length's, without the key.
    #[inline]
    pub(crate) fn overhead(&self) -> u64 {
        (usize::from(self.delflag) + self.key.prefix_bytes() + self.value.prefix_bytes()) as u64
    }

    /// Reads the first part of the entry at `ptr`; `None` if `bytes` are too few ([`MAX_PREFIX`] always do).
    #[inline]
    pub(crate) fn key_span(&self, ptr: u64, bytes: &[u8]) -> Result<Option<KeySpan>, Broken> {
        let (deleted, rest) = if self.delflag {
            match bytes.split_first() {
                None => return Ok(None),
                Some((0, rest)) => (false, rest),
                Some((1, rest)) => (true, rest),
                Some((&flag, _)) => return Err(Broken::Delflag(flag)),
            }
        } else {
            (false, bytes)
        };
        let Some(key_len) = self.key.read_len(rest) else { return Ok(None) };
        if !self.key.holds(key_len) {
            return Err(Broken::Length { what: "key", len: key_len });
        }
        let key_at = ptr.checked_add(u64::from(self.delflag) + self.key.prefix_bytes() as u64);
        let value_head = key_at.and_then(|at| at.checked_add(self.key.room_for(key_len)));
        match (key_at, value_head) {
            (Some(key_at), Some(value_head)) => Ok(Some(KeySpan { deleted, key_at, key_len, value_head })),
            _ => Err(Broken::Overflow),
        }
    }

    /// Completes an entry from the bytes at its value's length; `None` if they are too few.
    #[inline]
    pub(crate) fn value_span(&self, ptr: u64, key: KeySpan, bytes: &[u8]) -> Result<Option<Span>, Broken> {
        let Some(value_len) = self.value.read_len(bytes) else { return Ok(None) };
        if !self.value.holds(value_len) {
            return Err(Broken::Length { what: "value", len: value_len });
        }
        let value_at = key.value_head.checked_add(self.value.prefix_bytes() as u64);
        let end = value_at.and_then(|at| at.checked_add(self.value.room_for(value_len)));
        match (value_at, end) {
            (Some(value_at), Some(end)) if i64::try_from(end).is_ok() => {
                let KeySpan { deleted, key_at, key_len, value_head } = key;
                Ok(Some(Span { ptr, deleted, key_at, key_len, value_head, value_at, value_len, end }))
            }
            _ => Err(Broken::Overflow),
        }
    }
}

impl Broken {
    pub(crate) fn at(self, path: &std::path::Path, ptr: u64) -> crate::Error {
        match self {
            Broken::Delflag(flag) => crate::Error::corrupt(path, ptr, "a delete flag of 0 or 1", flag),
            Broken::Length { what: "key", len } => {
                crate::Error::corrupt(path, ptr, "a key length its class allows", len)
            }
            Broken::Length { len, .. } => crate::Error::corrupt(path, ptr, "a value length its class allows", len),
            Broken::Overflow => crate::Error::corrupt(path, ptr, "an entry within 2^63 bytes", "a larger one"),
        }
    }
}
