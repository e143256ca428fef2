//! Commands that change containers, one after another, and readers that come at any moment: short writers are where a
//! reader finds files that are just being opened, closed or exchanged.

mod common;

use common::{feed, stderr, stdout, trawl};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn seqdb(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = trawl(dir);
    command.args(["-q", "seqdb"]).args(args);
    feed(command, input)
}

fn run(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let output = seqdb(dir, args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}{}", stdout(&output), stderr(&output));
    output
}

/// A line that is whole only if all of it is there.
fn line(n: usize) -> String {
    let body = "x".repeat(n * 7919 % 100_000);
    format!("{n} {body} {n}\n")
}

/// Whether these are whole lines.
fn is_whole(text: &str) -> bool {
    let whole = |text: &str| text.split(' ').next().and_then(|n| n.parse().ok()).is_some_and(|n| line(n) == text);
    text.is_empty() || text.split_inclusive('\n').all(whole)
}

/// One round of changes; the file `always` and the key `always` are never away.
fn change(dir: &Path, n: usize) {
    run(dir, &["fs", "append", "d", "always"], line(n).as_bytes());
    run(dir, &["fs", "put", "d", "passing"], line(n).as_bytes());
    // Needs a larger inode.
    run(dir, &["fs", "mv", "d", "passing", &"y".repeat(100)], b"");
    run(dir, &["fs", "append", "d", &"y".repeat(100)], line(n + 1).as_bytes());
    run(dir, &["fs", "rm", "d", &"y".repeat(100)], b"");
    let netstrings = format!("6:always,{}:{},", line(n).len(), line(n));
    let map = ["m.kvseq", "--index", "m.hindex", "--perm", "m.perm"];
    run(dir, &[&["add"], &map[..], &["--netstrings", "-"]].concat(), netstrings.as_bytes());
    if n % 3 == 2 {
        run(dir, &["fs", "compact", "d"], b"");
        run(dir, &[&["compact"], &map[..]].concat(), b"");
    }
}

/// One look at everything.
fn look(dir: &Path) {
    let always = stdout(&run(dir, &["fs", "cat", "d", "always"], b""));
    assert!(!always.is_empty() && is_whole(&always), "a file is torn");
    let value = stdout(&run(dir, &["get", "m.kvseq", "--index", "m.hindex", "always"], b""));
    assert!(!value.is_empty() && is_whole(&value), "a value is torn");
    for pointers in ["m.hindex", "m.perm"] {
        let keys = stdout(&run(dir, &["list", pointers, "--container", "m.kvseq", "--keys"], b""));
        assert!(!keys.is_empty() && keys.lines().all(|line| line.ends_with("\talways")), "{pointers}: {keys}");
    }
    let listing = stdout(&run(dir, &["fs", "ls", "d"], b""));
    let names: Vec<_> = listing.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert!(names.len() <= 2 && names.contains(&"always"), "{listing}");
    let out = tempfile::tempdir().unwrap();
    run(dir, &["fs", "export", "d", out.path().to_str().unwrap()], b"");
    for file in std::fs::read_dir(out.path()).unwrap() {
        let contents = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!contents.is_empty() && is_whole(&contents), "an exported file is torn");
    }
}

#[test]
fn readers_of_files_whose_writers_come_and_go() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["fs", "create", "d", "--isz", "32", "--htsize", "3"], b"");
    run(dir, &["fs", "put", "d", "always"], line(0).as_bytes());
    run(dir, &["create", "kvseq", "m.kvseq"], b"");
    run(dir, &["create", "hindex", "m.hindex", "--container", "m.kvseq", "--htsize", "3"], b"");
    run(dir, &["create", "perm", "m.perm", "--container", "m.kvseq"], b"");
    run(dir, &["add", "m.kvseq", "--index", "m.hindex", "--perm", "m.perm", "always", &line(0)], b"");
    // A few seconds, and however long it takes to have seen something.
    let (until, last_moment) = (Instant::now() + Duration::from_secs(4), Instant::now() + Duration::from_secs(120));
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let rounds = std::thread::scope(|scope| {
        let read = || {
            while !done.load(Ordering::Relaxed) {
                look(dir);
                looks.fetch_add(1, Ordering::Relaxed);
            }
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        let mut rounds = 0;
        let enough = |rounds| Instant::now() >= until && rounds > 1 && looks.load(Ordering::Relaxed) > 1;
        while !enough(rounds) && Instant::now() < last_moment && readers.iter().all(|reader| !reader.is_finished()) {
            rounds += 1;
            change(dir, rounds);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        rounds
    });
    let looks = looks.into_inner();
    assert!(rounds > 1 && looks > 1, "{rounds} rounds, {looks} looks");
    run(dir, &["fs", "check", "d"], b"");
    run(dir, &["check", "m.kvseq"], b"");
}
