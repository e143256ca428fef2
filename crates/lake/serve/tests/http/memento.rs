//! Mementos: what a server sent, and nothing else that a lake has of a URL.

use crate::fixture::{Fixture, get, record, request, response};
use trawl_serve::Config;
use trawl_store::Acl;

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npage";

/// A record that is not an exchange.
fn other(kind: &str, id: u32, url: &str, media_type: &str, block: &[u8]) -> Vec<u8> {
    let more = format!("WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {media_type}\r\n");
    record(kind, id, &more, block)
}

fn count(text: &str) -> usize {
    text.matches("memento\"; datetime=").count()
}

/// Texts (WET) and facts (WAT) have the URL and the time of the page that they were made of.
#[test]
fn what_was_made_of_a_page_is_no_memento_of_it() {
    let url = "http://a.com/";
    let facts = serde_json::json!({ "Envelope": {
        "WARC-Header-Metadata": { "WARC-Type": "response", "WARC-Target-URI": url, "WARC-Date": "2026-06-24T01:02:03Z" },
        "Payload-Metadata": { "HTTP-Response-Metadata": { "Response-Message": { "Status": "200" } } },
    } });
    let fixture = Fixture::new();
    // In front of the page, as its datasets and as records of one file.
    let text = other("conversion", 1, url, "text/plain", b"text");
    let facts = other("metadata", 2, url, "application/json", facts.to_string().as_bytes());
    fixture.add_file("wet", "wet.warc", &text, Acl::Public);
    fixture.add_file("wat", "wat.warc", &facts, Acl::Public);
    let page = response(3, url, "2026-06-24T01:02:03Z", PAGE);
    fixture.add_file("all", "all.warc", &[text, facts, page].concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let at = server.address();
    assert_eq!(ask_rows(at), 5);
    assert_eq!(get(at, "/web/20260624010203id_/http://a.com/").text(), "page");
    assert_eq!(count(&get(at, "/timemap/link/http://a.com/").text()), 1);
    assert_eq!(get(at, "/cdx?url=a.com&fl=mimetype,statuscode").text(), "text/html 200\n");
    assert_eq!(get(at, "/v1/capture/all?url=http://a.com/&part=body").text(), "page");
    assert_eq!(get(at, "/v1/capture/wet?url=http://a.com/&part=body").text(), "text", "who asks for it gets it");
    let text = other("conversion", 1, "http://b.com/", "text/plain", b"text");
    fixture.add_file("only", "only.warc", &text, Acl::Public);
    for path in ["/web/2026id_/http://b.com/", "/timegate/http://b.com/"] {
        assert_eq!(get(at, path).status, 404, "{path}");
    }
}

/// The rows of `http://a.com/`: were one kind of record no longer ingested, a test of it would say nothing.
fn ask_rows(at: std::net::SocketAddr) -> usize {
    get(at, "/v1/url?url=http://a.com/").json()["items"].as_array().unwrap().len()
}

/// `warcit` makes archives of directories: resources, without a status.
#[test]
fn a_resource_is_a_memento() {
    let fixture = Fixture::new();
    let file = other("resource", 1, "http://a.com/", "text/html", b"page");
    fixture.add_file("w", "w.warc", &file, Acl::Public);
    let server = fixture.serve(Config::default());
    let gate = get(server.address(), "/timegate/http://a.com/");
    assert_eq!((gate.status, gate.header("location")), (302, Some("/web/20260624010203id_/http://a.com/")));
    assert_eq!(count(&get(server.address(), "/timemap/link/http://a.com/").text()), 1);
    assert_eq!(get(server.address(), gate.header("location").unwrap()).text(), "page");
}

/// A lake may have an index of archives that somebody else has, beside captures of its own.
#[test]
fn an_index_of_archives_elsewhere_hides_no_capture() {
    let fixture = Fixture::new();
    let line = "com,a)/ 20260701000000 {\"url\":\"http://a.com/\",\"mime\":\"text/html\",\"status\":\"200\",\
                \"length\":\"9\",\"offset\":\"0\",\"filename\":\"far/away.warc.gz\"}\n";
    let index = fixture.path("index.cdxj");
    std::fs::write(&index, line).unwrap();
    fixture.take(&fixture.lake, "index", &index, Acl::Public, Vec::new());
    let server = fixture.serve(Config::default());
    let at = server.address();
    let gate = || get(at, "/timegate/http://a.com/").header("location").map(str::to_owned);
    assert_eq!(gate().as_deref(), Some("/web/20260701000000id_/http://a.com/"), "there is nothing else");
    assert_eq!(get(at, "/web/2027id_/http://a.com/").status, 502);
    fixture.add_file("own", "own.warc", &response(1, "http://a.com/", "2026-06-24T01:02:03Z", PAGE), Acl::Public);
    assert_eq!(gate().as_deref(), Some("/web/20260624010203id_/http://a.com/"));
    assert_eq!(count(&get(at, "/timemap/link/http://a.com/").text()), 1);
    assert_eq!(get(at, "/web/2027id_/http://a.com/").text(), "page");
    assert_eq!(get(at, "/cdx?url=a.com").text().lines().count(), 2);
}

/// Mementos are named by whole seconds: the one that has the name of a second is the nearest to it.
#[test]
fn the_nearest_memento_is_that_of_the_second() {
    let fixture = Fixture::new();
    let file = ["2026-06-24T01:02:03.950Z", "2026-06-24T01:02:04.900Z"];
    let file = file.map(|date| response(1, "http://a.com/", date, PAGE)).concat();
    fixture.add_file("w", "w.warc", &file, Acl::Public);
    let server = fixture.serve(Config::default());
    for second in [3, 4] {
        let asked = format!("Accept-Datetime: Wed, 24 Jun 2026 01:02:0{second} GMT\r\n");
        let gate = request(server.address(), "GET", "/timegate/http://a.com/", &asked);
        let location = format!("/web/2026062401020{second}id_/http://a.com/");
        assert_eq!(gate.header("location"), Some(location.as_str()));
        let memento = get(server.address(), &location);
        let date = format!("Wed, 24 Jun 2026 01:02:0{second} GMT");
        assert_eq!(memento.header("memento-datetime"), Some(date.as_str()));
    }
}

/// Of a site that moved to https, often only the redirect of the http page was captured.
#[test]
fn a_redirect_to_a_url_without_captures_does_not_lead_in_circles() {
    let date = "2026-06-24T01:02:03Z";
    let moved = |id: u32, url: &str, to: &str| {
        response(id, url, date, format!("HTTP/1.1 301 Moved\r\nLocation: {to}\r\n\r\n").as_bytes())
    };
    let file = [
        moved(1, "http://a.com/", "https://a.com/"),
        moved(2, "http://b.com/", "https://www.b.com/"),
        moved(3, "http://c.com/", "https://c.com/login"),
        moved(4, "http://d.com/", "https://d.com/"),
        response(5, "http://www.d.com/", date, PAGE),
    ];
    let fixture = Fixture::new();
    fixture.add_file("w", "w.warc", &file.concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let ask = |url: &str| {
        let reply = get(server.address(), &format!("/web/2026id_/{url}"));
        (reply.status, reply.header("location").map(str::to_owned))
    };
    let to = |url: &str| Some(format!("/web/20260624010203id_/{url}"));
    assert_eq!(ask("http://a.com/"), (301, to("https://a.com/")));
    assert_eq!(ask("https://a.com/"), (404, None));
    assert_eq!(ask("https://b.com/"), (404, None));
    assert_eq!(ask("https://www.b.com/"), (404, None));
    // A redirect to another page is worth following, and so is another capture of the page itself.
    assert_eq!(ask("https://c.com/"), (302, to("http://c.com/")));
    assert_eq!(ask("https://d.com/"), (302, to("http://www.d.com/")));
}

/// Pages link with backslashes, and archives have such URLs as they were found. Clients send them as they are or escaped.
#[test]
fn a_url_with_backslashes_is_found() {
    let fixture = Fixture::new();
    let file = [r"http://a.com/b\c?d=\e", r"http://a.com\f"].map(|url| response(1, url, "2026-06-24T01:02:03Z", PAGE));
    fixture.add_file("w", "w.warc", &file.concat(), Acl::Public);
    let server = fixture.serve(Config::default());
    let at = server.address();
    for url in [r"http://a.com/b\c?d=\e", "http://a.com/b%5Cc?d=%5Ce", "http://a.com/b%5cc?d=%5ce"] {
        let gate = get(at, &format!("/timegate/{url}"));
        assert_eq!(gate.header("location"), Some("/web/20260624010203id_/http://a.com/b/c?d=%5Ce"), "{url}");
        assert_eq!(get(at, gate.header("location").unwrap()).text(), "page", "{url}");
        assert_eq!(count(&get(at, &format!("/timemap/link/{url}")).text()), 1, "{url}");
        let mut reply = get(at, &format!("/web/2026id_/{url}"));
        if reply.status == 302 {
            reply = get(at, reply.header("location").unwrap());
        }
        assert_eq!((reply.status, reply.text().as_str()), (200, "page"), "{url}");
    }
    assert_eq!(get(at, "/web/2026id_/http://a.com/f").text(), "page");
}
