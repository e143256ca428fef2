//! An archive that was taken while it was still being written, and has lost the ending `.open` since, is one source still: its rows
//! were there twice.

mod common;

use common::{UrlRow, all_rows, file, grown, new_lake, settings, take};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_ingest::{IngestSettings, Mode};
use trawl_io::Fs;
use trawl_store::Lake;

fn record(n: u32, kind: &str, fields: &str, block: &str) -> String {
    let len = block.len();
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n{fields}Content-Length: {len}\r\n\r\n{block}\r\n\r\n"
    )
}

/// Captures, and facts behind each that change its row.
fn records() -> Vec<String> {
    let mut out = vec![record(0, "warcinfo", "", "software: x\r\n")];
    for n in [10, 20] {
        let target = format!("WARC-Target-URI: http://a.com/{n}\r\n");
        let http = "Content-Type: application/http;msgtype=response\r\n";
        out.push(record(n, "response", &format!("{target}{http}"), "HTTP/1.1 200 OK\r\n\r\nhello"));
        let of = format!("WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n");
        let facts = "trawlCapture: 1\r\nfetchedAt: 2026-06-24T01:02:04Z\r\nmetaJson: {\"depth\":3}\r\n";
        out.push(record(n + 1, "metadata", &format!("{target}{of}Content-Type: application/warc-fields\r\n"), facts));
    }
    out
}

fn gz(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// The rows of a dataset but for the name of their file, which is the one it had when they were taken.
fn rows(lake: &Lake) -> Vec<UrlRow> {
    let mut rows = all_rows(lake);
    rows.iter_mut().for_each(|row| row.warc_file = None);
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn sources(lake: &Lake) -> Vec<String> {
    lake.dataset_newest(1).unwrap().unwrap().sources.into_iter().map(|known| known.identity.uri).collect()
}

/// Takes the beginning of an archive that is still being written; tells whether it can be taken.
fn take_open(fs: &Arc<dyn Fs>, lake: &Lake, name: &str, bytes: &[u8]) -> bool {
    let source = grown(fs, lake, &format!("{name}.open"), bytes);
    source.and_then(|source| take(lake, vec![source], &settings(fs, "w1"))).is_ok()
}

fn take_named(fs: &Arc<dyn Fs>, lake: &Lake, name: &str, bytes: &[u8]) {
    take(lake, vec![grown(fs, lake, name, bytes).unwrap()], &settings(fs, "w2")).unwrap();
}

#[test]
fn an_archive_with_its_final_name_goes_on_where_it_was() {
    let plain = records().concat().into_bytes();
    let packed: Vec<u8> = records().iter().flat_map(|record| gz(record)).collect();
    for (name, bytes) in [("x.warc", plain), ("x.warc.gz", packed)] {
        let (fs, lake) = new_lake();
        take(&lake, vec![file(&fs, name, &bytes)], &settings(&fs, "w")).unwrap();
        let expected = rows(&lake);
        assert_eq!(expected.len(), 2);
        let mut taken = 0;
        // Its end, too: nothing may have come behind what was taken.
        for cut in (120..bytes.len()).step_by(53).chain([bytes.len()]) {
            let (fs, lake) = new_lake();
            taken += usize::from(take_open(&fs, &lake, name, &bytes[..cut]));
            fs.remove_file(Path::new(&format!("{name}.open"))).unwrap();
            take_named(&fs, &lake, name, &bytes);
            assert_eq!(rows(&lake), expected, "{name}, cut at {cut}");
            assert_eq!(sources(&lake), [name], "cut at {cut}");
        }
        assert!(taken > 5, "{name}: most beginnings can be taken");
    }
}

#[test]
fn what_is_another_file_is_taken_as_one() {
    let bytes = records().concat();
    let (fs, lake) = new_lake();
    assert!(take_open(&fs, &lake, "x.warc", bytes.as_bytes()));
    take_named(&fs, &lake, "x.warc", bytes.as_bytes());
    assert_eq!(sources(&lake), ["x.warc", "x.warc.open"], "both are there");
    let (fs, lake) = new_lake();
    assert!(take_open(&fs, &lake, "x.warc", bytes.as_bytes()));
    fs.remove_file(Path::new("x.warc.open")).unwrap();
    take_named(&fs, &lake, "x.warc", bytes.replace("a.com", "b.com").as_bytes());
    assert_eq!((sources(&lake).len(), rows(&lake).len()), (2, 4));
}

/// Replacing sources reads them whole: the rows of the earlier name would stay beside them.
#[test]
fn sources_that_are_replaced_do_not_come_under_both_names() {
    let bytes = records().concat();
    let (fs, lake) = new_lake();
    assert!(take_open(&fs, &lake, "x.warc", bytes.as_bytes()));
    fs.remove_file(Path::new("x.warc.open")).unwrap();
    let replacing = |writer| IngestSettings { mode: Mode::ReplaceSources, ..settings(&fs, writer) };
    let refused = take(&lake, vec![file(&fs, "x.warc", &bytes)], &replacing("w3")).unwrap_err().to_string();
    assert!(refused.contains("x.warc.open, which may be called x.warc now"), "{refused}");
    take_named(&fs, &lake, "x.warc", bytes.as_bytes());
    let again = take(&lake, vec![file(&fs, "x.warc", &bytes)], &replacing("w4")).unwrap();
    assert_eq!((again.skipped.len(), rows(&lake).len()), (1, 2));
}
