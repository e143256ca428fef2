//! How a file is compressed, by its first bytes.

/// How a file or stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Bytes as they are.
    None,
    /// Gzip, of any number of members.
    Gzip,
    /// Zstandard, of any number of frames.
    Zstd,
}

impl Compression {
    /// By the first four bytes. Fewer of them, and anything that is not gzip or zstd, count as uncompressed.
    ///
    /// ```
    /// # use trawl_io::Compression;
    /// assert_eq!(Compression::detect(&[0x1f, 0x8b, 8, 0]), Compression::Gzip);
    /// assert_eq!(Compression::detect(b"WARC"), Compression::None);
    /// ```
    pub fn detect(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one that readers skip: dictionaries and seek tables come in those.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What a file's name ends in: `.gz`, `.zst`, or nothing.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}
