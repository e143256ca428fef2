//! Captures of every kind, for the tests of this crate.

use crate::Compression;
use crate::writer::WarcSink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_io::format::{About, Creation, Target};
use trawl_io::{Fs, RealFs};
use trawl_model::*;

/// Ids that count.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl IdSource for Counter {
    fn next_id(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes()
    }
}

/// A run in `dir`.
pub(crate) fn creation(fs: Arc<dyn Fs>, dir: &Path) -> Creation {
    let ids = Arc::new(Counter::default());
    let target = Target::run(dir, "trawl", "run7");
    let mut creation = Creation::new(fs, target, ids, Clock::fixed(UnixMillis(1_782_262_900_000)));
    creation.about = About { software: "trawl/test".into(), is_part_of: Some("run7".into()), ..About::default() };
    creation
}

pub(crate) fn sink(dir: &Path) -> Box<WarcSink> {
    Box::new(WarcSink::create(&creation(Arc::new(RealFs), dir), Compression::Gzip).unwrap())
}

/// Bytes that compress like text does, different for each seed.
pub(crate) fn text(seed: u64, len: usize) -> Vec<u8> {
    let words = ["lorem", "ipsum", "<p>", "dolor", "sit", "</p>\n", "amet", "42", "href=\"/x\""];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 16);
    while out.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(words[(state >> 33) as usize % words.len()].as_bytes());
        out.push(b' ');
    }
    out.truncate(len);
    out
}

pub(crate) fn response(n: u64, body: Vec<u8>) -> Capture<'static> {
    let url = format!("http://host{}.example/page/{n}?q=1", n % 3);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
    Capture {
        url: url.clone(),
        started_at: UnixMillis(1_782_262_923_000 + n as i64),
        request: Some(Message {
            head: format!("GET /page/{n}?q=1 HTTP/1.1\r\nHost: host{}.example\r\n\r\n", n % 3).into(),
            body: Body::empty(),
        }),
        outcome: Outcome::Response {
            message: Message { head: head.into(), body: Body::Memory(body.into()) },
            payload_digest: None,
            truncated: None,
        },
        facts: CaptureFacts {
            fetched_at: UnixMillis(1_782_262_923_500 + n as i64),
            ip: Some("192.0.2.7".parse().unwrap()),
            protocol: Some("http/1.1".into()),
            attempt: 1,
            robots: Some(RobotsVerdict::Allowed),
            timings: Timings { connect_ms: Some(3), tls_ms: None, ttfb_ms: Some(20), total_ms: Some(500) },
            run_id: Some("run7".into()),
            ..CaptureFacts::default()
        },
    }
}

/// One capture of each kind.
pub(crate) fn captures() -> Vec<Capture<'static>> {
    let mut all = vec![response(0, text(1, 3000)), response(1, Vec::new()), response(2, text(2, 100_000))];
    let mut no_request = response(3, text(3, 50));
    no_request.request = None;
    no_request.facts.meta_json = Some("{\"source\":\"sitemap\",\"depth\":1}".into());
    all.push(no_request);
    let mut cut = response(4, text(4, 700));
    if let Outcome::Response { truncated, .. } = &mut cut.outcome {
        *truncated = Some(Truncated::Length);
    }
    all.push(cut);
    for (n, profile) in [(5, RevisitProfile::IdenticalPayloadDigest), (6, RevisitProfile::ServerNotModified)] {
        let mut again = response(n, Vec::new());
        let identical = profile == RevisitProfile::IdenticalPayloadDigest;
        again.outcome = Outcome::Revisit(Revisit {
            head: if identical {
                &b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\n\r\n"[..]
            } else {
                b"HTTP/1.1 304 Not Modified\r\n\r\n"
            }
            .into(),
            profile,
            payload_digest: identical.then(|| Digest::sha1([9; 20])),
            refers_to_url: Some("http://host0.example/page/0?q=1".into()),
            refers_to_date: Some(UnixMillis(1_782_262_923_000)),
            refers_to_id: identical.then(|| "urn:uuid:00000000-0000-4000-8000-000000000002".into()),
            body_length: if identical { 3000 } else { 0 },
        });
        all.push(again);
    }
    let mut failed = response(7, Vec::new());
    failed.request = None;
    failed.outcome =
        Outcome::Failed(Failure { class: ErrorClass::ConnectRefused, message: "nobody listens\nthere".into() });
    failed.facts.ip = None;
    all.push(failed);
    let mut bad = response(8, Vec::new());
    bad.request = None;
    bad.url = "no url\r\nat all".into();
    bad.outcome = Outcome::Failed(Failure { class: ErrorClass::BadUrl, message: "no scheme".into() });
    all.push(bad);
    let mut asked = response(9, Vec::new());
    asked.outcome = Outcome::Failed(Failure { class: ErrorClass::HeaderTimeout, message: "silence".into() });
    all.push(asked);
    all
}

/// Everything a capture says, comparable. What a sink adds (ids, digests) is left out.
pub(crate) fn describe(mut capture: Capture<'_>) -> String {
    let message = |m: &mut Message<'_>| {
        let body = m.body.read_to_bytes(u64::MAX).unwrap();
        format!("{:?} {} {}", m.head, body.len(), crc32fast::hash(&body))
    };
    let request = capture.request.as_mut().map(message);
    let outcome = match &mut capture.outcome {
        Outcome::Response { message: m, truncated, .. } => format!("{} {truncated:?}", message(m)),
        other => format!("{other:?}"),
    };
    capture.facts.record_id = None;
    format!("{} {:?} {request:?} {outcome} {:?}", capture.url, capture.started_at, capture.facts)
}
