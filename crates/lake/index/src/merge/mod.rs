//! Merges segments into one: the same answers from fewer files.
//!
//! Dictionaries are walked side by side; what only one segment knows of a (domain, dataset) is taken over as it is. Where
//! several know of it, or one had only a bound, the distinct URLs are counted again from the rows if that is asked for, and
//! bounded by their sum if not. Files are numbered anew by dataset, commit and prefix, as a build numbers them: later segments have
//! later commits of a dataset, so the order of pages stays.
//!
//! Where all files are split by prefix and it pays, the result is split too: each piece is merged for itself, on threads, of the pieces
//! with its prefix and of the names with its prefix in segments that are split less.

mod distinct;
mod names;

use crate::build::{Assembler, BuildOptions, FileLists, Outputs, Pair};
use crate::counts::Count;
use crate::files::FileEntry;
use crate::meta::SegmentMeta;
use crate::plain::Plain;
use crate::postings::Run;
use crate::split::{digits, join, on_threads, prefixes};
use crate::{Error, Result, Segment};
use distinct::Distinct;
pub(crate) use names::{NameCursor, NameMerge};
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

/// What is taken of a segment, or of a piece of one.
#[derive(Clone, Copy)]
struct Source<'a> {
    plain: &'a Plain,
    masked: &'a [u32],
    /// Only domains of this prefix, and files of it; all, if it is empty.
    only: &'a str,
}

impl Source<'_> {
    fn takes(&self, file: &FileEntry) -> bool {
        self.masked.binary_search(&file.dataset_id).is_err() && file.prefix.starts_with(self.only)
    }

    /// About how many pairs that are: hashes spread evenly.
    fn pairs(&self, digits: usize) -> u64 {
        let pairs = self.plain.meta().pairs;
        if self.only.is_empty() { pairs } else { pairs >> (4 * self.only.len().saturating_sub(digits)) }
    }
}

/// What one source knows of a (domain, dataset): its number, its own file ids, and counts.
struct Share {
    source: usize,
    runs: Vec<Run>,
    count: Count,
}

/// Merges `inputs`, in the order of their version, into segment `id`, split where all files are and it pays.
pub fn merge_segments(
    store: &Arc<dyn Store>,
    id: &str,
    inputs: &[MergeInput<'_>],
    distinct: DistinctUrls,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    let mut opened = Vec::with_capacity(inputs.len());
    for input in inputs {
        let plains = input.segment.open_all()?;
        let named = input.segment.pieces().map(|(prefix, _)| prefix);
        opened.push((named.zip(plains).collect::<Vec<_>>(), input.masked));
    }
    let (mut of_files, mut rows) = (Vec::new(), 0u64);
    for (pieces, masked) in &opened {
        for (_, plain) in pieces {
            let all = Source { plain, masked, only: "" };
            for file_id in 0..plain.files()? {
                let file = plain.file(file_id)?;
                if all.takes(&file) {
                    rows += file.rows;
                    of_files.push(file.prefix);
                }
            }
        }
    }
    let of_files = || of_files.iter().map(String::as_str);
    let split = digits(of_files(), rows, options);
    let work = Work { store, distinct, opened: &opened };
    if split == 0 {
        return work.merge(id, "", options, progress);
    }
    let prefixes: Vec<String> = prefixes(of_files(), split).into_iter().collect();
    // A name is walked past as often as there are pieces, where its segment is not split, but merged once.
    let total = inputs.iter().map(|input| input.segment.len()).sum();
    let merged = on_threads(&prefixes, (Stage::Writing, total), options, progress, &|prefix, options, progress| {
        work.merge(&format!("{id}/{prefix}"), prefix, options, progress)
    })?;
    join(&**store, id, split, &prefixes.into_iter().zip(merged).collect())
}

/// The pieces of a segment, by prefix, and the datasets that are not taken from it.
type Opened<'a> = (Vec<(&'a str, &'a Plain)>, &'a [u32]);

/// A merge of several segments.
struct Work<'a> {
    store: &'a Arc<dyn Store>,
    distinct: DistinctUrls,
    opened: &'a [Opened<'a>],
}

impl Work<'_> {
    /// Merges what has a prefix into `id`.
    fn merge(
        &self,
        id: &str,
        prefix: &str,
        options: &BuildOptions,
        progress: &dyn Fn(Progress),
    ) -> Result<SegmentMeta> {
        let (mut sources, mut pairs) = (Vec::new(), 0u64);
        for (pieces, masked) in self.opened {
            for (of, plain) in pieces.iter().filter(|(of, _)| of.starts_with(prefix) || prefix.starts_with(of)) {
                let only = if of.len() < prefix.len() { prefix } else { "" };
                let source = Source { plain, masked, only };
                pairs += source.pairs(of.len());
                sources.push(source);
            }
        }
        merge_sources(self.store, id, &sources, pairs, self.distinct, options, progress)
    }
}

fn merge_sources(
    store: &Arc<dyn Store>,
    id: &str,
    sources: &[Source<'_>],
    pairs: u64,
    distinct: DistinctUrls,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    let mut outputs = Outputs::new(store, id)?;
    let file_ids = merge_files(&mut outputs, sources)?;
    let mut assembler = Assembler::new(outputs, options, pairs)?;
    let mut distinct = match distinct {
        DistinctUrls::Counted => Some(Distinct::new(store, sources, options)),
        DistinctUrls::Bounded => None,
    };
    let cursors = sources.iter().map(|s| NameCursor::new(s.plain, s.only)).collect::<Result<Vec<_>>>()?;
    let mut names = NameMerge::new(cursors);
    let mut rows: Vec<_> = sources.iter().map(|s| s.plain.walk()).collect();
    let total = sources.iter().map(|s| s.plain.len()).sum();
    let mut done = 0u64;
    let tell = |done| progress(Progress { stage: Stage::Writing, rows: done, done, total });
    while let Some(name) = names.first().and_then(|(_, cursor)| cursor.name()).map(str::to_owned) {
        let mut shares: BTreeMap<u32, Vec<Share>> = BTreeMap::new();
        while let Some((source, cursor)) = names.first().filter(|(_, cursor)| cursor.name() == Some(&name)) {
            if let (Some(of), Some(rows)) = (sources.get(source), rows.get_mut(source)) {
                let slot = cursor.slot();
                for (dataset_id, count) in of.plain.counts(slot)? {
                    if of.masked.binary_search(&dataset_id).is_err() {
                        let runs = rows.runs(slot, dataset_id)?;
                        shares.entry(dataset_id).or_default().push(Share { source, runs, count });
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
    tell(done);
    Ok(meta)
}

/// Writes the list of files and their page tables. Returns the new id of every file, by source and old id.
fn merge_files(outputs: &mut Outputs, sources: &[Source<'_>]) -> Result<Vec<Vec<Option<u32>>>> {
    let mut all = Vec::with_capacity(sources.len());
    let mut taken = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let files = source.plain.files()?;
        all.push(vec![None; files as usize]);
        for file_id in 0..files {
            let entry = source.plain.file(file_id)?;
            if source.takes(&entry) {
                taken.push((number, file_id, entry));
            }
        }
    }
    // Stable: files of one commit and prefix come from one source, in the order of their ranges.
    taken.sort_by(|(.., a), (.., b)| (a.dataset_id, a.added, &a.prefix).cmp(&(b.dataset_id, b.added, &b.prefix)));
    let mut lists = FileLists::new(outputs)?;
    for (number, file_id, entry) in taken {
        let id = all.get_mut(number).and_then(|ids| ids.get_mut(file_id as usize));
        id.into_iter().for_each(|id| *id = Some(lists.next_id()));
        let tables = sources.get(number).map(|source| source.plain.tables_of(file_id)).transpose()?.unwrap_or_default();
        lists.push(entry, &tables, &mut outputs.meta)?;
    }
    lists.finish(outputs)?;
    Ok(all)
}

fn renumber(shares: Vec<Share>, file_ids: &[Vec<Option<u32>>]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for share in shares {
        for run in share.runs {
            let id = file_ids.get(share.source).and_then(|ids| ids.get(run.file_id as usize)).copied().flatten();
            let file_id = id.ok_or_else(|| Error::Input {
                at: "postings to merge".into(),
                expected: "files of their own dataset",
                found: format!("{run:?}"),
            })?;
            runs.push(Run { file_id, ..run });
        }
    }
    runs.sort_unstable_by_key(|run| (run.file_id, run.row_group, run.first_row));
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
