//! Index segments: which domains a lake holds, in which datasets, and where their rows are.
//!
//! A segment is an immutable directory of files; a version of the lake is a list of segments.
//!
//! | file | what it answers | module |
//! | --- | --- | --- |
//! | `domains.txt.zst` | slot → name, prefix → names, is this the name | `lines` |
//! | `domains.mphf` | name → slot | `mphf` |
//! | `domain_to_datasets.roar` | slot → datasets | `membership` |
//! | `counts.bin` | (slot, dataset) → rows, distinct URLs | `counts` |
//! | `times.bin` | (slot, dataset) → earliest and latest time | `times` |
//! | `paths.bin` | (slot, dataset) → top paths | `paths` |
//! | `postings/{shard}/postings.{idx,dat}.zst` | (slot, dataset) → runs of rows | `postings` |
//! | `files.tsv.zst` | file id → Parquet file | `files` |
//! | `pages.bin` | (file, row group) → page table | `pages` |
//! | `segment.json` | totals, length and hash of every file | `meta` |
//!
//! A segment of very many rows is split by the first digits of `domain_id` into pieces (`split`), each a directory `<prefix>/` with
//! all of these files; a lookup asks one of them.
//!
//! `.zst` files use `seekable` framing, the others `paged` checksums; so a lookup reads some kilobytes and believes
//! none that was not checked.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use trawl_index::{BuildOptions, Caches, OpenOptions, Segment, publish};
//! # let dir = std::env::temp_dir().join(format!("trawl-index-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let now = || trawl_model::UnixMillis(1_782_262_923_456);
//! # std::fs::write(dir.join("urls.txt"), "https://www.example.org/a\nhttps://example.org/b\n")?;
//! # let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
//! # let urls = trawl_ingest::source::open(&fs, &dir.join("urls.txt"), None)?;
//! # let store: Arc<dyn trawl_store::Store> = Arc::new(trawl_store::DirStore::new(dir.join("lake")));
//! # let lake = trawl_store::Lake::init(store.clone(), now(), "w1", b"com\norg\n")?;
//! # let id = lake.register_dataset(now(), "w2", &trawl_store::DatasetInfo::named("news"))?;
//! # trawl_ingest::ingest(&lake, id, &[urls], &trawl_ingest::IngestSettings::new("w3", &dir), &now, &|_| ())?;
//! // Dataset 1 of `lake` has two URLs of example.org.
//! publish(&lake, &now, "w4", &BuildOptions::new(&dir), &|_| ())?;
//! let reference = &lake.current()?.current().unwrap().segments[0].clone();
//! let segment = Segment::open(lake.store(), reference, &Arc::new(Caches::default()), OpenOptions::default())?;
//! let slot = segment.lookup("example.org")?.expect("it is there");
//! assert_eq!((segment.datasets(slot)?, segment.counts(slot)?[0].1.rows), (vec![1], 2));
//! assert!(segment.lookup("example.com")?.is_none());
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod blob;
mod build;
mod cache;
mod compact;
pub mod counts;
mod error;
mod fetched;
mod files;
pub mod lines;
mod membership;
mod merge;
mod meta;
pub mod mphf;
mod paged;
mod pages;
mod paths;
mod piece;
mod plain;
pub mod postings;
mod publish;
mod scratch;
mod seekable;
mod segment;
mod slots;
mod split;
mod times;
mod verify;

pub use blob::Blob;
pub use build::{BuildOptions, SourceFile, TOP_PATHS_MIN_ROWS, sort_files};
pub use cache::{Caches, DEFAULT_CACHE_BYTES};
pub use compact::{Compacted, Compaction, MAX_SEGMENTS, compact};
pub use error::{Error, Result};
pub use files::FileEntry;
pub use merge::{DistinctUrls, MergeInput, merge_segments};
pub use meta::{DatasetMeta, FileMeta, PieceMeta, SegmentMeta};
pub use piece::{Built, Share, build_share, publish_built};
pub use publish::{PUBLISH, Published, publish, publish_datasets, rebuild};
pub use scratch::Scratch;
pub use segment::{OpenOptions, Segment, Slot};
pub use split::{PIECE_ROWS, build_segment};
pub use trawl_store::Progress;
pub use verify::{Verified, file_table, indexed_files, verify_segment};

#[cfg(test)]
#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;
#[cfg(test)]
mod tests {
    mod golden;
}
