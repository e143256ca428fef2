//! Seen filters: "this URL is certainly not in the file", in a few bits a URL.
//!
//! ```text
//! off size field                        blocked Bloom            ribbon
//!  0   1   version                      1                        1
//!  1   1   kind                         0                        1
//!  2   1                                k, bits set a key        r, bits a slot (1 to 16)
//!  3   1                                0                        0
//!  4   4                                0                        seed
//!  8   8                                512-bit blocks           n, keys
//! 16   8                                keys added               m, slots
//! 24                                    u64 capacity, words      m x r bits, packed
//! ```
//! A ribbon of r = 7 takes 7.8 bits a key and is wrong for one stranger in 128; a Bloom filter takes 11 for one in 100.

mod bloom;
mod ribbon;
#[cfg(test)]
mod tests;

pub use bloom::Bloom;
pub(crate) use ribbon::build as build_ribbon;
pub use ribbon::{DEFAULT_BITS, Ribbon};

use crate::error::Malformed;
use bytes::Bytes;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_url::key::UrlKey;

const VERSION: u8 = 1;
const KIND_BLOOM: u8 = 0;
const KIND_RIBBON: u8 = 1;

/// The words that begin every filter.
struct Head {
    kind: u8,
    parameter: u8,
    word: u32,
    counts: [u64; 2],
}

impl Head {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, self.kind, self.parameter, 0]);
        out.extend_from_slice(&self.word.to_le_bytes());
        self.counts.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
    }

    fn decode(r: &mut SliceReader<'_>) -> Result<(u8, Head), SliceError> {
        let [version, kind, parameter, _] = r.array("a filter's head")?;
        let word = r.u32("a filter's seed")?;
        let counts = [r.u64("a filter's first count")?, r.u64("a filter's second count")?];
        Ok((version, Head { kind, parameter, word, counts }))
    }
}

/// A seen filter of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Kind 0.
    Bloom(Bloom),
    /// Kind 1.
    Ribbon(Ribbon),
}

impl Filter {
    /// Reads the bytes of a filter. Every length is checked.
    pub(crate) fn decode(blob: Bytes) -> Result<Filter, Malformed> {
        let mut r = SliceReader::new(&blob);
        let (version, head) = Head::decode(&mut r)?;
        if version != VERSION {
            return Err(Malformed::new("filter version 1", version));
        }
        let body = blob.slice(r.offset() as usize..);
        match head.kind {
            KIND_BLOOM => Bloom::decode(&head, &body).map(Filter::Bloom),
            KIND_RIBBON => Ribbon::decode(&head, body).map(Filter::Ribbon),
            other => Err(Malformed::new("filter kind 0 or 1", other)),
        }
    }

    /// Whether the key may be in it: `false` is certain.
    pub fn may_contain(&self, key: UrlKey) -> bool {
        match self {
            Filter::Bloom(filter) => filter.may_contain(key),
            Filter::Ribbon(filter) => filter.may_contain(key),
        }
    }

    /// Keys it was made of.
    pub fn key_count(&self) -> u64 {
        match self {
            Filter::Bloom(filter) => filter.key_count(),
            Filter::Ribbon(filter) => filter.key_count(),
        }
    }

    /// `bloom` or `ribbon`.
    pub fn kind(&self) -> &'static str {
        match self {
            Filter::Bloom(_) => "bloom",
            Filter::Ribbon(_) => "ribbon",
        }
    }
}

/// Reads the bytes of a filter that is not part of a file.
///
/// ```
/// use trawl_meguri::filter::{Bloom, parse};
/// use trawl_url::key::UrlKey;
/// let mut bloom = Bloom::with_capacity(100, 0.01);
/// bloom.add(UrlKey { host: 1, path: 2 });
/// let filter = parse(bloom.encode())?;
/// assert!(filter.may_contain(UrlKey { host: 1, path: 2 }));
/// # Ok::<(), trawl_meguri::Error>(())
/// ```
pub fn parse(blob: impl Into<Bytes>) -> crate::Result<Filter> {
    let at = crate::error::At::new(std::path::Path::new("(filter)"), 0);
    Filter::decode(blob.into()).map_err(|e| e.at(at))
}
