//! How much memory the words of a file may claim.

/// Limits of a reader. Lengths in files are claims: a larger one is an error, not an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Stored bytes of a record, key and value together, or of one buffer of a block.
    pub stored_bytes: u64,
    /// Bytes that one value or one buffer of a block may grow to when it is unpacked.
    pub unpacked_bytes: usize,
    /// Bytes of a MapFile's index, which is kept in memory: its keys, and 16 for each entry.
    pub index_bytes: usize,
}

impl Default for Limits {
    /// 256 MiB each: Hadoop's blocks have 1 MB, Nutch's pages 1 MiB unless configured.
    fn default() -> Self {
        Limits { stored_bytes: 256 << 20, unpacked_bytes: 256 << 20, index_bytes: 256 << 20 }
    }
}
