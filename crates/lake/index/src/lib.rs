//! Index segments: which domains a lake holds, in which datasets, and where their rows are.
//!
//! A segment is an immutable directory of files; a version of the lake is a list of segments.
//!
//! | file | what it answers | module |
//! | --- | --- | --- |
//! | `domains.txt.zst` | slot → name, prefix → names, is this the name | [`lines`] |
//! | `domains.mphf` | name → slot | [`mphf`] |
//! | `domain_to_datasets.roar` | slot → datasets | [`membership`] |
//! | `counts.bin` | (slot, dataset) → rows, distinct URLs | [`counts`] |
//! | `times.bin` | (slot, dataset) → earliest and latest time | [`times`] |
//! | `paths.bin` | (slot, dataset) → top paths | [`paths`] |
//! | `postings/{shard}/postings.{idx,dat}.zst` | (slot, dataset) → runs of rows | [`postings`] |
//! | `files.tsv.zst` | file id → Parquet file | [`files`] |
//! | `pages.bin` | (file, row group) → page table | [`pages`] |
//! | `segment.json` | totals, length and hash of every file | [`meta`] |
//!
//! `.zst` files use [`seekable`] framing, the others [`paged`] checksums; so a lookup reads some kilobytes and believes
//! none that was not checked.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod blob;
mod build;
mod cache;
mod compact;
pub mod counts;
mod error;
pub mod files;
mod inspect;
pub mod lines;
pub mod membership;
mod merge;
pub mod meta;
pub mod mphf;
pub mod paged;
pub mod pages;
pub mod paths;
pub mod postings;
mod publish;
mod scratch;
pub mod seekable;
mod segment;
pub mod slots;
pub mod times;
mod verify;

pub use blob::Blob;
pub use build::{BuildOptions, Progress, SourceFile, TOP_PATHS_MIN_ROWS, build_segment, sort_files};
pub use cache::{Caches, DEFAULT_CACHE_BYTES};
pub use compact::{Compacted, Compaction, MAX_SEGMENTS, compact};
pub use error::{Error, Result};
pub use inspect::{Inspection, inspect_segment};
pub use merge::{DistinctUrls, MergeInput, merge_segments};
pub use meta::SegmentMeta;
pub use publish::{Published, publish, rebuild, rebuild_under};
pub use scratch::Scratch;
pub use segment::{OpenOptions, Segment, Slot};
pub use verify::{Verified, indexed_files, verify_segment};
