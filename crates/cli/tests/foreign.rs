//! Files that are something else: every door names what it found.

mod common;

use common::lakes::walk;
use common::{stderr, stdout, trawl};

#[test]
fn every_door_names_what_it_found() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let cases: [(&str, &[u8], &str); 5] = [
        ("a.lz4", b"\x04\x22\x4d\x18\x64", "found an lz4 file"),
        ("b.zip", b"PK\x03\x04\x14\0\0", "found a zip archive"),
        ("c.dat", b"hello world\n", "found a first line \"hello world\""),
        ("d.arc", b"filedesc odd head\n", "\"filedesc odd head\""),
        ("e.warc.gz", b"\x04\x22\x4d\x18\x64", "\\x04\\\"M\\x18d"),
    ];
    for (name, bytes, found) in cases {
        std::fs::write(dir.join(name), bytes).unwrap();
        for verb in ["inspect", "verify", "cat"] {
            let output = trawl(dir).args([verb, name]).output().unwrap();
            let said = format!("{}{}", stdout(&output), stderr(&output));
            assert!(said.contains(found), "{verb} {name}: {said}");
            assert_ne!(output.status.code(), Some(0), "{verb} {name}");
        }
    }
    for (name, found) in [("a.lz4", "found an lz4 file"), ("b.zip", "found a zip archive")] {
        for args in [&["lake", "ingest", "--dataset", "d", name][..], &["crawl", name, "--out", &format!("{name}.out")]]
        {
            let output = trawl(dir).args(args).output().unwrap();
            assert!(stderr(&output).contains(found), "{args:?}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(2), "{args:?}");
        }
    }
    std::fs::write(dir.join("f.cdx"), " CDX N b a\ncom,a)/ 20260624010203 http://a.com/\n").unwrap();
    let output = trawl(dir).args(["cat", "f.cdx"]).output().unwrap();
    assert!(stderr(&output).contains("found a list of URLs (cdx)"), "{}", stderr(&output));
    std::fs::write(dir.join("g.txt"), "http://a.com/\n").unwrap();
    assert!(trawl(dir).args(["-q", "lake", "ingest", "--dataset", "g", "g.txt"]).status().unwrap().success());
    let files = walk(&dir.join("lake/urls"));
    let rows = files.iter().find(|file| file.extension().is_some_and(|end| end == "parquet")).unwrap();
    let output = trawl(dir).arg("cat").arg(rows).output().unwrap();
    assert!(stderr(&output).contains("found a Parquet file that is not a list of URLs"), "{}", stderr(&output));
}

/// A Parquet file with URLs is a list, wherever it lies: not an index of the archives beside it, and sound only if it holds URLs.
#[test]
fn a_parquet_list_is_not_an_index() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let record = |id: u8, url: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-00000000000{id}>\r\n\
             WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\n\
             Content-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n"
        )
    };
    let ask = |args: &[&str], code: i32| {
        let output = trawl(dir).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    std::fs::create_dir(dir.join("d")).unwrap();
    std::fs::write(dir.join("d/a.warc"), record(1, "http://a.com/") + &record(2, "dns:a.com")).unwrap();
    ask(&["captures", "rebuild", "d", "-o", "index.parquet"], 0);
    // Common Crawl's columns: those of a list.
    ask(&["captures", "export", "index.parquet", "d/list.parquet"], 0);
    assert!(ask(&["verify", "d"], 0).contains("sound"));
    let said = ask(&["verify", "d/list.parquet"], 1);
    assert!(said.contains("2 items: 1 fault(s)") && said.contains("found \"dns\""), "{said}");
    assert!(ask(&["inspect", "d/list.parquet"], 0).contains("list of URLs (parquet)"));
    assert!(ask(&["inspect", "index.parquet"], 0).contains("captures, version 1, 2 rows"));
    assert!(!ask(&["inspect", "d"], 0).contains("list.parquet"));
}
