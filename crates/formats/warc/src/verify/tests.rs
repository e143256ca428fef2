use super::*;
use crate::tests_common::{captures, sink};
use bytes::Bytes;
use trawl_model::CaptureSink;

fn archive() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    for capture in captures() {
        sink.write(capture).unwrap();
    }
    let summary = sink.finish().unwrap();
    std::fs::read(dir.path().join(&summary.files[0].0)).unwrap()
}

fn verify(files: &[Vec<u8>]) -> (Vec<(&'static str, Severity)>, Checked) {
    let mut findings = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    let mut on_finding = |f: trawl_model::Finding| findings.push((f.kind, f.severity));
    let mut check =
        Check { temp_dir: dir.path(), memory_bytes: 1 << 20, on_finding: &mut on_finding, progress: &mut |_| {} };
    let mut verifier = Verifier::new(&mut check).unwrap();
    for file in files {
        verifier.file(Arc::new(Bytes::from(file.clone()))).unwrap();
    }
    let checked = verifier.finish().unwrap();
    (findings, checked)
}

/// The same file, with one text of its (uncompressed) records replaced.
fn changed(from: &str, to: &str) -> Vec<u8> {
    use std::io::Read;
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&archive()[..]).read_to_end(&mut plain).unwrap();
    let at = memchr::memmem::find(&plain, from.as_bytes()).unwrap();
    plain.splice(at..at + from.len(), to.bytes());
    plain
}

#[test]
fn what_we_write_is_in_order() {
    let (findings, report) = verify(&[archive()]);
    // The made-up digest of the revisit in the test data is not that of the page it refers to.
    assert_eq!(findings, [("refers-to-digest", Severity::Fault), ("refers-to-digest", Severity::Fault)]);
    assert_eq!((report.files, report.records), (1, 25));
    assert_eq!(report.digests, 25 + 5);
}

#[test]
fn each_kind_of_fault_is_found() {
    for (from, to, kind) in [
        ("lorem", "Lorem", "payload-digest"),
        ("GET /page/0", "GET /page/O", "block-digest"),
        ("000000000003>", "000000000002>", "duplicate-id"),
        (
            "Concurrent-To: <urn:uuid:00000000-0000-4000-8000-000000000002",
            "Concurrent-To: <urn:uuid:00000000-0000-4000-8000-00000000fff2",
            "concurrent-to",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3000",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3001",
            "http-length",
        ),
        ("WARC-Date: 2026-06-24T01:02:03.000Z\r\n", "WARC-Fate: 2026-06-24T01:02:03.000Z\r\n", "oddity"),
    ] {
        let (findings, _) = verify(&[changed(from, to)]);
        assert!(findings.iter().any(|(k, _)| *k == kind), "{kind}: {findings:?}");
    }
}

#[test]
fn the_same_file_twice_has_every_id_twice() {
    let (findings, _) = verify(&[archive(), archive()]);
    assert_eq!(findings.iter().filter(|(k, _)| *k == "duplicate-id").count(), 25);
    assert_eq!(findings.iter().filter(|(_, severity)| *severity == Severity::Fault).count(), 25 + 4);
}

#[test]
fn damage_is_found_and_the_rest_still_checked() {
    let mut bytes = archive();
    let at = bytes.len() / 3;
    bytes[at] ^= 0xff;
    let (findings, report) = verify(&[bytes]);
    assert!(findings.iter().any(|(k, _)| *k == "damage"), "{findings:?}");
    assert!(report.records >= 23, "{report:?}");
    let (findings, _) = verify(&[archive()[..archive().len() - 3].to_vec()]);
    assert!(findings.iter().any(|(k, _)| *k == "damage"), "{findings:?}");
}

/// Nobody needs the checksum of a gzip header to read a member, but it says that bytes are not what they were.
#[test]
fn a_gzip_header_with_a_checksum() {
    use std::io::Write;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(
        b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
    )
    .unwrap();
    let mut member = gz.finish().unwrap();
    member[3] |= 2;
    let [low, high, ..] = crc32fast::hash(&member[..10]).to_le_bytes();
    member.splice(10..10, [low, high]);
    assert_eq!(verify(&[member.clone()]).0, []);
    member[10] ^= 1;
    let (findings, report) = verify(&[member]);
    assert_eq!((findings, report.records), (vec![("oddity", Severity::Fault)], 1));
}

#[test]
fn a_date_that_is_none_and_a_target_that_is_missing() {
    let record = |fields: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:1>\r\n{fields}Content-Length: 0\r\n\r\n\r\n\r\n"
        )
    };
    for (fields, kind) in [
        ("WARC-Target-URI: http://a.example/\r\nWARC-Date: not a date\r\n", "date"),
        ("WARC-Date: 2026-06-24T01:02:03Z\r\n", "target"),
    ] {
        assert_eq!(verify(&[record(fields).into_bytes()]).0, [(kind, Severity::Fault)]);
    }
}

/// What is put into a file anywhere, or taken out of it, is found: every byte belongs to something that is checked.
#[test]
fn every_byte_is_accounted_for() {
    use std::io::Write;
    let record = |n: usize| {
        let block = format!("page {n}");
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n\
             WARC-Target-URI: http://a.example/\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let gzip = |text: String| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap()
    };
    let gz: Vec<_> = [1, 2, 1].map(|n| gzip(record(n))).concat();
    let zst: Vec<_> = [1, 2, 3].map(|n| zstd::encode_all(record(n).as_bytes(), 3).unwrap()).concat();
    let plain = [1, 2, 3].map(record).concat().into_bytes();
    let only_ids =
        |bytes: &Vec<u8>| verify(std::slice::from_ref(bytes)).0.iter().all(|(kind, _)| *kind == "duplicate-id");
    for (name, bytes) in [("gzip", &gz), ("zstd", &zst), ("plain", &plain)] {
        assert!(only_ids(bytes), "{name}");
        for at in 0..=bytes.len() {
            for insert in [&b"\0"[..], b"x", b"\x1f\x8b", b"\r\n", b"garbage of some length"] {
                let mut changed = bytes.clone();
                changed.splice(at..at, insert.iter().copied());
                // An empty name of a gzip member, a longer field: what the format allows is no damage.
                if changed != *bytes && only_ids(&changed) {
                    assert!(name == "plain", "{name}: {insert:?} at {at} was not found");
                }
            }
        }
    }
    // A member damaged at both its ends, an equal one behind it: libdeflate's way would take both for one.
    let one = gzip(record(1));
    let mut both = [&one[..], &one[..]].concat();
    both[one.len() - 8] ^= 1;
    both[one.len()] ^= 1;
    assert!(!only_ids(&both));
}

/// A file that bgzip packed is sound, but no other tool reads single records of it.
#[test]
fn records_that_go_on_in_the_next_member_are_noted() {
    use std::io::{Read, Write};
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&archive()[..]).read_to_end(&mut plain).unwrap();
    let pack = |part: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(part).unwrap();
        gz.finish().unwrap()
    };
    let packed: Vec<u8> = plain.chunks(4000).chain([&b""[..]]).flat_map(pack).collect();
    let (findings, report) = verify(std::slice::from_ref(&packed));
    let fault = ("refers-to-digest", Severity::Fault);
    assert_eq!(findings, [("spread-record", Severity::Note), fault, fault]);
    assert_eq!((report.records, report.digests), (25, 25 + 5));
    // A member that is lost is damage, and what follows it is read.
    let start = packed.len() / 2;
    let from = start + memchr::memmem::find(&packed[start..], b"\x1f\x8b\x08").unwrap();
    let to = from + 1 + memchr::memmem::find(&packed[from + 1..], b"\x1f\x8b\x08").unwrap();
    let (findings, report) = verify(&[[&packed[..from], &packed[to..]].concat()]);
    assert!(findings.iter().any(|(_, severity)| *severity == Severity::Fault), "{findings:?}");
    assert!(report.records >= 10, "{}", report.records);
}
