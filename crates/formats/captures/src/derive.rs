//! The one function that makes a row out of a capture: the crawl uses it while it writes, and a rebuild uses it on what it
//! reads, so both say the same.

use crate::error::{Error, Result};
use crate::row::CaptureRow;
use std::io;
use trawl_http::Head;
use trawl_io::Hasher;
use trawl_model::{Algorithm, Body, Capture, Digest, Outcome, Place};
use trawl_url::{Base, LakeUrl, SuffixList, surt};

impl CaptureRow {
    /// The row of a capture that lies at `place`; without one, add it later by [`CaptureRow::set_place`].
    ///
    /// A response whose digest is not known yet is read to compute it, so its body must be readable again: in memory or
    /// spooled.
    pub fn from_capture(capture: &mut Capture<'_>, place: Option<&Place>) -> Result<Self> {
        let facts = &capture.facts;
        let millis = |ms: Option<u32>| ms.map(i64::from);
        let mut row = CaptureRow {
            url: capture.url.clone(),
            fetched_at: facts.fetched_at.0,
            meta_json: facts.meta_json.clone().unwrap_or_default(),
            started_at: Some(capture.started_at.0),
            body_digest: facts.body_digest.as_ref().map(Digest::hex),
            http_version: facts.protocol.clone(),
            redirect_of: facts.redirect_of.clone(),
            attempt: (facts.attempt > 0).then(|| i32::try_from(facts.attempt).unwrap_or(i32::MAX)),
            robots: facts.robots.map(|v| v.to_string()),
            connect_ms: millis(facts.timings.connect_ms),
            tls_ms: millis(facts.timings.tls_ms),
            ttfb_ms: millis(facts.timings.ttfb_ms),
            fetch_duration_ms: millis(facts.timings.total_ms),
            ip_address: facts.ip.map(|ip| ip.to_string()),
            run_id: facts.run_id.clone(),
            via: facts.via.clone(),
            depth: Some(i32::try_from(facts.depth).unwrap_or(i32::MAX)),
            tls_version: facts.tls.as_ref().map(|tls| tls.version.clone()),
            tls_cipher_suite: facts.tls.as_ref().map(|tls| tls.cipher_suite.clone()),
            tls_refused: facts.tls.as_ref().and_then(|tls| tls.refused.clone()),
            ..CaptureRow::default()
        };
        row.url_columns();
        let record_id = facts.record_id.clone();
        match &mut capture.outcome {
            Outcome::Response { message, payload_digest, truncated } => {
                row.head_columns(&message.head);
                row.body_length = i64::try_from(message.body.len_bytes()).unwrap_or(i64::MAX);
                let known = payload_digest.as_ref().filter(|d| d.algorithm() == Algorithm::Sha1);
                row.digest = match known {
                    Some(digest) => digest.hex(),
                    None => sha1(&mut message.body)
                        .map_err(|source| Error::Body { url: capture.url.clone(), source })?
                        .hex(),
                };
                row.truncated = truncated.map(|t| t.to_string());
                row.record_type = Some("response".into());
                row.record_id = record_id;
            }
            Outcome::Revisit(revisit) => {
                row.head_columns(&revisit.head);
                row.body_length = i64::try_from(revisit.body_length).unwrap_or(i64::MAX);
                row.digest = revisit.payload_digest.as_ref().map(Digest::hex).unwrap_or_default();
                row.unchanged = true;
                row.refers_to_uri = revisit.refers_to_url.clone();
                row.refers_to_date = revisit.refers_to_date.map(|date| date.0);
                row.record_type = Some("revisit".into());
                row.record_id = record_id;
            }
            Outcome::Failed(failure) => {
                let text = failure.message.as_str();
                row.error = if text.is_empty() { failure.class.to_string() } else { text.to_owned() };
                row.error_class = Some(failure.class.to_string());
            }
        }
        if let Some(place) = place {
            row.set_place(place);
        }
        Ok(row)
    }

    /// Fills the columns that follow from the URL.
    pub fn url_columns(&mut self) {
        // The lake takes a bare host name for a URL; a fetch of one failed, and its row has no host.
        if !self.url.contains("://") {
            return;
        }
        if let Ok(url) = LakeUrl::parse(&self.url, SuffixList::builtin()) {
            self.host = url.host().to_owned();
            self.registered_domain = Some(url.domain().to_owned());
            self.surt = Some(surt::of(&url));
        }
    }

    fn head_columns(&mut self, head: &[u8]) {
        let head = Head::new(head);
        self.status = head.status().map_or(0, i32::from);
        self.content_type = head.text("Content-Type").unwrap_or_default();
        self.content_encoding = head.text("Content-Encoding");
        self.etag = head.text("ETag");
        self.last_modified = head.text("Last-Modified");
        if self.http_version.is_none() {
            self.http_version = head.version().map(|v| String::from_utf8_lossy(v).to_ascii_lowercase());
        }
        self.redirect_to = head.redirect().and_then(|to| Some(Base::new(&self.url).ok()?.resolve(&to).ok()?.into()));
    }
}

/// The digest of a body, which must be readable again: in memory or spooled.
pub fn sha1(body: &mut Body<'_>) -> io::Result<Digest> {
    if let Body::Reader { .. } = body {
        let message = "its digest is not known and it can be read only once";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut hasher = Hasher::sha1();
    if let Body::Memory(bytes) = body {
        hasher.update(bytes);
    } else {
        let mut reader = body.reader()?;
        let mut buf = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buf) {
                Ok(0) => break,
                Ok(n) => hasher.update(buf.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(hasher.finish())
}
