//! The arena: the texts that both tables point into.
//!
//! ```text
//! region   one page of kind 3
//! payload  00 | entry | entry | …          entry: uvarint length, bytes
//!
//! stored by us, with zstd:
//!   frame 0 | frame 1 | … | skippable frame: seek table
//!
//! seek table   off size field
//!               0   4   magic 0x184d2a5e
//!               4   4   length of the rest, 8 f + 9
//!               8  8f   per frame: u32 compressed size, u32 decompressed size
//!              +0   4   f
//!              +4   1   descriptor 0
//!              +5   4   magic 0x8f92eab1
//! ```
//! References are offsets of entries in the payload; 0 means none. A frame decompresses to about 256 KiB, ends after
//! the texts of a row, and carries zstd's checksum of its content, so one text costs one frame. The number of frames
//! and the crc32c of the seek table stand in the metadata, so nothing of it is believed unchecked. The reference reads
//! the frames as one payload.
//!
//! Texts of URL rows come first, in row order: references ascend, and neighbours compress well. A frame of URLs is
//! followed by one of ETags and all else of the same rows, if they have any. Texts of hosts follow in frames of their own, so that reading the host
//! table touches no other. A text that comes again within a frame is stored once; beyond that it is stored again, or
//! reading a row could cost many frames.

mod frames;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use frames::FrameTable;
pub use reader::{Arena, Text};
pub(crate) use writer::{ArenaWriter, FrameEnd, StoredArena, seal_whole};

use crate::error::Malformed;
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

/// The longest text that is written.
pub const MAX_TEXT: usize = 16 << 20;

/// Appends an entry.
pub(crate) fn put_entry(out: &mut Vec<u8>, text: &[u8]) {
    put_uvarint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// The places of the text of the entry that begins at `at`.
pub(crate) fn entry_at(arena: &[u8], at: u64) -> Option<std::ops::Range<usize>> {
    let at = usize::try_from(at).ok()?;
    let mut r = SliceReader::at(arena.get(at..)?, at as u64);
    let length = usize::try_from(r.uvarint("a text's length").ok()?).ok()?;
    r.take(length, "a text").ok()?;
    let end = usize::try_from(r.offset()).ok()?;
    Some(end - length..end)
}

fn too_long(len: usize) -> crate::Error {
    crate::Error::Refused(format!("a text of {len} bytes: the longest may have {MAX_TEXT}"))
}

fn broken(found: impl ToString) -> Malformed {
    Malformed::new("the seek table of the arena", found)
}
