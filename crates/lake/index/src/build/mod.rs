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

pub(crate) use assemble::{Assembler, Pair, merge_paths};
pub(crate) use output::Outputs;

use crate::files::FileEntry;
use crate::lines::{Keys, LinesWriter};
use crate::meta::{META_FILE, SEGMENT_FORMAT, SegmentMeta};
use crate::pages::PagesWriter;
use crate::scratch::Scratch;
use crate::{Error, Result, postings};
use scan::Scanner;
use std::path::PathBuf;
use std::sync::Arc;
use summary::Summary;
use trawl_store::{DataFile, Store, layout};

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
}

impl BuildOptions {
    /// Defaults: 256 MiB for sorting, dictionary blocks of 8 KiB, 65,536 rows at a time.
    pub fn new(scratch_dir: impl Into<PathBuf>) -> Self {
        Self {
            scratch_dir: scratch_dir.into(),
            memory_bytes: 256 << 20,
            dictionary_block_bytes: 8 << 10,
            scan_rows: 65_536,
            shards: None,
        }
    }

    pub(crate) fn scratch(&self) -> Scratch {
        Scratch::new(&self.scratch_dir, (self.memory_bytes / 16).clamp(64 << 10, 16 << 20))
    }
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Reading Parquet rows.
    Scan {
        /// Rows read.
        rows: u64,
        /// Rows there are.
        total: u64,
    },
    /// Writing index files.
    Assemble {
        /// Summaries taken.
        summaries: u64,
        /// Summaries there are.
        total: u64,
    },
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

/// Builds segment `id` from `files`, which must be in the order of [`sort_files`]. Nothing refers to it until a manifest
/// names it.
pub fn build_segment(
    store: &Arc<dyn Store>,
    id: &str,
    files: &[SourceFile],
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    layout::segment_dir(id)?;
    let mut outputs = Outputs::new(store, id);
    let mut meta = SegmentMeta { format: SEGMENT_FORMAT, id: id.to_owned(), ..SegmentMeta::default() };
    let total: u64 = files.iter().map(|s| s.file.rows).sum();
    let mut sorter = sorter(options)?;
    let mut list = LinesWriter::new(outputs.create("files.tsv.zst")?, "files.tsv.zst", Keys::None, 9, 32 << 10)?;
    let mut pages = PagesWriter::new(outputs.create("pages.bin")?)?;
    let mut scanner = Scanner::new(options.scan_rows);
    for (number, source) in files.iter().enumerate() {
        let file_id = u32::try_from(number).map_err(|_| Error::Input {
            at: format!("segment {id}"),
            expected: "fewer than 2^32 files",
            found: files.len().to_string(),
        })?;
        list.push(&entry(file_id, source).to_line()?)?;
        let before = meta.rows;
        let groups = scanner.file(
            &**store,
            file_id,
            source,
            &mut |summary| sorter.push(&summary.key(), &summary.encode()).map_err(Error::from),
            &|rows| progress(Progress::Scan { rows: before + rows, total }),
        )?;
        pages.push(&groups)?;
        meta.rows += source.file.rows;
        meta.parquet_files += 1;
        meta.parquet_bytes += source.file.bytes;
        let dataset = meta.datasets.entry(source.dataset_id).or_default();
        dataset.files += 1;
        dataset.bytes += source.file.bytes;
    }
    outputs.close_lines("files.tsv.zst", list.finish()?)?;
    outputs.close("pages.bin", pages.finish()?)?;
    let summaries = sorter.stats().records;
    let shards = options.shards.unwrap_or_else(|| postings::shards_for(summaries)).clamp(1, postings::MAX_SHARDS);
    let assembler = Assembler::new(outputs, options, shards)?;
    assemble(sorter, assembler, &mut meta, &|done| progress(Progress::Assemble { summaries: done, total: summaries }))?;
    Ok(meta)
}

pub(crate) fn sorter(options: &BuildOptions) -> Result<trawl_sort::Sorter> {
    let memory = options.memory_bytes.max(MIN_MEMORY);
    Ok(trawl_sort::Sorter::builder(&options.scratch_dir).memory_bytes(memory).holder("trawl index").build()?)
}

fn entry(file_id: u32, source: &SourceFile) -> FileEntry {
    let DataFile { path, prefix, added, rows, row_groups, bytes, hash, .. } = source.file.clone();
    FileEntry { file_id, dataset_id: source.dataset_id, prefix, path, rows, row_groups, bytes, hash, added }
}

/// Groups the sorted summaries by domain, then by dataset.
fn assemble(
    sorter: trawl_sort::Sorter,
    mut assembler: Assembler,
    meta: &mut SegmentMeta,
    progress: &dyn Fn(u64),
) -> Result<()> {
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
            progress(done);
        }
    }
    assembler.push(&domain, pairs)?;
    let mut outputs = assembler.finish(meta)?;
    outputs.put(META_FILE, meta)?;
    progress(done);
    Ok(())
}
