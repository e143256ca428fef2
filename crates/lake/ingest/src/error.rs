//! The error of this crate.

use trawl_lists::BadItem;
use trawl_model::{Advice, DoorError};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an ingest failed. Single bad records do not: they are rejected and counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lake could not be read or written.
    #[error(transparent)]
    Store(#[from] trawl_store::Error),
    /// A source could not be read.
    #[error(transparent)]
    Source(#[from] DoorError),
    /// A source file could not be opened or read; the message names it.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
    /// Rows could not be written.
    #[error(transparent)]
    Rows(#[from] trawl_rows::Error),
    /// A source is not a list that can be read.
    #[error(transparent)]
    List(trawl_lists::Error),
    /// A setting that makes no sense.
    #[error("{what}: expected {expected}, found {found}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A part of the work ended without saying why.
    #[error("{what} ended early")]
    Ended {
        /// Which part.
        what: &'static str,
    },
}

impl From<trawl_lists::Error> for Error {
    fn from(error: trawl_lists::Error) -> Self {
        match error {
            trawl_lists::Error::Io(e) => Error::Io(e),
            trawl_lists::Error::Source(e) => Error::Source(e),
            other => Error::List(other),
        }
    }
}

impl Error {
    /// Whether a source is readable but has nothing where URLs would be: something else that lies among sources.
    pub fn is_without_urls(&self) -> bool {
        let Error::Source(error) = self else { return false };
        let is_other = |bad: &BadItem| matches!(bad.code, "no_url" | "json");
        error.advice == Advice::Stop && error.source.downcast_ref::<BadItem>().is_some_and(is_other)
    }

    /// What a caller is to do.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Store(e) | Error::Rows(trawl_rows::Error::Store(e)) => e.advice(),
            Error::Source(e) => e.advice,
            _ => Advice::Stop,
        }
    }
}
