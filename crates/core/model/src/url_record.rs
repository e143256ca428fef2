//! What the lake takes in.

use crate::{Digest, Place, UnixMillis};

/// One URL of a dataset, with whatever its source knew of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UrlRecord {
    /// The URL, raw: as the source spells it.
    pub url: String,
    /// When it was seen or captured.
    pub ts: Option<UnixMillis>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Media type as served.
    pub content_type: Option<String>,
    /// Digest of the stored body.
    pub digest: Option<Digest>,
    /// Stored body bytes.
    pub body_length: Option<u64>,
    /// Where the capture lies in its archive.
    pub place: Option<Place>,
    /// Everything else: a JSON object, compact.
    pub extras: Option<String>,
}

impl UrlRecord {
    /// A record that knows nothing but its URL.
    pub fn bare(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}
