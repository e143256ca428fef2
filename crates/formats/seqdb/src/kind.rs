//! The three formats, and telling them by their first bytes.

use crate::design::MAGIC;
use crate::superblock::Purpose;
use std::fmt;

/// What a container file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A sequence of keys and values.
    Kvseq,
    /// A hash table of pointers into a kvseq.
    Hindex,
    /// An array of pointers into a kvseq, with hashes.
    Perm,
}

/// Bytes of a file's start that [`is_seqdb`] looks at.
pub const HEAD_BYTES: usize = 56;

impl Kind {
    /// The value of FORMAT.
    pub fn format(self) -> i64 {
        match self {
            Kind::Kvseq => 0x10,
            Kind::Hindex => 0x20,
            Kind::Perm => 0x30,
        }
    }

    /// The kind with this value of FORMAT.
    pub fn from_format(format: i64) -> Option<Self> {
        [Kind::Kvseq, Kind::Hindex, Kind::Perm].into_iter().find(|kind| kind.format() == format)
    }

    /// The format's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Kvseq => "kvseq",
            Kind::Hindex => "hindex",
            Kind::Perm => "perm",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether a file that begins with `head` is a container, by the tests the format publishes for `/etc/magic`.
pub fn is_seqdb(head: &[u8]) -> Option<Kind> {
    if !head.starts_with(&MAGIC) {
        return None;
    }
    let format = head.get(32..40)?;
    Kind::from_format(i64::from_be_bytes(format.try_into().ok()?))
}

/// The PURPOSE of a container that begins with `head`.
pub fn purpose_of(head: &[u8]) -> Option<Purpose> {
    is_seqdb(head)?;
    let value = head.get(48..HEAD_BYTES)?;
    Some(Purpose::from_value(i64::from_be_bytes(value.try_into().ok()?)))
}
