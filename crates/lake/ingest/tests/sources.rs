//! Every format of source, through the whole ingest.

mod common;

use common::{UrlRow, all_rows, file, new_lake, settings, take};
use std::sync::Arc;
use trawl_captures::{CaptureRow, CapturesWriter};
use trawl_ingest::source;
use trawl_model::UnixMillis;

fn rows(name: &str, bytes: impl AsRef<[u8]>) -> Vec<UrlRow> {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, name, bytes)], &settings(&fs, "w")).unwrap();
    all_rows(&lake)
}

fn record(kind: &str, fields: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{:012}>\r\n{fields}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len() + kind.len(),
        block.len()
    )
}

fn archive() -> String {
    let http = "Content-Type: application/http;msgtype=response\r\n";
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
    let moved = "HTTP/1.1 301 Moved\r\nLocation: http://a.com/new\r\n\r\n";
    [
        record("warcinfo", "WARC-Date: 2026-06-24T01:02:03Z\r\n", "software: x\r\n"),
        record(
            "response",
            &format!("WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://b.com/\r\n{http}"),
            page,
        ),
        record(
            "response",
            &format!("WARC-Date: 2026-06-24T01:02:04Z\r\nWARC-Target-URI: http://a.com/\r\n{http}"),
            moved,
        ),
    ]
    .concat()
}

#[test]
fn warc() {
    let rows = rows("x.warc", archive());
    assert_eq!(rows.len(), 2, "only captures are URLs of the dataset");
    let (moved, page) = (&rows[0], &rows[1]);
    assert_eq!((moved.url.as_str(), moved.status), ("http://a.com/", Some(301)));
    assert_eq!(moved.extras.as_deref(), Some(r#"{"redirect_to":"http://a.com/new"}"#));
    assert_eq!((page.url.as_str(), page.status, page.body_length), ("http://b.com/", Some(200), Some(5)));
    assert_eq!(page.ts, UnixMillis::parse("20260624010203").ok());
    assert_eq!(page.content_type.as_deref(), Some("text/html"));
    assert_eq!(page.digest.as_deref(), Some("aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"));
    assert_eq!(page.warc_file.as_deref(), Some("x.warc"));
    let record = &archive()[page.warc_offset.unwrap() as usize..];
    assert!(record.starts_with("WARC/1.1\r\nWARC-Type: response"));
}

#[test]
fn gzip_around_a_warc_is_seen_through() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, archive().as_bytes()).unwrap();
    assert_eq!(rows("x.warc.gz", gz.finish().unwrap()).len(), 2);
}

#[test]
fn captures_parquet_says_what_its_archive_says() {
    let (fs, lake) = new_lake();
    let mut archived =
        trawl_warc::WarcSource::over(Arc::new(bytes::Bytes::from(archive())), trawl_warc::Limits::default(), true);
    let path = std::path::Path::new("captures.parquet");
    let mut writer = CapturesWriter::create(&fs, path).unwrap();
    while let Some((entry, mut place)) = archived.next_owned().unwrap() {
        if let trawl_model::Entry::Capture(mut capture) = entry {
            place.file = "x.warc".into();
            writer.push(CaptureRow::from_capture(&mut capture, Some(&place)).unwrap()).unwrap();
        }
    }
    writer.finish().unwrap();
    take(&lake, vec![source::open(&fs, path, None).unwrap()], &settings(&fs, "w")).unwrap();
    assert_eq!(all_rows(&lake), rows("x.warc", archive()));
}

#[test]
fn separated_values() {
    let csv = "url,ts,lang,status\r\n\"http://a.com/?x=1,2\",2026-06-24T01:02:03Z,\"d\"\"e\",200\nhttp://b.com/,,,\n";
    let found = rows("x.csv", csv);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].url.as_str(), found[0].status), ("http://a.com/?x=1,2", Some(200)));
    assert_eq!(found[0].extras.as_deref(), Some(r#"{"lang":"d\"e"}"#));
    assert_eq!((found[1].ts, found[1].extras.as_deref()), (None, None));
    assert_eq!(rows("x.tsv", csv.replace(',', "\t").replace("1\t2", "1,2")), found);

    let (fs, lake) = new_lake();
    let error = take(&lake, vec![file(&fs, "x.csv", "id,x\n1,2\n")], &settings(&fs, "w")).unwrap_err();
    assert!(error.to_string().contains("header line with a column \"url\""), "{error}");
}

#[test]
fn formats_are_found_by_first_bytes_too() {
    assert_eq!(rows("noname", "{\"url\":\"http://a.com/\"}\n").len(), 1);
    assert_eq!(rows("noname", "com,a)/ 20260624010203 {\"url\":\"http://a.com/\"}\n").len(), 1);
    assert_eq!(rows("noname", "# x\nhttp://a.com/\nb.com/y\n").len(), 2);
    assert_eq!(rows("noname", archive()).len(), 2);
    let zst = zstd::encode_all(&b"http://a.com/\n"[..], 1).unwrap();
    assert_eq!(rows("noname", zst).len(), 1);
}

#[test]
fn a_text_that_says_nothing_is_an_empty_list() {
    for bytes in [&b""[..], b"\n\n", b"# nothing today\n", b"\xef\xbb\xbf# nothing\r\n  \n"] {
        assert!(rows("nameless", bytes).is_empty());
    }
    // However long it says nothing first.
    let late = format!("{}http://a.com/\n", "# a comment\n".repeat(1000));
    assert_eq!(rows("nameless", late).len(), 1);
    let (fs, _) = new_lake();
    common::write(&fs, "binary", b"#\n\0\x01\x02");
    assert!(source::open(&fs, std::path::Path::new("binary"), None).is_err());
}

#[test]
fn rejected_rows_keep_their_text() {
    let (fs, lake) = new_lake();
    let csv = "url,x\nhttp://a.com/,1\n\"http://b.com/\",\"2,\n3\",4\r\n,5\n";
    let report = take(&lake, vec![file(&fs, "x.csv", csv)], &settings(&fs, "w")).unwrap();
    let rejects = lake.store().get(&report.rejects_file.unwrap(), 1 << 20).unwrap();
    let lines: Vec<serde_json::Value> =
        rejects.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!((&lines[0]["code"], &lines[0]["offset"]), (&"columns".into(), &22.into()));
    // With the field over two lines the row would have a column too many: the quote is data, and each line a row.
    assert_eq!(lines[0]["text"], "\"http://b.com/\",\"2,");
    let last = lines.last().unwrap();
    assert_eq!((&last["code"], &last["text"]), (&"no_url".into(), &",5".into()));
}

#[test]
fn digits_in_numbers_are_times_as_in_texts() {
    let t = UnixMillis::parse("2024-01-02T03:04:05Z").ok();
    for ts in ["20240102030405", "20240102030405000", "\"20240102030405\"", "1704164645", "1704164645000"] {
        let rows = rows("x.jsonl", format!("{{\"url\":\"http://a.com/\",\"ts\":{ts}}}\n"));
        assert_eq!((rows[0].ts, rows[0].extras.as_deref()), (t, None), "{ts}");
    }
    for ts in ["253402300800000", "-1e14", "20241302030405"] {
        let rows = rows("x.jsonl", format!("{{\"url\":\"http://a.com/\",\"ts\":{ts}}}\n"));
        assert_eq!((rows[0].ts, rows[0].extras.as_deref()), (None, Some(&*format!("{{\"ts\":{ts}}}"))), "{ts}");
    }
}
