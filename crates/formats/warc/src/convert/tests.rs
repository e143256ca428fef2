use super::*;
use crate::testing::{Counter, captures, fs, options, sink_with};
use crate::{Limits, Verifier, WarcSource};
use trawl_io::read_at::FileReader;
use trawl_model::{CaptureSink, Entry};

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

fn copy(from: &Path, to: &Path, compression: Compression) -> CopyReport {
    let mut reader = WarcReader::builder().open(from).unwrap();
    let mut out = RecordWriter::create(&fs(), to, compression, None).unwrap();
    let mut options = CopyOptions { ids: &Counter::default(), on_damage: None, software: "trawl/test" };
    let report = copy_records(&mut reader, &mut out, &mut options, &mut |_| {}).unwrap();
    out.finish().unwrap();
    report
}

fn warc(dir: &Path) -> std::path::PathBuf {
    let mut sink = sink_with(dir, options());
    for capture in captures() {
        let prepared = sink.prepare(capture).unwrap();
        sink.commit(prepared).unwrap();
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
        assert_eq!(copy(&from, &to, compression).records, 27);
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
        assert_eq!(copy(&from, &to, Compression::Gzip).records, 3);
        let all = records(&to);
        assert!(String::from_utf8_lossy(&all[0].1).contains("arcVersionBlock: \"1 0 InternetArchive\\nURL IP"));
        let text = String::from_utf8_lossy(&all[1].0);
        assert!(text.contains("WARC-Target-URI: http://a.example/x%20y\r\n"), "{text}");
        assert!(text.contains("WARC-IP-Address: 192.0.2.1\r\n") && text.contains("msgtype=response"), "{text}");
        assert!(all[1].1.ends_with(b"<p>hello\r\n"));
        assert_eq!(all[2].1, b"abcde");
        let mut findings = Vec::new();
        let mut verifier = Verifier::new(Limits::default(), dir.path(), 1 << 20, |f| findings.push(f)).unwrap();
        verifier.file(Arc::new(FileReader::open(&to).unwrap()), &mut |_| {}).unwrap();
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
fn damage_is_an_error_or_a_gap_as_the_caller_likes() {
    let dir = tempfile::tempdir().unwrap();
    let start = warc(dir.path());
    let mut bytes = std::fs::read(&start).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 1;
    let bad = dir.path().join("bad.warc.gz");
    std::fs::write(&bad, bytes).unwrap();
    let run = |tolerant: bool| {
        let mut told = 0;
        let mut tell = |_| told += 1;
        let mut reader = WarcReader::builder().open(&bad).unwrap();
        let mut out = RecordWriter::create(&fs(), &dir.path().join("out.warc.gz"), Compression::Gzip, None).unwrap();
        let on_damage = tolerant.then_some(&mut tell as &mut dyn FnMut(crate::Error));
        let mut options = CopyOptions { ids: &Counter::default(), on_damage, software: "t" };
        let report = copy_records(&mut reader, &mut out, &mut options, &mut |_| {});
        (report, told)
    };
    assert!(run(false).0.is_err());
    let (report, told) = run(true);
    assert_eq!((report.unwrap(), told), (CopyReport { records: 24, block_bytes: report_bytes(&start), damaged: 1 }, 1));
}

fn report_bytes(start: &Path) -> u64 {
    // Everything but the large page in the middle.
    records(start).iter().map(|(_, block)| block.len() as u64).filter(|n| *n < 100_000).sum()
}

/// Reads groups of records and lays their bytes end to end.
fn events(path: &Path) -> (Vec<(Option<String>, u64)>, Vec<u8>) {
    let dir = path.parent().unwrap();
    let options = CopyOptions { ids: &Counter::default(), on_damage: None, software: "trawl/test" };
    let reader = WarcReader::builder().lenient(true).open(path).unwrap();
    let mut events = EventReader::new(reader, fs(), dir, Compression::Gzip, None, options);
    let (mut groups, mut bytes) = (Vec::new(), Vec::new());
    while let Some(event) = events.next_event().unwrap() {
        let before = bytes.len();
        event.reader().read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len() - before) as u64, event.len_bytes());
        groups.push((event.url.clone(), event.records()));
    }
    (groups, bytes)
}

#[test]
fn groups_keep_every_record_and_every_capture_whole() {
    let dir = tempfile::tempdir().unwrap();
    let start = warc(dir.path());
    let (groups, bytes) = events(&start);
    let copy = dir.path().join("copy.warc.gz");
    std::fs::write(&copy, bytes).unwrap();
    assert!(records(&copy) == records(&start));
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
    let (groups, bytes) = events(&path);
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
    let copy = dir.path().join("copy.warc.gz");
    std::fs::write(&copy, bytes).unwrap();
    assert!(records(&copy) == records(&path));
}
