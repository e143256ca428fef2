//! Where a lake's URLs come from: every kind of source, twice, and interrupted.

mod common;

use common::lakes::write;
use common::{feed, stderr, stdout, trawl};
use flate2::{Compression, write::GzEncoder};
use rustix::fs::{FileType, Mode};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

fn ingest(dir: &Path, dataset: &str, sources: &[&str], code: i32) -> Value {
    let output =
        trawl(dir).args(["--json", "--quiet", "lake", "ingest", "--dataset", dataset]).args(sources).output().unwrap();
    report(&output, code)
}

fn report(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
    serde_json::from_str(stdout(output).lines().next().unwrap()).unwrap()
}

fn rows(report: &Value) -> u64 {
    report["rows"].as_u64().unwrap()
}

fn gz(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const CDXJ: &str = "com,a)/ 20260624010203 {\"url\":\"http://a.com/\",\"status\":\"200\"}\n";

#[test]
fn directories_patterns_clusters_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "runs/1/urls.txt", b"http://a.com/1\n");
    write(dir, "runs/2/deep/urls.txt.gz", gz("http://a.com/2\nhttp://a.com/3\n"));
    write(dir, "runs/2/notes.md", b"nothing here\n");
    write(dir, "runs/2/.hidden.txt", b"http://hidden.com/\n");
    let all = ingest(dir, "all", &["runs"], 0);
    assert_eq!((rows(&all), all["sources"].as_u64()), (3, Some(2)));
    assert!(all["ignored"][0].as_str().unwrap().ends_with("notes.md"));
    let pattern = ingest(dir, "pattern", &["runs/*/"], 0);
    assert_eq!(rows(&pattern), 3);
    assert_eq!(rows(&ingest(dir, "deep", &["runs/**/*.gz"], 0)), 2);
    let again = ingest(dir, "all", &["runs/1/../1/urls.txt", "runs"], 0);
    assert_eq!((rows(&again), again["skipped"].as_array().unwrap().len()), (0, 3), "another spelling is the same file");

    let block = |n: usize| gz(&CDXJ.replace("a.com/", &format!("a.com/{n}")));
    write(dir, "zipnum/cdx-00000.gz", [block(0), block(1)].concat());
    write(dir, "zipnum/cdx-00001.gz", block(2));
    let index = "com,a)/ 2026\tcdx-00000.gz\t0\t9\t1\ncom,a)/ 2026\tcdx-00000.gz\t9\t9\t2\ncom,b)/ 2026\tcdx-00001.gz\t0\t9\t3\n";
    write(dir, "zipnum/cluster.idx", index.as_bytes());
    assert_eq!(rows(&ingest(dir, "cluster", &["zipnum/cluster.idx"], 0)), 3);
    assert_eq!(rows(&ingest(dir, "cluster-dir", &["zipnum"], 0)), 3);
    write(dir, "broken/cluster.idx", b"com,a)/ 2026\t../../etc/passwd\t0\t9\t1\n");
    let broken = trawl(dir).args(["lake", "ingest", "--dataset", "x", "broken"]).output().unwrap();
    assert_eq!(broken.status.code(), Some(2));
    assert!(stderr(&broken).contains("cluster.idx line 1: expected"), "{}", stderr(&broken));
}

#[test]
fn standard_input_of_any_kind() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pipe = |dataset: &str, input: &[u8], more: &[&str]| {
        let mut child = trawl(dir)
            .args(["--json", "--quiet", "lake", "ingest", "--dataset", dataset, "-"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(rows(&report(&pipe("lines", b"http://a.com/\n", &[]), 0)), 1);
    assert_eq!(rows(&report(&pipe("cdxj", &gz(CDXJ), &[]), 0)), 1);
    assert_eq!(rows(&report(&pipe("csv", b"url,x\nhttp://a.com/,1\n", &["--format", "csv"]), 0)), 1);
    assert_eq!(rows(&report(&pipe("bare", b"a.com/x\nb.com\n", &["--format", "lines"]), 0)), 2);
    let unknown = pipe("what", b"a.com\n", &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("stdin: expected a format"), "{}", stderr(&unknown));
    assert_eq!(rows(&report(&pipe("empty", b"", &["--format", "lines"]), 0)), 0);
    let again = report(&pipe("lines", b"http://a.com/\n", &[]), 0);
    assert_eq!((rows(&again), again["skipped"][0]["uri"].as_str()), (0, Some("stdin")));
    let rejected = report(&pipe("lines", b"http://a.com/2\nmailto:x@y\n", &[]), 1);
    assert_eq!((rows(&rejected), rejected["rejected"].as_u64()), (1, Some(1)));
    let file = dir.join("lake").join(rejected["rejects_file"].as_str().unwrap());
    let line: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((line["code"].as_str(), line["text"].as_str()), (Some("scheme"), Some("mailto:x@y")));
    assert_eq!(std::fs::read_dir(dir.join("lake/tmp")).unwrap().count(), 0, "nothing of the input is left behind");
}

/// Whichever way a file is reached, it is one source.
#[test]
fn links_lead_to_one_source() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "out/o.txt", b"http://a.com/1\n");
    write(dir, "out/blob", b"url,x\nhttp://a.com/2,7\n");
    write(dir, "in/plain.txt", b"http://a.com/3\n");
    let link = |target: &str, name: &str| symlink(target, dir.join(name)).unwrap();
    link("../out/o.txt", "in/x.txt");
    link("plain.txt", "in/same.txt");
    link("../out/blob", "in/table.csv");
    link("nothing", "in/dangling.txt");
    link("circle", "in/circle");
    link("../in", "in/up");
    let first = ingest(dir, "a", &["in"], 0);
    assert_eq!((rows(&first), first["sources"].as_u64()), (3, Some(3)), "{first}");
    assert!(first["ignored"].is_null(), "the name of a link tells the format: {first}");
    let told = |n: usize| {
        let other = &first["not_files"][n];
        (other["path"].as_str().unwrap().rsplit('/').next().unwrap(), other["why"].as_str().unwrap())
    };
    let nowhere = "a link that cannot be followed";
    assert_eq!(
        [told(0), told(1), told(2)],
        [("circle", nowhere), ("dangling.txt", nowhere), ("up", "a link to a directory")]
    );
    // One that a pattern matches was asked for, and would be an error.
    std::fs::remove_file(dir.join("in/dangling.txt")).unwrap();
    for way in ["in/x.txt", "in/*.txt", "out/o.txt", "in/table.csv", "in/plain.txt", "in"] {
        assert_eq!(rows(&ingest(dir, "a", &[way], 0)), 0, "{way}");
    }
    // As files in directories were known before links were looked at.
    let uri = dir.canonicalize().unwrap().join("in/plain.txt");
    let again = ingest(dir, "a", &["in"], 0);
    assert!(again["skipped"].as_array().unwrap().iter().any(|s| s["uri"] == uri.to_str().unwrap()), "{again}");

    std::fs::create_dir(dir.join("links")).unwrap();
    link("../in", "links/only");
    let none = trawl(dir).args(["lake", "ingest", "--dataset", "b", "links"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("links holds no files; ") && stderr(&none).contains("a link to a directory"));

    // The index of a cluster and its parts may lie apart from each other, and be brought together by links.
    write(dir, "deep/cdx-00000.gz", gz(CDXJ));
    write(dir, "cluster.idx", b"com,a)/ 2026\tcdx-00000.gz\t0\t9\t1\n");
    std::fs::create_dir(dir.join("zipnum")).unwrap();
    link("../cluster.idx", "zipnum/cluster.idx");
    link("../deep/cdx-00000.gz", "zipnum/cdx-00000.gz");
    assert_eq!(rows(&ingest(dir, "z", &["zipnum"], 0)), 1);
    assert_eq!(rows(&ingest(dir, "z", &["zipnum/cluster.idx", "deep/cdx-00000.gz"], 0)), 0);
}

/// Their rows were there twice.
#[test]
fn hard_links_are_one_source() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "d/b.txt", b"http://a.com/1\n");
    let link = |name: &str| std::fs::hard_link(dir.join("d/b.txt"), dir.join(name)).unwrap();
    link("d/c.txt");
    let first = ingest(dir, "a", &["d"], 0);
    assert_eq!((rows(&first), first["skipped"].as_array().unwrap().len()), (1, 1), "{first}");
    // A new name that comes before the one that is known.
    link("d/a.txt");
    let again = ingest(dir, "a", &["d"], 0);
    assert_eq!((rows(&again), again["skipped"].as_array().unwrap().len()), (0, 3), "{again}");
    write(dir, "d/b.txt", b"http://a.com/1\nhttp://a.com/2\n");
    let grown = ingest(dir, "a", &["d"], 0);
    assert_eq!((rows(&grown), grown["skipped"].as_array().unwrap().len()), (1, 2), "{grown}");
    // As one dataset for each, they were asked for.
    assert_eq!(ingest_each(dir, &["d/b.txt", "d/c.txt"]), [2, 2]);
}

fn ingest_each(dir: &Path, files: &[&str]) -> Vec<u64> {
    let output =
        trawl(dir).args(["--json", "-q", "lake", "ingest", "--dataset-per-file"]).args(files).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output).lines().map(|line| rows(&serde_json::from_str(line).unwrap())).collect()
}

/// They were taken for one file, and the second was skipped.
#[test]
fn names_that_are_not_utf8_are_told_apart() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("d")).unwrap();
    for (name, text) in [(b"\xe4.txt", "http://a.com/1\n"), (b"\xe5.txt", "http://a.com/2\n")] {
        let path = dir.join("d").join(std::ffi::OsStr::from_bytes(name));
        // Not every file system has such names.
        if std::fs::write(path, text).is_err() {
            return;
        }
    }
    let first = ingest(dir, "a", &["d"], 0);
    assert_eq!((rows(&first), first["sources"].as_u64()), (2, Some(2)), "{first}");
    let again = ingest(dir, "a", &["d"], 0);
    assert_eq!((rows(&again), again["skipped"].as_array().unwrap().len()), (0, 2), "{again}");
    assert!(again["skipped"][0]["uri"].as_str().unwrap().ends_with("/d/%E4.txt"), "{again}");
}

/// Pipes that are named like files are read as standard input is.
#[test]
fn pipes_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let command = |args: &[&str]| {
        let mut command = trawl(dir);
        command.args(["--json", "--quiet", "lake", "ingest", "--dataset"]).args(args);
        command
    };
    let fed = |args: &[&str], input: &str| report(&feed(command(args), input.as_bytes()), 0);
    // What gives its bytes to a pipe waits until somebody opens it.
    let pipe = |name: &str, input: &'static str| {
        let path = dir.join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::thread::spawn(move || std::fs::write(path, input).unwrap())
    };
    let writers = [pipe("one", "http://a.com/1\n"), pipe("two", "http://a.com/2\nmailto:x@y\n")];
    let two = ingest(dir, "a", &["one", "two"], 1);
    assert_eq!((rows(&two), two["sources"].as_u64(), two["rejected"].as_u64()), (2, Some(2), Some(1)));
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    // As `<(…)` is named.
    let again = fed(&["a", "/dev/fd/0"], "http://a.com/1\n");
    assert_eq!((rows(&again), again["skipped"][0]["uri"].as_str()), (0, Some("stdin")), "known by its bytes");
    assert_eq!(rows(&fed(&["a", "-"], "http://a.com/1\n")), 0);
    assert_eq!(rows(&fed(&["b", "/dev/stdin", "--format", "csv"], "url\nhttp://a.com/1\n")), 1);
    // As some shells do it for `<<<`.
    write(dir, "gone", b"http://a.com/1\n");
    let gone = std::fs::File::open(dir.join("gone")).unwrap();
    std::fs::remove_file(dir.join("gone")).unwrap();
    assert_eq!(rows(&report(&command(&["d", "/dev/fd/0"]).stdin(gone).output().unwrap(), 0)), 1);
    assert_eq!(std::fs::read_dir(dir.join("lake/tmp")).unwrap().count(), 0, "nothing of the input is left behind");

    let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    let refused = trawl(dir).args(["lake", "ingest", "--dataset", "x", "socket"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("not a regular file, directory or pipe"), "{}", stderr(&refused));
}

/// Killed at many moments, an ingest that is repeated ends with every row once.
#[test]
fn killed_and_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let count = 60_000;
    let text: String = (0..count).map(|i| format!("http://d{}.com/{i}\n", i % 500)).collect();
    write(dir, "urls.txt", text.as_bytes());
    write(dir, "first.txt", b"http://first.org/\n");
    ingest(dir, "set", &["first.txt"], 0);
    let args = ["lake", "ingest", "--dataset", "set", "urls.txt", "--threads", "1", "-q"];
    let started = Instant::now();
    let mut whole =
        trawl(dir).args(["lake", "ingest", "--lake", "other", "--dataset", "set", "urls.txt", "-q"]).spawn().unwrap();
    whole.wait().unwrap();
    let takes = started.elapsed();
    for part in 1..8 {
        let mut child = trawl(dir).args(args).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(takes * part / 8);
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = trawl(dir).args(["query", "domain", "first.org", "-q"]).output().unwrap();
        assert_eq!(seen.status.code(), Some(0), "readers go on: {}", stderr(&seen));
    }
    let last = trawl(dir).args(args).output().unwrap();
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
    let datasets = trawl(dir).args(["lake", "datasets", "--json"]).output().unwrap();
    assert_eq!(report(&datasets, 0)["rows"], count + 1);
    // What the killed ones left goes with a collection, and nothing else does.
    std::thread::sleep(Duration::from_millis(10));
    let gc = ["lake", "gc", "--grace", "0s", "--keep-versions", "1", "--yes", "--json"];
    report(&trawl(dir).args(gc).output().unwrap(), 0);
    let verified = trawl(dir).args(["lake", "verify", "-q"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
    // Empty directories go too.
    assert_eq!(std::fs::read_dir(dir.join("lake/index/heartbeats")).map_or(0, Iterator::count), 0);
}

/// Two at once into one new lake, into two datasets and into one: all rows are there.
#[test]
fn two_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for n in 0..4 {
        let text: String = (0..5000).map(|i| format!("http://d{}.com/{n}/{i}\n", i % 50)).collect();
        write(dir, &format!("{n}.txt"), text.as_bytes());
    }
    let start = |dataset: &str, file: &str| {
        trawl(dir).args(["lake", "ingest", "--dataset", dataset, file, "-q"]).stdout(Stdio::null()).spawn().unwrap()
    };
    let all = [start("x", "0.txt"), start("y", "1.txt"), start("x", "2.txt"), start("y", "3.txt")];
    for mut child in all {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let output = trawl(dir).args(["lake", "datasets", "--json"]).output().unwrap();
    let found: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.iter().map(|d| d["rows"].as_u64().unwrap()).collect::<Vec<_>>(), [10_000, 10_000]);
}

#[test]
fn what_was_cut_and_came_whole_later_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "http://a.com/1\nhttp://b.com/2\nhttp://b.com/long\nhttp://c.com/4\n";
    let cut = text.find("ng\n").unwrap();
    write(dir, "in/l.txt", &text[..cut]);
    write(dir, "in/z.txt.gz", gz(text));
    assert_eq!(rows(&ingest(dir, "d", &["in"], 0)), 3 + 4);
    write(dir, "in/l.txt", text);
    write(dir, "in/z.txt.gz", [gz(text), gz("http://d.com/\n")].concat());
    let grown = ingest(dir, "d", &["in"], 0);
    assert_eq!((rows(&grown), &grown["taken_back"]), (3, &Value::from(1)));
    let known = grown["grown"].as_array().unwrap();
    assert_eq!((known.len(), &known[0]["size"]), (2, &Value::from(cut)));
    let again = ingest(dir, "d", &["in"], 0);
    assert_eq!((rows(&again), again["skipped"].as_array().unwrap().len()), (0, 2));
    let listed = |domain: &str| {
        let output = trawl(dir).args(["--quiet", "query", "urls", domain, "d"]).output().unwrap();
        stdout(&output)
    };
    assert_eq!(listed("b.com"), "http://b.com/2\nhttp://b.com/2\nhttp://b.com/long\nhttp://b.com/long\n");
    assert_eq!(listed("d.com"), "http://d.com/\n");
    let verify = trawl(dir).args(["lake", "verify"]).output().unwrap();
    assert_eq!(verify.status.code(), Some(0), "{}", stdout(&verify));
    // What comes through a pipe has no name by which it could have grown.
    let pipe = |text: &str| {
        let mut child = trawl(dir)
            .args(["--json", "--quiet", "lake", "ingest", "--dataset", "piped", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        rows(&report(&child.wait_with_output().unwrap(), 0))
    };
    assert_eq!((pipe(&text[..15]), pipe(text), pipe(text)), (1, 4, 0));
    // --replace reads all of it again.
    write(dir, "in/l.txt", format!("{text}http://e.com/\n"));
    assert_eq!(rows(&ingest(dir, "d", &["in/l.txt", "--replace"], 0)), 5);
}

#[test]
fn what_the_file_system_says_is_believed_unless_told_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let hour = Duration::from_secs(3600);
    let then = std::time::SystemTime::now() - 24 * hour;
    // In place: size and inode stay.
    let put = |text: &str, modified| {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(dir.join("u.txt")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(modified).unwrap();
    };
    let commits = || std::fs::read_dir(dir.join("lake/datasets/1/commits")).unwrap().count();
    let take = |more: &[&str]| {
        let report = ingest(dir, "d", &[&["u.txt"], more].concat(), 0);
        assert_eq!(report["version"].is_null(), rows(&report) == 0, "noting a time makes no version: {report}");
        (rows(&report), report["skipped"].as_array().unwrap().len(), commits())
    };
    put("http://a.com/1\n", then);
    assert_eq!(take(&[]), (1, 0, 1));
    put("http://a.com/2\n", then);
    assert_eq!(take(&[]), (0, 1, 1), "size, time and inode are the same, so it is not read");
    assert_eq!(take(&["--rehash"]), (1, 0, 2), "it is when it is asked for");
    // Another time: it is read and found to be known; that is noted, so that it need not be read again.
    put("http://a.com/2\n", then + hour);
    assert_eq!(take(&[]), (0, 1, 3));
    assert_eq!(take(&[]), (0, 1, 3));
    put("http://a.com/3\n", then + hour);
    assert_eq!(take(&[]), (0, 1, 3), "by the time that was noted");
    put("http://a.com/3\n", then + 2 * hour);
    assert_eq!(take(&[]), (1, 0, 4));
    // A file of just now, or of later, may change again without showing it: nothing is noted.
    put("http://a.com/4\n", std::time::SystemTime::now() + hour);
    let modified = std::fs::metadata(dir.join("u.txt")).unwrap().modified().unwrap();
    assert_eq!(take(&[]), (1, 0, 5));
    put("http://a.com/5\n", modified);
    assert_eq!(take(&[]), (1, 0, 6));
    // Another file in its place.
    put("http://a.com/6\n", then + 3 * hour);
    assert_eq!(take(&[]), (1, 0, 7));
    std::fs::write(dir.join("other"), "http://a.com/7\n").unwrap();
    std::fs::File::options().write(true).open(dir.join("other")).unwrap().set_modified(then + 3 * hour).unwrap();
    std::fs::rename(dir.join("other"), dir.join("u.txt")).unwrap();
    assert_eq!(take(&[]), (1, 0, 8));
    assert_eq!(ingest(dir, "d", &["u.txt", "--replace"], 0)["rows"], 1, "--replace reads whatever is known");
}
