//! Writes WARC 1.1: capture events, each record a member of its own, prepared on any thread and appended by one.
//!
//! ```text
//! Capture ──Preparer::prepare (any thread)──► Prepared ──WarcSink::commit (one writer)──► NAME.warc.gz.open
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
mod id;
mod info;
mod member;
mod names;
mod sink;

pub use event::{EventIds, Prepared, PreparedRecord, Preparer};
pub use id::{IdSource, record_id};
pub use info::WarcInfo;
pub use names::FileNames;
pub use sink::{SinkOptions, WarcSink};

pub(crate) use event::Chained;
pub(crate) use facts::EventFacts;
pub(crate) use fields::{HeaderText, header_uri, parse_fields, put_field};
pub(crate) use member::{Encoder, Stored, spool_error};

#[cfg(test)]
mod tests;
