//! Damage to a lake's own records, and what is found and made good of it.

mod common;

use common::lakes::{ask, refuse, walk};
use common::trawl;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn ingest(dir: &Path, dataset: &str, text: &str) {
    std::fs::write(dir.join("in.txt"), text).unwrap();
    ask(dir, &["lake", "ingest", "--dataset", dataset, "in.txt"], 0);
}

/// Two datasets of three URLs each.
fn two_datasets() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path(), "first one", "http://a.com/1\nhttp://a.com/2\nhttp://b.co.uk/x\n");
    ingest(dir.path(), "b", "http://a.com/2\nhttp://a.com/3\nhttp://c.github.io/x\n");
    dir
}

fn newest(dir: &Path, below: &str) -> PathBuf {
    let entries = std::fs::read_dir(dir.join("lake").join(below)).unwrap();
    entries.map(|e| e.unwrap().path()).max().unwrap()
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn faults(dir: &Path) -> String {
    let lines = ask(dir, &["lake", "verify"], 1);
    let told = lines.iter().filter(|l| l["type"] == "fault").map(|l| l["fault"].as_str().unwrap());
    told.collect::<Vec<_>>().join("\n")
}

/// A record that was changed is not believed: what was denied stays unanswered, and `verify` says why.
#[test]
fn changed_records_are_found() {
    let dir = two_datasets();
    let dir = dir.path();
    ask(dir, &["lake", "deny", "add", "--domain", "a.com"], 0);
    ask(dir, &["lake", "verify"], 0);
    let manifest = newest(dir, "index/manifests");
    let whole = std::fs::read(&manifest).unwrap();
    edit(&manifest, "\"domain\": \"a.com\"", "\"domain\": \"a.con\"");
    assert!(refuse(dir, &["query", "domain", "a.com"]).contains("checksum"));
    assert!(faults(dir).contains("checksum"));
    std::fs::write(&manifest, &whole).unwrap();
    ask(dir, &["query", "domain", "a.com"], 1);

    let commit = newest(dir, "datasets/1/commits");
    let whole = std::fs::read(&commit).unwrap();
    for (from, to) in [
        ("\"dataset_id\": 1", "\"dataset_id\": 3"),
        ("\"sequence\": 1", "\"sequence\": 3"),
        ("\"tag\": \"", "\"tag\": \"0"),
        ("\"suffix_list\": \"", "\"suffix_list\": \"0"),
    ] {
        edit(&commit, from, to);
        assert!(faults(dir).contains("0000000001.json"), "{from}");
        std::fs::write(&commit, &whole).unwrap();
    }
    // Without a checksum, as earlier programs wrote: what can be told from the name is.
    let text = String::from_utf8(whole.clone()).unwrap();
    let bare = format!("{}\n}}\n", text.rsplit_once(",\n  \"checksum\"").unwrap().0);
    std::fs::write(&commit, &bare).unwrap();
    ask(dir, &["lake", "verify"], 0);
    edit(&commit, "\"sequence\": 1", "\"sequence\": 3");
    assert!(faults(dir).contains("number 3"));
    std::fs::write(&commit, &whole).unwrap();

    let copy = dir.join("lake/index/manifest.json");
    let whole = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, "garbage").unwrap();
    assert!(faults(dir).contains("index/manifest.json"));
    // It may be behind: readers go on from its number.
    std::fs::copy(dir.join("lake/index/manifests/0000000001.json"), &copy).unwrap();
    ask(dir, &["lake", "verify"], 0);
    std::fs::write(&copy, whole).unwrap();
    let list = newest(dir, "index/suffix_lists");
    std::fs::write(&list, "com\n").unwrap();
    assert!(faults(dir).contains("suffix list"));
}

/// Files that only an older kept version serves.
#[test]
fn files_of_older_versions_are_looked_at() {
    let dir = two_datasets();
    let dir = dir.path();
    let old = newest(dir, "urls/dataset_id=1/domain_prefix=all");
    let segment = std::fs::read_dir(dir.join("lake/index")).unwrap().map(|e| e.unwrap().path());
    let segment = segment.filter(|p| p.join("domains.mphf").exists()).min().unwrap().join("domains.mphf");
    ingest(dir, "first one", "http://a.com/4\n");
    ask(dir, &["lake", "compact", "--full"], 0);
    ask(dir, &["lake", "verify"], 0);
    for path in [old, segment] {
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(faults(dir).contains(path.file_name().unwrap().to_str().unwrap()), "{}", path.display());
        let lines = ask(dir, &["lake", "verify"], 1);
        let damaged = lines.iter().find(|line| line["type"] == "damaged").unwrap();
        // Both are of the first publish, and were served until the compaction.
        assert_eq!(damaged["versions"].as_array().unwrap().len(), 3, "{damaged}");
        std::fs::write(&path, &bytes).unwrap();
    }
}

/// Rows wait under another list: they are checked by that list, and what is served by its own.
#[test]
fn an_interrupted_change_of_lists_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (name, start) in [("a", 0), ("b", 40_000)] {
        let urls: String = (start..start + 40_000).map(|i| format!("http://h{}.github.io/{i}\n", i % 100)).collect();
        ingest(dir, name, &urls);
    }
    std::fs::write(dir.join("list.dat"), "com\nio\n").unwrap();
    // Whoever reads the rows of the other dataset waits for ever: the change does not get further than the first.
    let (rows, aside) = (newest(dir, "urls/dataset_id=2/domain_prefix=all"), dir.join("aside"));
    std::fs::rename(&rows, &aside).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &rows, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let args = ["lake", "rebuild", "--psl", "list.dat", "--quiet"];
    let mut child = trawl(dir).args(args).stdout(Stdio::null()).spawn().unwrap();
    let second = dir.join("lake/datasets/1/commits/0000000002.json");
    while !second.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the first dataset was done");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::rename(&aside, &rows).unwrap();
    let lines = ask(dir, &["lake", "verify"], 0);
    let waiting: Vec<_> = lines.iter().filter(|l| l["waits"] == true).collect();
    assert!(waiting.iter().any(|l| l["dataset"] == "a"), "{lines:?}");
    assert!(lines.iter().any(|l| l["dataset"] == "a" && l["waits"] == false), "the served files too: {lines:?}");
    let served = std::fs::read_to_string(dir.join("lake/datasets/1/commits/0000000001.json")).unwrap();
    let served: Value = serde_json::from_str(&served).unwrap();
    let path = dir.join("lake").join(served["files"][0]["path"].as_str().unwrap());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(faults(dir).contains(served["files"][0]["path"].as_str().unwrap()));
}

#[test]
fn a_lost_index_comes_back() {
    let dir = two_datasets();
    let dir = dir.path();
    ingest(dir, "gone", "http://d.org/\n");
    ask(dir, &["lake", "drop", "gone", "--yes"], 0);
    ask(dir, &["lake", "deny", "add", "--domain", "b.co.uk"], 0);
    let about = |dir| {
        let answers = ask(dir, &["query", "domain", "a.com", "c.github.io"], 0);
        answers.iter().map(|a| a["datasets"].clone()).collect::<Vec<_>>()
    };
    let before = about(dir);
    let index = dir.join("lake/index");

    // The numbered manifests alone: the copy has it all.
    std::fs::remove_dir_all(index.join("manifests")).unwrap();
    assert!(refuse(dir, &["query", "domain", "a.com"]).contains("lake rebuild"));
    ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(about(dir), before);
    ask(dir, &["query", "domain", "b.co.uk"], 1);

    std::fs::remove_dir_all(&index).unwrap();
    for args in
        [&["lake", "ingest", "--dataset", "x", "in.txt"][..], &["lake", "verify"], &["query", "domain", "a.com"]]
    {
        assert!(refuse(dir, args).contains("lake rebuild"), "{args:?}");
    }
    let told = ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(told[0]["datasets"], serde_json::json!(["first one", "b"]));
    assert_eq!((told[0]["deny"].as_u64(), &told[0]["lost"]), (Some(1), &serde_json::json!(["versions"])));
    assert_eq!(about(dir), before);
    ask(dir, &["query", "domain", "d.org"], 1);
    ask(dir, &["query", "domain", "b.co.uk"], 1);
    assert_eq!(ask(dir, &["lake", "deny", "list"], 0)[0]["domain"], "b.co.uk");
    ask(dir, &["lake", "verify"], 0);
    // What was taken off the list stays off.
    ask(dir, &["lake", "deny", "remove", "--domain", "b.co.uk"], 0);
    std::fs::remove_dir_all(&index).unwrap();
    assert_eq!(ask(dir, &["lake", "rebuild"], 0)[0]["deny"], 0);
    ask(dir, &["query", "domain", "b.co.uk"], 0);
    // Ids go on behind those that were given.
    ingest(dir, "next", "http://e.org/\n");
    assert_eq!(ask(dir, &["query", "domain", "e.org"], 0)[0]["datasets"][0]["dataset_id"], 4);
}

/// The deny list beside the datasets is checked, and a list that is not the manifest's is told.
#[test]
fn a_changed_record_of_the_deny_list_is_found() {
    let dir = two_datasets();
    let dir = dir.path();
    ask(dir, &["lake", "deny", "add", "--domain", "b.co.uk"], 0);
    let record = newest(dir, "datasets/deny");
    let text = std::fs::read_to_string(&record).unwrap();
    ask(dir, &["lake", "verify"], 0);
    edit(&record, "b.co.uk", "c.co.uk");
    assert!(faults(dir).contains("datasets/deny"), "{}", faults(dir));
    // Not believed when it is all there is.
    std::fs::rename(dir.join("lake/index"), dir.join("kept")).unwrap();
    assert!(refuse(dir, &["lake", "rebuild"]).contains("datasets/deny"));
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["deny"] = serde_json::json!([]);
    other.as_object_mut().unwrap().remove("checksum");
    std::fs::remove_dir_all(dir.join("lake/index")).ok();
    std::fs::rename(dir.join("kept"), dir.join("lake/index")).unwrap();
    std::fs::write(&record, other.to_string()).unwrap();
    assert!(faults(dir).contains("deny list of the newest manifest"), "{}", faults(dir));
    std::fs::remove_file(&record).unwrap();
    assert!(faults(dir).contains("datasets/deny"), "{}", faults(dir));
    // Anybody's commit writes it again.
    ingest(dir, "next", "http://e.org/\n");
    ask(dir, &["lake", "verify"], 0);
}

#[test]
fn a_lost_list_has_to_be_named_and_lost_names_are_made_up() {
    let dir = two_datasets();
    let dir = dir.path();
    std::fs::write(dir.join("list.dat"), "com\nio\nuk\n").unwrap();
    ask(dir, &["lake", "rebuild", "--psl", "list.dat"], 0);
    let commit = newest(dir, "datasets/1/commits");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&commit).unwrap()).unwrap();
    for key in ["about", "checksum"] {
        assert!(value.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    // Neither does what is there twice tell.
    std::fs::write(&commit, value.to_string()).unwrap();
    std::fs::write(dir.join("lake/datasets/1/commit.json"), value.to_string()).unwrap();
    std::fs::remove_dir_all(dir.join("lake/datasets/suffix_lists")).unwrap();
    std::fs::remove_dir_all(dir.join("lake/index")).unwrap();
    let hash = value["suffix_list"].as_str().unwrap();
    let error = refuse(dir, &["lake", "rebuild"]);
    assert!(error.contains(hash) && error.contains("--psl"), "{error}");
    let told = ask(dir, &["lake", "rebuild", "--psl", "list.dat"], 0);
    assert_eq!(
        (told.len(), &told[0]["datasets"]),
        (2, &serde_json::json!(["dataset-1", "b"])),
        "nothing written again"
    );
    assert_eq!(ask(dir, &["query", "domain", "c.github.io"], 0)[0]["domain"], "github.io");
    ask(dir, &["lake", "verify"], 0);
    // Another list will do as well: then rows are written again.
    std::fs::remove_dir_all(dir.join("lake/index")).unwrap();
    std::fs::write(dir.join("other.dat"), "com\ngithub.io\nuk\n").unwrap();
    let told = ask(dir, &["lake", "rebuild", "--psl", "other.dat"], 0);
    assert_eq!(told.iter().filter(|l| l["type"] == "files").count(), 2);
    assert_eq!(ask(dir, &["query", "domain", "c.github.io"], 0)[0]["domain"], "c.github.io");
    ask(dir, &["lake", "verify"], 0);
}

#[test]
fn one_damaged_dataset_does_not_stop_the_others() {
    let dir = two_datasets();
    let dir = dir.path();
    let before = ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"].clone();
    for path in [newest(dir, "datasets/1/commits"), dir.join("lake/datasets/1/commit.json")] {
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"rows\"", "\"rwos\"")).unwrap();
    }
    ingest(dir, "b", "http://later.org/\n");
    assert_eq!(ask(dir, &["query", "domain", "later.org"], 0)[0]["datasets"][0]["name"], "b");
    assert_eq!(ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"], before, "served as it was");
    let told = ask(dir, &["lake", "gc", "--grace", "0s", "--keep-versions", "1", "--yes"], 0);
    assert_eq!(told[0]["damaged"].as_array().unwrap().len(), 1);
    // The index knows which files the dataset has.
    let told = ask(dir, &["lake", "rebuild"], 0);
    assert!(told.iter().any(|line| line["type"] == "mended" && line["from"] == "index"), "{told:?}");
    ask(dir, &["query", "domain", "later.org"], 0);
    let rows =
        |datasets: &Value| datasets.as_array().unwrap().iter().map(|d| d["url_count_est"].clone()).collect::<Vec<_>>();
    assert_eq!(rows(&ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"]), rows(&before));
}

#[test]
fn a_damaged_manifest_is_followed_by_one_from_its_copy() {
    let dir = two_datasets();
    let dir = dir.path();
    ask(dir, &["lake", "deny", "add", "--domain", "b.co.uk"], 0);
    let before = ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"].clone();
    std::fs::write(newest(dir, "index/manifests"), "{").unwrap();
    assert!(refuse(dir, &["query", "domain", "a.com"]).contains("lake rebuild"));
    ask(dir, &["lake", "rebuild"], 0);
    assert_eq!(ask(dir, &["query", "domain", "a.com"], 0)[0]["datasets"], before);
    ask(dir, &["query", "domain", "b.co.uk"], 1);
}

#[test]
fn names_of_a_dropped_dataset_leave_the_index() {
    let dir = two_datasets();
    let dir = dir.path();
    ingest(dir, "gone", "http://only-here.org/secret\n");
    ask(dir, &["lake", "compact", "--full"], 0);
    // A name as it stands in a dictionary that is too small to be compressed.
    let names = |name: &str| {
        let dirs = std::fs::read_dir(dir.join("lake/index")).unwrap();
        let files = dirs.filter_map(|entry| std::fs::read(entry.unwrap().path().join("domains.txt.zst")).ok());
        files.filter(|bytes| bytes.windows(name.len()).any(|window| window == name.as_bytes())).count()
    };
    assert!(names("only-here") > 0);
    ask(dir, &["lake", "drop", "gone", "--yes"], 0);
    ask(dir, &["lake", "gc", "--grace", "0s", "--keep-versions", "1", "--keep-states", "1", "--yes"], 0);
    ask(dir, &["lake", "verify"], 0);
    assert_eq!((names("only-here"), names("a.com") > 0), (0, true));
}

#[test]
fn a_lake_is_sound_after_a_dataset_was_replaced() {
    let dir = two_datasets();
    let dir = dir.path();
    ask(dir, &["lake", "compact", "--full"], 0);
    std::fs::write(dir.join("in.txt"), "http://another.org/\n").unwrap();
    ask(dir, &["lake", "ingest", "--dataset", "b", "--replace", "in.txt"], 0);
    ask(dir, &["lake", "gc", "--grace", "0s", "--keep-versions", "1", "--keep-states", "1", "--yes"], 0);
    ask(dir, &["lake", "verify"], 0);
}

/// `cp` and `rsync --inplace` overwrite files that a server has open: it must survive that, and answer once they are whole.
#[test]
fn a_served_lake_may_be_overwritten_in_place() {
    let dir = two_datasets();
    let dir = dir.path();
    let args = ["--json", "serve", "--lake", "lake", "--listen", "127.0.0.1:0"];
    let mut child = trawl(dir).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let facts: Value = serde_json::from_str(&line).unwrap();
    let address = facts["address"].as_str().unwrap().to_owned();
    let status = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = "GET /v1/domain/a.com HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(), "200");
    let files: Vec<(PathBuf, Vec<u8>)> =
        walk(&dir.join("lake/index")).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    for (path, _) in &files {
        std::fs::write(path, "").unwrap();
    }
    // Whatever it answers meanwhile, it answers.
    assert!(!status().is_empty());
    for (path, bytes) in &files {
        std::fs::write(path, bytes).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while status() != "200" {
        assert!(Instant::now() < deadline, "the lake is whole, and is not answered from");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
