//! The error of this crate.

use std::path::{Path, PathBuf};
use trawl_io::slice::SliceError;
use trawl_model::{Advice, DoorError};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a `.meguri` file, a manifest or a batch could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed, or bytes of the file are not what the format demands.
    #[error(transparent)]
    File(#[from] trawl_io::Error),
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
    /// A checksum does not fit the bytes it covers.
    #[error("{}@{offset}: {what}: expected crc32c {expected:08x}, found {found:08x}", .path.display())]
    Checksum {
        /// Which file.
        path: PathBuf,
        /// Where the covered bytes begin.
        offset: u64,
        /// What is covered.
        what: &'static str,
        /// The checksum that the file states.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The file uses something that this version does not read.
    #[error("{}@{offset}: {what} {found} is not supported", .path.display())]
    Unsupported {
        /// Which file.
        path: PathBuf,
        /// Where it says so.
        offset: u64,
        /// What is unknown: a version, a codec, an encoding.
        what: &'static str,
        /// Its number.
        found: u64,
    },
    /// Rows were given to a writer out of order.
    #[error("row {row}: expected a key above {previous}, found {found}: rows must ascend by key")]
    NotSorted {
        /// Rows written before it.
        row: u64,
        /// The key before it, in hex.
        previous: String,
        /// Its own key, in hex.
        found: String,
    },
    /// A value or setting that no file can hold.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// What a caller may do about it.
    pub fn advice(&self) -> Advice {
        match self {
            Error::File(e) => e.advice(),
            Error::Sort(e) => e.advice(),
            Error::Checksum { .. } | Error::Unsupported { .. } => Advice::Skip,
            Error::NotSorted { .. } | Error::Refused(_) => Advice::Stop,
        }
    }

    /// Where in the file, as far as the error knows it.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::File(
                trawl_io::Error::Short { offset, .. }
                | trawl_io::Error::OverLimit { offset, .. }
                | trawl_io::Error::Corrupt { offset, .. },
            )
            | Error::Checksum { offset, .. }
            | Error::Unsupported { offset, .. } => Some(*offset),
            Error::File(trawl_io::Error::Io { offset, .. }) => *offset,
            _ => None,
        }
    }

    /// Whether the bytes are at fault, not the machine that reads them.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Error::File(
                trawl_io::Error::Short { .. } | trawl_io::Error::OverLimit { .. } | trawl_io::Error::Corrupt { .. },
            ) => true,
            Error::File(trawl_io::Error::Io { source, .. }) => source.kind() == std::io::ErrorKind::InvalidData,
            other => matches!(other, Error::Checksum { .. } | Error::Unsupported { .. }),
        }
    }
}

impl From<Error> for DoorError {
    fn from(error: Error) -> Self {
        DoorError::new(error.advice(), error)
    }
}

/// A place in a file, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub path: &'a Path,
    pub offset: u64,
}

impl<'a> At<'a> {
    pub fn new(path: &'a Path, offset: u64) -> Self {
        At { path, offset }
    }

    pub fn corrupt(&self, expected: &'static str, found: impl ToString) -> Error {
        let (path, offset, found) = (self.path.to_owned(), self.offset, found.to_string());
        trawl_io::Error::Corrupt { path, offset, expected, found }.into()
    }

    pub fn over_limit(&self, what: &'static str, claimed: u64, limit: u64) -> Error {
        let (path, offset) = (self.path.to_owned(), self.offset);
        trawl_io::Error::OverLimit { path, offset, what, claimed, limit }.into()
    }

    pub fn unsupported(&self, what: &'static str, found: u64) -> Error {
        Error::Unsupported { path: self.path.to_owned(), offset: self.offset, what, found }
    }

    pub fn short(&self, error: SliceError) -> Error {
        error.in_file(self.path).into()
    }

    /// Fails unless the stated and the computed checksum agree.
    pub fn check_crc(&self, what: &'static str, expected: u32, found: u32) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(Error::Checksum { path: self.path.to_owned(), offset: self.offset, what, expected, found })
    }
}

/// Something wrong inside a payload, before it is known in which file the payload lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub expected: &'static str,
    pub found: String,
}

impl Malformed {
    pub fn new(expected: &'static str, found: impl ToString) -> Self {
        Malformed { expected, found: found.to_string() }
    }

    pub fn at(self, at: At<'_>) -> Error {
        at.corrupt(self.expected, self.found)
    }
}

impl From<SliceError> for Malformed {
    fn from(error: SliceError) -> Self {
        match error {
            SliceError::Short { what, wanted, left, .. } => {
                Malformed::new(what, format!("{left} bytes where {wanted} are needed"))
            }
            SliceError::Varint { what, why, .. } => Malformed::new(what, why),
            SliceError::OverLimit { what, claimed, limit, .. } => {
                Malformed::new(what, format!("a claim of {claimed}, limit {limit}"))
            }
            other => Malformed::new("a readable value", other),
        }
    }
}
