//! `trawl seqdb fs`: file systems in containers, as a user has them.

mod common;

use common::{feed, stderr, stdout, trawl};
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}{}", stderr(&output));
    text
}

fn fails(dir: &Path, args: &[&str]) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
    stderr(&output)
}

fn put(dir: &Path, args: &[&str], contents: &[u8], status: i32) -> String {
    let mut command = trawl(dir);
    command.args(["seqdb", "fs", "put"]).args(args);
    let output = feed(command, contents);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stderr(&output)
}

fn append(dir: &Path, args: &[&str], contents: &[u8], status: i32) -> String {
    let mut command = trawl(dir);
    command.args(["seqdb", "fs", "append"]).args(args);
    let output = feed(command, contents);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stderr(&output)
}

fn cat(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = trawl(dir).args(["seqdb", "fs", "cat"]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    output.stdout
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sound(dir: &Path, fs: &str) {
    let text = run(dir, &["seqdb", "fs", "check", fs], 0);
    assert!(text.contains("0 faults, 0 warnings"), "{text}");
}

#[test]
fn files_are_written_changed_and_deleted() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "docs"], 0);
    assert!(fails(dir, &["seqdb", "fs", "create", "docs"]).contains("exists"));
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    put(dir, &["docs", "bin"], &bytes, 0);
    assert_eq!(cat(dir, &["docs", "bin"]), bytes);
    assert_eq!(cat(dir, &["docs", "bin", "--range", "250", "10"]), &bytes[250..260]);
    assert_eq!(cat(dir, &["docs", "bin", "--range", "2990", "100"]), &bytes[2990..]);
    assert_eq!(cat(dir, &["docs", "bin", "--range", "9999", "5"]), b"");

    // Replaced, cut, filled, appended to, reserved, renamed.
    put(dir, &["docs", "a.txt", "--mtime", "1200913506"], b"hello, world\n", 0);
    assert!(put(dir, &["docs", "a.txt", "--excl"], b"x", 2).contains("exists"));
    put(dir, &["docs", "a.txt"], b"bye\n", 0);
    append(dir, &["docs", "a.txt"], b"now\n", 0);
    append(dir, &["docs", "new.txt"], b"made by append", 0);
    assert_eq!(cat(dir, &["docs", "a.txt"]), b"bye\nnow\n");
    run(dir, &["seqdb", "fs", "truncate", "docs", "a.txt", "3"], 0);
    run(dir, &["seqdb", "fs", "truncate", "docs", "a.txt", "5"], 0);
    assert_eq!(cat(dir, &["docs", "a.txt"]), b"bye\0\0");
    run(dir, &["seqdb", "fs", "reserve", "docs", "a.txt", "100000"], 0);
    run(dir, &["seqdb", "fs", "mv", "docs", "a.txt", "a name with spaces, \u{fc} and more than fits"], 0);
    assert!(fails(dir, &["seqdb", "fs", "mv", "docs", "bin", "new.txt"]).contains("exists"));
    sound(dir, "docs");

    // What is not there: exit code 1, and nothing asks for a repair.
    for args in [
        &["cat", "docs", "none"][..],
        &["stat", "docs", "none"],
        &["mv", "docs", "none", "x"],
        &["rm", "docs", "none"],
        &["truncate", "docs", "none", "1"],
        &["reserve", "docs", "none", "1"],
    ] {
        run(dir, &[&["seqdb", "fs"], args].concat(), 1);
        sound(dir, "docs");
    }
    let info = &json(&run(dir, &["--json", "seqdb", "fs", "stat", "docs", "bin"], 0))[0];
    assert_eq!((&info["name"], &info["type"], &info["bytes"]), (&"bin".into(), &"f".into(), &3000.into()));
    let all = json(&run(dir, &["--json", "seqdb", "fs", "ls", "docs"], 0));
    assert_eq!(all.len(), 3);
    assert_eq!(json(&run(dir, &["--json", "seqdb", "fs", "ls", "docs", "--index-order"], 0)).len(), 3);
    assert_eq!(run(dir, &["seqdb", "fs", "rm", "docs", "bin", "none"], 1), "1 deleted, 1 not found\n");
    let before = &json(&run(dir, &["--json", "seqdb", "fs", "stats", "docs"], 0))[0];
    let done = &json(&run(dir, &["--json", "seqdb", "fs", "compact", "docs"], 0))[0];
    assert!(done["new_bytes"].as_u64() < done["old_bytes"].as_u64(), "{done}");
    let after = &json(&run(dir, &["--json", "seqdb", "fs", "stats", "docs"], 0))[0];
    assert!(after["dead_bytes"].as_u64() < before["dead_bytes"].as_u64(), "{before} {after}");
    assert_eq!((&after["files"], &after["deleted_cells"]), (&2.into(), &0.into()));
    sound(dir, "docs");
    assert_eq!(run(dir, &["seqdb", "fs", "names", "."], 0), "docs\n");
    assert!(fails(dir, &["seqdb", "fs", "ls", "absent"]).contains("no such filesys"));
    assert!(fails(dir, &["seqdb", "fs", "create", ".hidden"]).contains("name"));
}

#[test]
fn packed_files() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "docs"], 0);
    let page = b"<p>the same again and again</p>\n".repeat(1000);
    put(dir, &["docs", "page", "--gzip"], &page, 0);
    let stored = cat(dir, &["docs", "page"]);
    assert!(stored.len() < 1000 && stored.starts_with(&[0x1f, 0x8b]), "{} bytes", stored.len());
    assert_eq!(cat(dir, &["docs", "page", "--gunzip"]), page);
    put(dir, &["docs", "given", "--type", "c"], &stored, 0);
    assert_eq!(cat(dir, &["docs", "given", "--gunzip"]), page);
    put(dir, &["docs", "plain"], b"plain", 0);
    assert!(fails(dir, &["seqdb", "fs", "cat", "docs", "plain", "--gunzip"]).contains("not packed"));
    assert!(put(dir, &["docs", "plain", "--type", "x"], b"other", 2).contains("type"));
    let row = &json(&run(dir, &["--json", "seqdb", "fs", "cat", "docs", "plain"], 0))[0];
    assert_eq!((&row["contents"], &row["type"]), (&"plain".into(), &"f".into()));
    assert!(json(&run(dir, &["--json", "cat", "docs", "--url", "page"], 0))[0]["contents"]["base64"].is_string());
}

#[test]
fn append_only() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "log", "--ao", "60"], 0);
    for (name, time) in [("one", "1000"), ("two", "1100"), ("three", "1200")] {
        put(dir, &["log", name, "--mtime", time], name.as_bytes(), 0);
    }
    let names = |args: &[&str]| -> Vec<String> {
        let rows = json(&run(dir, &[&["--json", "seqdb", "fs", "ls", "log"], args].concat(), 0));
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["one", "two", "three"]);
    assert_eq!(names(&["--since", "1100"]), ["two", "three"]);
    assert_eq!(names(&["--since", "1101"]), ["three"]);
    for (args, input) in [(&["log", "one"][..], &b"again"[..]), (&["log", "old", "--mtime", "999"], b"x")] {
        assert!(put(dir, args, input, 2).contains("append-only"), "{args:?}");
    }
    assert!(append(dir, &["log", "one"], b"more", 2).contains("append-only"));
    assert!(fails(dir, &["seqdb", "fs", "truncate", "log", "one", "1"]).contains("append-only"));
    run(dir, &["seqdb", "fs", "reserve", "log", "one", "1000"], 0);
    run(dir, &["seqdb", "fs", "mv", "log", "two", "zwei"], 0);
    run(dir, &["seqdb", "fs", "rm", "log", "one"], 0);
    assert_eq!(names(&[]), ["zwei", "three"]);
    sound(dir, "log");
    run(dir, &["seqdb", "fs", "compact", "log"], 0);
    sound(dir, "log");
    assert_eq!(names(&["--since", "1200"]), ["three"]);
}

#[test]
fn directories_in_and_out() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let tree = dir.join("tree");
    std::fs::create_dir_all(tree.join("a/b")).unwrap();
    let large: Vec<u8> = (0..20u32 << 20).map(|i| (i / 7) as u8).collect();
    let odd = std::ffi::OsStr::from_bytes(b"a/b/\xff\xfe");
    for (name, contents) in
        [("top".as_ref(), &b"top"[..]), ("a/empty".as_ref(), b""), ("a/b/large".as_ref(), &large), (odd, b"no UTF-8")]
    {
        std::fs::write(tree.join(name), contents).unwrap();
    }
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_200_913_506);
    std::fs::File::options().write(true).open(tree.join("top")).unwrap().set_modified(old).unwrap();
    run(dir, &["seqdb", "fs", "create", "tree/docs"], 0);
    std::os::unix::fs::symlink(".", tree.join("loop")).unwrap();
    // The link, and the filesys itself, which lies in the directory.
    let text = run(dir, &["seqdb", "fs", "import", "tree/docs", "tree"], 1);
    assert!(text.starts_with("4 files, 20.0 MiB; 0 were there already, 4 skipped"), "{text}");
    let again = run(dir, &["seqdb", "fs", "import", "tree/docs", "tree"], 1);
    assert!(again.starts_with("0 files, 0 B; 4 were there already"), "{again}");
    sound(dir, "tree/docs");
    run(dir, &["seqdb", "fs", "export", "tree/docs", "out"], 0);
    for name in ["top".as_ref(), "a/empty".as_ref(), "a/b/large".as_ref(), odd] {
        assert!(
            std::fs::read(tree.join(name)).unwrap() == std::fs::read(dir.join("out").join(name)).unwrap(),
            "{name:?}"
        );
    }
    assert_eq!(std::fs::metadata(dir.join("out/top")).unwrap().modified().unwrap(), old);

    // Names that would leave the directory, or be two things at once, are refused; what is there stays.
    for name in ["../escape", "/etc/escape", "a//b", "top/file", "./x", "."] {
        put(dir, &["tree/docs", name], b"evil", 0);
    }
    let output = trawl(dir).args(["seqdb", "fs", "export", "tree/docs", "out2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("4 files, 20.0 MiB; 6 refused"), "{}", stdout(&output));
    assert!(stderr(&output).contains("refused: ../escape"), "{}", stderr(&output));
    assert!(!dir.join("escape").exists() && !Path::new("/etc/escape").exists());
    assert!(run(dir, &["seqdb", "fs", "export", "tree/docs", "out2"], 1).starts_with("0 files"));
}

#[test]
fn damage_is_found_and_repaired() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    for (fs, more) in [("docs", &[][..]), ("log", &["--ao", "60"])] {
        run(dir, &[&["seqdb", "fs", "create", fs], more].concat(), 0);
        for name in ["a", "b", "c"] {
            put(dir, &[fs, name], name.as_bytes(), 0);
        }
        // An index that is gone, in use, of another filesys; a timefile that is gone.
        let index = dir.join(format!("{fs}.idx"));
        std::fs::remove_file(&index).unwrap();
        assert!(fails(dir, &["seqdb", "fs", "ls", fs]).contains("trawl seqdb check"));
        run(dir, &["seqdb", "fs", "check", fs], 1);
        run(dir, &["verify", fs], 1);
        let text = run(dir, &["seqdb", "fs", "check", fs, "--repair"], 0);
        assert!(text.contains("repaired") && text.contains("files 3"), "{text}");
        run(dir, &["seqdb", "superblock", &format!("{fs}.idx"), "--set", "FSGEN", "77"], 0);
        assert!(fails(dir, &["seqdb", "fs", "ls", fs]).contains("FSGEN"));
        run(dir, &["seqdb", "fs", "check", fs, "--repair"], 0);
        let time = dir.join(format!("{fs}.time"));
        if time.exists() {
            std::fs::remove_file(&time).unwrap();
            run(dir, &["seqdb", "fs", "check", fs], 1);
            run(dir, &["seqdb", "fs", "check", fs, "--salvage"], 0);
        }
        run(dir, &["seqdb", "fs", "rebuild-index", fs, "--htsize", "101", "--cellsz", "1"], 0);
        assert!(run(dir, &["seqdb", "fs", "stats", fs], 0).contains("index 101 cells, 3 used"));
        sound(dir, fs);
        assert_eq!(cat(dir, &[fs, "b"]), b"b");
        // Single files of a filesys are not to be changed behind its back.
        let (data, index) = (format!("{fs}.data"), format!("{fs}.idx"));
        let own = format!("{fs}.kvseq");
        run(dir, &["seqdb", "create", "kvseq", &own], 0);
        for args in [
            &["add", &data, "k", "v"][..],
            &["delete", &data, "k"],
            &["compact", &data],
            &["rollback", &data],
            &["checkpoint", &data],
            &["add", &own, "k", "v", "--index", &index],
            &["delete", &own, "k", "--index", &index],
            &["compact", &own, "--index", &index],
            &["rollback", &own, "--index", &index],
        ] {
            let text = fails(dir, &[&["seqdb"], args].concat());
            assert!(text.contains("belongs to the filesys") && text.contains(fs), "{text}");
        }
        std::fs::remove_file(dir.join(own)).unwrap();
    }
    // Names taken from the index only come back with it.
    run(dir, &["seqdb", "fs", "rm", "docs", "a", "--index-only"], 0);
    run(dir, &["seqdb", "fs", "stat", "docs", "a"], 1);
    run(dir, &["seqdb", "fs", "rebuild-index", "docs"], 0);
    run(dir, &["seqdb", "fs", "stat", "docs", "a"], 0);
    let text = run(dir, &["inspect", "."], 0);
    assert!(text.contains("./docs.data: kvseq (FSYSDATA), 3 files") && !text.contains("docs.idx"), "{text}");
    assert!(run(dir, &["verify", "."], 0).contains(".: 2 container(s), 6 entries: sound"));
    assert_eq!(run(dir, &["cat", "docs"], 0), "abc");
    assert_eq!(run(dir, &["cat", "docs.data", "--url", "b"], 0), "b");
}

#[test]
fn the_lock_of_a_base_keeps_checks_away() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "docs"], 0);
    let global = std::fs::File::create(dir.join("GLOBAL.lock")).unwrap();
    put(dir, &["docs", "a"], b"a", 0);
    sound(dir, "docs");
    global.lock_shared().unwrap();
    assert_eq!(cat(dir, &["docs", "a"]), b"a", "others may use the base");
    assert!(fails(dir, &["seqdb", "fs", "check", "docs"]).contains("GLOBAL.lock"));
    assert!(fails(dir, &["seqdb", "fs", "compact", "docs"]).contains("GLOBAL.lock"));
    global.unlock().unwrap();
    global.lock().unwrap();
    assert!(fails(dir, &["seqdb", "fs", "cat", "docs", "a"]).contains("GLOBAL.lock"), "a check is at work");
}
