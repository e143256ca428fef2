//! The CDX server.

use crate::fixture::{Fixture, get, response};
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
    assert_eq!(lines(&server, &format!("{page}&sort=closest&closest=20241231")), ["20250101000000", "20240101000000"]);
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
