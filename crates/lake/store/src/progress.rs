//! How far work is, and ending it early.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Part of the work on a lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Sources or files are read.
    Reading,
    /// Files are written.
    Writing,
    /// The commit is made.
    Committing,
}

/// How far work on a lake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The part of the work.
    pub stage: Stage,
    /// Rows of this stage done; domains while index files are written.
    pub rows: u64,
    /// How much of the stage is done: bytes of sources while these are read, else rows.
    pub done: u64,
    /// What `done` will be at the end of the stage.
    pub total: u64,
}

/// Tells work to end. Clones share it, so that the starter of the work and its threads look at the same flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// From now on [`Cancel::check`] fails.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// [`Error::Cancelled`] if the work is to end. Cheap: for loops.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}
