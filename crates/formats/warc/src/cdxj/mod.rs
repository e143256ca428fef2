//! CDXJ: one line per capture, sorted by key, so that a binary search finds any URL of an archive.
//!
//! ```text
//! com,example)/a 20260624010203 {"url": "http://example.com/a", "mime": "text/html", "status": "200", "digest": "sha1:…",
//!                                "length": "906", "offset": "317", "filename": "a.warc.gz"}      one line
//! ```
//!
//! Lines, keys and order are those of `cdxj-indexer`: sorted by all their bytes, equal lines once.
//!
//! A large index is kept in blocks (ZipNum): gzip members of some hundred or thousand lines, and an index of their first
//! lines:
//!
//! ```text
//! cluster.idx    com,example)/a 20260624010203 TAB cdx-00000.gz TAB 0 TAB 12345 TAB 1
//! index.idx      !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}              in WACZ files
//!                com,example)/a 20260624010203 {"offset": 0, "length": 12345}
//! ```

mod block;
mod index;
mod line;
mod lookup;
mod merge;
mod write;

pub use block::{BlockIndex, BlockWriter, ZIPNUM_LINES};
pub use index::{CdxjOptions, Unlisted, index_records};
pub use line::{CdxjLine, surt_key};
pub use lookup::{CdxjFile, Lines, ZipNum};
pub use merge::merge_cdxj;
pub use write::{CdxjSorter, write_lines};

pub(crate) use write::sort_error;

#[cfg(test)]
mod tests;
