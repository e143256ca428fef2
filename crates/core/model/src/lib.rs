//! What passes between the rooms of the house, and the doors it passes through.
//!
//! ```text
//!   fetch ──Capture──► CaptureSink   (WARC, Nutch segment, seqdb …)
//!                      Archive ─┬─ CaptureSource ──Entry──► convert, verify, rebuild, ingest
//!                               ├─ RecordSource ──RawEvent──► convert and cat, where records are WARC records
//!                               └─ UrlSource ──UrlRecord──► ingest, seeds
//! ```
//!
//! Nothing here touches a file or a socket, and time comes from the [`Clock`] that a caller passes in. A container format is one crate that implements the doors;
//! everything else works with any of them, through the room `formats/archive`.
//!
//! ```
//! use trawl_model::{Capability, Carries};
//! const SEGMENT: Carries = Carries::only(&[Capability::Failures, Capability::Facts]);
//! assert!(SEGMENT.missing().any(|lost| lost == Capability::Request));
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod archive;
mod body;
mod capture;
mod carries;
mod clock;
pub mod date;
mod digest;
mod doors;
mod error;
mod ids;
mod place;
mod sink;
mod source;
mod time;
mod url_record;

pub use archive::{
    Archive, Check, Checked, Finding, Inspection, OnDamage, OnProgress, Pick, Progress, Severity, Tally, Wanted,
    WantedRows,
};
pub use body::{Body, Reopen};
pub use capture::{
    Capture, CaptureFacts, ErrorClass, Failure, Message, Outcome, Revisit, RevisitProfile, RobotsVerdict, Timings,
    TlsFacts, Truncated,
};
pub use carries::{Capability, Carries};
pub use clock::Clock;
pub use digest::{Algorithm, Digest, DigestError};
pub use doors::{Aside, Asides, Items, SourceIdentity, Split, UrlSource};
pub use error::{Advice, DoorError};
pub use ids::IdSource;
pub use place::Place;
pub use sink::{CaptureSink, Durable, Prepared, Preparer, Summary};
pub use source::{CaptureSource, Entry, RawEvent, RawRecord, RecordSource};
pub use time::{TimeError, UnixMillis};
pub use url_record::UrlRecord;
