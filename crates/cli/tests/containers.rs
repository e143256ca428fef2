//! Captures in seqdb containers: crawled, converted, checked, found by URL.

mod common;

use common::{Web, stderr, stdout, trawl};
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn container_of(dir: &Path) -> String {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.into_iter().find(|name| name.ends_with(".data")).unwrap()
}

/// Every kind of record that a file may hold, ours or not.
fn odd_warc() -> Vec<u8> {
    let mut all = Vec::new();
    let mut put = |kind: &str, id: u32, more: &str, block: &[u8]| {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{id:012}>\r\n\
             WARC-Date: 2020-02-03T04:05:06Z\r\n{more}Content-Length: {}\r\n\r\n",
            block.len()
        );
        all.extend_from_slice(head.as_bytes());
        all.extend_from_slice(block);
        all.extend_from_slice(b"\r\n\r\n");
    };
    let uri = |uri: &str| format!("WARC-Target-URI: {uri}\r\n");
    let http = "Content-Type: application/http; msgtype=response\r\n";
    put("warcinfo", 1, "Content-Type: application/warc-fields\r\n", b"software: x\r\n");
    put("request", 2, &format!("{}{http}", uri("http://a.example/")), b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    put("response", 3, &format!("{}{http}", uri("http://a.example/")), b"HTTP/1.1 200 OK\r\n\r\n\0\xff\xfe body");
    // Twice the same moment and URL.
    put("response", 4, &format!("{}{http}", uri("http://a.example/")), b"HTTP/1.1 200 OK\r\n\r\nsecond");
    put(
        "response",
        5,
        &format!("{}Content-Type: text/dns\r\n", uri("dns:a.example")),
        b"20200203\na.example. A 1.2.3.4\n",
    );
    put("resource", 6, &uri("ftp://b.example/file"), &vec![b'x'; 9 << 20]);
    put(
        "conversion",
        7,
        &format!("{}WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-{:012}>\r\n", uri("http://a.example/"), 3),
        b"text",
    );
    put("continuation", 8, &format!("{}WARC-Segment-Number: 2\r\n", uri("http://c.example/")), b"rest");
    put("strange", 9, "X-Folded: a\r\n b\r\nX-Folded: c\r\n", b"");
    put("metadata", 10, &uri(&format!("http://long.example/{}", "x".repeat(66_000))), b"hops: 1\r\n");
    all
}

#[test]
fn records_of_every_kind_come_back_as_they_were() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("odd.warc"), odd_warc()).unwrap();
    let done = json_lines(&run(dir, &["--json", "-q", "convert", "odd.warc", "pages.data"], 0));
    assert_eq!((done[0]["records"].as_u64(), done[0]["damaged"].as_u64()), (Some(10), Some(0)));
    run(dir, &["-q", "seqdb", "check", "pages.data"], 0);
    run(dir, &["-q", "convert", "pages.data", "back.warc"], 0);
    assert!(std::fs::read(dir.join("back.warc")).unwrap() == odd_warc(), "a record was changed, moved or lost");
    // From container to container too, and over an old one only when asked.
    run(dir, &["-q", "convert", "pages.data", "again.data"], 0);
    run(dir, &["-q", "convert", "pages.data", "again.data"], 2);
    run(dir, &["-q", "convert", "odd.warc", "again.data", "--overwrite"], 0);
    run(dir, &["-q", "convert", "again.data", "again.warc.gz"], 0);
    let cat = |path: &str| trawl(dir).args(["cat", path]).output().unwrap().stdout;
    assert!(cat("again.warc.gz") == odd_warc() && cat("pages.data") == odd_warc());
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains(".part.")), "{left:?}");

    // By URL: the newest capture with everything that belongs to it, from whatever position.
    let found = json_lines(&run(dir, &["--json", "cat", "pages.data", "--url", "http://a.example/"], 0));
    let kinds =
        |found: &[serde_json::Value]| found.iter().map(|r| r["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(&found), ["conversion"], "the last one of a moment counts");
    assert_eq!(
        kinds(&json_lines(&run(dir, &["--json", "cat", "pages.data", "--url", "dns:a.example"], 0))),
        ["response"]
    );
    run(dir, &["cat", "pages.data", "--url", "http://nowhere.example/"], 1);
    // A bad source leaves nothing behind.
    std::fs::write(dir.join("bad.warc"), &odd_warc()[..500]).unwrap();
    run(dir, &["-q", "convert", "bad.warc", "bad.data", "--strict"], 2);
    assert!(!dir.join("bad.data").exists());
}

#[test]
fn a_crawl_into_a_container_and_what_can_be_asked_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let web = Web::start(dir);
    let crawled = web.crawl(dir, &["--format", "seqdb", "--digests", "bodies"]);
    assert_eq!(crawled.status.code(), Some(0), "{}", stderr(&crawled));
    let checked = json_lines(&run(dir, &["--json", "verify", "crawl"], 0));
    let checked = &checked.last().unwrap()["checked"];
    assert!(checked["records"].as_u64().unwrap() > 100 && checked["containers"]["containers"] == 1, "{checked}");
    let rows = json_lines(&run(dir, &["cat", "crawl/captures.parquet"], 0));
    assert_eq!(checked["index"]["rows"].as_u64(), Some(rows.len() as u64), "{checked}");

    let expected = std::fs::read_to_string(dir.join("expected.txt")).unwrap();
    let page = expected.lines().next().unwrap();
    let body = run(dir, &["cat", "crawl", "--url", page, "--body"], 0);
    assert!(body.starts_with("<!DOCTYPE html>"), "{body:.80}");
    let container = format!("crawl/{}", container_of(&dir.join("crawl")));
    let row = rows.iter().find(|row| row["url"] == page).unwrap();
    let offset = row["warc_offset"].to_string();
    let records = json_lines(&run(dir, &["--json", "cat", &container, "--offset", &offset], 0));
    assert_eq!(records[0]["fields"].as_array().unwrap().iter().find(|f| f[0] == "WARC-Target-URI").unwrap()[1], page);

    // The index can be made again from the container alone, row for row.
    run(dir, &["-q", "captures", "rebuild", "crawl", "--out", "again.parquet"], 0);
    let sorted = |mut rows: Vec<serde_json::Value>| {
        rows.sort_by_key(ToString::to_string);
        rows
    };
    assert_eq!(sorted(rows), sorted(json_lines(&run(dir, &["cat", "again.parquet"], 0))));

    // To WARC and on: the same records, sound by themselves.
    run(dir, &["-q", "convert", &container, "crawl.warc.gz"], 0);
    run(dir, &["-q", "verify", "crawl.warc.gz"], 0);
    assert_eq!(run(dir, &["cat", "crawl.warc.gz"], 0), run(dir, &["cat", &container], 0));

    // Lines of a CDXJ index point into the container, at gzip members.
    let index = |path: &str| run(dir, &["-q", "cdxj", "index", path], 0);
    let (ours, theirs) = (index(&container), index("crawl.warc.gz"));
    let keys =
        |text: &str| text.lines().map(|l| l.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&theirs));
    let line: serde_json::Value =
        serde_json::from_str(ours.lines().nth(5).unwrap().splitn(3, ' ').nth(2).unwrap()).unwrap();
    let at: usize = line["offset"].as_str().unwrap().parse().unwrap();
    assert_eq!(std::fs::read(dir.join(&container)).unwrap()[at..at + 2], [0x1f, 0x8b]);
    let resumed = web.crawl(dir, &["--format", "seqdb", "--resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));

    // What did not change is a revisit the next time, in another process.
    let again = web.crawl_into(dir, "second", &["--digests", "bodies"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let rows = json_lines(&run(dir, &["cat", "second/captures.parquet"], 0));
    let good: Vec<_> = rows.iter().filter(|r| r["status"] == 200 && r["body_length"] != 0).collect();
    assert!(good.len() > 20 && good.iter().all(|r| r["unchanged"] == true), "{}", good.len());
    run(dir, &["-q", "verify", "second"], 0);

    // A container is a source of URLs.
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "c", &container], 0);
    let host = page.split('/').nth(2).unwrap();
    let answer = json_lines(&run(dir, &["--json", "query", "domain", host, "--lake", "lake"], 0));
    assert_eq!(answer[0]["datasets"][0]["name"], "c");
    // Damage is found, wherever it is.
    let data = dir.join(&container);
    let mut bytes = std::fs::read(&data).unwrap();
    let offset: usize = offset.parse().unwrap();
    bytes[offset + 40] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    run(dir, &["-q", "verify", "crawl"], 1);
}
