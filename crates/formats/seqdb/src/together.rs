//! Files that are written together: entries, and what leads to them.

use crate::{Access, Hindex, Kvseq, Result, SyncPolicy};

/// Entries come first, so that a pointer that reaches its file leads somewhere. What leads to them follows in this order:
/// the mark of the last index stands until all others are durable.
pub(crate) struct Together<'a> {
    pub data: &'a mut Kvseq,
    /// A perm or a timefile.
    pub pairs: Option<&'a mut Kvseq>,
    pub indexes: Vec<&'a mut Hindex>,
}

impl Together<'_> {
    /// Hands everything to the system.
    pub fn flush(self) -> Result<()> {
        self.data.flush()?;
        self.pairs.map_or(Ok(()), Kvseq::flush)?;
        self.indexes.into_iter().try_for_each(Hindex::flush)
    }

    /// Makes everything durable, as far as the settings want it.
    pub fn sync(self) -> Result<()> {
        if self.data.file.settings.sync == SyncPolicy::Data { self.data.checkpoint() } else { self.checkpoint() }
    }

    /// Makes everything durable that a writer leaves.
    pub fn close(self) -> Result<()> {
        if self.data.file.access == Access::Read { Ok(()) } else { self.checkpoint() }
    }

    fn checkpoint(self) -> Result<()> {
        self.data.checkpoint()?;
        self.pairs.map_or(Ok(()), Kvseq::checkpoint)?;
        self.indexes.into_iter().try_for_each(Hindex::checkpoint)
    }
}
