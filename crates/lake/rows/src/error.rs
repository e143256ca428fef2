//! The error of this crate.

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why rows could not be written, or given out as Arrow. Reading fails as the store does: a damaged file is
/// [`trawl_store::Error::Corrupt`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] trawl_store::Error),
    /// A Parquet file could not be written.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: String,
        /// What the library says.
        source: parquet::errors::ParquetError,
    },
    /// Rows of a file do not make an Arrow batch.
    #[error("{path}: {source}")]
    Arrow {
        /// The file.
        path: String,
        /// What the library says.
        source: arrow_schema::ArrowError,
    },
    /// A part of the work ended without saying why.
    #[error("{what} ended early")]
    Ended {
        /// Which part.
        what: &'static str,
    },
}
