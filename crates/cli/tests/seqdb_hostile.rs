//! Broken and malicious containers, given to the binary: it says what is wrong and leaves with a code, in bounded time and
//! within bounded memory. The limit is the system's (`ulimit -v`).

mod common;

use common::{stderr, stdout, trawl};
use std::path::Path;
use std::process::{Command, Output};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/seqdb/tests/data");
/// Address space in KiB: the program and the buffers it would need for files of a few hundred bytes.
const LIMIT_KIB: u64 = 600 << 10;

fn vector(name: &str) -> Vec<u8> {
    std::fs::read(format!("{VECTORS}/{name}")).unwrap()
}

/// Runs `trawl ARGS` with little memory and so many seconds of processor time; it must end by itself, and not by a panic.
fn run(dir: &Path, args: &[&str], seconds: u64) -> Output {
    let plain = trawl(dir);
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {LIMIT_KIB} && ulimit -t {seconds} && exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(plain.get_program()).args(args);
    // Every arena of the allocator would reserve addresses that nobody uses.
    command.current_dir(dir).env("MALLOC_ARENA_MAX", "1");
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0..=2)), "{args:?}: {} {text}", output.status);
    assert!(!text.contains("panicked") && !text.contains("memory allocation"), "{args:?}: {text}");
    output
}

/// Every way of looking at a file.
fn look(dir: &Path, file: &str, what: &str) {
    let looks: [&[&str]; 7] = [
        &["inspect", file],
        &["verify", file],
        &["cat", file, "-q"],
        &["seqdb", "superblock", file],
        &["seqdb", "list", file, "--deleted"],
        &["seqdb", "get", file, "apple"],
        &["seqdb", "check", file, "--salvage"],
    ];
    for args in looks {
        let output = run(dir, args, 20);
        // A list of no entries is a list; everything else has something to say.
        let said = !output.stdout.is_empty() || !output.stderr.is_empty();
        assert!(said || args[0] == "cat" || args[1] == "list", "{what}: {args:?} says nothing");
    }
}

#[test]
fn cut_and_flipped() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    for name in ["v1.kvseq", "v2.hindex", "v3.hindex", "v4.perm", "v5.data", "v6.idx", "v7.time"] {
        let good = vector(name);
        let suffix = name.split('.').next_back().unwrap();
        let sub = dir.join(name);
        std::fs::create_dir(&sub).unwrap();
        let save = |stem: String, bytes: &[u8]| {
            std::fs::write(sub.join(format!("{stem}.{suffix}")), bytes).unwrap();
            // The others of its filesys.
            if matches!(suffix, "data" | "idx" | "time") {
                for (other, file) in [("data", "v5.data"), ("idx", "v6.idx"), ("time", "v7.time")] {
                    if other != suffix {
                        std::fs::copy(format!("{VECTORS}/{file}"), sub.join(format!("{stem}.{other}"))).unwrap();
                    }
                }
            }
        };
        (0..good.len()).for_each(|cut| save(format!("cut{cut}"), &good[..cut]));
        for bit in (0..good.len() * 8).step_by(17) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            save(format!("bit{bit}"), &bad);
        }
        // All of them by one process each: what one of them takes must be given back for the next.
        for command in ["inspect", "verify"] {
            let output = run(dir, &["--json", command, name], 120);
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {}", stderr(&output));
        }
        let mut paths: Vec<_> = std::fs::read_dir(&sub).unwrap().map(|e| e.unwrap().file_name()).collect();
        paths.retain(|path| Path::new(path).extension().is_some_and(|e| e == suffix));
        let paths: Vec<_> = paths.iter().map(|path| format!("{name}/{}", path.to_string_lossy())).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        for part in paths.chunks(500) {
            run(dir, &[&["seqdb", "check", "--sync", "off"], part].concat(), 60);
            run(dir, &[&["seqdb", "check", "--repair", "--sync", "off"], part].concat(), 120);
        }
    }
}

#[test]
fn numbers_no_honest_file_has() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let cases = [
        ("v1.kvseq", "SBSIZE", 0),
        ("v1.kvseq", "SBSIZE", 1 << 60),
        ("v1.kvseq", "SBSIZE", 16 << 20),
        ("v1.kvseq", "FILESIZE", i64::MAX),
        ("v1.kvseq", "FILESIZE", 1 << 40),
        ("v1.kvseq", "SYNCSIZE", -1),
        ("v1.kvseq", "KEYREPR", 3),
        ("v1.kvseq", "VALREPR", 1 << 40),
        ("v1.kvseq", "ALIGN", 1 << 62),
        ("v1.kvseq", "AENTRIES", 1 << 60),
        ("v3.hindex", "HTSIZE", 1 << 60),
        ("v3.hindex", "HTSIZE", 0),
        ("v3.hindex", "CELLSZ", 3),
        ("v3.hindex", "ENTRIES", 1 << 60),
        ("v4.perm", "PERMSIZE", 1 << 60),
        ("v4.perm", "HTSIZE", 0),
        ("v5.data", "ISZ", 1 << 60),
        ("v5.data", "DTOTSZ", i64::MIN),
        ("v6.idx", "HTSIZE", 1 << 60),
        ("v7.time", "TIMEMP", i64::MIN),
    ];
    for (name, variable, number) in cases {
        let mut bytes = vector(name);
        let at = bytes.windows(8).position(|w| w.starts_with(variable.as_bytes())).unwrap() + 8;
        bytes[at..at + 8].copy_from_slice(&i64::to_be_bytes(number));
        let suffix = name.split('.').next_back().unwrap();
        for (file, good) in [("kvseq", "v1.kvseq"), ("data", "v5.data"), ("idx", "v6.idx"), ("time", "v7.time")] {
            std::fs::write(dir.join(format!("x.{file}")), vector(good)).unwrap();
        }
        let file = format!("x.{suffix}");
        std::fs::write(dir.join(&file), &bytes).unwrap();
        look(dir, &file, &format!("{name} with {variable} {number}"));
        // The table is rebuilt from the container, and not as large as the broken one claims.
        if suffix == "hindex" {
            std::fs::write(dir.join(&file), &bytes).unwrap();
            run(dir, &["seqdb", "index-rebuild", &file, "--container", "x.kvseq"], 20);
            assert!(std::fs::metadata(dir.join(&file)).unwrap().len() < 10_000);
        }
        for entry in std::fs::read_dir(dir).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

/// A container of captures with a broken length, a broken inode, a broken record: faults, not failures.
#[test]
fn damaged_captures() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/captures/tests/specimen/runs");
    let mut archives: Vec<_> = std::fs::read_dir(runs).unwrap().map(|e| e.unwrap().path()).collect();
    archives.sort();
    let made = trawl(dir).arg("convert").arg(&archives[0]).args(["good.data", "-q"]).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let good = std::fs::read(dir.join("good.data")).unwrap();
    let url = b"http://www.example.org/\t";
    let name = good.windows(url.len()).position(|w| w == url).unwrap();
    let entry = good.windows(3).position(|w| w == b"FSD").unwrap();
    for (at, byte, what) in [(entry + 19, 0x40, "a length"), (name, 1, "a name"), (entry + 40, 0x40, "a record")] {
        for suffix in ["idx", "time", "urls"] {
            std::fs::copy(dir.join(format!("good.{suffix}")), dir.join(format!("bad.{suffix}"))).unwrap();
        }
        let mut bad = good.clone();
        bad[at] ^= byte;
        std::fs::write(dir.join("bad.data"), bad).unwrap();
        let output = run(dir, &["verify", "bad"], 20);
        assert_eq!(output.status.code(), Some(1), "{what}: {}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("bad.data@"), "{what}: {}", stdout(&output));
        for args in
            [&["inspect", "bad"][..], &["cat", "bad", "--json"], &["convert", "bad.data", "out.warc.gz", "--overwrite"]]
        {
            run(dir, args, 20);
        }
        run(dir, &["seqdb", "check", "bad", "--salvage"], 20);
        let output = run(dir, &["seqdb", "check", "bad"], 20);
        assert_eq!(output.status.code(), Some(0), "{what} after a repair: {}", stdout(&output));
    }
    // The newest capture of the page is a revisit; its body is that of an older one.
    let body = trawl(dir).args(["cat", "good", "--url", "http://www.example.org/", "--body"]).output().unwrap();
    assert_eq!((body.status.code(), body.stdout.len()), (Some(0), 789), "{}", stderr(&body));

    // Once the newest is deleted, the one before is the newest: the index by URL follows.
    let newest = || stdout(&run(dir, &["--json", "seqdb", "page", "good", "http://www.example.org/"], 20));
    let before = newest();
    let time: String = before.split('"').nth(7).unwrap().chars().filter(char::is_ascii_digit).collect();
    let deleted = run(dir, &["seqdb", "fs", "rm", "good", &format!("http://www.example.org/\t{time}")], 20);
    assert_eq!(stdout(&deleted), "1 deleted, 0 not found\n");
    assert!(newest().contains("2026-06-24T01:02:") && newest() < before, "{before}{}", newest());
    assert_eq!(run(dir, &["verify", "good"], 20).status.code(), Some(0));
}

#[test]
fn a_sparse_file_of_terabytes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let mut bytes = vector("v1.kvseq");
    let size = 4i64 << 40;
    for variable in ["FILESIZE", "SYNCSIZE"] {
        let at = bytes.windows(8).position(|w| w == variable.as_bytes()).unwrap() + 8;
        bytes[at..at + 8].copy_from_slice(&size.to_be_bytes());
    }
    // Lengths of 64 bits: the first value takes all there is.
    let valrepr = bytes.windows(8).position(|w| w.starts_with(b"VALREPR")).unwrap() + 15;
    bytes[valrepr] = 3;
    let entry = 256 + 1 + 6;
    bytes.truncate(entry);
    bytes.extend_from_slice(&(size - entry as i64 - 8).to_be_bytes());
    std::fs::write(dir.join("x.kvseq"), &bytes).unwrap();
    let open = std::fs::File::options().write(true).open(dir.join("x.kvseq")).unwrap();
    if open.set_len(size.unsigned_abs()).is_err() {
        // Not every file system can hold such a file.
        return;
    }
    run(dir, &["inspect", "x.kvseq"], 20);
    run(dir, &["seqdb", "superblock", "x.kvseq"], 20);
    let list = run(dir, &["seqdb", "list", "x.kvseq", "--keys"], 20);
    assert_eq!(stdout(&list), "apple\n");
    run(dir, &["verify", "x.kvseq"], 20);
    let get = run(dir, &["seqdb", "get", "x.kvseq", "apple"], 20);
    assert_eq!(get.status.code(), Some(2), "a value of terabytes is not read into memory");
}
