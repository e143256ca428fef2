//! Sorted records that pass from one process to another: sections of a file, and the merge of sections of many files.
//!
//! ```text
//! file    section │ section │ …        each some blocks ([`crate::block`]), sorted; how to read one is stored beside it
//! ```
//! Neighbouring sections whose records are in order are one section, too: [`Section::join`].

use crate::merge::Merger;
use crate::plan::{Plan, RunNeed};
use crate::run::{BlockWriter, Run, Sink};
use crate::settings::Builder;
use crate::sorted::{Inner, Sorted, Stats};
use crate::temp::TempDir;
use crate::{Compression, Error, Result, split};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{File, Mode, Op};

/// Raw bytes of a block: a merge of a thousand sections holds two of each.
const BLOCK_BYTES: usize = 64 << 10;

/// What [`Section::block`] and [`Section::key`] may claim, since room is made on their word: records are below 32 MiB.
const MAX_CLAIM: u64 = 64 << 20;

/// Sorted records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Records.
    pub records: u64,
    /// Its largest block, unpacked.
    pub block: u64,
    /// Its longest key.
    pub key: u64,
}

impl Section {
    /// This one and the one that begins where it ends; `None` if there is something between them.
    pub fn join(self, next: Self) -> Option<Self> {
        (self.start.checked_add(self.len)? == next.start).then_some(Self {
            start: self.start,
            len: self.len.checked_add(next.len)?,
            records: self.records.checked_add(next.records)?,
            block: self.block.max(next.block),
            key: self.key.max(next.key),
        })
    }
}

struct Counted<W> {
    out: W,
    path: PathBuf,
    len: u64,
}

impl<W: Write> Sink for Counted<W> {
    fn put(&mut self, bytes: &[u8]) -> trawl_io::Result<()> {
        self.out.write_all(bytes).map_err(|e| trawl_io::Error::io(Op::Write, &self.path, e))?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Writes sections one after the other.
pub struct SectionWriter<W> {
    sink: Counted<W>,
    blocks: BlockWriter,
    start: u64,
}

impl<W: Write> SectionWriter<W> {
    /// Writes to `out`, which messages call `path`.
    pub fn new(out: W, path: impl Into<PathBuf>, compression: Compression) -> Result<Self> {
        let path = path.into();
        let blocks =
            BlockWriter::new(compression, BLOCK_BYTES).map_err(|e| trawl_io::Error::io(Op::Create, &path, e))?;
        Ok(Self { sink: Counted { out, path, len: 0 }, blocks, start: 0 })
    }

    /// Appends the next record of the section, in order; `shared` key bytes are those of the record before.
    pub fn push(&mut self, key: &[u8], value: &[u8], shared: usize) -> Result<()> {
        Ok(self.blocks.push(key, value, shared, &mut self.sink)?)
    }

    /// Ends the section; the next record begins another.
    pub fn end_section(&mut self) -> Result<Section> {
        let (records, RunNeed { block, key }) = self.blocks.end(&mut self.sink)?;
        let start = std::mem::replace(&mut self.start, self.sink.len);
        Ok(Section { start, len: self.sink.len - start, records, block: block as u64, key: key as u64 })
    }

    /// What the sections were written to.
    pub fn into_inner(self) -> W {
        self.sink.out
    }
}

/// A temporary file; it goes when this is dropped.
#[derive(Debug)]
pub struct ScratchFile {
    file: Arc<dyn File>,
    _dir: TempDir,
}

impl ScratchFile {
    /// The file, to be written and read.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }
}

impl Builder {
    /// A temporary file beside those of the merge, for sections that lie where they cannot be read in small pieces.
    pub fn scratch_file(&self) -> Result<ScratchFile> {
        let dir = TempDir::create(&self.fs, &self.dir, &self.holder)?;
        let file = Arc::from(self.fs.open(&dir.next_run(), Mode::CreateNew)?);
        Ok(ScratchFile { file, _dir: dir })
    }

    /// Merges sections, each sorted, of files that stay. Of equal keys that of the earlier section is first. Temporary files
    /// are written only if the budget does not allow to merge all at once.
    pub fn merge(mut self, sections: Vec<(Arc<dyn File>, Section)>) -> Result<Sorted> {
        let plan = Plan::new(self.memory_bytes, self.threads, self.max_fan_in)?;
        let mut runs = Vec::with_capacity(sections.len());
        for (file, section) in sections {
            let Section { start, len, records, block, key } = section;
            if block > MAX_CLAIM || key > MAX_CLAIM || start.checked_add(len).is_none() {
                let (expected, found) = ("a section with blocks and keys below 64 MiB", format!("{section:?}"));
                let error = trawl_io::Error::Corrupt { path: file.path().into(), offset: start, expected, found };
                return Err(Error::Io(error));
            }
            // Both fit 32 bits.
            let need = RunNeed { block: block as usize, key: key as usize };
            if len > 0 {
                runs.push(Run::section(file, start, len, records, need));
            }
        }
        let mut stats =
            Stats { records: runs.iter().map(|run| run.records).sum(), runs: runs.len() as u64, ..Stats::default() };
        if plan.fan_in(runs.iter().map(|run| run.need), 1) < runs.len() {
            let dir = Arc::new(TempDir::create(&self.fs, &self.dir, &self.holder)?);
            let mut merger = Merger {
                dir: &dir,
                plan: &plan,
                compression: self.compression,
                on_progress: self.on_progress.as_ref(),
                spilled: &mut stats.spilled_bytes,
            };
            merger.reduce(&mut runs, usize::MAX, 1)?;
        }
        let runs: Vec<_> = runs.into_iter().map(Arc::new).collect();
        let inner = split::merges(&runs, 1, &plan)?.into_iter().map(Inner::Runs).collect();
        Sorted::parts(inner, stats, runs.len() as u64, self.on_progress.take()).pop().ok_or(Error::Failed)
    }
}
