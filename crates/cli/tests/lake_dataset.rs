//! What a lake says of its datasets: `trawl lake dataset set`, and names that cannot be taken for something else.

mod common;

use common::lakes::{ask, ingest, refuse, two_datasets, write};
use common::{stderr, stdout, trawl};
use serde_json::{Value, json};
use std::path::Path;

fn of(dir: &Path, name: &str) -> Value {
    let datasets = ask(dir, &["lake", "datasets"], 0);
    datasets.into_iter().find(|dataset| dataset["name"] == name).unwrap_or_default()
}

fn set(dir: &Path, args: &[&str]) -> Value {
    ask(dir, &[&["lake", "dataset", "set"], args].concat(), 0).remove(0)
}

#[test]
fn what_is_set_is_shown_and_outlives_the_index() {
    let dir = two_datasets();
    let dir = dir.path();
    assert_eq!(of(dir, "a")["acl"], "public");
    write(dir, "schema.json", r#"{"type":"object"}"#);
    let done = set(
        dir,
        &[
            "a",
            "--principal",
            "press",
            "--principal",
            "alice",
            "--source",
            "feeds",
            "--archive-base",
            "s3://x/",
            "--extras-schema",
            "schema.json",
            "--rename",
            "news",
        ],
    );
    let shown = json!({
        "acl": {"principals": ["alice", "press"]}, "source": "feeds", "archive_base": ["s3://x/"],
        "extras_schema": {"type": "object"}, "name": "news", "dataset_id": 1, "type": "dataset", "changed": true,
    });
    assert_eq!(done, shown);
    let check = || {
        let news = of(dir, "news");
        for key in ["acl", "source", "archive_base", "extras_schema", "dataset_id"] {
            assert_eq!(news[key], shown[key], "{key}");
        }
        assert!(of(dir, "a").is_null() && of(dir, "b")["acl"] == "public");
        assert_eq!(ask(dir, &["query", "urls", "a.com", "news"], 0)[0]["total_est"], 2);
    };
    check();
    // A note is nothing that waits, and nothing that is asked for twice is done twice.
    assert!(ask(dir, &["lake", "verify"], 0).iter().all(|line| line["waits"] != true));
    assert_eq!(set(dir, &["news", "--source", "feeds"])["changed"], false);
    ingest(dir, "news", &["b.txt"], &[], 0);
    std::fs::remove_dir_all(dir.join("lake/index")).unwrap();
    ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(of(dir, "news")["acl"], shown["acl"]);
    ingest(dir, "c", &["b.txt"], &[], 0);

    // What is empty goes; by number it works as well.
    let cleared = set(dir, &["1", "--source", "", "--archive-base", "", "--extras-schema", "", "--public"]);
    assert!(cleared["source"].is_null() && cleared["archive_base"].is_null() && cleared["extras_schema"].is_null());
    assert_eq!(cleared["acl"], "public");
    let hidden = trawl(dir).args(["lake", "dataset", "set", "news", "--hidden"]).output().unwrap();
    assert_eq!(stdout(&hidden), "dataset 1 news\nseen by   nobody\n");
    ask(dir, &["lake", "verify"], 0);
}

#[test]
fn what_cannot_be_set_is_refused() {
    let dir = two_datasets();
    let dir = dir.path();
    write(dir, "no.json", "7");
    for (args, says) in [
        (&["a"][..], "required"),
        (&["a", "--public", "--hidden"], "cannot be used with"),
        (&["a", "--rename", "b"], "already"),
        (&["a", "--rename", "2"], "number"),
        (&["a", "--rename", "x\u{202e}y"], "dataset name"),
        (&["a", "--archive-base", "archive"], "URI"),
        (&["a", "--extras-schema", "no.json"], "JSON Schema"),
        (&["a", "--extras-schema", "none.json"], "none.json"),
        (&["wrong", "--public"], "there are: a, b"),
    ] {
        let said = refuse(dir, &[&["lake", "dataset", "set"], args].concat());
        assert!(said.contains(says), "{args:?}: {said}");
    }
    for name in ["1", "007", "a\u{1b}[2J", "a\u{202e}b"] {
        refuse(dir, &["lake", "ingest", "--dataset", name, "a.txt"]);
    }
    assert_eq!(ask(dir, &["lake", "datasets"], 0).len(), 2);
}

/// `+2` is an allowed name, one sign away from the number of another dataset.
#[test]
fn only_plain_digits_are_the_number_of_a_dataset() {
    let dir = two_datasets();
    let dir = dir.path();
    ingest(dir, "+2", &["a.txt"], &[], 0);
    assert_eq!(ask(dir, &["lake", "drop", "+2", "--yes"], 0)[0]["dataset"], "+2");
    for wrong in ["+2", "02", " 2"] {
        for args in [
            &["lake", "drop", wrong, "--yes"][..],
            &["lake", "deny", "add", "--dataset", wrong],
            &["lake", "dataset", "set", wrong, "--hidden"],
        ] {
            let said = refuse(dir, args);
            assert!(said.contains(&format!("there is no dataset {wrong:?}")), "{args:?}: {said}");
        }
        assert_eq!(ask(dir, &["query", "urls", "a.com", wrong], 1)[0]["error"], "unknown_dataset");
    }
    ask(dir, &["lake", "deny", "add", "--dataset", "2"], 0);
    refuse(dir, &["lake", "deny", "remove", "--dataset", "+2"]);
    assert_eq!(ask(dir, &["lake", "deny", "list"], 0).len(), 1);
    ask(dir, &["lake", "deny", "remove", "--dataset", "2"], 0);
    assert_eq!(ask(dir, &["lake", "datasets"], 0).len(), 2);
    assert_eq!(ask(dir, &["query", "urls", "a.com", "2"], 0)[0]["total_est"], 2);
}

#[test]
fn texts_of_others_move_no_cursor() {
    let dir = two_datasets();
    let dir = dir.path();
    let evil = "x\u{1b}[2J\ny\u{202e}";
    set(dir, &["a", "--source", evil, "--principal", evil]);
    ask(dir, &["lake", "deny", "add", "--url", "http://a.com/1", "--reason", evil], 0);
    let file = "e\u{1b}[2J.txt";
    write(dir, file, "http://a.com/4\n");
    for args in [
        &["lake", "datasets"][..],
        &["lake", "deny", "list"],
        &["lake", "dataset", "set", "a", "--source", evil],
        &["lake", "ingest", "--dataset", "a", file],
        &["lake", "ingest", "--dataset", "a", file],
        &["lake", "ingest", "--dataset", "a", "none\u{1b}[2J.txt"],
    ] {
        let output = trawl(dir).args(args).output().unwrap();
        let said = stdout(&output) + &stderr(&output);
        assert!(!said.contains(['\u{1b}', '\u{202e}']) && !said.contains("\ny"), "{args:?}: {said:?}");
    }
}
