//! Writes WARC 1.1: capture events, each record a member of its own, prepared on any thread and appended by one.
//!
//! ```text
//! Capture ──Preparer::prepare (any thread)──► Prepared ──CaptureSink::commit (one writer)──► NAME.warc.gz.open
//!           serialise, digest, compress                    append, roll between events      │ roll, finish
//!                                                                                           ▼
//!                                                                                     NAME.warc.gz
//! ```
//!
//! An event is one to three records, side by side in one file:
//!
//! ```text
//! response or revisit   what came back
//! request               WARC-Concurrent-To the above
//! metadata              WARC-Concurrent-To the first: what only the index would know
//!
//! metadata              after a failed fetch, in place of the response
//! request               if one was sent
//! ```

mod event;
mod facts;
mod fields;
mod file;
mod id;
mod info;
mod member;
mod names;
mod records;
mod sink;

pub use event::{EventIds, EventPreparer, PreparedEvent, PreparedRecord};
pub use file::WarcFile;
pub use id::record_id;
pub use names::FileNames;
pub use sink::WarcSink;

pub(crate) use facts::EventFacts;
pub(crate) use fields::parse_fields;
pub(crate) use member::{Encoder, spool_error};
pub(crate) use names::OPEN_SUFFIX;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_records;
