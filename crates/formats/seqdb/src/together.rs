//! Files that are written together: entries, and what leads to them.
//!
//! Entries come first, so that a pointer that reaches its file leads somewhere. What leads to them follows in the order
//! given: the mark of the last one stands until all others are durable.

use crate::{Access, Hindex, Kvseq, Result, SyncPolicy};

/// A file that leads to entries of another.
pub(crate) trait Follower {
    fn flush(&mut self) -> Result<()>;
    fn checkpoint(&mut self) -> Result<()>;
}

impl Follower for Hindex {
    fn flush(&mut self) -> Result<()> {
        Hindex::flush(self)
    }

    fn checkpoint(&mut self) -> Result<()> {
        Hindex::checkpoint(self)
    }
}

/// A perm or a timefile.
impl Follower for Kvseq {
    fn flush(&mut self) -> Result<()> {
        Kvseq::flush(self)
    }

    fn checkpoint(&mut self) -> Result<()> {
        Kvseq::checkpoint(self)
    }
}

/// Hands everything to the system.
pub(crate) fn flush(data: &mut Kvseq, rest: Vec<&mut dyn Follower>) -> Result<()> {
    data.flush()?;
    rest.into_iter().try_for_each(|file| file.flush())
}

/// Makes everything durable, as far as the settings want it.
pub(crate) fn sync(data: &mut Kvseq, rest: Vec<&mut dyn Follower>) -> Result<()> {
    data.checkpoint()?;
    if data.file.settings.sync == SyncPolicy::Data {
        return Ok(());
    }
    rest.into_iter().try_for_each(|file| file.checkpoint())
}

/// Makes everything durable that a writer leaves.
pub(crate) fn close(data: &mut Kvseq, rest: Vec<&mut dyn Follower>) -> Result<()> {
    if data.file.access == Access::Read {
        return Ok(());
    }
    data.checkpoint()?;
    rest.into_iter().try_for_each(|file| file.checkpoint())
}
