//! Digests of blocks and payloads.

use std::io::{self, Read};
use trawl_io::Hasher;
use trawl_model::Digest;

/// SHA-1 of several pieces as if they were one.
pub(crate) fn sha1_of(pieces: &[&[u8]]) -> Digest {
    let mut hasher = Hasher::sha1();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finish()
}

/// SHA-1 of a body, and of `head` followed by it; and the body's length.
pub(crate) fn sha1_of_message(head: &[u8], body: &mut dyn Read) -> io::Result<(Digest, Digest, u64)> {
    let mut payload = Hasher::sha1();
    let mut block = Hasher::sha1();
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
    Ok((payload.finish(), block.finish(), len))
}
