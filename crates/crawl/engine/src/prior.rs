//! What is known of an earlier capture of a seed: a request can be conditional, and an answer that changed nothing a revisit.
//!
//! It comes with the seed, in its metadata: `etag`, `last_modified` and `digest` of a line or a column, or what a row of an
//! earlier captures.parquet or CDXJ says. [`note`] gathers it under the name `prior`, where a crawl finds it with the URL.
//!
//! ```json
//! {"prior":{"etag":"\"abc\"","last_modified":"Tue, 23 Jun 2026 …","digest":"sha1:…","date":"2026-06-24T01:02:03.456Z","id":"urn:uuid:…"}}
//! ```

use serde_json::{Map, Value};
use trawl_fetch::Validators;
use trawl_http::Head;
use trawl_model::{Capture, Digest, Outcome, Revisit, RevisitProfile, UnixMillis, UrlRecord};

const ALONE: &str = "{\"prior\":";
const BEHIND: &str = ",\"prior\":";
const FIELDS: [&str; 3] = ["etag", "last_modified", "record_id"];

/// An earlier capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prior {
    pub validators: Validators,
    pub digest: Option<Digest>,
    pub date: Option<UnixMillis>,
    pub id: Option<String>,
}

/// The metadata of a seed, with what its record says of an earlier capture.
pub(crate) fn note(record: &UrlRecord) -> Option<String> {
    let extras = record.extras.clone();
    let has_field = extras.as_deref().is_some_and(|text| FIELDS.iter().any(|name| text.contains(name)));
    // Only a capture with a body can be the one that a revisit refers to.
    let captured = record.status.is_none_or(|status| status == 200);
    if !captured || record.digest.is_none() && !has_field {
        return extras;
    }
    let all: Map<String, Value> = match extras.as_deref().map(serde_json::from_str) {
        None => Map::new(),
        Some(Ok(Value::Object(all))) => all,
        Some(_) => return extras,
    };
    let mut prior = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            prior.insert(name.to_owned(), value.into());
        }
    };
    let text = |name: &str| all.get(name).and_then(Value::as_str).map(str::to_owned);
    put("etag", text("etag"));
    put("last_modified", text("last_modified").or_else(|| text("last-modified")));
    put("id", text("record_id"));
    put("digest", record.digest.as_ref().map(ToString::to_string));
    put("date", record.ts.map(|time| time.to_string()));
    if prior.keys().all(|name| name == "date") {
        return extras;
    }
    // Behind the seed's own metadata, whose bytes stay as they came.
    let prior = Value::from(prior);
    match extras.as_deref().and_then(|text| text.trim_end().strip_suffix('}')) {
        Some(own) if !all.is_empty() => Some(format!("{own}{BEHIND}{prior}}}")),
        _ => Some(format!("{ALONE}{prior}}}")),
    }
}

/// What a seed's metadata says of an earlier capture, and the metadata without it.
pub(crate) fn take(meta_json: &mut Option<String>) -> Prior {
    let Some((own, said)) = meta_json.as_deref().and_then(split) else { return Prior::default() };
    *meta_json = own;
    let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
    Prior {
        validators: Validators { etag: text("etag"), last_modified: text("last_modified") },
        digest: text("digest").and_then(|text| Digest::parse(&text).ok()),
        date: text("date").and_then(|text| UnixMillis::parse(&text).ok()),
        id: text("id"),
    }
}

/// The seed's own metadata, and what stands behind them.
fn split(text: &str) -> Option<(Option<String>, Map<String, Value>)> {
    let (own, prior) = match text.strip_prefix(ALONE) {
        Some(prior) => (None, prior),
        None => text.rsplit_once(BEHIND).map(|(own, prior)| (Some(format!("{own}}}")), prior))?,
    };
    match serde_json::from_str(prior.strip_suffix('}')?) {
        Ok(Value::Object(said)) => Some((own, said)),
        _ => None,
    }
}

impl Prior {
    /// Makes a response that says or shows that nothing changed a revisit of the earlier capture; tells whether it did.
    pub(crate) fn unchanged(&self, capture: &mut Capture<'static>) -> bool {
        let Outcome::Response { message, payload_digest, truncated: None } = &capture.outcome else { return false };
        let asked = self.validators != Validators::default();
        let same = self.digest.is_some() && *payload_digest == self.digest;
        let (profile, body_length) = match Head::new(&message.head).status() {
            Some(304) if asked => (RevisitProfile::ServerNotModified, 0),
            Some(200) if same => (RevisitProfile::IdenticalPayloadDigest, message.body.len_bytes()),
            _ => return false,
        };
        capture.outcome = Outcome::Revisit(Revisit {
            head: message.head.clone(),
            profile,
            payload_digest: self.digest.clone(),
            refers_to_url: Some(capture.url.clone()),
            refers_to_date: self.date,
            refers_to_id: self.id.clone(),
            body_length,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::{Body, CaptureFacts, Message};

    fn record(extras: Option<&str>, digest: Option<&str>) -> UrlRecord {
        UrlRecord {
            ts: Some(UnixMillis(1_782_262_923_456)),
            digest: digest.map(|text| Digest::parse(text).unwrap()),
            extras: extras.map(str::to_owned),
            ..UrlRecord::bare("http://a.example/")
        }
    }

    const SHA1: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    #[test]
    fn what_a_seed_knows_comes_back() {
        let extras = r#"{"etag":"\"x\"","n":1.50,"last_modified":"Tue"}"#;
        let mut meta = note(&record(Some(extras), Some(SHA1)));
        let prior = take(&mut meta);
        assert_eq!(prior.validators, Validators { etag: Some("\"x\"".into()), last_modified: Some("Tue".into()) });
        assert_eq!(
            (prior.digest.unwrap().to_string().as_str(), prior.date),
            (SHA1, Some(UnixMillis(1_782_262_923_456)))
        );
        assert_eq!(meta.as_deref(), Some(extras), "the seed's own metadata stay as they came");
        // Nothing that helps: nothing is noted.
        for (extras, digest) in [(None, None), (Some(r#"{"a":1}"#), None), (Some(r#"{"etag":""}"#), None)] {
            assert_eq!(note(&record(extras, digest)).as_deref(), extras);
        }
        // An error page is not what a revisit refers to.
        let gone = UrlRecord { status: Some(404), ..record(None, Some(SHA1)) };
        assert_eq!(note(&gone), None);
        for text in ["{\"prior\":1}", "not JSON \"prior\"", "{\"prior\":{\"digest\":\"x\"}}"] {
            assert_eq!(take(&mut Some(text.to_owned())), Prior::default(), "{text}");
        }
    }

    #[test]
    fn an_answer_that_changes_nothing_is_a_revisit() {
        let capture = |head: &'static str, digest: Option<Digest>| Capture {
            url: "http://a.example/".into(),
            started_at: UnixMillis(0),
            request: None,
            outcome: Outcome::Response {
                message: Message { head: head.into(), body: Body::empty() },
                payload_digest: digest,
                truncated: None,
            },
            facts: CaptureFacts::default(),
        };
        let digest = Digest::parse(SHA1).ok();
        let validators = Validators { etag: Some("x".into()), last_modified: None };
        let prior = Prior { validators, digest: digest.clone(), date: Some(UnixMillis(5)), id: None };
        let (same, not) = ("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n");
        for (head, digest, expected) in [
            (not, None, Some(RevisitProfile::ServerNotModified)),
            (same, digest.clone(), Some(RevisitProfile::IdenticalPayloadDigest)),
            (same, None, None),
            ("HTTP/1.1 404 Not Found\r\n\r\n", digest.clone(), None),
        ] {
            let mut made = capture(head, digest);
            prior.unchanged(&mut made);
            let found = match &made.outcome {
                Outcome::Revisit(revisit) => {
                    assert_eq!((revisit.refers_to_date, &revisit.payload_digest), (Some(UnixMillis(5)), &prior.digest));
                    Some(revisit.profile)
                }
                _ => None,
            };
            assert_eq!(found, expected, "{head}");
        }
        // A 304 that nobody asked for is an odd answer, and stays one.
        assert!(!Prior::default().unchanged(&mut capture(not, None)));
    }
}
