//! Seekable zstd: what every `.zst` file of an index is.
//!
//! Independent frames of at most 64 KiB each, so that one block costs one ranged read; `zstd -d` gives the whole text.
//! The framing is the published seekable format of zstd with its checksum flag set. Little-endian.
//!
//! ```text
//! [frame 0][frame 1]...[frame n-1]                 zstd frames, content size in each header
//! [side frame, optional]                           skippable: what a reader wants to know of the frames
//! [seek table]                                     skippable, the last frame of the file
//!
//! side frame                                       seek table
//!  off size field                                   off size field
//!   0   4   magic 0x184d2a5d                         0   4   magic 0x184d2a5e
//!   4   4   length of the rest, 4 + s                4   4   length of the rest, 12 f + 9
//!   8   s   its bytes                                8  12f  per frame, the side frame included:
//!  8+s  4   crc32c of them                                      0 4 compressed size
//!                                                               4 4 decompressed size; 0 for the side frame
//!                                                               8 4 low half of xxh64 of the decompressed bytes
//!                                                  8+12f 4   f, the number of frames
//!                                                     +4 1   descriptor: 0x80, checksums are present
//!                                                     +5 4   magic 0x8f92eab1
//! ```
//! Invariants: the compressed sizes and the table add up to the file; no frame is empty but the side frame, which is
//! the last one; no frame decompresses to more than 64 KiB.

mod reader;
mod writer;

pub use reader::Seekable;
pub use writer::SeekableWriter;

/// Most bytes a frame decompresses to.
pub const MAX_FRAME: usize = 64 * 1024;
/// Most frames a file may have: 64 GiB at least of decompressed bytes in full frames, and a table of 192 MiB.
const MAX_FRAMES: u64 = 1 << 24;

const SIDE_MAGIC: u32 = 0x184d_2a5d;
const TABLE_MAGIC: u32 = 0x184d_2a5e;
const FOOTER_MAGIC: u32 = 0x8f92_eab1;
const DESCRIPTOR: u8 = 0x80;
const FOOTER: usize = 4 + 1 + 4;
const ENTRY: usize = 4 + 4 + 4;
const SKIPPABLE_HEADER: usize = 4 + 4;
const _: () = assert!(FOOTER == 9 && ENTRY == 12 && SKIPPABLE_HEADER == 8);

/// The low half of xxh64, as the format wants it.
fn checksum(bytes: &[u8]) -> u32 {
    let [a, b, c, d, ..] = xxhash_rust::xxh64::xxh64(bytes, 0).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests;
