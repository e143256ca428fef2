//! `trawl nutch` prints what the real tools print: the fixtures of the format crate, through the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use trawl_nutch::class::CRAWL_DATUM;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/nutch/tests/fixtures").join(path)
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(fixture("expected/crawl-e2e/tools").join(name)).unwrap()
}

/// Runs `trawl nutch` in the directory of the crawl, as the reference ran.
fn nutch(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.arg("nutch").args(args).current_dir(fixture("crawl-e2e")).output().unwrap()
}

fn stdout(args: &[&str], code: i32) -> String {
    let output = nutch(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A link to a directory is what it leads to, as for Hadoop: nothing behind it may be left out without a word.
#[test]
fn links_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for name in [
        "segments/20261115074402",
        "segments/20261115074416",
        "crawldb/current/part-r-00000",
        "crawldb/current/part-r-00001",
    ] {
        let link = dir.path().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(fixture("crawl-e2e").canonicalize().unwrap().join(name), link).unwrap();
    }
    assert_eq!(stdout(&["readseg", "-list", "-dir", &path("segments")], 0), expected("readseg-list.txt"));
    let stats = stdout(&["readdb", &path("crawldb"), "-stats"], 0);
    assert!(stats.contains("TOTAL urls:\t139\n"), "{stats}");
}

#[test]
fn readdb() {
    let stats = stdout(&["readdb", "crawldb", "-stats"], 0);
    let stats: String = stats.lines().filter(|l| !l.contains("quantile")).map(|l| format!("{l}\n")).collect();
    assert_eq!(stats, expected("readdb-stats.txt"));
    let by_host = stdout(&["readdb", "crawldb", "-stats", "-sort"], 0);
    let by_host: String = by_host.lines().filter(|l| !l.contains("quantile")).map(|l| format!("{l}\n")).collect();
    // A sum of floats depends on the order of map tasks; of the reference's run with hosts it was another.
    let sum = |text: &str| text.replace("0.15252083154033413", "0.1525207903745363");
    assert_eq!(by_host, sum(&expected("readdb-stats-sort.txt")));
    assert_eq!(stdout(&["readdb", "crawldb", "-url", "http://host0.example/"], 0), expected("readdb-url.txt"));
    let missing = stdout(&["readdb", "crawldb", "-url", "http://nosuch.example/"], 1);
    assert_eq!(missing, expected("readdb-url-missing.txt"));
    let dir = tempfile::tempdir().unwrap();
    for (name, args) in [
        ("readdb-dump-normal", &["-format", "normal"][..]),
        ("readdb-dump-json", &["-format", "json"]),
        ("readdb-dump-gone", &["-status", "db_gone"]),
    ] {
        let out = dir.path().join(name);
        let out = out.to_str().unwrap();
        stdout(&[&["readdb", "crawldb", "-dump", out][..], args].concat(), 0);
        for part in ["part-r-00000", "part-r-00001"] {
            let ours = std::fs::read_to_string(Path::new(out).join(part)).unwrap();
            assert!(ours == expected(&format!("{name}/{part}")), "{name}/{part}");
        }
        assert_eq!(nutch(&["readdb", "crawldb", "-dump", out]).status.code(), Some(2), "it exists");
    }
    // The reference prints the rest of its key buffer behind a URL: the other columns count.
    let csv = dir.path().join("csv");
    stdout(&["readdb", "crawldb", "-dump", csv.to_str().unwrap(), "-format", "csv"], 0);
    for part in ["part-r-00000", "part-r-00001"] {
        let columns = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_once("\",").map_or(line, |(_, rest)| rest).to_owned()).collect()
        };
        let ours = std::fs::read_to_string(csv.join(part)).unwrap();
        assert_eq!(columns(&ours), columns(&expected(&format!("readdb-dump-csv/{part}"))), "{part}");
    }
    let top = stdout(&["readdb", "crawldb", "-topN", "15"], 0);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&top), sorted(&expected("readdb-topN/part-r-00000")));
    let wrong = nutch(&["readdb", "crawldb", "-topN", "many"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("-topN: expected a whole number, found \"many\""));
    let url: serde_json::Value =
        serde_json::from_str(&stdout(&["readdb", "crawldb", "-url", "http://host0.example/", "--json"], 0)).unwrap();
    assert_eq!(url["datum"]["status_name"], "db_fetched");
    let stats: serde_json::Value =
        serde_json::from_str(&stdout(&["readdb", "crawldb", "-stats", "--json"], 0)).unwrap();
    assert_eq!(stats["total"], 139);
    assert_eq!(stdout(&["readdb", "crawldb", "-dump", "--json"], 0).lines().count(), 139);
}

#[test]
fn readdb_dump_chooses() {
    let temp = tempfile::tempdir().unwrap();
    let dir = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let urls = |args: &[&str], code| -> Vec<String> {
        let lines = stdout(&[&["readdb", "crawldb", "-dump", "--json"][..], args].concat(), code);
        let url =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
        lines.lines().map(url).collect()
    };
    let all = urls(&[], 0);
    let chosen = urls(&["-regex", r"http://host[01]\.example/.*"], 0);
    let of_two = |url: &&String| url.starts_with("http://host0.") || url.starts_with("http://host1.");
    assert_eq!(chosen, all.iter().filter(of_two).cloned().collect::<Vec<_>>());
    assert_eq!(urls(&["-regex", "host0"], 1), [""; 0], "the whole URL must match");
    assert_eq!(urls(&["-sample", "0"], 1), [""; 0]);
    assert_eq!(urls(&["-sample", "1"], 0), all);
    let some = urls(&["-sample", "0.5"], 0).len();
    assert!((30..110).contains(&some), "{some} of 139");
    for wrong in [&["-sample", "1.5"][..], &["-sample", "NaN"], &["-regex", "("], &["-format", "crawldb"]] {
        assert_eq!(nutch(&[&["readdb", "crawldb", "-dump"][..], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
    // A database of the chosen URLs, with their states, which can be asked as the whole one can.
    stdout(&["readdb", "crawldb", "-dump", &dir("db"), "-format", "crawldb", "-regex", r".*host0\.example/.*"], 0);
    let copy = stdout(&["readdb", &dir("db"), "-dump"], 0);
    assert_eq!(copy, stdout(&["readdb", "crawldb", "-dump", "-regex", r".*host0\.example/.*"], 0));
    let url = ["-url", "http://host0.example/"];
    assert_eq!(stdout(&[&["readdb", &dir("db")][..], &url[..]].concat(), 0), expected("readdb-url.txt"));
    let verified = Command::new(env!("CARGO_BIN_EXE_trawl")).args(["verify", &dir("db")]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// A dump that fails must not leave a directory that looks like a whole one.
#[test]
fn a_dump_that_fails_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    for part in ["part-r-00000", "part-r-00001"] {
        let to = temp.path().join("db/current").join(part);
        std::fs::create_dir_all(&to).unwrap();
        for file in ["data", "index"] {
            std::fs::copy(fixture("crawl-e2e/crawldb/current").join(part).join(file), to.join(file)).unwrap();
        }
    }
    let data = temp.path().join("db/current/part-r-00001/data");
    let whole = std::fs::read(&data).unwrap();
    std::fs::write(&data, &whole[..whole.len() - 3]).unwrap();
    let db = temp.path().join("db").to_str().unwrap().to_owned();
    for format in ["normal", "csv", "json", "crawldb"] {
        let out = temp.path().join("out");
        let output = nutch(&["readdb", &db, "-dump", out.to_str().unwrap(), "-format", format]);
        assert_eq!(output.status.code(), Some(2), "{format}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("part-r-00001"), "{format}");
        let left: Vec<_> = std::fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["db"], "{format}");
    }
}

#[test]
fn readlinkdb() {
    let both = format!("{}{}", expected("readlinkdb-dump/part-r-00000"), expected("readlinkdb-dump/part-r-00001"));
    assert_eq!(stdout(&["readlinkdb", "linkdb", "-dump"], 0), both);
    let url = expected("readlinkdb-url.arg");
    assert_eq!(stdout(&["readlinkdb", "linkdb", "-url", url.trim()], 0), expected("readlinkdb-url.txt"));
    let missing = stdout(&["readlinkdb", "linkdb", "-url", "http://nosuch.example/"], 1);
    assert_eq!(missing, expected("readlinkdb-url-missing.txt"));
    let links: serde_json::Value =
        serde_json::from_str(&stdout(&["readlinkdb", "linkdb", "-url", url.trim(), "--json"], 0)).unwrap();
    assert_eq!(links["links"][0]["anchor"], "segment segment");
}

#[test]
fn readseg() {
    assert_eq!(stdout(&["readseg", "-list", "-dir", "segments"], 0), expected("readseg-list.txt"));
    let get = stdout(&["readseg", "-get", "segments/20261115074402", "http://host0.example/"], 0);
    assert_eq!(get, expected("readseg-get.txt"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    stdout(&["readseg", "-dump", "segments/20261115074416", out.to_str().unwrap(), "--parts", "2"], 0);
    let (ours, theirs) = (std::fs::read_to_string(out.join("dump")).unwrap(), expected("readseg-dump/dump"));
    assert_eq!(ours.len(), theirs.len());
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(sorted(&ours) == sorted(&theirs));
    let list = stdout(&["readseg", "-list", "segments/20261115074402", "--json"], 0);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&list).unwrap()["parsed"], 7);
    let json = stdout(&["readseg", "-dump", "segments/20261115074402", "-nocontent", "-noparse", "--json"], 0);
    assert!(
        json.lines().all(|l| !l.starts_with("{\"part\":\"content\"") && !l.starts_with("{\"part\":\"crawl_parse\""))
    );
    assert_eq!(json.lines().count(), 7 * 4);
}

/// Parts that are missing are told, and what the others hold is printed.
#[test]
fn what_is_left_of_a_database_or_segment_is_printed() {
    let copy = |from: &Path, to: &Path| {
        std::fs::create_dir_all(to).unwrap();
        for file in ["data", "index"] {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    };
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    // The first of two parts of a database, the second of two of a segment.
    for name in ["crawldb", "linkdb"] {
        let part = Path::new(name).join("current/part-r-00000");
        copy(&fixture("crawl-e2e").join(&part), &temp.path().join(&part));
    }
    let segment = fixture("crawl-synth/segments/20240102030405");
    for name in ["content/part-r-00001", "crawl_fetch/part-r-00001"] {
        copy(&segment.join(name), &temp.path().join("segment").join(name));
    }
    let out = path("out");
    for args in [
        &["readdb", &path("crawldb"), "-stats"][..],
        &["readdb", &path("crawldb"), "-topN", "3"],
        &["readdb", &path("crawldb"), "-dump"],
        &["readdb", &path("crawldb"), "-url", "http://nosuch.example/"],
        &["readlinkdb", &path("linkdb"), "-dump"],
        &["readseg", "-list", &path("segment")],
        &["readseg", "-dump", &path("segment")],
        &["readseg", "-dump", &path("segment"), &out],
        &["readseg", "-dump", &path("segment"), "--json"],
    ] {
        let output = nutch(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("parts are missing"), "{args:?}: {output:?}");
        assert!(!output.stdout.is_empty() || Path::new(&out).join("dump").exists(), "{args:?}");
    }
}

/// A value that does not decode is not printed as if it were one.
#[test]
fn a_dump_of_damaged_values_fails() {
    let dir = tempfile::tempdir().unwrap();
    let part = dir.path().join("segment/crawl_fetch/part-r-00000");
    std::fs::create_dir_all(&part).unwrap();
    let options = trawl_hadoop::seq::WriterOptions::new(trawl_hadoop::class::TEXT, CRAWL_DATUM, [7; 16]);
    let mut writer = trawl_hadoop::seq::Writer::create(&part.join("data"), options).unwrap();
    writer.append(b"\x08http://a", b"\x07\x02x").unwrap();
    writer.finish().unwrap();
    for json in [&[][..], &["--json"]] {
        let output = nutch(&[&["readseg", "-dump", dir.path().join("segment").to_str().unwrap()][..], json].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("expected fetch time"), "{output:?}");
    }
    // A segment that cannot be read does not hide the others.
    let damaged = dir.path().join("segment");
    let list = nutch(&["readseg", "-list", damaged.to_str().unwrap(), "segments/20261115074402"]);
    assert_eq!(list.status.code(), Some(1), "{list:?}");
    assert_eq!(String::from_utf8(list.stdout).unwrap().lines().count(), 2);
    assert!(String::from_utf8_lossy(&list.stderr).contains("left out:"));
    assert_eq!(nutch(&["readseg", "-list", damaged.to_str().unwrap()]).status.code(), Some(2));
}
