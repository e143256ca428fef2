//! WARC files, read and written; ARC read; CDXJ and WACZ both.
//!
//! | layer | what it knows | where |
//! | --- | --- | --- |
//! | container | members: gzip, zstd, none. Nothing of records | `container` |
//! | records | headers, blocks, where each lies. Nothing of HTTP | [`record_header`], [`WarcReader`], [`RecordFile`] |
//! | messages | heads, chunks, codings | `trawl-http` |
//! | captures | which records belong together | [`WarcSource`], [`WarcSink`], [`WarcFormat`] |
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io::Read;
//! let bytes = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
//!     WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://a.example/\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
//! let mut warc = trawl_warc::WarcReader::builder().from_read(&bytes[..], "a.warc");
//! let mut record = warc.next_record()?.ok_or("no record")?;
//! assert_eq!(record.header().target_uri().as_deref(), Some("http://a.example/"));
//! let mut block = String::new();
//! record.body().read_to_string(&mut block)?;
//! assert_eq!(block, "hello");
//! # Ok(()) }
//! ```
//!
//! Everything is synchronous, bounded by [`Limits`], and free of network and clock.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod arc;
pub mod cdxj;
mod container;
mod digest;
mod error;
mod format;
mod header;
mod inspect;
mod limits;
mod reader;
mod source;
#[cfg(test)]
mod tests_common;
mod verify;
pub mod wacz;
mod writer;

pub use arc::is_arc_name;
pub use container::Compression;
pub use error::{At, Error, Result};
pub use format::{WaczFormat, WarcFormat};
pub use header::{RecordHeader, RecordType, Version, record_header};
pub use limits::{Limits, Step};
pub use reader::{Finished, Gap, ReaderBuilder, Record, RecordFile, WarcReader, Warning};
pub use source::{Part, Parts, WarcSource};
pub use verify::Verifier;
pub use writer::{EventIds, EventPreparer, FileNames, PreparedEvent, PreparedRecord, WarcFile, WarcSink, record_id};
