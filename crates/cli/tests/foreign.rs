//! Files that are something else: every door names what it found.

mod common;

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
}
