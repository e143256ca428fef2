//! The doors out: [`CaptureSource`], and [`RecordSource`] where a container keeps WARC records.

use crate::{Body, Capture, DoorError, Place, UnixMillis};
use bytes::Bytes;

/// Reads a container, entry by entry.
pub trait CaptureSource {
    /// The next entry and where it lies; `None` at the end. Bodies borrow the source: the next call invalidates them. After
    /// an error that advises to skip, the next call goes on behind the damage.
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError>;

    /// Stored bytes read so far: for progress.
    fn position(&self) -> u64;

    /// Types of the other records that the capture handed out last was made of, where a container keeps records: with one for
    /// the capture itself, every record is in exactly one entry.
    fn beside(&self) -> &[&'static str] {
        &[]
    }

    /// The URL of the record that the last error was about, if so much of it could be read.
    fn damaged_url(&self) -> Option<String> {
        None
    }
}

/// One entry of a container.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A capture.
    Capture(Box<Capture<'a>>),
    /// Anything else (warcinfo, resource, conversion, unknown): carried, not dropped.
    Other(RawRecord<'a>),
}

/// A WARC record, byte for byte.
#[derive(Debug)]
pub struct RawRecord<'a> {
    /// Its type (`warcinfo`).
    pub kind: String,
    /// Its header, from the version line through the empty line.
    pub header: Bytes,
    /// Its block.
    pub body: Body<'a>,
}

/// Records that belong together: those of one capture, or one that stands alone.
#[derive(Debug, Default)]
pub struct RawEvent<'a> {
    /// Target of its response, revisit or resource, else of the first record that has one.
    pub url: Option<String>,
    /// Date of the same record.
    pub time: Option<UnixMillis>,
    /// The records in order, each with its place.
    pub records: Vec<(RawRecord<'a>, Place)>,
}

/// Reads the WARC records of a container as they are, in groups that belong together: what `convert` uses between
/// containers of such records, so that nothing is lost.
pub trait RecordSource {
    /// The next group; `None` at the end. After an error that advises to skip, the next call goes on behind the damage.
    fn next_event(&mut self) -> Result<Option<RawEvent<'static>>, DoorError>;

    /// Stored bytes read so far: for progress.
    fn position(&self) -> u64;
}
