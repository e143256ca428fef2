//! WACZ: an archive, its index, its list of pages and a description, in one ZIP file that can be read in place.
//!
//! ```text
//! archive/*.warc.gz              stored, so that a record is found at its offset
//! indexes/index.cdx.gz           CDXJ in gzip blocks
//! indexes/index.idx              the blocks
//! pages/pages.jsonl              one line per page
//! datapackage.json               every file above with its length and SHA-256
//! datapackage-digest.json        the SHA-256 of datapackage.json
//! ```
//! Nothing is compressed by the ZIP file itself; sizes past 4 GiB use ZIP64.

mod package;
mod read;
mod sink;
mod verify;
mod zip;
mod zip_write;

pub use package::{WaczSummary, write_wacz};
pub use read::Wacz;
pub(crate) use sink::WaczSink;
pub use zip::{ZipArchive, ZipEntry};

#[cfg(test)]
mod tests;
