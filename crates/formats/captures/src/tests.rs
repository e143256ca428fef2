use super::*;
use std::sync::Arc;
use trawl_io::{Fs, RealFs};
use trawl_model::*;

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

fn capture(url: &str, head: &str, body: &'static [u8]) -> Capture<'static> {
    Capture {
        url: url.into(),
        started_at: UnixMillis(1_782_262_923_456),
        request: None,
        outcome: Outcome::Response {
            message: Message { head: head.to_owned().into(), body: Body::Memory(body.into()) },
            payload_digest: None,
            truncated: None,
        },
        facts: CaptureFacts { fetched_at: UnixMillis(1_782_262_924_000), attempt: 1, ..CaptureFacts::default() },
    }
}

fn row(n: usize) -> CaptureRow {
    let url = format!("http://www.host{}.example.co.uk:8080/p/{n}", n % 7);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"x\"\r\n\r\n";
    CaptureRow::from_capture(&mut capture(&url, head, b"body"), Some(&Place::new("a.warc.gz", n as u64 * 100, 99)))
        .unwrap()
}

#[test]
fn a_response_becomes_a_row() {
    let row = row(3);
    assert_eq!(row.host, "www.host3.example.co.uk");
    assert_eq!(row.registered_domain.as_deref(), Some("example.co.uk"));
    assert_eq!(row.surt.as_deref(), Some("uk,co,example,host3,www:8080)/p/3"));
    assert_eq!((row.status, row.body_length, row.unchanged), (200, 4, false));
    assert_eq!(row.digest, "02083f4579e08a612425c0c1a17ee47add783b94");
    assert_eq!(row.content_type, "text/html");
    assert_eq!(row.etag.as_deref(), Some("\"x\""));
    assert_eq!(row.http_version.as_deref(), Some("http/1.1"));
    assert_eq!((row.fetched_at, row.started_at), (1_782_262_924_000, Some(1_782_262_923_456)));
    assert_eq!(row.place(), Some(Place::new("a.warc.gz", 300, 99)));
    assert_eq!(row.record_type.as_deref(), Some("response"));
}

#[test]
fn redirects_revisits_and_failures() {
    let head = "HTTP/1.1 301 x\r\nLocation: ../y?z\r\n\r\n";
    let moved = CaptureRow::from_capture(&mut capture("http://a.example/b/c", head, b""), None).unwrap();
    assert_eq!(moved.redirect_to.as_deref(), Some("http://a.example/y?z"));

    let mut again = capture("http://a.example/", "", b"");
    again.outcome = Outcome::Revisit(Revisit {
        head: "HTTP/1.1 304 Not Modified\r\n\r\n".into(),
        profile: RevisitProfile::ServerNotModified,
        payload_digest: Some(Digest::sha1([1; 20])),
        refers_to_url: Some("http://a.example/".into()),
        refers_to_date: Some(UnixMillis(5)),
        refers_to_id: None,
        body_length: 0,
    });
    let again = CaptureRow::from_capture(&mut again, None).unwrap();
    assert!(again.unchanged);
    assert_eq!((again.status, again.digest.as_str()), (304, "01".repeat(20).as_str()));
    assert_eq!((again.refers_to_uri.as_deref(), again.refers_to_date), (Some("http://a.example/"), Some(5)));

    let mut failed = capture("nonsense", "", b"");
    failed.outcome = Outcome::Failed(Failure { class: ErrorClass::BadUrl, message: String::new() });
    let failed = CaptureRow::from_capture(&mut failed, Some(&Place::new("a.warc.gz", 1, 2))).unwrap();
    assert_eq!((failed.status, failed.error.as_str(), failed.host.as_str()), (0, "bad_url", ""));
    assert_eq!((failed.place(), failed.record_type), (None, None));
}

#[test]
fn a_body_that_can_be_read_once_needs_its_digest() {
    let mut once = capture("http://a.example/", "HTTP/1.1 200 OK\r\n\r\n", b"");
    let Outcome::Response { message, payload_digest, .. } = &mut once.outcome else { unreachable!() };
    message.body = Body::Reader { len_bytes: 1, reader: Box::new(&b"x"[..]) };
    *payload_digest = Some(Digest::sha1([2; 20]));
    assert_eq!(CaptureRow::from_capture(&mut once, None).unwrap().digest, "02".repeat(20));
    let Outcome::Response { payload_digest, .. } = &mut once.outcome else { unreachable!() };
    *payload_digest = None;
    assert!(CaptureRow::from_capture(&mut once, None).unwrap_err().to_string().contains("only once"));
}

#[test]
fn rows_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("captures.parquet");
    let rows: Vec<_> = (0..10_000).map(row).collect();
    let mut writer = CapturesWriter::create(&fs(), &path).unwrap();
    for row in &rows {
        writer.push(row.clone()).unwrap();
    }
    assert!(!path.exists());
    assert_eq!(writer.finish().unwrap(), 10_000);
    let reader = CapturesReader::open(&path).unwrap();
    assert_eq!((reader.row_count(), reader.version()), (10_000, Some("1")));
    let found: Vec<_> = reader.collect::<Result<_>>().unwrap();
    assert!(found == rows);
}

#[test]
fn an_empty_index_is_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("captures.parquet");
    assert_eq!(CapturesWriter::create(&fs(), &path).unwrap().finish().unwrap(), 0);
    assert_eq!(CapturesReader::open(&path).unwrap().count(), 0);
}

#[test]
fn dropped_without_finish_nothing_appears() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = CapturesWriter::create(&fs(), &dir.path().join("captures.parquet")).unwrap();
    writer.push(row(1)).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
