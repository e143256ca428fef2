use super::*;
use crate::tests_common::{captures, describe, sink};
use trawl_model::CaptureSink;

#[test]
fn what_was_written_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    let mut places = Vec::new();
    for capture in captures() {
        places.push(sink.write(capture).unwrap().unwrap());
    }
    let summary = sink.finish().unwrap();
    assert_eq!(summary.files.len(), 1);
    let path = dir.path().join(&summary.files[0].0);
    let mut source = WarcSource::open(&path, Limits::default(), false).unwrap();
    let mut found = Vec::new();
    while let Some((entry, place)) = source.next_entry().unwrap() {
        match entry {
            Entry::Capture(capture) => found.push((describe(*capture), place)),
            Entry::Other(record) => assert_eq!(record.kind, "warcinfo"),
        }
    }
    assert_eq!(found.len(), places.len());
    for (found, wanted) in found.into_iter().zip(captures().into_iter().map(describe).zip(places)) {
        assert_eq!(found, wanted);
    }
}

fn record(kind: &str, id: &str, concurrent: Option<&str>, target: &str, block: &str) -> String {
    let link = concurrent.map(|c| format!("WARC-Concurrent-To: <urn:x:{c}>\r\n")).unwrap_or_default();
    let content_type = match kind {
        "request" => "application/http; msgtype=request",
        "response" => "application/http; msgtype=response",
        _ => "application/warc-fields",
    };
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{id}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n{link}\
         WARC-Target-URI: {target}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// What a file gives: for a capture its URL and whether it has its request, for other records their type.
fn entries(file: &str) -> Vec<String> {
    let bytes = bytes::Bytes::copy_from_slice(file.as_bytes());
    let mut source = WarcSource::over(Arc::new(bytes), Limits::default(), false);
    let mut out = Vec::new();
    while let Some((entry, _)) = source.next_owned().unwrap() {
        out.push(match entry {
            Entry::Capture(c) if c.request.is_some() => format!("{} +", c.url),
            Entry::Capture(c) => format!("{} -", c.url),
            Entry::Other(record) => record.kind,
        });
    }
    out
}

#[test]
fn requests_find_their_responses() {
    let response = |id, link, url| record("response", id, link, url, "HTTP/1.1 200 OK\r\n\r\nx");
    let request = |id, link, url| record("request", id, link, url, "GET / HTTP/1.1\r\n\r\n");
    let (a, b) = ("http://a.example/", "http://b.example/");
    for (file, wanted) in [
        // warcio and ours: the request names the response, in either order.
        (request("2", Some("1"), a) + &response("1", None, a), vec!["http://a.example/ +"]),
        (response("1", None, a) + &request("2", Some("1"), a), vec!["http://a.example/ +"]),
        // wget and Common Crawl: the response names the request.
        (request("1", None, a) + &response("2", Some("1"), a), vec!["http://a.example/ +"]),
        // ami: one id for both, no link.
        (request("1", None, a) + &response("1", None, a), vec!["http://a.example/ +"]),
        // Side by side with the same target.
        (
            request("1", None, a) + &response("2", None, a) + &request("3", None, b) + &response("4", None, b),
            vec!["http://a.example/ +", "http://b.example/ +"],
        ),
        // Side by side, but about something else, or said to belong elsewhere.
        (request("1", None, a) + &response("2", None, b), vec!["request", "http://b.example/ -"]),
        (request("1", Some("9"), a) + &response("2", None, a), vec!["request", "http://a.example/ -"]),
        (
            response("1", None, a) + &response("2", None, a) + &request("3", Some("2"), a),
            vec!["http://a.example/ -", "http://a.example/ +"],
        ),
        // Others' metadata is carried, and does not stand between.
        (
            response("1", None, a) + &record("metadata", "2", Some("1"), a, "via: x\r\n") + &response("3", None, b),
            vec!["http://a.example/ -", "metadata", "http://b.example/ -"],
        ),
    ] {
        assert_eq!(entries(&file), wanted, "{file}");
    }
}

#[test]
fn a_response_that_is_no_message_is_carried() {
    let file = record("response", "1", None, "dns:a.example", "20260624\na.example. 60 IN A 192.0.2.1\n");
    assert_eq!(entries(&file), ["response"]);
}

fn small() -> (Vec<u8>, Vec<(String, Place)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    let mut all = Vec::new();
    for capture in captures().into_iter().filter(|c| c.url != "http://host2.example/page/2?q=1") {
        all.push(sink.write(capture).unwrap().unwrap());
    }
    let path = dir.path().join(&sink.finish().unwrap().files[0].0);
    let shown = captures().into_iter().filter(|c| c.url != "http://host2.example/page/2?q=1").map(describe);
    (std::fs::read(path).unwrap(), shown.zip(all).collect())
}

#[test]
fn a_capture_is_read_by_its_place() {
    let (bytes, all) = small();
    let file: Arc<dyn ReadAt> = Arc::new(bytes::Bytes::from(bytes));
    for (wanted, mut place) in all {
        place.file = "(memory)".into();
        let mut source = WarcSource::at(file.clone(), Limits::default(), &place).unwrap();
        let (entry, found) = source.next_owned().unwrap().unwrap();
        let Entry::Capture(capture) = entry else { panic!("no capture at {place}") };
        assert_eq!((describe(*capture), found), (wanted, place));
    }
}

#[test]
fn damage_anywhere_costs_little_and_ends() {
    let (bytes, all) = small();
    let survivors = |bytes: Vec<u8>| {
        let mut source = WarcSource::over(Arc::new(bytes::Bytes::from(bytes)), Limits::default(), true);
        let mut count = 0;
        for _ in 0..200 {
            match source.next_owned() {
                Ok(Some((Entry::Capture(_), _))) => count += 1,
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => return count,
            }
        }
        panic!("no end in sight");
    };
    assert_eq!(survivors(bytes.clone()), all.len());
    for at in (0..bytes.len()).step_by(7) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        assert!(survivors(bad) >= all.len() - 2, "byte {at}");
        survivors(bytes[..at].to_vec());
    }
}

fn bodies(file: &str) -> Vec<(String, String, bool)> {
    let bytes = bytes::Bytes::copy_from_slice(file.as_bytes());
    let mut source = WarcSource::over(Arc::new(bytes), Limits::default(), true);
    let mut out = Vec::new();
    while let Some((entry, _)) = source.next_owned().unwrap() {
        out.push(match entry {
            Entry::Capture(capture) => match capture.outcome {
                trawl_model::Outcome::Response { mut message, truncated, .. } => {
                    let body = message.body.read_to_bytes(1 << 20).unwrap();
                    (capture.url, String::from_utf8(body.to_vec()).unwrap(), truncated.is_some())
                }
                other => panic!("{other:?}"),
            },
            Entry::Other(record) => (record.kind, String::new(), false),
        });
    }
    out
}

fn raw(fields: &str, block: &str) -> String {
    let length = block.len();
    format!("WARC/1.0\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n{fields}Content-Length: {length}\r\n\r\n{block}\r\n\r\n")
}

#[test]
fn segments_of_a_record_are_one_body() {
    let url = "http://a.example/";
    let first = raw(
        &format!(
            "WARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: {url}\r\nWARC-Segment-Number: 1\r\n"
        ),
        "HTTP/1.1 200 OK\r\n\r\none ",
    );
    let part = |n: u32, origin: &str, more: &str, block: &str| {
        let id = format!("WARC-Record-ID: <urn:x:{}>\r\nWARC-Segment-Number: {n}\r\n", n + 10);
        raw(&format!("WARC-Type: continuation\r\n{id}WARC-Segment-Origin-ID: <urn:x:{origin}>\r\n{more}"), block)
    };
    let total = "HTTP/1.1 200 OK\r\n\r\none two three".len();
    let last = part(3, "1", &format!("WARC-Segment-Total-Length: {total}\r\n"), "three");
    let whole = [first.clone(), part(2, "1", "", "two "), last.clone()].concat();
    assert_eq!(bodies(&whole), [(url.to_owned(), "one two three".to_owned(), false)]);
    // One that is missing, or another record's: what is here is told to be cut.
    let cut = |kind: &str| (kind.to_owned(), String::new(), false);
    assert_eq!(
        bodies(&[first.clone(), last].concat()),
        [(url.to_owned(), "one ".to_owned(), true), cut("continuation")]
    );
    let other = part(2, "9", "", "two ");
    assert_eq!(bodies(&[first, other].concat()), [(url.to_owned(), "one ".to_owned(), true), cut("continuation")]);
}

#[test]
fn a_response_needs_no_content_type() {
    let response = |more: &str, target: &str, block: &str| {
        raw(&format!("WARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: {target}\r\n{more}"), block)
    };
    let head = "HTTP/1.1 200 OK\r\n\r\nbody";
    for (more, target, block, wanted) in [
        ("", "http://a.example/", head, "http://a.example/"),
        ("Content-Type: text/html\r\n", "HTTPS://a.example/", head, "HTTPS://a.example/"),
        ("", "<http://a.example/>", head, "http://a.example/"),
        ("", "http://a.example/", "", "http://a.example/"),
        ("", "http://a.example/", "not http", "response"),
        ("Content-Type: text/dns\r\n", "dns:a.example", "20260624 a.example", "response"),
    ] {
        let found = bodies(&response(more, target, block));
        assert_eq!(found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), [wanted], "{more:?} {target} {block:?}");
    }
}

/// Long bodies are read from the file again. Of a member with many records each would cost inflating all before it.
#[test]
fn long_bodies_of_one_member_are_read_in_linear_time() {
    use std::io::{Read, Write};
    let body = |n: u8| vec![n; usize::try_from(MEMORY_BYTES).unwrap() + 1000];
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for n in 0..14u8 {
        let target = format!("http://a.example/{n}");
        let length = body(n).len();
        let head =
            record("resource", &n.to_string(), None, &target, "").replace("Length: 0", &format!("Length: {length}"));
        gz.write_all(head.strip_suffix("\r\n\r\n").unwrap().as_bytes()).unwrap();
        gz.write_all(&body(n)).unwrap();
        gz.write_all(b"\r\n\r\n").unwrap();
    }
    let bytes = bytes::Bytes::from(gz.finish().unwrap());
    let size = bytes.len() as u64;
    let file = Arc::new(trawl_io::read_at::Counting::new(bytes));
    let mut source = WarcSource::over(file.clone(), Limits::default(), false);
    let mut count = 0;
    while let Some((entry, _)) = source.next_owned().unwrap() {
        let Entry::Other(mut record) = entry else { panic!("a capture") };
        for _ in 0..2 {
            let mut read = Vec::new();
            record.body.reader().unwrap().read_to_end(&mut read).unwrap();
            assert!(read == body(count), "body {count}");
        }
        count += 1;
    }
    assert_eq!(count, 14);
    // Once for the records, once to find the end of the member, twice for the bodies.
    let read = file.reads().bytes;
    assert!(read < 8 * size, "{read} bytes read of {size}");
}
