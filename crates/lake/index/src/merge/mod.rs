//! Merges segments into one: the same answers from fewer files.
//!
//! Dictionaries are walked side by side; what only one segment knows of a (domain, dataset) is taken over as it is. Where
//! several know of it, or one had only a bound, the distinct URLs are counted again from the rows if that is asked for, and
//! bounded by their sum if not. File ids move up by
//! the files of the segments before, so the order of pages stays.

mod distinct;
mod names;

use crate::build::{Assembler, BuildOptions, FileLists, Outputs, Pair};
use crate::counts::Count;
use crate::meta::SegmentMeta;
use crate::postings::Run;
use crate::{Error, Result, Segment};
use distinct::Distinct;
use names::{NameCursor, NameMerge};
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_store::{Progress, Stage, Store};

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
    let mut outputs = Outputs::new(store, id)?;
    let file_ids = merge_files(&mut outputs, inputs)?;
    let pairs = inputs.iter().map(|i| i.segment.meta().pairs).sum();
    let mut assembler = Assembler::new(outputs, options, pairs)?;
    let mut distinct = match distinct {
        DistinctUrls::Counted => Some(Distinct::new(store, inputs, options)),
        DistinctUrls::Bounded => None,
    };
    let cursors = inputs.iter().map(|i| NameCursor::new(i.segment)).collect::<Result<Vec<_>>>()?;
    let mut names = NameMerge::new(cursors);
    let mut rows: Vec<_> = inputs.iter().map(|i| i.segment.walk()).collect();
    let total = inputs.iter().map(|i| i.segment.len()).sum();
    let mut done = 0u64;
    let tell = |done| progress(Progress { stage: Stage::Writing, rows: done, done, total });
    while let Some(name) = names.first().and_then(|(_, cursor)| cursor.name()).map(str::to_owned) {
        let mut shares: BTreeMap<u32, Vec<Share>> = BTreeMap::new();
        while let Some((input, cursor)) = names.first().filter(|(_, cursor)| cursor.name() == Some(&name)) {
            if let (Some(of), Some(rows)) = (inputs.get(input), rows.get_mut(input)) {
                let slot = cursor.slot();
                for (dataset_id, count) in of.segment.counts(slot)? {
                    if of.masked.binary_search(&dataset_id).is_err() {
                        let runs = rows.runs(slot, dataset_id)?;
                        shares.entry(dataset_id).or_default().push(Share { input, runs, count });
                    }
                }
            }
            names.advance()?;
            done += 1;
            if done.is_multiple_of(1 << 14) {
                tell(done);
                options.cancel.check()?;
            }
        }
        let pairs = shares.into_iter().map(|(dataset_id, shares)| {
            let count = merge_counts(&shares, distinct.as_mut())?;
            Ok(Pair::new(dataset_id, renumber(shares, &file_ids)?, count))
        });
        assembler.push(&name, pairs.collect::<Result<_>>()?)?;
    }
    let meta = assembler.finish()?;
    tell(total);
    Ok(meta)
}

/// Writes the list of files and their page tables. Returns the new id of every file, by input and old id.
fn merge_files(outputs: &mut Outputs, inputs: &[MergeInput<'_>]) -> Result<Vec<Vec<Option<u32>>>> {
    let mut lists = FileLists::new(outputs)?;
    let mut all = Vec::with_capacity(inputs.len());
    for input in inputs {
        let mut ids = Vec::new();
        for file_id in 0..input.segment.files()? {
            let entry = input.segment.file(file_id)?;
            if input.masked.binary_search(&entry.dataset_id).is_ok() {
                ids.push(None);
                continue;
            }
            ids.push(Some(lists.next_id()));
            lists.push(entry, &input.segment.tables_of(file_id)?, &mut outputs.meta)?;
        }
        all.push(ids);
    }
    lists.finish(outputs)?;
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
    let mut sum = Count::default();
    shares.iter().for_each(|share| sum.add(share.count.clone()));
    if let Some(distinct) = distinct {
        (sum.distinct, sum.exact) = (distinct.count(shares)?, true);
    }
    Ok(sum)
}
