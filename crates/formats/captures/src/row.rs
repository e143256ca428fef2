//! One row of the index.

use trawl_model::Place;

/// One fetch. The first thirteen fields are the contract that everybody can rely on: never null, "nothing" is the empty
/// string, 0 or false. The others are `None` where unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CaptureRow {
    /// The URL that was fetched.
    pub url: String,
    /// Host of that URL, lower case, without port; empty if there is none.
    pub host: String,
    /// HTTP status; 0 when the fetch failed before a response.
    pub status: i32,
    /// When the fetch completed, Unix milliseconds.
    pub fetched_at: i64,
    /// `Content-Type` of the response.
    pub content_type: String,
    /// Stored body bytes; of a revisit, those that were left out.
    pub body_length: i64,
    /// SHA-1 of the stored body, lower-case hex.
    pub digest: String,
    /// The body was the same as before, so a revisit was stored.
    pub unchanged: bool,
    /// The WARC file that holds the response.
    pub warc_file: String,
    /// Where its record begins there.
    pub warc_offset: i64,
    /// How long its record is, as stored.
    pub warc_length: i64,
    /// Why the fetch failed; empty on success.
    pub error: String,
    /// The seed's metadata, a JSON object as it came.
    pub meta_json: String,

    /// When the fetch began, Unix milliseconds: equal to `WARC-Date`.
    pub started_at: Option<i64>,
    /// The kind of failure.
    pub error_class: Option<String>,
    /// Why the stored body is shorter than what the server had.
    pub truncated: Option<String>,
    /// `Content-Encoding` of the response.
    pub content_encoding: Option<String>,
    /// SHA-256 of the decoded body, lower-case hex.
    pub body_digest: Option<String>,
    /// `http/1.1`, `h2`.
    pub http_version: Option<String>,
    /// Where a redirect leads, absolute.
    pub redirect_to: Option<String>,
    /// The URL whose redirect led here.
    pub redirect_of: Option<String>,
    /// Which attempt this was, from 1.
    pub attempt: Option<i32>,
    /// `response` or `revisit`.
    pub record_type: Option<String>,
    /// Id of that record, without brackets.
    pub record_id: Option<String>,
    /// Target of the capture a revisit refers to.
    pub refers_to_uri: Option<String>,
    /// Date of the capture a revisit refers to, Unix milliseconds.
    pub refers_to_date: Option<i64>,
    /// What robots.txt said.
    pub robots: Option<String>,
    /// Sort key of the URL.
    pub surt: Option<String>,
    /// Registrable domain of the host.
    pub registered_domain: Option<String>,
    /// Milliseconds to connect.
    pub connect_ms: Option<i64>,
    /// Milliseconds of the TLS handshake.
    pub tls_ms: Option<i64>,
    /// Milliseconds until the first byte.
    pub ttfb_ms: Option<i64>,
    /// Milliseconds of it all.
    pub fetch_duration_ms: Option<i64>,
    /// Address of the peer.
    pub ip_address: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// `ETag` of the response.
    pub etag: Option<String>,
    /// `Last-Modified` of the response.
    pub last_modified: Option<String>,
    /// The URL on which the link was found.
    pub via: Option<String>,
    /// Links followed from a seed.
    pub depth: Option<i32>,
    /// `TLSv1.3`.
    pub tls_version: Option<String>,
    /// Cipher suite by its IANA name.
    pub tls_cipher_suite: Option<String>,
    /// Why the certificate would have been refused.
    pub tls_refused: Option<String>,
}

impl CaptureRow {
    /// Whether the fetch failed.
    pub fn is_failure(&self) -> bool {
        !self.error.is_empty()
    }

    /// Whether it is a good response with a whole body: one that may be left out because that body is archived already, or
    /// stand for others.
    pub fn has_whole_body(&self) -> bool {
        (200..300).contains(&self.status)
            && self.body_length > 0
            && self.truncated.is_none()
            && self.record_type.as_deref() == Some("response")
    }

    /// Says where the record lies. A failed fetch has no record of its own in the index, so its row stays as it is.
    pub fn set_place(&mut self, place: &Place) {
        if !self.is_failure() {
            self.warc_file = place.file.to_string();
            self.warc_offset = i64::try_from(place.offset).unwrap_or(i64::MAX);
            self.warc_length = i64::try_from(place.length).unwrap_or(i64::MAX);
        }
    }

    /// Where the record lies; `None` if there is none.
    pub fn place(&self) -> Option<Place> {
        let number = |n: i64| u64::try_from(n).ok();
        (!self.warc_file.is_empty())
            .then(|| Some(Place::new(self.warc_file.as_str(), number(self.warc_offset)?, number(self.warc_length)?)))
            .flatten()
    }
}
