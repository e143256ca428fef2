//! `.meguri`: the partition file of a crawl frontier. Columns of every URL and host, a schedule index, a seen filter and
//! an arena of texts; checksummed, found from both ends, readable in parts.
//!
//! ```text
//! 0             header, 64 bytes                                             [`header`]
//! 64            URL table: 23 columns and extensions, in pages               [`schema`]
//!               host table: 20 columns and extensions, in pages
//!               schedule index: which rows are due when                      [`schedule`]
//!               seen filter: which keys are certainly not here               [`filter`]
//!               arena: URLs, hosts, ETags and other texts                    [`arena`]
//! footer_offset footer: where all of it lies, zone maps, stats, metadata     [`footer`]
//! EOF-12        u32 footer length, u32 crc32c of the footer, "MEG1"
//! ```
//!
//! | to | use |
//! | --- | --- |
//! | read a file in parts | [`MeguriFile`] |
//! | write one from rows in order | [`Writer`] |
//! | merge, split, extract | [`merge()`] |
//! | hold a whole partition, byte for byte | [`Partition`] |
//! | check or describe a file | [`verify`], [`inspect`], [`stats`], [`diff`], [`json`] |
//! | make one of URLs in any order | [`seed`] |
//! | catalogue partitions, ship links | [`manifest`], [`batch`] |
//!
//! It is not a database: a file never changes. Versions: 1.0 is read and written; a file of the reference implementation
//! is read, and [`settings::Settings::reference`] writes its bytes.
//!
//! ```
//! use trawl_meguri::{MeguriFile, Row, Writer, WriterOptions};
//! use trawl_url::key::{host_key, path_key, UrlKey};
//!
//! let mut row = Row { url: "https://example.com/".into(), ..Row::default() };
//! let key = UrlKey { host: host_key("example.com"), path: path_key("https://example.com/") };
//! (row.record.host_key, row.record.path_key) = (key.host, key.path);
//! let mut writer = Writer::new(WriterOptions::default())?;
//! writer.push((&row).into())?;
//! let mut bytes = Vec::new();
//! writer.finish(&mut bytes)?;
//!
//! let file = MeguriFile::open(std::sync::Arc::new(bytes::Bytes::from(bytes)), Default::default())?;
//! assert!(file.filter()?.is_some_and(|seen| seen.may_contain(key)));
//! assert_eq!(file.get(key)?.map(|row| row.url), Some("https://example.com/".into()));
//! # Ok::<(), trawl_meguri::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod arena;
pub mod batch;
mod codec;
pub mod diff;
mod encoding;
mod error;
pub mod filter;
pub mod footer;
mod format;
pub mod header;
pub mod inspect;
pub mod json;
pub mod keys;
mod list;
pub mod manifest;
pub mod merge;
mod page;
mod partition;
pub mod reader;
pub mod robots;
pub mod schedule;
pub mod schema;
pub mod seed;
pub mod settings;
pub mod stats;
pub mod url_source;
pub mod verify;
mod writer;

pub use codec::Codec;
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use format::MeguriFormat;
pub use merge::{Keep, Merged, merge};
pub use partition::{ExtensionColumn, Partition};
pub use reader::{DueRow, HostCursor, HostRow, MeguriFile, ReadSettings, Row, RowCursor, Scan, UrlRow};
pub use writer::assemble::{Identity, Written};
pub use writer::{HOST_COUNTS, HostCounts, Writer, WriterOptions};
