//! The two readers agree.

use proptest::prelude::*;

use super::*;

fn by(reader: impl FnOnce(&mut LakeUrl) -> Result<(), Reject>) -> Result<LakeUrl, Reject> {
    let mut url = LakeUrl::default();
    reader(&mut url).map(|()| url)
}

/// The slow reader's answer, and the fast one's if it takes the text.
fn both(raw: &str) -> (Result<LakeUrl, Reject>, Option<Result<LakeUrl, Reject>>) {
    let psl = SuffixList::builtin();
    let slow = by(|url| slow::read(raw, |parts| url.build(&parts, psl, Form::Lake)));
    let fast = fast::read(raw).map(|parts| by(|url| url.build(&parts, psl, Form::Lake)));
    (slow, fast)
}

#[test]
fn the_fast_reader_takes_plain_urls() {
    for raw in [
        "http://example.com",
        "https://WWW.Example.com:8443/a/../b//c?z=1&y#f",
        "http://a_b.-c-.example/%7e%2e%2e/?%zz",
        "http://e.com?q",
        "http://e.com#f",
        "http://..e.com:80/",
    ] {
        let (slow, fast) = both(raw);
        assert_eq!(fast, Some(slow), "{raw}");
    }
}

#[test]
fn the_fast_reader_leaves_the_rest() {
    for raw in [
        "HTTP://example.com/",
        "http://example.com/ ",
        "http://example.com/é",
        "http://u@example.com/",
        "http://example.com\\a",
        "http://example.com/a\\b",
        "http://example.com:/",
        "http://example.com:99999/",
        "http://example.com:123456/",
        "http://example.com:8x/",
        "http://example.com./",
        "http://xn--a.com/",
        "http://a.XN--A.com/",
        "http://1.2.3/",
        "http://e.0x1/",
        "http:///x",
        "http://a%41.com/",
        "example.com",
    ] {
        assert!(fast::read(raw).is_none(), "{raw}");
    }
}

/// A scheme behind a mark, or without its colon, is not a host.
#[test]
fn a_misspelt_scheme_is_not_a_host() {
    for raw in [
        "\u{feff}http://a.com/",
        "\u{200b}https://a.com/",
        "\u{201c}http://a.com/\u{201d}",
        "http//a.com",
        "HTTPS//a.com/x",
    ] {
        let found = LakeUrl::parse(raw, SuffixList::builtin());
        assert_eq!(found.map_err(|reject| reject.code()).unwrap_err(), "scheme", "{raw:?}");
    }
    for (raw, url) in
        [("http/x", "http://http/x"), ("a.com//x", "http://a.com/x"), ("a.com/?u=b://c", "http://a.com/?u=b://c")]
    {
        assert_eq!(LakeUrl::parse(raw, SuffixList::builtin()).unwrap().as_str(), url);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn readers_agree(raw in "https?://[a-zA-Z0-9._-]{0,12}(xn--)?[a-z.]{0,5}(:[0-9]{0,6})?([/?#]([!-~]{0,20}|(/|\\.|%2e|%2F|%|&|=|a){0,12})){0,3}") {
        let (slow, fast) = both(&raw);
        if let Some(fast) = fast {
            prop_assert_eq!(fast, slow);
        }
    }

    #[test]
    fn dots_then_collapse_is_what_browsers_do(segments in prop::collection::vec(prop::sample::select(vec!["", "", ".", "..", "a", "b", "...", "%2e", ".%2E"]), 0..14)) {
        let raw = format!("http://e.com/{}", segments.join("/"));
        let mut expected = String::new();
        dots::collapse(url::Url::parse(&raw).unwrap().path(), &mut expected);
        let url = LakeUrl::parse(&raw, SuffixList::builtin()).unwrap();
        prop_assert_eq!(url.path_query(), expected);
    }
}
