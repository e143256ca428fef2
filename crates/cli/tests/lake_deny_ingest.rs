//! What is denied is answered nowhere, leaves with a purge, and is not taken in again.

mod common;

use common::{stderr, stdout, trawl};
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
