use super::*;
use bytes::Bytes;
use std::io::Write;
use trawl_archive::{Creation, Registry, Target};
use trawl_io::RealFs;
use trawl_model::{Body, Clock, Message};

fn worker(dir: &std::path::Path) -> Worker {
    let next = std::sync::atomic::AtomicU64::new(0);
    let ids = Arc::new(move || u128::from(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).to_be_bytes());
    let target = Target::run(dir, "t", "run");
    let creation = Creation::new(Arc::new(RealFs), target, ids, Clock::fixed(UnixMillis(0)));
    let sink = Registry::default().format("warc").unwrap().create(creation).unwrap();
    Worker {
        preparer: sink.preparer(),
        carries: sink.carries(),
        digests: None,
        identity: Identity::Key,
        queue: QueueBy::Host,
        scope: Scope::Domain,
        rules: LinkRules::default(),
        store_unchanged: false,
        follow: true,
        sitemaps: false,
        embeds: false,
        obey: true,
        agent: "trawl".into(),
        run_id: "run".into(),
        decode_bytes: 1 << 20,
        max_links: 1000,
    }
}

fn lease(id: LeaseId, url: &str) -> Lease {
    let robots = trawl_model::RobotsVerdict::Allowed;
    Lease {
        id,
        url: WebUrl::parse(url).unwrap(),
        depth: 0,
        hops: 0,
        attempt: 1,
        source: Source::Seed,
        robots,
        meta_json: None,
        delay: std::time::Duration::ZERO,
    }
}

fn fetched(url: &str, head: &str, body: impl Into<Vec<u8>>) -> Capture<'static> {
    let message = Message { head: Bytes::from(head.to_owned()), body: Body::Memory(body.into().into()) };
    let outcome = Outcome::Response { message, payload_digest: None, truncated: None };
    let facts = CaptureFacts { fetched_at: UnixMillis(1_000_000_000_000), ..CaptureFacts::default() };
    Capture { url: url.into(), started_at: UnixMillis(0), request: None, outcome, facts }
}

const URL: &str = "http://www.a.example/dir/";

fn page(head: &str, body: impl Into<Vec<u8>>) -> Event {
    let dir = tempfile::tempdir().unwrap();
    let id = Identity::Key.of(&WebUrl::parse(URL).unwrap());
    let lease = lease(LeaseId::Page(id), URL);
    worker(dir.path()).event(lease, fetched(URL, head, body)).unwrap()
}

fn links(event: &Event) -> Vec<&str> {
    event.links.iter().map(|(_, url)| url.as_str()).collect()
}

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n";

#[test]
fn links_are_distinct_in_scope_and_pages() {
    let body = "<a href=x><a href=x?utm_source=y><a href='http://b.a.example/'><a href='http://other.example/'>\
                <a href='#top'><a href=./><img src=i.png><a href=mailto:x@y><form action=f>";
    let event = page(&format!("{HTML}\r\n"), body);
    // The spellings of one page are kept apart: robots.txt may close one of them.
    let dir = "http://www.a.example/dir/";
    assert_eq!(links(&event), [&*format!("{dir}x"), &*format!("{dir}x?utm_source=y"), "http://b.a.example/"]);
    assert_eq!(event.row.body_digest.as_ref().map(String::len), Some(64));
    assert_eq!(event.row.digest.len(), 40);
    assert_eq!(event.row.record_id.as_ref(), event.prepared.as_ref().unwrap().record_ids.first());
    // Only what is HTML, only on success, and not where the page asks not to.
    assert!(page("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", body).links.is_empty());
    assert!(page("HTTP/1.1 404 No\r\nContent-Type: text/html\r\n\r\n", body).links.is_empty());
    assert!(page(&format!("{HTML}X-Robots-Tag: nofollow\r\n\r\n"), body).links.is_empty());
    assert!(page(&format!("{HTML}\r\n"), format!("<meta name=robots content=nofollow>{body}")).links.is_empty());
    assert_eq!(page("HTTP/1.1 200 OK\r\n\r\n", format!("  {body}")).links.len(), 3, "by its looks");
    for kind in ["text/xml", "application/xml; charset=utf-8", "application/vnd.wap.xhtml+xml"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        let xhtml = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><a href='x'/></html>";
        assert_eq!(page(&head, xhtml).links.len(), 1, "{kind}");
    }
    let feed = page("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n", "<feed><link href='x'/><a href='x'/></feed>");
    assert!(feed.links.is_empty());
}

#[test]
fn coded_bodies_are_looked_into_and_bombs_are_not() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"<a href=x>").unwrap();
    let coded = page(&format!("{HTML}Content-Encoding: gzip\r\n\r\n"), gzip.finish().unwrap());
    let plain = page(&format!("{HTML}\r\n"), "<a href=x>");
    assert_eq!((links(&coded), &coded.row.body_digest), (links(&plain), &plain.row.body_digest));
    assert_ne!(coded.row.digest, plain.row.digest);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(b"<a href=x>").unwrap();
    bomb.write_all(&vec![b' '; 4 << 20]).unwrap();
    let bomb = page(&format!("{HTML}Content-Encoding: gzip\r\n\r\n"), bomb.finish().unwrap());
    assert_eq!((links(&bomb).len(), &bomb.row.body_digest), (1, &None), "links up to the limit, no digest of a part");
    let odd = page(&format!("{HTML}Content-Encoding: nonsense\r\n\r\n"), "<a href=x>");
    assert_eq!(
        (links(&odd), &odd.row.body_digest),
        (links(&plain), &plain.row.body_digest),
        "as it is, as in browsers"
    );
}

#[test]
fn redirects_and_retry_after() {
    let event = page("HTTP/1.1 302 Found\r\nLocation: ../other#f\r\n\r\n", "");
    assert_eq!(event.redirect.as_deref(), Some("http://www.a.example/other"));
    assert_eq!(event.row.redirect_to.as_deref(), Some("http://www.a.example/other"));
    // Nobody goes there, and why is counted.
    for (to, class) in [
        ("mailto:x@y", ErrorClass::BadScheme),
        ("file:///etc/passwd", ErrorClass::BadScheme),
        ("ftp://a.example/", ErrorClass::BadScheme),
        ("http://[", ErrorClass::RedirectBad),
        ("", ErrorClass::RedirectBad),
        (URL, ErrorClass::RedirectBad),
    ] {
        let event = page(&format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n\r\n"), "");
        assert_eq!((event.redirect, event.bad_redirect), (None, Some(class)), "{to}");
    }
    assert_eq!(page("HTTP/1.1 200 OK\r\nLocation: x\r\n\r\n", "").redirect, None);
    let after = |value: &str| match page(&format!("HTTP/1.1 429 x\r\nRetry-After: {value}\r\n\r\n"), "").answer {
        Answer::Response { status: 429, retry_after_ms, .. } => retry_after_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(after(" 120 "), Some(120_000));
    assert_eq!(after("Sun, 09 Sep 2001 01:47:40 GMT"), Some(60_000));
    assert_eq!(after("Sun, 09 Sep 2000 01:47:40 GMT"), Some(0));
    assert_eq!(after("soon"), None);
}

#[test]
fn links_of_odd_types_and_of_headers() {
    let typed = |value: &str, body: &str| {
        links(&page(&format!("HTTP/1.1 200 OK\r\nContent-Type: {value}\r\n\r\n"), body)).join(" ")
    };
    let x = "http://www.a.example/dir/x";
    for value in ["", "html", "*/*", "unknown/unknown", "text/html, text/html"] {
        assert_eq!(typed(value, "\u{feff} <a href=x>"), x, "{value:?}");
    }
    assert_eq!(typed("text/html charset=utf-8", "<a href=x>"), x, "without its semicolon");
    for value in ["text/plain", "image/png", "application/json", "text/plain text/html"] {
        assert_eq!(typed(value, "<a href=x>"), "", "{value:?}");
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nLink: <x>; rel=canonical, <y>; rel=next\r\n";
    let event = page(&format!("{head}Refresh: 5; url=z\r\n\r\n"), "%PDF");
    assert_eq!(links(&event), ["x", "y", "z"].map(|n| format!("http://www.a.example/dir/{n}")));
    let event = page(&format!("{head}X-Robots-Tag: nofollow\r\n\r\n"), "%PDF");
    assert!(event.links.is_empty());
}

#[test]
fn links_that_are_left_out_are_counted() {
    let many: String = (0..1003).map(|n| format!("<a href={n}>")).collect();
    let event = page(&format!("{HTML}\r\n"), many);
    assert_eq!((event.links.len(), event.left_out.over_limit), (1000, 3));
    let event = page(&format!("{HTML}\r\n"), "<a href=x><a href=x><a href=http://other.example/>");
    assert_eq!((event.links.len(), event.left_out.repeated, event.left_out.outside), (1, 1, 1));
}

/// Half of a robots.txt may lack the very rule that matters.
#[test]
fn a_robots_txt_that_broke_off_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let worker = worker(dir.path());
    let url = "http://www.a.example/robots.txt";
    let found = |head: &str, body: &[u8], cut| {
        let mut capture = fetched(url, head, body);
        if let Outcome::Response { truncated, .. } = &mut capture.outcome {
            *truncated = cut;
        }
        let event = worker.event(lease(LeaseId::Robots(1), url), capture).unwrap();
        matches!(event.robots.unwrap().answer, RobotsAnswer::Rules(_))
    };
    let (plain, text) = ("HTTP/1.1 200 OK\r\n\r\n", b"User-agent: *\nDisallow: /a");
    assert!(found(plain, text, None) && found(plain, text, Some(Truncated::Length)));
    assert!(!found(plain, text, Some(Truncated::Disconnect)) && !found(plain, text, Some(Truncated::Time)));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    let (coded, whole) = ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.finish().unwrap());
    assert!(found(coded, &whole, None) && !found(coded, &whole[..whole.len() - 12], None));
}

#[test]
fn robots_answers() {
    let dir = tempfile::tempdir().unwrap();
    let worker = worker(dir.path());
    let found = |head: &str, body: &str| {
        let url = "http://www.a.example/robots.txt";
        let event = worker.event(lease(LeaseId::Robots(1), url), fetched(url, head, body)).unwrap();
        assert!(event.links.is_empty() && event.redirect.is_none() && event.row.robots.is_none());
        event.robots.unwrap()
    };
    let rules = |finding: Finding| match finding.answer {
        RobotsAnswer::Rules(rules) => rules,
        RobotsAnswer::Redirect(_) | RobotsAnswer::Unavailable(..) => panic!("no rules"),
    };
    let text = "User-agent: *\nDisallow: /no\nCrawl-delay: 2";
    let good = rules(found("HTTP/1.1 200 OK\r\n\r\n", text));
    assert!(!good.allows("/no/x") && good.allows("/yes") && good.crawl_delay_ms() == Some(2000));
    for head in ["HTTP/1.1 404 x\r\n\r\n", "HTTP/1.1 403 x\r\n\r\n", "HTTP/1.1 301 x\r\n\r\n"] {
        let finding = found(head, text);
        assert_eq!(finding.text.as_deref(), Some(""), "{head}");
        assert!(rules(finding).allows("/no/x"), "{head}");
    }
    for head in ["HTTP/1.1 500 x\r\n\r\n", "HTTP/1.1 503 x\r\n\r\n", "HTTP/1.1 429 x\r\n\r\n"] {
        let finding = found(head, text);
        assert!(finding.text.is_none() && matches!(finding.answer, RobotsAnswer::Unavailable(..)), "{head}");
    }
    let moved = found("HTTP/1.1 301 x\r\nLocation: //b.example/r\r\n\r\n", "");
    assert!(matches!(moved.answer, RobotsAnswer::Redirect(to) if to.as_str() == "http://b.example/r"));
}

/// Editors of Windows write UTF-16, and old sites have paths in the encoding of their server.
#[test]
fn a_robots_txt_counts_in_any_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let worker = worker(dir.path());
    let rules_in = |body: Vec<u8>| {
        let url = "http://www.a.example/robots.txt";
        let found = fetched(url, "HTTP/1.1 200 OK\r\n\r\n", body);
        let Finding { answer, text, .. } = worker.event(lease(LeaseId::Robots(1), url), found).unwrap().robots.unwrap();
        let RobotsAnswer::Rules(rules) = answer else { panic!("no rules") };
        // A later start has the text alone.
        [rules, rules_of(&text.unwrap(), "trawl")]
    };
    let utf_16 = "\u{feff}User-agent: *\r\nDisallow: /no\r\n".encode_utf16().flat_map(u16::to_le_bytes);
    let latin_1 = b"User-agent: *\nDisallow: /caf\xe9/\n".to_vec();
    for (body, path) in [(utf_16.collect(), "/no/x"), (latin_1, "/caf%E9/x")] {
        for rules in rules_in(body) {
            assert!(!rules.allows(path) && rules.allows("/yes"), "{path}");
        }
    }
    // What counts of a long one ends with a whole line: half of this one's last rule forbids everything.
    let (start, end) = ("User-agent: *\nDisallow: /no\n#", "\nDisallow: /");
    let comment = "-".repeat(MAX_BYTES - start.len() - end.len());
    for rules in rules_in(format!("{start}{comment}{end}private\n").into_bytes()) {
        assert!(!rules.allows("/no/x") && rules.allows("/yes"));
    }
}

/// A sitemap index may name its sitemaps as it likes: what they are is told by their root, in any encoding, and however small the
/// pieces are in which a coding gives it out.
#[test]
fn a_sitemap_is_told_by_its_root_in_any_coding() {
    let dir = tempfile::tempdir().unwrap();
    let worker = Worker { sitemaps: true, ..worker(dir.path()) };
    let url = "http://www.a.example/data.xml";
    let text = "<?xml version='1.0'?><urlset><url><loc>http://www.a.example/1</loc></url></urlset>";
    let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let pieces: Vec<u8> = text.as_bytes().chunks(9).flat_map(gzip).collect();
    let cases = [
        ("", text.as_bytes().to_vec()),
        ("", utf16.clone()),
        ("", gzip(&utf16)),
        ("Content-Encoding: gzip\r\n", pieces),
    ];
    for (coding, body) in cases {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n{coding}\r\n");
        let id = Identity::Key.of(&WebUrl::parse(url).unwrap());
        let event = worker.event(lease(LeaseId::Page(id), url), fetched(url, &head, body)).unwrap();
        assert_eq!((event.links.len(), event.unread), (1, None), "{head}");
    }
}
