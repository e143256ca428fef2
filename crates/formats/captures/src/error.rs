//! The error of this crate.

use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;
use trawl_model::{Advice, DoorError};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a capture index could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed; the message names the file.
    #[error(transparent)]
    File(#[from] trawl_io::Error),
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
    /// The file is not a Parquet file, or a damaged one.
    #[error("{}: expected a Parquet file, found another format or damage ({source})", .file.display())]
    Parquet {
        /// Which file.
        file: PathBuf,
        /// What the Parquet reader or writer said.
        source: ParquetError,
    },
    /// It is a Parquet file, but not a capture index.
    #[error("{}: column {column}: expected {expected}, found {found}", .file.display())]
    Column {
        /// Which file.
        file: PathBuf,
        /// Which column.
        column: String,
        /// What the contract says.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A capture's body could not be read to compute what its row needs.
    #[error("{url}: body: {source}")]
    Body {
        /// The capture's URL.
        url: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// What a caller may do about it.
    pub fn advice(&self) -> Advice {
        match self {
            Error::File(e) => e.advice(),
            Error::Sort(e) => e.advice(),
            Error::Body { source, .. } => Advice::of(source.kind()),
            Error::Column { .. } => Advice::Skip,
            Error::Parquet { source, .. } => match source {
                // A write that failed comes through the Parquet writer.
                ParquetError::External(e) => match e.downcast_ref::<io::Error>() {
                    Some(e) => Advice::of(e.kind()),
                    None => Advice::Stop,
                },
                _ => Advice::Skip,
            },
        }
    }
}

impl From<Error> for DoorError {
    fn from(e: Error) -> Self {
        DoorError::new(e.advice(), e)
    }
}
