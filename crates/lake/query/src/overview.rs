//! The catalogue and the totals.

use crate::answer::{DatasetInfo, LakeStats};
use crate::pinned::unmasked;
use crate::{Pinned, Principal, QueryError};
use trawl_index::meta::DatasetMeta;
use trawl_model::UnixMillis;

impl Pinned {
    /// The datasets `who` may see, by id, published or not.
    pub fn datasets(&self, who: &Principal) -> Result<Vec<DatasetInfo>, QueryError> {
        let visible = self.manifest().datasets.iter().filter(|d| self.visible(d.id, who).is_some());
        Ok(visible
            .map(|dataset| {
                let sums = self.dataset_sums(dataset.id);
                DatasetInfo {
                    dataset_id: dataset.id,
                    name: dataset.info.name.clone(),
                    source: dataset.info.source.clone(),
                    created: UnixMillis::parse(&dataset.created).unwrap_or_default(),
                    rows: sums.rows,
                    domains: sums.domains,
                    bytes: sums.bytes,
                    archive_base: dataset.info.archive_base.clone(),
                }
            })
            .collect())
    }

    /// The lake in numbers, as anyone may see it.
    pub fn stats(&self) -> Result<LakeStats, QueryError> {
        self.stats_for(&Principal::anyone())
    }

    /// The lake in numbers, as `who` may see it.
    pub fn stats_for(&self, who: &Principal) -> Result<LakeStats, QueryError> {
        let mut stats = LakeStats { version: self.version().to_owned(), ..LakeStats::default() };
        stats.datasets = self.manifest().datasets.iter().filter(|d| self.visible(d.id, who).is_some()).count() as u64;
        for (segment, reference) in self.segments() {
            let meta = segment.meta();
            let (mut domains, mut all) = (0u64, true);
            for (id, dataset) in &meta.datasets {
                if unmasked(reference, *id) && self.visible(*id, who).is_some() {
                    domains += dataset.domains;
                    stats.rows += dataset.rows;
                    stats.files += dataset.files;
                    stats.bytes += dataset.bytes;
                } else {
                    all = false;
                }
            }
            stats.domains += if all { meta.domains } else { domains.min(meta.domains) };
            stats.index_bytes += reference.bytes;
            stats.segments += 1;
        }
        stats.bytes += stats.index_bytes;
        Ok(stats)
    }

    fn dataset_sums(&self, id: u32) -> DatasetMeta {
        let mut sums = DatasetMeta::default();
        for (segment, reference) in self.segments().iter().filter(|(_, reference)| unmasked(reference, id)) {
            debug_assert!(segment.id() == reference.id);
            if let Some(share) = segment.meta().datasets.get(&id) {
                sums.rows += share.rows;
                sums.domains += share.domains;
                sums.files += share.files;
                sums.bytes += share.bytes;
            }
        }
        sums
    }
}
