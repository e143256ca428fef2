//! Merges segments into one: the same answers from fewer files.
//!
//! Dictionaries are walked side by side; what only one segment knows of a (domain, dataset) is taken over as it is. Where
//! several know of it, or one had only a bound, the distinct URLs are counted again from the rows if that is asked for, and
//! bounded by their sum if not. File ids move up by
//! the files of the segments before, so the order of pages stays.

mod distinct;
mod names;

use crate::build::{Assembler, BuildOptions, Outputs, Pair, Progress};
use crate::counts::Count;
use crate::files::FileEntry;
use crate::lines::{Keys, LinesWriter};
use crate::meta::{META_FILE, SEGMENT_FORMAT, SegmentMeta};
use crate::pages::PagesWriter;
use crate::postings::{self, Run};
use crate::{Error, Result, Segment};
use distinct::Distinct;
use names::NameCursor;
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_store::{Store, layout};

/// A segment to merge.
#[derive(Clone, Copy)]
pub struct MergeInput<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// Datasets the version no longer takes from it, sorted: they are left out.
    pub masked: &'a [u32],
}

/// What to make of the distinct URLs of a (domain, dataset) that several segments know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistinctUrls {
    /// Counted from the rows: exact.
    Counted,
    /// Summed: a bound, and no row is read.
    Bounded,
}

/// What one segment knows of a (domain, dataset): its number, its own file ids, and counts.
struct Share {
    input: usize,
    runs: Vec<Run>,
    count: Count,
}

/// Merges `inputs`, in the order of their version, into segment `id`.
pub fn merge_segments(
    store: &Arc<dyn Store>,
    id: &str,
    inputs: &[MergeInput<'_>],
    distinct: DistinctUrls,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    layout::segment_dir(id)?;
    let mut outputs = Outputs::new(store, id);
    let mut meta = SegmentMeta { format: SEGMENT_FORMAT, id: id.to_owned(), ..SegmentMeta::default() };
    let file_ids = merge_files(&mut outputs, inputs, &mut meta)?;
    let pairs = inputs.iter().map(|i| i.segment.meta().pairs).sum();
    let shards = options.shards.unwrap_or_else(|| postings::shards_for(pairs)).clamp(1, postings::MAX_SHARDS);
    let mut assembler = Assembler::new(outputs, options, shards)?;
    let mut distinct = match distinct {
        DistinctUrls::Counted => Some(Distinct::new(store, inputs, options)),
        DistinctUrls::Bounded => None,
    };
    let mut cursors = inputs.iter().map(|i| NameCursor::new(i.segment)).collect::<Result<Vec<_>>>()?;
    let total = inputs.iter().map(|i| i.segment.len()).sum();
    let mut done = 0u64;
    while let Some(name) = cursors.iter().filter_map(NameCursor::name).min().map(str::to_owned) {
        let mut shares: BTreeMap<u32, Vec<Share>> = BTreeMap::new();
        for (input, cursor) in cursors.iter_mut().enumerate() {
            if cursor.name() != Some(&name) {
                continue;
            }
            let (Some(of), slot) = (inputs.get(input), cursor.slot()) else { continue };
            for (dataset_id, count) in of.segment.counts(slot)? {
                if of.masked.binary_search(&dataset_id).is_err() {
                    let runs = of.segment.postings(slot, dataset_id)?;
                    shares.entry(dataset_id).or_default().push(Share { input, runs, count });
                }
            }
            cursor.advance()?;
            done += 1;
            if done.is_multiple_of(1 << 14) {
                progress(Progress::Assemble { summaries: done, total });
            }
        }
        let pairs = shares.into_iter().map(|(dataset_id, shares)| {
            let count = merge_counts(&shares, distinct.as_mut())?;
            Ok(Pair::new(dataset_id, renumber(shares, &file_ids)?, count))
        });
        assembler.push(&name, pairs.collect::<Result<_>>()?)?;
    }
    let mut outputs = assembler.finish(&mut meta)?;
    outputs.put(META_FILE, &mut meta)?;
    progress(Progress::Assemble { summaries: total, total });
    Ok(meta)
}

/// Writes the list of files and their page tables. Returns the new id of every file, by input and old id.
fn merge_files(
    outputs: &mut Outputs,
    inputs: &[MergeInput<'_>],
    meta: &mut SegmentMeta,
) -> Result<Vec<Vec<Option<u32>>>> {
    let mut list = LinesWriter::new(outputs.create("files.tsv.zst")?, "files.tsv.zst", Keys::None, 9, 32 << 10)?;
    let mut pages = PagesWriter::new(outputs.create("pages.bin")?)?;
    let mut all = Vec::with_capacity(inputs.len());
    let mut next = 0u32;
    for input in inputs {
        let parts = input.segment.parts()?;
        let mut ids = Vec::new();
        for file_id in 0..parts.pages.files() {
            let entry = input.segment.file(file_id)?;
            if input.masked.binary_search(&entry.dataset_id).is_ok() {
                ids.push(None);
                continue;
            }
            let groups: Vec<_> = (0..parts.pages.groups_of(file_id)?).map(|group| (file_id, group)).collect();
            pages.push(&input.segment.page_tables(&groups)?)?;
            meta.rows += entry.rows;
            meta.parquet_files += 1;
            meta.parquet_bytes += entry.bytes;
            let dataset = meta.datasets.entry(entry.dataset_id).or_default();
            dataset.files += 1;
            dataset.bytes += entry.bytes;
            list.push(&FileEntry { file_id: next, ..entry }.to_line()?)?;
            ids.push(Some(next));
            next = next.checked_add(1).ok_or_else(|| Error::Input {
                at: format!("segment {}", meta.id),
                expected: "fewer than 2^32 files",
                found: next.to_string(),
            })?;
        }
        all.push(ids);
    }
    outputs.close_lines("files.tsv.zst", list.finish()?)?;
    outputs.close("pages.bin", pages.finish()?)?;
    Ok(all)
}

fn renumber(shares: Vec<Share>, file_ids: &[Vec<Option<u32>>]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for share in shares {
        for run in share.runs {
            let id = file_ids.get(share.input).and_then(|ids| ids.get(run.file_id as usize)).copied().flatten();
            let file_id = id.ok_or_else(|| Error::Input {
                at: "postings to merge".into(),
                expected: "files of their own dataset",
                found: format!("{run:?}"),
            })?;
            runs.push(Run { file_id, ..run });
        }
    }
    Ok(runs)
}

fn merge_counts(shares: &[Share], distinct: Option<&mut Distinct<'_>>) -> Result<Count> {
    if let [only] = shares
        && (only.count.exact || distinct.is_none())
    {
        return Ok(only.count.clone());
    }
    let mut sum = Count { exact: distinct.is_some(), ..Count::default() };
    for Share { count, .. } in shares {
        sum.rows += count.rows;
        sum.times = match (sum.times, count.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        crate::build::merge_paths(&mut sum.paths, count.paths.clone());
    }
    sum.distinct = match distinct {
        Some(distinct) => distinct.count(shares)?,
        None => shares.iter().fold(0, |sum, share| sum.saturating_add(share.count.distinct)),
    };
    Ok(sum)
}
