//! What a reader accepts at most. Lengths in files are claims.

/// Limits of a reader: memory and work are bounded by these, not by the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a record's header, its version line included.
    pub header_bytes: usize,
    /// Bytes of a record's block: what `Content-Length` may claim. Blocks stream, so this bounds work, not memory.
    pub block_bytes: u64,
    /// Bytes of the HTTP head inside a block.
    pub http_head_bytes: usize,
    /// Bytes that decoding a content coding may yield.
    pub decoded_bytes: u64,
    /// Base-2 logarithm of the largest zstd window, which is memory.
    pub zstd_window_log: u32,
    /// Bytes of a zstd dictionary in front of a `.warc.zst` file, inflated.
    pub dictionary_bytes: usize,
}

impl Limits {
    /// Header limit unless told otherwise: room for a URL of 64 KiB in each of several fields.
    pub const DEFAULT_HEADER_BYTES: usize = 512 << 10;
    /// Block limit unless told otherwise: the largest bodies crawlers store are films of a few GB.
    pub const DEFAULT_BLOCK_BYTES: u64 = 8 << 30;
    /// HTTP head limit unless told otherwise.
    pub const DEFAULT_HTTP_HEAD_BYTES: usize = 1 << 20;
    /// Decoded body limit unless told otherwise.
    pub const DEFAULT_DECODED_BYTES: u64 = 1 << 30;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: Self::DEFAULT_HEADER_BYTES,
            block_bytes: Self::DEFAULT_BLOCK_BYTES,
            http_head_bytes: Self::DEFAULT_HTTP_HEAD_BYTES,
            decoded_bytes: Self::DEFAULT_DECODED_BYTES,
            zstd_window_log: 27,
            dictionary_bytes: 16 << 20,
        }
    }
}

/// What a parser that never reads says: a value and the bytes it took, or how many it needs before trying again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Parsed.
    Done {
        /// The value.
        value: T,
        /// Bytes of the buffer it took.
        used: usize,
    },
    /// The buffer ends too early.
    NeedMore {
        /// The buffer must have at least this many bytes.
        at_least: usize,
    },
}
