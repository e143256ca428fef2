//! Every vector of the reference, and every place where Trawl deliberately answers otherwise.

mod common;

use std::collections::BTreeMap;

use common::{data, show, table};
use trawl_url::SuffixList;
use trawl_url::key::{self, HostGroup, Policy, UrlKey};

const KEY_ROWS: usize = 8;
const URL_ROWS: usize = 4;
const DOMAIN_ROWS: usize = 11;
const CANONICAL_ROWS: usize = 182;
const POLICY_ROWS: usize = 6;
const DEVIATION_ROWS: usize = 34;
/// How many of the reference's own vectors the deviations change; all others must match exactly.
const CHANGED_VECTORS: usize = 19;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn hex(bytes: &[u8]) -> u64 {
    u64::from_str_radix(text(bytes), 16).unwrap()
}

/// The canonical text, or `-` for any refusal, as the tables write it.
fn canonical(raw: &[u8], base: &[u8], policy: &Policy) -> Vec<u8> {
    let base = if base.is_empty() { None } else { Some(base) };
    key::canonical(raw, base, policy).map_or_else(|_| b"-".to_vec(), String::into_bytes)
}

fn policy(words: &str) -> Policy {
    let mut policy = Policy::default();
    for word in words.split_whitespace() {
        match word {
            "slash" => policy.fold_trailing_slash = true,
            "index" => policy.fold_index = true,
            "case" => policy.fold_case = true,
            "collapse" => policy.collapse_slashes = true,
            _ => policy.query_deny.push(word.strip_prefix("deny=").unwrap().to_owned()),
        }
    }
    policy
}

const ALL_FOLDS: &str = "slash index case collapse deny=sid";

/// (raw, base, policy) → (reference's answer, ours)
type Deviations = BTreeMap<(Vec<u8>, Vec<u8>, String), (Vec<u8>, Vec<u8>)>;

fn deviations() -> Deviations {
    let rows = table(&data("key_deviations.md"), "| Case |");
    assert_eq!(rows.len(), DEVIATION_ROWS);
    let all: Deviations = rows
        .into_iter()
        .map(|row| {
            let [_, raw, base, policy, reference, ours, why] = row.try_into().unwrap();
            assert!(!why.is_empty());
            ((raw, base, text(&policy).to_owned()), (reference, ours))
        })
        .collect();
    assert_eq!(all.len(), DEVIATION_ROWS, "a case stands twice");
    all
}

#[test]
fn keys_of_strings() {
    let rows = table(&data("key_vectors.md"), "| String |");
    assert_eq!(rows.len(), KEY_ROWS);
    for row in &rows {
        let string = text(&row[0]);
        assert_eq!(key::host_key(string), hex(&row[1]), "host key of {string:?}");
        assert_eq!(key::path_key(string), hex(&row[2]), "path key of {string:?}");
    }
}

#[test]
fn keys_of_urls() {
    let psl = SuffixList::builtin();
    let rows = table(&data("key_vectors.md"), "| Canonical URL |");
    assert_eq!(rows.len(), URL_ROWS);
    for row in &rows {
        let url = text(&row[0]);
        assert_eq!(psl.registrable(key::host_of(url)), text(&row[1]), "{url}");
        let path = hex(&row[4]);
        assert_eq!(key::of(url, HostGroup::Registrable, psl), UrlKey { host: hex(&row[2]), path }, "{url}");
        assert_eq!(key::of(url, HostGroup::FullHost, psl), UrlKey { host: hex(&row[3]), path }, "{url}");
    }
}

#[test]
fn registrable_domains() {
    let file = data("key_vectors.md");
    let line = file.lines().find_map(|line| line.strip_prefix("Registrable domains: ")).unwrap();
    let pairs: Vec<&str> = line.trim_end_matches('.').split("; ").collect();
    assert_eq!(pairs.len(), DOMAIN_ROWS);
    for pair in pairs {
        let (host, domain) = pair.split_once("->").unwrap();
        let host = host.trim_matches('`');
        let domain = if domain == "itself" { host } else { domain.trim_matches('`') };
        assert_eq!(SuffixList::builtin().registrable(host), domain, "{host}");
    }
}

#[test]
fn canonical_forms() {
    let deviations = deviations();
    let rows = table(&data("key_vectors.md"), "| Raw link |");
    assert_eq!(rows.len(), CANONICAL_ROWS);
    let mut changed = 0;
    for row in rows {
        let [raw, base, expected] = row.try_into().unwrap();
        let ours = canonical(&raw, &base, &Policy::default());
        match deviations.get(&(raw.clone(), base.clone(), String::new())) {
            Some((reference, answer)) => {
                changed += 1;
                assert_eq!(show(reference), show(&expected), "the deviation misquotes {}", show(&raw));
                assert_eq!(show(&ours), show(answer), "{} on {}", show(&raw), show(&base));
            }
            None => assert_eq!(show(&ours), show(&expected), "{} on {}", show(&raw), show(&base)),
        }
    }
    changed += policy_forms(&deviations);
    assert_eq!(changed, CHANGED_VECTORS);
}

fn policy_forms(deviations: &Deviations) -> usize {
    let file = data("key_vectors.md");
    let (_, list) = file.split_once("With a policy of").unwrap();
    let rows: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert_eq!(rows.len(), POLICY_ROWS);
    let mut changed = 0;
    for row in rows {
        let (raw, expected) = row.split_once(" -> ").unwrap();
        let (raw, expected) = (common::span(raw), common::span(expected));
        let ours = canonical(&raw, b"", &policy(ALL_FOLDS));
        match deviations.get(&(raw.clone(), Vec::new(), ALL_FOLDS.to_owned())) {
            Some((reference, _)) => {
                changed += 1;
                assert_eq!(show(reference), show(&expected), "the deviation misquotes {}", show(&raw));
            }
            None => assert_eq!(show(&ours), show(&expected), "{}", show(&raw)),
        }
    }
    changed
}

#[test]
fn every_deviation_answers_as_listed() {
    for ((raw, base, words), (reference, ours)) in deviations() {
        let policy = policy(&words);
        assert_ne!(show(&reference), show(&ours), "no deviation: {}", show(&raw));
        let answer = canonical(&raw, &base, &policy);
        assert_eq!(show(&answer), show(&ours), "{} with {words:?}", show(&raw));
        if ours != b"-" {
            assert_eq!(show(&canonical(&ours, b"", &policy)), show(&ours), "not idempotent: {}", show(&raw));
        }
    }
}

#[test]
fn the_guide_lists_every_deviation() {
    let guide = include_str!("../../../../docs/urls.md");
    for line in data("key_deviations.md").lines() {
        assert!(guide.lines().any(|other| other == line), "docs/urls.md lacks: {line}");
    }
}

#[test]
fn legacy_keys_are_of_raw_text() {
    let key = |host: &str, path: &str| UrlKey { host: key::host_key(host), path: key::path_key(path) };
    assert_eq!(key::legacy("http://example.com/about", None), key("example.com", "/about"));
    assert_eq!(key::legacy("https://Example.com:80", None), key("Example.com:80", "/"));
    assert_eq!(key::legacy("https://example.com?q=1#f", None), key("example.com", "?q=1#f"));
    assert_eq!(key::legacy("https://www.example.com/a#f", Some("example.com")), key("example.com", "/a#f"));
    assert_eq!(key::legacy("", None), key("", "/"));
}

#[test]
fn wire_form_is_little_endian_host_then_path() {
    let key = UrlKey { host: 0x0102_0304_0506_0708, path: 0x1112_1314_1516_1718 };
    let bytes = [8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11];
    assert_eq!(key.to_bytes(), bytes);
    assert_eq!(UrlKey::from_bytes(bytes), key);
    assert_eq!(UrlKey::robots(7).path, 0xac1b_439a_fb68_2776);
}
