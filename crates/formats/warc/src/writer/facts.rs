//! The `metadata` record of an event: every index column that the other records do not carry.
//!
//! Its block is `application/warc-fields`, one `name: value` per line; it begins with `trawlCapture: 1`, by which a reader
//! knows it. Absent facts have no line.
//!
//! ```text
//! trawlCapture: 1
//! fetchedAt: 2026-06-24T01:02:04.000Z       when the fetch completed
//! url: …                                    only where WARC-Target-URI had to spell it differently
//! errorClass, error                         failed fetch: the kind and the text
//! bodyLength                                revisit: length of the body that was left out
//! runId, protocol, redirectOf, via, depth, attempt, robots
//! connectMs, tlsMs, ttfbMs, fetchTimeMs
//! tlsVersion, tlsCipherSuite, tlsRefused
//! bodyDigest: sha256:…                      of the decoded body
//! metaJson: {"source":"sitemap"}            the seed's own metadata, verbatim
//! ```

use super::fields::{parse_fields, put_field};
use std::fmt::Display;
use trawl_model::{CaptureFacts, Digest, ErrorClass, Failure, TlsFacts, UnixMillis};

/// The version in the first line.
const VERSION: &str = "1";

/// What a `metadata` record says about its event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EventFacts {
    /// The URL, where the header spells it differently or not at all.
    pub(crate) url: Option<String>,
    /// Why there is no response.
    pub(crate) failure: Option<Failure>,
    /// Length of the body a revisit left out.
    pub(crate) body_length: Option<u64>,
    /// Everything else but the address, which is a header field.
    pub(crate) facts: CaptureFacts,
}

impl EventFacts {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        let facts = &self.facts;
        put_field(&mut out, "trawlCapture", VERSION);
        put_field(&mut out, "fetchedAt", &facts.fetched_at.to_string());
        let mut put = |name: &str, value: Option<&dyn Display>| {
            if let Some(value) = value {
                put_field(&mut out, name, &value.to_string());
            }
        };
        fn shown<T: Display>(value: &Option<T>) -> Option<&dyn Display> {
            value.as_ref().map(|v| v as &dyn Display)
        }
        fn not_zero(value: &u32) -> Option<&dyn Display> {
            (*value != 0).then_some(value as &dyn Display)
        }
        put("url", shown(&self.url));
        put("errorClass", self.failure.as_ref().map(|f| &f.class as &dyn Display));
        put("error", self.failure.as_ref().map(|f| &f.message as &dyn Display));
        put("bodyLength", shown(&self.body_length));
        put("runId", shown(&facts.run_id));
        put("protocol", shown(&facts.protocol));
        put("redirectOf", shown(&facts.redirect_of));
        put("via", shown(&facts.via));
        put("depth", not_zero(&facts.depth));
        put("attempt", not_zero(&facts.attempt));
        put("robots", shown(&facts.robots));
        put("connectMs", shown(&facts.timings.connect_ms));
        put("tlsMs", shown(&facts.timings.tls_ms));
        put("ttfbMs", shown(&facts.timings.ttfb_ms));
        put("fetchTimeMs", shown(&facts.timings.total_ms));
        if let Some(tls) = &facts.tls {
            put("tlsVersion", Some(&tls.version));
            put("tlsCipherSuite", Some(&tls.cipher_suite));
            put("tlsRefused", shown(&tls.refused));
        }
        put("bodyDigest", shown(&facts.body_digest));
        put("metaJson", shown(&facts.meta_json));
        out
    }

    /// What a `metadata` block says; `None` if another program wrote it.
    pub(crate) fn decode(block: &[u8]) -> Option<Self> {
        if !block.starts_with(b"trawlCapture:") {
            return None;
        }
        let fields = parse_fields(block);
        let get = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let text = |name: &str| get(name).map(str::to_owned);
        let number = |name: &str| get(name).and_then(|v| v.parse::<u32>().ok());
        if get("trawlCapture") != Some(VERSION) {
            return None;
        }
        let mut facts = CaptureFacts {
            fetched_at: get("fetchedAt").and_then(|v| UnixMillis::parse(v).ok()).unwrap_or_default(),
            run_id: text("runId"),
            protocol: text("protocol"),
            redirect_of: text("redirectOf"),
            via: text("via"),
            depth: number("depth").unwrap_or(0),
            attempt: number("attempt").unwrap_or(0),
            robots: get("robots").and_then(|v| v.parse().ok()),
            body_digest: get("bodyDigest").and_then(|v| Digest::parse(v).ok()),
            meta_json: text("metaJson"),
            ..CaptureFacts::default()
        };
        facts.timings.connect_ms = number("connectMs");
        facts.timings.tls_ms = number("tlsMs");
        facts.timings.ttfb_ms = number("ttfbMs");
        facts.timings.total_ms = number("fetchTimeMs");
        if let (Some(version), Some(cipher_suite)) = (text("tlsVersion"), text("tlsCipherSuite")) {
            facts.tls = Some(TlsFacts { version, cipher_suite, refused: text("tlsRefused") });
        }
        let failure = get("errorClass")
            .and_then(|v| v.parse::<ErrorClass>().ok())
            .map(|class| Failure { class, message: text("error").unwrap_or_default() });
        let body_length = get("bodyLength").and_then(|v| v.parse().ok());
        Some(EventFacts { url: text("url"), failure, body_length, facts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::{RobotsVerdict, Timings};

    #[test]
    fn everything_comes_back() {
        let full = EventFacts {
            url: Some("not\na url".into()),
            failure: Some(Failure { class: ErrorClass::BodyTimeout, message: "  odd\ttext ".into() }),
            body_length: Some(u64::MAX),
            facts: CaptureFacts {
                fetched_at: UnixMillis(1_782_262_923_456),
                record_id: None,
                run_id: Some("run 7".into()),
                ip: None,
                protocol: Some("h2".into()),
                redirect_of: Some("http://a.example/".into()),
                via: Some("http://b.example/?q=é".into()),
                depth: 3,
                attempt: 2,
                robots: Some(RobotsVerdict::Ignored),
                timings: Timings { connect_ms: Some(0), tls_ms: Some(1), ttfb_ms: Some(2), total_ms: Some(u32::MAX) },
                body_digest: Some(Digest::sha256([7; 32])),
                meta_json: Some("{\"a\": 1,\n\"b\":\"\\u2028\"}".into()),
                tls: Some(TlsFacts {
                    version: "TLSv1.3".into(),
                    cipher_suite: "TLS_AES_128_GCM_SHA256".into(),
                    refused: Some("expired".into()),
                }),
            },
        };
        assert_eq!(EventFacts::decode(&full.encode()).unwrap(), full);
        let empty = EventFacts::default();
        assert_eq!(EventFacts::decode(&empty.encode()).unwrap(), empty);
        assert_eq!(EventFacts::decode(b"via: http://a.example/\r\n"), None);
        assert_eq!(EventFacts::decode(b"trawlCapture: 2\r\n"), None);
    }
}
