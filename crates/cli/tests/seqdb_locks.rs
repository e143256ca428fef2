//! Two processes over one map: whoever changes an index beside its writer is refused by name, and nothing is half done.

mod common;

use common::{stderr, stdout, trawl};
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Output, Stdio};
use std::time::{Duration, Instant};

fn attempt(dir: &Path, args: &[&str]) -> Output {
    trawl(dir).args(args).output().unwrap()
}

fn expect(dir: &Path, code: i32, args: &[&str]) -> String {
    let output = attempt(dir, args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn create(dir: &Path, more: &[&str]) {
    expect(dir, 0, &[&["seqdb", "create", "kvseq", "w.kvseq"], more].concat());
    expect(dir, 0, &["seqdb", "create", "hindex", "w.hindex", "--container", "w.kvseq"]);
}

/// A writer that waits for more lines; ended when dropped.
struct Writer {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Writer {
    /// Starts it, and waits until it holds the map.
    fn start(dir: &Path) -> Self {
        let mut command = trawl(dir);
        command.args(["seqdb", "add", "w.kvseq", "--index", "w.hindex", "--tsv", "-", "--flush-every", "1", "-q"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let mut writer = Writer { child, stdin };
        writer.say("a\t1\n");
        let until = Instant::now() + Duration::from_secs(60);
        while !stdout(&attempt(dir, &["seqdb", "list", "w.kvseq"])).contains("a\t1") {
            assert!(Instant::now() < until, "the writer does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        writer
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn end(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_index_has_the_writer_of_its_map() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    create(dir, &[]);
    let mut writer = Writer::start(dir);
    let name = format!("held by trawl seqdb (pid {} on ", writer.child.id());
    for args in [
        &["seqdb", "check", "w.hindex", "--repair"][..],
        &["seqdb", "check", "w.hindex", "--container", "w.kvseq", "--repair"],
        &["seqdb", "check", "w.kvseq"],
        &["seqdb", "index-rebuild", "w.hindex", "--container", "w.kvseq"],
        &["seqdb", "index-rebuild", "other.hindex", "--container", "w.kvseq"],
        &["seqdb", "checkpoint", "w.hindex"],
        &["seqdb", "superblock", "w.hindex", "--set", "MINE", "1"],
        &["seqdb", "compact", "w.kvseq", "--index", "w.hindex"],
        &["seqdb", "rollback", "w.kvseq", "--index", "w.hindex"],
        &["verify", "."],
    ] {
        let refused = attempt(dir, args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}{}", stdout(&refused), stderr(&refused));
        assert!(stderr(&refused).contains(&name), "{args:?}: {}", stderr(&refused));
    }
    // Readers are let in.
    assert!(expect(dir, 0, &["seqdb", "list", "w.hindex", "--container", "w.kvseq"]).contains("a\t1"));
    for file in ["w.kvseq", "w.hindex"] {
        let seen = expect(dir, 0, &["inspect", file]);
        assert!(seen.contains(&name.replace("held by", "being written by")) && !seen.contains("damaged"), "{seen}");
    }
    assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "a"]), "1");
    writer.say("b\t2\n");
    writer.end();
    for (key, value) in [("a", "1"), ("b", "2")] {
        assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", key]), value);
    }
    expect(dir, 0, &["verify", "."]);
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".lock")), "{left:?}");
}

#[test]
fn a_refused_change_leaves_the_index_as_it_was() {
    for change in ["compact", "rollback"] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        create(dir, &[]);
        expect(dir, 0, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "a", "1"]);
        // Without the index, so that nothing but the refused change can mark it.
        let mut command = trawl(dir);
        command.args(["seqdb", "add", "w.kvseq", "--tsv", "-", "--flush-every", "1", "-q"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let mut writer = Writer { child, stdin };
        let until = Instant::now() + Duration::from_secs(60);
        // The name is written once the lock is held.
        let name = format!("pid {} ", writer.child.id());
        while !std::fs::read_to_string(dir.join("w.kvseq.lock")).is_ok_and(|text| text.contains(&name)) {
            assert!(Instant::now() < until, "the writer does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        expect(dir, 2, &["seqdb", change, "w.kvseq", "--index", "w.hindex"]);
        assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "a"]), "1", "{change}");
        writer.say("b\t2\n");
        writer.end();
        assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "a"]), "1", "{change}");
        // What the index does not know is a fault, and a repair finds it.
        let checked = expect(dir, 1, &["seqdb", "check", "w.kvseq"]);
        assert!(checked.contains("1 without a cell"), "{checked}");
        expect(dir, 0, &["seqdb", "check", "w.kvseq", "--repair"]);
        assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "b"]), "2", "{change}");
    }
}

#[test]
fn a_refused_delete_deletes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    create(dir, &["--no-delete"]);
    expect(dir, 0, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "a", "1"]);
    let refused = attempt(dir, &["seqdb", "delete", "w.kvseq", "--index", "w.hindex", "a"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "a"]), "1");
    // A value that was replaced is no lost one.
    expect(dir, 0, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "a", "2"]);
    expect(dir, 0, &["seqdb", "check", "w.kvseq"]);
}

#[test]
fn counts_that_cannot_grow_are_no_panic() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let most = i64::MAX.to_string();
    let set = |file: &str, name: &str, value: &str| {
        expect(dir, 0, &["seqdb", "superblock", file, "--set", name, value]);
    };
    create(dir, &[]);
    set("w.kvseq", "ENTRIES", &most);
    set("w.kvseq", "AENTRIES", &most);
    expect(dir, 0, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "a", "1"]);
    assert_eq!(expect(dir, 0, &["seqdb", "get", "w.kvseq", "--index", "w.hindex", "a"]), "1");
    expect(dir, 1, &["seqdb", "check", "w.kvseq"]);
    expect(dir, 0, &["seqdb", "check", "w.kvseq", "--repair"]);
    expect(dir, 0, &["seqdb", "fs", "create", "docs", "--ao", "60"]);
    std::fs::create_dir(dir.join("tree")).unwrap();
    std::fs::write(dir.join("tree/one"), "text").unwrap();
    for (file, name) in [
        ("docs.data", "ENTRIES"),
        ("docs.data", "AENTRIES"),
        ("docs.data", "DTOTSZ"),
        ("docs.data", "ITOTSZ"),
        ("docs.time", "ENTRIES"),
        ("docs.time", "AENTRIES"),
    ] {
        set(file, name, &most);
    }
    expect(dir, 0, &["seqdb", "fs", "import", "docs", "tree"]);
    assert_eq!(expect(dir, 0, &["seqdb", "fs", "cat", "docs", "one"]), "text");
    expect(dir, 0, &["seqdb", "fs", "check", "docs", "--repair"]);
}
