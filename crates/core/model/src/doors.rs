//! The doors: what a container implements so that everything else works with it.
//!
//! All of them are synchronous. An engine drives them on threads, over bounded channels.

use crate::{Capture, DoorError, Place, UrlRecord};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Reads a container, entry by entry.
pub trait CaptureSource {
    /// The next entry and where it lies; `None` at the end. Bodies borrow the source: the next call invalidates them.
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError>;

    /// What this container can carry.
    fn carries(&self) -> Carries;
}

/// One entry of a container.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A capture.
    Capture(Box<Capture<'a>>),
    /// Anything else (warcinfo, resource, conversion, unknown): carried, not dropped.
    Other(RawRecord<'a>),
}

/// A record in its container's own terms.
#[derive(Debug)]
pub struct RawRecord<'a> {
    /// Its type, as the container names it (`warcinfo`).
    pub kind: String,
    /// Its header block, verbatim.
    pub header: Bytes,
    /// Its block.
    pub body: crate::Body<'a>,
}

/// Writes a container. Work that needs no order is done in `prepare`, on any thread.
pub trait CaptureSink {
    /// An event made ready: serialised, digested, compressed.
    type Prepared: Send;

    /// Makes an event ready.
    fn prepare(&self, capture: Capture<'_>) -> Result<Self::Prepared, DoorError>;

    /// Appends a prepared event; its place is that of its response, or of its only record.
    fn commit(&mut self, prepared: Self::Prepared) -> Result<Place, DoorError>;

    /// Makes everything committed so far survive a power cut.
    fn sync(&mut self) -> Result<Durable, DoorError>;

    /// Completes the container; dropped without this, nothing is published.
    fn finish(self) -> Result<Summary, DoorError>;

    /// What this container can carry.
    fn carries(&self) -> Carries;
}

/// What has been made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// The file being written, by its final name.
    pub file: String,
    /// Its bytes up to here survive.
    pub end: u64,
}

/// What a finished container holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events written.
    pub events: u64,
    /// Records written.
    pub records: u64,
    /// The files, with their bytes.
    pub files: Vec<(String, u64)>,
    /// What was dropped because the container cannot carry it, and how often.
    pub dropped: BTreeMap<String, u64>,
}

/// One thing a capture can have that a container may be unable to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// The request.
    Request,
    /// The peer's address.
    Ip,
    /// More than one capture of a URL.
    ManyPerUrl,
    /// Revisits.
    Revisits,
    /// Failed fetches.
    Failures,
    /// Records that are no captures.
    OtherRecords,
    /// Facts of the `metadata` record.
    Facts,
}

/// What a container can carry: a sorted list without repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carries(Vec<Capability>);

impl Carries {
    /// From a list.
    pub fn new(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        let mut list: Vec<_> = capabilities.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Self(list)
    }

    /// Everything.
    pub fn all() -> Self {
        use Capability::{Facts, Failures, Ip, ManyPerUrl, OtherRecords, Request, Revisits};
        Self::new([Request, Ip, ManyPerUrl, Revisits, Failures, OtherRecords, Facts])
    }

    /// Whether it can carry `capability`.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.binary_search(&capability).is_ok()
    }

    /// What `self` has and `target` cannot carry.
    pub fn lost_in(&self, target: &Self) -> Vec<Capability> {
        self.0.iter().copied().filter(|c| !target.has(*c)).collect()
    }
}

/// Which source this is: enough to recognise it again, so that an ingest can be repeated without doubling anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct SourceIdentity {
    /// Where it is.
    pub uri: String,
    /// Its bytes.
    pub size: u64,
    /// What changes when its contents do: an ETag, a hash, a modification time.
    pub tag: String,
}

/// A part of a source that can be read on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Split {
    /// First byte.
    pub start: u64,
    /// One past the last byte. An item belongs to the split in which it begins.
    pub end: u64,
}

/// Takes items: where each begins in its source (a byte, or of a table the number of the row), and a record, or the reason
/// why it is none. Such an item is counted, not fatal; an error from here ends the reading.
pub type Items<'a> = dyn FnMut(u64, Result<UrlRecord, DoorError>) -> Result<(), DoorError> + 'a;

/// Yields URL records, in parallel splits.
pub trait UrlSource: Send + Sync {
    /// Which source this is.
    fn identity(&self) -> SourceIdentity;

    /// Parts of about `target_bytes` that together are the whole, none overlapping.
    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError>;

    /// Reads one split.
    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_target_cannot_carry_is_told() {
        let target = Carries::new([Capability::Request, Capability::Ip, Capability::Request]);
        assert!(target.has(Capability::Ip) && !target.has(Capability::Failures));
        assert_eq!(
            Carries::all().lost_in(&target),
            [
                Capability::ManyPerUrl,
                Capability::Revisits,
                Capability::Failures,
                Capability::OtherRecords,
                Capability::Facts
            ]
        );
        assert!(target.lost_in(&Carries::all()).is_empty());
    }
}
