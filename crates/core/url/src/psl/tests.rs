//! The list's own vectors, and how rules combine.

use super::*;

/// `checkPublicSuffix(input, registrable domain)` lines of the list's authors.
#[test]
fn vectors_of_the_list() {
    let vectors = include_str!("../../tests/data/psl_vectors.txt");
    let mut count = 0;
    for line in vectors.lines().filter(|line| line.starts_with("checkPublicSuffix(")) {
        let arguments = line.trim_start_matches("checkPublicSuffix(").trim_end_matches(");");
        let (input, expected) = arguments.split_once(", ").unwrap();
        count += 1;
        if input == "null" {
            continue; // no host at all
        }
        let input = punycode(input.trim_matches('\''));
        // Where the vectors say "none" a host is its own domain here.
        let expected = if expected == "null" { input.clone() } else { punycode(expected.trim_matches('\'')) };
        assert_eq!(SuffixList::builtin().registrable(&input), expected, "{line}");
    }
    assert_eq!(count, 78);
}

fn punycode(name: &str) -> String {
    host::punycode(name.as_bytes()).unwrap().into_owned()
}

#[test]
fn case_dots_and_addresses() {
    let psl = SuffixList::builtin();
    for (host, domain) in [
        ("WWW.Example.CO.UK", "Example.CO.UK"),
        ("www.example.com.", "example.com"),
        ("www.example.com..", "www.example.com."),
        ("a..b.com", "a..b.com"),
        (".com", ".com"),
        ("", ""),
        (".", ""),
        ("com", "com"),
        ("192.168.0.1", "192.168.0.1"),
        ("1.2.3", "2.3"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("a_b.example.com", "example.com"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
    ] {
        assert_eq!(psl.registrable(host), domain, "{host:?}");
    }
}

#[test]
fn the_built_in_list_reads_without_fault() {
    let list = SuffixList::parse(BUILTIN_TEXT).unwrap();
    let builtin = SuffixList::builtin();
    assert_eq!((list.hash(), list.snapshot(), list.rules()), (builtin.hash(), builtin.snapshot(), builtin.rules()));
    assert!(builtin.snapshot().starts_with("20"), "{}", builtin.snapshot());
    assert!(builtin.rules() > 9_000);
    assert_eq!(builtin.text(), BUILTIN_TEXT);
}

#[test]
fn every_rule_of_the_list_is_obeyed() {
    let psl = SuffixList::builtin();
    let mut count = 0;
    for line in BUILTIN_TEXT.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        count += 1;
        let (prefix, name) = match (line.strip_prefix('!'), line.strip_prefix("*.")) {
            (Some(name), _) => ("", name),
            (_, Some(name)) => ("zzq9.wild.", name),
            _ => ("zzq9.", line),
        };
        let domain = format!("{prefix}{}", punycode(name));
        assert_eq!(psl.registrable(&format!("www.{domain}")), domain, "{line}");
    }
    assert_eq!(count, psl.rules());
}

#[test]
fn sections_can_be_chosen() {
    let icann = SuffixList::parse_sections(BUILTIN_TEXT, Sections::Icann).unwrap();
    assert_eq!(icann.registrable("user.github.io"), "github.io");
    assert_eq!(icann.registrable("a.b.example.co.uk"), "example.co.uk");
    assert_ne!(icann.hash(), SuffixList::builtin().hash());
}

#[test]
fn lists_may_be_bare_and_international() {
    let list = SuffixList::parse("com\n\n*.ck // wild\n!www.ck\n\u{516c}\u{53f8}.cn\n*\n").unwrap();
    assert_eq!(list.registrable("a.b.ck"), "a.b.ck");
    assert_eq!(list.registrable("x.www.ck"), "www.ck");
    assert_eq!(list.registrable("a.b.xn--55qx5d.cn"), "b.xn--55qx5d.cn");
    assert!(list.snapshot().starts_with("unversioned "));
}

#[test]
fn faults_name_their_line() {
    for (text, line) in [("com\na..b\n", 2), ("!com\n", 1), ("a.*.b\n", 1), ("com\n\nx/y\n", 3), ("*..x\n", 1)] {
        match SuffixList::parse(text) {
            Err(SuffixListError::Rule { line: found, .. }) => assert_eq!(found, line, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
    assert_eq!(SuffixList::parse("// nothing\n").unwrap_err(), SuffixListError::Empty);
    assert!(matches!(SuffixList::parse(&" ".repeat(MAX_LIST_LEN + 1)), Err(SuffixListError::TooLong { .. })));
}
