//! One version of the lake, held still.

use crate::hidden::KnownHidden;
use crate::lake::Inner;
use crate::{Effort, Pace, Principal, QueryError, name};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use trawl_index::{Segment, Slot};
use trawl_store::denial::{DenyList, SharedNames};
use trawl_store::{Acl, Dataset, Manifest, SegmentRef, dataset_number};
use trawl_url::SuffixList;
use xxhash_rust::xxh3::xxh3_64;

/// One version of the lake, and how much effort its answers may take. Answers do not change, whatever is published meanwhile;
/// they end when a collector takes the version, which is what [`Pinned::explain`] finds out, and [`crate::Lake::ask`] deals with.
pub struct Pinned {
    view: Arc<View>,
    effort: Effort,
}

/// What all requests that pinned one version share.
pub struct View {
    pub(crate) inner: Arc<Inner>,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) version: String,
    pub(crate) segments: Vec<(Arc<Segment>, SegmentRef)>,
    pub(crate) suffixes: Arc<SuffixList>,
    pub(crate) deny: DenyList,
    pub(crate) known_hidden: KnownHidden,
    pub(crate) shared_names: OnceLock<SharedNames>,
}

impl Deref for Pinned {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// A domain found in a segment.
pub(crate) struct Found<'a> {
    /// Place of the segment in the version.
    pub index: usize,
    pub segment: &'a Segment,
    pub reference: &'a SegmentRef,
    pub slot: Slot,
    /// It is another domain, read in place of one that is nowhere; nothing of it may be shown.
    pub is_decoy: bool,
}

impl Found<'_> {
    /// Whether the version takes a dataset of the domain from this place.
    pub fn tells_of(&self, dataset_id: u32) -> bool {
        !self.is_decoy && unmasked(self.reference, dataset_id)
    }
}

impl Pinned {
    pub(crate) fn new(view: View, effort: Effort) -> Self {
        Self { view: Arc::new(view), effort }
    }

    /// The same version, asked with another effort.
    #[must_use]
    pub fn within(&self, effort: Effort) -> Self {
        Self { view: self.view.clone(), effort }
    }

    pub(crate) fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Whether an answer that may be partial should end here; an error if its client has left.
    pub(crate) fn is_enough(&self) -> Result<bool, QueryError> {
        match self.effort.pace() {
            Pace::GoOn => Ok(false),
            Pace::WrapUp => Ok(true),
            Pace::Stop => Err(QueryError::Cancelled),
        }
    }

    /// The name of the version; empty while nothing was published.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// This version or an older one, by its name, for an answer that goes on; an error if it is no longer kept.
    pub fn at(&self, version: &str) -> Result<Pinned, QueryError> {
        if version == self.version() { Ok(self.within(self.effort.clone())) } else { self.older(version) }
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

    /// Whether it shows nothing that a later state of the lake does not, and has not been collected. A dataset that is new there
    /// is not a reason to wait: it came with every `ingest --dataset NEW`, and all requests stood still until its version was
    /// open.
    pub(crate) fn may_answer_for(&self, manifest: &Manifest) -> bool {
        let is_still_so = |dataset: &Arc<Dataset>| manifest.dataset(dataset.id) == Some(&**dataset);
        self.manifest.deny == manifest.deny
            && self.manifest.datasets.iter().all(is_still_so)
            && manifest.version(&self.version).is_some()
    }

    /// What tells this state of the lake from every other one: which manifest, written by whom.
    pub fn state_mark(&self) -> u64 {
        let Manifest { sequence, lake_id, writer, written, .. } = &*self.manifest;
        let told = (sequence, lake_id, writer, written, &self.version);
        xxh3_64(format!("{told:?}").as_bytes())
    }

    /// The number of a dataset, from its number or its name. A name that is absent and one that `who` may not see are the
    /// same error; whether a number leads anywhere, the question itself finds out.
    pub fn dataset_id(&self, name: &str, who: &Principal) -> Result<u32, QueryError> {
        if let Some(id) = dataset_number(name) {
            return Ok(id);
        }
        let found = self.manifest.datasets.iter().find(|d| d.info.name == name && self.visible(d.id, who).is_some());
        let absent = || QueryError::NoDatasetNamed { name: name.chars().take(200).collect() };
        found.map(|dataset| dataset.id).ok_or_else(absent)
    }

    /// A dataset if it is there and `who` may see it.
    pub(crate) fn visible(&self, dataset_id: u32, who: &Principal) -> Option<&Dataset> {
        self.manifest.dataset(dataset_id).filter(|d| !d.dropped && !self.deny.dataset(d.id) && who.may_see(&d.info.acl))
    }

    /// A domain's places in segments, if the slots are known.
    pub(crate) fn places(&self, slots: &[(usize, Slot)]) -> Vec<Found<'_>> {
        let place = |&(index, slot): &(usize, Slot)| {
            let (segment, reference) = self.segments.get(index)?;
            Some(Found { index, segment, reference, slot, is_decoy: false })
        };
        slots.iter().filter_map(place).collect()
    }

    /// Every segment that has the domain. Denied domains are looked up like others and then found nowhere. Where some datasets
    /// are not for everyone, a domain that is nowhere costs what one costs that only they hold: time must not tell them apart.
    pub(crate) fn find(&self, domain: &str) -> Result<Vec<Found<'_>>, QueryError> {
        let mut found = self.find_any(domain)?;
        if self.deny.domain(domain) {
            found.clear();
        }
        if found.is_empty() && self.manifest.datasets.iter().any(|dataset| dataset.info.acl != Acl::Public) {
            found.extend(self.decoy(domain)?);
        }
        Ok(found)
    }

    fn decoy(&self, domain: &str) -> Result<Option<Found<'_>>, QueryError> {
        // Always the same one for a name, or asking often would tell.
        let count = self.segments.len().max(1) as u64;
        let index = usize::try_from(xxh3_64(domain.as_bytes()) % count).unwrap_or(0);
        let Some((segment, reference)) = self.segments.get(index) else { return Ok(None) };
        let slot = segment.neighbour(domain)?;
        Ok(slot.map(|slot| Found { index, segment, reference, slot, is_decoy: true }))
    }

    /// Every segment that has the domain, denied or not.
    pub(crate) fn find_any(&self, domain: &str) -> Result<Vec<Found<'_>>, QueryError> {
        let mut found = Vec::new();
        for (index, (segment, reference)) in self.segments.iter().enumerate() {
            if let Some(slot) = segment.lookup(domain)? {
                found.push(Found { index, segment, reference, slot, is_decoy: false });
            }
        }
        Ok(found)
    }
}

/// Whether a version still takes the dataset from a segment.
pub(crate) fn unmasked(reference: &SegmentRef, dataset_id: u32) -> bool {
    reference.masked.binary_search(&dataset_id).is_err()
}
