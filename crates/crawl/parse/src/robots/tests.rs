//! Unit tests of robots.txt; the public suites are in `tests/robots.rs`.

use super::*;

fn allowed(robots: &str, agent: &str, path: &str) -> bool {
    Robots::parse(robots.as_bytes()).agent(agent).allows(path).allowed
}

#[test]
fn the_longest_rule_wins_and_names_its_line() {
    let rules = Robots::parse(b"User-agent: *\r\nDisallow: /a\r\nAllow: /a/b\r\nDisallow: /a/b/c*d$\r\n").agent("x");
    assert_eq!(rules.allows("/a"), Verdict { allowed: false, line: Some(2) });
    assert_eq!(rules.allows("/a/b/c"), Verdict { allowed: true, line: Some(3) });
    assert_eq!(rules.allows("/a/b/cccd"), Verdict { allowed: false, line: Some(4) });
    assert_eq!(rules.allows("/"), Verdict { allowed: true, line: None });
}

#[test]
fn a_trailing_star_counts_but_matches_like_the_prefix() {
    let robots = "User-agent: *\nDisallow: /fish***\nAllow: /fishe\n";
    assert!(!allowed(robots, "x", "/fishes")); // eight octets beat six
    assert!(!allowed(robots, "x", "/fish"));
}

#[test]
fn percent_encoding_compares_octets() {
    let robots = "User-agent: *\nDisallow: /a%3cd.html\nDisallow: /%7ejoe\nDisallow: /x%2fy\nDisallow: /ü\n";
    for (path, want) in [
        ("/a%3Cd.html", false),
        ("/a<d.html", false),
        ("/~joe/", false),
        ("/%7Ejoe", false),
        ("/x%2Fy", false),
        ("/x/y", true),
        ("/%c3%bc", false),
    ] {
        assert_eq!(allowed(robots, "x", path), want, "{path}");
    }
}

#[test]
fn star_and_dollar_can_be_named_by_their_escapes() {
    let robots = "User-agent: *\nDisallow: /file-%2A.html\nDisallow: /foo%24\nDisallow: /a$b\n";
    for (path, want) in
        [("/file-*.html", false), ("/file-x.html", true), ("/foo$", false), ("/foo", true), ("/a$b", false)]
    {
        assert_eq!(allowed(robots, "x", path), want, "{path}");
    }
}

#[test]
fn no_rule_fits_digits_that_nobody_wrote() {
    for (rule, path, want) in [
        ("/*24", "/price$", true),
        ("/*2A", "/a*b", true),
        ("/*3C", "/a<b", true),
        ("/*C3", "/\u{e4}", true),
        ("/*24", "/price%24", false),
        ("/*2F", "/a%2Fb", false),
        ("/*$x", "/a$x", false),
        ("/*%24", "/a$", false),
        ("/\u{e4}", "/%C3%A4", false),
    ] {
        assert_eq!(allowed(&format!("User-agent: *\nDisallow: {rule}\n"), "x", path), want, "{rule} {path}");
    }
}

#[test]
fn a_url_inside_a_query_matches_encoded_or_not() {
    let robots = "User-agent: *\nDisallow: /foo/bar?baz=http://foo.bar\n";
    assert!(!allowed(robots, "x", "/foo/bar?baz=http://foo.bar"));
    assert!(!allowed(robots, "x", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"));
    // And a rule that names the escape keeps matching it inside a query.
    assert!(!allowed("User-agent: *\nDisallow: /*%2F\n", "x", "/a?b=%2f"));
}

#[test]
fn a_file_past_the_limit_is_cut_after_a_whole_line() {
    let mut file = b"User-agent: *\n".to_vec();
    while file.len() < MAX_BYTES - 20 {
        file.extend_from_slice(b"# filler\n");
    }
    file.extend_from_slice(b"Disallow: /kept\nDisallow: /very-long-path-that-is-cut-in-the-middle\nDisallow: /late\n");
    let robots = Robots::parse(&file);
    assert!(robots.truncated());
    let rules = robots.agent("x");
    assert!(rules.allows("/very").allowed);
    assert!(rules.allows("/late").allowed);
    let rules = Robots::parse(file.get(..MAX_BYTES).unwrap()).agent("x");
    assert!(!rules.allows("/kept").allowed);
}

#[test]
fn crawl_delays() {
    for (value, want) in
        [("10", Some(10.0)), ("0.5", Some(0.5)), ("7s", Some(7.0)), ("-1", None), ("x", None), ("", None)]
    {
        let robots = Robots::parse(format!("User-agent: *\nCrawl-delay: {value}\n").as_bytes());
        assert_eq!(robots.agent("x").crawl_delay(), want.map(Duration::from_secs_f64), "{value}");
    }
    assert_eq!(
        Robots::parse(b"User-agent:*\nCrawl-delay: 1e99999999").agent("x").crawl_delay(),
        Some(Duration::from_secs(1))
    );
}

#[test]
fn sitemaps_are_kept_in_order_without_repetition() {
    let robots = Robots::parse(b"Sitemap: http://a/1\nuser-agent: *\nsite-map: /2\nSITEMAP:http://a/1\n");
    assert_eq!(robots.sitemaps(), ["http://a/1", "/2"]);
    // A colon too few, and no name at all.
    let bare =
        b"Sitemap http://a/1\nhttps://a/sitemap.xml.gz\nHTTP://a/feed.xml # ours\nhttp://a/page\nhttps://a/x y.xml\n";
    assert_eq!(Robots::parse(bare).sitemaps(), ["http://a/1", "https://a/sitemap.xml.gz", "HTTP://a/feed.xml"]);
}

#[test]
fn utf16_with_a_byte_order_mark_is_read() {
    let text = "User-agent: *\nDisallow: /x\n";
    let le: Vec<u8> = [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let be: Vec<u8> = [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for file in [le, be] {
        assert!(!Robots::parse(&file).agent("x").allows("/x").allowed);
    }
}

#[test]
fn a_file_made_to_be_slow_forbids_instead() {
    // Digits that the path has in every pair, but not in this order: each rule must look at the whole path.
    let number = |i: u64| i.wrapping_mul(6_364_136_223_846_793_005) >> 20;
    let rules: String = (0..20_000).map(|i| format!("Allow: /*{}\n", number(i))).collect();
    let rules = Robots::parse(format!("User-agent: *\n{rules}Disallow: /x\n").as_bytes()).agent("x");
    assert!(rules.allows("/ab").allowed);
    assert!(!rules.allows("/x").allowed);
    let path = |count| (0..count).fold("/".to_owned(), |path, i| path + &number(1_000_000 + i).to_string());
    assert!(rules.allows(path(50)).allowed);
    assert!(!rules.allows(path(4000)).allowed);
}

mod against_a_plain_matcher {
    //! The compiled matcher against one that tries every rule in turn.

    use proptest::prelude::*;

    use super::super::{AgentRules, Robots, escape};

    fn plain_match(pattern: &[u8], path: &[u8]) -> bool {
        match pattern.split_first() {
            None => true,
            Some((b'$', [])) => path.is_empty(),
            Some((b'*', rest)) => (0..=path.len()).any(|at| plain_match(rest, &path[at..])),
            Some((byte, rest)) => path.first() == Some(byte) && plain_match(rest, &path[1..]),
        }
    }

    fn plain(rules: &[(bool, String)], path: &str) -> bool {
        let path = escape::path(path.as_bytes()).0.into_owned();
        rules
            .iter()
            .map(|(allow, value)| (escape::pattern(value.as_bytes()).0, *allow))
            .filter(|(pattern, _)| !pattern.is_empty() && plain_match(pattern, &path))
            .map(|(pattern, allow)| (pattern.len(), allow))
            .max()
            .is_none_or(|(_, allow)| allow)
    }

    fn compiled(rules: &[(bool, String)]) -> AgentRules {
        let lines: String = rules
            .iter()
            .map(|(allow, value)| format!("{}: {value}\n", if *allow { "Allow" } else { "Disallow" }))
            .collect();
        Robots::parse(format!("User-agent: *\n{lines}").as_bytes()).agent("x")
    }

    proptest! {
        #[test]
        fn they_agree(
            rules in prop::collection::vec((any::<bool>(), "/[ab/*]{0,5}[$*]?"), 0..12),
            paths in prop::collection::vec("/[ab/$]{0,7}", 1..8),
        ) {
            let fast = compiled(&rules);
            for path in paths {
                prop_assert_eq!(fast.allows(&path).allowed, plain(&rules, &path), "{} {:?}", path, rules);
            }
        }

        #[test]
        fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..300), path in ".{0,20}") {
            let robots = Robots::parse(&bytes);
            robots.agent("x").allows(&path);
        }
    }
}
