//! External merge sort within a memory budget.
//!
//! Records are pairs of byte strings, ordered by the bytes of their keys; equal keys keep the order they were pushed in.
//! What fits in memory is sorted there; otherwise sorted runs go to temporary files and are merged.
//!
//! ```no_run
//! # fn main() -> Result<(), trawl_sort::Error> {
//! let mut sorter = trawl_sort::Sorter::builder("/var/tmp").memory_bytes(64 << 20).build()?;
//! sorter.push(b"key", b"value")?;
//! let mut sorted = sorter.finish()?;
//! while let Some(record) = sorted.next_record()? {
//!     println!("{:?} {:?}", record.key, record.value);
//! }
//! # Ok(()) }
//! ```
//!
//! How it works:
//!
//! ```text
//! push ──► buffer (records + 16-byte index) ──full──► worker: sort, write run ──► runs ──merge──► next_record
//!            one being filled, one per worker           (arena, msd)     (run, block)      (tree, source)
//! ```
//! - `msd`: the index caches eight key bytes; groups that agree in them are sorted by the next eight. A key byte is
//!   fetched once, not once per comparison.
//! - `block`: keys in a run are stored without what they share with the one before, in compressed, checksummed blocks.
//! - `tree`: a loser tree that compares the lengths of shared prefixes before it compares bytes.
//!
//! - `exchange`: runs that other processes read: sections of a file anywhere, and the merge of many.
//!
//! Everything in memory is counted against the budget: buffers and index while pushing, blocks while merging. Too many
//! runs for one merge are merged in several passes.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod arena;
mod block;
mod error;
mod exchange;
mod merge;
mod msd;
mod plan;
mod prefix;
mod run;
mod settings;
mod sorted;
mod sorter;
mod source;
mod split;
mod temp;
mod tree;

pub use error::{Error, Result};
pub use exchange::{ScratchFile, Section, SectionWriter};
pub use settings::{Builder, Compression, DEFAULT_MEMORY_BYTES, DEFAULT_THREADS, MIN_MEMORY_BYTES, Phase, Progress};
pub use sorted::{Record, Sorted, Stats};
pub use sorter::Sorter;
pub use temp::{clean_leftovers, find_leftovers};
