//! Postings: for each (slot, dataset) the rows of the domain, as runs of rows in Parquet files.
//!
//! One pair of files a shard, `postings/{shard}/postings.idx.zst` and `postings.dat.zst`; shard = slot mod shards.
//! Both are seekable zstd; all offsets are of decompressed bytes. Little-endian, uvarint is LEB128.
//!
//! ```text
//! postings.idx.zst                                  postings.dat.zst
//!  off size field                                    off size field
//!   0   4   magic "PDX1"                              0   4   magic "PDD1"
//!   4   4   version, now 3                            4   4   version, now 3
//!   8   8   N                                         8   -   payloads, in the order of their entries
//!  16   8   dat_offset: of the first payload, 8
//!  24  24N  entries, sorted by (domain_id, dataset_id): payload
//!             0 8 domain_id: the slot                   uvarint runs * 2 + near; runs at least 1, then per run
//!             8 4 dataset_id                              uvarint file_id, less that of the run before
//!            12 8 payload_offset                          uvarint row_group, less that of the run before if the
//!            20 4 payload_len                                     file is the same
//!                                                         uvarint first_row within the row group
//!                                                         uvarint row_count, at least 1
//! ```
//! If near is 1 the first run has in place of its first three numbers only the rows between it and the last run of the
//! same dataset among the payloads before it in its group (64 entries, counted from the first of the index frame): it is
//! in the same row group. A payload that begins more than 4096 bytes after the first one of its group is never near, and
//! no later one of the group refers to what came before that. So the rows of a domain, which follow those of the domain
//! before, take two bytes or three. The checksums of the frames guard both files.
//!
//! Version 2 has payloads that stand alone, with a crc32c of their own in front and the number of runs as it is; it is
//! read, and was written until the side frame was of version 2.
//!
//! The index's frames hold 512 entries each (the first one 511, after the header). Its side frame has, for each frame,
//! what the first entry is, so that one read finds an entry, and the payloads it may have can be asked for at once:
//!
//! ```text
//!   0   4   magic "TPIX"
//!   4   4   version, now 2: of payloads of version 3
//!   8   -   per frame: uvarint slot, less that of the frame before
//!                      uvarint dataset_id
//!                      uvarint payload_offset, less that of the frame before
//! ```
//! Version 1, the seed's `(file_id, row_group)` tuples, was never written.
//! Invariants: payloads follow one another without gaps; runs rise by (file_id, row_group).

mod payload;
mod reader;
mod writer;

pub use payload::Run;
pub use reader::Shard;
pub(crate) use reader::ShardWalk;
pub use writer::ShardWriter;

const IDX_MAGIC: [u8; 4] = *b"PDX1";
const DAT_MAGIC: [u8; 4] = *b"PDD1";
const SIDE_MAGIC: [u8; 4] = *b"TPIX";
const VERSION: u32 = 3;
const SIDE_VERSION: u32 = 2;
const HEADER: u64 = 4 + 4 + 8 + 8;
const ENTRY: u64 = 8 + 4 + 8 + 4;
const DAT_HEADER: u64 = 4 + 4;
const _: () = assert!(HEADER == 24 && ENTRY == HEADER);

/// Entries in a frame of the index: 12 KiB, which decompress in about 10 us.
const FRAME_ENTRIES: u64 = 512;
/// Entries whose payloads may refer to each other: a lookup decodes half of them, about a microsecond.
const GROUP_ENTRIES: u64 = 64;
/// Payload bytes after which no payload of a group refers to another: what a lookup reads beside its own.
const GROUP_BYTES: u64 = 4096;
/// Bytes in a frame of payloads.
const DAT_FRAME: usize = 16 * 1024;
/// Longest payload: millions of runs.
const MAX_PAYLOAD: u32 = 64 << 20;
const LEVEL: i32 = 9;

/// Runs as a payload, to be carried through a sort.
pub(crate) fn encode_runs(runs: &[Run]) -> crate::Result<Vec<u8>> {
    let mut out = Vec::new();
    payload::encode(runs, &mut out).map_err(|e| payload_input(&e))?;
    Ok(out)
}

/// What [`encode_runs`] wrote.
pub(crate) fn decode_runs(bytes: &[u8]) -> crate::Result<Vec<Run>> {
    payload::decode(bytes).map_err(|e| payload_input(&e))
}

fn payload_input(error: &payload::PayloadError) -> crate::Error {
    crate::Error::Input { at: "postings".into(), expected: "runs of rows, in order", found: error.to_string() }
}

/// File names within a segment.
pub fn paths(shard: u32) -> [String; 2] {
    [format!("postings/{shard}/postings.idx.zst"), format!("postings/{shard}/postings.dat.zst")]
}

/// Most shards a segment has.
pub const MAX_SHARDS: u32 = 1024;

/// Shards for a segment with so many (slot, dataset) pairs: one while it is small, the seed's 1024 for the largest.
///
/// A shard of a million pairs has an index of about 2,000 frames: its tables take 50 KB once opened.
pub fn shards_for(pairs: u64) -> u32 {
    u32::try_from(pairs.div_ceil(1 << 20).next_power_of_two().min(u64::from(MAX_SHARDS))).unwrap_or(MAX_SHARDS)
}

#[cfg(test)]
mod tests;
