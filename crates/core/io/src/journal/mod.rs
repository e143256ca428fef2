//! A journal: batches of records, each batch whole or absent after any crash, durable once acknowledged.
//!
//! ```text
//! file = header, frame*                                              little-endian
//!
//! header   0  8  magic "TRWLJNL\n"
//!          8  2  version, now 1
//!         10  2  tag length t, at most 1024
//!         12  8  generation: 1 for a new journal, one more after each rotation
//!         20  t  tag: the user's, for example which checkpoint this journal continues
//!       20+t  4  crc32c of bytes 0..20+t
//!
//! frame at file offset o: one batch
//!          0  4  payload length n, at least 1
//!          4  8  durable: how far the file was known to be synced when this frame was made
//!         12  4  crc32c of: the header's crc (4), o (8), bytes 0..12 of the frame, payload
//!         16  n  payload: records, each a uvarint length and that many bytes
//! ```
//! The checksum covers the frame's place, so stale blocks of another journal, or of another generation, never pass.
//!
//! **Torn or corrupt?** A power cut may leave any part of what was written after the last sync, in any order, so a bad
//! frame can be followed by good ones. `durable` tells the cases apart: if a good frame further on says that the bad
//! place had been synced before, something acknowledged was damaged, which is an error (or, leniently, a reported gap).
//! Otherwise the bad frame and all after it were never acknowledged: a torn tail, cut at the bad frame.
//!
//! Reading never writes: [`JournalReader`] reports a torn tail and stops. [`Journal::recover`] repairs and opens for
//! writing. Nothing here stops two processes from writing one journal: hold a [`crate::LockFile`].

mod format;
mod reader;
mod recover;
mod scan;
mod writer;

pub use format::{Batch, Header, MAX_TAG_BYTES, Records};
pub use reader::{Gap, JournalReader, Tail, Tear};
pub use recover::Recovery;
pub use writer::{Journal, Position};

/// Settings of a journal.
#[derive(Debug, Clone)]
pub struct Options {
    /// Largest payload of one batch, when writing and when reading.
    pub max_batch_bytes: u32,
    /// Frames waiting to be written; submitters wait while there is more.
    pub queue_bytes: usize,
    /// Whether damaged places between good frames are skipped and reported instead of being an error.
    pub lenient: bool,
}

impl Options {
    /// Default of [`Options::max_batch_bytes`]: 64 MiB.
    pub const MAX_BATCH_BYTES: u32 = 64 << 20;
    /// Default of [`Options::queue_bytes`]: 8 MiB.
    pub const QUEUE_BYTES: usize = 8 << 20;
}

impl Default for Options {
    fn default() -> Self {
        Options { max_batch_bytes: Self::MAX_BATCH_BYTES, queue_bytes: Self::QUEUE_BYTES, lenient: false }
    }
}

#[cfg(test)]
mod tests;
