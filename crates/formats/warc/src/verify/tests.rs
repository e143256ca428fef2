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
