//! The catalogue and the totals.

use crate::answer::{DatasetInfo, LakeStats};
use crate::pinned::unmasked;
use crate::{NamesQuery, Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trawl_index::{DatasetMeta, Segment};
use trawl_model::UnixMillis;

/// Domains that are counted one by one where segments may share them.
const MAX_COUNTED: u64 = 10_000;

impl Pinned {
    /// The datasets `who` may see, by id, published or not.
    pub fn datasets(&self, who: &Principal) -> Result<Vec<DatasetInfo>, QueryError> {
        let hidden = self.hidden()?;
        let visible = self.manifest().datasets.iter().filter(|d| self.visible(d.id, who).is_some());
        let counted = self.counted_domains(who)?;
        Ok(visible
            .map(|dataset| {
                let (sums, segments) = self.dataset_sums(dataset.id);
                let gone = hidden.of_dataset(dataset.id);
                let bound = sums.domains.saturating_sub(gone.domains);
                let exact = counted.as_ref().map(|counted| counted.get(&dataset.id).copied().unwrap_or(0));
                DatasetInfo {
                    dataset_id: dataset.id,
                    name: dataset.info.name.clone(),
                    source: dataset.info.source.clone(),
                    created: UnixMillis::parse(&dataset.created).unwrap_or_default(),
                    rows: sums.rows.saturating_sub(gone.rows),
                    denied_rows: who.is_operator().then_some(gone.rows),
                    domains: exact.unwrap_or(bound),
                    domains_exact: segments <= 1 || exact.is_some(),
                    bytes: sums.bytes,
                    archive_base: dataset.info.archive_base.clone(),
                    acl: who.is_operator().then(|| dataset.info.acl.clone()),
                    extras_schema: dataset.info.extras_schema.clone(),
                }
            })
            .collect())
    }

    /// Domains of each dataset, counted one by one: where segments may share them, and there are few.
    fn counted_domains(&self, who: &Principal) -> Result<Option<BTreeMap<u32, u64>>, QueryError> {
        let all = self.segments.iter().fold(0u64, |sum, (segment, _)| sum.saturating_add(segment.len()));
        if self.segments.len() < 2 || all > MAX_COUNTED {
            return Ok(None);
        }
        let mut counted = BTreeMap::new();
        self.each_name("", None, &mut |name, found| {
            if !self.deny.domain(name) {
                for (id, _) in self.shown(name, found, who, Segment::bare_counts)? {
                    *counted.entry(id).or_insert(0) += 1;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(counted))
    }

    /// The lake in numbers, as anyone may see it.
    pub fn stats(&self) -> Result<LakeStats, QueryError> {
        self.stats_for(&Principal::anyone())
    }

    /// The lake in numbers, as `who` may see it.
    pub fn stats_for(&self, who: &Principal) -> Result<LakeStats, QueryError> {
        let hidden = self.hidden()?;
        let mut denied = 0;
        let mut sharing = 0;
        let mut stats = LakeStats { version: self.version().to_owned(), ..LakeStats::default() };
        stats.datasets = self.manifest().datasets.iter().filter(|d| self.visible(d.id, who).is_some()).count() as u64;
        for (index, (segment, reference)) in self.segments.iter().enumerate() {
            let meta = segment.meta();
            let (mut domains, mut all, mut datasets, mut rows) = (0u64, true, 0u64, 0u64);
            for (id, dataset) in &meta.datasets {
                if unmasked(reference, *id) && self.visible(*id, who).is_some() {
                    domains += dataset.domains.saturating_sub(hidden.domains_of_share(index, *id));
                    datasets += 1;
                    rows += dataset.rows;
                    stats.files += dataset.files;
                    stats.bytes += dataset.bytes;
                } else {
                    all = false;
                }
            }
            let of_all = meta.domains.saturating_sub(hidden.domains_of(index));
            stats.domains += if all { of_all } else { domains.min(of_all) };
            // Two datasets of which a third is not seen may have domains in common.
            sharing += if all || datasets <= 1 { datasets.min(1) } else { 2 };
            stats.rows += rows;
            // What the index takes for rows of others is theirs: a segment is shared by rows.
            let of_segment: u64 = meta.datasets.values().map(|dataset| dataset.rows).sum();
            let share = u128::from(reference.bytes) * u128::from(rows) / u128::from(of_segment.max(1));
            stats.index_bytes += if all { reference.bytes } else { u64::try_from(share).unwrap_or(reference.bytes) };
            stats.segments += u64::from(all || datasets > 0);
        }
        stats.bytes += stats.index_bytes;
        for dataset in self.manifest().datasets.iter().filter(|d| self.visible(d.id, who).is_some()) {
            denied += hidden.of_dataset(dataset.id).rows;
        }
        stats.rows = stats.rows.saturating_sub(denied);
        stats.denied_rows = who.is_operator().then_some(denied);
        stats.domains_exact = sharing <= 1;
        if !stats.domains_exact && stats.domains <= MAX_COUNTED {
            let all = NamesQuery { limit: usize::MAX, ..NamesQuery::default() };
            let names = self.names(&all, who)?;
            if names.next_after.is_none() {
                stats.domains = names.domains.len() as u64;
                stats.domains_exact = true;
            }
        }
        Ok(stats)
    }

    /// The sums of a dataset over all segments, and how many have rows of it.
    fn dataset_sums(&self, id: u32) -> (DatasetMeta, u64) {
        let (mut sums, mut segments) = (DatasetMeta::default(), 0);
        for (segment, reference) in self.segments.iter().filter(|(_, reference)| unmasked(reference, id)) {
            debug_assert!(segment.id() == reference.id);
            if let Some(share) = segment.meta().datasets.get(&id) {
                segments += 1;
                sums.rows += share.rows;
                sums.domains += share.domains;
                sums.files += share.files;
                sums.bytes += share.bytes;
            }
        }
        (sums, segments)
    }
}
