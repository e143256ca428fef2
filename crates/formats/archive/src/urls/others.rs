//! Records that are about a URL without being an exchange: resources, conversions (WET), metadata (WAT), answers of other protocols.

use serde_json::Value as Json;
use trawl_lists::{Fields, Value};
use trawl_model::{Place, RawRecord, UrlRecord};
use trawl_warc::{Limits, RecordHeader, RecordType, Step};

/// Bytes of a metadata record that may describe another record.
const MAX_ENVELOPE: u64 = 64 << 20;

/// What is counted of a record that no row comes of: types are few, names in files may be anything.
pub(super) fn name(kind: &str) -> &'static str {
    let known = ["warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"];
    known.into_iter().find(|name| kind.eq_ignore_ascii_case(name)).unwrap_or("unknown type")
}

/// The row of a record, if it is about a URL that a lake takes: that of a thing, of a page in another form, or what WAT files say of a
/// capture. A record that only speaks about others has none.
pub(super) fn record(record: &mut RawRecord<'_>, place: &Place) -> Option<UrlRecord> {
    let Ok(Step::Done { value: header, .. }) = trawl_warc::record_header(&record.header, &Limits::default(), true)
    else {
        return None;
    };
    let url = header.target_uri().filter(|url| is_web(url))?.into_owned();
    let content_type = header.text("Content-Type").unwrap_or_default();
    let mut fields = Fields::default();
    fields.take("url", Value::Text(&url));
    let mut status = None;
    match header.record_type() {
        RecordType::Response | RecordType::Resource | RecordType::Conversion => {
            set(&mut fields, &header);
            fields.take("content_type", Value::Text(&content_type));
        }
        RecordType::Metadata if is_json(&content_type) => status = described(&envelope(record)?, &mut fields)?,
        _ => return None,
    }
    fields.take("record_type", Value::Text(header.record_type().as_str()));
    let mut row = fields.finish()?;
    row.status = status;
    row.body_length = Some(header.content_length());
    row.place = Some(place.clone());
    Some(row)
}

fn set(fields: &mut Fields, header: &RecordHeader) {
    if let Some(date) = header.date() {
        fields.set_ts(date);
    }
    if let Some(digest) = header.digest("WARC-Payload-Digest").or_else(|| header.digest("WARC-Block-Digest")) {
        fields.take("digest", Value::Text(&digest.to_string()));
    }
}

fn is_web(url: &str) -> bool {
    ["http://", "https://", "ftp://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)))
}

fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The envelope of a WAT record.
fn envelope(record: &mut RawRecord<'_>) -> Option<Json> {
    let bytes = record.body.read_to_bytes(MAX_ENVELOPE).ok()?;
    let json: Json = serde_json::from_slice(&bytes).ok()?;
    json.get("Envelope").filter(|envelope| envelope.is_object()).cloned()
}

/// Takes what an envelope says of a capture, and gives its status; `None` if it speaks of a request or of something else.
fn described(envelope: &Json, fields: &mut Fields) -> Option<Option<u16>> {
    let text = |path: &str| envelope.pointer(path).and_then(Json::as_str);
    let kind = text("/WARC-Header-Metadata/WARC-Type")?;
    if !matches!(name(kind), "response" | "revisit" | "resource" | "conversion") {
        return None;
    }
    for (name, path) in [
        ("timestamp", "/WARC-Header-Metadata/WARC-Date"),
        ("digest", "/WARC-Header-Metadata/WARC-Payload-Digest"),
        ("content_type", "/Payload-Metadata/HTTP-Response-Metadata/Headers/Content-Type"),
    ] {
        if let Some(text) = text(path) {
            fields.take(name, Value::Text(text));
        }
    }
    let status = text("/Payload-Metadata/HTTP-Response-Metadata/Response-Message/Status");
    Some(status.and_then(|status| status.parse().ok()))
}
