//! Runs: sorted records in a temporary file, or in a section of somebody's file.

use crate::Compression;
use crate::block::{self, Packer, put_record};
use crate::plan::{Plan, RunNeed};
use crate::temp::TempDir;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Error, File, FileWriter, Mode, Op, Result};

/// A finished run; a temporary file goes with it.
#[derive(Debug)]
pub(crate) struct Run {
    home: Home,
    pub path: PathBuf,
    /// Where its first block begins.
    pub start: u64,
    /// Bytes of its blocks.
    pub len: u64,
    pub records: u64,
    /// What reading it takes.
    pub need: RunNeed,
}

/// Whose file a run is in.
#[derive(Debug)]
enum Home {
    /// One of the sorter's own.
    Temp(Arc<TempDir>),
    /// Somebody else's, which stays.
    Given(Arc<dyn File>),
}

impl Run {
    /// A section of a file that somebody else keeps.
    pub fn section(file: Arc<dyn File>, start: u64, len: u64, records: u64, need: RunNeed) -> Self {
        Run { path: file.path().into(), home: Home::Given(file), start, len, records, need }
    }

    pub fn open(&self) -> Result<Arc<dyn File>> {
        match &self.home {
            Home::Temp(dir) => Ok(Arc::from(dir.fs.open(&self.path, Mode::Read)?)),
            Home::Given(file) => Ok(file.clone()),
        }
    }

    /// One past its last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Where blocks begin: at most `most` of them (twice that while counting), evenly spread, the first always.
    pub fn blocks(&self, most: usize) -> Result<Vec<u64>> {
        let file = self.open()?;
        let (mut blocks, mut at, mut n, mut every) = (Vec::new(), self.start, 0usize, 1);
        while at < self.end() {
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
        if let Home::Temp(dir) = &self.home {
            // What stays is removed with the directory.
            let _ = dir.fs.remove_file(&self.path);
        }
    }
}

/// Where blocks go.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Sink for FileWriter {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        FileWriter::put(self, bytes)
    }
}

/// Gathers records in order and writes them in blocks.
pub(crate) struct BlockWriter {
    packer: Packer,
    raw: Vec<u8>,
    block: usize,
    records: u64,
    need: RunNeed,
}

impl BlockWriter {
    pub fn new(compression: Compression, block: usize) -> std::io::Result<Self> {
        let need = RunNeed { block: 0, key: 0 };
        Ok(Self { packer: Packer::new(compression)?, raw: Vec::with_capacity(block), block, records: 0, need })
    }

    /// Appends the next record in order; `shared` key bytes are those of the one before.
    pub fn push(&mut self, key: &[u8], value: &[u8], shared: usize, out: &mut dyn Sink) -> Result<()> {
        self.records += 1;
        self.need.key = self.need.key.max(key.len());
        // Three lengths of at most ten bytes each come before key and value.
        let size = key.len() + value.len() + 30;
        if self.raw.len() + size > self.block {
            self.flush(out)?;
            if size > self.block {
                return self.put_alone(key, value, out);
            }
        }
        let shared = if self.raw.is_empty() { 0 } else { shared };
        put_record(&mut self.raw, key, value, shared);
        Ok(())
    }

    /// Writes a record that is larger than a block as one of its own.
    fn put_alone(&mut self, key: &[u8], value: &[u8], out: &mut dyn Sink) -> Result<()> {
        self.need.block = self.need.block.max(key.len() + value.len() + 30);
        for piece in [&block::single(key, value), key, value] {
            out.put(piece)?;
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut dyn Sink) -> Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        self.need.block = self.need.block.max(self.raw.len());
        let block = self.packer.pack(&self.raw).map_err(|e| Error::io(Op::Write, "(zstd)", e))?;
        out.put(block)?;
        self.raw.clear();
        Ok(())
    }

    /// Ends a run: its records, and what reading it takes. The next record begins another.
    pub fn end(&mut self, out: &mut dyn Sink) -> Result<(u64, RunNeed)> {
        self.flush(out)?;
        let RunNeed { block, key } = std::mem::replace(&mut self.need, RunNeed { block: 0, key: 0 });
        // Buffers of equal size can be used again by an allocator when one run follows another.
        let need = RunNeed { block: block.next_multiple_of(self.block), key: key.next_multiple_of(64) };
        Ok((std::mem::take(&mut self.records), need))
    }
}

/// Writes a run.
pub(crate) struct RunWriter {
    file: FileWriter,
    blocks: BlockWriter,
    run: Run,
}

impl RunWriter {
    pub fn create(dir: &Arc<TempDir>, plan: &Plan, compression: Compression) -> Result<Self> {
        let path = dir.next_run();
        let file = dir.fs.open(&path, Mode::CreateNew)?;
        let need = RunNeed { block: 0, key: 0 };
        let run = Run { home: Home::Temp(dir.clone()), path, start: 0, len: 0, records: 0, need };
        let blocks = BlockWriter::new(compression, plan.block).map_err(|e| Error::io(Op::Create, &run.path, e))?;
        // Blocks go out whole: no gathering needed.
        Ok(RunWriter { file: FileWriter::with_buffer(file, 0, 0), blocks, run })
    }

    /// Appends the next record in order; `shared` key bytes are those of the one before.
    pub fn push(&mut self, key: &[u8], value: &[u8], shared: usize) -> Result<()> {
        self.blocks.push(key, value, shared, &mut self.file)
    }

    /// Ends the run. It is a scratch file and not synced: after a power cut it is not needed.
    pub fn finish(mut self) -> Result<Run> {
        (self.run.records, self.run.need) = self.blocks.end(&mut self.file)?;
        self.file.flush_buffer()?;
        self.run.len = self.file.position();
        Ok(self.run)
    }
}
