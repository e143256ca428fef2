//! The error of this crate.

use trawl_model::DoorError;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a list cannot be opened. Single bad items do not end the reading: they are [`crate::BadItem`]s.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened or read; the message names it.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// A list could not be read.
    #[error(transparent)]
    Source(#[from] DoorError),
    /// A document is something else than it was taken for, such as an error page. Damage after a good start is not an error: what
    /// was read is kept.
    #[error("byte {offset}: expected {expected}, found {found}")]
    Document {
        /// Where in the (unpacked) document it shows.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
        /// What was there instead, cut to a length fit for a message.
        found: String,
    },
    /// Neither first bytes nor name say what a file is.
    #[error("{path}: expected a format that can be recognised ({known}), found {found}")]
    UnknownFormat {
        /// The file.
        path: String,
        /// The formats that would have been.
        known: String,
        /// What its name and first bytes look like.
        found: String,
    },
}
