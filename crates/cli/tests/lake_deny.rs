//! What is denied stays unanswered: under other suffix lists, in rejects, and only what was asked for.

mod common;

use common::lakes::{ask, refuse, two_datasets, walk, write};
use common::{stderr, stdout, trawl};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

/// A lake with one dataset `d` of these lines.
fn lake(source: &str, text: &str, code: i32) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), source, text);
    ask(dir.path(), &["lake", "ingest", "--dataset", "d", source], code);
    dir
}

/// Writes a list that knows nothing of github.io, and the one that the program carries.
fn lists(dir: &Path) {
    std::fs::write(dir.join("short.dat"), "com\nio\nuk\norg\nnet\n").unwrap();
    std::fs::write(dir.join("full.dat"), trawl_url::SuffixList::builtin().text()).unwrap();
}

#[test]
fn a_denied_domain_stays_denied_under_a_shorter_list() {
    let dir = lake("in.txt", "https://octo.github.io/s\nhttps://a.octo.github.io/t\nhttps://other.github.io/o\n", 0);
    let dir = dir.path();
    lists(dir);
    ask(dir, &["lake", "deny", "add", "--domain", "octo.github.io"], 0);
    ask(dir, &["lake", "rebuild", "--psl", "short.dat"], 0);
    ask(dir, &["query", "url", "https://octo.github.io/s"], 1);
    let page = ask(dir, &["query", "urls", "github.io", "d"], 0).remove(0);
    assert_eq!((page["total_est"].as_u64(), page["items"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(page["items"][0]["url"], "https://other.github.io/o");
    assert_eq!(ask(dir, &["query", "domain", "octo.github.io"], 0)[0]["datasets"][0]["url_count_est"], 1);
    let diff = ask(dir, &["query", "diff", "d", "d", "--list", "urls", "--both"], 0);
    assert!(!diff.iter().any(|line| line.to_string().contains("octo")), "{diff:?}");

    assert_eq!(ask(dir, &["lake", "purge", "--dry-run"], 0)[0]["rows"], 2);
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["rows"], 2);
    ask(dir, &["lake", "deny", "remove", "--domain", "octo.github.io"], 0);
    ask(dir, &["lake", "deny", "remove", "--domain", "octo.github.io"], 1);
    ask(dir, &["query", "url", "https://octo.github.io/s"], 1);
    assert_eq!(ask(dir, &["query", "urls", "github.io", "d"], 0)[0]["total_est"], 1);
}

#[test]
fn a_denied_domain_stays_denied_under_a_longer_list() {
    let dir = lake("in.txt", "https://octo.github.io/s\nhttps://github.io/\nhttps://zap.org/\n", 0);
    let dir = dir.path();
    lists(dir);
    ask(dir, &["lake", "rebuild", "--psl", "short.dat"], 0);
    ask(dir, &["lake", "deny", "add", "--domain", "github.io"], 0);
    ask(dir, &["lake", "rebuild", "--psl", "full.dat"], 0);
    ask(dir, &["query", "url", "https://octo.github.io/s"], 1);
    ask(dir, &["query", "domain", "octo.github.io"], 1);
    ask(dir, &["query", "urls", "octo.github.io", "d"], 1);
    assert_eq!(ask(dir, &["lake", "purge", "--dry-run"], 0)[0]["rows"], 2);
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["rows"], 2);
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["type"], "nothing");
    ask(dir, &["query", "domain", "zap.org"], 0);
}

/// `*.sch.uk` makes `essex.sch.uk` a suffix without naming it.
#[test]
fn a_suffix_that_a_wildcard_stands_for_is_denied_with_all_below_it() {
    let dir = lake("in.txt", "https://hilltop.essex.sch.uk/1\nhttps://hilltop.essex.sch.uk/2\n", 0);
    let dir = dir.path();
    let add = ["lake", "deny", "add", "--domain", "essex.sch.uk"];
    let refused = trawl(dir).args(add).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    ask(dir, &[&add[..], &["--suffix"]].concat(), 0);
    ask(dir, &["query", "domain", "hilltop.essex.sch.uk"], 1);
    let dataset = ask(dir, &["lake", "datasets"], 0).remove(0);
    assert_eq!((dataset["rows"].as_u64(), dataset["denied_rows"].as_u64()), (Some(0), Some(2)));
    // Of the file nothing but the names of schools is known, and none of these is on the list.
    assert_eq!(ask(dir, &["lake", "purge", "--dry-run"], 0)[0]["rows"], 2);
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["rows"], 2);
}

#[test]
fn purge_takes_denied_rejects_and_no_others() {
    let lines = "https://bücher.example:99999/secret1\nhttps://www.zap.org:99999/secret2\nhttps://keep.org:99999/\n\
                 https://bigzap.org:99999/\nhttps://fine.org/\n";
    let dir = lake("zap.org/in.txt", lines, 1);
    let dir = dir.path();
    let rejects = || {
        let files = walk(&dir.join("lake/datasets/1/rejects"));
        files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>()
    };
    assert_eq!(rejects().lines().count(), 4);
    ask(dir, &["lake", "deny", "add", "--domain", "bücher.example", "--domain", "zap.org"], 0);
    let dry = ask(dir, &["lake", "purge", "--dry-run"], 0).remove(0);
    assert_eq!((dry["rows"].as_u64(), dry["rejects"].as_u64()), (Some(0), Some(2)));
    assert_eq!(rejects().lines().count(), 4, "a dry run changes nothing");
    let done = ask(dir, &["lake", "purge", "--yes"], 0).remove(0);
    assert_eq!((done["rows"].as_u64(), done["rejects"].as_u64()), (Some(0), Some(2)));
    let left = rejects();
    assert!(!left.contains("secret"), "{left}");
    assert_eq!(left.lines().count(), 2, "{left}");
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["type"], "nothing");
}

#[test]
fn a_prefix_that_would_deny_something_else_is_refused() {
    let dir = lake("in.txt", "https://www.example.com/abc\nhttps://www.example.com/p%20q\n", 0);
    let dir = dir.path();
    for end in ["/a?", "/d/..", "/p%2", "/p%"] {
        let prefix = format!("https://www.example.com{end}");
        let output = trawl(dir).args(["lake", "deny", "add", "--prefix", &prefix]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{prefix}");
        assert!(stderr(&output).contains("cannot be a prefix"), "{}", stderr(&output));
    }
    ask(dir, &["lake", "deny", "list"], 1);
    ask(dir, &["lake", "deny", "add", "--prefix", "https://www.example.com/p%20"], 0);
    assert_eq!(ask(dir, &["query", "urls", "example.com", "d"], 0)[0]["total_est"], 1);
}

#[test]
fn pages_and_totals_count_what_is_shown() {
    let lines: Vec<String> =
        (0..13).map(|n| format!("https://x.com/{}/{n:02}\n", if n < 11 { "b" } else { "a" })).collect();
    let dir = lake("in.txt", &lines.concat(), 0);
    let dir = dir.path();
    ask(dir, &["lake", "deny", "add", "--prefix", "https://x.com/a/", "--url", "https://x.com/b/05"], 0);
    let mut seen = Vec::new();
    let mut offset = 0;
    loop {
        let page =
            ask(dir, &["query", "urls", "x.com", "d", "--limit", "3", "--offset", &offset.to_string()], 0).remove(0);
        assert_eq!(page["total_est"], 10);
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), 3.min(10 - offset), "offset {offset}");
        seen.extend(items.iter().map(|item| item["url"].as_str().unwrap().to_owned()));
        offset += items.len();
        match page["next_offset"].as_u64() {
            Some(next) => assert_eq!(next as usize, offset),
            None => break,
        }
    }
    assert_eq!(seen.len(), 10);
    assert!(!seen.iter().any(|url| url.contains("/a/") || url.ends_with("05")));
    let past = ask(dir, &["query", "urls", "x.com", "d", "--limit", "3", "--offset", "10"], 0).remove(0);
    assert!(past["items"].as_array().unwrap().is_empty() && past["next_offset"].is_null());
}

#[test]
fn a_suffix_is_denied_only_when_that_is_meant() {
    let dir = lake("in.txt", "https://a.com/\nhttps://b.com/x\nhttps://octo.github.io/\nhttp://[2001:db8::1]/\n", 0);
    let dir = dir.path();
    for name in ["com", "COM.", "github.io", "io", "xn--p1ai"] {
        let output = trawl(dir).args(["lake", "deny", "add", "--domain", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains("--suffix"), "{}", stderr(&output));
    }
    ask(dir, &["lake", "deny", "list"], 1);
    ask(dir, &["lake", "deny", "add", "--domain", "2001:db8::1", "--domain", "octo.github.io"], 0);
    ask(dir, &["lake", "deny", "add", "--domain", "com", "--suffix"], 0);
    ask(dir, &["query", "domain", "b.com"], 1);
    let stats = ask(dir, &["lake", "stats"], 0).remove(0);
    assert_eq!(
        (stats["rows"].as_u64(), stats["denied_rows"].as_u64(), stats["domains"].as_u64()),
        (Some(0), Some(4), Some(0))
    );
    let text = stdout(&trawl(dir).args(["lake", "stats"]).output().unwrap());
    assert!(text.contains("\ndenied    4 rows"), "{text}");
    let text = stdout(&trawl(dir).args(["lake", "datasets"]).output().unwrap());
    assert!(text.contains("(and 4 denied)"), "{text}");
    // No flag is needed to take it off.
    ask(dir, &["lake", "deny", "remove", "--domain", "com"], 0);
    assert_eq!(ask(dir, &["lake", "datasets"], 0)[0]["rows"], 2);
}

#[test]
fn many_entries_by_the_lines_of_a_file() {
    let dir = two_datasets();
    let dir = dir.path();
    write(dir, "bad.txt", "zap.org\n\nhttps://a.com/p?\nhttp://\n");
    let refused = refuse(dir, &["lake", "deny", "add", "--from", "bad.txt"]);
    assert!(refused.contains("bad.txt line 3"), "{refused}");
    write(dir, "suffix.txt", "# below it are others\ngithub.io\n");
    assert!(refuse(dir, &["lake", "deny", "add", "--from", "suffix.txt"]).contains("suffix.txt line 2"));
    assert!(refuse(dir, &["lake", "deny", "add", "--from", "none.txt"]).contains("cannot read none.txt"));
    ask(dir, &["lake", "deny", "list"], 1);

    let kinds =
        "\u{feff}# taken down\n\nzap.org\nZAP.org\nhttp://a.com/1\nurl http://a.com/2\r\ndomain b.co.uk\ndataset b\n";
    write(dir, "kinds.txt", kinds);
    let added = ask(dir, &["lake", "deny", "add", "--from", "kinds.txt", "--domain", "own.org", "--reason", "7"], 0);
    let listed = ask(dir, &["lake", "deny", "list"], 0);
    let targets = |lines: &[Value]| {
        let of = |line: &Value| ["domain", "prefix", "url", "dataset"].map(|kind| line[kind].clone());
        lines.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!((targets(&added), listed.len()), (targets(&listed), 6), "each once");
    assert!(listed.iter().all(|line| line["reason"] == "7"));
    ask(dir, &["query", "domain", "a.com"], 1);
    ask(dir, &["lake", "deny", "remove", "--from", "kinds.txt"], 0);
    ask(dir, &["lake", "deny", "remove", "--from", "kinds.txt"], 1);
    assert_eq!(ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"].as_array().unwrap().len(), 2);

    // Many through a pipe, told by their number; what is listed is answered nowhere.
    let mut lines: String = (0..20_000).map(|n| format!("many-{n}.example\n")).collect();
    lines.push_str("a.com\n");
    let pipe = |args: &[&str]| {
        let mut child = trawl(dir).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        stdout(&child.wait_with_output().unwrap())
    };
    assert_eq!(pipe(&["lake", "deny", "add", "--from", "-"]), "denied 20,001 entries\n");
    assert_eq!(pipe(&["lake", "deny", "add", "--from", "-"]), "denied 0 entries\n");
    ask(dir, &["query", "domain", "a.com"], 1);
    ask(dir, &["query", "domain", "b.co.uk"], 0);
    assert_eq!(pipe(&["lake", "deny", "remove", "--from", "-"]), "no longer denied: 20,001 entries\n");
    ask(dir, &["query", "domain", "a.com"], 0);
}
