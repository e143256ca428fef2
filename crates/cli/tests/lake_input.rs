//! What people and their files get wrong: marks, settings, names, and texts that would play tricks on a terminal.

mod common;

use common::{stderr, stdout, trawl};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

fn run(dir: &Path, args: &[&str], input: &[u8], code: i32) -> Output {
    let mut child =
        trawl(dir).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that is refused does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    output
}

fn ingest(dir: &Path, dataset: &str, more: &[&str], input: &[u8], code: i32) -> Output {
    run(dir, &[&["lake", "ingest", "-q", "--dataset", dataset, "-"], more].concat(), input, code)
}

fn lines(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(dir: &Path, args: &[&str]) -> String {
    stdout(&run(dir, args, b"", 0))
}

#[test]
fn a_byte_order_mark_belongs_to_no_url() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ingest(dir, "lines", &[], b"\xef\xbb\xbfhttps://bom.org/a\nhttps://bom.org/b\n", 0);
    ingest(dir, "json", &[], b"\xef\xbb\xbf{\"url\":\"https://bom.org/a\"}\n{\"url\":\"https://bom.org/b\"}\n", 0);
    ingest(
        dir,
        "csv",
        &["--format", "csv"],
        b"\xef\xbb\xbf\"url\",\"x\"\nhttps://bom.org/a,1\nhttps://bom.org/b,2\n",
        0,
    );
    for dataset in ["lines", "json", "csv"] {
        let listed = text(dir, &["query", "urls", "bom.org", dataset]);
        assert_eq!(listed, "https://bom.org/a\nhttps://bom.org/b\n", "{dataset}");
    }
    run(dir, &["query", "domain", "https"], b"", 1);
}

#[test]
fn many_threads_share_the_memory_or_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ingest(dir, "many", &["--memory", "256MiB", "--threads", "100"], b"http://a.com/1\n", 0);
    assert_eq!(text(dir, &["query", "urls", "a.com", "many"]), "http://a.com/1\n");
    for (more, said) in [
        (&["--memory", "64MiB", "--threads", "100"][..], "memory: expected at least 1 MiB for each thread"),
        (&["--threads", "18446744073709551615"], "threads: expected at most 1024"),
    ] {
        let refused = ingest(dir, "z", more, b"http://a.com/1\n", 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
}

#[test]
fn what_cannot_be_read_makes_no_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for more in [&["--zstd-level", "99"][..], &["--memory", "1"], &["--threads", "5000"]] {
        ingest(dir, "x", more, b"http://a.com/\n", 2);
        assert!(!dir.join("lake").exists(), "{more:?} makes no lake");
    }
    ingest(dir, "good", &[], b"http://a.com/\n", 0);
    ingest(dir, "header", &["--format", "csv"], b"x,y\n1,2\n", 2);
    // A quote that never ends is a reject, not a reason to stop: the lines before it count.
    let other = dir.join("other");
    std::fs::create_dir(&other).unwrap();
    ingest(&other, "quote", &["--format", "csv"], b"url\nhttp://b.com/\n\"http://a.com/\n", 1);
    assert_eq!(lines(&run(&other, &["lake", "datasets", "--json"], b"", 0))[0]["rows"], 1);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"http://a.com/2\n").unwrap();
    let packed = packed.finish().unwrap();
    ingest(dir, "cut", &["--format", "lines"], &packed[..packed.len() - 3], 2);
    // Also where it breaks long after the first lines; what a dataset had before stays.
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    (0..5000).for_each(|n| writeln!(packed, "http://b.com/{n}").unwrap());
    let packed = packed.finish().unwrap();
    for name in ["late", "good"] {
        ingest(dir, name, &["--format", "lines"], &packed[..packed.len() - 3], 2);
    }
    let datasets = lines(&run(dir, &["lake", "datasets", "--json"], b"", 0));
    assert_eq!(datasets.iter().map(|d| d["name"].as_str().unwrap()).collect::<Vec<_>>(), ["good"]);
    // The name is free, the number is not.
    ingest(dir, "late", &["--format", "lines"], &packed, 0);
    let datasets = lines(&run(dir, &["lake", "datasets", "--json"], b"", 0));
    assert_eq!((datasets[1]["dataset_id"].as_u64(), datasets[1]["rows"].as_u64()), (Some(3), Some(5000)));
    run(dir, &["lake", "verify"], b"", 0);
}

#[test]
fn texts_of_sources_forge_no_lines() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let url = "https://esc.org/a\nforged.org/x\r\u{1b}[31m\t\u{202e}é";
    ingest(dir, "d", &[], format!("{}\n", serde_json::json!({ "url": url })).as_bytes(), 0);
    let shown = "https://esc.org/a\\nforged.org/x\\r\\u{1b}[31m\\t\\u{202e}é\n";
    assert_eq!(text(dir, &["query", "urls", "esc.org", "d"]), shown);
    assert_eq!(text(dir, &["query", "url", url]), format!("d\t{shown}"));
    let page = lines(&run(dir, &["query", "urls", "esc.org", "d", "--json"], b"", 0)).remove(0);
    assert_eq!(page["items"][0]["url"], url, "machines get it as it is");
}

#[test]
fn path_prefixes_in_any_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let urls =
        "https://p.org/%7Eme/x\nhttps://p.org//double/x\nhttps://p.org/p q\nhttps://p.org/q?a=1\nhttps://p.org/qq\n";
    // As a line of a list, the URL with the blank would be rejected.
    ingest(dir, "d", &["--format", "tsv"], urls.as_bytes(), 0);
    for (prefix, expected) in [
        ("/%7Eme", "https://p.org/%7Eme/x\n"),
        ("/~me", "https://p.org/%7Eme/x\n"),
        ("//double", "https://p.org//double/x\n"),
        ("/p q", "https://p.org/p q\n"),
        ("/p%2", "https://p.org/p q\n"),
        ("/q?", "https://p.org/q?a=1\n"),
        ("/none", ""),
    ] {
        assert_eq!(text(dir, &["query", "urls", "p.org", "d", "--path-prefix", prefix]), expected, "{prefix}");
        let hosted = text(dir, &["query", "urls", "p.org", "d", "--host", "P.org", "--path-prefix", prefix]);
        assert_eq!(hosted, expected, "{prefix} of a host");
    }
}

#[test]
fn one_bad_name_does_not_end_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ingest(dir, "d", &[], b"http://bj.org/\nhttp://bs.org/\n", 0);
    let answers = run(dir, &["query", "domain", "-", "--json"], b"bj.org\nbad domain\n\xff\xfe.org\nbs.org\n", 1);
    let answers = lines(&answers);
    assert_eq!((&answers[0]["domain"], &answers[3]["domain"]), (&"bj.org".into(), &"bs.org".into()));
    assert_eq!((&answers[1]["error"], &answers[2]["error"]), (&"bad_domain".into(), &"bad_domain".into()));
    for dataset in ["nods", "77"] {
        let answer = lines(&run(dir, &["query", "urls", "bj.org", dataset, "--json"], b"", 1));
        assert_eq!(answer[0]["error"], "unknown_dataset", "{dataset}");
    }
    let diff = lines(&run(dir, &["query", "diff", "d", "nods", "--json"], b"", 1));
    assert_eq!(diff[0]["error"], "unknown_dataset");
}

/// Rows of many domains, more than the least memory holds.
fn many_rows(seed: usize) -> String {
    (0..60_000).map(|n| format!("https://www.d{}.org/{seed}/{}/{n}\n", n * 7919 % 5003, "p".repeat(120))).collect()
}

#[test]
fn files_are_written_again_within_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for seed in 0..3 {
        std::fs::write(dir.join(format!("{seed}.txt")), many_rows(seed)).unwrap();
        run(dir, &["lake", "ingest", "--dataset", "d", "--memory", "16MiB", &format!("{seed}.txt")], b"", 0);
    }
    for verb in [&["compact", "--full"][..], &["purge", "--yes"], &["rebuild"]] {
        let args = [&["lake"], verb, &["--memory", "1MiB"]].concat();
        let refused = run(dir, &args, b"", 2);
        assert!(stderr(&refused).contains("memory: expected at least 16 MiB"), "{}", stderr(&refused));
    }
    std::fs::write(dir.join("short.dat"), "com\norg\n").unwrap();
    for args in [
        &["lake", "compact", "--full", "--memory", "16MiB"][..],
        &["lake", "deny", "add", "--domain", "d7.org"],
        &["lake", "purge", "--yes", "--memory", "16MiB"],
        &["lake", "rebuild", "--psl", "short.dat", "--memory", "16MiB"],
        &["lake", "verify"],
    ] {
        run(dir, args, b"", 0);
    }
    let stats: Value = serde_json::from_str(&text(dir, &["lake", "stats", "--json"])).unwrap();
    let gone = 3 * (0..60_000).filter(|n| n * 7919 % 5003 == 7).count();
    assert_eq!((stats["rows"].as_u64(), stats["denied_rows"].as_u64()), (Some(180_000 - gone as u64), Some(0)));
}
