//! What is denied is answered nowhere, leaves with a purge, and is not taken in again.

mod common;

use common::{feed, stderr, stdout, trawl};
use serde_json::Value;
use std::path::Path;

/// Runs `trawl ARGS --json --quiet` and wants this exit code; its lines.
fn ask(dir: &Path, args: &[&str], code: i32) -> Vec<Value> {
    let output = trawl(dir).args(["--json", "--quiet"]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_prefix_with_a_query_covers_every_order_of_parameters() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let urls = "https://e.com/a?b=2&a=1\nhttps://e.com/a?a=1&b=20\nhttps://e.com/a?a=1\nhttps://e.com/ab?b=2\n";
    std::fs::write(dir.join("u.txt"), urls).unwrap();
    ask(dir, &["lake", "ingest", "--dataset", "d", "u.txt"], 0);
    ask(dir, &["lake", "deny", "add", "--prefix", "https://e.com/a?b=2"], 0);
    let shown = || {
        let answer = ask(dir, &["query", "urls", "e.com", "d"], 0);
        let urls = answer[0]["items"].as_array().unwrap().iter().map(|item| item["url"].as_str().unwrap().to_owned());
        (answer[0]["total_est"].clone(), urls.collect::<Vec<_>>())
    };
    let left = (2.into(), vec!["https://e.com/a?a=1".to_owned(), "https://e.com/ab?b=2".to_owned()]);
    assert_eq!(shown(), left);
    let purged = ask(dir, &["lake", "purge", "--yes"], 0);
    assert_eq!(purged[0]["rows"], 2);
    assert_eq!(shown(), left);
    ask(dir, &["lake", "deny", "remove", "--prefix", "HTTPS://e.com/a?b=2"], 0);
    assert_eq!(shown(), left, "the rows are gone");
}

#[test]
fn what_was_purged_does_not_come_back() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let text = "https://zap.org/1\nhttps://keep.org/2\nhttps://sub.zap.org:99999/\n";
    std::fs::write(dir.join("u.txt"), text).unwrap();
    ask(dir, &["lake", "ingest", "--dataset", "d", "u.txt"], 1);
    ask(dir, &["lake", "ingest", "--dataset", "whole", "u.txt"], 1);
    ask(dir, &["lake", "deny", "add", "--domain", "zap.org", "--dataset", "whole"], 0);
    ask(dir, &["lake", "purge", "--dataset", "d", "--yes"], 0);
    std::fs::write(dir.join("again.txt"), text).unwrap();
    for more in [&["again.txt"][..], &["--replace", "u.txt"]] {
        let report = ask(dir, &[&["lake", "ingest", "--dataset", "d"], more].concat(), 0).remove(0);
        assert_eq!((&report["rows"], &report["denied"], &report["rejected"]), (&1.into(), &2.into(), &0.into()));
        assert_eq!(report["denied_since"], 0);
    }
    let purged = ask(dir, &["lake", "purge", "--dataset", "d", "--dry-run"], 0);
    assert_eq!(purged[0]["type"], "nothing", "nothing denied came in");
    let output = trawl(dir).args(["lake", "ingest", "--dataset", "d", "--replace", "again.txt"]).output().unwrap();
    assert!(stdout(&output).contains("left out 2: denied"), "{}", stdout(&output));
    let refused = trawl(dir).args(["lake", "ingest", "--dataset", "whole", "again.txt"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("denied"), "{}", stderr(&refused));
}

#[test]
fn an_empty_pipe_is_an_empty_source() {
    let scratch = tempfile::tempdir().unwrap();
    for input in ["", "# nothing today\n"] {
        let mut command = trawl(scratch.path());
        command.args(["--json", "--quiet", "lake", "ingest", "--dataset", "d", "-"]);
        let output = feed(command, input.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let left: Vec<_> = std::fs::read_dir(scratch.path().join("lake/tmp")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_denied_dataset_does_not_come_back_by_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    std::fs::write(dir.join("u.txt"), "https://a.org/1\n").unwrap();
    ask(dir, &["lake", "ingest", "--dataset", "a", "u.txt"], 0);
    ask(dir, &["lake", "deny", "add", "--dataset", "a"], 0);
    ask(dir, &["lake", "purge", "--yes"], 0);
    let refused = trawl(dir).args(["lake", "ingest", "--dataset", "a", "u.txt"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("deny remove --dataset 1"), "{}", stderr(&refused));
    ask(dir, &["query", "domain", "a.org"], 1);
    ask(dir, &["lake", "deny", "remove", "--dataset", "1"], 0);
    ask(dir, &["lake", "ingest", "--dataset", "a", "u.txt"], 0);
}

#[test]
fn directories_with_other_things_in_them() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    std::fs::create_dir(dir.join("in")).unwrap();
    for (name, text) in [("u.txt", "https://a.org/1\n"), ("in/v.txt", "https://a.org/2\n"), ("in/x.csv", "id,n\n1,2\n")]
    {
        std::fs::write(dir.join(name), text).unwrap();
    }
    for _ in 0..2 {
        // The lake lies in the directory that is read.
        let report = ask(dir, &["lake", "ingest", "--dataset", "d", "."], 0).remove(0);
        assert_eq!(report["rejected"], 0);
        let ignored = report["ignored"].as_array().unwrap();
        assert!(ignored.len() == 1 && ignored[0].as_str().unwrap().ends_with("x.csv"), "{ignored:?}");
    }
    assert_eq!(ask(dir, &["lake", "datasets"], 0)[0]["rows"], 2);
    let named = trawl(dir).args(["lake", "ingest", "--dataset", "d", "in/x.csv"]).output().unwrap();
    assert_eq!(named.status.code(), Some(2), "what was named is wanted");
    let put = |text: &str| {
        std::fs::write(dir.join("u.txt"), text).unwrap();
        trawl(dir).args(["lake", "ingest", "--dataset", "d", "u.txt"]).output().unwrap()
    };
    let grown = put("https://a.org/1\nhttps://a.org/3\n");
    assert!(stdout(&grown).contains("u.txt has grown since it was ingested with 16 bytes"), "{}", stdout(&grown));
    let changed = put("https://a.org/2\nhttps://a.org/3\n");
    assert!(stderr(&changed).contains("u.txt has changed"), "{}", stderr(&changed));
    let empty = trawl(dir).args(["lake", "ingest", "--dataset", "d", "--replace", "-"]).output().unwrap();
    assert_eq!(empty.status.code(), Some(2), "{}", stdout(&empty));
    assert!(stderr(&empty).contains("no rows"), "{}", stderr(&empty));
}

#[test]
fn texts_of_people_and_names_of_files_forge_no_lines() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let file = "a\n\u{1b}[2J.txt";
    std::fs::write(dir.join(file), "https://a.org/1\n").unwrap();
    let text = |args: &[&str]| stdout(&trawl(dir).arg("--quiet").args(args).output().unwrap());
    text(&["lake", "ingest", "--dataset", "d", "--source", "x\n\u{1b}[2J", file]);
    text(&["lake", "deny", "add", "--domain", "b.org", "--reason", "y\nz"]);
    let printed = [
        text(&["lake", "ingest", "--dataset", "d", file]),
        text(&["lake", "datasets"]),
        text(&["lake", "deny", "list"]),
    ];
    assert!(printed[0].contains(r"a\n\u{1b}[2J.txt: the dataset has it already"), "{}", printed[0]);
    for (text, lines) in printed.iter().zip([3, 1, 1]) {
        assert_eq!((text.lines().count(), text.contains('\u{1b}')), (lines, false), "{text}");
    }
}
