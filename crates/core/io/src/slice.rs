//! Reading little structures out of a byte slice without indexing.

use crate::varint::{self, VarintError};

/// Why a value could not be taken from a slice. Add the file with [`SliceError::in_file`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceError {
    /// Fewer bytes are left than the value needs.
    #[error("at {at}: expected {what} ({wanted} bytes), found {left} bytes")]
    Short {
        /// Absolute offset.
        at: u64,
        /// What was read.
        what: &'static str,
        /// Bytes it needs.
        wanted: u64,
        /// Bytes there are.
        left: u64,
    },
    /// A varint does not end, or is too large.
    #[error("at {at}: expected {what}: {why}")]
    Varint {
        /// Absolute offset.
        at: u64,
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        why: VarintError,
    },
    /// A length is above the reader's limit.
    #[error("at {at}: {what} claims {claimed} bytes, limit {limit}")]
    OverLimit {
        /// Absolute offset.
        at: u64,
        /// What has the length.
        what: &'static str,
        /// The claimed length.
        claimed: u64,
        /// The most that is accepted.
        limit: u64,
    },
}

impl SliceError {
    /// The same error, naming its file.
    pub fn in_file(self, path: &std::path::Path) -> crate::Error {
        let path = path.to_owned();
        match self {
            SliceError::Short { at, wanted, left, .. } => crate::Error::Short { path, offset: at, wanted, found: left },
            SliceError::Varint { at, what, why } => {
                crate::Error::Corrupt { path, offset: at, expected: what, found: why.to_string() }
            }
            SliceError::OverLimit { at, what, claimed, limit } => {
                crate::Error::OverLimit { path, offset: at, what, claimed, limit }
            }
        }
    }
}

/// Takes values from the front of a slice; errors name the absolute offset. `what` names the value for messages.
#[derive(Debug, Clone)]
pub struct SliceReader<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> SliceReader<'a> {
    /// Reads `bytes`, which start at offset 0.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Reads `bytes`, which start at `offset` of their file.
    pub fn at(bytes: &'a [u8], offset: u64) -> Self {
        SliceReader { rest: bytes, at: offset }
    }

    /// The absolute offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// What has not been taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], SliceError> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                self.at = self.at.saturating_add(n as u64);
                Ok(taken)
            }
            None => Err(SliceError::Short { at: self.at, what, wanted: n as u64, left: self.rest.len() as u64 }),
        }
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], SliceError> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                self.at = self.at.saturating_add(N as u64);
                Ok(*taken)
            }
            None => Err(SliceError::Short { at: self.at, what, wanted: N as u64, left: self.rest.len() as u64 }),
        }
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, SliceError> {
        self.array(what).map(u8::from_le_bytes)
    }

    /// A little-endian `u16`.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, SliceError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// A little-endian `u32`.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, SliceError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// A little-endian `u64`.
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, SliceError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A little-endian `i64`.
    pub fn i64(&mut self, what: &'static str) -> Result<i64, SliceError> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// An unsigned varint.
    #[inline]
    pub fn uvarint(&mut self, what: &'static str) -> Result<u64, SliceError> {
        let (value, used) = varint::uvarint(self.rest).map_err(|why| SliceError::Varint { at: self.at, what, why })?;
        self.rest = self.rest.get(used..).unwrap_or_default();
        self.at = self.at.saturating_add(used as u64);
        Ok(value)
    }

    /// A signed (zigzag) varint.
    #[inline]
    pub fn ivarint(&mut self, what: &'static str) -> Result<i64, SliceError> {
        self.uvarint(what).map(varint::unzigzag)
    }

    /// A byte string with its length before it as a varint, at most `limit` long.
    #[inline]
    pub fn prefixed(&mut self, limit: usize, what: &'static str) -> Result<&'a [u8], SliceError> {
        let at = self.at;
        let claimed = self.uvarint(what)?;
        match usize::try_from(claimed) {
            Ok(n) if n <= limit => self.take(n, what),
            _ => Err(SliceError::OverLimit { at, what, claimed, limit: limit as u64 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_names_the_offset() {
        let bytes = [1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0xac, 2, 3, 2, b'h', b'i', 9];
        let mut r = SliceReader::at(&bytes, 100);
        assert_eq!(r.u8("a"), Ok(1));
        assert_eq!(r.u16("b"), Ok(2));
        assert_eq!(r.u32("c"), Ok(3));
        assert_eq!(r.u64("d"), Ok(4));
        assert_eq!(r.uvarint("e"), Ok(300));
        assert_eq!(r.ivarint("f"), Ok(-2));
        assert_eq!(r.prefixed(2, "g"), Ok(&b"hi"[..]));
        assert_eq!(r.offset(), 121);
        assert_eq!(r.u16("h"), Err(SliceError::Short { at: 121, what: "h", wanted: 2, left: 1 }));
        assert_eq!(r.rest(), [9], "a failed read takes nothing");
    }

    #[test]
    fn a_claimed_length_is_checked_first() {
        let mut r = SliceReader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]);
        let err = r.prefixed(1000, "name").unwrap_err();
        assert_eq!(err, SliceError::OverLimit { at: 0, what: "name", claimed: u64::from(u32::MAX), limit: 1000 });
        assert_eq!(err.in_file(std::path::Path::new("f")).to_string(), "f@0: name claims 4294967295 bytes, limit 1000");
        let mut r = SliceReader::new(&[5, 1]);
        assert_eq!(r.prefixed(10, "name"), Err(SliceError::Short { at: 1, what: "name", wanted: 5, left: 1 }));
    }
}
