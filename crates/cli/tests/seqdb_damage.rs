//! Containers that lost a file, or of which a file is no longer what it was: noticed, and repaired where that is possible.

mod common;

use common::{feed, stderr, stdout, trawl};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    let text = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
    text
}

fn put(dir: &Path, fs: &str, name: &str, status: i32) -> String {
    let mut command = trawl(dir);
    command.args(["seqdb", "fs", "put", fs, name]);
    let output = feed(command, b"contents");
    assert_eq!(output.status.code(), Some(status), "{name}: {}", stderr(&output));
    stderr(&output)
}

/// A container of captures with its index, in `crawl`.
fn captures(dir: &Path) {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/captures/tests/specimen/runs");
    let mut archives: Vec<_> = std::fs::read_dir(runs).unwrap().map(|e| e.unwrap().path()).collect();
    archives.sort();
    std::fs::create_dir(dir.join("crawl")).unwrap();
    run(dir, &["-q", "convert", archives[0].to_str().unwrap(), "crawl/pages.data"], 0);
    run(dir, &["-q", "captures", "rebuild", "crawl"], 0);
    run(dir, &["-q", "verify", "crawl"], 0);
}

#[test]
fn a_destroyed_archive_is_not_sound() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    captures(dir);
    let data = dir.join("crawl/pages.data");
    let good = std::fs::read(&data).unwrap();
    let mut other = good.clone();
    other[0] ^= 1;
    for bad in [&b""[..], &good[..4], &other] {
        std::fs::write(&data, bad).unwrap();
        let text = run(dir, &["-q", "verify", "crawl"], 1);
        assert!(text.contains("pages.data") && text.contains("record-missing"), "{text}");
        run(dir, &["-q", "verify", "crawl/pages.data"], 1);
        run(dir, &["-q", "inspect", "crawl"], 1);
        run(dir, &["-q", "seqdb", "fs", "check", "crawl/pages"], 1);
        run(dir, &["-q", "convert", "crawl", "out.warc.gz"], 2);
    }
    // With nothing left of it, the rows of the index have nothing to be about.
    for suffix in ["data", "idx", "time", "urls"] {
        std::fs::remove_file(dir.join(format!("crawl/pages.{suffix}"))).unwrap();
    }
    assert!(run(dir, &["-q", "verify", "crawl"], 1).contains("record-missing"));
    // By itself it can only be read, and says so.
    let text = run(dir, &["-q", "verify", "crawl/captures.parquet"], 0);
    assert!(text.contains("not-compared") && text.contains(" index rows: sound"), "{text}");
}

#[test]
fn a_destroyed_filesys_does_not_hide_behind_another() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::create_dir(dir.join("base")).unwrap();
    for fs in ["base/a", "base/b"] {
        run(dir, &["seqdb", "fs", "create", fs], 0);
        put(dir, fs, "x", 0);
    }
    assert!(run(dir, &["verify", "base"], 0).contains("2 container(s), 2 entries: sound"));
    std::fs::write(dir.join("base/b.data"), b"").unwrap();
    assert!(run(dir, &["verify", "base"], 1).contains("fault: base/b.data@0"));
}

#[test]
fn what_a_hint_says_can_be_done() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    captures(dir);
    let page = ["seqdb", "page", "crawl/pages", "http://www.example.org/"];
    let before = run(dir, &[&["--json"], &page[..]].concat(), 0);
    for suffix in ["urls", "idx", "time"] {
        let file = format!("crawl/pages.{suffix}");
        std::fs::remove_file(dir.join(&file)).unwrap();
        let refused = run(dir, &page, 2);
        let hint = format!("trawl seqdb check {file} --repair");
        assert!(refused.contains(&hint), "{refused}");
        run(dir, &["-q", "verify", "crawl"], 1);
        run(dir, &["-q", "seqdb", "check", "crawl/pages.data"], 1);
        run(dir, &["-q", "seqdb", "check", &file, "--repair"], 0);
        assert_eq!(run(dir, &[&["--json"], &page[..]].concat(), 0), before, "{suffix}");
        run(dir, &["-q", "verify", "crawl"], 0);
    }
}

#[test]
fn a_data_file_that_claims_to_be_something_else() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "p"], 0);
    put(dir, "p", "x", 0);
    for lost in [false, true] {
        run(dir, &["seqdb", "superblock", "p.data", "--set", "PURPOSE", "X"], 0);
        if lost {
            std::fs::remove_file(dir.join("p.idx")).unwrap();
        }
        run(dir, &["seqdb", "fs", "ls", "p"], 2);
        assert!(run(dir, &["seqdb", "fs", "check", "p"], 1).contains("PURPOSE FSYSDATA"));
        if lost {
            // Nothing is left that knows the file as its own: it is not taken for what it may not be.
            run(dir, &["seqdb", "fs", "check", "p", "--repair"], 2);
            continue;
        }
        assert!(run(dir, &["verify", "."], 1).contains("PURPOSE FSYSDATA"));
        for name in ["p", "p.data", "./p.data"] {
            assert!(run(dir, &["inspect", name], 1).contains("damaged: "), "{name}");
        }
        assert!(run(dir, &["seqdb", "add", "p.data", "k", "v"], 2).contains("belongs to the filesys"));
        run(dir, &["seqdb", "fs", "check", "p", "--repair"], 0);
        assert!(run(dir, &["seqdb", "fs", "ls", "p"], 0).contains(" x\n"));
        run(dir, &["verify", "."], 0);
    }
    // A kvseq of that name is a kvseq, and nobody's.
    run(dir, &["seqdb", "create", "kvseq", "words.data"], 0);
    run(dir, &["seqdb", "add", "words.data", "k", "v"], 0);
    run(dir, &["seqdb", "check", "words.data"], 0);
    assert!(run(dir, &["inspect", "words.data"], 0).contains("1 entries"));
}

#[test]
fn an_export_does_not_leave_its_directory_by_a_link() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "docs"], 0);
    for name in ["a/b/file", "top", "kept/file"] {
        put(dir, "docs", name, 0);
    }
    std::fs::create_dir_all(dir.join("out/a")).unwrap();
    std::fs::create_dir_all(dir.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", dir.join("out/a/b")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/new", dir.join("out/top")).unwrap();
    let text = run(dir, &["seqdb", "fs", "export", "docs", "out"], 1);
    assert!(text.contains("1 files, 8 B; 2 refused") && text.contains("a/b/file: "), "{text}");
    assert_eq!(std::fs::read_dir(dir.join("elsewhere")).unwrap().count(), 0);
    assert_eq!(std::fs::read(dir.join("out/kept/file")).unwrap(), b"contents");
    // The directory itself may be a link: that is what was asked for.
    std::os::unix::fs::symlink("elsewhere", dir.join("link")).unwrap();
    run(dir, &["seqdb", "fs", "export", "docs", "link"], 0);
    assert_eq!(std::fs::read_dir(dir.join("elsewhere")).unwrap().count(), 3);
}

#[test]
fn refusals_say_what_is_wrong() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "create", "kvseq", "f.kvseq", "--keyrepr", "fixed:8"], 0);
    let text = run(dir, &["seqdb", "add", "f.kvseq", "k", "v"], 2);
    assert!(text.contains("key of 1 bytes is under the least of 8"), "{text}");
    let text = run(dir, &["seqdb", "add", "f.kvseq", "123456789", "v"], 2);
    assert!(text.contains("key of 9 bytes is over the limit of 8"), "{text}");
    run(dir, &["seqdb", "fs", "create", "docs"], 0);
    let text = put(dir, "docs", "", 2);
    assert!(text.contains("file name of 0 bytes is under the least of 1"), "{text}");
    put(dir, "docs", "x", 0);
    assert!(run(dir, &["seqdb", "fs", "mv", "docs", "x", ""], 2).contains("under the least of 1"));
    // A name that is no text would become another.
    let odd = std::ffi::OsStr::from_bytes(b"d\xff");
    let output = trawl(dir).args(["seqdb", "fs", "create"]).arg(odd).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("UTF-8"), "{}", stderr(&output));
    // An inode area that no command could work with is not accepted.
    assert!(run(dir, &["seqdb", "superblock", "docs.data", "--set", "ISZ", "7"], 2).contains("multiple of 8"));
    run(dir, &["seqdb", "superblock", "docs.data", "--set", "ISZ", "64"], 0);
    run(dir, &["seqdb", "fs", "ls", "docs"], 0);
}

/// What a compaction is at, or has left, is no container: the one it copies tells of it.
#[test]
fn copies_of_a_compaction_are_no_containers() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    run(dir, &["seqdb", "create", "kvseq", "k.kvseq"], 0);
    run(dir, &["seqdb", "fs", "create", "t"], 0);
    for (from, copy) in [("t.data", "t.new.data"), ("t.idx", "t.new.idx"), ("k.kvseq", "k.kvseq.new")] {
        let half = std::fs::read(dir.join(from)).unwrap();
        std::fs::write(dir.join(copy), &half[..half.len() / 2]).unwrap();
    }
    assert!(!run(dir, &["inspect", "."], 0).contains("new"));
    run(dir, &["verify", "."], 0);
    for name in ["t", "k.kvseq"] {
        assert!(run(dir, &["seqdb", "check", name], 0).contains("warning: "), "{name}");
        run(dir, &["seqdb", "check", name, "--repair"], 0);
    }
    assert!(std::fs::read_dir(dir).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().contains("new")));
}
