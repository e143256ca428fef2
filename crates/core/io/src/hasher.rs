//! SHA-1, SHA-256 and SHA-512 of bytes that arrive in pieces.

use aws_lc_rs::digest::{self, Context};
use trawl_model::{Algorithm, Digest};

/// A digest being computed.
///
/// By aws-lc, which old TLS needs anyway: where the processor has no instructions for SHA, as many servers have not, its assembler
/// takes half the time of the portable code in `sha1` and `sha2`, and digests are half of what a crawl computes there.
#[derive(Clone)]
pub struct Hasher {
    algorithm: Algorithm,
    context: Context,
}

impl Hasher {
    /// `None` for MD5: aws-lc offers it only as a checksum for TLS 1.0.
    pub fn new(algorithm: Algorithm) -> Option<Self> {
        let implementation = match algorithm {
            Algorithm::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => &digest::SHA256,
            Algorithm::Sha512 => &digest::SHA512,
            Algorithm::Md5 => return None,
        };
        Some(Self { algorithm, context: Context::new(implementation) })
    }

    /// SHA-1, which archives use to find equal bodies, not to trust them.
    pub fn sha1() -> Self {
        Self { algorithm: Algorithm::Sha1, context: Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY) }
    }

    /// SHA-256.
    pub fn sha256() -> Self {
        Self { algorithm: Algorithm::Sha256, context: Context::new(&digest::SHA256) }
    }

    /// Adds the bytes that follow.
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// The digest of all bytes that were added.
    pub fn finish(self) -> Digest {
        #[expect(clippy::expect_used, reason = "the context was made for this algorithm: it gives as many bytes")]
        Digest::new(self.algorithm, self.context.finish().as_ref()).expect("a digest of the algorithm's length")
    }
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hasher").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_pieces_are_those_of_the_standards() {
        let vectors = [
            (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                Algorithm::Sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ];
        for (algorithm, expected) in vectors {
            let mut hasher = Hasher::new(algorithm).unwrap();
            hasher.update(b"a");
            let halfway = hasher.clone();
            hasher.update(b"bc");
            assert_eq!(hasher.finish().hex(), expected, "{algorithm:?}");
            assert_ne!(halfway.finish().hex(), expected, "a clone goes its own way");
        }
        assert!(Hasher::new(Algorithm::Md5).is_none());
    }
}
