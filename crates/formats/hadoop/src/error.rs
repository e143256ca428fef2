//! The errors of this crate: which file, which byte, what was expected, what was found.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use trawl_io::Advice;
use trawl_model::DoorError;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the bytes of one value are not what its class demands. `at` counts from the value's first byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("+{at}: expected {expected}, found {found}")]
pub struct ValueError {
    /// Offset inside the value.
    pub at: usize,
    /// What should be there.
    pub expected: Cow<'static, str>,
    /// What is there.
    pub found: String,
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file layer failed, or found a length that passes the end of the file or a limit.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// The bytes break a rule of the format.
    #[error("{}@{offset}: expected {expected}, found {found}", .file.display())]
    Corrupt {
        /// Which file.
        file: PathBuf,
        /// Byte offset of the structure that breaks the rule.
        offset: u64,
        /// What should be there.
        expected: Cow<'static, str>,
        /// What is there.
        found: String,
    },
    /// A key or value does not decode as its class.
    #[error("{}@{offset}{}: {class}{source}", .file.display(), inside(*.index))]
    Value {
        /// Which file.
        file: PathBuf,
        /// Where the record (or the block that holds it) starts.
        offset: u64,
        /// Which record of the block, from 0.
        index: u32,
        /// The class as the header names it.
        class: String,
        /// What is wrong inside the value.
        source: ValueError,
    },
    /// The file needs something this crate does not have.
    #[error("{}: {what} is not supported", .file.display())]
    Unsupported {
        /// Which file.
        file: PathBuf,
        /// The version, codec or class.
        what: String,
    },
    /// The caller asked for something that the format cannot hold.
    #[error("{}: {reason}", .file.display())]
    Refused {
        /// Which file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
}

fn inside(index: u32) -> String {
    if index > 0 { format!("+{index}") } else { String::new() }
}

impl Error {
    /// The bytes at `offset` of `file` break a rule.
    pub fn corrupt(file: &Path, offset: u64, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Error::Corrupt { file: file.into(), offset, expected: expected.into(), found: found.into() }
    }

    /// The caller's request cannot be met.
    pub fn refused(file: &Path, reason: impl Into<String>) -> Self {
        Error::Refused { file: file.into(), reason: reason.into() }
    }

    /// Byte offset the error is about, where there is one.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Corrupt { offset, .. } | Error::Value { offset, .. } => Some(*offset),
            Error::Io(
                trawl_io::Error::Short { offset, .. }
                | trawl_io::Error::OverLimit { offset, .. }
                | trawl_io::Error::Corrupt { offset, .. },
            ) => Some(*offset),
            Error::Io(trawl_io::Error::Io { offset, .. }) => *offset,
            _ => None,
        }
    }

    /// What the caller may do: damage is skipped, everything else follows the file layer.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Io(e) => e.advice(),
            Error::Corrupt { .. } | Error::Value { .. } => Advice::Skip,
            Error::Unsupported { .. } | Error::Refused { .. } | Error::Sort(_) => Advice::Stop,
        }
    }

    /// Whether the bytes are at fault, and not the machine or the caller.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Corrupt { .. } | Error::Value { .. } => true,
            Error::Io(e) => matches!(
                e,
                trawl_io::Error::Short { .. } | trawl_io::Error::OverLimit { .. } | trawl_io::Error::Corrupt { .. }
            ),
            _ => false,
        }
    }
}

impl From<Error> for DoorError {
    fn from(error: Error) -> Self {
        DoorError::new(error.advice(), error)
    }
}
