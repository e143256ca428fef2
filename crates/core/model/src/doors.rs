//! The door [`UrlSource`]: URLs in parallel splits, for the lake and for seeds.

use crate::{DoorError, UrlRecord};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
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

    /// As [`UrlSource::read`], and tells what else there is, and where it begins. With the records among it ([`Aside::Record`]),
    /// every record of a source is reported exactly once.
    fn read_all(&self, split: Split, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        let _ = aside;
        self.read(split, each)
    }
}

/// What a source tells beside its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside<'a> {
    /// A record that is neither a URL record nor an item that should have been one, by its type.
    Record(&'a str),
    /// A code for what is strange about the URL record told just before it, which is taken as it is; and its line, from 1, if that
    /// is known.
    Oddity(&'a str, Option<u64>),
}

/// Hears of what a source tells beside its items.
pub type Asides<'a> = dyn FnMut(u64, Aside<'_>) + 'a;
