//! The lake form by example, and what is derived from it.

mod common;

use common::{data, show, table};
use trawl_url::{LakeUrl, SuffixList, surt};

const ROWS: usize = 82;

#[test]
fn every_row_answers_as_listed() {
    let rows = table(&data("lake_vectors.md"), "| Raw |");
    assert_eq!(rows.len(), ROWS);
    let psl = SuffixList::builtin();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for row in &rows {
        let name = show(&row[0]);
        match LakeUrl::parse_bytes(&row[0], psl) {
            Ok(url) => {
                assert_eq!(url.as_str(), text(&row[1]), "{name}");
                assert_eq!(url.domain(), text(&row[2]), "{name}");
                assert_eq!(url.surt(), text(&row[3]), "{name}");
                let parts = LakeUrl::from_parts(url.scheme(), url.host(), url.port(), url.path_query());
                assert_eq!(parts, url.as_str(), "{name}");
                assert_eq!(LakeUrl::parse(url.as_str(), psl).as_ref(), Ok(&url), "{name}: not idempotent");
            }
            Err(reject) => assert_eq!(reject.code(), text(&row[1]), "{name}: {reject}"),
        }
    }
}

#[test]
fn a_value_can_be_used_again_after_success_and_failure() {
    let psl = SuffixList::builtin();
    let mut url = LakeUrl::default();
    url.assign("http://example.com:81/a", psl).unwrap();
    assert_eq!((url.as_str(), url.port()), ("http://example.com:81/a", Some(81)));
    assert!(url.assign("mailto:x", psl).is_err());
    assert_eq!((url.as_str(), url.host(), url.domain(), url.path_query(), url.port()), ("", "", "", "", None));
    url.assign("https://b.example.org", psl).unwrap();
    assert_eq!((url.as_str(), url.domain()), ("https://b.example.org/", "example.org"));
    assert_eq!(url, LakeUrl::parse("https://b.example.org/", psl).unwrap());
}

#[test]
fn another_list_gives_another_domain() {
    let list = SuffixList::parse("com\nexample.com\n").unwrap();
    assert_eq!(LakeUrl::parse("http://a.b.example.com/", &list).unwrap().domain(), "b.example.com");
    assert_eq!(LakeUrl::parse("http://a.co.uk/", &list).unwrap().domain(), "co.uk");
}

#[test]
fn surts_and_back() {
    for (url, short, long) in [
        ("https://www.example.com/a?b", "com,example,www)/a?b", "https://(com,example,www,)/a?b"),
        ("http://example.com:8080/", "com,example:8080)/", "http://(com,example,:8080)/"),
        ("http://192.0.2.1:81/x", "192.0.2.1:81)/x", "http://(192.0.2.1:81)/x"),
        ("https://[2001:db8::1]:8443/", "[2001:db8::1]:8443)/", "https://([2001:db8::1]:8443)/"),
        ("http://localhost/a)b,c", "localhost)/a)b,c", "http://(localhost,)/a)b,c"),
        ("http://.com/", "com,)/", "http://(com,,)/"),
        ("http://a..b.com/", "com,b,,a)/", "http://(com,b,,a,)/"),
    ] {
        assert_eq!(surt::from_url(url).as_deref(), Ok(short));
        assert_eq!(surt::with_scheme(url).as_deref(), Ok(long));
        let scheme = url.split_once(':').unwrap().0;
        assert_eq!(surt::to_url(short, scheme).as_deref(), Ok(url));
        assert_eq!(surt::to_url(long, "gopher").as_deref(), Ok(url), "the surt's own scheme wins");
    }
    assert_eq!(surt::to_url("com,example)", "http").as_deref(), Ok("http://example.com/"));
    for bad in
        ["", ")", "com,example", "com,example/", ")/x", "com,example:x)/", "com,example)x", "com,example:99999)/"]
    {
        assert_eq!(surt::to_url(bad, "http").unwrap_err().code(), "surt", "{bad:?}");
    }
}

#[test]
fn surt_order_keeps_a_domain_together() {
    let mut urls =
        ["http://b.com/", "http://z.a.com/", "http://a.com/b", "http://a.com/a", "http://a.org/", "http://ab.com/"]
            .map(|url| surt::from_url(url).unwrap());
    urls.sort();
    assert_eq!(urls, ["com,a)/a", "com,a)/b", "com,a,z)/", "com,ab)/", "com,b)/", "org,a)/"]);
}

#[test]
fn cdxj_keys_are_those_of_other_tools() {
    let rows = table(&data("cdxj_vectors.md"), "| Raw |");
    assert_eq!(rows.len(), 79);
    for row in &rows {
        let raw = std::str::from_utf8(&row[0]).unwrap();
        let key = surt::cdxj(raw).unwrap_or_else(|_| "refused".to_owned());
        assert_eq!(key.as_bytes().escape_ascii().to_string(), row[1].escape_ascii().to_string(), "{raw:?}");
    }
}

#[test]
fn the_guide_tells_the_truth() {
    let guide = include_str!("../../../../docs/urls.md");
    let raw = "HTTP://WWW.Example.com:80/a/../b//?z=1&utm_source=x&a=%7e#top";
    let lake = LakeUrl::parse(raw, SuffixList::builtin()).unwrap();
    let port = "https://www.example.com:8443/a?b";
    for text in [
        raw.to_owned(),
        trawl_url::WebUrl::parse(raw).unwrap().into(),
        trawl_url::key::canonical(raw.as_bytes(), None, &Default::default()).unwrap(),
        lake.surt(),
        String::from(lake),
        port.to_owned(),
        LakeUrl::parse(port, SuffixList::builtin()).unwrap().surt(),
        surt::from_url(port).unwrap(),
        surt::with_scheme(port).unwrap(),
        surt::cdxj(port).unwrap(),
    ] {
        assert!(guide.contains(&format!("`{text}`")), "docs/urls.md lacks {text}");
    }
}
