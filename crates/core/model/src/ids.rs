//! Where record ids come from.

/// Gives ids: 16 random bytes each in a real run, a counter in tests.
pub trait IdSource: Send + Sync {
    /// The next id. No two may be equal.
    fn next_id(&self) -> [u8; 16];
}

impl<F: Fn() -> [u8; 16] + Send + Sync> IdSource for F {
    fn next_id(&self) -> [u8; 16] {
        self()
    }
}
