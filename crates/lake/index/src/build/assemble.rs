//! Writes the files of a segment from domains in order.

use super::BuildOptions;
use super::output::{Out, Outputs};
use super::summary::Summary;
use crate::counts::{Count, Counts};
use crate::lines::{Keys, LinesWriter};
use crate::membership::{self, MembershipWriter};
use crate::meta::SegmentMeta;
use crate::mphf::{DictionaryHashes, MphfWriter};
use crate::paths::Paths;
use crate::postings::{self, Run, ShardWriter};
use crate::scratch::Scratch;
use crate::slots::{BLOCK_SLOTS, Record, SlotWriter};
use crate::times::Times;
use crate::{Error, Result};
use std::collections::BTreeMap;

const DICTIONARY: &str = "domains.txt.zst";
const MPHF: &str = "domains.mphf";

/// One dataset's share of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub dataset_id: u32,
    pub runs: Vec<Run>,
    pub count: Count,
    /// The chain all its files belong to, if they do: then distinct URLs add up exactly.
    chain: u64,
}

impl Pair {
    /// A pair with counts that are known already.
    pub fn new(dataset_id: u32, runs: Vec<Run>, count: Count) -> Self {
        Self { dataset_id, runs, count, chain: 0 }
    }

    /// Adds what a further file has.
    pub(super) fn add(&mut self, summary: Summary) {
        self.runs.extend(summary.runs);
        // Files of one chain have no URL in common.
        let exact = self.count.exact && self.chain == summary.chain;
        self.count.add(summary.count);
        self.count.exact = exact;
    }
}

impl From<Summary> for Pair {
    fn from(summary: Summary) -> Self {
        let Summary { dataset_id, chain, count, runs, .. } = summary;
        Self { dataset_id, runs, count, chain }
    }
}

/// Writes all files that are in slot order.
pub(crate) struct Assembler {
    outputs: Outputs,
    dictionary: LinesWriter<Out>,
    mphf: MphfWriter<Out>,
    membership: MembershipWriter,
    counts: SlotWriter<Counts, Out>,
    times: SlotWriter<Times, Out>,
    paths: SlotWriter<Paths, Out>,
    /// Counts of the slots of a block.
    block: Vec<Vec<Count>>,
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
    /// For about as many (domain, dataset) pairs.
    pub fn new(outputs: Outputs, options: &BuildOptions, pairs: u64) -> Result<Self> {
        let shards = options.shards.unwrap_or_else(|| postings::shards_for(pairs)).clamp(1, postings::MAX_SHARDS);
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
            counts: SlotWriter::new(outputs.create(Counts::FILE)?)?,
            times: SlotWriter::new(outputs.create(Times::FILE)?)?,
            paths: SlotWriter::new(outputs.create(Paths::FILE)?)?,
            block: Vec::with_capacity(BLOCK_SLOTS),
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
            pair.count.rank_paths();
            let (rows, domains) = self.datasets.entry(pair.dataset_id).or_default();
            *rows += pair.count.rows;
            *domains += 1;
            self.bounds += u64::from(!pair.count.exact);
            counts.push(pair.count);
        }
        self.block.push(counts);
        self.slots += 1;
        if self.block.len() == BLOCK_SLOTS { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.counts.block(&self.block)?;
            self.times.block(&self.block)?;
            self.paths.block(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    /// Ends all files and fills in the totals.
    pub fn finish(mut self) -> Result<SegmentMeta> {
        self.end_block()?;
        let mut outputs = self.outputs;
        let (dictionary, table) = self.dictionary.finish()?;
        let file = outputs.close(DICTIONARY, dictionary)?;
        outputs.close(MPHF, self.mphf.finish(DictionaryHashes { file, table })?)?;
        let out = outputs.create(membership::FILE)?;
        outputs.close(membership::FILE, self.membership.finish(out)?)?;
        outputs.close(Counts::FILE, self.counts.finish()?)?;
        outputs.close(Times::FILE, self.times.finish()?)?;
        outputs.close(Paths::FILE, self.paths.finish()?)?;
        self.postings.finish(&mut outputs, self.shards, &self.scratch)?;
        let meta = &mut outputs.meta;
        (meta.domains, meta.pairs, meta.shards, meta.bounds) = (self.slots, self.pairs, self.shards, self.bounds);
        for (id, (rows, domains)) in self.datasets {
            let dataset = meta.datasets.entry(id).or_default();
            (dataset.rows, dataset.domains) = (rows, domains);
        }
        outputs.finish()
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
    outputs.close(&idx, index)?;
    outputs.close(&dat, payloads)?;
    Ok(())
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
