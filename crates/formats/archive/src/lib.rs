//! The one room that knows every container. Everybody else opens, creates, checks and converts archives through it.
//!
//! ```text
//! path ──Registry::files──► Found ──open──► Archive ─┬─ captures ─► convert, verify, rebuild of the index
//!                                                    ├─ records  ─► convert and cat between containers of WARC records
//!                                                    └─ urls     ─► ingest
//! name of a format ──Registry::format──► create, resume ──► CaptureSink ◄── crawl, convert
//! ```
//!
//! A new format is one crate that implements [`Format`] and the doors of `core/model`, and one line in
//! [`Registry::default`]. The crawl, the lake and the command line then use it, without a change. The exceptions are formats that
//! hold WARC records ([`warc_parts`]) or pack archive files into one, as WACZ does ([`warc_names`], [`packed`]), and names that the
//! command line knows; "A new container" in `ARCHITECTURE.md` lists all places.
//!
//! ```
//! use trawl_archive::Registry;
//! # fn main() -> trawl_archive::Result<()> {
//! let registry = Registry::default();
//! assert!(registry.crawlable().any(|format| format.name() == "seqdb"));
//! let target = registry.target("pages.warc.zst".as_ref())?;
//! assert_eq!((target.name(), target.carries().missing().count()), ("warc", 0));
//! # Ok(()) }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod cat;
mod convert;
mod digests;
mod error;
mod index;
mod inspect;
mod parts;
mod registry;
pub mod seqdb;
mod urls;
mod verify;
pub mod walk;

pub use cat::{CatOptions, Show, cat};
pub use convert::{Converted, check_compression, convert};
pub use digests::{DigestStore, Digests, Earlier};
pub use error::{Error, Result};
pub use index::{Beside, packed, rebuild_index};
pub use inspect::inspect;
pub use parts::{PartName, warc_names, warc_parts};
pub use registry::{Found, Registry};
pub use trawl_captures::{
    CaptureRow, CapturesReader, CapturesWriter, Covered, RebuildReport, archives_of, concat as concat_captures,
    export_common_crawl,
};
pub use trawl_io::format::{About, Candidate, Creation, Format, Opening, Role, Target};
pub use urls::urls;
pub use verify::{Verified, verify};
