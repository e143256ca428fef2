//! Runs: sorted records in a temporary file.

use crate::Compression;
use crate::block::{Packer, put_record};
use crate::plan::{Plan, RunNeed};
use crate::temp::TempDir;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Error, File, FileWriter, Mode, Op, Result};

/// A finished run; its file goes with it.
#[derive(Debug)]
pub(crate) struct Run {
    dir: Arc<TempDir>,
    pub path: PathBuf,
    /// Length of the file.
    pub len: u64,
    pub records: u64,
    /// What reading it takes.
    pub need: RunNeed,
}

impl Run {
    pub fn open(&self) -> Result<Box<dyn File>> {
        self.dir.fs.open(&self.path, Mode::Read)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // What stays is removed with the directory.
        let _ = self.dir.fs.remove_file(&self.path);
    }
}

/// Writes a run.
pub(crate) struct RunWriter {
    file: FileWriter,
    packer: Packer,
    raw: Vec<u8>,
    block: usize,
    run: Run,
}

impl RunWriter {
    pub fn create(dir: &Arc<TempDir>, plan: &Plan, compression: Compression) -> Result<Self> {
        let path = dir.next_run();
        let file = dir.fs.open(&path, Mode::CreateNew)?;
        let run = Run { dir: dir.clone(), path, len: 0, records: 0, need: RunNeed { block: 0, key: 0 } };
        let packer = Packer::new(compression).map_err(|e| Error::io(Op::Create, &run.path, e))?;
        // Blocks go out whole: no gathering needed.
        let file = FileWriter::with_buffer(file, 0, 0);
        Ok(RunWriter { file, packer, raw: Vec::with_capacity(plan.block), block: plan.block, run })
    }

    /// Appends the next record in order; `shared` key bytes are those of the one before.
    pub fn push(&mut self, key: &[u8], value: &[u8], shared: usize) -> Result<()> {
        if self.raw.len() + key.len() + value.len() >= self.block {
            self.flush()?;
        }
        let shared = if self.raw.is_empty() { 0 } else { shared };
        put_record(&mut self.raw, key, value, shared);
        self.run.records += 1;
        self.run.need.key = self.run.need.key.max(key.len());
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        self.run.need.block = self.run.need.block.max(self.raw.len());
        let block = self.packer.pack(&self.raw).map_err(|e| Error::io(Op::Write, &self.run.path, e))?;
        self.file.put(block)?;
        self.raw.clear();
        self.raw.shrink_to(self.block);
        Ok(())
    }

    /// Ends the run. It is a scratch file and not synced: after a power cut nobody asks for it.
    pub fn finish(mut self) -> Result<Run> {
        self.flush()?;
        self.file.flush_buffer()?;
        self.run.len = self.file.position();
        Ok(self.run)
    }
}
