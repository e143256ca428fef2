//! The error of this crate.

use trawl_io::{Advice, LockError};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why sorting failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A temporary file could not be written or read, or holds something else than was written; it is named.
    #[error("sort: {0}")]
    Io(#[from] trawl_io::Error),
    /// The temporary directory could not be locked.
    #[error("sort: {0}")]
    Lock(#[from] LockError),
    /// A record is too large for the memory budget.
    #[error("sort: record of {len} bytes, limit {limit} (a sixteenth of the memory budget)")]
    RecordTooLarge {
        /// Key and value together.
        len: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// The memory budget is too small to work in.
    #[error("sort: memory budget of {given} bytes, at least {min} are needed")]
    BudgetTooSmall {
        /// What was asked for.
        given: usize,
        /// What is needed.
        min: usize,
    },
    /// An earlier call failed, so that records are missing.
    #[error("sort: an earlier failure lost records")]
    Failed,
}

impl Error {
    /// What the caller may do about it.
    pub fn advice(&self) -> Advice {
        match self {
            // The files are the sorter's own: a bad one cannot be skipped without losing records.
            Error::Io(e) if e.advice() == Advice::Retry => Advice::Retry,
            Error::Lock(e) if e.advice() == Advice::Retry => Advice::Retry,
            Error::RecordTooLarge { .. } => Advice::Skip,
            _ => Advice::Stop,
        }
    }
}
