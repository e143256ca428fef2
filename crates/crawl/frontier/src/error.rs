//! What a frontier refuses.

/// Why a URL was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The frontier lives in memory, and this much was allowed.
    #[error(
        "the frontier knows {known} URLs, its limit: raise max-known (about 240 bytes and the URL each) or narrow the scope"
    )]
    Full {
        /// URLs known.
        known: usize,
    },
}
