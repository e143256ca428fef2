//! Telling how far long work is.

/// How far a long piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// How much of it is done: bytes or entries, whatever `total` counts.
    pub done: u64,
    /// How much there is.
    pub total: u64,
}

/// Is called now and then.
pub type OnProgress<'a> = &'a dyn Fn(Progress);

/// For callers who do not want to know.
pub fn silent(_: Progress) {}
