//! The captures of the two runs.

use sha1::Digest as _;
use std::io::Write;
use trawl_model::*;

const START: i64 = 1_782_262_923_456;

fn at(n: i64) -> UnixMillis {
    UnixMillis(START + 1000 * n)
}

fn request(method: &str, path: &str, host: &str, body: &'static [u8]) -> Message<'static> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: SpecimenBot/1.0 (+http://example.org/bot)\r\nAccept: */*\r\n\
         Accept-Encoding: gzip, br, zstd\r\n{length}\r\n"
    );
    Message { head: head.into(), body: Body::Memory(body.into()) }
}

fn base(n: i64, url: &str) -> Capture<'static> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    Capture {
        url: url.into(),
        started_at: at(n),
        request: Some(request("GET", &format!("/{path}"), host, b"")),
        outcome: Outcome::Failed(Failure { class: ErrorClass::Cancelled, message: String::new() }),
        facts: CaptureFacts {
            fetched_at: UnixMillis(at(n).0 + 321),
            ip: Some("192.0.2.10".parse().unwrap()),
            protocol: Some("http/1.1".into()),
            attempt: 1,
            robots: Some(RobotsVerdict::Allowed),
            timings: Timings { connect_ms: Some(12), tls_ms: None, ttfb_ms: Some(45), total_ms: Some(321) },
            ..CaptureFacts::default()
        },
    }
}

fn response(n: i64, url: &str, head: impl Into<Vec<u8>>, body: impl Into<Vec<u8>>) -> Capture<'static> {
    let mut capture = base(n, url);
    let message = Message { head: head.into().into(), body: Body::Memory(body.into().into()) };
    capture.outcome = Outcome::Response { message, payload_digest: None, truncated: None };
    capture
}

fn cut(mut capture: Capture<'static>, why: Truncated) -> Capture<'static> {
    if let Outcome::Response { truncated, .. } = &mut capture.outcome {
        *truncated = Some(why);
    }
    capture
}

fn failure(n: i64, url: &str, class: ErrorClass, message: &str) -> Capture<'static> {
    let mut capture = base(n, url);
    capture.request = None;
    capture.facts.ip = None;
    capture.outcome = Outcome::Failed(Failure { class, message: message.into() });
    capture
}

fn html(title: &str) -> Vec<u8> {
    let text = "Trawl turns the web into a lake you can ask questions of. ".repeat(12);
    format!("<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>")
        .into()
}

fn head(status: &str, fields: &[(&str, &str)], length: usize) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status}\r\nDate: Wed, 24 Jun 2026 01:02:03 GMT\r\n");
    for (name, value) in fields {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str(&format!("Content-Length: {length}\r\n\r\n"));
    out.into()
}

fn ok(content_type: &str, length: usize) -> Vec<u8> {
    head("200 OK", &[("Content-Type", content_type)], length)
}

fn sha1_of(body: &[u8]) -> Digest {
    Digest::sha1(sha1::Sha1::digest(body).into())
}

pub fn first_run() -> Vec<Capture<'static>> {
    let home = html("home");
    let page = |n: i64, path: &str| {
        let body = html(path);
        response(n, &format!("http://www.example.org/{path}"), ok("text/html; charset=utf-8", body.len()), body)
    };
    let mut all = vec![
        response(
            0,
            "http://www.example.org/robots.txt",
            ok("text/plain", 26),
            "User-agent: *\nDisallow: /x\n"[..26].to_owned(),
        ),
        response(
            1,
            "http://www.example.org/",
            head("200 OK", &[("Content-Type", "text/html"), ("ETag", "\"v1\"")], home.len()),
            home.clone(),
        ),
        page(2, "a?b=2&a=1"),
        response(3, "http://www.example.org/empty", ok("text/plain", 0), ""),
        response(4, "http://www.example.org/204", "HTTP/1.1 204 No Content\r\nServer: s\r\n\r\n", ""),
        response(5, "http://www.example.org/304", "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n", ""),
        response(
            6,
            "http://www.example.org/404",
            head("404 Not Found", &[("Content-Type", "text/html")], 9),
            "not here!",
        ),
        response(7, "http://www.example.org/500", head("500 Oops", &[("Content-Type", "text/plain")], 4), "oops"),
    ];
    let mut moved = response(
        8,
        "http://example.org/old",
        head("301 Moved Permanently", &[("Location", "http://www.example.org/new")], 0),
        "",
    );
    moved.facts.via = Some("http://www.example.org/".into());
    moved.facts.depth = 1;
    all.push(moved);
    let mut landed = page(9, "new");
    landed.facts.redirect_of = Some("http://example.org/old".into());
    landed.facts.depth = 1;
    all.push(landed);
    let again = Revisit {
        head: head("200 OK", &[("Content-Type", "text/html"), ("ETag", "\"v2\"")], home.len()).into(),
        profile: RevisitProfile::IdenticalPayloadDigest,
        payload_digest: Some(sha1_of(&home)),
        refers_to_url: Some("http://www.example.org/".into()),
        refers_to_date: Some(at(1)),
        refers_to_id: None,
        body_length: home.len() as u64,
    };
    let mut revisit = base(10, "http://www.example.org/");
    revisit.outcome = Outcome::Revisit(again);
    revisit.facts.attempt = 2;
    all.push(revisit);
    let mut not_modified = base(11, "http://www.example.org/");
    not_modified.outcome = Outcome::Revisit(Revisit {
        head: "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n".into(),
        profile: RevisitProfile::ServerNotModified,
        payload_digest: Some(sha1_of(&home)),
        refers_to_url: Some("http://www.example.org/".into()),
        refers_to_date: Some(at(1)),
        refers_to_id: None,
        body_length: 0,
    });
    all.push(not_modified);
    all.push(failure(12, "http://nowhere.example.org/", ErrorClass::DnsNxdomain, "the name does not exist"));
    all.push(failure(13, "http://www.example.org/private", ErrorClass::RobotsDenied, "robots.txt forbids it"));
    let mut silent = failure(14, "http://slow.example.org/", ErrorClass::HeaderTimeout, "no head within 10 s");
    silent.request = Some(request("GET", "/", "slow.example.org", b""));
    silent.facts.ip = Some("198.51.100.3".parse().unwrap());
    all.push(silent);
    let mut bad = failure(15, "not a url\r\nat all: \u{e9}", ErrorClass::BadUrl, "expected a scheme,\nfound a blank");
    bad.facts.robots = None;
    all.push(bad);
    for (i, capture) in all.iter_mut().enumerate() {
        if i % 3 == 0 {
            let meta = format!(
                "{{\"source\":\"sitemap\",\"depth\":{i},\"tags\":[\"a\",null,true],\"note\":\"<&>\\u00e9 é\"}}"
            );
            capture.facts.meta_json = Some(meta);
        }
    }
    all
}

pub fn second_run() -> Vec<Capture<'static>> {
    let page = html("coded");
    let gzip = {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        gz.write_all(&page).unwrap();
        gz.finish().unwrap()
    };
    let deflate = {
        let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
        z.write_all(&page).unwrap();
        z.finish().unwrap()
    };
    let zstd = zstd::encode_all(&page[..], 3).unwrap();
    let mut br = Vec::new();
    brotli::BrotliCompress(&mut &page[..], &mut br, &Default::default()).unwrap();
    let coded = |n: i64, coding: &str, body: Vec<u8>| {
        let fields = [("Content-Type", "text/html"), ("Content-Encoding", coding)];
        let mut capture =
            response(n, &format!("https://coded.example.net/{coding}"), head("200 OK", &fields, body.len()), body);
        capture.facts.tls = Some(TlsFacts {
            version: "TLSv1.3".into(),
            cipher_suite: "TLS_AES_256_GCM_SHA384".into(),
            refused: (n == 2).then(|| "self-signed certificate".into()),
        });
        capture.facts.timings.tls_ms = Some(30);
        capture.facts.body_digest = Some(Digest::sha256(sha2::Sha256::digest(html("coded")).into()));
        capture
    };
    let long = format!("http://long.example.net/?q={}", "x".repeat(10_000));
    let mut six = response(15, "http://[2001:db8::7]:8080/six", ok("text/plain", 3), "six");
    six.facts.ip = Some("2001:db8::7".parse().unwrap());
    let mut post = response(16, "http://www.example.net/form", ok("text/plain", 6), "thanks");
    post.request = Some(request("POST", "/form", "www.example.net", b"name=value&other=1"));
    let large = "A line of a large file that compresses well, number and all.\n".repeat(90_000);
    vec![
        coded(0, "gzip", gzip),
        coded(1, "br", br),
        coded(2, "zstd", zstd),
        coded(3, "deflate", deflate),
        // As a server sent it: in chunks, which the client took apart.
        response(4, "http://www.example.net/chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n", "in chunks"),
        cut(response(5, "http://www.example.net/cut", ok("text/plain", 5_000_000), "only the first bytes"), Truncated::Length),
        cut(response(6, "http://www.example.net/slow", ok("text/plain", 500), "time ran o"), Truncated::Time),
        cut(response(7, "http://www.example.net/gone", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", "and then the conn"), Truncated::Disconnect),
        response(8, "http://www.example.net/latin", b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9 \xff\xfe\r\nContent-Type: text/plain; charset=\xe9\r\nContent-Length: 2\r\n\r\n".to_vec(), "ok"),
        response(9, "http://www.example.net/old", "HTTP/1.0 200\r\nContent-Type: text/plain\r\n\r\n", "an old server without a phrase"),
        response(10, "http://www.example.net/folded", "HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n", "fold"),
        response(11, "http://www.example.net/twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\n", "twice"),
        response(12, &long, ok("text/plain", 4), "long"),
        response(13, "http://xn--bcher-kva.example.net/%C3%BCber?a=%20b", ok("text/plain", 4), "idna"),
        response(14, "http://www.example.net/large", ok("text/plain", large.len()), large),
        six,
        post,
        response(17, "http://www.example.net/early", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n", ""),
        failure(18, "https://bad.example.net/", ErrorClass::TlsFailure, "handshake failed"),
        failure(19, "ftp://www.example.net/", ErrorClass::BadScheme, "expected http or https, found ftp"),
    ]
}
