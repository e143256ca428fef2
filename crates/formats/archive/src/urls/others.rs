//! Records that are about a URL without being an exchange: resources, conversions (WET), metadata (WAT), answers of other protocols.

use serde_json::Value as Json;
use trawl_captures::CaptureRow;
use trawl_model::{Algorithm, Digest, Place, RawRecord, date};
use trawl_warc::{Limits, RecordHeader, RecordType, Step};

/// Bytes of a metadata record that may describe another record.
const MAX_ENVELOPE: u64 = 64 << 20;

/// What is counted of a record that no row comes of: types are few, names in files may be anything.
pub(super) fn name(kind: &str) -> &'static str {
    let known = ["warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"];
    known.into_iter().find(|name| kind.eq_ignore_ascii_case(name)).unwrap_or("unknown type")
}

/// The row of a record that is about a URL which a lake takes: that of a thing, of a page in another form, or what WAT files say
/// of a capture. A record that only speaks about others has none, and is counted under the name of its type.
pub(crate) fn row(record: &mut RawRecord<'_>, place: &Place) -> Result<CaptureRow, &'static str> {
    found(record, place).ok_or_else(|| name(&record.kind))
}

fn found(record: &mut RawRecord<'_>, place: &Place) -> Option<CaptureRow> {
    let Ok(Step::Done { value: header, .. }) = trawl_warc::record_header(&record.header, &Limits::default(), true)
    else {
        return None;
    };
    let url = header.target_uri().filter(|url| is_web(url))?.into_owned();
    let content_type = header.text("Content-Type").unwrap_or_default();
    let mut row = CaptureRow { url, record_id: header.record_id().map(|id| id.into_owned()), ..CaptureRow::default() };
    match header.record_type() {
        RecordType::Response | RecordType::Resource | RecordType::Conversion => {
            row.content_type = content_type.into_owned();
            row.started_at = header.date().map(|date| date.0);
            row.digest = digest(&header, record).map(|digest| digest.hex()).unwrap_or_default();
        }
        RecordType::Metadata if is_json(&content_type) => described(&envelope(record)?, &mut row)?,
        _ => return None,
    }
    row.fetched_at = row.started_at.unwrap_or_default();
    row.record_type = Some(header.record_type().as_str().to_owned());
    row.body_length = i64::try_from(header.content_length()).unwrap_or(i64::MAX);
    row.url_columns();
    row.set_place(place);
    Some(row)
}

/// SHA-1 of the block, as rows have it: the one that is stated, or else computed.
fn digest(header: &RecordHeader, record: &mut RawRecord<'_>) -> Option<Digest> {
    let stated = ["WARC-Payload-Digest", "WARC-Block-Digest"].into_iter().find_map(|name| header.digest(name));
    match stated {
        Some(digest) if digest.algorithm() == Algorithm::Sha1 => Some(digest),
        _ => trawl_captures::sha1(&mut record.body).ok(),
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

/// Takes what an envelope says of a capture; `None` if it speaks of a request or of something else.
fn described(envelope: &Json, row: &mut CaptureRow) -> Option<()> {
    let text = |path: &str| envelope.pointer(path).and_then(Json::as_str);
    let kind = text("/WARC-Header-Metadata/WARC-Type")?;
    if !matches!(name(kind), "response" | "revisit" | "resource" | "conversion") {
        return None;
    }
    row.started_at = text("/WARC-Header-Metadata/WARC-Date").and_then(date::from_text).map(|d| d.0);
    let digest = text("/WARC-Header-Metadata/WARC-Payload-Digest").and_then(|digest| Digest::parse(digest).ok());
    row.digest = digest.filter(|d| d.algorithm() == Algorithm::Sha1).map(|d| d.hex()).unwrap_or_default();
    let http = "/Payload-Metadata/HTTP-Response-Metadata";
    row.content_type = text(&format!("{http}/Headers/Content-Type")).unwrap_or_default().to_owned();
    let status = text(&format!("{http}/Response-Message/Status")).and_then(|status| status.parse().ok());
    row.status = status.map(|status: u16| status.into()).unwrap_or_default();
    Some(())
}
