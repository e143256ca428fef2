//! Lists as people bring them: tables of every kind, JSON over many lines, indexes of archives, what browsers export.

mod common;

use common::lakes::write;
use common::{stderr, stdout, trawl};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Output;

fn run(dir: &Path, args: &[&str], code: i32) -> Output {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    output
}

/// Brings a file into a dataset of its name; the URLs of a domain in it.
fn taken(dir: &Path, name: &str, bytes: impl AsRef<[u8]>, more: &[&str], domain: &str) -> Vec<Value> {
    write(dir, name, bytes);
    run(dir, &[&["lake", "ingest", "-q", "--dataset", name, name], more].concat(), 0);
    let answer = run(dir, &["query", "urls", domain, name, "--json"], 0);
    let answer: Value = serde_json::from_str(&stdout(&answer)).unwrap();
    answer["items"].as_array().unwrap().clone()
}

fn gz(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn lists_of_every_kind() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let one = |name: &str, text: &str, more: &[&str]| {
        let items = taken(dir, name, text, more, "a.com");
        assert_eq!(items.len(), 1, "{name}: {items:?}");
        items[0].clone()
    };
    for (name, text, more) in [
        ("semicolons.csv", "n;url\n1;http://a.com/\n", &[][..]),
        ("named.csv", "n,link,seen\n1,http://a.com/,1700000000\n", &["--url-column", "link", "--time-column", "seen"]),
        ("tilde.txt", "n~url\n1~http://a.com/\n", &["--separator", "~", "--format", "csv"]),
        ("array.json", "[\n\t{\"url\":\"http://a.com/\"},\n\t{\"url\":\"http://b.com/\"}\n]\n", &[]),
        ("pretty.jsonl", "{\n  \"url\": \"http://a.com/\"\n}\n{\n  \"url\": \"http://b.com/\"\n}\n", &[]),
        ("browser.har", "{\"log\":{\"entries\":[{\"request\":{\"url\":\"http://a.com/\"}}]}}", &[]),
        ("bookmarks.html", "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DT><A HREF=\"http://a.com/\">A</A>\n", &[]),
        ("sitemap.xml", "<urlset><url><loc>http://a.com/</loc></url></urlset>", &[]),
        ("feed", "<?xml version=\"1.0\"?><feed><entry><link href=\"http://a.com/\"/></entry></feed>", &[]),
        ("rows", "http://a.com/|3\nhttp://b.com/x|12\n", &[]),
        ("key.cdxj", "com,a)/ 20260624010203 {\"status\":\"200\"}\n", &[]),
    ] {
        let item = one(name, text, more);
        assert_eq!(item["url"], "http://a.com/", "{name}");
        if name == "named.csv" {
            assert_eq!(item["ts"], "2023-11-14T22:13:20.000Z");
        }
    }
    let tranco = taken(dir, "top.csv", "1,google.com\n2,a.com\n", &[], "google.com");
    assert_eq!(
        (&tranco[0]["url"], &tranco[0]["extras"]),
        (&"google.com".into(), &serde_json::json!({"column_1": "1"}))
    );
    // From a pipe they are known by their bytes alone.
    let piped = common::feed(
        {
            let mut command = trawl(dir);
            command.args(["lake", "ingest", "-q", "--dataset", "piped", "-"]);
            command
        },
        b"[{\"url\":\"http://a.com/\"}]",
    );
    assert_eq!(piped.status.code(), Some(0), "{}", stderr(&piped));
}

#[test]
fn what_may_not_be_meant_so_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "joined.txt", "http://a.com/\nhttp://b.com/1,http://b.com/2\nhttp://c.com/w_1,https://d.com/\n");
    let ingest = |more: &[&str]| run(dir, &[&["lake", "ingest", "-q", "joined.txt"], more].concat(), 0);
    let report: Value = serde_json::from_str(&stdout(&ingest(&["--dataset", "a", "--json"]))).unwrap();
    let odd = &report["oddities"]["joined_urls"];
    assert_eq!((&report["rows"], &odd["count"], &odd["line"]), (&3.into(), &2.into(), &2.into()), "{report}");
    let text = stdout(&ingest(&["--dataset", "b"]));
    assert!(text.contains("2 line(s) hold another URL behind a comma") && text.contains("line 2 of"), "{text}");
    let seen: Value = serde_json::from_str(&stdout(&run(dir, &["inspect", "joined.txt", "--json"], 0))).unwrap();
    assert_eq!(seen["oddities"]["joined_urls"], serde_json::json!({"count": 2, "offset": 14, "line": 2}));
    let text = stdout(&run(dir, &["inspect", "joined.txt"], 0));
    assert!(text.contains("joined_urls; the first: line 2"), "{text}");
}

#[test]
fn indexes_of_archives() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let line = |n: u32| {
        format!(
            "com,a)/{n} 20080430204825 http://a.com/{n} text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 10 {n} x.warc.gz\n"
        )
    };
    let cdx = format!(" CDX N b a m s k r M S V g\n{}{}", line(1), line(2));
    let items = taken(dir, "index.cdx", &cdx, &[], "a.com");
    assert_eq!(items.len(), 2);
    assert_eq!(
        (&items[0]["status"], &items[0]["warc_file"], &items[0]["warc_length"]),
        (&200.into(), &"x.warc.gz".into(), &10.into())
    );
    // The same in ZipNum, under names of its own; its index in both forms.
    write(dir, "z/shard-a.gz", [gz(&line(1)), gz(&line(2))].concat());
    write(dir, "z/shards.idx", "com,a)/1 20080430204825\tshard-a.gz\t0\t9\t1\n");
    write(dir, "j/part.cdx.gz", gz("com,a)/ 2026 {\"url\":\"http://a.com/\"}\n"));
    write(
        dir,
        "j/index.idx",
        "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"part.cdx.gz\"}\ncom,a)/ 2026 {\"offset\": 0, \"length\": 9}\n",
    );
    for (dataset, path, rows) in [("z", "z/shards.idx", 2), ("zd", "z", 2), ("j", "j/index.idx", 1), ("jd", "j", 1)] {
        let report = run(dir, &["lake", "ingest", "--json", "-q", "--dataset", dataset, path], 0);
        let report: Value = serde_json::from_str(&stdout(&report)).unwrap();
        assert_eq!(report["rows"], rows, "{path}: {report}");
    }
}

#[test]
fn what_is_something_else_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (name, bytes, said) in [
        ("x.lz4", &b"\x04\x22\x4d\x18xyz"[..], "found an lz4 file"),
        ("page.html", b"<!doctype html><p>hello", "found an HTML page"),
        ("words.csv", b"id,link\n1,2\n", "found \"id,link\""),
        ("broken.json", b"[\n{\"url\": \"http://a.com/\"},\n{", "expected the end of a value in JSON"),
        ("words.json", b"[\nnonsense over\nmany lines\n]", "expected a json object"),
    ] {
        write(dir, name, bytes);
        let refused = run(dir, &["lake", "ingest", "-q", "--dataset", "d", name], 2);
        assert!(stderr(&refused).contains(said), "{name}: {}", stderr(&refused));
    }
    // What only lies in a directory is passed over, and named.
    for (name, text) in [
        ("mixed/pom.xml", "<project/>"),
        ("mixed/notes.json", "not json\n"),
        ("mixed/u.txt", "http://a.com/\n"),
        ("mixed/_metadata", "PAR1"),
        ("mixed/_temporary/0/attempt_1/u.txt", "http://a.com/\n"),
    ] {
        write(dir, name, text);
    }
    let mixed = run(dir, &["lake", "ingest", "-q", "--json", "--dataset", "mixed", "mixed"], 0);
    let mixed: Value = serde_json::from_str(&stdout(&mixed)).unwrap();
    assert_eq!((&mixed["rows"], mixed["ignored"].as_array().unwrap().len()), (&1.into(), 2), "{mixed}");
    for why in ["a summary of Parquet files", "a job of Spark or Hadoop has not finished"] {
        assert!(mixed["not_files"].to_string().contains(why), "{mixed}");
    }
    // Files of such tables that were replaced stay beside those that count.
    for (mark, said) in [
        ("_delta_log/00000000000000000000.json", "is a Delta table"),
        (".hoodie/hoodie.properties", "is a Hudi table"),
        ("metadata/v1.metadata.json", "is an Iceberg table"),
    ] {
        write(dir, "tables/t/u.txt", "http://a.com/\n");
        write(dir, &format!("tables/t/{mark}"), "{}\n");
        let refused = run(dir, &["lake", "ingest", "-q", "--dataset", "table", "tables"], 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
        std::fs::remove_dir_all(dir.join("tables")).unwrap();
    }
    // An archive without a single capture is not a success.
    write(dir, "odd.warc", b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\nContent-Length: 0\r\n\r\n\r\n\r\n");
    let odd = run(dir, &["lake", "ingest", "-q", "--dataset", "odd", "odd.warc"], 1);
    assert!(stdout(&odd).contains("found no capture in"), "{}", stdout(&odd));
    // A list that says nothing is an empty list.
    write(dir, "none.txt", b"# nothing today\n");
    run(dir, &["lake", "ingest", "-q", "--dataset", "none", "none.txt"], 0);
}

#[test]
fn passwords_are_kept_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let items = taken(dir, "u.txt", "https://me:secret@a.com/x\t1700000000\n", &[], "a.com");
    assert_eq!(items[0]["url"], "https://a.com/x");
    let shown = |args: &[&str]| stdout(&run(dir, args, 0));
    assert!(!shown(&["query", "url", "https://a.com/x"]).contains("secret"));
    assert!(shown(&["query", "url", "https://a.com/x", "--credentials"]).contains("me:secret@"));
    assert!(shown(&["query", "urls", "a.com", "u.txt", "--credentials"]).contains("me:secret@"));
    // Questions take times as lists do.
    for (from, rows) in [("1700000000", 1), ("1700000000000", 1), ("1700000001", 0), ("2023-11-14T22:13:20Z", 1)] {
        assert_eq!(shown(&["query", "urls", "a.com", "u.txt", "--from", from]).lines().count(), rows, "{from}");
    }
    run(dir, &["query", "urls", "a.com", "u.txt", "--from", "soon"], 2);
}

/// What only lies in a directory is ignored where each file is a dataset, too; a mark of the byte order is no part of a name.
#[test]
fn a_dataset_for_each_file_and_lists_of_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "in/a.txt", "http://a.com/1\n");
    write(dir, "in/b.txt", "http://b.com/1\n");
    write(dir, "in/README.md", "some words\n");
    let output = run(dir, &["lake", "ingest", "--dataset-per-file", "in"], 0);
    assert!(stderr(&output).contains("README.md: of no known format"), "{}", stderr(&output));
    // Named, it is an error.
    run(dir, &["lake", "ingest", "--dataset-per-file", "in/README.md"], 2);
    // A pipe has no name; the files beside it were taken, and it was not.
    let refused = run(dir, &["lake", "ingest", "--dataset-per-file", "in/a.txt", "/dev/null"], 2);
    assert!(stderr(&refused).contains("/dev/null, a pipe, has no name"), "{}", stderr(&refused));
    // What is missing in an index is told, and is the exit code.
    write(dir, "z/shard-a.gz", gz("com,a)/1 20080430204825 {\"url\":\"http://a.com/1\"}\n"));
    write(dir, "z/shards.idx", "com,a)/1 20080430204825\tshard-a.gz\t0\t9999\t1\n");
    let whole = stderr(&run(dir, &["lake", "ingest", "--dataset-per-file", "z"], 1));
    assert!(whole.contains("shard-a.gz"), "{whole}");
    write(dir, "list.tsv", "\u{feff}c\tin/a.txt\r\nd\tin/b.txt\r\n");
    run(dir, &["lake", "ingest", "-q", "--list", "list.tsv"], 0);
    let datasets = stdout(&run(dir, &["lake", "datasets", "--json"], 0));
    let names = datasets.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "shard-a", "c", "d"]);
}
