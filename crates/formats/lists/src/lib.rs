//! URL lists of every kind, for the seeds of a crawl and the sources of a lake alike.
//!
//! | format | an item is | splits |
//! | --- | --- | --- |
//! | lines | a line: `url`, or `url`, tab, time, or a JSON object; blank lines and `#` lines are not items | by bytes |
//! | jsonl | a line: a JSON object with `url` | by bytes |
//! | json | an element of a list, or an object, over as many lines as it likes | one |
//! | cdxj, cdx | a line: an index of captures with JSON, or in columns; header lines are not items | by bytes |
//! | csv, tsv | a row, under a header line with a column `url`, or without one | one |
//! | parquet | a row, with a column `url`; captures.parquet and the Common Crawl index too | row groups |
//! | har | an entry: what a browser asked for | one |
//! | bookmarks | a link of a browser's export | one |
//! | sitemap | an entry of a sitemap, of an index of sitemaps, or of an RSS or Atom feed | one |
//!
//! gzip and zstd are seen through; a compressed file is one split. [`open`] gives a file as a `UrlSource`, [`read_stream`] reads
//! what can be read only once. What an item's named values mean is decided in one place, [`Fields`].
//!
//! Not here: archives, which hold captures (`formats/archive`), what a dataset remembers of its sources (`lake/ingest`), and
//! whether a URL is one (`core/url`): a list hands over what it has.
//!
//! ```
//! use trawl_lists::{Options, read_stream};
//!
//! let list = "# two\nhttp://a.example/\t2026-06-24\n{\"url\":\"http://b.example/\",\"status\":404}\n";
//! let mut found = Vec::new();
//! read_stream("list", None, list.as_bytes(), &Options::default(), &mut |at, item| {
//!     let record = item?;
//!     found.push((at, record.url, record.status));
//!     Ok(())
//! })?;
//! assert_eq!(found, [(6, "http://a.example/".into(), None), (35, "http://b.example/".into(), Some(404))]);
//! # Ok::<(), trawl_model::DoorError>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod cdx;
mod csv;
mod document;
mod error;
mod fields;
mod file;
mod foreign;
mod format;
mod item;
mod json;
mod line;
mod lines;
mod markup;
mod oddity;
mod options;
mod parquet;
mod scan;
pub mod sitemap;
mod source;
#[cfg(test)]
mod tests;
mod xml;
pub mod zipnum;

pub use csv::looks_like_url;
pub use error::{Error, Result};
pub use fields::{Fields, Value};
pub use file::{ListFile, text_of, unpacked, uri_of};
pub use format::{Format, Looks, extension, look};
pub use item::BadItem;
pub use oddity::describe_oddity;
pub use options::{Options, Purpose};
pub use parquet::{is_captures, is_object};
pub use source::{open, over, read_stream};
