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

/// Tells `progress` how far `stage` is: at some of the calls, which may be many.
pub(crate) fn telling<'a>(progress: OnProgress<'a>, stage: &'static str, total: u64) -> impl FnMut(u64) + 'a {
    let mut calls = 0u64;
    move |done| {
        calls += 1;
        if calls.is_multiple_of(1 << 14) {
            progress(Progress { stage, done, total });
        }
    }
}

/// For callers who do not want to know.
pub fn silent(_: Progress) {}
