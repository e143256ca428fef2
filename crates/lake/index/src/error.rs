//! The error of this crate.

use std::path::Path;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an index could not be built or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the index could not be read, is too short, or does not hold what its format demands.
    #[error(transparent)]
    File(#[from] trawl_io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] trawl_store::Error),
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
    /// Writing failed.
    #[error("{what}: {source}")]
    Write {
        /// What was written.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The input of a build breaks a rule the index rests on.
    #[error("{at}: expected {expected}, found {found}")]
    Input {
        /// Which file, row or entry.
        at: String,
        /// What the rule says.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// Two files that belong together do not.
    #[error("{left} and {right}: expected the same {what}, found {found}")]
    Mismatch {
        /// One file.
        left: String,
        /// The other.
        right: String,
        /// What should agree.
        what: &'static str,
        /// How it differs.
        found: String,
    },
}

impl Error {
    /// Bytes that are not what the format demands.
    pub(crate) fn corrupt(path: &Path, offset: u64, expected: &'static str, found: impl ToString) -> Self {
        trawl_io::Error::Corrupt { path: path.into(), offset, expected, found: found.to_string() }.into()
    }

    /// A failed write of `what`.
    pub(crate) fn write(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Error::Write { what, source }
    }
}
