//! A lake as a user keeps it: every command of `trawl lake` and `trawl query`, and what goes wrong with them.

mod common;

use common::lakes::{ask, ingest, refuse, two_datasets, walk, write};
use common::{stderr, stdout, trawl};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

/// All URLs of a domain in a dataset.
fn urls(dir: &Path, domain: &str, dataset: &str) -> Vec<String> {
    let page = ask(dir, &["query", "urls", domain, dataset], 0).remove(0);
    page["items"].as_array().unwrap().iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect()
}

fn feed(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child =
        trawl(dir).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_walk_by_cursor_stays_on_its_version_and_tells_when_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines = |what: &str| (0..9).map(|n| format!("http://a.com/{what}{n}\n")).collect::<String>();
    write(dir, "old.txt", lines("old"));
    write(dir, "new.txt", lines("new"));
    ingest(dir, "a", &["old.txt"], &[], 0);
    let page = ask(dir, &["query", "urls", "a.com", "a", "--limit", "3"], 0).remove(0);
    assert_eq!(page["next_offset"], 3);
    let cursor = page["next_cursor"].as_str().unwrap();
    let go_on = ["query", "urls", "a.com", "a", "--limit", "3", "--cursor", cursor];
    let hint = |command: &[&str]| stderr(&trawl(dir).args(command).output().unwrap());
    assert!(hint(&go_on[..6]).contains("more with --offset 3"));
    assert!(hint(&go_on).contains("more with --cursor"), "{}", hint(&go_on));

    ingest(dir, "a", &["new.txt"], &["--replace"], 0);
    let second = ask(dir, &go_on, 0).remove(0);
    assert_eq!(second["items"][0]["url"], "http://a.com/old3");
    assert!(second["next_offset"].is_null() && second["next_cursor"].is_string());
    assert!(hint(&go_on).contains("more with --cursor"), "{}", hint(&go_on));

    ask(dir, &["lake", "gc", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s", "--yes"], 0);
    assert_eq!(ask(dir, &go_on, 1)[0]["error"], "gone");
    assert!(hint(&go_on).contains("start again"), "{}", hint(&go_on));
    let bad = ["query", "urls", "a.com", "a", "--cursor", "nonsense"];
    assert_eq!(ask(dir, &bad, 2)[0]["error"], "bad_cursor");
    assert_eq!(ask(dir, &["query", "urls", "a b", "a"], 2)[0]["error"], "bad_domain");
    assert!(refuse(dir, &bad).contains("cursor"));
}

/// `--temp-dir` is for all of an ingest: its rows and their index.
#[test]
fn nothing_temporary_is_written_into_a_lake_without_room_for_it() {
    let dir = two_datasets();
    let dir = dir.path();
    let own = dir.join("lake/tmp");
    if own.exists() {
        std::fs::remove_dir_all(&own).unwrap();
    }
    write(dir, "lake/tmp", "no directory can be made here");
    write(dir, "new.txt", "http://new.com/1\n");
    let report = ingest(dir, "c", &["new.txt"], &["--temp-dir", "elsewhere"], 0);
    assert!(report["version"].is_string(), "{report}");
    // Without it, the ingest fails before it has taken anything.
    write(dir, "newer.txt", "http://newer.com/1\n");
    refuse(dir, &["lake", "ingest", "--dataset", "d", "newer.txt"]);
    std::fs::remove_file(&own).unwrap();
    assert_eq!(urls(dir, "new.com", "c"), ["http://new.com/1"]);
}

#[test]
fn questions_and_their_exit_codes() {
    let dir = two_datasets();
    let dir = dir.path();
    let answers = ask(dir, &["query", "domain", "www.A.com.", "c.github.io", "nobody.example"], 1);
    assert_eq!(answers[0]["datasets"].as_array().unwrap().len(), 2);
    assert_eq!(answers[1]["domain"], "c.github.io");
    assert_eq!(answers[2]["error"], "unknown_domain");
    let piped = feed(dir, &["query", "domain", "-", "--json"], b"a.com\n\nb.co.uk\n");
    assert_eq!((piped.status.code(), stdout(&piped).lines().count()), (Some(0), 2));

    assert_eq!(urls(dir, "a.com", "a"), ["http://a.com/1", "http://a.com/2"]);
    let dated = ask(dir, &["query", "urls", "a.com", "b", "--from", "2026-01-01", "--until", "2026-02-01"], 0);
    assert_eq!(dated[0]["items"].as_array().unwrap().len(), 1);
    let hosted = ask(dir, &["query", "urls", "a.com", "2", "--host", "WWW.a.com", "--path-prefix", "/3"], 0);
    assert_eq!(hosted[0]["items"][0]["url"], "HTTP://WWW.a.com:80/3");
    let page = ask(dir, &["query", "urls", "a.com", "a", "--limit", "1"], 0).remove(0);
    let rest = ask(dir, &["query", "urls", "a.com", "a", "--cursor", page["next_cursor"].as_str().unwrap()], 0);
    assert_eq!(rest[0]["items"][0]["url"], "http://a.com/2");
    ask(dir, &["query", "urls", "b.co.uk", "b"], 1);
    let wrong = trawl(dir).args(["query", "urls", "a.com", "wrong"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("there are: a, b"));
    assert!(refuse(dir, &["query", "urls", "a.com", "a", "--cursor", "x"]).contains("cursor"));

    let hits = ask(dir, &["query", "url", "http://A.com/2#top"], 0).remove(0);
    let of: Vec<_> = hits["items"].as_array().unwrap().iter().map(|i| i["dataset"].as_str().unwrap()).collect();
    assert_eq!(of, ["a", "b"]);
    ask(dir, &["query", "url", "http://a.com/none"], 1);
    refuse(dir, &["query", "url", "javascript:x"]);

    let text = trawl(dir).args(["query", "diff", "a", "b", "--list", "urls", "--both", "-q"]).output().unwrap();
    assert_eq!(text.status.code(), Some(1));
    let expected = "< http://a.com/1\n= http://a.com/2\n> http://www.a.com/3\n< http://b.co.uk/x\n> http://c.github.io/x\n\
                    domains: 1 only in a, 1 only in b, 1 in both\nURLs:    2 only in a, 2 only in b, 1 in both\n";
    assert_eq!(stdout(&text), expected);
    let one = ask(dir, &["query", "diff", "a", "b", "--domain", "a.com"], 1);
    assert_eq!((one[0]["type"].as_str(), one[0]["rows_b"].as_u64()), (Some("domain"), Some(2)));
    let same = ask(dir, &["query", "diff", "a", "a"], 0);
    assert_eq!((same.len(), same[0]["urls"]["both"].as_u64()), (1, Some(3)));
    let names = ask(dir, &["query", "diff", "a", "b", "--domains-only"], 1);
    assert!(names.iter().all(|line| line.get("urls").is_none()) && names.len() == 3);
    ask(dir, &["query", "diff", "a", "9"], 1);
}

#[test]
fn taking_things_out_and_keeping_house() {
    let dir = two_datasets();
    let dir = dir.path();
    assert!(refuse(dir, &["lake", "deny", "add", "--domain", "www.a.com"]).contains("host of a.com"));
    assert!(refuse(dir, &["lake", "deny", "add"]).contains("--domain"));
    ask(dir, &["lake", "deny", "list"], 1);
    ask(
        dir,
        &["lake", "deny", "add", "--url", "HTTP://a.com:80/1", "--prefix", "http://c.github.io", "--reason", "r"],
        0,
    );
    let list = ask(dir, &["lake", "deny", "list"], 0);
    assert_eq!((&list[0]["url"], &list[1]["prefix"]), (&"http://a.com/1".into(), &"http://c.github.io/".into()));
    assert_eq!(list[1]["reason"], "r");
    assert_eq!(urls(dir, "a.com", "a"), ["http://a.com/2"]);
    ask(dir, &["query", "domain", "c.github.io"], 1);
    assert_eq!(ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"][0]["url_count_est"], 1);

    let dry = ask(dir, &["lake", "purge", "--dry-run"], 0);
    assert_eq!(dry.iter().map(|d| d["rows"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1]);
    assert!(refuse(dir, &["lake", "purge"]).contains("--yes"));
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["type"], "purged");
    assert_eq!(ask(dir, &["lake", "purge", "--yes"], 0)[0]["type"], "nothing");
    ask(dir, &["lake", "deny", "remove", "--url", "http://a.com/1", "--prefix", "http://c.github.io/"], 0);
    ask(dir, &["lake", "deny", "remove", "--url", "http://a.com/1"], 1);
    assert_eq!(urls(dir, "a.com", "a"), ["http://a.com/2"], "what was purged does not come back");

    write(dir, "more.txt", "http://a.com/2\nhttp://d.org/\n");
    ingest(dir, "a", &["more.txt"], &[], 0);
    let before = ask(dir, &["query", "domain", "a.com"], 0).remove(0)["datasets"][0].clone();
    assert_eq!((before["url_count_est"].as_u64(), before["distinct_exact"].as_bool()), (Some(2), Some(false)));
    assert_eq!(ask(dir, &["lake", "compact"], 0)[0]["type"], "nothing");
    let dry = ask(dir, &["lake", "compact", "--full", "--dry-run"], 0);
    assert_eq!((dry[0]["report"]["files_before"].as_u64(), &dry[1]["type"]), (Some(2), &"segments".into()));
    let done = ask(dir, &["lake", "compact", "--full"], 0);
    assert_eq!(done[0]["report"]["files_after"], 1);
    let after = ask(dir, &["query", "domain", "a.com"], 0).remove(0)["datasets"][0].clone();
    assert_eq!((after["distinct_urls"].as_u64(), after["distinct_exact"].as_bool()), (Some(1), Some(true)));
    assert_eq!(ask(dir, &["lake", "compact", "--full"], 0)[0]["type"], "nothing");

    let size = |dir: &Path| walk(&dir.join("lake")).len();
    let (all, gc) = (size(dir), ["lake", "gc", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s"]);
    let dry = ask(dir, &[&gc[..], &["--dry-run"]].concat(), 0);
    assert_eq!(size(dir), all);
    assert!(refuse(dir, &gc).contains("--yes"));
    let gone = ask(dir, &[&gc[..], &["--yes"]].concat(), 0);
    assert_eq!(dry.last().unwrap()["objects"], dry.len() - 1);
    assert!(dry.iter().filter_map(|d| d["path"].as_str()).all(|path| !dir.join("lake").join(path).exists()));
    // The commit that drops versions is one manifest more: the one before it may go too, unless the new one refers to it.
    let listed = dry.len() as u64 - 1;
    assert!((listed..=listed + 1).contains(&gone[0]["objects"].as_u64().unwrap()), "{listed} listed, {}", gone[0]);
    assert!(ask(dir, &["lake", "verify"], 0).iter().all(|line| line["faults"] == 0));

    assert!(refuse(dir, &["lake", "drop", "b"]).contains("--yes"));
    assert!(refuse(dir, &["lake", "drop", "wrong", "--yes"]).contains("there are: a, b"));
    assert_eq!(ask(dir, &["lake", "drop", "b", "--dry-run"], 0)[0]["rows"], 2);
    ask(dir, &["lake", "drop", "b", "--yes"], 0);
    assert_eq!(ask(dir, &["lake", "datasets"], 0).len(), 1);
    assert_eq!(ingest(dir, "b", &["b.txt"], &[], 0)["dataset_id"], 3, "numbers are not used again");
}

#[test]
fn a_damaged_index_is_found_and_rebuilt() {
    let dir = two_datasets();
    let dir = dir.path();
    let answers = |dir: &Path| {
        let mut answers = ask(dir, &["query", "domain", "a.com", "b.co.uk", "c.github.io"], 0);
        answers.iter_mut().for_each(|answer| answer["version"] = Value::Null);
        answers
    };
    let before = answers(dir);
    let victim = walk(&dir.join("lake")).into_iter().find(|path| path.ends_with("domains.mphf")).unwrap();
    let mut bytes = std::fs::read(&victim).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&victim, bytes).unwrap();
    assert!(ask(dir, &["lake", "verify"], 1).iter().any(|line| line["type"] == "fault"));
    ask(dir, &["lake", "rebuild"], 0);
    // The version before still names the damaged file, until it is collected: which one, and how, is said.
    let stats = ask(dir, &["lake", "stats"], 0).remove(0);
    let told = ask(dir, &["lake", "verify"], 1).into_iter().find(|line| line["type"] == "damaged").unwrap();
    assert_eq!(told["served"], stats["version"]);
    let versions = told["versions"].as_array().unwrap().clone();
    assert!(!versions.is_empty() && !versions.contains(&stats["version"]), "{told}");
    let text = stdout(&trawl(dir).args(["lake", "verify", "--index-only"]).output().unwrap());
    for said in versions.iter().chain([&told["served"], &told["command"]]) {
        assert!(text.contains(said.as_str().unwrap()), "{said} in {text}");
    }
    let command = told["command"].as_str().unwrap().strip_prefix("trawl ").unwrap();
    let gone = ask(dir, &command.split(' ').collect::<Vec<_>>(), 0).remove(0);
    for version in &versions {
        assert!(gone["versions"].as_array().unwrap().contains(version), "{version} in {gone}");
    }
    assert!(ask(dir, &["lake", "verify"], 0).iter().all(|line| line["type"] != "damaged"));
    let exact = |mut answers: Vec<Value>| {
        for dataset in answers.iter_mut().flat_map(|a| a["datasets"].as_array_mut().unwrap()) {
            dataset["distinct_exact"] = true.into();
        }
        answers
    };
    assert_eq!(exact(answers(dir)), exact(before));

    assert!(refuse(dir, &["lake", "rebuild", "--psl", "missing.dat"]).contains("missing.dat"));
    write(dir, "list.dat", "com\nuk\nio\n");
    ask(dir, &["lake", "rebuild", "--psl", "list.dat"], 0);
    ask(dir, &["query", "domain", "c.github.io"], 0);
    assert_eq!(ask(dir, &["query", "domain", "b.co.uk"], 0)[0]["domain"], "co.uk");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(dir.join("lake/index/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["versions"].as_array().unwrap().last().unwrap()["segments"].as_array().unwrap().len(), 1);
    ask(dir, &["lake", "verify"], 0);
}

#[test]
fn what_is_not_there_is_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for args in [
        &["lake", "stats"][..],
        &["lake", "datasets"],
        &["lake", "verify"],
        &["lake", "publish"],
        &["lake", "compact"],
        &["lake", "gc", "--yes"],
        &["lake", "rebuild"],
        &["lake", "purge", "--yes"],
        &["lake", "drop", "x", "--yes"],
        &["lake", "deny", "list"],
        &["query", "domain", "a.com"],
        &["query", "diff", "a", "b"],
    ] {
        let said = refuse(dir, args);
        assert!(said.contains("there is no lake in lake"), "{args:?}: {said}");
    }
    assert!(refuse(dir, &["lake", "ingest", "--dataset", "x", "gone.txt"]).contains("gone.txt"));
    write(dir, "what.bin", "\u{1}\u{2}\u{3}");
    assert!(refuse(dir, &["lake", "ingest", "--dataset", "x", "what.bin"]).contains("what.bin: expected a format"));
    std::fs::create_dir(dir.join("nothing")).unwrap();
    assert!(refuse(dir, &["lake", "ingest", "--dataset", "x", "nothing"]).contains("holds no files"));
    assert!(refuse(dir, &["lake", "ingest", "--dataset", "x", "no*pe"]).contains("nothing matches"));
    assert!(!dir.join("lake").exists(), "a failed ingest makes no lake");
    write(dir, "taken/file", "");
    write(dir, "a.txt", "http://a.com/\n");
    let said = refuse(dir, &["lake", "ingest", "--lake", "taken", "--dataset", "x", "a.txt"]);
    assert!(said.contains("neither a lake nor empty"), "{said}");
    // A lake that somebody was killed making is made.
    write(dir, "half/index/suffix_lists/0.dat", "");
    std::fs::create_dir(dir.join("half/index/manifests")).unwrap();
    write(dir, "half/index/manifests/.tmp-1-00000000000000000001.json", "{");
    write(dir, "half/datasets/suffix_lists/0.dat.zst", "");
    ask(dir, &["lake", "ingest", "--lake", "half", "--dataset", "x", "a.txt"], 0);
    let said = refuse(dir, &["lake", "ingest", "--dataset", " x", "a.txt"]);
    assert!(said.contains("dataset name"), "{said}");
}

/// Killed at many moments, a change of suffix lists has happened to all rows and the list, or to none.
#[test]
fn another_suffix_list_comes_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (name, start) in [("a", 0), ("b", 20_000)] {
        let text: String = (start..start + 20_000).map(|i| format!("http://h{}.github.io/{i}\n", i % 100)).collect();
        write(dir, &format!("{name}.txt"), &text);
        ingest(dir, name, &[&format!("{name}.txt")], &[], 0);
    }
    write(dir, "list.dat", "com\nio\n");
    let rebuild = ["lake", "rebuild", "--psl", "list.dat", "--quiet"];
    let counts = || {
        let answer = ask(dir, &["query", "domain", "h7.github.io"], 0).remove(0);
        let rows = |i: usize| answer["datasets"][i]["url_count_est"].as_u64().unwrap();
        (answer["domain"].as_str().unwrap().to_owned(), rows(0), rows(1))
    };
    let before = ("h7.github.io".to_owned(), 200, 200);
    let after = ("github.io".to_owned(), 20_000, 20_000);
    for part in 1..10 {
        let mut child = trawl(dir).args(rebuild).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(25 * part));
        child.kill().unwrap();
        child.wait().unwrap();
        // Publishing in between does not bring rows under a list that is not the lake's; it says so.
        let published = trawl(dir).args(["lake", "publish"]).output().unwrap();
        assert!(matches!(published.status.code(), Some(0 | 1)), "{}", stderr(&published));
        assert!([&before, &after].contains(&&counts()), "{:?}", counts());
    }
    // Taken back or finished: either way every dataset is cut by the lake's list again, and can grow.
    ask(dir, &["lake", "rebuild"], 0);
    ask(dir, &["lake", "verify"], 0);
    write(dir, "more.txt", "http://h7.github.io/more\n");
    ingest(dir, "a", &["more.txt"], &[], 0);
    ask(dir, &rebuild, 0);
    assert_eq!(counts(), (after.0, 20_001, 20_000));
    ask(dir, &["lake", "verify"], 0);
}

/// Many small pieces are merged, of the index by themselves, and answers stay as they are.
#[test]
fn many_small_pieces_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for day in 0..9 {
        write(dir, "day.txt", format!("http://a.com/{day}\nhttp://d{day}.org/\n"));
        ingest(dir, "days", &["day.txt"], &[], 0);
    }
    let segments = |dir: &Path| ask(dir, &["lake", "stats"], 0)[0]["segments"].as_u64().unwrap();
    let all: Vec<String> = (0..9).map(|day| format!("http://a.com/{day}")).collect();
    assert_eq!((segments(dir), urls(dir, "a.com", "days")), (1, all.clone()), "eight, and the ninth merged them");
    assert_eq!(ask(dir, &["lake", "compact", "--only", "segments"], 0)[0]["type"], "nothing");
    let files = ask(dir, &["lake", "compact", "--only", "files"], 0);
    assert_eq!(
        (files[0]["report"]["files_before"].as_u64(), files[0]["report"]["files_after"].as_u64()),
        (Some(9), Some(1))
    );
    assert_eq!((segments(dir), urls(dir, "a.com", "days")), (1, all));
    assert_eq!(ask(dir, &["lake", "compact"], 0)[0]["type"], "nothing");
    ask(dir, &["lake", "verify"], 0);
}
