//! What the vectors do not show.

use super::*;

fn form(raw: &str) -> Result<String, Reject> {
    canonical(raw.as_bytes(), None, &Policy::default())
}

fn code(raw: &str) -> &'static str {
    form(raw).map_or_else(|reject| reject.code(), |form| panic!("{raw:?} gives {form:?}"))
}

#[test]
fn refusals_say_why() {
    for (raw, why) in [
        ("", "no_scheme"),
        (":x", "no_scheme"),
        ("/x", "no_scheme"),
        ("a:b/c:d", "scheme"),
        ("1a:b", "colon"),
        ("mailto:a@b", "scheme"),
        ("http:x", "no_host"),
        ("http:///x", "no_host"),
        ("http://:80/", "no_host"),
        ("http://./", "no_host"),
        ("http://e.com:8a/", "port"),
        ("http://e.com:80:80/", "port"),
        ("http://[::1]x/", "port"),
        ("http://[::1/", "host_ip"),
        ("http://[fe80::1%25eth0]/", "host_ip"),
        ("http://u%zz@e.com/", "userinfo"),
        ("http://u<@e.com/", "userinfo"),
        ("http://e.com/%", "escape"),
        ("http://e.com/#%", "escape"),
        ("http://e.com/\u{1}", "control"),
        ("http://a~b.com/", "host_byte"),
        ("http://ex%41mple.com/", "host_byte"),
        ("http://xn--a.com/", "host_idna"),
    ] {
        assert_eq!(code(raw), why, "{raw:?}");
    }
}

#[test]
fn bytes_that_are_not_text() {
    let of = |raw: &[u8]| canonical(raw, None, &Policy::default());
    assert_eq!(of(b"http://e.com/\xff?\xfe#\xfd").as_deref(), Ok("http://e.com/%FF?%FE"));
    assert_eq!(of(b"http://\xe9.com/").unwrap_err().code(), "host_idna");
    assert_eq!(of(b"http://u\xe9@e.com/").unwrap_err().code(), "userinfo");
}

#[test]
fn a_base_that_is_no_url_is_ignored() {
    let of = |raw: &str, base: &str| canonical(raw.as_bytes(), Some(base.as_bytes()), &Policy::default());
    assert_eq!(of("http://e.com/x", "%%").as_deref(), Ok("http://e.com/x"));
    for base in ["%%", "http://ex%41mple.com/", "http://ex ample.com/", "http://e.com:x/", ""] {
        assert_eq!(of("//f.com/x", base).unwrap_err().code(), "no_scheme", "{base}");
    }
    assert_eq!(of("///x", "http://e.com/a").as_deref(), Ok("http://e.com///x"));
    assert_eq!(of("//", "http://e.com/a?b").as_deref(), Ok("http://e.com/a?b"));
    assert_eq!(of("//:/x", "http://e.com/a").unwrap_err().code(), "no_host");
}

#[test]
fn a_query_of_too_many_pieces_counts_as_none() {
    let url = |pieces: usize| format!("http://e.com/?{}", vec!["a"; pieces].join("&"));
    assert_eq!(form(&url(10_000)).unwrap(), url(10_000));
    assert_eq!(form(&url(10_001)).as_deref(), Ok("http://e.com/"));
}

#[test]
fn policies_choose_query_keys() {
    let policy = Policy { query_allow: Some(vec!["id".to_owned(), "a b".to_owned()]), ..Policy::default() };
    let of = |raw: &str, policy: &Policy| canonical(raw.as_bytes(), None, policy).unwrap();
    assert_eq!(of("http://e.com/?x=1&id=2&a+b=3&ref=4", &policy), "http://e.com/?a+b=3&id=2");
    let policy = Policy { query_allow: Some(vec!["ref".to_owned()]), ..Policy::default() };
    assert_eq!(
        of("http://e.com/?x=1&ref=4", &policy),
        "http://e.com/?ref=4",
        "an allow list replaces the tracking list"
    );
    let policy = Policy { query_deny: vec!["s/d".to_owned()], ..Policy::default() };
    assert_eq!(of("http://e.com/?s%2fd=1&utm_term=2&S/D=3", &policy), "http://e.com/?S%2FD=3");
}

#[test]
fn hosts_without_their_ports() {
    for (url, host) in [
        ("http://e.com/", "e.com"),
        ("http://e.com:81/a:b", "e.com"),
        ("http://[::1]/", "[::1]"),
        ("http://[::1]:81/", "[::1]"),
        ("http://e.com?a:b", "e.com"),
        ("", ""),
        ("http://", ""),
    ] {
        assert_eq!(host_of(url), host, "{url}");
    }
}

#[test]
fn the_identity_never_makes_two_pages_one() {
    let of = |raw: &str| identity(raw, SuffixList::builtin()).unwrap();
    for (raw, form) in [
        ("http://e.com", "http://e.com/"),
        ("http://e.com/a//b/./c/../d", "http://e.com/a//b/d"),
        ("http://e.com/?a=1;b=2&c=3", "http://e.com/?a=1;b=2&c=3"),
        ("http://e.com/?a=%zz", "http://e.com/?a=%25zz"),
        ("http://e.com/?b=2&a=1&b=1", "http://e.com/?a=1&b=2&b=1"),
        ("http://e.com/?ref=x&ref_src=y", "http://e.com/?ref=x&ref_src=y"),
        (
            "http://e.com/?utm_source=x&utm_anything=y&gclid=1&fbclid=1&msclkid=1&mc_eid=1&igshid=1&yclid=1&_ga=1",
            "http://e.com/",
        ),
        ("http://e.com/?utm%5Fsource=x&a", "http://e.com/?a"),
        ("http://e.com/?UTM_SOURCE=x", "http://e.com/?UTM_SOURCE=x"),
        ("http://e.com/?gclid", "http://e.com/"),
        ("http://e.com/?gclidx=1", "http://e.com/?gclidx=1"),
    ] {
        assert_eq!(of(raw), form, "{raw}");
        assert_eq!(of(form), form, "{raw} again");
    }
    assert_ne!(of("http://e.com/?f=a;h=1"), of("http://e.com/?f=a;h=2"));
    assert_ne!(of("http://e.com/?p=1&p=2"), of("http://e.com/?p=2&p=1"));
}
