//! Repairing a journal after a crash and opening it for writing.

use super::format::{Batch, Header};
use super::reader::{Gap, JournalReader, Tail};
use super::writer::{Journal, write_new};
use super::{Options, Position};
use crate::Result;
use crate::fs::{Fs, Mode, parent};
use std::path::Path;
use std::sync::Arc;

/// What [`Journal::recover`] found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The header, as it was found.
    pub header: Header,
    /// Whole batches.
    pub batches: u64,
    /// How the file ended. A torn tail was cut off.
    pub tail: Tail,
    /// Damaged places that were left out (lenient only). The journal was then rewritten as its next generation.
    pub gaps: Vec<Gap>,
}

impl Recovery {
    /// Bytes cut off the end.
    pub fn cut_bytes(&self) -> u64 {
        match self.tail {
            Tail::Clean => 0,
            Tail::Torn { bytes, .. } => bytes,
        }
    }
}

impl Journal {
    /// Shows every whole batch to `visit`, repairs the file and opens it for writing.
    ///
    /// A torn tail is cut. Damage before synced frames is an error that changes nothing, unless `options.lenient`: then
    /// the whole batches are written to a new generation that replaces the file.
    pub fn recover(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: Options,
        visit: &mut dyn FnMut(Position, &Batch) -> Result<()>,
    ) -> Result<(Journal, Recovery)> {
        let file = fs.open(path, Mode::Write)?;
        // What a killed process wrote without syncing is read below and may be acted upon: it must not vanish after.
        file.sync_data()?;
        fs.sync_dir(parent(path))?;
        let mut reader = JournalReader::open(&**fs, path, &options)?;
        let generation = reader.header().generation;
        let mut batches = 0;
        while let Some(batch) = reader.next_batch()? {
            visit(Position { generation, offset: batch.offset(), end: batch.end() }, &batch)?;
            batches += 1;
        }
        let recovery = Recovery {
            header: reader.header().clone(),
            batches,
            tail: reader.tail().unwrap_or(Tail::Clean),
            gaps: reader.gaps().to_vec(),
        };
        if !recovery.gaps.is_empty() {
            reader.skip_to(0);
            let header = Header { generation: generation + 1, tag: recovery.header.tag.clone() };
            let (frames, end) = write_new(fs, path, &header, &mut || reader.next_batch())?;
            let file = fs.open(path, Mode::Write)?;
            return Ok((Journal::opened(fs, path, options, file, header, frames, end), recovery));
        }
        if let Tail::Torn { offset, .. } = recovery.tail {
            file.set_len(offset)?;
            file.sync_data()?;
        }
        let end = reader.offset();
        Ok((Journal::opened(fs, path, options, file, recovery.header.clone(), reader.frames(), end), recovery))
    }
}
