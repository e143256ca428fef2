//! Runs: sorted records in a temporary file.

use crate::Compression;
use crate::block::{self, Packer, put_record};
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

    /// Where blocks begin: at most `most` of them (twice that while counting), evenly spread, the first always.
    pub fn blocks(&self, most: usize) -> Result<Vec<u64>> {
        let file = self.open()?;
        let (mut blocks, mut at, mut n, mut every) = (Vec::new(), 0, 0usize, 1);
        while at < self.len {
            if n.is_multiple_of(every) {
                blocks.push(at);
            }
            if blocks.len() >= 2 * most.max(1) {
                every *= 2;
                blocks = blocks.into_iter().step_by(2).collect();
            }
            n += 1;
            at = block::skip(&*file, at)?;
        }
        Ok(blocks)
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
        self.run.records += 1;
        self.run.need.key = self.run.need.key.max(key.len());
        // Three lengths of at most ten bytes each come before key and value.
        let size = key.len() + value.len() + 30;
        if self.raw.len() + size > self.block {
            self.flush()?;
            if size > self.block {
                return self.put_alone(key, value);
            }
        }
        let shared = if self.raw.is_empty() { 0 } else { shared };
        put_record(&mut self.raw, key, value, shared);
        Ok(())
    }

    /// Writes a record that is larger than a block as one of its own.
    fn put_alone(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.run.need.block = self.run.need.block.max(key.len() + value.len() + 30);
        for piece in [&block::single(key, value), key, value] {
            self.file.put(piece)?;
        }
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
        Ok(())
    }

    /// Ends the run. It is a scratch file and not synced: after a power cut nobody asks for it.
    pub fn finish(mut self) -> Result<Run> {
        self.flush()?;
        self.file.flush_buffer()?;
        self.run.len = self.file.position();
        // Buffers of equal size can be used again by an allocator when one run follows another.
        self.run.need.block = self.run.need.block.next_multiple_of(self.block);
        self.run.need.key = self.run.need.key.next_multiple_of(64);
        Ok(self.run)
    }
}
