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
//! | digests of bytes that arrive in pieces | [`Hasher`] |
//! | a body that may not fit in memory | [`SpoolWriter`], [`Spool`] |
//! | a container format, as the house knows it | [`format::Format`] |
//!
//! Everything here is synchronous and asks neither the clock nor a random source.
//!
//! ```
//! use std::{path::Path, sync::Arc};
//! use trawl_io::journal::{JournalReader, Options};
//! use trawl_io::{Fs, Journal, fault::{FaultFs, Loss}};
//!
//! let disk = FaultFs::new();
//! let fs: Arc<dyn Fs> = disk.shared();
//! let journal = Journal::create(&fs, Path::new("/crawl.journal"), b"run 1", Options::default())?;
//! journal.commit([b"one".as_slice(), b"two"])?; // durable when it returns, both or neither
//! let rebooted = disk.reboot(Loss::All); // a power cut takes every write that was not synced
//! let mut reader = JournalReader::open(&rebooted, Path::new("/crawl.journal"), &Options::default())?;
//! assert_eq!(reader.next_batch()?.map(|batch| batch.records().count()), Some(2));
//! # Ok::<(), trawl_io::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod compression;
pub mod crc;
mod error;
pub mod fault;
pub mod format;
mod fs;
mod hasher;
mod inflate;
pub mod journal;
pub mod limits;
mod lock;
mod publish;
pub mod read_at;
pub mod slice;
mod spool;
pub mod varint;

pub use compression::Compression;
pub use error::{Error, Op, Result};
pub use fs::{Entry, File, FileId, FileWriter, Fs, Hint, Metadata, Mode, RealFs, create_dir_all_synced, remove_tree};
pub use hasher::Hasher;
pub use inflate::{Inflated, Inflater};
pub use journal::Journal;
pub use lock::{LockError, LockFile, describe_holder};
pub use publish::{AtomicFile, Outcome, TEMP_PREFIX, is_temp_name, publish, publish_new, remove_leftovers};
pub use read_at::ReadAt;
pub use spool::{Spool, SpoolReader, SpoolWriter};
pub use trawl_model::Advice;
