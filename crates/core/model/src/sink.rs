//! The door in: [`CaptureSink`].
//!
//! ```text
//! Capture ──Preparer::prepare (any thread)──► Prepared ──CaptureSink::commit (one writer)──► container
//!           serialise, digest, compress                    append; sync every so often         finish: published
//! ```

use crate::{Advice, Capability, Capture, Carries, DoorError, Place, RawEvent, UnixMillis};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes captures ready to be appended: all the work that needs no order. One is shared by all threads.
pub trait Preparer: Send + Sync {
    /// Makes a capture ready. What the container cannot carry is left out and listed in [`Prepared::losses`].
    fn prepare(&self, capture: Capture<'_>) -> Result<Prepared, DoorError>;

    /// Makes WARC records ready as they are. Only for containers that carry [`Capability::OtherRecords`].
    fn prepare_records(&self, event: RawEvent<'_>) -> Result<Prepared, DoorError> {
        let kinds: Vec<_> = event.records.iter().map(|(record, _)| record.kind.as_str()).collect();
        let message =
            format!("expected a capture, found records that this container cannot carry: {}", kinds.join(", "));
        Err(DoorError::new(Advice::Skip, message))
    }
}

/// A capture, or records, made ready by a [`Preparer`] for its own sink.
pub struct Prepared {
    /// URL of the capture; empty where records have none.
    pub url: String,
    /// When the fetch began.
    pub time: UnixMillis,
    /// Bytes that will be appended.
    pub len_bytes: u64,
    /// Ids of the records, that of the response (or of the only record) first. Empty where a container has none.
    pub record_ids: Vec<String>,
    /// What the container cannot carry of it.
    pub losses: Vec<Capability>,
    /// In the terms of the sink.
    contents: Box<dyn Any + Send>,
}

impl Prepared {
    /// Something made ready, in the terms of its sink.
    pub fn new(url: String, time: UnixMillis, len_bytes: u64, contents: impl Any + Send) -> Self {
        let (record_ids, losses) = (Vec::new(), Vec::new());
        Self { url, time, len_bytes, record_ids, losses, contents: Box::new(contents) }
    }

    /// What its preparer made. An error if another sink's preparer did.
    pub fn into_contents<T: 'static>(self) -> Result<T, DoorError> {
        let other = |_| DoorError::new(Advice::Stop, "expected a capture prepared for this sink, found another sink's");
        self.contents.downcast().map(|contents| *contents).map_err(other)
    }
}

/// Writes a container.
pub trait CaptureSink: Send {
    /// Makes captures ready on other threads.
    fn preparer(&self) -> Arc<dyn Preparer>;

    /// Appends; the place is that of the response, or of the only record. `None` where places are known only once the
    /// container is finished, or where it cannot carry the capture.
    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError>;

    /// Makes everything committed so far survive a power cut. Calling it again says that the caller has recorded what the
    /// last call returned.
    fn sync(&mut self) -> Result<Durable, DoorError>;

    /// Completes the container; dropped without this, nothing is published.
    fn finish(self: Box<Self>) -> Result<Summary, DoorError>;

    /// What this container can carry.
    fn carries(&self) -> Carries;

    /// Prepares and commits: for callers with one thread.
    fn write(&mut self, capture: Capture<'_>) -> Result<Option<Place>, DoorError> {
        let prepared = self.preparer().prepare(capture)?;
        self.commit(prepared)
    }
}

/// What has been made durable: every file that is still being written, with its committed end, the one that takes what
/// comes next last. Files that are complete need no end.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Durable {
    /// Final name and bytes that survive.
    pub files: Vec<(String, u64)>,
}

impl Durable {
    /// One file.
    pub fn one(file: impl Into<String>, end: u64) -> Self {
        Self { files: vec![(file.into(), end)] }
    }

    /// The file that takes what comes next; empty before there is one.
    pub fn current(&self) -> &str {
        self.files.last().map_or("", |(file, _)| file)
    }
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
    pub dropped: BTreeMap<Capability, u64>,
    /// Records that were written, but that the container's own index cannot list.
    pub unlisted: u64,
    /// The first of those, and why.
    pub examples: Vec<String>,
}

impl Summary {
    /// Counts an event that is being committed, and what is dropped of it.
    pub fn add(&mut self, prepared: &Prepared) {
        self.events += 1;
        for loss in &prepared.losses {
            *self.dropped.entry(*loss).or_default() += 1;
        }
    }
}
