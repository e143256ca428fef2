//! `trawl captures rebuild` replaces the index of a crawl, whatever it consists of, and an ingest takes no capture twice.

mod common;

use common::{stderr, stdout, trawl};
use serde_json::Value;
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn warc(first: usize) -> String {
    let record = |n: usize| {
        let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n\
             WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://a.example/{n}\r\nContent-Type: application/http\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    (first..first + 3).map(record).collect()
}

fn rows_taken(dir: &Path, dataset: &str) -> Value {
    let said = run(dir, &["-q", "--json", "lake", "ingest", "--dataset", dataset, "crawl"], 0);
    serde_json::from_str::<Value>(said.lines().next().unwrap()).unwrap()["rows"].clone()
}

#[test]
fn the_parts_of_an_index_are_replaced_too() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::create_dir(dir.join("crawl")).unwrap();
    for (name, first) in [("crawl/a-00000.warc", 0), ("crawl/a-00001.warc", 3)] {
        std::fs::write(dir.join(name), warc(first)).unwrap();
        // The index of one archive, as a crawl writes one for each.
        let part = name.replace("a-", "captures-").replace(".warc", ".parquet");
        run(dir, &["-q", "captures", "rebuild", name, "--out", &part], 0);
    }
    let names = || {
        let entries = std::fs::read_dir(dir.join("crawl")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a-00000.warc", "a-00001.warc", "captures-00000.parquet", "captures-00001.parquet"]);
    run(dir, &["-q", "verify", "crawl"], 0);
    assert_eq!(rows_taken(dir, "parts"), 6);
    // Twice: the second time over its own.
    for _ in 0..2 {
        run(dir, &["-q", "captures", "rebuild", "crawl"], 0);
        assert_eq!(names(), ["a-00000.warc", "a-00001.warc", "captures.parquet"]);
        run(dir, &["-q", "verify", "crawl"], 0);
    }
    assert_eq!(rows_taken(dir, "whole"), 6);
    // What another tool left beside it doubles nothing either.
    std::fs::copy(dir.join("crawl/captures.parquet"), dir.join("crawl/captures-00000.parquet")).unwrap();
    assert_eq!(rows_taken(dir, "both"), 6);
}
