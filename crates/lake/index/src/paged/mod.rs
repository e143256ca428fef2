//! Page checksums for files that are read in small pieces: a body, then a checksum of each of its pages.
//!
//! The body is whatever the format in it says, byte for byte from offset 0, so that a reader which knows only that
//! format still finds it. A page is checked when it is read, of a mapped file once. Little-endian.
//!
//! ```text
//!  off  size field
//!   0    b   body
//!   b   4 p  crc32c of each 4096-byte page of the body, the last one shorter; p = ceil(b / 4096)
//!        8   b
//!        4   crc32c of the checksums and b
//!        4   magic "TPCK"
//! ```

mod reader;
mod writer;

pub use reader::{PagedReader, Piece};
pub use writer::PagedWriter;

/// Bytes of a page: a check costs a third of a microsecond, the checksums one thousandth of the file.
pub const PAGE: usize = 4096;
const MAGIC: [u8; 4] = *b"TPCK";
const FOOTER: usize = 8 + 4 + 4;
const _: () = assert!(FOOTER == 16);

#[cfg(test)]
mod tests;
