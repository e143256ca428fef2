//! How a manifest is written: what versions share, once.
//!
//! Neighbouring versions have nearly all segments in common. Each segment is described in one list, and versions name it.

use super::{Manifest, SegmentRef};
use std::collections::BTreeMap;

impl Manifest {
    /// As it is written: segments described in `segments`, versions with their ids and what they mask.
    pub(super) fn packed(&self) -> Self {
        let mut described: BTreeMap<&str, SegmentRef> = BTreeMap::new();
        let mut packed = self.clone();
        for (version, short) in self.versions.iter().zip(&mut packed.versions) {
            for (segment, short) in version.segments.iter().zip(&mut short.segments) {
                let plain = SegmentRef { masked: Vec::new(), ..segment.clone() };
                // One that another version describes otherwise keeps its own description.
                if *described.entry(&segment.id).or_insert_with(|| plain.clone()) == plain {
                    *short = segment.short();
                }
            }
        }
        packed.segments = described.into_values().collect();
        packed
    }

    /// As programs use it: every version with the whole description of its segments.
    pub(super) fn unpack(&mut self) {
        let described: BTreeMap<String, SegmentRef> =
            std::mem::take(&mut self.segments).into_iter().map(|segment| (segment.id.clone(), segment)).collect();
        for segment in self.versions.iter_mut().flat_map(|version| &mut version.segments) {
            if let Some(whole) = described.get(&segment.id).filter(|_| *segment == segment.short()) {
                let masked = std::mem::take(&mut segment.masked);
                *segment = SegmentRef { masked, ..whole.clone() };
            }
        }
    }
}
