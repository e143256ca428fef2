//! Records of a lake that are gone: nothing is lost silently, nothing is answered that was taken down.

mod common;

use common::lakes::{ask, ingest, refuse, walk, write};
use std::path::Path;
use tempfile::TempDir;

/// A dataset of two commits, three and six URLs, each published.
fn two_commits() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, numbers) in [("one.txt", 1..4), ("two.txt", 4..10)] {
        write(dir.path(), name, numbers.map(|n| format!("https://a.com/{n}\n")).collect::<String>());
        ingest(dir.path(), "d", &[name], &[], 0);
    }
    write(dir.path(), "three.txt", "https://new.com/\n");
    dir
}

fn lose(dir: &Path, path: &str) {
    std::fs::remove_file(dir.join("lake").join(path)).unwrap();
}

fn rows(dir: &Path, domain: &str) -> u64 {
    let lines = ask(dir, &["query", "domain", domain], 0);
    lines[0]["datasets"].as_array().unwrap().iter().map(|d| d["url_count_est"].as_u64().unwrap()).sum()
}

fn faults(dir: &Path, more: &[&str]) -> String {
    let lines = ask(dir, &[&["lake", "verify"], more].concat(), 1);
    let told = lines.iter().filter(|l| l["type"] == "fault").map(|l| l["fault"].as_str().unwrap());
    told.collect::<Vec<_>>().join("\n")
}

const COMMITS: &str = "datasets/1/commits";

const COPY: &str = "datasets/1/commit.json";

#[test]
fn a_lost_commit_comes_back_from_its_copy() {
    for ask_first in [true, false] {
        let dir = two_commits();
        let dir = dir.path();
        lose(dir, &format!("{COMMITS}/0000000002.json"));
        assert!(faults(dir, &[]).contains("0000000002.json"));
        if ask_first {
            let lines = ask(dir, &["lake", "rebuild"], 0);
            assert_eq!((&lines[0]["type"], &lines[0]["from"]), (&"mended".into(), &"copy".into()), "{lines:?}");
        }
        // Whoever writes next puts it back, too; and what it had taken is not taken again.
        ingest(dir, "d", &["one.txt", "two.txt", "three.txt"], &[], 0);
        assert_eq!((rows(dir, "a.com"), rows(dir, "new.com")), (9, 1));
        ask(dir, &["lake", "verify"], 0);
    }
}

/// Loses commits and their copy.
fn lose_commits(dir: &Path, lost: &[&str]) {
    lost.iter().for_each(|name| lose(dir, &format!("{COMMITS}/{name}")));
    lose(dir, COPY);
}

#[test]
fn without_its_copy_a_lost_commit_stops_writers_and_is_found_again_from_the_index() {
    for lost in [&["0000000002.json"][..], &["0000000001.json", "0000000002.json"]] {
        let dir = two_commits();
        let dir = dir.path();
        lose_commits(dir, lost);
        let before = walk(&dir.join("lake/urls"));
        for args in [
            &["lake", "ingest", "--dataset", "d", "three.txt"][..],
            &["lake", "ingest", "--dataset", "d", "--replace", "three.txt"],
            &["lake", "compact", "--full", "--only", "files"],
            &["lake", "dataset", "set", "d", "--source", "x"],
        ] {
            let told = refuse(dir, args);
            assert!(told.contains("0000000002.json") && told.contains("lake rebuild"), "{args:?}: {told}");
        }
        ask(dir, &["lake", "publish"], 1);
        for more in [&[][..], &["--index-only"]] {
            assert!(faults(dir, more).contains("0000000002.json"));
        }
        let summary =
            ask(dir, &["lake", "gc", "--yes", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s"], 0);
        assert!(summary[0]["damaged"][0].as_str().unwrap().contains("0000000002.json"));
        assert_eq!(walk(&dir.join("lake/urls")), before);
        assert_eq!(rows(dir, "a.com"), 9);

        let lines = ask(dir, &["lake", "rebuild"], 0);
        let from_index = |line: &&serde_json::Value| line["from"] == "index" && line["sources_forgotten"] == true;
        assert!(lines.iter().any(|line| from_index(&line)), "{lines:?}");
        assert_eq!(rows(dir, "a.com"), 9);
        ask(dir, &["lake", "gc", "--yes", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s"], 0);
        ask(dir, &["lake", "verify"], 0);
        ingest(dir, "d", &["three.txt"], &[], 0);
        assert_eq!((rows(dir, "a.com"), rows(dir, "new.com")), (9, 1));
    }
}

/// Not even the index knows what the commits had.
#[test]
fn what_nothing_tells_of_is_lost_when_that_is_accepted() {
    for lost in [&["0000000002.json"][..], &["0000000001.json", "0000000002.json"]] {
        let dir = two_commits();
        let dir = dir.path();
        lose_commits(dir, lost);
        for path in walk(&dir.join("lake/index")).into_iter().filter(|path| path.ends_with("files.tsv.zst")) {
            std::fs::remove_file(path).unwrap();
        }
        assert!(refuse(dir, &["lake", "rebuild"]).contains("--accept-loss"));
        let left = 2 - lost.len() as u64;
        let lines = ask(dir, &["lake", "rebuild", "--accept-loss"], 1);
        let told = lines.iter().find(|line| line["type"] == "lost").unwrap();
        assert_eq!((&told["left"], &told["commit"]), (&left.into(), &3.into()));
        // The sources that came with what is lost come in again.
        ingest(dir, "d", &["one.txt", "two.txt", "three.txt"], &[], 0);
        assert_eq!((rows(dir, "a.com"), rows(dir, "new.com")), (9, 1));
        ask(dir, &["lake", "gc", "--yes", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s"], 0);
        ask(dir, &["lake", "verify"], 0);
        assert_eq!(rows(dir, "a.com"), 9);
    }
}

#[test]
fn a_dataset_that_lost_commits_can_be_dropped() {
    let dir = two_commits();
    let dir = dir.path();
    lose_commits(dir, &["0000000002.json"]);
    ask(dir, &["lake", "drop", "d", "--yes"], 0);
    ingest(dir, "d", &["three.txt"], &[], 0);
    assert_eq!(rows(dir, "new.com"), 1);
}

/// Earlier programs used the number of a lost commit again.
#[test]
fn a_commit_of_other_files_than_the_index_has_is_a_fault() {
    let dir = two_commits();
    let dir = dir.path();
    let commits = dir.join("lake").join(COMMITS);
    let first = std::fs::read_to_string(commits.join("0000000001.json")).unwrap();
    let bare = format!("{}\n}}\n", first.rsplit_once(",\n  \"checksum\"").unwrap().0);
    std::fs::write(commits.join("0000000002.json"), bare.replace("\"sequence\": 1,", "\"sequence\": 2,")).unwrap();
    lose(dir, COPY);
    for more in [&[][..], &["--index-only"]] {
        assert!(faults(dir, more).contains("answers from 1 files that it does not name"));
    }
    ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(rows(dir, "a.com"), 3);
}

fn newest_manifest(dir: &Path) -> String {
    let name = walk(&dir.join("lake/index/manifests")).pop().unwrap();
    format!("index/manifests/{}", name.file_name().unwrap().to_str().unwrap())
}

#[test]
fn what_was_denied_stays_denied_when_the_newest_manifest_is_lost() {
    let secret = "https://a.com/1";
    for copy_too in [false, true] {
        let dir = two_commits();
        let dir = dir.path();
        ask(dir, &["lake", "deny", "add", "--url", secret], 0);
        let lost = newest_manifest(dir);
        lose(dir, &lost);
        if copy_too {
            lose(dir, "index/manifest.json");
            // Nothing but the record of the list tells of it.
            assert!(faults(dir, &[]).contains("datasets/deny/0000000001.json"));
            assert!(refuse(dir, &["lake", "ingest", "--dataset", "d", "three.txt"]).contains(&lost));
            let lines = ask(dir, &["lake", "rebuild"], 0);
            assert_eq!((&lines[0]["type"], &lines[0]["deny"]), (&"deny_recovered".into(), &1.into()));
        } else {
            ask(dir, &["query", "url", secret], 1);
            assert!(faults(dir, &[]).contains(&lost));
        }
        ingest(dir, "e", &["three.txt"], &[], 0);
        ask(dir, &["query", "url", secret], 1);
        assert_eq!(ask(dir, &["lake", "deny", "list"], 0).len(), 1);
        assert_eq!(rows(dir, "a.com"), 8);
        ask(dir, &["lake", "verify"], 0);
    }
}

#[test]
fn a_lost_suffix_list_is_written_anew_or_asked_for() {
    let dir = two_commits();
    let dir = dir.path();
    let list = walk(&dir.join("lake/index/suffix_lists")).pop().unwrap();
    let copies = dir.join("lake/datasets/suffix_lists");
    let whole = std::fs::read(&list).unwrap();
    // The copy counts; without it only the list compiled in may be the same.
    std::fs::remove_file(&list).unwrap();
    assert_eq!(rows(dir, "a.com"), 9);
    assert!(faults(dir, &[]).contains("index/suffix_lists"));
    ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(std::fs::read(&list).unwrap(), whole);
    for damage in [None, Some("com\n")] {
        std::fs::remove_dir_all(&copies).unwrap();
        std::fs::remove_file(&list).unwrap();
        damage.into_iter().for_each(|text| std::fs::write(&list, text).unwrap());
        refuse(dir, &["query", "domain", "a.com"]);
        ask(dir, &["lake", "rebuild"], 0);
        assert_eq!(std::fs::read(&list).unwrap(), whole);
        assert_eq!(rows(dir, "a.com"), 9);
    }
    write(dir, "short.dat", "com\n");
    ask(dir, &["lake", "rebuild", "--psl", "short.dat"], 0);
    let short = walk(&dir.join("lake/index/suffix_lists"));
    let short = short.iter().find(|path| std::fs::read(path).unwrap() == b"com\n").unwrap();
    for damage in [None, Some("net\n")] {
        std::fs::remove_dir_all(&copies).unwrap();
        std::fs::remove_file(short).unwrap();
        damage.into_iter().for_each(|text| std::fs::write(short, text).unwrap());
        assert!(refuse(dir, &["lake", "rebuild"]).contains("--psl FILE"));
        ask(dir, &["lake", "rebuild", "--psl", "short.dat"], 0);
        assert_eq!(rows(dir, "a.com"), 9);
    }
}
