//! `domains.mphf`: from a name to its slot without reading the dictionary, and strangers turned away.
//!
//! A name's slot is its line number in `domains.txt.zst`. The first name of every dictionary block is in memory, so a
//! binary search finds the one block a name can be in; what is left is its place within the block. That is a static
//! function: an array in which the four places a name hashes to, xored together, give the value
//!
//! ```text
//!   bit 0..16           signature of the name: a stranger passes with chance 2^-16
//!   bit 16..16+offset   line number within the block: a stranger often falls off the block's end, too
//! ```
//! Rank order is thus kept by construction: a monotone minimal perfect hash at about 29 bits a name, signature included.
//! Names come in chunks of consecutive blocks, each with an array of its own, so a build holds one chunk in memory.
//! The answer is a candidate: the caller compares the name with the line.
//!
//! ```text
//!  off size field                                 little-endian
//!   0   4   magic "TMPH"
//!   4   4   version, now 1
//!   8   -   arrays of the chunks, one after another
//!   t  36c  chunk table, per chunk:
//!             0 4 first block                    20 8 offset of its array in the file
//!             4 4 number of blocks               28 4 length of its array, padding included
//!             8 4 number of names                32 4 crc32c of its array
//!            12 1 kind: 0 no array, search the block; 1 array
//!            13 1 seed number                    14 1 bits of the line number, at most 16
//!            15 1 log2 of the segment length, at most 16
//!            16 4 segments a first place can be in
//!      40   footer:
//!             0 8 names n                         8 8 xxh3_64 of domains.txt.zst
//!            16 8 xxh3_64 of its seek table      24 4 chunks c
//!            28 4 reserved, 0                    32 4 crc32c of bytes 0..8, the table and footer 0..32
//!            36 4 magic "TMPE"
//! ```
//! An array has `(segments + 3) << log2` values of `16 + bits` bits, low bits first, then 8 bytes of padding.
//! The places of a name, from its seeded 128-bit xxh3 (`hi`, `lo`): the first is `hi * (segments << log2) >> 64`, each
//! further one lies a segment on, with its bits below the segment length xored by 16 bits of `lo`; the signature is the
//! top 16 bits of `lo`.

mod chunk;
mod reader;
mod writer;

pub use reader::{Candidate, Mphf};
pub use writer::{DictionaryHashes, MphfWriter};

const MAGIC: [u8; 4] = *b"TMPH";
const END_MAGIC: [u8; 4] = *b"TMPE";
const VERSION: u32 = 1;
const HEADER: usize = 4 + 4;
const ENTRY: usize = 4 * 3 + 4 + 4 + 8 + 4 + 4;
const FOOTER: usize = 8 * 3 + 4 * 4;
const _: () = assert!(HEADER == 8 && ENTRY == 36 && FOOTER == 40);

/// Names in a chunk, unless a single block has more. A build holds about 60 bytes for each.
const CHUNK_NAMES: u32 = 1 << 18;
/// Bits of the signature.
const SIGNATURE_BITS: u32 = 16;

/// How names are hashed; a parameter so that a test can make hashes collide.
pub type NameHash = fn(name: &[u8], seed: u64) -> u128;

/// The hash files are written with.
pub fn name_hash(name: &[u8], seed: u64) -> u128 {
    xxhash_rust::xxh3::xxh3_128_with_seed(name, seed)
}

#[cfg(test)]
mod tests;
