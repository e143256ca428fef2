//! What is known of an earlier capture of a seed: a request can be conditional, and an answer that changed nothing a revisit.
//!
//! It comes with the seed, in its metadata: `etag`, `last_modified` and `digest` of a line or a column, or what a row of an
//! earlier captures.parquet or CDXJ says. [`note`] gathers it under the name `prior`, where a crawl finds it with the URL.
//!
//! ```json
//! {"prior":{"etag":"\"abc\"","last_modified":"Tue, 23 Jun 2026 …","digest":"sha1:…","date":"2026-06-24T01:02:03.456Z","id":"urn:uuid:…","url":"http://…"}}
//! ```

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use trawl_fetch::Validators;
use trawl_http::Head;
use trawl_model::{Capture, Digest, Outcome, Revisit, RevisitProfile, UnixMillis, UrlRecord};

const BEHIND: &str = ",\"prior\":";
/// What metadata that tell of an earlier capture have in them.
const HINTS: [&str; 5] = ["tag", "odified", "igest", "sha1", "\"ts\""];

/// An earlier capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prior {
    pub validators: Validators,
    pub digest: Option<Digest>,
    pub date: Option<UnixMillis>,
    pub id: Option<String>,
    /// The URL of the capture with the body, if it is not the seed's own.
    pub url: Option<String>,
}

/// The metadata of a seed, with what its record says of an earlier capture. Seeds keep all that a list has beside the URL in
/// their metadata, so that is where it is found. A row of a capture index (`of_index`) has the metadata of its own seed, and
/// those go on as they are: kept with everything else in the row, they would grow with every recrawl.
pub(crate) fn note(record: &UrlRecord, of_index: bool) -> Option<String> {
    let own = match of_index {
        true => record.extras.as_deref().and_then(meta_of_row),
        false => record.extras.clone(),
    };
    let prior = match known(record) {
        Some(prior) => prior,
        // What the seed itself calls so is not taken for ours.
        None if own.as_ref().is_some_and(|own| own.contains(BEHIND)) => Map::new(),
        None => return own,
    };
    // Behind the seed's own metadata, whose bytes stay as they came.
    let own = own.as_deref().unwrap_or("{}").trim_end().strip_suffix('}')?;
    Some(format!("{own}{BEHIND}{}}}", Value::from(prior)))
}

/// The metadata of a seed in a row of a capture index, byte for byte.
fn meta_of_row(extras: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        #[serde(borrow)]
        meta: Option<&'a RawValue>,
    }
    let row: Row<'_> = serde_json::from_str(extras).ok()?;
    row.meta.map(|meta| meta.get().to_owned())
}

/// Whether a row of a capture index is that of a robots.txt that a crawl asked for on its own. The next one does so too.
pub(crate) fn is_robots_file(row: &UrlRecord) -> bool {
    let fields = row.extras.as_deref().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    // A robots.txt is fetched whatever it says about itself: its rows have no verdict. It may have been redirected to any URL, often to the first
    // page of its site, whose own row comes later and has the metadata of its seed.
    fields.is_some_and(|fields| fields.contains_key("run_id") && !fields.contains_key("robots"))
}

/// What a record says of an earlier capture, if that is enough to ask or to tell whether a page changed.
fn known(record: &UrlRecord) -> Option<Map<String, Value>> {
    let text = record.extras.as_deref().filter(|text| HINTS.iter().any(|hint| text.contains(hint)))?;
    let Ok(Value::Object(all)) = serde_json::from_str::<Value>(text) else { return None };
    let text_of = |names: &[&str]| {
        let found = names.iter().filter_map(|name| all.get(*name)?.as_str()).find(|text| !text.is_empty());
        found.map(str::to_owned)
    };
    let status = all.get("status").and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    // Only a page that was found can be what a revisit refers to.
    if status.is_some_and(|status| status != 200 && status != 304) {
        return None;
    }
    // Half a body is not what a revisit refers to: the next crawl gets another chance to fetch all of it.
    if text_of(&["truncated"]).is_some() {
        return None;
    }
    // A revisit refers to the capture with the body, not to another revisit. Not every list says which that is.
    let is_revisit = text_of(&["refers_to_date"]).is_some()
        || all.get("refers_to_date").is_some_and(Value::is_number)
        || text_of(&["record_type"]).as_deref() == Some("revisit")
        || text_of(&["mime"]).as_deref() == Some("warc/revisit");
    let dates: &[&str] =
        if is_revisit { &["refers_to_date"] } else { &["started_at", "ts", "timestamp", "date", "fetched_at"] };
    let date = dates.iter().filter_map(|name| time_of(all.get(*name)?)).next();
    // Of a captures.parquet the reader takes the time itself.
    let date = date.or(record.ts.filter(|_| !is_revisit));
    let digest = text_of(&["digest", "payload_digest", "sha1"]).and_then(|text| digest_of(&text));
    let fields = [
        ("etag", text_of(&["etag", "ETag"])),
        ("last_modified", text_of(&["last_modified", "last-modified", "Last-Modified"])),
        ("digest", digest.map(|digest| digest.to_string())),
        ("date", date.map(|date| date.to_string())),
        ("id", text_of(&["record_id"]).filter(|_| !is_revisit)),
        // The body may have been archived under another URL.
        ("url", text_of(&["refers_to_uri"]).filter(|_| is_revisit)),
    ];
    let has = |names: &[&str]| fields.iter().any(|(name, value)| names.contains(name) && value.is_some());
    has(&["etag", "last_modified", "digest"]).then(|| {
        let said = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
        said.collect()
    })
}

/// By algorithm and value; a value alone is a SHA-1, as CDX and captures.parquet have it.
fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse(text).or_else(|_| Digest::parse(&format!("sha1:{text}"))).ok()
}

fn time_of(value: &Value) -> Option<UnixMillis> {
    match value {
        Value::Number(number) => number.as_i64().map(UnixMillis).filter(|time| time.0 > 1_000_000_000_000),
        Value::String(text) => UnixMillis::parse(text).ok().or_else(|| trawl_model::date::from_text(text)),
        _ => None,
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
        url: text("url"),
    }
}

/// The seed's own metadata, and what stands behind them.
fn split(text: &str) -> Option<(Option<String>, Map<String, Value>)> {
    let (own, prior) = text.rsplit_once(BEHIND)?;
    let own = Some(format!("{own}}}")).filter(|own| own != "{}");
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
        let head = Head::new(&message.head);
        let (profile, body_length) = match head.status() {
            // The fetcher then asked again without validators: an answer to that says nothing about the earlier capture.
            Some(304) if asked && !self.validators.are_contradicted_by(&head) => (RevisitProfile::ServerNotModified, 0),
            Some(200) if same => (RevisitProfile::IdenticalPayloadDigest, message.body.len_bytes()),
            _ => return false,
        };
        capture.outcome = Outcome::Revisit(Revisit {
            head: message.head.clone(),
            profile,
            payload_digest: self.digest.clone(),
            refers_to_url: self.url.clone().or_else(|| Some(capture.url.clone())),
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

    fn record(extras: &str) -> UrlRecord {
        UrlRecord { extras: Some(extras.to_owned()), ..UrlRecord::bare("http://a.example/robots.txt") }
    }

    fn noted(extras: &str) -> Option<String> {
        note(&record(extras), false)
    }

    const SHA1: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    #[test]
    fn what_a_seed_knows_comes_back() {
        let extras = r#"{"etag":"\"x\"","n":1.50,"last_modified":"Tue","ts":"20260624010203","digest":"3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"}"#;
        let mut meta = noted(extras);
        let prior = take(&mut meta);
        assert_eq!(prior.validators, Validators { etag: Some("\"x\"".into()), last_modified: Some("Tue".into()) });
        assert_eq!(prior.digest.unwrap().to_string(), SHA1);
        assert_eq!(prior.date, UnixMillis::parse("2026-06-24T01:02:03Z").ok());
        assert_eq!(meta.as_deref(), Some(extras), "the seed's own metadata stay as they came");
        // A revisit names the capture with the body.
        let revisit = format!(
            r#"{{"digest":"{SHA1}","started_at":1790000000000,"refers_to_date":1780000000000,"record_id":"x"}}"#
        );
        let prior = take(&mut noted(&revisit));
        assert_eq!((prior.date, prior.id), (Some(UnixMillis(1_780_000_000_000)), None));
        // It may have been archived under another URL.
        let elsewhere =
            format!(r#"{{"digest":"{SHA1}","refers_to_uri":"http://b.example/","refers_to_date":1780000000000}}"#);
        assert_eq!(take(&mut noted(&elsewhere)).url.as_deref(), Some("http://b.example/"));
        // Nothing that helps: nothing is noted. An error page is not what a revisit refers to.
        let gone = format!(r#"{{"status":404,"digest":"{SHA1}"}}"#);
        let half = format!(r#"{{"status":200,"truncated":"disconnect","etag":"\"x\"","digest":"{SHA1}"}}"#);
        for extras in
            [r#"{"a":1}"#, r#"{"etag":""}"#, r#"{"ts":"20260624010203"}"#, "[\"etag\"]", "not JSON etag", &gone, &half]
        {
            assert_eq!(noted(extras).as_deref(), Some(extras));
        }
        // An index of CDX does not say where the body of a revisit is.
        let cdx = format!(r#"{{"timestamp":"20260624010203","mime":"warc/revisit","digest":"{SHA1}"}}"#);
        assert!(matches!(take(&mut noted(&cdx)), Prior { date: None, digest: Some(_), .. }));
        // What a seed calls so itself is its own.
        for own in [r#"{"a":1,"prior":{"etag":"x"}}"#, r#"{"etag":"y","prior":{"etag":"x"}}"#] {
            let mut meta = noted(own);
            assert!(take(&mut meta).validators.etag.is_none_or(|etag| etag == "y"));
            assert_eq!(meta.as_deref(), Some(own));
        }
        for text in ["{\"a\":1,\"prior\":1}", "not JSON ,\"prior\":", "{\"a\":1,\"prior\":{\"digest\":\"x\"}}"] {
            assert_eq!(take(&mut Some(text.to_owned())), Prior::default(), "{text}");
        }
    }

    /// The metadata of crawl after crawl are those of the first seed.
    #[test]
    fn the_metadata_of_an_index_row_are_those_of_its_seed() {
        let row =
            |meta: &str| format!(r#"{{"status":200,"digest":"{SHA1}"{meta},"record_type":"revisit","run_id":"1"}}"#);
        let mut meta = note(&record(&row(r#","meta":{"n": 1.50,"etag":"old"}"#)), true);
        assert!(take(&mut meta).digest.is_some());
        assert_eq!(meta.as_deref(), Some(r#"{"n": 1.50,"etag":"old"}"#));
        let mut none = note(&record(&row("")), true);
        let prior = take(&mut none);
        assert!(prior.digest.is_some() && prior.validators.etag.is_none() && none.is_none());
        assert_eq!(note(&record(r#"{"error":"x","error_class":"reset"}"#), true), None);
        // Rows of a robots.txt that was asked for as a page have a verdict, and other crawlers' rows have no run.
        assert!(is_robots_file(&record(&row(""))));
        let redirected = UrlRecord { url: "http://a.example/".into(), ..record(&row("")) };
        assert!(is_robots_file(&redirected));
        assert!(!is_robots_file(&record(&row(r#","robots":"allowed""#))) && !is_robots_file(&record("{}")));
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
        let prior = Prior { validators, digest: digest.clone(), date: Some(UnixMillis(5)), id: None, url: None };
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
        // A 304 about another version, and one about a body that lies under another URL.
        let other = "HTTP/1.1 304 Not Modified\r\nETag: \"y\"\r\n\r\n";
        assert!(!prior.unchanged(&mut capture(other, None)));
        let elsewhere = Prior { url: Some("http://b.example/".into()), ..prior };
        let mut made = capture(not, None);
        assert!(elsewhere.unchanged(&mut made));
        assert!(
            matches!(&made.outcome, Outcome::Revisit(revisit) if revisit.refers_to_url.as_deref() == Some("http://b.example/"))
        );
        // A 304 to an unconditional request is an odd answer, and stays one.
        assert!(!Prior::default().unchanged(&mut capture(not, None)));
    }
}
