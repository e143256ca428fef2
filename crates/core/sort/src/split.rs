//! Dividing sorted records into parts of about equal size, for several threads to read.
//!
//! Keys are sampled evenly from every buffer or run; the parts are bounded by quantiles of the sample.

use crate::arena::SortedBuffer;
use crate::block::{Unpacker, malformed, record_at};
use crate::merge::Merge;
use crate::plan::Plan;
use crate::run::Run;
use crate::source::KeyRange;
use std::sync::Arc;
use trawl_io::{Error, File, Op, Result};

/// Samples for each part: a part is then within some percent of its share.
const SAMPLES: usize = 64;

/// A sampled key is cut to this: a bound need not be a key, and keys may be large.
const SAMPLE_BYTES: usize = 1024;

/// A sampled key and how much it stands for.
type Sample = (Vec<u8>, u64);

fn sample(key: &[u8], weight: u64) -> Sample {
    (key.get(..SAMPLE_BYTES).unwrap_or(key).to_vec(), weight)
}

/// The keys at which to divide into `parts`: one less than there are parts.
fn bounds(mut samples: Vec<Sample>, parts: usize) -> Vec<Arc<[u8]>> {
    samples.sort();
    let total: u64 = samples.iter().map(|s| s.1).sum();
    let mut bounds = Vec::new();
    let mut seen = 0;
    for (key, weight) in &samples {
        while bounds.len() + 1 < parts && seen * parts as u64 >= total * (bounds.len() as u64 + 1) {
            bounds.push(Arc::from(key.as_slice()));
        }
        seen += weight;
    }
    // One key that makes up several parts bounds only one of them.
    bounds.dedup();
    bounds
}

/// The ranges between bounds, from no lower bound to no upper one.
pub(crate) fn ranges(bounds: Vec<Arc<[u8]>>) -> Vec<KeyRange> {
    let from = std::iter::once(None).chain(bounds.iter().cloned().map(Some));
    let until = bounds.iter().cloned().map(Some).chain([None]);
    from.zip(until).map(|(from, until)| KeyRange { from, until }).collect()
}

/// Bounds for records in memory.
pub(crate) fn of_buffers(buffers: &[Arc<SortedBuffer>], parts: usize) -> Vec<Arc<[u8]>> {
    if parts < 2 {
        return Vec::new();
    }
    let total: usize = buffers.iter().map(|b| b.len()).sum();
    let step = (total / (SAMPLES * parts)).max(1);
    let nth = |b: &SortedBuffer, n: usize| b.get(n).map(|(key, _)| sample(key, step as u64));
    let samples = buffers.iter().flat_map(|b| (0..b.len()).step_by(step).filter_map(|n| nth(b, n)));
    bounds(samples.collect(), parts)
}

/// Merges of runs, one for each part.
pub(crate) fn merges(runs: &[Arc<Run>], parts: usize, plan: &Plan) -> Result<Vec<Merge>> {
    if parts < 2 {
        let whole = runs.iter().map(|run| (run.clone(), run.start)).collect();
        return Ok(vec![Merge::start(whole, &KeyRange::default())?]);
    }
    // The lists of blocks may take a sixteenth of the budget, which nothing else uses yet.
    let most = (plan.memory / 16 / 16 / runs.len().max(1)).max(SAMPLES);
    let mut scratch = Scratch::new()?;
    let indexed = runs.iter().map(|run| Blocks::of(run, most)).collect::<Result<Vec<_>>>()?;
    let total: u64 = runs.iter().map(|run| run.len).sum();
    let mut samples = Vec::new();
    for blocks in &indexed {
        let share = (blocks.run.len.saturating_mul((SAMPLES * parts) as u64) / total.max(1)).max(1);
        let step = (blocks.offsets.len() as u64 / share).max(1);
        let weight = blocks.run.len * step / blocks.offsets.len().max(1) as u64;
        for &offset in blocks.offsets.iter().step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            samples.push(sample(blocks.first_key(offset, &mut scratch)?, weight));
        }
    }
    let mut merges = Vec::new();
    for keys in ranges(bounds(samples, parts)) {
        let mut starts = Vec::new();
        for blocks in &indexed {
            let start = keys.from.as_ref().map_or(Ok(blocks.run.start), |from| blocks.start_of(from, &mut scratch))?;
            starts.push((blocks.run.clone(), start));
        }
        merges.push(Merge::start(starts, &keys)?);
    }
    Ok(merges)
}

/// Memory to unpack a block.
struct Scratch {
    unpacker: Unpacker,
    raw: Vec<u8>,
}

impl Scratch {
    fn new() -> Result<Self> {
        let unpacker = Unpacker::new().map_err(|e| Error::io(Op::Read, "(zstd)", e))?;
        Ok(Scratch { unpacker, raw: Vec::new() })
    }
}

/// Where blocks of a run begin.
struct Blocks {
    run: Arc<Run>,
    file: Arc<dyn File>,
    offsets: Vec<u64>,
}

impl Blocks {
    fn of(run: &Arc<Run>, most: usize) -> Result<Self> {
        Ok(Blocks { file: run.open()?, offsets: run.blocks(most)?, run: run.clone() })
    }

    /// The first key of the block at `offset`.
    fn first_key<'a>(&self, offset: u64, scratch: &'a mut Scratch) -> Result<&'a [u8]> {
        scratch.unpacker.read(&*self.file, offset, self.run.need.block, &mut scratch.raw)?;
        let record = record_at(&scratch.raw, 0).ok_or_else(|| malformed(&self.run.path, offset))?;
        Ok(scratch.raw.get(record.key_at..record.value_at).unwrap_or_default())
    }

    /// The last block that begins below `bound`, or the first: all before it are below.
    fn start_of(&self, bound: &[u8], scratch: &mut Scratch) -> Result<u64> {
        let (mut low, mut high) = (0, self.offsets.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let offset = self.offsets.get(middle).copied().unwrap_or(self.run.start);
            if self.first_key(offset, scratch)? < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(self.offsets.get(low.saturating_sub(1)).copied().unwrap_or(self.run.start))
    }
}
