//! Text files of many lines that are found by number or, where lines are sorted, by content.
//!
//! Seekable zstd whose frames end at line ends, with the first line of each frame in the side frame:
//!
//! ```text
//!  off size field
//!   0   4   magic "TLIX"
//!   4   4   version, now 1
//!   8   8   lines in the file
//!  16   -   per frame, in order:
//!             uvarint  lines in it, at least 1
//!             uvarint  leading bytes its first key shares with the key before
//!             uvarint  length of the rest, then the rest of its first key
//! ```
//! A key is the whole first line where lines are sorted (`domains.txt.zst`), and empty where they are found by number
//! (`files.tsv.zst`). Integers are little-endian; uvarint is LEB128.

mod block;
mod index;
mod reader;
mod writer;

pub use block::Block;
pub use reader::Lines;
pub use writer::{Keys, LinesWriter};

/// Longest line, line end included.
pub const MAX_LINE: usize = 4096;
const MAGIC: [u8; 4] = *b"TLIX";
const VERSION: u32 = 1;

#[cfg(test)]
mod tests;
