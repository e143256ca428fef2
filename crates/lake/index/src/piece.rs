//! A publish by several processes: some make the segment, or shares of its pieces, one makes the version.
//!
//! ```text
//! build_share ── pieces, and what they rest on ──┐
//! build_share ── pieces, and what they rest on ──┴► publish_built ──still so──► a version that has the segment
//!                                                                  ──otherwise─► the segment is made again, here
//! ```

use crate::build::{BuildOptions, build_plain, sort_files};
use crate::meta::SegmentMeta;
use crate::publish::{Plan, Published, Scope, publish_scope, tidy};
use crate::split::{build_pieces, digits_of, join, prefixes};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trawl_model::UnixMillis;
use trawl_store::{Lake, Progress};
use xxhash_rust::xxh3::xxh3_128;

/// What one process made of a segment that no version has yet, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// The name of the segment.
    pub id: String,
    /// Hex digits by which it is split.
    pub split: u8,
    /// The pieces that were made, by prefix; the whole has an empty one.
    pub pieces: BTreeMap<String, SegmentMeta>,
    /// Hash of what the segment is made of: commits and files.
    rests_on: String,
}

/// Which share of a segment's pieces a process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Share {
    /// Whether it has the piece of a prefix: of neighbours, about equally many each.
    fn has(self, prefix: &str) -> bool {
        let all = 1u64 << (4 * prefix.len().min(2));
        let number = u64::from_str_radix(prefix, 16).unwrap_or(0);
        number * u64::from(self.of.max(1)) / all == u64::from(self.number)
    }
}

/// Makes a share of the segment of those files of a dataset that the current version does not cover. `None` if there is nothing to
/// publish. No manifest names the segment: a heartbeat must, until [`publish_built`] has.
///
/// A segment that does not pay to be split is the work of the first share alone, under the name `writer`-`attempt`. The pieces of one
/// that is split have to lie in one directory, so that all attempts write the same files: its name holds the hash of what they
/// are made of, which makes their bytes the same.
pub fn build_share(
    lake: &Lake,
    dataset_id: u32,
    writer: &str,
    attempt: &str,
    share: Share,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Option<Built>> {
    let plan = plan(lake, dataset_id)?;
    if plan.is_empty() {
        return Ok(None);
    }
    let (split, rests_on) = (digits_of(&plan.files, options), rests_on(&plan, options)?);
    let mut built = Built { id: format!("{writer}-{attempt}"), split, pieces: BTreeMap::new(), rests_on };
    if split == 0 {
        if share.number == 0 && !plan.files.is_empty() {
            let whole = build_plain(lake.store(), &built.id, &plan.files, options, progress)?;
            built.pieces.insert(String::new(), whole);
        }
        return Ok(Some(built));
    }
    built.id = format!("{writer}-{}", built.rests_on);
    let own: Vec<String> = all_prefixes(&plan, split).into_iter().filter(|prefix| share.has(prefix)).collect();
    built.pieces = build_pieces(lake.store(), &built.id, &plan.files, &own, options, progress)?;
    Ok(Some(built))
}

/// Makes a version of what all shares made. If others changed meanwhile what it rests on, the segment is made again; if a version
/// serves the dataset's newest commit already, nothing happens. May be repeated, and called by several at once: `writer` is the
/// same each time, and refused if a collector gave it up; `attempt` is new each time, and names the segments made here.
#[expect(clippy::too_many_arguments, reason = "who, what, and the room of the machine")]
pub fn publish_built(
    lake: &Lake,
    dataset_id: u32,
    built: &[Built],
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    attempt: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    let mut plan = plan(lake, dataset_id)?;
    let (waiting, damaged) = (std::mem::take(&mut plan.waiting), std::mem::take(&mut plan.damaged));
    let mut published = Published { waiting, damaged, ..Published::default() };
    if plan.is_empty() {
        return Ok(published);
    }
    if let Some(segment) = whole(lake, &plan, built, options)? {
        for (dataset_id, sequence) in &plan.commits {
            lake.renew_commit_copy(*dataset_id, *sequence)?;
        }
        let reference = segment.as_ref().map(|meta| meta.to_ref(0)).transpose()?;
        let committed =
            lake.commit(now(), writer, |manifest| plan.apply_if_there(lake, manifest, now, reference.clone()))?;
        if let Some(version) = committed.value {
            published.version = Some(version);
            published.segment = segment;
            published.commits = plan.commits;
            tidy(lake, &mut published, now, attempt, options, progress);
            return Ok(published);
        }
    }
    publish_scope(lake, &Scope::Only(dataset_id), now, attempt, options, progress)
}

/// The segment of all shares, if a plan has files; `None` if they rest on something else, or some pieces are missing.
#[expect(clippy::option_option, reason = "a version without new files has no new segment")]
fn whole(lake: &Lake, plan: &Plan, built: &[Built], options: &BuildOptions) -> Result<Option<Option<SegmentMeta>>> {
    let (expected, split) = (rests_on(plan, options)?, digits_of(&plan.files, options));
    if built.iter().any(|share| (&share.rests_on, share.split) != (&expected, split)) {
        return Ok(None);
    }
    if plan.files.is_empty() {
        return Ok(Some(None));
    }
    let pieces: BTreeMap<String, SegmentMeta> = built.iter().flat_map(|share| share.pieces.clone()).collect();
    if split == 0 {
        return Ok(pieces.into_values().next().map(Some));
    }
    let Some(first) = built.first() else { return Ok(None) };
    let in_place = |(prefix, piece): (&String, &SegmentMeta)| piece.id == format!("{}/{prefix}", first.id);
    if !pieces.keys().eq(all_prefixes(plan, split).iter()) || !pieces.iter().all(in_place) {
        return Ok(None);
    }
    Ok(Some(Some(join(&**lake.store(), &first.id, split, &pieces)?)))
}

fn all_prefixes(plan: &Plan, split: u8) -> BTreeSet<String> {
    prefixes(plan.files.iter().map(|source| source.file.prefix.as_str()), split)
}

fn plan(lake: &Lake, dataset_id: u32) -> Result<Plan> {
    let manifest = lake.current()?;
    if manifest.dataset(dataset_id).is_none() {
        return Err(Error::Store(trawl_store::Error::UnknownDataset { found: dataset_id.to_string() }));
    }
    let mut plan = Plan::new(lake, &manifest, &Scope::Only(dataset_id), None)?;
    sort_files(&mut plan.files);
    Ok(plan)
}

/// Hash of what a segment is made of, and by which settings: two with the same hash have the same bytes.
fn rests_on(plan: &Plan, options: &BuildOptions) -> Result<String> {
    let files: Vec<_> = plan.files.iter().map(|source| (source.dataset_id, &source.file)).collect();
    let settings = (options.piece_rows, options.shards, options.dictionary_block_bytes);
    let all = (&plan.base, &plan.commits, files, settings);
    let text = serde_json::to_vec(&all).map_err(|error| Error::Input {
        at: "a plan to publish".into(),
        expected: "files that can be written as JSON",
        found: error.to_string(),
    })?;
    Ok(format!("{:032x}", xxh3_128(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_of_one_share() {
        for of in [1, 2, 3, 5, 16, 100, 256, 1000] {
            for digits in [1usize, 2] {
                for number in 0..1 << (4 * digits) {
                    let prefix = format!("{number:0digits$x}");
                    let owners = (0..of).filter(|number| Share { number: *number, of }.has(&prefix)).count();
                    assert_eq!(owners, 1, "{prefix} of {of}");
                }
            }
        }
    }
}
