//! What every format would otherwise write again.
//!
//! | need | where |
//! | --- | --- |
//! | a file layer that tests can replace | [`Fs`], [`File`], [`RealFs`]; [`fault::FaultFs`] loses unsynced writes or fails on demand |
//! | a file that appears only when complete | [`AtomicFile`], [`publish_new`] |
//! | one process at a time | [`LockFile`] |
//! | acknowledged means durable | [`journal`] |
//! | random access over files, maps, memory, later objects | [`ReadAt`] |
//! | lengths that are claims, not facts | [`limits`], [`slice::SliceReader`], [`varint`] |
//! | how a file is compressed | [`Compression`] |
//! | a body that may not fit in memory | [`SpoolWriter`], [`Spool`] |
//!
//! Everything here is synchronous and asks neither the clock nor a random source.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod compression;
pub mod crc;
mod error;
pub mod fault;
mod fs;
pub mod journal;
pub mod limits;
mod lock;
mod publish;
pub mod read_at;
pub mod slice;
mod spool;
pub mod varint;

pub use compression::Compression;
pub use error::{Error, Op, Result, advice_of};
pub use fs::{Entry, File, FileId, FileWriter, Fs, Hint, Metadata, Mode, RealFs, create_dir_all_synced, remove_tree};
pub use journal::Journal;
pub use lock::{LockError, LockFile, describe_holder};
pub use publish::{AtomicFile, Outcome, TEMP_PREFIX, is_temp_name, publish, publish_new, remove_leftovers};
pub use read_at::ReadAt;
pub use spool::{Spool, SpoolReader, SpoolWriter};
pub use trawl_model::Advice;
