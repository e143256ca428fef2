//! Every URL form over raw bytes: no panic, idempotent, and the forms agree where they must.
//!
//! The first byte chooses a policy, the first line break separates the text from a base.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{Base, LakeUrl, MAX_HOST_LEN, MAX_URL_LEN, SuffixList, WebUrl, surt};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let (raw, base) = match data.iter().position(|&b| b == b'\n') {
        Some(at) => (&data[..at], Some(&data[at + 1..])),
        None => (data, None),
    };
    lake(raw);
    key(raw, base, choice);
    if let Ok(text) = std::str::from_utf8(raw) {
        found(text, base);
        let _ = surt::to_url(text, "http");
        let _ = surt::cdxj(text);
        let _ = key::legacy(text, None);
        let _ = SuffixList::builtin().registrable(text);
    }
});

fn lake(raw: &[u8]) {
    let psl = SuffixList::builtin();
    let Ok(url) = LakeUrl::parse_bytes(raw, psl) else { return };
    assert_eq!(LakeUrl::parse(url.as_str(), psl).as_ref(), Ok(&url), "lake form is not idempotent");
    assert!(url.as_str().bytes().all(|b| b.is_ascii_graphic()));
    assert!(url.as_str().len() <= MAX_URL_LEN && url.host().len() <= MAX_HOST_LEN);
    assert!(url.path_query().starts_with('/'));
    assert!(!url.domain().is_empty() && url.host().ends_with(url.domain()));
    assert_eq!(psl.registrable(url.domain()), url.domain());
    let short = surt::from_url(url.as_str()).expect("a lake form has a surt");
    assert_eq!(surt::to_url(&short, url.scheme()).as_deref(), Ok(url.as_str()));
    let long = surt::with_scheme(url.as_str()).expect("a lake form has a surt");
    assert_eq!(surt::to_url(&long, "").as_deref(), Ok(url.as_str()));
}

fn key(raw: &[u8], base: Option<&[u8]>, choice: u8) {
    let list = |bit: u8| if choice & bit != 0 { vec!["a".to_owned(), "B".to_owned()] } else { Vec::new() };
    let policy = Policy {
        query_allow: (choice & 32 != 0).then(|| list(64)),
        query_deny: list(16),
        fold_trailing_slash: choice & 1 != 0,
        fold_index: choice & 2 != 0,
        fold_case: choice & 4 != 0,
        collapse_slashes: choice & 8 != 0,
        version: 0,
    };
    let Ok(url) = key::canonical(raw, base, &policy) else { return };
    assert_eq!(key::canonical(url.as_bytes(), None, &policy).as_ref(), Ok(&url), "key form is not idempotent");
    assert!(url.bytes().all(|b| b.is_ascii_graphic()) && url.len() <= MAX_URL_LEN);
    let key = key::of(&url, HostGroup::FullHost, SuffixList::builtin());
    assert_eq!(key.host, key::host_key(key::host_of(&url)));
}

fn found(text: &str, base: Option<&[u8]>) {
    let psl = SuffixList::builtin();
    if let Ok(url) = WebUrl::parse(text) {
        assert_eq!(WebUrl::parse(&url).as_ref(), Ok(&url), "as found is not idempotent");
        assert_eq!(LakeUrl::parse(&url, psl), LakeUrl::parse(text, psl), "the lake form depends on who parsed first");
    }
    if let Some(base) = base.and_then(|base| std::str::from_utf8(base).ok())
        && let Ok(url) = Base::new(base).and_then(|base| base.resolve(text))
    {
        assert_eq!(WebUrl::parse(&url).as_ref(), Ok(&url), "a resolved link is not as found");
    }
}
