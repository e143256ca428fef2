//! What passes between the rooms of the house, and the doors it passes through.
//!
//! ```text
//!   fetch ──Capture──► CaptureSink   (WARC, Nutch segment, seqdb …)
//!                      CaptureSource ──Entry──► convert, inspect, verify, ingest
//!                      UrlSource ──UrlRecord──► ingest
//! ```
//!
//! Nothing here touches a file or a socket, and time comes from the [`Clock`] that a caller passes in. A container format is one crate that implements the
//! three doors; everything else works with any of them.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod body;
mod capture;
mod clock;
pub mod date;
mod digest;
mod doors;
mod error;
mod place;
mod time;
mod url_record;

pub use body::{Body, Reopen};
pub use capture::{
    Capture, CaptureFacts, ErrorClass, Failure, Message, Outcome, Revisit, RevisitProfile, RobotsVerdict, Timings,
    TlsFacts, Truncated,
};
pub use clock::Clock;
pub use digest::{Algorithm, Digest, DigestError};
pub use doors::{
    Capability, CaptureSink, CaptureSource, Carries, Durable, Entry, Items, RawRecord, SourceIdentity, Split, Summary,
    UrlSource,
};
pub use error::{Advice, DoorError};
pub use place::Place;
pub use time::{TimeError, UnixMillis};
pub use url_record::UrlRecord;
