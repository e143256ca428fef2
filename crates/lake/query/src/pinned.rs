//! One version of the lake, held still.

use crate::hidden::KnownHidden;
use crate::lake::Inner;
use crate::{Principal, QueryError, name};
use std::sync::Arc;
use trawl_index::{Segment, Slot};
use trawl_store::denial::DenyList;
use trawl_store::{Dataset, Manifest, SegmentRef};
use trawl_url::SuffixList;

/// One version of the lake. Its answers do not change, whatever is published meanwhile; they end when a collector takes it,
/// which is what [`Pinned::explain`] finds out, and [`crate::Lake::ask`] deals with.
pub struct Pinned {
    pub(crate) inner: Arc<Inner>,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) version: String,
    pub(crate) segments: Vec<(Arc<Segment>, SegmentRef)>,
    pub(crate) suffixes: Arc<SuffixList>,
    pub(crate) deny: DenyList,
    pub(crate) known_hidden: KnownHidden,
}

/// A domain found in a segment.
pub(crate) struct Found<'a> {
    /// Place of the segment in the version.
    pub index: usize,
    pub segment: &'a Segment,
    pub reference: &'a SegmentRef,
    pub slot: Slot,
}

impl Pinned {
    /// The name of the version; empty while nothing was published.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The registrable domain that a request for `name` is about.
    pub fn domain_of(&self, name: &str) -> Result<String, QueryError> {
        name::registrable(name, &self.suffixes)
    }

    /// The state of the lake it was pinned in.
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// What to make of an error of one of its answers: if the version was collected meanwhile, that it is gone.
    pub fn explain(&self, error: QueryError) -> QueryError {
        match (&error, self.inner.newest()) {
            (QueryError::Lake { .. }, Ok(newest)) if newest.version(&self.version).is_none() => {
                QueryError::Gone { version: self.version.clone() }
            }
            _ => error,
        }
    }

    /// Whether it shows nothing that a later state of the lake does not, and nobody has collected it.
    pub(crate) fn may_answer_for(&self, manifest: &Manifest) -> bool {
        self.manifest.shows_the_same(manifest) && manifest.version(&self.version).is_some()
    }

    /// A dataset if it is there and `who` may see it.
    pub(crate) fn visible(&self, dataset_id: u32, who: &Principal) -> Option<&Dataset> {
        self.manifest.dataset(dataset_id).filter(|d| !d.dropped && !self.deny.dataset(d.id) && who.may_see(&d.info.acl))
    }

    /// A domain's places in segments, if the slots are known.
    pub(crate) fn places(&self, slots: &[(usize, Slot)]) -> Vec<Found<'_>> {
        let place = |&(index, slot): &(usize, Slot)| {
            let (segment, reference) = self.segments.get(index)?;
            Some(Found { index, segment, reference, slot })
        };
        slots.iter().filter_map(place).collect()
    }

    /// Every segment that has the domain. Denied domains are looked up like others and then found nowhere.
    pub(crate) fn find(&self, domain: &str) -> Result<Vec<Found<'_>>, QueryError> {
        let mut found = self.find_any(domain)?;
        if self.deny.domain(domain) {
            found.clear();
        }
        Ok(found)
    }

    /// Every segment that has the domain, denied or not.
    pub(crate) fn find_any(&self, domain: &str) -> Result<Vec<Found<'_>>, QueryError> {
        let mut found = Vec::new();
        for (index, (segment, reference)) in self.segments.iter().enumerate() {
            if let Some(slot) = segment.lookup(domain)? {
                found.push(Found { index, segment, reference, slot });
            }
        }
        Ok(found)
    }
}

/// Whether a version still takes the dataset from a segment.
pub(crate) fn unmasked(reference: &SegmentRef, dataset_id: u32) -> bool {
    reference.masked.binary_search(&dataset_id).is_err()
}
