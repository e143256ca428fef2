//! What holds for every input.

use proptest::prelude::*;
use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{Base, LakeUrl, MAX_HOST_LEN, MAX_URL_LEN, SuffixList, WebUrl, surt};

/// Pieces that make interesting URLs when strung together.
const PIECES: [&[u8]; 60] = [
    b"/",
    b"//",
    b"..",
    b".",
    b"%2e",
    b"%2F",
    b"?",
    b"&",
    b"=",
    b";",
    b"#",
    b":",
    b"@",
    b"a",
    b"B",
    b"%C3%A9",
    b"\xc3\xa9",
    b" ",
    b"%20",
    b"+",
    b"%zz",
    b"%",
    b"%3",
    b"http:",
    b"https://",
    b"e.com",
    b"80",
    b":443",
    b"_",
    b"-",
    b"xn--",
    b"[::1]",
    b"[",
    b"]",
    b"\\",
    b"utm_source=1",
    b"!",
    b"(",
    b"~",
    b"\xc3\x9f",
    b"\xef\xbd\x81",
    b"\t",
    b"\0",
    b"index.html",
    b"\xe3\x80\x82",
    b"\xe9",
    b"1",
    b"\xc2\xa0",
    b"\xc4\xb0",
    b"%41",
    b"=&",
    b"\x7f",
    b"\"",
    b"|",
    b"^",
    b"*",
    b"'",
    b"0x7f",
    b"\xc2\xad",
    b"%25",
];

fn pieces(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(PIECES.to_vec()), count).prop_map(|pieces| pieces.concat())
}

/// Mostly URLs, some bytes of any kind.
fn raw() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (prop::sample::select(vec!["http://e.com/", "http://", "https://a.b.co.uk:81/x?", "", "HTTP://U:p@E.com:/"]), pieces(0..12))
            .prop_map(|(head, tail)| [head.as_bytes(), &tail].concat()),
        1 => pieces(0..20),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => "http://\\PC{0,12}/\\PC{0,12}".prop_map(String::into_bytes),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let keys = || {
        prop::collection::vec(prop::sample::select(vec!["a", "B", "utm_source", "é", ""]).prop_map(str::to_owned), 0..3)
    };
    (prop::option::of(keys()), keys(), any::<[bool; 4]>()).prop_map(|(query_allow, query_deny, folds)| Policy {
        query_allow,
        query_deny,
        fold_trailing_slash: folds[0],
        fold_index: folds[1],
        fold_case: folds[2],
        collapse_slashes: folds[3],
        version: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn lake_form_is_idempotent_and_clean(raw in raw()) {
        let psl = SuffixList::builtin();
        let Ok(url) = LakeUrl::parse_bytes(&raw, psl) else { return Ok(()) };
        prop_assert_eq!(LakeUrl::parse(url.as_str(), psl), Ok(url.clone()));
        prop_assert!(url.as_str().bytes().all(|b| b.is_ascii_graphic()));
        prop_assert!(url.path_query().starts_with('/') && !url.path_query().contains('#'));
        prop_assert!(!url.host().is_empty() && url.host().len() <= MAX_HOST_LEN && url.as_str().len() <= MAX_URL_LEN);
        prop_assert!(url.host().ends_with(url.domain()) && !url.domain().is_empty());
        prop_assert_eq!(psl.registrable(url.domain()), url.domain());
        prop_assert_eq!(LakeUrl::from_parts(url.scheme(), url.host(), url.port(), url.path_query()), url.as_str());
    }

    #[test]
    fn surts_lead_back(raw in raw()) {
        let Ok(url) = LakeUrl::parse_bytes(&raw, SuffixList::builtin()) else { return Ok(()) };
        let short = surt::from_url(url.as_str()).unwrap();
        prop_assert_eq!(surt::to_url(&short, url.scheme()), Ok(url.to_string()));
        let long = surt::with_scheme(url.as_str()).unwrap();
        prop_assert_eq!(surt::to_url(&long, ""), Ok(url.to_string()));
    }

    #[test]
    fn the_lake_does_not_see_how_a_url_was_found(raw in raw()) {
        let Ok(text) = std::str::from_utf8(&raw) else { return Ok(()) };
        let psl = SuffixList::builtin();
        if let Ok(found) = WebUrl::parse(text) {
            prop_assert_eq!(WebUrl::parse(&found), Ok(found.clone()));
            prop_assert!(found.path_query().starts_with('/') && !found.host().is_empty());
            prop_assert_eq!(WebUrl::parse(&found.root()), Ok(found.root()));
            // The key form of the text and that of its parts are one; only user information can spoil the text's.
            let keys = [key::canonical(found.as_bytes(), None, &Policy::default()), key::canonical_web(&found, &Policy::default())];
            prop_assert!(keys[0] == keys[1] || keys[0] == Err(trawl_url::Reject::Userinfo), "{:?}", keys);
            prop_assert_eq!(LakeUrl::parse(&found, psl), LakeUrl::parse(text, psl));
        }
    }

    #[test]
    fn key_form_is_idempotent_and_clean(raw in raw(), base in prop::option::of(raw()), policy in policy()) {
        let Ok(url) = key::canonical(&raw, base.as_deref(), &policy) else { return Ok(()) };
        prop_assert_eq!(key::canonical(url.as_bytes(), None, &policy), Ok(url.clone()));
        prop_assert!(url.bytes().all(|b| b.is_ascii_graphic()), "{}", url);
        let psl = SuffixList::builtin();
        let host = key::host_of(&url);
        prop_assert!(!host.is_empty());
        prop_assert_eq!(key::of(&url, HostGroup::FullHost, psl).host, key::host_key(host));
        prop_assert_eq!(key::of(&url, HostGroup::Registrable, psl).host, key::host_key(psl.registrable(host)));
    }

    #[test]
    fn resolved_links_are_absolute(base in raw(), link in raw()) {
        let (base, link) = (String::from_utf8_lossy(&base), String::from_utf8_lossy(&link));
        if let Ok(url) = Base::new(&base).and_then(|base| base.resolve(&link)) {
            prop_assert_eq!(WebUrl::parse(&url), Ok(url.clone()));
            prop_assert!(!url.contains('#'));
            match url::Url::parse(&base).and_then(|base| base.join(&link)) {
                Ok(mut joined) => {
                    // User information is nobody else's business.
                    joined.set_username("").unwrap();
                    joined.set_password(None).unwrap();
                    prop_assert_eq!(joined.as_str().split('#').next(), Some(url.as_str()));
                }
                // Browsers pass over any number of slashes before a host, and take names that only look like punycode; the
                // crate does not.
                Err(url::ParseError::EmptyHost) => prop_assert!(link.contains(['/', '\\'])),
                Err(error) => {
                    let has_odd_name = [&base, &link].iter().any(|text| text.to_lowercase().contains("xn--"));
                    prop_assert!(error == url::ParseError::IdnaError && has_odd_name, "{}", error);
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_surt_or_none(text in "\\PC{0,30}", scheme in "[a-z]{0,5}") {
        let _ = surt::to_url(&text, &scheme);
    }
}
