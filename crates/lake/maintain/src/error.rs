//! The error of this crate.

use std::path::PathBuf;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a maintenance operation failed. Faults that a verification finds are not errors: they are reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lake could not be read or written.
    #[error(transparent)]
    Store(#[from] trawl_store::Error),
    /// Files could not be written again.
    #[error(transparent)]
    Ingest(#[from] trawl_ingest::Error),
    /// The index could not be made.
    #[error(transparent)]
    Index(#[from] trawl_index::Error),
    /// Temporary files could not be made or cleared.
    #[error("{path}: {source}")]
    Temp {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Sorted runs of others could not be looked at.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// What was asked for cannot be done, and why.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// What the store said, if it was the store that failed.
    pub fn of_store(&self) -> Option<&trawl_store::Error> {
        match self {
            Error::Store(error)
            | Error::Ingest(trawl_ingest::Error::Store(error))
            | Error::Index(trawl_index::Error::Store(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether a file of the lake is not there.
    pub fn is_not_found(&self) -> bool {
        match self {
            Error::Index(trawl_index::Error::File(error)) => error.is_not_found(),
            _ => self.of_store().is_some_and(trawl_store::Error::is_not_found),
        }
    }

    /// Whether somebody else changed what was being worked on, so that it may be tried again.
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self.of_store(), Some(trawl_store::Error::Refused { .. }))
    }
}
