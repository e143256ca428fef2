//! Builds a segment from Parquet files.
//!
//! ```text
//! each file ── scan ──► one summary a domain ──► external sort by (domain, dataset, file)
//!                                                   │ in order of domains
//!   files.tsv.zst, pages.bin                        └─► assemble ──► dictionary, perfect hash, membership, counts, postings
//! ```
//! Memory is bounded by the settings: a scan holds some pages of one file, the sorter its budget, the assembly a chunk of
//! names and some blocks.

mod assemble;
mod output;
mod paths;
mod scan;
mod summary;

pub(crate) use assemble::{Assembler, Pair};
pub(crate) use output::{FileLists, Outputs};

use crate::Result;
use crate::files::FileEntry;
use crate::meta::SegmentMeta;
use crate::scratch::Scratch;
use scan::Scanner;
use std::path::PathBuf;
use std::sync::Arc;
use summary::Summary;
use trawl_store::{Cancel, DataFile, Progress, Stage, Store};

pub use paths::TOP_PATHS_MIN_ROWS;

/// Least memory a sorter with its threads works in.
const MIN_MEMORY: usize = 2 << 20;

/// Settings of a build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Directory for temporary files.
    pub scratch_dir: PathBuf,
    /// Memory for sorting, 2 MiB at least.
    pub memory_bytes: usize,
    /// Bytes of text in a dictionary block: smaller is faster to look up, larger compresses better.
    pub dictionary_block_bytes: usize,
    /// Rows decoded at a time.
    pub scan_rows: u32,
    /// Postings shards; by the number of pairs unless told otherwise.
    pub shards: Option<u32>,
    /// Threads that make the pieces of a segment that is split; they share the memory. No byte depends on it.
    pub threads: usize,
    /// Rows that a piece has on average, or a segment is split by fewer digits: [`crate::PIECE_ROWS`]. The bytes depend on it; the
    /// largest number is for a segment that must not be split.
    pub piece_rows: u64,
    /// Ends the work early: then no manifest names the segment.
    pub cancel: Cancel,
}

impl BuildOptions {
    /// Defaults: 256 MiB for sorting, 2 threads, dictionary blocks of 8 KiB, 65,536 rows at a time.
    pub fn new(scratch_dir: impl Into<PathBuf>) -> Self {
        Self {
            scratch_dir: scratch_dir.into(),
            memory_bytes: 256 << 20,
            dictionary_block_bytes: 8 << 10,
            scan_rows: 65_536,
            shards: None,
            threads: 2,
            piece_rows: crate::PIECE_ROWS,
            cancel: Cancel::default(),
        }
    }

    pub(crate) fn scratch(&self) -> Scratch {
        Scratch::new(&self.scratch_dir, (self.memory_bytes / 16).clamp(64 << 10, 16 << 20))
    }
}

/// A Parquet file to index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The dataset it belongs to.
    pub dataset_id: u32,
    /// The file, as its commit has it.
    pub file: DataFile,
}

/// Puts files in the order in which their rows are paged: by dataset, commit, range.
pub fn sort_files(files: &mut [SourceFile]) {
    files.sort_by(|a, b| {
        let key = |s: &SourceFile| (s.dataset_id, s.file.added);
        let range = |s: &'_ SourceFile| {
            (s.file.prefix.clone(), s.file.min_domain.clone(), s.file.min_key.clone(), s.file.path.clone())
        };
        key(a).cmp(&key(b)).then_with(|| range(a).cmp(&range(b)))
    });
}

/// Builds one set of files from `files`: segment `id`, or a piece of one.
pub(crate) fn build_plain(
    store: &Arc<dyn Store>,
    id: &str,
    files: &[SourceFile],
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    let mut outputs = Outputs::new(store, id)?;
    let total: u64 = files.iter().map(|s| s.file.rows).sum();
    let mut sorter = sorter(options)?;
    let mut lists = FileLists::new(&outputs)?;
    let mut scanner = Scanner::new(options);
    for source in files {
        let before = outputs.meta.rows;
        let groups = scanner.file(
            &**store,
            lists.next_id(),
            source,
            &mut |summary| Ok(sorter.push(&summary.key(), &summary.encode()?)?),
            &|rows| progress(Progress { stage: Stage::Reading, rows: before + rows, done: before + rows, total }),
        )?;
        lists.push(entry(source), &groups, &mut outputs.meta)?;
    }
    lists.finish(&mut outputs)?;
    let summaries = sorter.stats().records;
    let assembler = Assembler::new(outputs, options, summaries)?;
    assemble(sorter, assembler, &|done| {
        progress(Progress { stage: Stage::Writing, rows: done, done, total: summaries });
        Ok(options.cancel.check()?)
    })
}

pub(crate) fn sorter(options: &BuildOptions) -> Result<trawl_sort::Sorter> {
    let memory = options.memory_bytes.max(MIN_MEMORY);
    Ok(trawl_sort::Sorter::builder(&options.scratch_dir).memory_bytes(memory).holder("trawl index").build()?)
}

fn entry(source: &SourceFile) -> FileEntry {
    let DataFile { path, prefix, added, rows, row_groups, bytes, hash, .. } = source.file.clone();
    FileEntry { file_id: 0, dataset_id: source.dataset_id, prefix, path, rows, row_groups, bytes, hash, added }
}

/// Groups the sorted summaries by domain, then by dataset.
fn assemble(
    sorter: trawl_sort::Sorter,
    mut assembler: Assembler,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<SegmentMeta> {
    let mut sorted = sorter.finish()?;
    let mut domain = String::new();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut done = 0u64;
    while let Some(record) = sorted.next_record()? {
        let (name, summary) = Summary::decode(record.key, record.value)?;
        if name != domain {
            assembler.push(&domain, std::mem::take(&mut pairs))?;
            name.clone_into(&mut domain);
        }
        match pairs.last_mut() {
            Some(pair) if pair.dataset_id == summary.dataset_id => pair.add(summary),
            _ => pairs.push(Pair::from(summary)),
        }
        done += 1;
        if done.is_multiple_of(1 << 14) {
            progress(done)?;
        }
    }
    assembler.push(&domain, pairs)?;
    progress(done)?;
    assembler.finish()
}
