//! The server over real sockets: every expected page is there, keep-alive holds, and the log tells what happened.

mod common;

use std::io::{Read, Write};

use common::{find_page, get, only, parts, tcp};
use trawl_testweb::{Addresses, Character, Config, Outcome, PageId, Resource, TestWeb};

#[test]
fn one_connection_reads_every_page_and_the_log_has_every_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.log");
    let config = Config { domains: 30, pages: 300, log: Some(log.clone()), ..Config::default() };
    let web = TestWeb::start(config).unwrap();
    assert!(web.addr().ip().is_loopback());
    assert_eq!(web.addrs(), [web.addr()]);
    let mut stream = tcp(web.addr());
    let expected = web.world().expected_pages(u32::MAX);
    for url in &expected {
        let (host, target) = parts(web.world(), web.world().find(url).unwrap());
        let answer = get(&mut stream, &host, &target, "");
        assert_eq!((answer.status, answer.error.clone()), (200, None), "{url}");
        assert!(answer.body.ends_with(b"</html>\n"), "{url}");
    }
    assert_eq!(get(&mut stream, "nobody.example", "/", "").status, 421);
    let host = web.world().hosts()[0].name.clone();
    assert_eq!(get(&mut stream, &host, "/nothing", "X-Tab: a\tb\r\n").status, 404);
    web.stop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let kinds = |k: &str| text.lines().filter(|l| l.starts_with(k)).count();
    assert!(text.starts_with("testweb-log 1\tseed=1\tunix_us="));
    assert_eq!((kinds("T\t"), kinds("C\t"), kinds("R\t"), kinds("X\t")), (1, 1, expected.len() + 2, 1));
    let last: Vec<&str> = text.lines().rfind(|l| l.starts_with("R\t")).unwrap().split('\t').collect();
    assert_eq!(last[6..10], [host.as_str(), "GET", "/nothing", "404"]);
    assert_eq!(last[11..], [common::AGENT, "-", "-", "ok"]);
}

#[test]
fn nonsense_closes_the_connection_and_is_logged() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.log");
    let web = TestWeb::start(Config { log: Some(log.clone()), ..Config::default() }).unwrap();
    let mut stream = tcp(web.addr());
    stream.write_all(b"\x16\x03\x01 what\tis this\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
    drop(web);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("\\x16\\x03\\x01 what\\x09is this\\x0d\\x0a\\x0d\\x0a\t400\t"), "{text}");
}

#[test]
fn codings_framings_and_charsets_hold_the_page() {
    use Character::*;
    let accept = "Accept-Encoding: gzip, br, zstd, deflate\r\n";
    for coding in [Gzip, Brotli, Zstd, Deflate] {
        for framing in [Chunked, UntilClose] {
            let web = TestWeb::start(only(&[coding, framing, Utf16])).unwrap();
            let (_, node) = find_page(web.world(), |page| page.number == 3);
            let (host, target) = parts(web.world(), node);
            let answer = get(&mut tcp(web.addr()), &host, &target, accept);
            assert_eq!((answer.status, &answer.error), (200, &None), "{coding:?} {framing:?}");
            let mut plain = Vec::new();
            let mut coded = answer.body.as_slice();
            match answer.header("content-encoding").unwrap() {
                "gzip" => drop(flate2::read::GzDecoder::new(coded).read_to_end(&mut plain).unwrap()),
                "deflate" => drop(flate2::read::ZlibDecoder::new(coded).read_to_end(&mut plain).unwrap()),
                "br" => brotli::BrotliDecompress(&mut coded, &mut plain).unwrap(),
                "zstd" => plain = zstd::decode_all(coded).unwrap(),
                other => panic!("{other}"),
            }
            let mut html = String::new();
            web.world().render(node, web.time(), &mut html);
            assert_eq!(encoding_rs::UTF_16LE.decode(&plain).0, html);
            let bare = get(&mut tcp(web.addr()), &host, &target, "");
            assert_eq!((bare.header("content-encoding"), &bare.body), (None, &plain));
        }
    }
}

#[test]
fn validators_give_304_until_the_page_changes() {
    use Character::*;
    for validator in [Etag, LastModified] {
        let web = TestWeb::start(only(&[validator, Changing])).unwrap();
        let world = web.world();
        let (page, node) = find_page(world, |page| page.number == 2);
        let (host, target) = parts(world, node);
        let mut stream = tcp(web.addr());
        let first = get(&mut stream, &host, &target, "");
        let (name, value) = match validator {
            Etag => ("If-None-Match", first.header("etag").unwrap()),
            _ => ("If-Modified-Since", first.header("last-modified").unwrap()),
        };
        let condition = format!("{name}: {value}\r\n");
        let second = get(&mut stream, &host, &target, &condition);
        assert_eq!((second.status, second.body.len()), (304, 0));
        web.set_time(web.time() + world.change_period(page).unwrap());
        let third = get(&mut stream, &host, &target, &condition);
        assert_eq!(third.status, 200);
        assert_ne!(third.body, first.body);
    }
}

#[test]
fn redirects_name_a_place_that_exists() {
    use Character::*;
    for fate in [Redirect, RedirectAway, RedirectChain] {
        let web = TestWeb::start(only(&[fate])).unwrap();
        let world = web.world();
        let (_, mut node) = find_page(world, |page| world.fate(page) == Some(fate));
        let mut stream = tcp(web.addr());
        for hop in 0.. {
            assert!(hop < 6, "{fate:?}");
            let (host, target) = parts(world, node);
            let answer = get(&mut stream, &host, &target, "");
            if answer.status == 200 {
                break;
            }
            let base = url::Url::parse(&world.url_of(node)).unwrap();
            let next = world.find(base.join(answer.header("location").unwrap()).unwrap().as_str()).unwrap();
            assert_eq!(world.outcome_of(node), Outcome::Redirect { status: answer.status, to: next });
            node = next;
        }
    }
}

#[test]
fn busy_pages_answer_after_being_asked_again() {
    for (fate, status) in [(Character::Busy, 429), (Character::Unavailable, 503)] {
        let web = TestWeb::start(only(&[fate])).unwrap();
        let world = web.world();
        let (_, node) = find_page(world, |page| world.fate(page) == Some(fate));
        let (host, target) = parts(world, node);
        let Outcome::Later { times, .. } = world.outcome_of(node) else { panic!() };
        let mut stream = tcp(web.addr());
        for _ in 0..times {
            let answer = get(&mut stream, &host, &target, "");
            assert_eq!(answer.status, status);
            assert!(answer.header("retry-after").is_some());
        }
        assert_eq!(get(&mut stream, &host, &target, "").status, 200);
    }
}

#[test]
fn throttling_hosts_count_the_time_between_requests() {
    let ask = |stream: &mut std::net::TcpStream, web: &trawl_testweb::Running| {
        get(stream, &web.world().hosts()[0].name, "/", "")
    };
    let strict = TestWeb::start(Config { throttle_ms: 600_000, ..only(&[Character::Throttle]) }).unwrap();
    let mut stream = tcp(strict.addr());
    assert_eq!(ask(&mut stream, &strict).status, 200);
    let hurried = ask(&mut stream, &strict);
    assert_eq!((hurried.status, hurried.header("retry-after")), (429, Some("1")));

    let mild = TestWeb::start(Config { throttle_ms: 60, ..only(&[Character::Throttle]) }).unwrap();
    let mut stream = tcp(mild.addr());
    // The second is turned away, unless the machine took its time.
    ask(&mut stream, &mild);
    ask(&mut stream, &mild);
    std::thread::sleep(std::time::Duration::from_millis(80));
    assert_eq!(ask(&mut stream, &mild).status, 200);
}

#[test]
fn robots_are_sent_in_all_their_forms() {
    use Character::*;
    for kind in [RobotsBom, RobotsHuge, RobotsHtml, RobotsOdd, RobotsForbidden, RobotsMissing, RobotsError, RobotsLoop]
    {
        let web = TestWeb::start(only(&[kind])).unwrap();
        // The seeds are sound; trouble begins with the host after them.
        let host = web.world().hosts().iter().rfind(|h| h.robots == Some(kind)).unwrap().name.clone();
        let answer = get(&mut tcp(web.addr()), &host, "/robots.txt", "");
        let status = match kind {
            RobotsForbidden => 403,
            RobotsMissing => 404,
            RobotsError => 503,
            RobotsLoop => 301,
            _ => 200,
        };
        assert_eq!(answer.status, status, "{kind:?}");
        match kind {
            RobotsBom => assert!(answer.body.starts_with(b"\xef\xbb\xbfUser-agent: *\r\n")),
            RobotsHuge => assert!(answer.body.len() > 500 << 10 && answer.body.starts_with(b"User-agent: *\n")),
            RobotsHtml => assert!(answer.body.starts_with(b"<!DOCTYPE html>")),
            RobotsOdd => assert!(answer.text().to_lowercase().contains("user-agent")),
            _ => {}
        }
    }
}

#[test]
fn nofollow_is_said_in_the_page_or_in_the_header() {
    let web = TestWeb::start(Config::profile(trawl_testweb::Profile::Hostile)).unwrap();
    let mut ways = [0, 0, 0];
    for page in web.world().host_ids().flat_map(|id| web.world().pages(id)) {
        let node = web.world().node(page.host, Resource::Page(page.number));
        let plain = !node.secure && web.world().host(page.host).unwrap().conduct.is_none();
        if !plain || web.world().outcome_of(node) != Outcome::Content(node) {
            continue;
        }
        let (host, target) = parts(web.world(), node);
        let answer = get(&mut tcp(web.addr()), &host, &target, "");
        let (header, meta) = (answer.header("x-robots-tag").is_some(), answer.text().contains("content=\"nofollow\""));
        if !answer.body.starts_with(b"\xff\xfe") {
            assert_eq!(header || meta, web.world().is_nofollow(page), "{target}");
        }
        ways[usize::from(header) + 2 * usize::from(meta)] += 1;
    }
    assert!(ways.iter().all(|&n| n > 0), "{ways:?}");
}

#[test]
fn missing_pages_are_404_or_one_and_the_same_page() {
    for (characters, status) in [(vec![], 404), (vec![Character::SoftNotFound], 200)] {
        let web = TestWeb::start(only(&characters)).unwrap();
        let host = web.world().hosts()[0].name.clone();
        let mut stream = tcp(web.addr());
        let (one, two) = (get(&mut stream, &host, "/no/such-9", ""), get(&mut stream, &host, "/nor-this", ""));
        assert_eq!((one.status, two.status), (status, status));
        assert_eq!(one.body, two.body);
    }
}

#[test]
fn hosts_can_have_addresses_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let config = Config { addresses: Addresses::Many, log: Some(log.clone()), ..only(&[]) };
    let web = TestWeb::start(config).unwrap();
    assert_eq!(web.addrs().len(), 20);
    for (id, host) in web.world().host_ids().zip(web.world().hosts()) {
        let addr = (web.world().address(id), web.addr().port()).into();
        assert!(web.addrs().contains(&addr));
        assert_eq!(get(&mut tcp(addr), &host.name, "/", "").status, 200);
    }
    let last = web.addrs()[19];
    web.stop().unwrap();
    assert!(std::fs::read_to_string(&log).unwrap().contains(&format!("\t{last}\t127.")));
}

#[test]
fn sitemaps_and_feeds_are_served() {
    for (kind, target) in [(Character::SitemapIndex, "/sitemap.xml"), (Character::Feed, "/feed.xml")] {
        let web = TestWeb::start(only(&[kind])).unwrap();
        let (page, _) = find_page(web.world(), |page| page.number == 40);
        let host = web.world().host(page.host).unwrap().name.clone();
        let mut stream = tcp(web.addr());
        let answer = get(&mut stream, &host, target, "");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/xml")));
        if kind == Character::SitemapIndex {
            assert!(answer.text().contains("/sitemaps/index.xml"));
            let node = web.world().node(page.host, Resource::Sitemap(2));
            let part = get(&mut stream, &host, &parts(web.world(), node).1, "");
            assert!(part.text().contains(&web.world().url(PageId { number: 1, ..page }).replace('&', "&amp;")));
        }
    }
}
