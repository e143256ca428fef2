//! Nothing that a source holds vanishes: rows, rejects and what is counted by type are together all its records, in every
//! container and list, whole, cut and flipped. What there is to count is counted here a second time, by simpler means.

mod common;

use common::{file, new_lake, settings, take, write};
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_ingest::source::{self, Format};
use trawl_io::Fs;
use trawl_io::fault::FaultFs;
use trawl_lists::Format as List;
use trawl_model::{Aside, Split, UrlSource};

/// Items, whether records or not, and what was told aside.
fn told(name: &str, bytes: &[u8], format: Option<Format>) -> Result<(u64, u64), String> {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    write(&fs, name, bytes);
    let source = source::open(&fs, Path::new(name), format).map_err(|e| e.to_string())?;
    let (mut items, mut asides) = (0, 0);
    for split in source.splits(u64::MAX).map_err(|e| e.to_string())? {
        let Split { start, end } = split;
        let read = source.read_all(
            Split { start, end },
            &mut |_, _| {
                items += 1;
                Ok(())
            },
            &mut |_, what| asides += u64::from(matches!(what, Aside::Record(_))),
        );
        read.map_err(|e| e.to_string())?;
    }
    Ok((items, asides))
}

/// Records of an archive, and places where there is none.
fn in_archive(bytes: &[u8]) -> u64 {
    let mut reader =
        trawl_warc::WarcReader::builder().lenient(true).over(Arc::new(bytes::Bytes::copy_from_slice(bytes)));
    let mut count = 0;
    loop {
        let read = match reader.next_record() {
            Ok(None) => return count,
            Ok(Some(record)) => record.finish().map(|_| ()),
            Err(e) => Err(e),
        };
        count += 1;
        if read.is_err() {
            // Damage in a block is only skipped by the next call.
            let _ = reader.next_record();
            reader.recover().unwrap();
        }
    }
}

fn record(kind: &str, n: usize, fields: &str, block: &str) -> Vec<u8> {
    let id = format!("WARC-Record-ID: <urn:x:{kind}{n}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n");
    let length = block.len();
    format!("WARC/1.0\r\nWARC-Type: {kind}\r\n{id}{fields}Content-Length: {length}\r\n\r\n{block}\r\n\r\n").into_bytes()
}

/// One of each kind of record, and one that states no type of its content.
fn warc() -> Vec<Vec<u8>> {
    let to = |n: usize| format!("WARC-Target-URI: http://a{n}.example/\r\n");
    let http = "Content-Type: application/http\r\n";
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
    vec![
        record("warcinfo", 0, "", "software: x\r\n"),
        record("response", 1, &to(1), answer),
        record(
            "request",
            1,
            &format!("{}WARC-Concurrent-To: <urn:x:response1>\r\n{http}", to(1)),
            "GET / HTTP/1.1\r\n\r\n",
        ),
        record("response", 2, &format!("{}{http}", to(2)), answer),
        record("metadata", 2, &format!("{}Content-Type: application/warc-fields\r\n", to(2)), "via: x\r\n"),
        record("revisit", 3, &to(3), ""),
        record("resource", 4, &format!("{}Content-Type: text/plain\r\n", to(4)), "text"),
        record("conversion", 5, &format!("{}Content-Type: text/plain\r\n", to(5)), "text"),
        record("response", 6, "WARC-Target-URI: dns:a.example\r\nContent-Type: text/dns\r\n", "a.example"),
        record("continuation", 7, "WARC-Segment-Number: 2\r\n", "rest"),
        record("odd", 8, "", "?"),
    ]
}

fn arc() -> Vec<Vec<u8>> {
    let block = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n";
    let head = format!("filedesc://a.arc 0.0.0.0 20080430204825 text/plain {}\n", block.len());
    let mut all = vec![[head.as_bytes(), block, b"\n"].concat()];
    for (n, address) in ["192.0.2.1", "None", "-"].into_iter().enumerate() {
        let page = "HTTP/1.1 200 OK\r\n\r\nhello";
        let line = format!("http://a{n}.example/ {address} 20080430204826 text/html {}\n", page.len());
        all.push(format!("{line}{page}\n").into_bytes());
    }
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn archives() -> Vec<(&'static str, Vec<u8>)> {
    let each = |records: &[Vec<u8>], pack: &dyn Fn(&[u8]) -> Vec<u8>| records.iter().flat_map(|r| pack(r)).collect();
    let (warc, arc) = (warc(), arc());
    vec![
        ("a.warc", warc.concat()),
        ("a.warc.gz", each(&warc, &gzip)),
        ("one.warc.gz", gzip(&warc.concat())),
        ("a.warc.zst", each(&warc, &|r| zstd::encode_all(r, 3).unwrap())),
        ("a.arc", arc.concat()),
        ("a.arc.gz", each(&arc, &gzip)),
    ]
}

#[test]
fn every_record_of_a_whole_archive() {
    for (name, bytes) in archives() {
        let wanted = if name.contains("arc.") && !name.contains("warc") || name == "a.arc" { 4 } else { 11 };
        let (fs, lake) = new_lake();
        let report = take(&lake, vec![file(&fs, name, &bytes)], &settings(&fs, "w")).unwrap();
        assert_eq!((report.records, report.rejected), (wanted, 0), "{name}: {report:?}");
        let rows = if wanted == 4 { 3 } else { 5 };
        assert_eq!(report.rows, rows, "{name}");
        assert_eq!(report.not_captures.values().sum::<u64>(), wanted - rows, "{name}: {:?}", report.not_captures);
        assert_eq!(in_archive(&bytes), wanted, "{name}");
    }
}

#[test]
fn every_record_of_an_archive_cut_anywhere() {
    for (name, bytes) in archives() {
        for cut in (1..bytes.len()).step_by(7) {
            let part = &bytes[..cut];
            let (items, asides) = told(name, part, Some(archive())).unwrap();
            assert_eq!(items + asides, in_archive(part), "{name} cut at {cut}");
        }
    }
}

fn archive() -> Format {
    "warc".parse().unwrap()
}

/// Lines that are neither empty nor comments. CR, LF and both together end a line: a flipped bit can make a CR.
fn in_lines(bytes: &[u8]) -> u64 {
    let lines = bytes.split(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).count() as u64
}

/// Lists of lines, and the lines in front of the first item.
fn lists() -> Vec<(&'static str, List, u64, Vec<u8>)> {
    let many = |line: &dyn Fn(usize) -> String| (0..20).map(line).collect::<String>().into_bytes();
    let head = |head: &str, rows: Vec<u8>| [head.as_bytes(), &rows].concat();
    vec![
        ("a.txt", List::Lines, 0, many(&|n| format!("http://a{n}.example/\n"))),
        ("a.jsonl", List::Jsonl, 0, many(&|n| format!("{{\"url\":\"http://a{n}.example/\",\"status\":200}}\n"))),
        (
            "a.cdxj",
            List::Cdxj,
            0,
            many(&|n| format!("example,a{n})/ 20260624010203 {{\"url\":\"http://a{n}.example/\"}}\n")),
        ),
        (
            "a.cdx",
            List::Cdx,
            1,
            head(
                " CDX N b a m s k r M S V g\n",
                many(&|n| {
                    format!("example,a{n})/ 20260624010203 http://a{n}.example/ text/html 200 AAAA - - 5 6 f.warc\n")
                }),
            ),
        ),
        ("a.tsv", List::Tsv, 1, head("url\tstatus\n", many(&|n| format!("http://a{n}.example/\t200\n")))),
    ]
}

#[test]
fn every_item_of_a_whole_list() {
    for (name, format, before, bytes) in lists() {
        let (fs, lake) = new_lake();
        write(&fs, name, &bytes);
        let source = source::open(&fs, Path::new(name), Some(Format::List(format))).unwrap();
        let report = take(&lake, vec![source], &settings(&fs, "w")).unwrap();
        assert_eq!((report.rows, report.records), (20, 20), "{name}: {report:?}");
        assert_eq!(in_lines(&bytes) - before, 20, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_record_of_a_flipped_archive(which in 0usize..6, at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let (name, mut bytes) = archives().swap_remove(which);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let (items, asides) = told(name, &bytes, Some(archive())).unwrap();
        prop_assert_eq!(items + asides, in_archive(&bytes), "{} bit {} of byte {}", name, bit, at);
    }
}

/// A list that is cut or flipped behind its head has an item for every line: each cut and each bit, because the inputs are small
/// and the few bytes that turn into a line end or a quote are the ones that matter.
#[test]
fn every_item_of_a_damaged_list() {
    for (name, format, before, bytes) in lists() {
        let first = if before > 0 { memchr::memchr(b'\n', &bytes).unwrap() + 1 } else { 0 };
        for at in first..bytes.len() {
            accounted(name, format, before, &bytes[..at], (first, at, None));
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                accounted(name, format, before, &flipped, (first, at, Some(bit)));
            }
        }
    }
}

fn accounted(name: &str, format: List, before: u64, bytes: &[u8], (first, at, bit): (usize, usize, Option<u8>)) {
    let wanted = in_lines(bytes) - before.min(in_lines(bytes));
    match told(name, bytes, Some(Format::List(format))) {
        Ok((items, asides)) => assert_eq!((items, asides), (wanted, 0), "{name} {bit:?} {at}"),
        // A head without a column of URLs is refused as a whole, and so is a table with a quote that never ends.
        Err(e) => {
            let is_quote = format == List::Tsv && bytes.get(at) == Some(&b'"');
            assert!(wanted == 0 || at <= first || is_quote, "{name} {bit:?} {at}: {e}");
        }
    }
}
