//! Captures: the bytes of the archive, whatever they are, and nothing that runs.

use crate::fixture::{DenyTarget, Fixture, Reply, deny, get, record, request, response, send};
use std::io::Write;
use trawl_serve::Config;
use trawl_store::Acl;

const SCRIPT: &str = "<html><script>alert(1)</script></html>";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn archive() -> Vec<u8> {
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{SCRIPT}");
    let packed = gzip(b"packed body");
    let mut coded = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    )
    .into_bytes();
    coded.extend_from_slice(&packed);
    [
        record("warcinfo", 1, "WARC-Date: 2026-06-24T01:02:03Z\r\n", b"software: x\r\n"),
        response(2, "http://a.com/", "2026-06-24T01:02:03Z", page.as_bytes()),
        response(3, "http://a.com/coded", "2026-06-24T01:02:04Z", &coded),
        response(
            4,
            "http://a.com/",
            "2026-06-25T01:02:03Z",
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nlater",
        ),
        response(5, "http://a.com/moved", "2026-06-24T01:02:05Z", b"HTTP/1.1 301 Moved\r\nLocation: /to here\r\n\r\n"),
        record(
            "resource",
            6,
            "WARC-Date: 2026-06-24T01:02:06Z\r\nWARC-Target-URI: http://a.com/thing\r\nContent-Type: image/png\r\n",
            b"\x89PNG",
        ),
    ]
    .concat()
}

fn revisit() -> Vec<u8> {
    let digest = {
        use sha1::Digest;
        data_encoding::BASE32.encode(&sha1::Sha1::digest(SCRIPT.as_bytes()))
    };
    let more = format!(
        "WARC-Date: 2026-07-01T00:00:00Z\r\nWARC-Target-URI: http://a.com/\r\nContent-Type: application/http;msgtype=response\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
         WARC-Payload-Digest: sha1:{digest}\r\nWARC-Refers-To-Target-URI: http://a.com/\r\n\
         WARC-Refers-To-Date: 2026-06-24T01:02:03Z\r\n"
    );
    record("revisit", 7, &more, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Own: yes\r\n\r\n")
}

fn harmless(reply: &Reply) {
    assert!(
        reply.header("content-security-policy").unwrap().starts_with("sandbox; default-src 'none'"),
        "{}",
        reply.head
    );
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn a_capture_by_url_by_time_and_by_locator() {
    let fixture = Fixture::new();
    let id = fixture.add_file("w", "w.warc", &archive(), Acl::Public);
    let server = fixture.serve(Config::default());
    let at = server.address();
    let capture = |query: &str| get(at, &format!("/v1/capture/w?{query}"));

    let body = capture("url=http://a.com/&ts=2026-06-24&part=body");
    assert_eq!((body.status, body.text().as_str(), body.header("content-type")), (200, SCRIPT, Some("text/plain")));
    assert_eq!(body.header("trawl-content-type"), Some("text/html"));
    harmless(&body);
    assert_eq!(capture("url=http://A.com&part=body").text(), "later", "the newest one");
    assert_eq!(capture("url=http://a.com/coded&part=body").text(), "packed body");
    let http = capture("url=http://a.com/moved&part=http");
    assert_eq!(http.text(), "HTTP/1.1 301 Moved\r\nLocation: /to here\r\n\r\n");
    let thing = capture("url=http://a.com/thing&part=body");
    assert_eq!((&thing.body[..], thing.header("content-type")), (&b"\x89PNG"[..], Some("image/png")));

    let stored = capture("url=http://a.com/coded");
    let text = String::from_utf8_lossy(&archive()).into_owned();
    assert_eq!(stored.header("content-type"), Some("application/warc"));
    let begins = archive().windows(stored.body.len()).any(|window| window == stored.body);
    assert!(begins && stored.text().starts_with("WARC/1.1"), "{text}");

    let (_, page) = crate::fixture::ask(at, &format!("/v1/domain/a.com/datasets/{id}/urls"));
    for item in page["items"].as_array().unwrap() {
        let found = capture(&format!("locator={}", item["locator"].as_str().unwrap()));
        let uri = format!("WARC-Target-URI: {}\r\n", item["url"].as_str().unwrap());
        assert!(found.status == 200 && found.text().contains(&uri), "{item}");
    }
    assert_eq!(capture("url=http://a.com/none").status, 404);
}

/// A locator is a text that anybody can decode: passwords are no more in it than in the URL beside it.
#[test]
fn locators_have_no_passwords() {
    let fixture = Fixture::new();
    let file = response(1, "http://me:secret@a.com/x", "2026-06-24T01:02:03Z", b"HTTP/1.1 200 OK\r\n\r\nbody");
    let id = fixture.add_file("w", "w.warc", &file, Acl::Public);
    let server = fixture.serve(Config::default());
    let (_, page) = crate::fixture::ask(server.address(), &format!("/v1/domain/a.com/datasets/{id}/urls"));
    let (_, url) = crate::fixture::ask(server.address(), "/v1/url?url=http://a.com/x");
    assert_eq!(page["items"][0]["locator"], url["items"][0]["locator"]);
    let locator = page["items"][0]["locator"].as_str().unwrap();
    let decoded = data_encoding::BASE64URL_NOPAD.decode(locator.as_bytes()).unwrap();
    assert!(!String::from_utf8_lossy(&decoded).contains("secret"));
    let found = get(server.address(), &format!("/v1/capture/w?locator={locator}&part=body"));
    assert_eq!((found.status, found.text().as_str()), (200, "body"));
    let memento = get(server.address(), "/web/20260624010203id_/http://a.com/x");
    assert_eq!(memento.status, 200);
    assert!(memento.header("link").is_some() && !memento.head.contains("secret"), "{}", memento.head);
}

/// What an ingest read behind damage in a member is replayed from there, and of two captures of a URL the one that was asked for.
#[test]
fn captures_behind_damage_in_a_shared_member() {
    let page = |n: u32| format!("HTTP/1.1 200 OK\r\n\r\npage {n}");
    let one = |n: u32, url: &str| response(n, url, &format!("2026-06-24T01:02:0{n}Z"), page(n).as_bytes());
    let broken =
        String::from_utf8(one(2, "http://a.com/lost")).unwrap().replace("Content-Length: ", "Content-Length: x");
    let (first, again) = (one(1, "http://a.com/1"), one(4, "http://a.com/1"));
    let member = gzip(&[&first[..], broken.as_bytes(), &one(3, "http://a.com/3"), &again].concat());
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc.gz", &[gzip(&one(5, "http://a.com/5")), member].concat(), Acl::Public);
    // The damaged record comes first, and nothing in front of it says that members are shared.
    let begins = gzip(&[broken.as_bytes(), &one(3, "http://a.com/3")].concat());
    fixture.add_file("v", "v.warc.gz", &[gzip(&[first, again].concat()), begins].concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    for (query, body) in [
        ("w?url=http://a.com/1&ts=2026-06-24T01:02:01Z", "page 1"),
        ("w?url=http://a.com/1&ts=2026-06-24T01:02:04Z", "page 4"),
        ("w?url=http://a.com/3", "page 3"),
        ("v?url=http://a.com/3", "page 3"),
    ] {
        let at = server.address();
        assert_eq!(get(at, &format!("/v1/capture/{query}&part=body")).text(), body, "{query}");
        let record = get(at, &format!("/v1/capture/{query}")).text();
        assert!(record.starts_with("WARC/1.1") && record.ends_with(&format!("{body}\r\n\r\n")), "{query}: {record}");
    }
}

/// Servers name character sets as codings.
#[test]
fn a_coding_that_nobody_knows_is_none() {
    let file = response(
        1,
        "http://a.com/",
        "2026-06-24T01:02:03Z",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: UTF-8\r\n\r\nplain",
    );
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc", &file, Acl::Public);
    let server = fixture.serve(Config::default());
    for path in ["/v1/capture/w?url=http://a.com/&part=body", "/web/20260624010203id_/http://a.com/"] {
        let found = get(server.address(), path);
        assert_eq!((found.status, found.text().as_str()), (200, "plain"), "{path}");
    }
}

/// A body that breaks off is handed out once, and the answer breaks off with it.
#[test]
fn a_coded_body_that_is_cut() {
    let text: String = (0..40_000u64).map(|n| format!("{n:06} {}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let packed = gzip(text.as_bytes());
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    let cut = [head, &packed[..packed.len() / 2]].concat();
    let file = response(1, "http://a.com/", "2026-06-24T01:02:03Z", &cut);
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc", &file, Acl::Public);
    let server = fixture.serve(Config::default());
    let asked = b"GET /v1/capture/w?url=http://a.com/&part=body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let found = send(server.address(), asked);
    let first = found.windows(8).filter(|bytes| bytes == b"000000 0").count();
    assert_eq!(first, 1, "{} bytes", found.len());
}

#[test]
fn a_revisit_has_the_body_it_refers_to_in_whichever_dataset() {
    let fixture = Fixture::new();
    fixture.add_file("old", "old.warc", &archive(), Acl::Public);
    fixture.add_file("new", "new.warc", &revisit(), Acl::Public);
    let server = fixture.serve(Config::default());
    let found = get(server.address(), "/v1/capture/new?url=http://a.com/&part=body");
    assert_eq!((found.status, found.text().as_str()), (200, SCRIPT), "{}", found.head);
    assert_eq!(found.header("trawl-body-of"), Some("1 2026-06-24T01:02:03.000Z http://a.com/"));
    let http = get(server.address(), "/v1/capture/new?url=http://a.com/&part=http").text();
    assert!(http.contains("X-Own: yes") && http.ends_with(SCRIPT), "its own head, the other's body: {http}");
    let memento = get(server.address(), "/web/20260701000000id_/http://a.com/");
    assert_eq!((memento.text().as_str(), memento.header("content-type")), (SCRIPT, Some("text/html")));
}

/// The digest of a revisit may be that of a body in chunks; then its date names the capture.
#[test]
fn a_revisit_of_a_chunked_response() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = format!("{:x}\r\n{SCRIPT}\r\n0\r\n\r\n", SCRIPT.len());
    let digest = {
        use sha1::Digest;
        data_encoding::BASE32.encode(&sha1::Sha1::digest(chunks.as_bytes()))
    };
    let revisit = |id: u32, refers: &str| {
        let more = format!(
            "WARC-Date: 2026-07-01T00:00:0{id}Z\r\nWARC-Target-URI: http://a.com/\r\nContent-Type: application/http;msgtype=response\r\n\
             WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
             WARC-Payload-Digest: sha1:{digest}\r\nWARC-Refers-To-Target-URI: http://a.com/\r\nWARC-Refers-To-Date: {refers}\r\n"
        );
        record("revisit", id, &more, head.as_bytes())
    };
    let other = b"HTTP/1.1 200 OK\r\n\r\nother";
    let file = [
        response(1, "http://a.com/", "2026-06-24T01:02:03Z", format!("{head}{chunks}").as_bytes()),
        response(2, "http://a.com/", "2026-06-25T01:02:03Z", other),
        revisit(3, "2026-06-24T01:02:03Z"),
        revisit(4, "2026-06-24T01:02:04Z"),
    ];
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc", &file.concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let body = |ts: &str| get(server.address(), &format!("/v1/capture/w?url=http://a.com/&ts={ts}&part=body"));
    let found = body("2026-07-01T00:00:03Z");
    assert_eq!((found.status, found.text().as_str()), (200, SCRIPT));
    assert_eq!(found.header("trawl-body-of"), Some("1 2026-06-24T01:02:03.000Z http://a.com/"));
    assert_eq!(body("2026-07-01T00:00:04Z").status, 502, "what it names is not there");
}

/// `wget --warc-dedup` names the record that has the body, and neither its date nor a digest that rows have.
#[test]
fn a_revisit_that_names_only_a_record() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = |body: &str| format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let digest = {
        use sha1::Digest;
        data_encoding::BASE32.encode(&sha1::Sha1::digest(chunked(SCRIPT).as_bytes()))
    };
    let revisit = |id: u32, refers: u32, digest: &str| {
        let more = format!(
            "WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-{refers:012}>\r\n\
             WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\nWARC-Truncated: length\r\n\
             WARC-Target-URI: <http://a.com/>\r\nWARC-Date: 2026-07-01T00:00:0{id}Z\r\n\
             Content-Type: application/http;msgtype=response\r\n{digest}"
        );
        record("revisit", id, &more, head.as_bytes())
    };
    let page = |id: u32, date: &str, body: &str| {
        response(id, "<http://a.com/>", date, format!("{head}{}", chunked(body)).as_bytes())
    };
    let named = format!("WARC-Payload-Digest: sha1:{digest}\r\n");
    let fixture = Fixture::new();
    fixture.add_file("old", "old.warc", &page(1, "2026-06-24T01:02:03Z", SCRIPT), Acl::Public);
    // Nearer in time, but another page.
    let file = [
        page(2, "2026-06-30T00:00:00Z", "other"),
        revisit(3, 1, &named),
        revisit(4, 1, ""),
        revisit(5, 9, &named),
        revisit(6, 9, ""),
    ];
    fixture.add_file("w", "w.warc", &file.concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let body = |second: u32| {
        let ts = format!("2026-07-01T00:00:0{second}Z");
        get(server.address(), &format!("/v1/capture/w?url=http://a.com/&ts={ts}&part=body"))
    };
    for second in [3, 4] {
        let found = body(second);
        assert_eq!((found.status, found.text().as_str()), (200, SCRIPT), "{second}");
        assert_eq!(found.header("trawl-body-of"), Some("1 2026-06-24T01:02:03.000Z http://a.com/"));
    }
    for second in [5, 6] {
        assert_eq!(body(second).status, 502, "{second}: no dataset has the record that it names");
    }
}

#[test]
fn memento_finds_the_nearest_and_rewrites_nothing() {
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc", &archive(), Acl::Public);
    let server = fixture.serve(Config::default());
    let at = server.address();
    let gate = request(at, "GET", "/timegate/http://a.com/", "Accept-Datetime: Wed, 24 Jun 2026 00:00:00 GMT\r\n");
    assert_eq!((gate.status, gate.header("location")), (302, Some("/web/20260624010203id_/http://a.com/")));
    assert!(gate.head.contains("vary: accept-datetime"), "{}", gate.head);
    let link = gate.header("link").unwrap();
    for named in [
        "<http://a.com/>; rel=\"original\"",
        "</web/20260624010203id_/http://a.com/>; rel=\"first memento\"; datetime=\"Wed, 24 Jun 2026 01:02:03 GMT\"",
        "</web/20260625010203id_/http://a.com/>; rel=\"last next memento\"; datetime=\"Thu, 25 Jun 2026 01:02:03 GMT\"",
    ] {
        assert!(link.contains(named), "{named} in {link}");
    }
    let again = "Accept-Datetime: Wed, 24 Jun 2026 00:00:00 GMT\r\nIf-None-Match: *\r\nAccept-Encoding: gzip\r\n";
    assert_eq!(request(at, "GET", "/web/http://a.com/", again).header("location"), gate.header("location"));
    assert_eq!(get(at, "/web/timemap/link/http://a.com/").body, get(at, "/timemap/link/http://a.com/").body);
    assert_eq!(get(at, "/timegate/http://a.com/").header("location"), Some("/web/20260625010203id_/http://a.com/"));
    let memento = get(at, "/web/20260624010203id_/http://a.com/");
    assert_eq!((memento.status, memento.text().as_str()), (200, SCRIPT));
    assert_eq!(memento.header("memento-datetime"), Some("Wed, 24 Jun 2026 01:02:03 GMT"));
    assert_eq!(memento.header("content-type"), Some("text/html"));
    harmless(&memento);
    let moved = get(at, "/web/2026id_/http://a.com/moved");
    assert_eq!((moved.status, moved.header("location")), (301, Some("/web/20260624010205id_/http://a.com/to%20here")));
    let map = get(at, "/timemap/link/http://a.com/");
    assert_eq!(map.header("content-type"), Some("application/link-format"));
    assert_eq!(map.text().matches("memento\"; datetime=").count(), 2, "{}", map.text());
    for other in ["https://a.com/", "http:/www.a.com/", "https://www.a.com", "www.a.com/"] {
        let leads = get(at, &format!("/web/20260624id_/{other}"));
        let found = (leads.status, leads.header("location"));
        assert_eq!(found, (302, Some("/web/20260624010203id_/http://a.com/")), "{other}");
    }
    assert_eq!(get(at, "/web/2026id_/https://a.com/none").status, 404);
    for other in ["2026", "2026im_"] {
        let leads = get(at, &format!("/web/{other}/http://a.com/"));
        assert_eq!(leads.header("location"), Some("/web/2026id_/http://a.com/"));
    }
}

#[test]
fn rows_that_lead_out_of_the_archives_lead_nowhere() {
    let fixture = Fixture::new();
    std::fs::write(fixture.dir.path().parent().unwrap().join("trawl-outside.warc"), archive()).unwrap();
    let line = |file: &str| {
        format!(
            "{{\"url\":\"http://a.com/\",\"ts\":\"2026-06-24T01:02:03Z\",\"status\":200,\"warc_file\":{file:?},\"warc_offset\":164,\"warc_length\":10}}\n"
        )
    };
    let absolute = fixture.path("inside.warc").display().to_string();
    std::fs::write(fixture.path("inside.warc"), archive()).unwrap();
    for (name, file) in
        [("up", "../trawl-outside.warc"), ("abs", absolute.as_str()), ("gone", "gone.warc"), ("wrong", "inside.warc")]
    {
        fixture.add_file(name, &format!("{name}.jsonl"), line(file).as_bytes(), Acl::Public);
    }
    let server = fixture.serve(Config::default());
    for name in ["up", "abs", "gone", "wrong"] {
        let reply = get(server.address(), &format!("/v1/capture/{name}?url=http://a.com/&part=body"));
        assert_eq!((reply.status, reply.json()["error"].as_str()), (502, Some("archive_unavailable")), "{name}");
        assert!(!reply.text().contains("warc"), "{}", reply.text());
    }
    std::fs::remove_file(fixture.dir.path().parent().unwrap().join("trawl-outside.warc")).unwrap();
}

#[test]
fn what_is_denied_is_replayed_nowhere() {
    let fixture = Fixture::new();
    let id = fixture.add_file("w", "w.warc", &archive(), Acl::Public);
    let server = fixture.serve(Config::default());
    let (_, page) = crate::fixture::ask(server.address(), &format!("/v1/domain/a.com/datasets/{id}/urls"));
    let first = page["items"].as_array().unwrap().iter().find(|item| item["url"] == "http://a.com/").unwrap();
    let locator = first["locator"].as_str().unwrap();
    let paths = [
        "/v1/capture/w?url=http://a.com/".to_owned(),
        format!("/v1/capture/w?locator={locator}"),
        "/web/20260624010203id_/http://a.com/".to_owned(),
        "/timegate/http://a.com/".to_owned(),
    ];
    for path in &paths {
        assert!(get(server.address(), path).status < 400, "{path}");
    }
    deny(&fixture.lake, DenyTarget::Url("http://a.com/".into()));
    for path in &paths {
        assert_eq!(get(server.address(), path).status, 404, "{path}");
    }
    assert_eq!(get(server.address(), "/cdx?url=a.com").text(), "");
}

/// Indexes have whole seconds where records have fractions, and not all say which captures are revisits.
#[test]
fn captures_of_an_index_are_replayed() {
    let digest = {
        use sha1::Digest;
        data_encoding::BASE32.encode(&sha1::Sha1::digest(SCRIPT.as_bytes()))
    };
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{SCRIPT}");
    let page = response(1, "http://a.com/", "2026-06-24T01:02:03.456Z", page.as_bytes());
    let more = format!(
        "WARC-Date: 2026-07-01T00:00:00.789Z\r\nWARC-Target-URI: http://a.com/\r\n\
         Content-Type: application/http;msgtype=response\r\nWARC-Payload-Digest: sha1:{digest}\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
    );
    let again = record("revisit", 2, &more, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    for kind in ["\"mime\":\"warc/revisit\",", ""] {
        let line = |time: &str, kind: &str, offset: usize, length: usize, file: &str| {
            format!(
                "com,a)/ {time} {{\"url\":\"http://a.com/\",{kind}\"status\":\"200\",\"digest\":\"sha1:{digest}\",\
                 \"length\":\"{length}\",\"offset\":\"{offset}\",\"filename\":\"{file}\"}}\n"
            )
        };
        let index = [
            line("20260624010203", "\"mime\":\"text/html\",", 0, page.len(), "w.warc"),
            // Nearer, but not there any more.
            line("20260630000000", "\"mime\":\"text/html\",", 0, page.len(), "gone.warc"),
            line("20260701000000", kind, page.len(), again.len(), "w.warc"),
        ];
        let fixture = Fixture::new();
        fixture.add_file("w", "w.warc", &[page.clone(), again.clone()].concat(), Acl::Public);
        fixture.add_file("index", "index.cdxj", index.concat().as_bytes(), Acl::Public);
        let server = fixture.serve(Config::default());
        for dataset in ["w", "index"] {
            for ts in ["2026-06-24", "2026-07-01"] {
                let path = format!("/v1/capture/{dataset}?url=http://a.com/&ts={ts}&part=body");
                let found = get(server.address(), &path);
                assert_eq!((found.status, found.text().as_str()), (200, SCRIPT), "{kind} {path}");
            }
        }
        assert_eq!(get(server.address(), "/web/20260701000000id_/http://a.com/").text(), SCRIPT);
    }
}

/// Programs call their files alike in every directory: a record in a file of that name, at that place and of that URL may be another one.
#[test]
fn files_of_one_name_in_two_directories() {
    let fixture = Fixture::new();
    let (mut bases, mut rows) = (Vec::new(), String::new());
    let captures = [("one", "2026-01-01T00:00:00Z", "first"), ("two", "2026-02-01T00:00:00Z", "other")];
    for (dir, date, body) in captures {
        std::fs::create_dir(fixture.path(dir)).unwrap();
        let http = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
        let record = response(1, "http://a.com/", date, http.as_bytes());
        let length = record.len();
        std::fs::write(fixture.path(dir).join("site.warc"), record).unwrap();
        bases.push(format!("file://{}/", fixture.path(dir).display()));
        rows += &format!(
            "{{\"url\":\"http://a.com/\",\"ts\":\"{date}\",\"status\":200,\"warc_file\":\"site.warc\",\"warc_offset\":0,\"warc_length\":{length}}}\n"
        );
    }
    let list = fixture.path("rows.jsonl");
    std::fs::write(&list, rows).unwrap();
    fixture.take(&fixture.lake, "w", &list, Acl::Public, bases);
    let server = fixture.serve(Config::default());
    let find = |date: &str, part: &str| {
        get(server.address(), &format!("/v1/capture/w?url=http://a.com/&ts={date}&part={part}"))
    };
    for (_, date, body) in captures {
        for part in ["record", "http", "body"] {
            let found = find(date, part);
            assert!(found.status == 200 && found.text().contains(body), "{part} of {date}: {}", found.text());
        }
    }
    std::fs::remove_file(fixture.path("two").join("site.warc")).unwrap();
    for part in ["record", "http", "body"] {
        assert_eq!(find("2026-02-01T00:00:00Z", part).status, 502, "{part}: another capture is in its place");
    }
}
