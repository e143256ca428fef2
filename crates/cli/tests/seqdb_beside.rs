//! Two processes: `trawl seqdb` writes while others read, and a second writer is told who is there.

mod common;

use common::{stderr, stdout, trawl};
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A value can be told from its key: half of one, or one of another key, is noticed.
fn value(n: u64) -> String {
    let len = usize::try_from(n * 7919 % 1500).unwrap();
    (0..len).map(|i| char::from(b'a' + ((i as u64 * 31 + n) % 26) as u8)).collect()
}

fn run(dir: &Path, args: &[&str]) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// A process of ours, ended when dropped.
struct Other(Child);

impl Other {
    fn start(mut command: Command) -> (Self, ChildStdin) {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        (Other(child), stdin)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a line is a whole entry: its number comes out.
fn number(line: &str) -> u64 {
    let (key, found) = line.split_once('\t').unwrap_or_else(|| panic!("no entry: {line:?}"));
    let n = key.parse().unwrap_or_else(|_| panic!("no key: {line:?}"));
    assert!(found == value(n), "entry {n} is torn: {found:?}");
    n
}

#[test]
fn readers_see_whole_entries_while_another_process_writes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "create", "kvseq", "w.kvseq"]);
    run(dir, &["seqdb", "create", "hindex", "w.hindex", "--container", "w.kvseq", "--htsize", "11"]);
    let mut writer = trawl(dir);
    writer.args(["seqdb", "add", "w.kvseq", "--index", "w.hindex", "--tsv", "-", "--flush-every", "7", "-q"]);
    let (other, mut stdin) = Other::start(writer);
    let pid = other.0.id();
    let feeder = std::thread::spawn(move || {
        for n in 0u64.. {
            // The writer is killed in the end; then there is nobody to write to.
            if writeln!(stdin, "{n}\t{}", value(n)).and_then(|()| stdin.flush()).is_err() {
                return;
            }
            if n > 2000 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let list = || run(dir, &["seqdb", "list", "w.kvseq"]);
    let until = Instant::now() + Duration::from_secs(60);
    while list().is_empty() {
        assert!(Instant::now() < until, "nothing arrives");
    }

    // A second writer is refused, with the name of the first.
    let name = format!("held by trawl seqdb (pid {pid} on ");
    for args in [
        &["add", "w.kvseq", "k", "v"][..],
        &["delete", "w.kvseq", "--index", "w.hindex", "0"],
        &["compact", "w.kvseq"],
        &["rollback", "w.kvseq"],
        &["superblock", "w.kvseq", "--set", "MINE", "1"],
        &["check", "w.kvseq", "--repair"],
    ] {
        let refused = trawl(dir).arg("seqdb").args(args).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}", stdout(&refused));
        assert!(stderr(&refused).contains(&name), "{args:?}: {}", stderr(&refused));
    }

    let (mut rounds, mut most, mut grew) = (0, 0, 0);
    // A few seconds, and however long it takes to have seen something.
    let (until, last_moment) = (Instant::now() + Duration::from_secs(4), Instant::now() + Duration::from_secs(120));
    while Instant::now() < until || (rounds <= 3 || grew < 3 || most <= 500) && Instant::now() < last_moment {
        let numbers: Vec<u64> = list().lines().map(number).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "an entry is missing");
        let last = *numbers.last().unwrap();
        assert!(last >= most, "entries went away");
        grew += u64::from(last > most);
        most = last;
        rounds += 1;
        // By the index: the table may be replaced by a larger one at any moment.
        for n in [0, last / 2, last / 7] {
            let got =
                trawl(dir).args(["seqdb", "get", "w.kvseq", "--index", "w.hindex", &n.to_string()]).output().unwrap();
            match got.status.code() {
                Some(0) => assert!(stdout(&got) == value(n), "pair {n} is torn"),
                Some(1) => panic!("{n} of {last} is not found"),
                _ => panic!("{}", stderr(&got)),
            }
        }
    }
    assert!(rounds > 3 && grew >= 3 && most > 500, "{rounds} rounds, up to {most}");

    // Killed: what was synced is there, and a repair makes it whole.
    drop(other);
    feeder.join().unwrap();
    let repaired = trawl(dir).args(["seqdb", "check", "w.kvseq", "--repair"]).output().unwrap();
    assert_eq!(repaired.status.code(), Some(0), "{}{}", stdout(&repaired), stderr(&repaired));
    list().lines().for_each(|line| {
        number(line);
    });
    run(dir, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "0", &value(0)]);
}

#[test]
fn files_are_whole_while_another_process_imports_them() {
    for kind in [&[][..], &["--ao", "60"], &["--dups"]] {
        // With --dups a file is there once the index says so, which is at the end. Otherwise some are there before the
        // others: an import that was over before anybody could look gets more to do.
        let at_the_end = kind == ["--dups"];
        let seen = [8000, 40_000, 200_000].into_iter().any(|files| look_beside_import(kind, files) > 0 || at_the_end);
        assert!(seen, "no look was beside the writer");
    }
}

/// Imports so many files and looks at them again and again; how often some, but not all, were there.
fn look_beside_import(kind: &[&str], files: u64) -> u64 {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &[&["seqdb", "fs", "create", "docs", "--htsize", "20011"], kind].concat());
    std::fs::create_dir(dir.join("tree")).unwrap();
    (0..files).for_each(|n| std::fs::write(dir.join(format!("tree/{n}")), value(n)).unwrap());
    let mut writer = trawl(dir);
    writer.args(["seqdb", "fs", "import", "docs", "tree", "--flush-every", "3", "--sync", "off", "-q"]);
    let (mut other, _) = Other::start(writer);
    let mut partly = 0;
    loop {
        let ended = other.0.try_wait().unwrap();
        let output = trawl(dir).args(["--json", "cat", "docs"]).output().unwrap();
        // Nothing is there yet: exit code 1.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
        let text = stdout(&output);
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for row in &rows {
            let n = row["name"].as_str().unwrap().parse().unwrap();
            assert!(row["contents"] == value(n), "file {n} is torn: {row}");
        }
        let listed = run(dir, &["seqdb", "fs", "ls", "docs", "--index-order"]).lines().count();
        assert!(listed <= files as usize);
        partly += u64::from(!rows.is_empty() && rows.len() < files as usize);
        if let Some(status) = ended {
            assert!(status.success());
            assert_eq!((rows.len(), listed), (files as usize, files as usize));
            break;
        }
    }
    run(dir, &["verify", "docs"]);
    partly
}

#[test]
fn a_filesys_beside_its_writer() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    run(dir, &["seqdb", "fs", "create", "docs"]);
    let mut writer = trawl(dir);
    writer.args(["seqdb", "fs", "append", "docs", "log", "-q"]);
    let (other, mut stdin) = Other::start(writer);
    let pid = other.0.id();
    stdin.write_all(&[b'x'; 100]).unwrap();
    stdin.flush().unwrap();
    let name = format!("held by trawl seqdb (pid {pid} on ");
    // The name is written once the lock is held.
    let until = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(dir.join("docs.lock")).is_ok_and(|text| text.contains(&format!("pid {pid} "))) {
        assert!(Instant::now() < until, "the writer does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = trawl(dir).args(["seqdb", "fs", "rm", "docs", "log"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stderr(&refused).contains(&name), "{}", stderr(&refused));
    // A reader is let in; a check would not tell the truth and is refused by name.
    run(dir, &["seqdb", "fs", "ls", "docs"]);
    for file in ["docs.data", "docs.idx"] {
        assert!(run(dir, &["inspect", file]).contains(&name.replace("held by", "being written by")), "{file}");
    }
    for args in [&["verify", "docs"][..], &["seqdb", "fs", "check", "docs"], &["seqdb", "fs", "compact", "docs"]] {
        let refused = trawl(dir).args(args).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}", stdout(&refused));
        assert!(stderr(&refused).contains(&name), "{args:?}: {}", stderr(&refused));
    }
    drop(stdin);
    let mut other = other;
    assert!(other.0.wait().unwrap().success());
    assert_eq!(run(dir, &["seqdb", "fs", "cat", "docs", "log"]), "x".repeat(100));
    run(dir, &["verify", "docs"]);
}
