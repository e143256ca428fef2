//! User names and passwords in URLs of others' files: files keep them, nothing prints them unless asked.

mod common;

use common::{stderr, stdout, trawl};
use std::path::Path;

fn run(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = trawl(dir).args(args).output().unwrap();
    (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

fn warc() -> Vec<u8> {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"http://me:secret@b.example/\">b</a>";
    let head = |uri: &str, n: u32, len: usize| {
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n\
             WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http\r\n\
             Content-Length: {len}\r\n\r\n"
        )
    };
    let record = |uri: &str, n, block: &str| format!("{}{block}\r\n\r\n", head(uri, n, block.len()));
    let one = record("http://me:secret@a.example/x", 1, answer);
    // Damage is named, too.
    let bad = record("http://me:secret@c.example/", 2, answer).replacen("Content-Length: ", "Content-Length: x", 1);
    format!("{one}{bad}{}", record("http://d.example/", 3, "HTTP/1.1 200 OK\r\n\r\nx")).into_bytes()
}

#[test]
fn nothing_prints_them_unless_asked() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("a.warc"), warc()).unwrap();
    std::fs::write(dir.join("u.txt"), "http://me:secret@a.example/x\nhttp://me:secret@:99999/\n").unwrap();
    std::fs::write(dir.join("r.txt"), "Sitemap: http://me:secret@a.example/s.xml\n").unwrap();
    std::fs::write(dir.join("p.html"), "<a href='http://me:secret@a.example/'>").unwrap();
    for target in ["a.data", "a.segment"] {
        let (status, said) = run(dir, &["-q", "convert", "a.warc", target]);
        assert!(status == Some(1) && !said.contains("secret"), "{target}: {said}");
    }
    run(dir, &["-q", "cdxj", "index", "a.warc", "--out", "a.cdxj"]);
    run(dir, &["-q", "captures", "rebuild", "a.warc", "--out", "a.parquet"]);
    run(dir, &["-q", "frontier", "seed", "u.txt", "--out", "a.meguri"]);
    run(dir, &["-q", "lake", "ingest", "--dataset", "d", "a.warc", "u.txt"]);
    // Files have them.
    assert!(std::fs::read_to_string(dir.join("a.cdxj")).unwrap().contains("me:secret@a.example"));

    let cases: &[&[&str]] = &[
        &["cat", "a.warc", "--type", "response", "--head"],
        &["cat", "a.warc"],
        &["--json=digest", "cat", "a.warc"],
        &["cat", "a.data"],
        &["--json=digest", "cat", "a.data"],
        &["--json=digest", "cat", "a.segment"],
        &["cat", "a.segment"],
        &["cat", "a.parquet"],
        &["--json", "cat", "a.parquet"],
        &["cat", "a.meguri"],
        &["inspect", "a.warc"],
        &["inspect", "a.segment"],
        &["inspect", "a.meguri"],
        &["inspect", "a.parquet"],
        &["--json", "inspect", "a.warc"],
        &["verify", "a.warc"],
        &["--json", "verify", "a.warc"],
        &["cdxj", "index", "a.warc"],
        &["cdxj", "lookup", "a.cdxj", "http://a.example/x"],
        &["cdxj", "merge", "a.cdxj"],
        &["nutch", "readseg", "-dump", "a.segment", "-nocontent"],
        &["nutch", "readseg", "-list", "a.segment"],
        &["seqdb", "fs", "ls", "a.data"],
        &["seqdb", "list", "a.data"],
        &["frontier", "inspect", "a.meguri"],
        &["frontier", "schedule", "a.meguri"],
        &["query", "urls", "a.example", "d"],
        &["--json", "query", "urls", "a.example", "d"],
        &["query", "url", "http://a.example/x"],
        &["lake", "ingest", "--dataset", "e", "u.txt"],
        &["url", "robots", "r.txt"],
        &["url", "links", "p.html", "--base", "http://a.example/"],
    ];
    let mut asked = 0;
    for args in cases {
        let (_, said) = run(dir, args);
        // What was captured is contents; of those only --json=digest and heads have nothing.
        let said = said.replace("<a href=\"http://me:secret@b.example/\">", "");
        assert!(!said.contains("secret"), "{args:?}: {said}");
        asked += u32::from(run(dir, &[&["--credentials"], *args].concat()).1.contains("me:secret@a.example"));
    }
    assert!(asked > 15, "{asked} of {} print them when asked", cases.len());
    // Contents stay as they are.
    let body = run(dir, &["cat", "a.warc", "--url", "http://me:secret@a.example/x", "--body"]).1;
    assert!(body.contains("<a href=\"http://me:secret@b.example/\">"), "{body}");
}

/// Browsers read these as URLs with a password, too; and a text may hold a URL.
#[test]
fn no_spelling_and_no_text_shows_them() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let record = |(n, uri): (usize, &str)| {
        let block = "HTTP/1.1 200 OK\r\n\r\nx";
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n\
             WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let urls = [
        "//u:secret@a.example/",
        "http://m\te:secret@a.example/",
        "http:/u:secret@a.example/",
        "http:\\\\u:secret@a.example/",
        "u:secret@a.example/",
        "http:u:secret@a.example/",
    ];
    let odd: String = urls.into_iter().enumerate().map(record).collect();
    std::fs::write(dir.join("odd.warc"), odd).unwrap();
    let arc = "filedesc://x.arc 0.0.0.0 20080430204825 text/plain 0\n\nhttp://u:secret@a.example/ bad line here\n\
        http://u:secret@a.example/ 1.2.3.4 20080430204826 text/html 5\nhello\n";
    std::fs::write(dir.join("a.arc"), arc).unwrap();
    let csv = "url,ref\nhttp://u:secret@a.example/,\"see http://u:secret@c.example/ and\"\n";
    std::fs::write(dir.join("a.csv"), csv).unwrap();
    run(dir, &["-q", "lake", "ingest", "--dataset", "d", "a.csv"]);
    run(dir, &["-q", "cdxj", "index", "odd.warc", "--out", "odd.cdxj"]);
    let cases: &[&[&str]] = &[
        &["cat", "odd.warc"],
        &["--json", "cat", "odd.warc"],
        &["cdxj", "index", "odd.warc"],
        &["cdxj", "merge", "odd.cdxj"],
        &["verify", "a.arc"],
        &["--json", "verify", "a.arc"],
        &["inspect", "a.arc"],
        &["--json", "inspect", "a.arc"],
        &["query", "urls", "a.example", "d"],
        &["--json", "query", "urls", "a.example", "d"],
        &["url", "u:secret@a.example/x"],
        &["--json", "url", "u:secret@a.example/x"],
    ];
    for args in cases {
        let (_, said) = run(dir, args);
        assert!(said.contains("example") && !said.contains("secret"), "{args:?}: {said}");
        let (_, said) = run(dir, &[&["--credentials"], *args].concat());
        assert!(said.contains("secret"), "{args:?}: {said}");
    }
}
