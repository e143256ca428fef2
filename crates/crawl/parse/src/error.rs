//! What a caller is told when a document is not what it was taken for.

/// Why a document could not be read at all. Damage after a good start is not an error: what was read is kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document is something else, such as an error page.
    #[error("byte {offset}: expected {expected}, found {found}")]
    Unknown {
        /// Where in the (decompressed) document it shows.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
        /// What was there instead, cut to a length fit for a message.
        found: String,
    },
}
