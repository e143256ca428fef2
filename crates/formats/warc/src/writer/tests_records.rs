//! Records copied as they are, file to file, and in groups.

use crate::tests_common::{captures, creation, sink};
use crate::{Compression, Limits, Verifier, WarcFile, WarcReader, WarcSource};
use std::io;
use std::path::Path;
use std::sync::Arc;
use trawl_io::RealFs;
use trawl_io::format::Creation;
use trawl_io::read_at::FileReader;
use trawl_model::{Advice, CaptureSink, Check, Entry, RecordSource};

/// Headers and blocks of all records, verbatim.
fn records(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reader = WarcReader::builder().open(path).unwrap();
    let mut all = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let header = record.header().raw().to_vec();
        let block = record.read_block(u64::MAX).unwrap().to_vec();
        all.push((header, block));
    }
    all
}

/// Copies a file; says how many records there are and how many damaged places were left out.
fn copy(from: &Path, to: &Path, compression: Compression) -> (u64, u64) {
    let creation = Creation { introduce: false, ..creation(Arc::new(RealFs), to.parent().unwrap()) };
    let mut sink = Box::new(WarcFile::create(&creation, to, compression).unwrap());
    let mut source = WarcSource::open(from, Limits::default(), true).unwrap();
    let mut damaged = 0;
    loop {
        match source.next_event() {
            Ok(Some(event)) => drop(sink.commit(sink.preparer().prepare_records(event).unwrap()).unwrap()),
            Ok(None) => return (sink.finish().unwrap().records, damaged),
            Err(e) => {
                assert_eq!(e.advice, Advice::Skip, "{e}");
                damaged += 1;
            }
        }
    }
}

fn warc(dir: &Path) -> std::path::PathBuf {
    let mut sink = sink(dir);
    for capture in captures() {
        sink.write(capture).unwrap();
    }
    dir.join(&sink.finish().unwrap().files[0].0)
}

#[test]
fn recompression_keeps_every_record_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let start = warc(dir.path());
    let odd = dir.path().join("odd.warc");
    // Records that are none of ours: an unknown type, folded and repeated fields, an old version, no bytes at all.
    let extra = b"WARC/0.18\r\nWARC-Type: strange\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2008-04-30T20:48:25Z\r\nX-A:  b\r\n c\r\nX-A: d\r\n\
Content-Length: 0\r\n\r\n\r\n\r\nWARC/1.0\r\nContent-Length: 3\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:2>\r\n\
WARC-Date: 2008-04-30T20:48:25Z\r\nWARC-Target-URI: ftp://a.example/x\r\n\r\n\0\xff\n\r\n\r\n";
    copy(&start, &odd, Compression::None);
    let mut bytes = std::fs::read(&odd).unwrap();
    bytes.extend_from_slice(extra);
    std::fs::write(&odd, bytes).unwrap();
    let wanted = records(&odd);
    assert_eq!(wanted.len(), 27);
    let mut from = odd;
    for (i, compression) in
        [Compression::Gzip, Compression::Zstd, Compression::Gzip, Compression::None].into_iter().enumerate()
    {
        let to = dir.path().join(format!("{i}.warc{}", compression.suffix()));
        assert_eq!(copy(&from, &to, compression), (27, 0));
        assert!(records(&to) == wanted, "{compression:?}");
        from = to;
    }
}

const ARC: &[u8] = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain 76\n1 0 InternetArchive\n\
URL IP-address Archive-date Content-type Archive-length\n\nhttp://a.example/x y 192.0.2.1 20080430204826 text/html 54\n\
HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello\r\n\ndns:a.example 192.0.2.9 20080430204827 text/dns 5\nabcde\n";

#[test]
fn arc_becomes_warc() {
    let dir = tempfile::tempdir().unwrap();
    let arc = dir.path().join("a.arc");
    std::fs::write(&arc, ARC).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut gz, ARC).unwrap();
    let packed = dir.path().join("b.arc.gz");
    std::fs::write(&packed, gz.finish().unwrap()).unwrap();
    for from in [arc, packed] {
        let to = dir.path().join("out.warc.gz");
        assert_eq!(copy(&from, &to, Compression::Gzip), (3, 0));
        let all = records(&to);
        assert!(String::from_utf8_lossy(&all[0].1).contains("arcVersionBlock: \"1 0 InternetArchive\\nURL IP"));
        let text = String::from_utf8_lossy(&all[1].0);
        assert!(text.contains("WARC-Target-URI: http://a.example/x%20y\r\n"), "{text}");
        assert!(text.contains("WARC-IP-Address: 192.0.2.1\r\n") && text.contains("msgtype=response"), "{text}");
        assert!(all[1].1.ends_with(b"<p>hello\r\n"));
        assert_eq!(all[2].1, b"abcde");
        let mut findings = Vec::new();
        let mut on_finding = |f| findings.push(f);
        let mut check =
            Check { temp_dir: dir.path(), memory_bytes: 1 << 20, on_finding: &mut on_finding, progress: &mut |_| {} };
        let mut verifier = Verifier::new(&mut check).unwrap();
        verifier.file(Arc::new(FileReader::open(&to).unwrap())).unwrap();
        assert_eq!(verifier.finish().unwrap().digests, 5);
        assert_eq!(findings, []);
        let mut source = WarcSource::open(&from, Limits::default(), false).unwrap();
        let mut urls = Vec::new();
        while let Some((entry, _)) = source.next_owned().unwrap() {
            match entry {
                Entry::Capture(capture) => urls.push(capture.url),
                Entry::Other(record) => urls.push(record.kind),
            }
        }
        assert_eq!(urls, ["warcinfo", "http://a.example/x y", "resource"]);
    }
}

#[test]
fn damage_is_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let start = warc(dir.path());
    let mut bytes = std::fs::read(&start).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 1;
    let bad = dir.path().join("bad.warc.gz");
    std::fs::write(&bad, bytes).unwrap();
    let out = dir.path().join("out.warc.gz");
    assert_eq!(copy(&bad, &out, Compression::Gzip), (24, 1));
    // Everything but the large page in the middle.
    let wanted: Vec<_> = records(&start).into_iter().filter(|(_, block)| block.len() < 100_000).collect();
    assert!(records(&out) == wanted);
}

/// The groups of a file: URL and number of records; and a copy made of them.
fn events(path: &Path) -> Vec<(Option<String>, usize)> {
    let mut source = WarcSource::open(path, Limits::default(), true).unwrap();
    let mut groups = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        groups.push((event.url, event.records.len()));
    }
    groups
}

#[test]
fn groups_keep_every_record_and_every_capture_whole() {
    let dir = tempfile::tempdir().unwrap();
    let start = warc(dir.path());
    let groups = events(&start);
    let again = dir.path().join("copy.warc.gz");
    copy(&start, &again, Compression::Gzip);
    assert!(records(&again) == records(&start));
    // As many groups as the door to captures finds entries.
    let mut source = WarcSource::open(&start, Limits::default(), false).unwrap();
    let mut wanted = Vec::new();
    while let Some((entry, _)) = source.next_owned().unwrap() {
        wanted.push(match entry {
            Entry::Capture(capture) => Some(capture.url),
            Entry::Other(_) => None,
        });
    }
    assert_eq!(groups.len(), wanted.len());
    assert!(groups.iter().zip(&wanted).skip(1).all(|((_, n), _)| (1..=3).contains(n)), "{groups:?}");
    assert_eq!(groups[0], (None, 1), "the warcinfo stands alone");
}

#[test]
fn others_files_are_grouped_by_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let record = |kind: &str, id: u32, target: &str, more: &str| {
        let target = if target.is_empty() { String::new() } else { format!("WARC-Target-URI: {target}\r\n") };
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{id}>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n{target}{more}\
             Content-Length: 0\r\n\r\n\r\n\r\n"
        )
    };
    let link = |id: u32| format!("WARC-Concurrent-To: <urn:x:{id}>\r\n");
    let text = [
        record("warcinfo", 1, "", ""),
        // Silent and side by side.
        record("request", 2, "http://a/", ""),
        record("response", 3, "http://a/", ""),
        // The same target again is another exchange.
        record("request", 4, "http://a/", ""),
        record("response", 5, "http://a/", &link(4)),
        record("metadata", 6, "http://a/", &link(5)),
        record("conversion", 7, "http://a/", "WARC-Refers-To: <urn:x:5>\r\n"),
        // A revisit refers to somebody else's capture.
        record("revisit", 8, "http://a/", "WARC-Refers-To: <urn:x:7>\r\n"),
        record("metadata", 9, "http://b/", ""),
        record("strange", 10, "", ""),
        record("resource", 11, "ftp://c/", ""),
        record("warcinfo", 12, "", &link(11)),
    ]
    .concat();
    let path = dir.path().join("x.warc");
    std::fs::write(&path, text).unwrap();
    let groups = events(&path);
    let url = |url: &str| Some(url.to_owned());
    assert_eq!(
        groups,
        [
            (None, 1),
            (url("http://a/"), 2),
            (url("http://a/"), 4),
            (url("http://a/"), 1),
            (url("http://b/"), 1),
            (None, 1),
            (url("ftp://c/"), 1),
            (None, 1)
        ]
    );
    let again = dir.path().join("copy.warc.gz");
    copy(&path, &again, Compression::Gzip);
    assert!(records(&again) == records(&path));
}
