//! A small crawl and every command that looks at it.

mod common;

use common::{Web, stderr, stdout, trawl};
use std::io::Write;
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_crawl_and_what_can_be_asked_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let web = Web::start(dir);
    let crawled = web.crawl(dir, &[]);
    assert_eq!(crawled.status.code(), Some(0), "{}", stderr(&crawled));
    let again = web.crawl(dir, &[]);
    assert_eq!(again.status.code(), Some(2), "a finished crawl was overwritten");
    assert!(stderr(&again).contains("resume"), "{}", stderr(&again));
    let resumed = web.crawl(dir, &["--resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));

    // The other witness: the web's own log, judged.
    web.finish();
    let verdict = run(
        dir,
        &["testweb", "judge", "requests.log", "--domains", "12", "--pages", "60", "--depth", "2", "--delay", "20ms"],
        0,
    );
    assert!(verdict.contains("no rule broken"), "{verdict}");
    let impatient =
        ["testweb", "judge", "requests.log", "--domains", "12", "--pages", "60", "--depth", "2", "--delay", "1m"];
    run(dir, &impatient, 1);

    let expected: Vec<String> =
        std::fs::read_to_string(dir.join("expected.txt")).unwrap().lines().map(str::to_owned).collect();
    let facts = json_lines(&run(dir, &["--json", "-q", "inspect", "crawl"], 0));
    let index = facts.iter().find(|f| f["format"] == "captures").unwrap();
    let archive = facts.iter().find(|f| f["format"] == "warc").unwrap();
    assert!(index["rows"].as_u64().unwrap() >= expected.len() as u64);
    assert_eq!(archive["types"]["response"]["count"], archive["types"]["request"]["count"]);
    run(dir, &["-q", "verify", "crawl"], 0);

    let page = expected.first().unwrap();
    let body = run(dir, &["cat", "crawl", "--url", page, "--body"], 0);
    assert!(body.starts_with("<!DOCTYPE html>"), "{body:.80}");
    let head = run(dir, &["cat", "crawl", "--url", page, "--head"], 0);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    run(dir, &["cat", "crawl", "--url", "http://nowhere.example/"], 1);
    let records = json_lines(&run(dir, &["--json", "cat", "crawl", "--digests", "--url", page], 0));
    assert_eq!(
        records.iter().map(|r| r["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["response", "request", "metadata"]
    );

    // The index can be made again from the archive alone, row for row.
    run(dir, &["-q", "captures", "rebuild", "crawl", "--out", "again.parquet"], 0);
    let mut ours = json_lines(&run(dir, &["cat", "crawl/captures.parquet"], 0));
    let mut again = json_lines(&run(dir, &["cat", "again.parquet"], 0));
    ours.sort_by_key(ToString::to_string);
    again.sort_by_key(ToString::to_string);
    assert_eq!(ours, again);

    // Recompressed, packed and unpacked, the records are the same.
    let records = |path: &str| run(dir, &["cat", path], 0);
    let warc = std::fs::read_dir(dir.join("crawl")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let warc = format!("crawl/{}", warc.into_iter().find(|name| name.ends_with(".warc.gz")).unwrap());
    for target in ["copy.warc", "copy.warc.zst", "copy.warc.gz"] {
        run(dir, &["-q", "convert", &warc, target], 0);
        assert_eq!(records(target), records(&warc), "{target}");
        run(dir, &["-q", "verify", target], 0);
    }
    run(dir, &["-q", "convert", "crawl", "copy.wacz"], 0);
    run(dir, &["-q", "verify", "copy.wacz"], 0);
    assert_eq!(records("copy.wacz"), records(&warc));
    run(dir, &["-q", "convert", "crawl", "copy.wacz"], 2);

    let lines = run(dir, &["-q", "cdxj", "index", "crawl"], 0);
    std::fs::write(dir.join("all.cdxj"), &lines).unwrap();
    let found = run(dir, &["cdxj", "lookup", "all.cdxj", page], 0);
    assert!(found.contains(page.as_str()) && found.lines().count() == 1, "{found}");
    run(dir, &["-q", "cdxj", "merge", "all.cdxj", "all.cdxj", "--zipnum", "zipped"], 0);
    assert_eq!(run(dir, &["cdxj", "lookup", "zipped", page], 0), found);

    // The same crawl as a dataset.
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "c", "crawl"], 0);
    run(dir, &["-q", "lake", "verify", "--lake", "lake"], 0);
    let host = page.split('/').nth(2).unwrap();
    let answer = json_lines(&run(dir, &["--json", "query", "domain", host, "--lake", "lake"], 0));
    assert_eq!(answer[0]["datasets"][0]["name"], "c");
}

/// The bytes of a gzip file were taken for lines, and its first line came out as rubbish with exit code 0.
#[test]
fn packed_indexes_are_merged_as_plain_ones_are() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let line = |host: &str| format!("com,{host})/ 20260624010203 {{\"url\": \"http://{host}.com/\"}}\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(line("b").as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    std::fs::write(dir.join("a.cdxj"), line("a")).unwrap();
    std::fs::write(dir.join("b.cdxj.gz"), &packed).unwrap();
    std::fs::write(dir.join("cut.cdxj.gz"), &packed[..packed.len() - 9]).unwrap();
    assert_eq!(run(dir, &["-q", "cdxj", "merge", "b.cdxj.gz", "a.cdxj"], 0), line("a") + &line("b"));
    run(dir, &["-q", "cdxj", "merge", "cut.cdxj.gz", "--out", "all.cdxj"], 2);
    assert!(!dir.join("all.cdxj").exists());
}

#[test]
fn damage_is_found_and_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("empty.warc.gz"), b"").unwrap();
    assert!(run(dir, &["-q", "verify", "empty.warc.gz"], 1).contains("empty"));
    let record = "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
                  WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: urn:x\r\nContent-Type: text/plain\r\n\
                  WARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
    std::fs::write(dir.join("bad.warc"), record).unwrap();
    let faults = json_lines(&run(dir, &["--json", "-q", "verify", "bad.warc"], 1));
    assert_eq!(faults[0]["type"], "fault");
    assert_eq!(faults[0]["offset"], 0);
    let huge = record.replace("Content-Length: 5", "Content-Length: 99999999999");
    std::fs::write(dir.join("huge.warc"), huge).unwrap();
    assert!(run(dir, &["-q", "verify", "huge.warc"], 1).contains("limit"));
    std::fs::write(dir.join("text.txt"), "hello").unwrap();
    run(dir, &["cat", "text.txt"], 2);
}

/// A capture that is kept as several records has one body.
#[test]
fn the_segments_of_a_capture_are_one_body() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let record = |n: u32, kind: &str, more: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n\
             WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://a.example/\r\n{more}\
             WARC-Segment-Number: {n}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let origin = "WARC-Segment-Origin-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n";
    let last = format!("{origin}WARC-Segment-Total-Length: 31\r\n");
    let file = [
        record(1, "response", http, "HTTP/1.1 200 OK\r\n\r\nfirst "),
        record(2, "continuation", origin, "sec"),
        record(3, "continuation", &last, "ond"),
    ];
    std::fs::write(dir.join("s.warc"), file.concat()).unwrap();
    for args in [
        &["cat", "s.warc", "--url", "http://a.example/", "--body"][..],
        &["cat", "s.warc", "--offset", "0", "--body", "--decode"],
    ] {
        assert_eq!(run(dir, args, 0), "first second", "{args:?}");
    }
    // The digest of the first segment would be that of another body.
    let line = run(dir, &["cdxj", "index", "s.warc"], 0);
    assert!(line.contains("\"status\": \"200\"") && !line.contains("digest"), "{line}");
}

/// Heads in archives of the wild say what their bodies are not. One body that cannot be decoded does not hide the others.
#[test]
fn bodies_that_are_not_what_their_heads_say_are_printed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let record = |n: u32, fields: &str, body: &str| {
        let block = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n\
             WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://a.example/{n}\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let file = [
        record(1, "Transfer-Encoding: chunked", "not chunked "),
        record(2, "Transfer-Encoding: chunked", ""),
        record(3, "Content-Encoding: utf-8", "not coded "),
        record(4, "Content-Encoding: br", "not brotli"),
        record(5, "Transfer-Encoding: chunked", "4\r\nlast\r\n0\r\n\r\n"),
    ];
    std::fs::write(dir.join("o.warc"), file.concat()).unwrap();
    let output = trawl(dir).args(["cat", "o.warc", "--body", "--decode"]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "not chunked not coded last".into()));
    let said = stderr(&output);
    assert!(said.contains("left out: o.warc@") && said.contains("its body cannot be decoded"), "{said}");
    run(dir, &["cat", "o.warc", "--url", "http://a.example/4", "--body", "--decode"], 1);
    assert_eq!(run(dir, &["cat", "o.warc", "--url", "http://a.example/4", "--body"], 0), "not brotli");
}
