//! Writes the files of a segment from domains in order.

use super::BuildOptions;
use super::output::{Out, Outputs};
use super::paths::rank;
use super::summary::Summary;
use crate::counts::{Count, CountsWriter, MAX_PATHS};
use crate::lines::{Keys, LinesWriter};
use crate::membership::MembershipWriter;
use crate::meta::SegmentMeta;
use crate::mphf::{DictionaryHashes, MphfWriter};
use crate::paths::PathsWriter;
use crate::postings::{self, Run, ShardWriter};
use crate::scratch::Scratch;
use crate::times::TimesWriter;
use crate::{Error, Result};
use std::collections::BTreeMap;

const DICTIONARY: &str = "domains.txt.zst";
const MPHF: &str = "domains.mphf";
const MEMBERSHIP: &str = "domain_to_datasets.roar";
const COUNTS: &str = "counts.bin";
const TIMES: &str = "times.bin";
const PATHS: &str = "paths.bin";

/// One dataset's share of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub dataset_id: u32,
    pub runs: Vec<Run>,
    pub count: Count,
    /// The chain all its files belong to, if they do: then distinct URLs add up exactly.
    chain: u32,
}

impl Pair {
    /// A pair with counts that are known already.
    pub fn new(dataset_id: u32, runs: Vec<Run>, count: Count) -> Self {
        Self { dataset_id, runs, count, chain: 0 }
    }

    /// Adds what a further file has.
    pub(super) fn add(&mut self, summary: Summary) {
        self.runs.extend(summary.postings());
        let count = &mut self.count;
        count.rows += summary.rows;
        count.distinct += summary.distinct;
        count.exact &= self.chain == summary.chain;
        count.times = match (count.times, summary.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        merge_paths(&mut count.paths, summary.paths);
    }
}

impl From<Summary> for Pair {
    fn from(summary: Summary) -> Self {
        let runs = summary.postings().collect();
        let Summary { dataset_id, chain, rows, distinct, times, paths, .. } = summary;
        Self { dataset_id, runs, count: Count { rows, distinct, exact: true, times, paths }, chain }
    }
}

pub(crate) fn merge_paths(into: &mut Vec<(String, u64)>, more: Vec<(String, u64)>) {
    for (path, rows) in more {
        match into.iter_mut().find(|(known, _)| *known == path) {
            Some((_, sum)) => *sum += rows,
            None => into.push((path, rows)),
        }
    }
}

/// Writes all files that are in slot order.
pub(crate) struct Assembler {
    outputs: Outputs,
    dictionary: LinesWriter<Out>,
    mphf: MphfWriter<Out>,
    membership: MembershipWriter,
    counts: CountsWriter<Out>,
    times: TimesWriter<Out>,
    paths: PathsWriter<Out>,
    postings: Postings,
    scratch: Scratch,
    shards: u32,
    slots: u64,
    pairs: u64,
    /// Pairs without an exact number of different URLs.
    bounds: u64,
    /// Rows and domains of each dataset.
    datasets: BTreeMap<u32, (u64, u64)>,
}

/// One shard is written as pairs come; many are sorted by shard first, so that one is open at a time.
enum Postings {
    One(Box<ShardWriter<Out>>),
    Many(Box<trawl_sort::Sorter>),
}

impl Assembler {
    pub fn new(outputs: Outputs, options: &BuildOptions, shards: u32) -> Result<Self> {
        let scratch = options.scratch();
        let postings = if shards == 1 {
            let [_, dat] = postings::paths(0);
            Postings::One(Box::new(ShardWriter::new(outputs.create(&dat)?, &scratch)?))
        } else {
            Postings::Many(Box::new(super::sorter(options)?))
        };
        let dictionary = outputs.create(DICTIONARY)?;
        Ok(Self {
            dictionary: LinesWriter::new(dictionary, DICTIONARY, Keys::Sorted, 9, options.dictionary_block_bytes)?,
            mphf: MphfWriter::new(outputs.create(MPHF)?)?,
            membership: MembershipWriter::new(&scratch),
            counts: CountsWriter::new(outputs.create(COUNTS)?)?,
            times: TimesWriter::new(outputs.create(TIMES)?)?,
            paths: PathsWriter::new(outputs.create(PATHS)?)?,
            outputs,
            postings,
            scratch,
            shards,
            slots: 0,
            pairs: 0,
            bounds: 0,
            datasets: BTreeMap::new(),
        })
    }

    /// Adds the next domain with its datasets in order. No datasets, no domain.
    pub fn push(&mut self, domain: &str, pairs: Vec<Pair>) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let begins_block = self.dictionary.push(domain)?;
        self.mphf.push(domain, begins_block)?;
        let ids: Vec<u32> = pairs.iter().map(|p| p.dataset_id).collect();
        self.membership.push(&ids)?;
        self.pairs += pairs.len() as u64;
        let mut counts = Vec::with_capacity(pairs.len());
        for mut pair in pairs {
            self.postings.push(self.slots, self.shards, &pair)?;
            rank(&mut pair.count.paths, MAX_PATHS);
            let (rows, domains) = self.datasets.entry(pair.dataset_id).or_default();
            *rows += pair.count.rows;
            *domains += 1;
            self.bounds += u64::from(!pair.count.exact);
            counts.push(pair.count);
        }
        self.counts.push(&counts)?;
        self.times.push(&counts)?;
        self.paths.push(&counts)?;
        self.slots += 1;
        Ok(())
    }

    /// Ends all files and fills in the totals.
    pub fn finish(mut self, meta: &mut SegmentMeta) -> Result<Outputs> {
        let mut outputs = self.outputs;
        let (out, written) = self.dictionary.finish()?;
        outputs.close_lines(DICTIONARY, (out, written))?;
        let hashes = DictionaryHashes { file: written.hash, table: written.table_hash };
        outputs.close(MPHF, self.mphf.finish(hashes)?)?;
        let out = outputs.create(MEMBERSHIP)?;
        outputs.close(MEMBERSHIP, self.membership.finish(out)?)?;
        outputs.close(COUNTS, self.counts.finish()?)?;
        outputs.close(TIMES, self.times.finish()?)?;
        outputs.close(PATHS, self.paths.finish()?)?;
        self.postings.finish(&mut outputs, self.shards, &self.scratch)?;
        (meta.domains, meta.pairs, meta.shards) = (self.slots, self.pairs, self.shards);
        meta.bounds = self.bounds;
        for (id, (rows, domains)) in std::mem::take(&mut self.datasets) {
            let dataset = meta.datasets.entry(id).or_default();
            (dataset.rows, dataset.domains) = (rows, domains);
        }
        Ok(outputs)
    }
}

impl Postings {
    fn push(&mut self, slot: u64, shards: u32, pair: &Pair) -> Result<()> {
        match self {
            Postings::One(writer) => writer.push(slot, pair.dataset_id, &pair.runs),
            Postings::Many(sorter) => {
                let shard = u32::try_from(slot % u64::from(shards.max(1))).unwrap_or(0);
                let mut key = shard.to_be_bytes().to_vec();
                key.extend_from_slice(&slot.to_be_bytes());
                key.extend_from_slice(&pair.dataset_id.to_be_bytes());
                Ok(sorter.push(&key, &postings::encode_runs(&pair.runs)?)?)
            }
        }
    }

    fn finish(self, outputs: &mut Outputs, shards: u32, scratch: &Scratch) -> Result<()> {
        let mut sorted = match self {
            Postings::One(writer) => return close(*writer, outputs, 0),
            Postings::Many(sorter) => sorter.finish()?,
        };
        let mut next = sorted.next_record()?.map(parse).transpose()?;
        for shard in 0..shards {
            let [_, dat] = postings::paths(shard);
            let mut writer = ShardWriter::new(outputs.create(&dat)?, scratch)?;
            while let Some((_, slot, dataset_id, runs)) = next.take_if(|(of, ..)| *of == shard) {
                writer.push(slot, dataset_id, &runs)?;
                next = sorted.next_record()?.map(parse).transpose()?;
            }
            close(writer, outputs, shard)?;
        }
        Ok(())
    }
}

fn close(writer: ShardWriter<Out>, outputs: &mut Outputs, shard: u32) -> Result<()> {
    let [idx, dat] = postings::paths(shard);
    let (index, payloads) = writer.finish(outputs.create(&idx)?)?;
    outputs.close_lines(&idx, index)?;
    outputs.close_lines(&dat, payloads)
}

fn parse(record: trawl_sort::Record<'_>) -> Result<(u32, u64, u32, Vec<Run>)> {
    let parts = record.key.split_first_chunk::<4>().and_then(|(shard, rest)| {
        let (slot, rest) = rest.split_first_chunk::<8>()?;
        let dataset = rest.first_chunk::<4>()?;
        Some((u32::from_be_bytes(*shard), u64::from_be_bytes(*slot), u32::from_be_bytes(*dataset)))
    });
    let found = || format!("{:02x?}", record.key);
    let bad = || Error::Input { at: "sorted postings".into(), expected: "what was pushed", found: found() };
    let (shard, slot, dataset) = parts.ok_or_else(bad)?;
    Ok((shard, slot, dataset, postings::decode_runs(record.value)?))
}
