//! WARC files, read and written; ARC read; CDXJ and WACZ both.
//!
//! | layer | what it knows | where |
//! | --- | --- | --- |
//! | container | members: gzip, zstd, none. Nothing of records | `container` |
//! | records | headers, blocks, where each lies. Nothing of HTTP | [`record_header`], [`WarcReader`], [`RecordFile`] |
//! | messages | heads, chunks, codings | `trawl-http` |
//! | captures | which records belong together | [`WarcSource`], [`WarcSink`], [`WarcFormat`] |
//!
//! ```no_run
//! # fn main() -> Result<(), trawl_warc::Error> {
//! use std::io::Read;
//! let mut warc = trawl_warc::WarcReader::builder().lenient(true).open("a.warc.gz".as_ref())?;
//! while let Some(mut record) = warc.next_record()? {
//!     println!("{} {:?}", record.at(), record.header().target_uri());
//!     let mut start = String::new();
//!     let _ = record.body().take(100).read_to_string(&mut start);
//! }
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
