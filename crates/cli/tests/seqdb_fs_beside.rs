//! `trawl seqdb fs`: what readers see beside a writer, and what stays of a command that could not do its work.

mod common;

use common::{feed, stderr, stdout, trawl};
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};
use trawl_model::UnixMillis;
use trawl_seqdb::{Clock, CreatePages, Form, FsPaths, Settings};

fn fs(dir: &Path, args: &[&str]) -> Output {
    trawl(dir).args(["seqdb", "fs"]).args(args).output().unwrap()
}

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = fs(dir, args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn put(dir: &Path, args: &[&str], contents: &[u8]) {
    let mut command = trawl(dir);
    command.args(["seqdb", "fs", "put"]).args(args);
    let output = feed(command, contents);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
}

/// A writer that waits for more to write; ended when dropped.
struct Writer(Child, Option<ChildStdin>);

impl Writer {
    fn start(dir: &Path, args: &[&str], first: &[u8]) -> Self {
        let mut command = trawl(dir);
        command.args(["seqdb", "fs"]).args(args).args(["-q"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A pipe holds 64 KiB: the writer has read nearly all of it then.
        stdin.write_all(first).unwrap();
        Writer(child, Some(stdin))
    }

    fn finish(mut self) {
        self.1 = None;
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The listing and the contents of every file, over and over for a moment; all must be readable, and all zeros.
fn sizes(dir: &Path, name: &str) -> Vec<usize> {
    let until = Instant::now() + Duration::from_millis(700);
    let mut seen = Vec::new();
    loop {
        let listing = run(dir, &["ls", "d"], 0);
        for line in listing.lines() {
            let file = line.rsplit(' ').next().unwrap();
            let bytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            run(dir, &["stat", "d", file], 0);
            let cat = fs(dir, &["cat", "d", file]);
            assert_eq!(cat.status.code(), Some(0), "{file}: {}", stderr(&cat));
            assert!(cat.stdout.len() >= bytes && cat.stdout.iter().all(|b| *b == 0), "{file} is torn: {bytes}");
            if file == name {
                seen.push(cat.stdout.len());
            }
        }
        let out = tempfile::tempdir().unwrap();
        run(dir, &["export", "d", out.path().to_str().unwrap()], 0);
        if Instant::now() >= until {
            return seen;
        }
    }
}

#[test]
fn a_file_that_grows_is_whole() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["create", "d"], 0);
    put(dir, &["d", "one"], &[0; 4]);
    for more in [300_000, 3_000_000] {
        let before = run(dir, &["cat", "d", "one"], 0).len();
        let writer = Writer::start(dir, &["append", "d", "one"], &vec![0; more]);
        let seen = sizes(dir, "one");
        assert!(!seen.is_empty() && seen.iter().all(|n| *n >= before), "{seen:?}");
        writer.finish();
        assert_eq!(run(dir, &["cat", "d", "one"], 0).len(), before + more);
    }
    assert!(run(dir, &["check", "d"], 0).contains("0 faults, 0 warnings"));
}

#[test]
fn a_new_file_appears_when_it_is_whole() {
    for kind in [&[][..], &["--ao", "60"]] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        run(dir, &[&["create", "d"], kind].concat(), 0);
        put(dir, &["d", "one"], &[0; 4]);
        let writer = Writer::start(dir, &["put", "d", "large"], &vec![0; 20_000_000]);
        assert_eq!(sizes(dir, "large"), [0; 0], "a part of a file was there");
        writer.finish();
        assert_eq!(run(dir, &["cat", "d", "large"], 0).len(), 20_000_000);
        assert!(run(dir, &["check", "d"], 0).contains("0 faults, 0 warnings"));
    }
}

#[test]
fn a_file_that_does_not_fit_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["create", "d"], 0);
    put(dir, &["d", "one"], b"one");
    let program = trawl(dir).get_program().to_os_string();
    // A limit on the size of files (in units of 512 or 1024 bytes), and no signal when it is met: a write fails, as on a
    // full disk.
    let mut command = Command::new("sh");
    command
        .current_dir(dir)
        .args(["-c", "trap '' XFSZ; ulimit -f 9000; exec \"$0\" seqdb fs put d large"])
        .arg(program);
    let output = feed(command, &vec![7; 40_000_000]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let listing = run(dir, &["ls", "d"], 0);
    assert!(listing.lines().count() == 1 && listing.contains("one"), "{listing}");
    assert!(run(dir, &["check", "d"], 0).contains("0 faults, 0 warnings"));
    put(dir, &["d", "large"], &vec![7; 20_000_000]);
    assert_eq!(run(dir, &["cat", "d", "one"], 0), "one");
}

#[test]
fn an_export_goes_on_after_a_file_that_cannot_be_read() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["create", "d"], 0);
    for name in ["a", "b", "c"] {
        put(dir, &["d", name], name.as_bytes());
    }
    let path = dir.join("d.data");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(3).enumerate().filter(|(_, tag)| *tag == b"FSD").nth(1).unwrap().0;
    bytes[at] = b'X';
    std::fs::write(&path, bytes).unwrap();
    for stored in ["2 files", "0 files"] {
        let output = fs(dir, &["export", "d", "out"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stdout(&output).starts_with(stored), "{}", stdout(&output));
        assert!(stderr(&output).contains("refused: b: "), "{}", stderr(&output));
        assert!(dir.join("out/a").exists() && !dir.join("out/b").exists() && dir.join("out/c").exists());
    }
}

#[test]
fn captures_are_changed_alone_or_not_at_all() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let paths = FsPaths::new(dir, "d").unwrap();
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test");
    let mut pages = CreatePages::new(7).create(&paths, &settings).unwrap();
    for n in 0..3 {
        pages.append(b"http://a/", UnixMillis(n), Form::Plain, format!("{n}").as_bytes()).unwrap();
    }
    pages.close().unwrap();
    let names: Vec<String> = trawl(dir)
        .args(["--json", "seqdb", "fs", "ls", "d"])
        .output()
        .map(|o| stdout(&o))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().into())
        .collect();
    let newest = || {
        let pages = trawl_seqdb::Pages::open(&paths, trawl_seqdb::Access::Read, &settings).unwrap();
        pages.newest(b"http://a/").unwrap().map(|page| page.time)
    };
    let global = std::fs::File::create(dir.join("GLOBAL.lock")).unwrap();
    global.lock_shared().unwrap();
    let refused = fs(dir, &["rm", "d", &names[2]]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("GLOBAL.lock"), "{}", stderr(&refused));
    assert_eq!(run(dir, &["ls", "d"], 0).lines().count(), 3, "a refused command has done it all the same");
    assert_eq!(newest(), Some(UnixMillis(2)));
    global.unlock().unwrap();

    run(dir, &["rm", "d", &names[2]], 0);
    assert_eq!(newest(), Some(UnixMillis(1)));
    run(dir, &["rm", "d", "no such file"], 1);
    assert!(run(dir, &["check", "d"], 0).contains("0 faults, 0 warnings"));
}
