//! Puts a capture together from the records of its event.

use super::loaded::{Loaded, Role};
use crate::error::Result;
use crate::header::RecordHeader;
use crate::writer::EventFacts;
use bytes::Bytes;
use std::collections::VecDeque;
use trawl_http::Head;
use trawl_model::{Capture, CaptureFacts, Entry, Message, Outcome, Place, Revisit, RevisitProfile, Truncated};

/// The entries of a group: one capture, or the records themselves if they do not make one. Of a capture the types of its other
/// records go to `beside`.
pub(super) fn entries(group: Vec<Loaded>, beside: &mut Vec<&'static str>) -> Result<VecDeque<(Entry<'static>, Place)>> {
    let kind = |record: &Loaded| record.header.record_type().as_str();
    let (mut main, mut request, mut facts, mut others) = (None, None, None, Vec::new());
    for record in group {
        match record.role() {
            Role::Main => main = Some(record),
            Role::Request => request = Some(record),
            Role::Facts => facts = Some(record),
            Role::Other => others.push(record),
        }
    }
    let fails = facts.as_ref().and_then(|f| f.facts.as_ref()).is_some_and(|f| f.failure.is_some());
    let mut out = VecDeque::new();
    match (main, facts) {
        (Some(main), facts) => {
            beside.extend(request.iter().chain(&facts).map(kind));
            beside.extend(main.segments().iter().map(kind));
            let event = facts.and_then(|f| f.facts);
            out.push_back(capture(&main, request, event)?);
        }
        (None, Some(facts)) if fails => {
            beside.extend(request.iter().map(kind));
            out.extend(failure(facts, request));
        }
        (None, facts) => out.extend(request.into_iter().chain(facts).map(Loaded::into_other)),
    }
    out.extend(others.into_iter().map(Loaded::into_other));
    Ok(out)
}

fn capture(main: &Loaded, request: Option<Loaded>, event: Option<EventFacts>) -> Result<(Entry<'static>, Place)> {
    let mut event = event.unwrap_or_else(|| unknown(&main.header));
    let started_at = main.header.date().unwrap_or_default();
    let place = main.place.clone();
    let url = event.url.take().or_else(|| main.target().map(|t| t.into_owned())).unwrap_or_default();
    let facts = with_header(event.facts, &main.header);
    let revisit = main.header.record_type() == crate::RecordType::Revisit;
    let outcome =
        if revisit { Outcome::Revisit(to_revisit(main, event.body_length.unwrap_or(0))) } else { to_response(main)? };
    let request = request.map(to_message);
    Ok((Entry::Capture(Box::new(Capture { url, started_at, request, outcome, facts })), place))
}

fn failure(facts: Loaded, request: Option<Loaded>) -> Option<(Entry<'static>, Place)> {
    let mut event = facts.facts.clone()?;
    let url = event.url.take().or_else(|| facts.target().map(|t| t.into_owned())).unwrap_or_default();
    let capture = Capture {
        url,
        started_at: facts.header.date().unwrap_or_default(),
        request: request.map(to_message),
        outcome: Outcome::Failed(event.failure?),
        facts: with_header(event.facts, &facts.header),
    };
    Some((Entry::Capture(Box::new(capture)), facts.place))
}

/// What can be said of an event that another program wrote.
fn unknown(header: &RecordHeader) -> EventFacts {
    let facts = CaptureFacts {
        fetched_at: header.date().unwrap_or_default(),
        protocol: header.text("WARC-Protocol").map(|p| p.into_owned()),
        ..CaptureFacts::default()
    };
    EventFacts { facts, ..EventFacts::default() }
}

fn with_header(mut facts: CaptureFacts, header: &RecordHeader) -> CaptureFacts {
    facts.ip = header.text("WARC-IP-Address").and_then(|ip| ip.parse().ok());
    facts.record_id = header.record_id().map(|id| id.into_owned());
    facts
}

fn to_message(record: Loaded) -> Message<'static> {
    Message { body: record.body(), head: record.head.unwrap_or_default() }
}

fn to_response(main: &Loaded) -> Result<Outcome<'static>> {
    let stated = main.header.text("WARC-Truncated").map(|t| t.parse().unwrap_or(Truncated::Unspecified));
    let truncated = stated.or_else(|| main.lacks_segments().then_some(Truncated::Unspecified));
    let head = main.head.clone().unwrap_or_default();
    let (head, body, payload_digest) = match main.dechunked()? {
        // A digest over chunks says nothing about the body without them.
        Some(body) => (Bytes::from(Head::new(&head).stored(body.len_bytes()).into_owned()), body, None),
        None => (head, main.body(), main.header.digest("WARC-Payload-Digest")),
    };
    Ok(Outcome::Response { message: Message { head, body }, payload_digest, truncated })
}

fn to_revisit(main: &Loaded, body_length: u64) -> Revisit {
    let header = &main.header;
    let not_modified = header.text("WARC-Profile").is_some_and(|p| p.ends_with("/server-not-modified"));
    Revisit {
        head: main.head.clone().unwrap_or_default(),
        profile: if not_modified { RevisitProfile::ServerNotModified } else { RevisitProfile::IdenticalPayloadDigest },
        payload_digest: header.digest("WARC-Payload-Digest"),
        refers_to_url: header.uri("WARC-Refers-To-Target-URI").map(|u| u.into_owned()),
        refers_to_date: header.time("WARC-Refers-To-Date"),
        refers_to_id: header.uri("WARC-Refers-To").map(|id| id.into_owned()),
        body_length,
    }
}
