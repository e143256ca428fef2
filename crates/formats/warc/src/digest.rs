//! Digests of blocks and payloads.

use sha1::Digest as _;
use std::io::{self, Read};
use trawl_model::{Algorithm, Digest};

/// A digest being computed, of whatever algorithm a header names.
pub(crate) enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl Hasher {
    /// `None` for an algorithm this crate does not compute.
    pub(crate) fn new(algorithm: Algorithm) -> Option<Self> {
        match algorithm {
            Algorithm::Sha1 => Some(Self::Sha1(sha1::Sha1::new())),
            Algorithm::Sha256 => Some(Self::Sha256(sha2::Sha256::new())),
            Algorithm::Sha512 => Some(Self::Sha512(sha2::Sha512::new())),
            Algorithm::Md5 => None,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(h) => h.update(bytes),
            Self::Sha256(h) => h.update(bytes),
            Self::Sha512(h) => h.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        match self {
            Self::Sha1(h) => Digest::sha1(h.finalize().into()),
            Self::Sha256(h) => Digest::sha256(h.finalize().into()),
            Self::Sha512(h) => {
                // The lengths agree by construction; the empty digest would never compare equal.
                Digest::new(Algorithm::Sha512, &h.finalize()).unwrap_or_else(|| Digest::sha1([0; 20]))
            }
        }
    }
}

/// SHA-1 of several pieces as if they were one.
pub(crate) fn sha1_of(pieces: &[&[u8]]) -> Digest {
    let mut hasher = sha1::Sha1::new();
    for piece in pieces {
        hasher.update(piece);
    }
    Digest::sha1(hasher.finalize().into())
}

/// SHA-1 of a body, and of `head` followed by it; and the body's length.
pub(crate) fn sha1_of_message(head: &[u8], body: &mut dyn Read) -> io::Result<(Digest, Digest, u64)> {
    let mut payload = sha1::Sha1::new();
    let mut block = sha1::Sha1::new();
    block.update(head);
    let mut buf = vec![0; 64 << 10];
    let mut len = 0u64;
    loop {
        let n = match body.read(&mut buf) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let Some(bytes) = buf.get(..n).filter(|b| !b.is_empty()) else { break };
        payload.update(bytes);
        block.update(bytes);
        len += n as u64;
    }
    Ok((Digest::sha1(payload.finalize().into()), Digest::sha1(block.finalize().into()), len))
}
