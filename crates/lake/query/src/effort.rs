//! How much work an answer may cost, and whether anybody still waits for it.

use std::fmt;
use std::sync::Arc;

/// Whether to go on with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// There is time.
    GoOn,
    /// An answer that may be partial ends here and says how far it got. Others go on.
    WrapUp,
    /// Its client has left: [`crate::QueryError::Cancelled`].
    Stop,
}

/// How much work answers may cost. It is asked between reads, never while one is under way.
#[derive(Clone, Default)]
pub struct Effort(Option<Arc<dyn Fn() -> Pace + Send + Sync>>);

impl Effort {
    /// Whatever it takes.
    pub fn unbounded() -> Self {
        Self(None)
    }

    /// As long as `pace` says. It is asked often, so it should be cheap.
    pub fn of(pace: impl Fn() -> Pace + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(pace)))
    }

    pub(crate) fn pace(&self) -> Pace {
        self.0.as_ref().map_or(Pace::GoOn, |pace| pace())
    }
}

impl fmt::Debug for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Effort(bounded)" } else { "Effort(unbounded)" })
    }
}
