//! Keeps the list of segments short.

use crate::build::BuildOptions;
use crate::merge::{DistinctUrls, MergeInput, merge_segments};
use crate::meta::{SegmentMeta, has_bounds};
use crate::publish::attempts;
use crate::{Caches, OpenOptions, Result, Segment};
use std::ops::Range;
use std::sync::Arc;
use trawl_model::UnixMillis;
use trawl_store::{AtWork, Lake, Manifest, Progress, SegmentRef, layout};

/// Segments a version has at most after a tiered compaction: each costs a lookup that finds a domain nothing, or a block.
pub const MAX_SEGMENTS: usize = 8;

/// How much to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// If there are more than [`MAX_SEGMENTS`]: neighbours that are small, and many. No row is
    /// read: what several of them know of a (domain, dataset) is summed, and the distinct URLs are a bound then.
    Tiered,
    /// The first segment of which some datasets are no longer taken, alone: without what it knows of them. No row is read.
    Masked,
    /// Everything into one segment, with exact distinct counts; split by prefix where that pays.
    Full,
    /// The same, never split: the original single set of files.
    Single,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The version readers use now.
    pub version: String,
    /// The segments that were merged.
    pub merged: Vec<String>,
    /// What they became.
    pub segment: SegmentMeta,
}

/// Merges segments of the current version; `None` if there is nothing to do. `writer` must be new for each call; `now`
/// is the clock. The merged segments stay until no kept version names them.
pub fn compact(
    lake: &Lake,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    how: Compaction,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Option<Compacted>> {
    attempts(now, writer, |id| {
        let manifest = lake.current()?;
        let segments = manifest.current().map(|v| v.segments.clone()).unwrap_or_default();
        let chosen = segments.get(choose(&segments, how)).unwrap_or_default();
        if chosen.is_empty() {
            return Ok(Some(None));
        }
        let at_work = AtWork::start(lake, now, writer, "compact", layout::segment_dir(id)?)?;
        let segment = merge(lake, id, chosen, how, options, &|p| {
            at_work.now_and_then();
            progress(p);
        })?;
        let level = chosen.iter().map(|s| s.level).max().unwrap_or(0).saturating_add(1);
        let reference = segment.to_ref(level)?;
        let version = at_work.commit(|| {
            Ok(lake.commit(now(), writer, |manifest| Ok(replace(manifest, now(), chosen, &reference)))?.value)
        })?;
        let merged = chosen.iter().map(|s| s.id.clone()).collect();
        Ok(version.map(|version| Some(Compacted { version, merged, segment })))
    })
}

/// Which neighbours to merge.
fn choose(segments: &[SegmentRef], how: Compaction) -> Range<usize> {
    match how {
        Compaction::Full | Compaction::Single
            if segments.len() > 1
                || segments
                    .iter()
                    .any(|s| !s.masked.is_empty() || has_bounds(s) || how == Compaction::Single && s.split > 0) =>
        {
            0..segments.len()
        }
        Compaction::Tiered if segments.len() > MAX_SEGMENTS => cheapest(segments),
        Compaction::Masked => {
            segments.iter().position(|s| !s.masked.is_empty()).map_or(0..0, |masked| masked..masked + 1)
        }
        _ => 0..0,
    }
}

/// The neighbours to merge: little to write, and many segments that go. The cube of their number makes few large merges
/// out of many small ones: over thousands of publishes a row is written seven to ten times, where the plain ratio wrote it
/// up to two hundred times, and a large segment is left alone until its neighbours have grown.
fn cheapest(segments: &[SegmentRef]) -> Range<usize> {
    let mut best = (f64::INFINITY, 0..0);
    for start in 0..segments.len() {
        let mut bytes = 0u64;
        for (gone, segment) in segments.iter().skip(start).enumerate() {
            bytes = bytes.saturating_add(segment.bytes.max(1));
            #[expect(clippy::cast_precision_loss, reason = "a cost to compare")]
            let cost = bytes as f64 / (gone as f64).powi(3);
            if gone > 0 && (cost < best.0 || cost <= best.0 && gone + 1 > best.1.len()) {
                best = (cost, start..start + gone + 1);
            }
        }
    }
    best.1
}

fn merge(
    lake: &Lake,
    id: &str,
    chosen: &[SegmentRef],
    how: Compaction,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    let caches = Arc::new(Caches::default());
    let open = |s: &SegmentRef| Segment::open(lake.store(), s, &caches, OpenOptions::default());
    let segments = chosen.iter().map(open).collect::<Result<Vec<_>>>()?;
    let inputs: Vec<_> =
        segments.iter().zip(chosen).map(|(segment, s)| MergeInput { segment, masked: &s.masked }).collect();
    let distinct = match how {
        Compaction::Tiered | Compaction::Masked => DistinctUrls::Bounded,
        Compaction::Full | Compaction::Single => DistinctUrls::Counted,
    };
    let piece_rows = if how == Compaction::Single { u64::MAX } else { options.piece_rows };
    let options = &BuildOptions { piece_rows, ..options.clone() };
    merge_segments(lake.store(), id, &inputs, distinct, options, progress)
}

/// Puts the merged segment in the place of those it came from; `None` if they are no longer as they were.
fn replace(manifest: &mut Manifest, now: UnixMillis, old: &[SegmentRef], new: &SegmentRef) -> Option<String> {
    let current = manifest.current()?.clone();
    let mut segments = current.segments;
    let start = segments.windows(old.len()).position(|window| window == old)?;
    segments.splice(start..start + old.len(), [new.clone()]);
    Some(manifest.publish(now, segments, current.commits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(sizes: &[u64]) -> Vec<SegmentRef> {
        sizes.iter().map(|bytes| SegmentRef { bytes: *bytes, ..SegmentRef::default() }).collect()
    }

    #[test]
    fn the_smallest_neighbours_are_merged() {
        assert_eq!(choose(&segments(&[1; 8]), Compaction::Tiered), 0..0);
        assert_eq!(choose(&segments(&[900, 80, 1, 2, 3, 1, 1, 1, 1]), Compaction::Tiered), 2..9);
        assert_eq!(choose(&segments(&[1, 1, 1, 1, 1, 1, 500, 1, 1]), Compaction::Tiered), 0..6);
        assert_eq!(choose(&segments(&[0; 9]), Compaction::Tiered), 0..9);
        assert_eq!(choose(&segments(&[1, 2]), Compaction::Full), 0..2);
        assert_eq!(choose(&segments(&[1]), Compaction::Full), 0..0);
        assert_eq!(choose(&segments(&[]), Compaction::Full), 0..0);
        let masked = SegmentRef { masked: vec![1], ..SegmentRef::default() };
        assert_eq!(choose(&[SegmentRef::default(), masked.clone(), masked.clone()], Compaction::Masked), 1..2);
        assert_eq!(choose(&segments(&[1; 20]), Compaction::Masked), 0..0);
        assert_eq!(choose(&[masked], Compaction::Full), 0..1);
        let split = SegmentRef { split: 1, ..SegmentRef::default() };
        assert_eq!(choose(std::slice::from_ref(&split), Compaction::Full), 0..0);
        assert_eq!(choose(&[split], Compaction::Single), 0..1);
        assert_eq!(choose(&segments(&[1]), Compaction::Single), 0..0);
    }

    #[test]
    fn over_many_publishes_each_row_is_merged_a_few_times() {
        let (mut sizes, mut written, publishes) = (vec![1_000_000], 0, 5_000);
        for _ in 0..publishes {
            sizes.push(1);
            let chosen = choose(&segments(&sizes), Compaction::Tiered);
            if !chosen.is_empty() {
                let merged = sizes[chosen.clone()].iter().sum::<u64>();
                written += merged;
                sizes.splice(chosen, [merged]);
            }
            assert!(sizes.len() <= MAX_SEGMENTS);
        }
        assert_eq!(sizes.first(), Some(&1_000_000), "the large one is left alone");
        assert!(written < 10 * publishes, "{written} for {publishes}");
    }
}
