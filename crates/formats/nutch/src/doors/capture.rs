//! A page of a segment as a capture, and back.
//!
//! | capture | segment |
//! | --- | --- |
//! | URL | key; `Content.url` |
//! | start of the fetch | `fetchTime` of crawl_fetch |
//! | status | `nutch.protocol.code` of crawl_fetch, else what `_pst_` says |
//! | head | `_response.headers_` of the content, as received; else made from its metadata |
//! | body | content, without content codings: so Nutch's plugins leave it |
//! | failure | `_pst_`, no content |
//! | a response whose body is cut, of unspecified reason | `_pst_` or a code that means an answer, no content |
//! | `meta_json` | everything else: see [`super::carried`] |
//!
//! Lines of a head that no longer fit the decoded body get the prefix `X-Crawler-`, as Nutch's own exporter writes them.

use super::carried::{self, Carried};
use super::fetch_list::Listed;
use crate::class::PROTOCOL_STATUS;
use crate::types::{Content, CrawlDatum, Metadata, ProtocolStatus, Status, encoded, whole};
use bytes::Bytes;
use std::io::Read;
use trawl_hadoop::{Any, Decoder, Encode, MapWritable, Text, class as hadoop};
use trawl_http::{Head, decode_content, head_len};
use trawl_model::{
    Body, Capability, Capture, CaptureFacts, ErrorClass, Failure, Message, Outcome, Revisit, RevisitProfile, Truncated,
    UnixMillis,
};
use trawl_url::WebUrl;

/// The head as it was received.
pub(super) const HEADERS: &str = "_response.headers_";
const CODE: &str = "nutch.protocol.code";
const STATUS: &str = "_pst_";
const TRUNCATED: &str = "http.content.truncated";
const TRUNCATED_REASON: &str = "http.content.truncated.reason";
const FETCH_STATUS: &str = "_fst_";
pub(super) const SEGMENT_NAME: &str = "nutch.segment.name";
const RESPONSE_TIME: &str = "_rs_";

/// The head of an answer that says that nothing changed: a segment keeps no more of it.
const NOT_MODIFIED: &[u8] = b"HTTP/1.1 304 Not Modified\r\n\r\n";

/// Bodies above this are cut, as Nutch cuts them at its `http.content.limit`: a record is in memory whole.
pub(super) const MAX_BODY: u64 = 128 << 20;

/// Names in a content's metadata that are Nutch's and not a server's.
fn is_own(name: &str) -> bool {
    matches!(name, FETCH_STATUS | "_ftk_" | "_ip_" | "_request_")
        || name == HEADERS
        || name.starts_with("nutch.")
        || name.starts_with("http.content.")
}

/// Those of them that a capture has no place for; the others are made anew.
fn is_beyond(name: &str) -> bool {
    is_own(name) && ![HEADERS, TRUNCATED, TRUNCATED_REASON, FETCH_STATUS, SEGMENT_NAME].contains(&name)
}

/// Lines that speak of the body as it was sent.
const OF_THE_BODY: [&str; 3] = ["Content-Encoding", "Transfer-Encoding", "Content-Length"];

fn protocol_status<'a>(datum: &'a CrawlDatum<'_>) -> Option<ProtocolStatus<'a>> {
    let value = datum.metadata.get(STATUS).filter(|value| value.class == PROTOCOL_STATUS)?;
    ProtocolStatus::decode(&mut Decoder::new(&value.bytes)).ok()
}

/// The HTTP status that a server sent: as stored, or as `_pst_` tells without doubt.
fn sent_status(datum: &CrawlDatum<'_>) -> Option<u16> {
    let stored = datum.metadata.get(CODE).and_then(|code| match &*code.class {
        hadoop::INT => Decoder::new(&code.bytes).i32("code").ok().and_then(|code| u16::try_from(code).ok()),
        _ => code.as_text()?.to_str().trim().parse().ok(),
    });
    if stored.is_some() {
        return stored.filter(|code| (100..1000).contains(code));
    }
    let said = protocol_status(datum);
    match (said.as_ref().map(|said| said.code), datum.status()) {
        (Some(12), _) | (None, Status::FETCH_REDIR_PERM) => Some(301),
        (Some(13), _) | (None, Status::FETCH_REDIR_TEMP) => Some(302),
        (Some(14), _) => Some(404),
        (Some(21), _) | (None, Status::FETCH_NOTMODIFIED) => Some(304),
        // Of whatever kind it was: without its content it must not pass for a failure.
        (Some(1), _) | (None, Status::FETCH_SUCCESS) => Some(200),
        // Nutch's plugins write "Http code=418, url=…".
        _ => said.and_then(|said| code_of_message(&said.to_string())),
    }
}

fn code_of_message(message: &str) -> Option<u16> {
    let lower = message.to_ascii_lowercase();
    let (_, rest) = lower.split_once("http code=")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok().filter(|code| (100..1000).contains(code))
}

/// The status of an answer whose content is there.
fn status_of_content(datum: Option<&CrawlDatum<'_>>) -> u16 {
    let sent = datum.and_then(sent_status);
    sent.unwrap_or_else(|| match datum.and_then(protocol_status).map(|said| said.code) {
        Some(11) => 410,
        Some(17) => 403,
        _ => 200,
    })
}

/// What a segment has of a URL as a capture; `None` for a datum that is not about a fetch.
pub(super) fn capture(
    url: &str,
    datum: Option<&CrawlDatum<'_>>,
    content: Option<Content<'_>>,
    listed: &Listed<'_>,
) -> Option<Capture<'static>> {
    if content.is_none() && !datum.is_some_and(|d| d.status().is_fetch()) {
        return None;
    }
    let time =
        datum.map(|d| UnixMillis(d.fetch_time)).or_else(|| content.as_ref().and_then(said_time)).unwrap_or_default();
    let outcome = match (&content, datum.map(|datum| (datum, sent_status(datum)))) {
        (Some(content), _) => response(content, status_of_content(datum)),
        (None, Some((_, Some(304)))) => Outcome::Revisit(Revisit {
            head: Bytes::from_static(NOT_MODIFIED),
            profile: RevisitProfile::ServerNotModified,
            payload_digest: None,
            refers_to_url: None,
            refers_to_date: None,
            refers_to_id: None,
            body_length: 0,
        }),
        (None, Some((datum, Some(code)))) => not_stored(datum, code),
        (None, datum) => Outcome::Failed(failure(datum.map(|(datum, _)| datum))),
    };
    let mut facts = CaptureFacts { fetched_at: time, ..CaptureFacts::default() };
    facts.timings.total_ms = datum.and_then(response_time);
    let mut capture = Capture { url: url.to_owned(), started_at: time, request: None, outcome, facts };
    let derived = fetch_datum(&capture);
    let mut said = datum.map(|datum| carried::of_datum(datum, &derived)).unwrap_or_default();
    carried::of_listed(listed, &list_datum(datum.unwrap_or(&derived)), &mut said);
    match (&content, &capture.outcome) {
        (Some(content), Outcome::Response { message, truncated, .. }) => {
            let head = Head::new(&message.head);
            carried::of_content(content, url, &media_type(&head), is_beyond, &mut said);
            carried::of_metadata(&content.metadata, metadata_of(&head, truncated.map(Truncated::as_str)), &mut said);
        }
        (None, Outcome::Response { .. }) => carried::without_content(&mut said),
        _ => {}
    }
    capture.facts.meta_json = carried::to_meta(said);
    Some(capture)
}

fn response_time(datum: &CrawlDatum<'_>) -> Option<u32> {
    let value = datum.metadata.get(RESPONSE_TIME).filter(|value| value.class == hadoop::INT)?;
    let ms = Decoder::new(&value.bytes).i32("time").ok()?;
    u32::try_from(ms).ok()
}

/// An answer of which Nutch kept nothing but its status: so a lake knows the status, and the body does not look empty.
fn not_stored(datum: &CrawlDatum<'_>, code: u16) -> Outcome<'static> {
    let mut head = format!("HTTP/1.1 {code} {}\r\n", reason(code)).into_bytes();
    let said = protocol_status(datum).filter(|said| matches!(said.code, 12 | 13));
    if let Some(Some(to)) = said.as_ref().and_then(|said| said.args.as_ref()?.first()) {
        put_field(&mut head, b"Location", to.as_bytes(), 0);
    }
    if let Some(media_type) = datum.metadata.get("Content-Type").and_then(Any::as_text) {
        put_field(&mut head, b"Content-Type", media_type.as_bytes(), 0);
    }
    head.extend(b"\r\n");
    let message = Message { head: head.into(), body: Body::Memory(Bytes::new()) };
    Outcome::Response { message, payload_digest: None, truncated: Some(Truncated::Unspecified) }
}

/// The time of a content that lies alone: the server's, else that of its segment.
fn said_time(content: &Content<'_>) -> Option<UnixMillis> {
    let text = |name| content.metadata.get(name).map(Text::to_str);
    let now = UnixMillis(i64::MAX);
    let date = text("Date").and_then(|date| trawl_model::date::http_date(&date, now));
    date.or_else(|| text(SEGMENT_NAME).and_then(|name| trawl_model::date::from_text(&name)))
}

fn response(content: &Content<'_>, status: u16) -> Outcome<'static> {
    let body = Bytes::copy_from_slice(&content.content);
    let head = match content.metadata.get(HEADERS) {
        Some(stored) if stored.as_bytes().starts_with(b"HTTP/") => refitted(head_bytes(&stored.to_str()), body.len()),
        _ => made(content, status, body.len()),
    };
    let truncated = content.metadata.get(TRUNCATED).filter(|flag| **flag == *"true").map(|_| {
        match content.metadata.get(TRUNCATED_REASON).map(Text::to_str).as_deref() {
            Some("length") => Truncated::Length,
            Some("time") => Truncated::Time,
            Some("disconnect") => Truncated::Disconnect,
            _ => Truncated::Unspecified,
        }
    });
    let message = Message { head: head.into(), body: Body::Memory(body) };
    Outcome::Response { message, payload_digest: None, truncated }
}

/// A head as it was received; if lines of it no longer fit the body, with those renamed.
fn refitted(stored: Vec<u8>, body_len: usize) -> Vec<u8> {
    let head = Head::new(&stored);
    // Behind an empty line in the middle, a reader takes the rest of it for the beginning of the body.
    let is_one_head = stored.ends_with(b"\r\n\r\n") && head_len(&stored, 0) == Some(stored.len());
    if is_one_head && head.fields().all(|field| fits(field.name, &field.value, body_len)) {
        return stored;
    }
    let mut out = head.start_line().to_vec();
    out.extend(b"\r\n");
    for field in head.fields() {
        put_field(&mut out, field.name, &field.value, body_len);
    }
    out.extend(b"\r\n");
    out
}

/// Whether a line of a head is true of a body of this length that has no codings.
fn fits(name: &[u8], value: &[u8], body_len: usize) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    is("Content-Length") && value.trim_ascii() == body_len.to_string().as_bytes()
        || !OF_THE_BODY.iter().any(|other| is(other))
}

/// A head made from metadata, which have lost the order of lines and the reason phrase.
fn made(content: &Content<'_>, status: u16, body_len: usize) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} {}\r\n", reason(status)).into_bytes();
    let mut typed = false;
    for (name, values) in content.metadata.0.iter().filter(|(name, _)| !is_own(&name.to_str())) {
        typed |= name.to_str().eq_ignore_ascii_case("Content-Type");
        for value in values {
            put_field(&mut out, name.as_bytes(), &head_bytes(&value.to_str()), body_len);
        }
    }
    if !typed && !content.content_type.as_bytes().is_empty() {
        put_field(&mut out, b"Content-Type", content.content_type.as_bytes(), body_len);
    }
    out.extend(b"\r\n");
    out
}

fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], body_len: usize) {
    if !fits(name, value, body_len) {
        out.extend(b"X-Crawler-");
    }
    // A line end inside a name or value would start another line.
    let clean =
        |bytes: &[u8]| bytes.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect::<Vec<_>>();
    out.extend(clean(name));
    out.extend(b": ");
    out.extend(clean(value));
    out.extend(b"\r\n");
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        _ => "",
    }
}

/// Why there is no content.
fn failure(datum: Option<&CrawlDatum<'_>>) -> Failure {
    let said = datum.and_then(protocol_status);
    let text = said.as_ref().map_or_else(|| datum.map_or("", |d| d.status().name()).to_owned(), ToString::to_string);
    let lower = text.to_ascii_lowercase();
    let class = match said.as_ref().map(|s| s.code) {
        Some(10) => ErrorClass::BadScheme,
        Some(18) => ErrorClass::RobotsDenied,
        Some(19) => ErrorClass::RedirectLimit,
        _ if lower.contains("unknownhost") => ErrorClass::DnsNxdomain,
        _ if lower.contains("connect timed out") => ErrorClass::ConnectTimeout,
        _ if lower.contains("timeout") || lower.contains("timed out") => ErrorClass::BodyTimeout,
        _ if lower.contains("refused") => ErrorClass::ConnectRefused,
        _ if lower.contains("noroute") || lower.contains("unreachable") => ErrorClass::NoRoute,
        _ if lower.contains("ssl") => ErrorClass::TlsFailure,
        _ if lower.contains("reset") => ErrorClass::Reset,
        Some(16) if lower.contains("malformedurl") => ErrorClass::BadUrl,
        _ => ErrorClass::ProtocolError,
    };
    Failure { class, message: text }
}

/// A capture made ready for a segment.
pub(super) struct Page {
    pub fetched: Vec<u8>,
    /// Its entry on the list of URLs to fetch; `None` if it was not on it.
    pub generated: Option<Vec<u8>>,
    pub content: Option<Vec<u8>>,
    /// What of the body is lost.
    pub lost: Vec<Capability>,
}

/// What a segment of this name stores of a capture. Bodies are decoded and read whole.
pub(super) fn page(capture: &mut Capture<'_>, segment: &str) -> std::io::Result<Page> {
    let mut datum = fetch_datum(capture);
    let mut carried = Carried::of(capture.facts.meta_json.as_deref());
    let plain = datum.clone();
    carried.complete(&mut datum);
    let mut fetched = encoded(|out| datum.encode(out));
    // `meta_json` is anybody's word: what does not read as a datum is not written as one.
    if whole(&fetched, CrawlDatum::decode).is_err() {
        carried.more = true;
        datum = plain;
        fetched = encoded(|out| datum.encode(out));
    }
    let url = &capture.url;
    let (mut content, mut lost) = (None, Vec::new());
    if let Outcome::Response { message, truncated, .. } = &mut capture.outcome
        && carried.has_content()
    {
        let head = message.head.clone();
        let mut stored = stored(url, &Head::new(&head), &mut message.body, *truncated, &mut lost)?;
        stored.metadata.set(SEGMENT_NAME, segment.to_owned());
        carried.complete_content(&mut stored);
        content = Some(encoded(|out| stored.encode(out)));
    }
    if let Outcome::Revisit(revisit) = &capture.outcome
        && says_more(revisit)
    {
        lost.push(Capability::Revisits);
    }
    let mut list = list_datum(&datum);
    let is_listed = carried.complete_listed(&mut list);
    let mut generated = encoded(|out| list.encode(out));
    if whole(&generated, CrawlDatum::decode).is_err() {
        carried.more = true;
        generated = encoded(|out| list_datum(&datum).encode(out));
    }
    // What a segment keeps of the facts is not lost.
    capture.facts.meta_json.take_if(|_| !carried.more);
    capture.facts.timings.total_ms = None;
    Ok(Page { fetched, generated: is_listed.then_some(generated), content, lost })
}

/// Whether a revisit says more than that nothing changed.
fn says_more(revisit: &Revisit) -> bool {
    let Revisit { head, payload_digest, refers_to_url, refers_to_date, refers_to_id, .. } = revisit;
    let refers = refers_to_url.is_some() || refers_to_date.is_some() || refers_to_id.is_some();
    *head != NOT_MODIFIED || payload_digest.is_some() || refers
}

/// The entry of the list of URLs to fetch that a fetch may have come of: what a fetch leaves as it was, and the time.
pub(super) fn list_datum(fetch: &CrawlDatum<'_>) -> CrawlDatum<'static> {
    let time = fetch.fetch_time;
    let mut list = CrawlDatum::new(Status::DB_UNFETCHED, time, fetch.score);
    (list.interval, list.retries, list.modified_time) = (fetch.interval, fetch.retries, fetch.modified_time);
    list.signature = fetch.signature.clone().into_owned().into();
    list.metadata = MapWritable::new(vec![(Any::text(b"_ngt_"), Any::new(hadoop::LONG, |out| out.put_i64(time)))]);
    list
}

/// The datum of crawl_fetch as a capture itself tells it.
pub(super) fn fetch_datum(capture: &Capture<'_>) -> CrawlDatum<'static> {
    let mut datum = CrawlDatum::new(Status::FETCH_RETRY, capture.started_at.0, 1.0);
    let (status, protocol) = match &capture.outcome {
        Outcome::Response { message, .. } => {
            let head = Head::new(&message.head);
            let code = head.status().unwrap_or(0);
            datum.metadata.insert("Content-Type", Any::text(media_type(&head).as_bytes()));
            datum.metadata.insert(CODE, Any::text(code.to_string().as_bytes()));
            of_code(code, redirect(&capture.url, &head))
        }
        Outcome::Revisit(_) => (Status::FETCH_NOTMODIFIED, ProtocolStatus::new(21, 0, None)),
        Outcome::Failed(failed) => of_failure(failed),
    };
    if let Some(ms) = capture.facts.timings.total_ms {
        datum.metadata.insert(RESPONSE_TIME, Any::new(hadoop::INT, |out| out.put_i32(ms.cast_signed())));
    }
    datum.set_status(status);
    set_protocol_status(&mut datum, &protocol);
    datum
}

/// The media type without its parameters.
fn media_type(head: &Head<'_>) -> String {
    let content_type = head.text("Content-Type").unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Says in a datum how its fetch ended.
pub(super) fn set_protocol_status(datum: &mut CrawlDatum<'_>, status: &ProtocolStatus<'_>) {
    datum.metadata.insert(STATUS, Any::new(PROTOCOL_STATUS, |out| status.encode(out)));
}

/// Status of the datum and of the protocol for an HTTP status.
fn of_code(code: u16, redirect: Option<String>) -> (Status, ProtocolStatus<'static>) {
    match code {
        200..=299 => (Status::FETCH_SUCCESS, ProtocolStatus::new(1, 0, None)),
        301 | 308 => (Status::FETCH_REDIR_PERM, ProtocolStatus::new(12, 0, redirect)),
        300 | 302 | 303 | 307 => (Status::FETCH_REDIR_TEMP, ProtocolStatus::new(13, 0, redirect)),
        304 => (Status::FETCH_NOTMODIFIED, ProtocolStatus::new(21, 0, None)),
        401 | 403 => (Status::FETCH_GONE, ProtocolStatus::new(17, 0, Some(format!("http code={code}")))),
        404 => (Status::FETCH_GONE, ProtocolStatus::new(14, 0, None)),
        410 => (Status::FETCH_GONE, ProtocolStatus::new(11, 0, None)),
        400..=499 => (Status::FETCH_GONE, ProtocolStatus::new(11, 0, Some(format!("http code={code}")))),
        _ => (Status::FETCH_RETRY, ProtocolStatus::new(16, 0, Some(format!("http code={code}")))),
    }
}

fn of_failure(failed: &Failure) -> (Status, ProtocolStatus<'static>) {
    let message = Some(format!("{}: {}", failed.class, failed.message));
    match failed.class {
        ErrorClass::RobotsDenied => (Status::FETCH_GONE, ProtocolStatus::new(18, 0, message)),
        ErrorClass::BadUrl | ErrorClass::BadScheme => (Status::FETCH_GONE, ProtocolStatus::new(10, 0, message)),
        ErrorClass::RedirectLimit => (Status::FETCH_GONE, ProtocolStatus::new(19, 0, message)),
        _ => (Status::FETCH_RETRY, ProtocolStatus::new(16, 0, message)),
    }
}

/// Where a redirect leads, absolute as Nutch has it; as the server has it if it is not a URL.
fn redirect(url: &str, head: &Head<'_>) -> Option<String> {
    let to = head.redirect()?;
    let joined = WebUrl::parse(url).and_then(|base| base.join(&to));
    Some(joined.map_or(to, |url| url.as_str().to_owned()))
}

/// Bytes of a head as Nutch reads them: each is a character.
fn latin_1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The bytes of such a text; what is not one of those stays UTF-8.
fn head_bytes(text: &str) -> Vec<u8> {
    match text.chars().map(|c| u8::try_from(c).ok()).collect() {
        Some(bytes) => bytes,
        None => text.as_bytes().to_vec(),
    }
}

/// The content with its headers and the body as Nutch has it.
fn stored<'a>(
    url: &'a str,
    head: &Head<'_>,
    body: &mut Body<'_>,
    truncated: Option<Truncated>,
    lost: &mut Vec<Capability>,
) -> std::io::Result<Content<'a>> {
    let mut truncated = truncated.map(Truncated::as_str);
    let codings = head.content_codings();
    let mut bytes = read_up_to(&mut *body.reader()?)?;
    if !codings.is_empty() {
        // A coding that does not decode, as of bodies that were cut, stays. That is a loss as well: the line of the head that says
        // what it is gets another name when the segment is read, so that the body passes for one without a coding.
        let decoded = decode_content(&bytes[..], &codings, MAX_BODY + 1).and_then(|mut reader| read_up_to(&mut reader));
        if let Ok(decoded) = decoded {
            bytes = decoded;
        }
        lost.push(Capability::Codings);
    }
    if bytes.len() as u64 > MAX_BODY {
        bytes.truncate(MAX_BODY as usize);
        truncated = Some(Truncated::Length.as_str());
        lost.push(Capability::LongBodies);
    }
    let (metadata, content_type) = (metadata_of(head, truncated), media_type(head));
    Ok(Content {
        url: url.into(),
        base: url.into(),
        content: bytes.into(),
        content_type: content_type.into(),
        metadata,
    })
}

/// The metadata of a content as its head tells them.
fn metadata_of(head: &Head<'_>, truncated: Option<&str>) -> Metadata<'static> {
    let mut metadata = Metadata::default();
    for field in head.fields() {
        metadata.add(&latin_1(field.name), latin_1(&field.value));
    }
    metadata.set(HEADERS, latin_1(head.bytes()));
    metadata.set(FETCH_STATUS, of_code(head.status().unwrap_or(0), None).0.0.to_string());
    if let Some(reason) = truncated {
        metadata.set(TRUNCATED, "true");
        metadata.set(TRUNCATED_REASON, reason.to_owned());
    }
    metadata
}

/// A byte more than the largest body, so that a longer one is noticed.
fn read_up_to(reader: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BODY + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
