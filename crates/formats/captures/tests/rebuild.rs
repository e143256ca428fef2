//! The index rebuilt from WARC files alone is the index the run wrote.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_captures::{CaptureRow, CapturesReader, CapturesWriter, IndexVerifier, rebuild};
use trawl_io::format::{Creation, Format, Target};
use trawl_io::{Fs, RealFs};
use trawl_model::Clock;
use trawl_model::*;
use trawl_warc::{Limits, WarcFormat, WarcSource, record_id};

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

fn capture(n: u64) -> Capture<'static> {
    let url = format!("https://www.h{}.example/p/{n}?é", n % 5);
    let body = format!("<p>{n}</p>").repeat(10);
    let head = format!(
        "HTTP/1.1 {} OK\r\nContent-Type: text/html\r\nETag: \"{n}\"\r\nLocation: /next\r\nContent-Length: {}\r\n\r\n",
        if n % 4 == 1 { 301 } else { 200 },
        body.len()
    );
    let outcome = match n % 4 {
        2 => Outcome::Revisit(Revisit {
            head: head.into(),
            profile: RevisitProfile::IdenticalPayloadDigest,
            payload_digest: Some(Digest::sha1([7; 20])),
            refers_to_url: Some("http://elsewhere.example/".into()),
            refers_to_date: Some(UnixMillis(1_700_000_000_000)),
            refers_to_id: None,
            body_length: 1234,
        }),
        3 => Outcome::Failed(Failure { class: ErrorClass::TlsFailure, message: "bad\ncertificate".into() }),
        _ => Outcome::Response {
            message: Message { head: head.into(), body: Body::Memory(body.into()) },
            payload_digest: None,
            truncated: (n == 4).then_some(Truncated::Time),
        },
    };
    Capture {
        url: if n == 7 { "no url\nat all".into() } else { url },
        started_at: UnixMillis(1_782_262_923_000 + n as i64),
        request: (n % 4 != 3).then(|| Message { head: "GET / HTTP/1.1\r\n\r\n".into(), body: Body::empty() }),
        outcome,
        facts: CaptureFacts {
            record_id: Some(record_id(u128::from(n + 1000).to_be_bytes())),
            run_id: Some("run 1".into()),
            fetched_at: UnixMillis(1_782_262_923_900 + n as i64),
            ip: Some("2001:db8::7".parse().unwrap()),
            protocol: Some(if n.is_multiple_of(2) { "h2" } else { "http/1.1" }.into()),
            redirect_of: (n == 8).then(|| "http://from.example/".into()),
            via: Some("http://via.example/".into()),
            depth: 3,
            attempt: 2,
            robots: Some(RobotsVerdict::Allowed),
            timings: Timings { connect_ms: Some(1), tls_ms: Some(2), ttfb_ms: None, total_ms: Some(900) },
            tls: Some(TlsFacts { version: "TLSv1.3".into(), cipher_suite: "X".into(), refused: Some("old".into()) }),
            body_digest: Some(Digest::sha256([5; 32])),
            meta_json: n.is_multiple_of(3).then(|| "{\"source\": \"sitemap\", \"depth\": 1}".into()),
        },
    }
}

/// A run of `n` captures: its files, and its index as the crawl writes it.
fn run(dir: &Path, n: u64) -> Vec<std::path::PathBuf> {
    let ids = AtomicU64::new(0);
    let ids = Arc::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes());
    let creation = Creation::new(fs(), Target::run(dir, "t", "r"), ids, Clock::fixed(UnixMillis(0)));
    let mut sink = WarcFormat.create(creation).unwrap();
    let mut index = CapturesWriter::create(&fs(), &dir.join("captures.parquet")).unwrap();
    for i in 0..n {
        let mut capture = capture(i);
        let mut row = CaptureRow::from_capture(&mut capture, None).unwrap();
        row.set_place(&sink.write(capture).unwrap().unwrap());
        index.push(row).unwrap();
    }
    index.finish().unwrap();
    sink.finish().unwrap().files.iter().map(|(name, _)| dir.join(name)).collect()
}

fn rows(path: &Path) -> Vec<CaptureRow> {
    CapturesReader::open(path).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_rebuilt_index_has_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let files = run(dir.path(), 40);
    let again = dir.path().join("again.parquet");
    let mut writer = CapturesWriter::create(&fs(), &again).unwrap();
    for file in files {
        let mut source = WarcSource::open(&file, Limits::default(), false).unwrap();
        let report =
            rebuild(&mut source, &mut writer, &mut |_, _| Err("warcinfo"), &mut |e| panic!("{e}"), &mut |_| {})
                .unwrap();
        assert_eq!((report.rows, report.failures, report.not_captures["warcinfo"]), (40, 10, 1));
    }
    writer.finish().unwrap();
    let (first, second) = (rows(&dir.path().join("captures.parquet")), rows(&again));
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
    assert_eq!(second.len(), 40);
    assert_eq!(std::fs::read(dir.path().join("captures.parquet")).unwrap(), std::fs::read(again).unwrap());
}

fn findings(dir: &Path, files: &[std::path::PathBuf], index: &Path) -> Vec<(&'static str, String)> {
    let mut verifier = IndexVerifier::new(dir, 1 << 20).unwrap();
    verifier.index(CapturesReader::open(index).unwrap(), &mut |_| {}).unwrap();
    for file in files {
        let mut source = WarcSource::open(file, Limits::default(), false).unwrap();
        verifier.archive(&mut source, &mut |_, _| Err(""), &mut |e| panic!("{e}"), &mut |_| {}).unwrap();
    }
    let mut found = Vec::new();
    verifier.finish(&mut |f| found.push((f.kind, f.detail))).unwrap();
    found
}

#[test]
fn an_index_that_is_not_its_archives_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let files = run(dir.path(), 12);
    let index = dir.path().join("captures.parquet");
    assert_eq!(findings(dir.path(), &files, &index), []);
    let good = rows(&index);
    let check = |change: &dyn Fn(&mut Vec<CaptureRow>)| {
        let mut rows = good.clone();
        change(&mut rows);
        let path = dir.path().join("bad.parquet");
        let mut writer = CapturesWriter::create(&fs(), &path).unwrap();
        rows.into_iter().for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
        findings(dir.path(), &files, &path)
    };
    assert_eq!(check(&|rows| rows[0].status = 404), [("row-differs", "differs in status".into())]);
    assert_eq!(check(&|rows| rows[3].error = "other".into()), [("row-differs", "differs in error".into())]);
    let kinds = |found: Vec<(&'static str, String)>| found.into_iter().map(|f| f.0).collect::<Vec<_>>();
    assert_eq!(kinds(check(&|rows| drop(rows.remove(5)))), ["row-missing"]);
    assert_eq!(kinds(check(&|rows| drop(rows.remove(3)))), ["row-missing"]);
    assert_eq!(kinds(check(&|rows| rows.push(rows[4].clone()))), ["row-twice"]);
    assert_eq!(kinds(check(&|rows| rows[4].warc_length += 1)), ["row-missing", "record-missing"]);
    let unknown = |rows: &mut Vec<CaptureRow>| {
        rows.push(CaptureRow { url: "http://x/".into(), error: "e".into(), ..CaptureRow::default() })
    };
    assert_eq!(kinds(check(&unknown)), ["record-missing"]);
}
