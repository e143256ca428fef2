use super::*;
use crate::tests_common::{captures, describe, response, sink, text};
use crate::{Part, WarcSource};
use proptest::prelude::*;
use std::io::Write;
use trawl_model::{CaptureSink, Entry};

fn read(mut source: WarcSource, out: &mut Vec<String>) {
    loop {
        match source.next_owned() {
            Ok(Some((Entry::Capture(capture), place))) => out.push(format!("{place:?} {}", describe(*capture))),
            Ok(Some((Entry::Other(record), place))) => out.push(format!("{place:?} {}", record.kind)),
            Ok(None) => return,
            Err(e) => {
                assert!(e.is_damage(), "{e}");
                out.push(e.to_string());
            }
        }
    }
}

/// Reads a file whole and in splits of a size: the entries of both, and how many splits there were.
fn both(file: &Arc<dyn ReadAt>, target_bytes: u64) -> (Vec<String>, Vec<String>, usize) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    read(WarcSource::over(file.clone(), Limits::default(), true), &mut whole);
    let cut = splits(file, Limits::default(), target_bytes).unwrap();
    assert!(cut.first().is_some_and(|s| s.start == 0) && cut.last().is_some_and(|s| s.end == file.len()));
    assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
    for split in &cut {
        read(WarcSource::split(file.clone(), Limits::default(), *split).unwrap(), &mut parts);
    }
    (whole, parts, cut.len())
}

fn file(bytes: Vec<u8>) -> Arc<dyn ReadAt> {
    Arc::new(bytes::Bytes::from(bytes))
}

#[test]
fn splits_of_any_size_give_every_entry_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    for n in 0..60 {
        sink.write(response(n, text(n, 200_000 + usize::try_from(n).unwrap() * 5000))).unwrap();
    }
    captures().into_iter().for_each(|capture| drop(sink.write(capture).unwrap()));
    let summary = sink.finish().unwrap();
    let file = file(std::fs::read(dir.path().join(&summary.files[0].0)).unwrap());
    for (target, at_least) in [(1 << 20, 3), (100_000, 15), (33_333, 30), (u64::MAX, 1)] {
        let (whole, parts, count) = both(&file, target);
        assert_eq!(whole.len(), 71);
        assert!(whole == parts && count >= at_least, "{target}: {count}");
    }
}

/// How the records of a test file are stored.
#[derive(Debug, Clone, Copy)]
enum Stored {
    Plain,
    Gzip,
    /// Deflate that stores: whatever is inside can be seen from outside.
    Level0,
    /// This many records in a member.
    Shared(usize),
    /// Members of this many bytes, wherever records end.
    Spread(usize),
    Zstd,
}

fn store(records: &[Vec<u8>], stored: Stored) -> Vec<u8> {
    let gzip = |plain: &[u8], level| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        out.write_all(plain).unwrap();
        out.finish().unwrap()
    };
    match stored {
        Stored::Plain => records.concat(),
        Stored::Gzip => records.iter().flat_map(|r| gzip(r, 1)).collect(),
        Stored::Level0 => records.iter().flat_map(|r| gzip(r, 0)).collect(),
        Stored::Shared(n) => records.chunks(n).flat_map(|r| gzip(&r.concat(), 1)).collect(),
        Stored::Spread(n) => records.concat().chunks(n).flat_map(|part| gzip(part, 1)).collect(),
        Stored::Zstd => records.iter().flat_map(|r| zstd::bulk::compress(r, 1).unwrap()).collect(),
    }
}

/// A record of few ids and targets, so that records name each other, or not, in every way.
fn record(kind: u8, id: u8, link: Option<u8>, target: u8, body: &[u8]) -> Vec<u8> {
    let (kind, block): (&str, Vec<u8>) = match kind {
        0 => ("response", [b"HTTP/1.1 200 OK\r\n\r\n", body].concat()),
        1 => ("request", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        2 => ("metadata", format!("trawlCapture: 1\r\nvia: http://v{}.example/\r\n", body.len()).into_bytes()),
        3 => ("metadata", b"trawlCapture: 1\r\nerrorClass: reset\r\nerror: x\r\n".to_vec()),
        4 => ("revisit", b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()),
        _ => ("resource", body.to_vec()),
    };
    let link = link.map(|id| format!("WARC-Concurrent-To: <urn:x:{id}>\r\n")).unwrap_or_default();
    let content_type = if matches!(kind, "response" | "request" | "revisit") { "application/http" } else { "text/x" };
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{id}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n{link}\
         WARC-Target-URI: http://{target}.example/\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), &block, b"\r\n\r\n"].concat()
}

/// A page that is itself a WARC file, in some compression.
fn nested(stored: Stored) -> Vec<u8> {
    let inside: Vec<_> = (0..40).map(|n| record(n % 3, n, None, 9, &text(u64::from(n), 900))).collect();
    store(&inside, stored)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn whatever_records_say_of_each_other(
        records in prop::collection::vec((0u8..6, 0u8..5, prop::option::of(0u8..5), 0u8..2, 0usize..400), 1..60),
        stored in prop_oneof![
            Just(Stored::Plain), Just(Stored::Gzip), Just(Stored::Level0), Just(Stored::Shared(3)), Just(Stored::Zstd),
            (100usize..3000).prop_map(Stored::Spread)
        ],
        target in 1u64..6000,
        pages in prop::collection::vec((0usize..60, 0usize..3), 0..3),
    ) {
        let mut all: Vec<_> = records.iter().map(|(kind, id, link, target, len)| {
            record(*kind, *id, *link, *target, &text(*len as u64, *len))
        }).collect();
        for (at, kind) in pages {
            let page = nested([Stored::Plain, Stored::Gzip, Stored::Zstd][kind]);
            let at = at.min(all.len());
            all.insert(at, record(0, 1, None, 3, &page));
        }
        let file = file(store(&all, stored));
        let (whole, parts, _) = both(&file, target);
        prop_assert_eq!(whole, parts);
    }
}

/// A page that is a WARC file of many records, stored as it is, is longer than what counts as proof in one place only if the
/// file itself is not compressed; there lengths are followed.
#[test]
fn archives_inside_pages_are_not_taken_for_records() {
    for stored in [Stored::Plain, Stored::Level0, Stored::Zstd, Stored::Gzip] {
        for inside in [Stored::Plain, Stored::Gzip, Stored::Zstd] {
            let pages: Vec<_> = (0..400u32).map(|n| record(0, 1, None, 1, &text(u64::from(n), 2000))).collect();
            let page = store(&pages, inside);
            let all: Vec<_> = (0..20u8).map(|n| record(0, n, None, n, &page)).collect();
            let file = file(store(&all, stored));
            let (whole, parts, count) = both(&file, 50_000);
            assert_eq!(whole.len(), 20);
            assert!(whole == parts, "{stored:?} in {inside:?}: {} entries, {} in parts", whole.len(), parts.len());
            assert!(count > 1 || file.len() < 200_000, "{stored:?} in {inside:?}: not split");
        }
    }
}

/// Damage takes what it takes: all other captures are read once, whatever the split size.
#[test]
fn damage_costs_no_more_in_splits() {
    let all: Vec<_> = (0..80u8).map(|n| record(0, n, None, n, &text(u64::from(n), 3000))).collect();
    for stored in [Stored::Plain, Stored::Gzip, Stored::Zstd] {
        let good = store(&all, stored);
        for at in (0..good.len()).step_by(good.len() / 37) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x55;
            let (whole, parts, _) = both(&file(bytes), 4000);
            let captures = |entries: &[String]| entries.iter().filter(|e| e.contains("http://")).count();
            assert_eq!(captures(&whole), captures(&parts), "{stored:?} byte {at}");
            assert!(captures(&parts) >= 78);
        }
    }
}

#[test]
fn a_file_in_one_member_is_one_split() {
    let all: Vec<_> = (0..80u8).map(|n| record(0, n, None, n, &text(u64::from(n), 3000))).collect();
    let file = file(store(&all, Stored::Shared(1000)));
    assert_eq!(both(&file, 1000).2, 1);
    let part = Part { file, offset: 0 };
    assert_eq!(splits(&part.file, Limits::default(), 1).unwrap().len(), 1);
}

/// Rows of members that are too short to be proof, one after another: each is looked at once.
#[test]
fn rows_that_prove_nothing_are_passed_in_linear_time() {
    let row: Vec<_> = (0..250).map(|n| record(5, 1, None, 1, &text(n, 400))).collect();
    let row = [store(&row, Stored::Gzip), b"damage".to_vec()].concat();
    assert!(row.len() < 100_000, "{}", row.len());
    let bytes = bytes::Bytes::from(row.repeat(20));
    let size = bytes.len() as u64;
    let file = Arc::new(trawl_io::read_at::Counting::new(bytes));
    let counted: Arc<dyn ReadAt> = file.clone();
    splits(&counted, Limits::default(), 10_000).unwrap();
    let read = file.reads().bytes;
    assert!(read < 40 * size, "{read} bytes read of {size}");
}
