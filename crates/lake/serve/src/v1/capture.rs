//! The bytes of a capture.

use super::{PathOf, Shared, path};
use crate::asker::Asker;
use crate::failure::Failure;
use crate::params::{Key, Params, UrlText, choice, params};
use crate::stream::{Out, Packing, gone, stream};
use crate::work::Answer;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::io::{self, Read};
use trawl_http::Head;
use trawl_model::UnixMillis;
use trawl_query::{Archives, Locator, Pinned, Principal, QueryError, Replayed, UrlHit};

/// Bytes of a decoded body at most: a small capture can be made to unpack to very much.
const MAX_DECODED: u64 = 4 << 30;
/// Whatever a capture says, a browser runs nothing of it, loads nothing for it and shows it in no frame.
const SANDBOX: &str = "sandbox; default-src 'none'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'";

choice! {
    /// What of a capture.
    Part {
        /// Its WARC records, as stored; of containers without such the HTTP response.
        Record = "record",
        /// The HTTP response: head and stored body.
        Http = "http",
        /// The body, without content codings.
        Body = "body",
    }
}

params! {
    /// Which capture, and what of it.
    CaptureParams {
        /// The URL, in any spelling.
        url: UrlText,
        /// The capture nearest to this time; the newest if not given.
        ts: UnixMillis,
        /// A locator from an earlier answer, in place of url and ts.
        locator: Key,
        /// What of it: record if not given.
        part: Part,
    }
}

/// `GET /v1/capture/{dataset}`.
pub(crate) async fn capture(
    axum::extract::State(state): Shared,
    asker: Asker,
    dataset: PathOf<String>,
    Params(params): Params<CaptureParams>,
) -> Answer {
    let dataset = path(dataset)?;
    let wanted = match (params.url, params.locator) {
        (Some(url), None) => Wanted::Url(url.0, params.ts),
        (None, Some(locator)) if params.ts.is_none() => {
            Wanted::Locator(Locator::decode(&locator.0).map_err(Failure::from)?)
        }
        _ => return Err(Failure::bad_request("give url, and perhaps ts; or locator")),
    };
    let part = params.part.unwrap_or(Part::Record);
    let kind = HeaderValue::from_static("application/octet-stream");
    let mine = state.clone();
    stream(&state, asker, kind, Packing::AS_IS, move |pinned, who, out| {
        let archives = mine.archives.as_ref().ok_or(NO_ARCHIVES)?;
        let dataset_id = pinned.dataset_id(&dataset, who)?;
        let row = match &wanted {
            Wanted::Url(url, ts) => pinned.capture(Some(dataset_id), url, *ts, who)?,
            Wanted::Locator(locator) if locator.dataset_id == dataset_id => pinned.located(locator, who)?,
            Wanted::Locator(_) => return Err(QueryError::BadRequest { why: "the locator is of another dataset" }),
        };
        match part {
            Part::Record => records(pinned, archives, &row, who, out),
            Part::Http => pinned.replay(archives, &row, who, &mut |found| http(found, out)),
            Part::Body => pinned.replay(archives, &row, who, &mut |found| body(found, out)),
        }
    })
    .await
}

pub(crate) const NO_ARCHIVES: QueryError = QueryError::NoArchive { why: "this server reads no archives" };

enum Wanted {
    Url(String, Option<UnixMillis>),
    Locator(Locator),
}

fn records(
    pinned: &Pinned,
    archives: &Archives,
    row: &UrlHit,
    who: &Principal,
    out: &mut Out<'_>,
) -> Result<(), QueryError> {
    out.start(StatusCode::OK, headers(row, None, "application/warc"));
    let mut any = false;
    let keeps = pinned.replay_records(archives, row, &mut |mut record| {
        any = true;
        out.write_all(&record.header).map_err(gone)?;
        let mut block = record.body.reader().map_err(unread)?;
        copy(&mut *block, out)?;
        out.write_all(b"\r\n\r\n").map_err(gone)
    })?;
    if keeps && any {
        return Ok(());
    }
    pinned.replay(archives, row, who, &mut |found| http(found, out))
}

/// The response as stored, head and body.
fn http(found: Replayed<'_>, out: &mut Out<'_>) -> Result<(), QueryError> {
    let kind = "application/http; msgtype=response";
    out.start(StatusCode::OK, headers(found.row, found.body_of, kind));
    if let Some(head) = &found.head {
        out.write_all(head).map_err(gone)?;
    }
    copy(found.body, out)
}

/// The body without codings, under a type that no browser runs.
fn body(found: Replayed<'_>, out: &mut Out<'_>) -> Result<(), QueryError> {
    let kind = safe_type(found.content_type.as_deref());
    let mut headers = headers(found.row, found.body_of, kind);
    if let Some(served) = found.content_type.as_deref().and_then(|kind| HeaderValue::from_str(kind).ok()) {
        headers.insert("trawl-content-type", served);
    }
    out.start(StatusCode::OK, headers);
    decoded(found.head.as_deref(), found.body, out)
}

/// Writes a stored body without its content codings.
pub(crate) fn decoded(head: Option<&[u8]>, body: &mut dyn Read, out: &mut Out<'_>) -> Result<(), QueryError> {
    let codings = head.map(|head| Head::new(head).known_codings()).unwrap_or_default();
    let mut plain = trawl_http::decode_content(body, &codings, MAX_DECODED)
        .map_err(|_| QueryError::NoArchive { why: "its content codings cannot be undone" })?;
    copy(&mut *plain, out)
}

fn copy(from: &mut dyn Read, out: &mut Out<'_>) -> Result<(), QueryError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => out.write_all(buffer.get(..n).unwrap_or_default()).map_err(gone)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unread(error)),
        }
    }
}

fn unread(error: io::Error) -> QueryError {
    QueryError::Lake { source: Box::new(error) }
}

/// Types that a browser shows without running anything; other texts are plain text, the rest is bytes.
fn safe_type(served: Option<&str>) -> &'static str {
    let served = served.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match served.as_str() {
        "image/png" => "image/png",
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        "image/avif" => "image/avif",
        "application/json" => "application/json",
        kind if kind.starts_with("text/") => "text/plain",
        "application/xhtml+xml" | "application/xml" | "application/javascript" | "image/svg+xml" => "text/plain",
        _ => "application/octet-stream",
    }
}

/// What every answer with bytes of a capture says of them.
fn headers(row: &UrlHit, body_of: Option<&UrlHit>, kind: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    sandbox(&mut headers);
    name_record(&mut headers, "trawl-capture", row);
    body_of.into_iter().for_each(|row| name_record(&mut headers, "trawl-body-of", row));
    headers
}

/// Headers under which a browser runs nothing of an answer.
pub(crate) fn sandbox(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

/// Names a capture in a header: dataset, time, URL, escaped as far as a header needs it.
pub(crate) fn name_record(headers: &mut HeaderMap, name: &'static str, row: &UrlHit) {
    let url = trawl_url::without_userinfo(&row.item.url);
    let url = percent_encoding::utf8_percent_encode(&url, percent_encoding::CONTROLS);
    let ts = row.item.ts.map(|ts| ts.to_string()).unwrap_or_else(|| "-".to_owned());
    if let Ok(value) = HeaderValue::from_str(&format!("{} {ts} {url}", row.dataset_id)) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_runs_keeps_its_type() {
        for (served, safe) in [
            (Some("text/html; charset=utf-8"), "text/plain"),
            (Some("TEXT/HTML"), "text/plain"),
            (Some("image/svg+xml"), "text/plain"),
            (Some("application/pdf"), "application/octet-stream"),
            (Some("image/png"), "image/png"),
            (Some("application/x-shockwave-flash"), "application/octet-stream"),
            (None, "application/octet-stream"),
        ] {
            assert_eq!(safe_type(served), safe, "{served:?}");
        }
    }
}
