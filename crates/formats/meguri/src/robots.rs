//! robots.txt as the arena holds it: a byte that says how, then the text.
//!
//! ```text
//! 0          everything is allowed; nothing follows
//! 1 text     as it is
//! 2 bytes    zstd
//! ```

use crate::codec::{Codec, Packer};
use crate::error::{At, Error, Result};
use std::io::Read;
use std::path::Path;

const ALLOW_ALL: u8 = 0;
const PLAIN: u8 = 1;
const PACKED: u8 = 2;
/// The longest text that is unpacked.
pub const MAX_ROBOTS: usize = 4 << 20;

/// Packs a robots.txt: compressed if that makes it shorter.
pub fn pack(text: &[u8], codec: Codec) -> Result<Vec<u8>> {
    if text.is_empty() {
        return Ok(vec![ALLOW_ALL]);
    }
    let packed = Packer::new(codec, crate::codec::REFERENCE_LEVEL, true)?.pack(text.to_vec())?.1;
    let (mode, body) = if packed.len() < text.len() { (PACKED, packed) } else { (PLAIN, text.to_vec()) };
    Ok([vec![mode], body].concat())
}

/// Unpacks a robots.txt of at most [`MAX_ROBOTS`] bytes.
pub fn unpack(blob: &[u8]) -> Result<Vec<u8>> {
    let at = At::new(Path::new("(robots)"), 0);
    match blob {
        [ALLOW_ALL] => Ok(Vec::new()),
        [PLAIN, text @ ..] => Ok(text.to_vec()),
        [PACKED, body @ ..] => {
            let mut text = Vec::new();
            let source = zstd::stream::read::Decoder::with_buffer(body).map_err(|e| at.corrupt("a zstd frame", e))?;
            source.take(MAX_ROBOTS as u64 + 1).read_to_end(&mut text).map_err(|e| at.corrupt("a zstd frame", e))?;
            if text.len() > MAX_ROBOTS {
                return Err(at.over_limit("robots.txt", text.len() as u64, MAX_ROBOTS as u64));
            }
            Ok(text)
        }
        other => Err::<_, Error>(at.corrupt("a packed robots.txt", format!("{:?}", other.first()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_unpacks() {
        assert_eq!(pack(b"Disallow: /q", Codec::Zstd).unwrap(), b"\x01Disallow: /q");
        assert_eq!(pack(b"", Codec::Zstd).unwrap(), [0]);
        let long = b"User-agent: *\nDisallow: /a\n".repeat(50);
        for codec in [Codec::None, Codec::Zstd] {
            let packed = pack(&long, codec).unwrap();
            assert_eq!(packed.len() < long.len(), codec == Codec::Zstd);
            assert_eq!(unpack(&packed).unwrap(), long);
        }
        for wrong in [&b""[..], b"\x00x", b"\x03x", b"\x02x"] {
            assert!(unpack(wrong).is_err(), "{wrong:?}");
        }
        let bomb = zstd::encode_all(&vec![0; MAX_ROBOTS + 1][..], 1).unwrap();
        assert!(unpack(&[vec![2], bomb].concat()).is_err());
    }
}
