//! Digests that compare by value, whatever algorithm label, alphabet or case they were written in.

use data_encoding::{BASE32, BASE32_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fmt;

/// A digest algorithm that archives use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// 16 bytes.
    Md5,
    /// 20 bytes: what WARC files carry.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 64 bytes.
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The label in front of the colon.
    pub fn label(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Bytes of a digest.
    pub fn len_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn from_label(label: &str) -> Option<Self> {
        let plain: String = label.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        Self::ALL.into_iter().find(|a| a.label() == plain)
    }
}

/// A digest: algorithm and bytes, so that `sha1:` hex equals `sha-1:` Base32 of the same value.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: Vec<u8>,
}

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a digest as [md5|sha1|sha256|sha512:]base16 or base32, found {found:?}")]
pub struct DigestError {
    /// The text, cut to a length fit for a message.
    pub found: String,
}

impl Digest {
    /// A digest from its bytes; `None` when their number does not fit the algorithm.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == algorithm.len_bytes()).then(|| Self { algorithm, bytes: bytes.to_vec() })
    }

    /// A SHA-1 digest from its bytes.
    pub fn sha1(bytes: [u8; 20]) -> Self {
        Self { algorithm: Algorithm::Sha1, bytes: bytes.to_vec() }
    }

    /// A SHA-256 digest from its bytes.
    pub fn sha256(bytes: [u8; 32]) -> Self {
        Self { algorithm: Algorithm::Sha256, bytes: bytes.to_vec() }
    }

    /// Parses `algorithm:value` or a bare value, Base16 or Base32, any case, with or without padding. A bare value's
    /// algorithm follows from its length.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError { found: text.chars().take(90).collect() };
        let text_trimmed = text.trim();
        let (algorithm, value) = match text_trimmed.split_once(':') {
            Some((label, value)) => (Some(Algorithm::from_label(label.trim()).ok_or_else(error)?), value.trim()),
            None => (None, text_trimmed),
        };
        // The longest form of the longest digest is 128 hex digits: nothing longer is worth decoding.
        if value.is_empty() || value.len() > 136 || !value.is_ascii() {
            return Err(error());
        }
        let fits = |bytes: &[u8]| match algorithm {
            Some(a) => (bytes.len() == a.len_bytes()).then_some(a),
            None => Algorithm::ALL.into_iter().find(|a| a.len_bytes() == bytes.len()),
        };
        let unpadded = value.trim_end_matches('=').to_ascii_uppercase();
        let hex = HEXLOWER_PERMISSIVE.decode(value.as_bytes()).ok();
        let base32 = BASE32_NOPAD.decode(unpadded.as_bytes()).ok();
        // Only 32 bare characters fit both ways (MD5 in hex, SHA-1 in Base32). Hex goes first: one in 10^13 Base32
        // values looks like hex, one in 10^4 hex values looks like Base32.
        [hex, base32]
            .into_iter()
            .flatten()
            .find_map(|bytes| fits(&bytes).map(|algorithm| Self { algorithm, bytes }))
            .ok_or_else(error)
    }

    /// Which algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Lower-case hex without a label: the `digest` column of captures.parquet.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.bytes)
    }

    /// As columns of tables spell it: SHA-1, which nearly all are, as in captures.parquet; others with their label. So a lake
    /// and captures.parquet can be joined by it.
    pub fn column(&self) -> String {
        if self.algorithm == Algorithm::Sha1 {
            self.hex()
        } else {
            format!("{}:{}", self.algorithm.label(), self.hex())
        }
    }

    /// As CDX files spell it: without a label, SHA-1 in Base32.
    pub fn cdx(&self) -> String {
        if self.algorithm == Algorithm::Sha1 { self.base32() } else { self.hex() }
    }

    /// Upper-case Base32 without a label: CDX.
    pub fn base32(&self) -> String {
        BASE32.encode(&self.bytes)
    }
}

/// As WARC writes it: SHA-1 in upper-case Base32, the others in lower-case hex.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.algorithm == Algorithm::Sha1 { self.base32() } else { self.hex() };
        write!(f, "{}:{value}", self.algorithm.label())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_value_many_spellings() {
        let empty = Digest::parse("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").unwrap();
        for text in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            " sha_1: 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ ",
        ] {
            assert_eq!(Digest::parse(text).unwrap(), empty, "{text}");
        }
        assert_eq!(empty.to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(empty.hex(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

    #[test]
    fn refused() {
        for text in ["", "sha1:", "sha1:zz", "crc:00", "sha256:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "é", "sha1:0"] {
            assert!(Digest::parse(text).is_err(), "{text}");
        }
        assert!(Digest::parse(&"a".repeat(1 << 20)).is_err());
    }

    proptest! {
        #[test]
        fn every_form_comes_back(seed in proptest::collection::vec(any::<u8>(), 64), which in 0usize..4) {
            let algorithm = Algorithm::ALL[which];
            let digest = Digest::new(algorithm, &seed[..algorithm.len_bytes()]).unwrap();
            prop_assert_eq!(&Digest::parse(&digest.to_string()).unwrap(), &digest);
            prop_assert_eq!(&Digest::parse(&digest.hex()).unwrap(), &digest);
            prop_assert_eq!(&Digest::parse(&digest.column()).unwrap(), &digest);
            prop_assert_eq!(&Digest::parse(&digest.base32()).unwrap(), &digest);
            prop_assert_eq!(&Digest::parse(digest.base32().trim_end_matches('=')).unwrap(), &digest);
        }
    }
}
