//! The CDX server.

use crate::fixture::{DenyTarget, Fixture, deny, get, response};
use trawl_serve::Config;
use trawl_store::Acl;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let html = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\nbody";
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\ngone";
    let warc = [
        response(1, "http://www.a.com/Page?b=2&a=1", "2024-01-01T00:00:00Z", html),
        response(2, "https://a.com/page/?a=1&b=2", "2025-01-01T00:00:00Z", html),
        response(3, "http://a.com/other", "2024-06-01T00:00:00Z", gone),
        response(4, "http://sub.a.com/", "2024-06-02T00:00:00Z", html),
        response(5, "http://a.com:8080/page", "2024-06-03T00:00:00Z", html),
    ];
    fixture.add_file("one", "one.warc", &warc[..3].concat(), Acl::Public);
    fixture.add_file("two", "two.warc", &warc[2..].concat(), Acl::Public);
    fixture
}

/// A dataset of URLs with a time.
fn add_seen(fixture: &Fixture, name: &str, urls: &str) {
    let row = |url: &str| format!("{}\n", serde_json::json!({ "url": url, "ts": "2024-01-01T00:00:00Z" }));
    let rows: String = urls.lines().map(row).collect();
    fixture.add_file(name, &format!("{name}.jsonl"), rows.as_bytes(), Acl::Public);
}

fn lines(server: &trawl_serve::Running, query: &str) -> Vec<String> {
    let reply = get(server.address(), &format!("/cdx?{query}"));
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    reply.text().lines().map(str::to_owned).collect()
}

#[test]
fn one_key_stands_for_several_spellings() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    let found = lines(&server, "url=http://A.com/PAGE?a=1%26b=2&fl=urlkey,timestamp,original");
    assert_eq!(
        found,
        [
            "com,a)/page?a=1&b=2 20240101000000 http://www.a.com/Page?b=2&a=1",
            "com,a)/page?a=1&b=2 20250101000000 https://a.com/page/?a=1&b=2"
        ]
    );
    let all = lines(&server, "url=a.com/other");
    assert_eq!(all.len(), 2, "one row of each dataset");
    let fields: Vec<_> = all[0].split(' ').collect();
    assert_eq!(fields.len(), 7);
    assert_eq!(&fields[..5], ["com,a)/other", "20240601000000", "http://a.com/other", "text/plain", "404"]);
}

#[test]
fn match_types_and_ranges() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    let keys = |query: &str| lines(&server, &format!("{query}&fl=urlkey&collapse=urlkey"));
    let host = ["com,a)/other", "com,a)/page?a=1&b=2", "com,a:8080)/page"];
    assert_eq!(keys("url=a.com&matchType=host"), host);
    assert_eq!(
        keys("url=a.com&matchType=domain"),
        [&["com,a)/other", "com,a)/page?a=1&b=2", "com,a,sub)/", "com,a:8080)/page"][..]].concat()
    );
    assert_eq!(keys("url=*.a.com").len(), 4);
    for port in ["url=a.com:8080/page", "url=a.com:8080/*"] {
        assert_eq!(keys(port), ["com,a:8080)/page"], "{port}");
    }
    assert_eq!(keys("url=a.com/p*"), ["com,a)/page?a=1&b=2"]);
    assert_eq!(keys("url=a.com/&matchType=prefix"), &host[..2]);
    assert_eq!(lines(&server, "url=*.a.com&from=2025&fl=timestamp"), ["20250101000000"]);
    assert_eq!(lines(&server, "url=*.a.com&to=2024&fl=timestamp&limit=1"), ["20240601000000"]);
    assert_eq!(lines(&server, "url=nowhere.example").len(), 0);
    assert_eq!(lines(&server, "url=*.a.com&showNumPages=true"), ["1"]);
    assert_eq!(lines(&server, "url=*.a.com&page=0").len(), 6);
    assert_eq!(get(server.address(), "/cdx?url=*.a.com&page=1&output=json").text(), "");
}

#[test]
fn filters_order_and_resumption() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    assert_eq!(lines(&server, "url=*.a.com&filter=statuscode:404").len(), 2);
    assert_eq!(lines(&server, "url=*.a.com&filter=!statuscode:404").len(), 4);
    assert_eq!(lines(&server, "url=*.a.com&filter=statuscode:40").len(), 0, "all of the field has to fit");
    assert_eq!(lines(&server, "url=*.a.com&filter=~original:sub&filter==mimetype:text/html").len(), 1);
    let page = "url=a.com/page%3Fa=1%26b=2&fl=timestamp";
    assert_eq!(lines(&server, &format!("{page}&sort=reverse")), ["20250101000000", "20240101000000"]);
    for sort in ["&sort=closest", ""] {
        let found = lines(&server, &format!("{page}{sort}&closest=20241231"));
        assert_eq!(found, ["20250101000000", "20240101000000"], "{sort}");
    }
    assert_eq!(lines(&server, &format!("{page}&closest=20241231&limit=1")), ["20250101000000"]);
    assert_eq!(lines(&server, &format!("{page}&limit=-1&fastLatest=true")), ["20250101000000"]);
    assert_eq!(lines(&server, &format!("{page}&collapse=timestamp:1")), ["20240101000000"]);
    let (mut seen, mut key) = (Vec::new(), String::new());
    loop {
        let mut found = lines(&server, &format!("url=*.a.com&fl=original&limit=2&showResumeKey=true{key}"));
        let next = (found.len() == 4).then(|| found.remove(3));
        seen.extend(found.into_iter().filter(|line| !line.is_empty()));
        match next {
            Some(next) => key = format!("&resumeKey={next}"),
            None => break,
        }
    }
    assert_eq!(seen, lines(&server, "url=*.a.com&fl=original"));
}

/// Walks through an answer, one capture at a time; `meanwhile` hears how many were told.
fn walk(server: &trawl_serve::Running, query: &str, meanwhile: &mut dyn FnMut(usize)) -> Vec<String> {
    let (mut seen, mut key) = (Vec::new(), String::new());
    loop {
        let found = lines(server, &format!("{query}&limit=1&showResumeKey=true{key}"));
        let mut parts = found.split(String::is_empty);
        seen.extend(parts.next().into_iter().flatten().cloned());
        meanwhile(seen.len());
        match parts.next().and_then(<[String]>::first) {
            Some(next) => key = format!("&resumeKey={next}"),
            None => return seen,
        }
    }
}

#[test]
fn a_resumed_answer_collapses_as_a_whole_one_does() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    for query in ["collapse=urlkey", "collapse=timestamp:4", "collapse=statuscode&collapse=urlkey", "sort=reverse"] {
        let query = format!("url=*.a.com&fl=urlkey,timestamp,original&{query}");
        assert_eq!(walk(&server, &query, &mut |_| ()), lines(&server, &query), "{query}");
    }
    let key = lines(&server, "url=*.a.com&collapse=urlkey&limit=1&showResumeKey=true").pop().unwrap();
    let other = get(server.address(), &format!("/cdx?url=*.a.com&resumeKey={key}"));
    assert_eq!((other.status, other.json()["error"].as_str()), (400, Some("bad_request")));
    assert_eq!(get(server.address(), "/cdx?url=*.a.com&resumeKey=0-1").status, 400);
    let none = get(server.address(), "/cdx?url=*.a.com&limit=0&showResumeKey=true&output=json&fl=urlkey").json();
    assert_eq!(none[0], serde_json::json!(["urlkey"]));
}

/// Neither rows that came since nor rows that went move the place where an answer goes on.
#[test]
fn an_answer_is_resumed_in_the_version_it_began_with() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    let query = "url=*.a.com&fl=timestamp,original,dataset";
    let whole = lines(&server, query);
    let seen = walk(&server, query, &mut |told| {
        if told == 2 {
            let new = response(9, "http://a.com/a", "2024-01-01T00:00:00Z", b"HTTP/1.1 200 OK\r\n\r\nnew");
            fixture.add_file("three", "three.warc", &new, Acl::Public);
        }
        if told == 3 {
            // Those that were told first: two of the seven that are there by now.
            deny(&fixture.lake, DenyTarget::Url("http://a.com/other".into()));
        }
    });
    assert_eq!(seen, whole);
    assert_eq!(lines(&server, query).len(), whole.len() - 1);
}

/// Stretches of 50,000 rows are counted over the rows that are shown: with fewer of them, the place of a key is that of other rows.
#[test]
fn an_answer_is_not_resumed_when_fewer_rows_are_shown() {
    let small = |n: u32| (0..n).map(|n| format!("http://a.github.io/{n:05}\n")).collect::<String>();
    for (rows, denied) in [
        (6, DenyTarget::Dataset(1)),
        (6, DenyTarget::Domain("b.github.io".into())),
        // The second stretch ends in the first one once those of dataset 1 are gone.
        (50_005, DenyTarget::Dataset(1)),
    ] {
        let fixture = Fixture::new();
        add_seen(&fixture, "first", &format!("http://a.github.io/x\nhttp://b.github.io/y\n{}", small(3)));
        add_seen(&fixture, "second", &format!("http://a.github.io/z\n{}", small(rows)));
        let server = fixture.serve(Config::default());
        // Below a suffix both domains are looked at.
        let query = "url=*.github.io&fl=original";
        let first = lines(&server, &format!("{query}&limit=2&showResumeKey=true"));
        let key = first.last().unwrap();
        let resumed = format!("/cdx?{query}&resumeKey={key}");
        let whole = lines(&server, query);
        assert_eq!(get(server.address(), &resumed).text().lines().count(), whole.len() - 2);
        deny(&fixture.lake, denied);
        let reply = get(server.address(), &resumed);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (410, Some("gone")), "{rows}");
        assert!(lines(&server, query).len() < whole.len());
    }
}

/// Captures with the same key, time and dataset are told apart by counting them, so none of them may go meanwhile.
#[test]
fn captures_that_are_counted_are_not_skipped() {
    let fixture = Fixture::new();
    let page = |id: u32, url: &str| response(id, url, "2024-01-01T00:00:00Z", b"HTTP/1.1 200 OK\r\n\r\nbody");
    let file = [page(1, "http://a.com/x"), page(2, "https://a.com/x"), page(3, "http://www.a.com/x")];
    fixture.add_file("w", "w.warc", &file.concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let first = lines(&server, "url=a.com/x&fl=original&limit=1&showResumeKey=true");
    let resumed = format!("/cdx?url=a.com/x&fl=original&resumeKey={}", first.last().unwrap());
    assert_eq!(get(server.address(), &resumed).text().lines().count(), 2);
    deny(&fixture.lake, DenyTarget::Url("http://elsewhere.com/".into()));
    assert_eq!(get(server.address(), &resumed).status, 410);
}

/// Few captures among very many rows are sorted as a whole: stretch by stretch, the last capture would be that of the last dataset.
#[test]
fn the_newest_capture_is_the_last_one_however_large_its_host_is() {
    let fixture = Fixture::new();
    for year in [2024, 2022, 2020] {
        let row = |n| format!("{{\"url\":\"http://a.com/{n}\",\"ts\":\"{year}-01-01T00:00:00Z\"}}\n");
        let rows: String = (0..17_000).map(row).collect();
        fixture.add_file(&format!("of-{year}"), &format!("{year}.jsonl"), rows.as_bytes(), Acl::Public);
    }
    let server = fixture.serve(Config::default());
    let times = |more: &str| lines(&server, &format!("url=a.com/7&fl=timestamp{more}"));
    let [old, middle, new] = ["20200101000000", "20220101000000", "20240101000000"];
    assert_eq!(times(""), [old, middle, new]);
    assert_eq!(times("&sort=reverse"), [new, middle, old]);
    assert_eq!(times("&collapse=timestamp:3"), [old]);
    assert_eq!((times("&limit=1"), times("&limit=-1")), (vec![old.to_owned()], vec![new.to_owned()]));
    assert_eq!(
        (times("&page=0").len(), times("&page=1").len(), times("&showNumPages=true")),
        (3, 0, vec!["1".to_owned()])
    );
    assert_eq!(walk(&server, "url=a.com/7&fl=timestamp", &mut |_| ()), [old, middle, new]);
    let found = lines(&server, "url=a.com/77*&fl=urlkey,timestamp");
    assert!(found.len() == 3 * 111 && found.is_sorted(), "{} rows", found.len());
    assert_eq!(lines(&server, "url=a.com/*&showNumPages=true"), ["2"], "these are too many");
}

/// A key has no `www.`, and below a suffix each name is a domain of its own.
#[test]
fn one_key_stands_for_rows_of_several_domains() {
    let fixture = Fixture::new();
    let urls = "http://gov.uk/x\nhttps://www.gov.uk/x\nhttp://www2.gov.uk/x\nhttp://tax.gov.uk/x\nhttp://www.tax.gov.uk/y\n\
                http://octo.github.io/\nhttp://a.b.github.io/\nhttp://notgithub.io/\n\
                http://st-johns.essex.sch.uk/\nhttp://www.hilltop.essex.sch.uk/\nhttp://st-johns.kent.sch.uk/\n";
    add_seen(&fixture, "list", urls);
    let server = fixture.serve(Config::default());
    let found = |query: &str| {
        let mut found = lines(&server, &format!("{query}&fl=original"));
        found.sort();
        found
    };
    let same = ["http://gov.uk/x", "http://www2.gov.uk/x", "https://www.gov.uk/x"];
    for query in ["url=gov.uk/x", "url=www.gov.uk/x", "url=gov.uk/*", "url=www3.gov.uk&matchType=host"] {
        assert_eq!(found(query), same, "{query}");
    }
    assert_eq!(found("url=tax.gov.uk/x"), ["http://tax.gov.uk/x"]);
    assert_eq!(found("url=*.gov.uk").len(), 5);
    assert_eq!(found("url=*.github.io"), ["http://a.b.github.io/", "http://octo.github.io/"]);
    // The list has no rule of this name: `*.sch.uk` stands for it.
    let schools = ["http://st-johns.essex.sch.uk/", "http://www.hilltop.essex.sch.uk/"];
    assert_eq!(found("url=*.essex.sch.uk"), schools);
    deny(&fixture.lake, DenyTarget::Domain("octo.github.io".into()));
    deny(&fixture.lake, DenyTarget::Url("https://www.gov.uk/x".into()));
    assert_eq!(found("url=*.github.io"), ["http://a.b.github.io/"]);
    assert_eq!(found("url=gov.uk/x"), &same[..2]);
}

#[test]
fn json_as_the_wayback_machine_has_it() {
    let fixture = fixture();
    let server = fixture.serve(Config::default());
    let rows = get(server.address(), "/cdx?url=a.com/other&output=json&fl=timestamp,statuscode").json();
    assert_eq!(
        rows,
        serde_json::json!([["timestamp", "statuscode"], ["20240601000000", "404"], ["20240601000000", "404"]])
    );
    assert_eq!(get(server.address(), "/cdx?url=nowhere.example&output=json").json(), serde_json::json!([]));
    let first = get(server.address(), "/cdx?url=a.com/other&output=cdxj&dataset=two").text();
    let mut line = first.lines().next().unwrap().splitn(3, ' ');
    assert_eq!((line.next(), line.next()), (Some("com,a)/other"), Some("20240601000000")));
    let object: serde_json::Value = serde_json::from_str(line.next().unwrap()).unwrap();
    assert_eq!((&object["url"], &object["filename"]), (&"http://a.com/other".into(), &"two.warc".into()));
}

/// A list may have URLs that end a line, or what a program takes for one.
#[test]
fn a_hostile_url_is_one_field_of_one_line() {
    let fixture = Fixture::new();
    let urls = ["http://a.com/x\nb.com)/ 20240101000000 b.com/", "http://a.com/y\u{85}\u{2028}\u{b} z\t!"];
    let row = |url: &&str| format!("{}\n", serde_json::json!({ "url": url, "ts": "2024-01-01T00:00:00Z" }));
    let rows: String = urls.iter().map(row).collect();
    fixture.add_file("list", "list.jsonl", rows.as_bytes(), Acl::Public);
    let server = fixture.serve(Config::default());
    let mut found = lines(&server, "url=a.com/*&fl=original,length");
    found.sort();
    assert_eq!(found, ["http://a.com/xb.com)/%2020240101000000%20b.com/ -", "http://a.com/y%C2%85%E2%80%A8%0B%20z! -"]);
}

/// Clients that parse times fail on one that is not there, and pywb shows a capture of 1900.
#[test]
fn a_url_of_a_list_is_no_capture() {
    let fixture = fixture();
    fixture.add("list", "http://a.com/other\nhttp://a.com/listed\n");
    let server = fixture.serve(Config::default());
    assert_eq!(lines(&server, "url=a.com/other&fl=timestamp,dataset"), ["20240601000000 1", "20240601000000 2"]);
    assert_eq!(lines(&server, "url=a.com/listed").len(), 0);
    assert_eq!(lines(&server, "url=a.com/other&limit=1&fl=timestamp"), ["20240601000000"]);
}
