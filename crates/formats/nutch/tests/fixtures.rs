//! Every fixture decodes to the content that real Nutch and Hadoop code printed for it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use trawl_hadoop::json::Detail;
use trawl_hadoop::seq::{OpenOptions, Reader, inspect};
use trawl_nutch::RecordPrinter;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every SequenceFile below `dir`, relative to the fixtures.
fn sequence_files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sequence_files(&path, out);
        } else if std::fs::read(&path).unwrap().starts_with(b"SEQ") {
            out.push(path.strip_prefix(fixtures()).unwrap().to_owned());
        }
    }
}

fn digest(path: &Path) -> Vec<String> {
    let mut reader = Reader::open(path).unwrap();
    let mut printer = RecordPrinter::new(reader.header(), Detail::Digest);
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        lines.push(printer.print(&record).to_string());
    }
    lines
}

/// The expectations of legacy files have fewer fields: everything they have must be there.
fn contains(ours: &Value, expected: &Value) -> bool {
    match (ours, expected) {
        (Value::Object(a), Value::Object(b)) => {
            b.iter().all(|(k, v)| k == "version_byte" || a.get(k).is_some_and(|ours| contains(ours, v)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| contains(a, b)),
        (a, b) => a == b,
    }
}

#[test]
fn every_file_has_its_expected_records_and_header() {
    let mut files = Vec::new();
    for tree in ["crawl-e2e", "crawl-synth", "types", "legacy"] {
        sequence_files(&fixtures().join(tree), &mut files);
    }
    assert_eq!(files.len(), 162);
    for file in files {
        let beside =
            |suffix: &str| PathBuf::from(format!("{}.{suffix}", fixtures().join("expected").join(&file).display()));
        let path = fixtures().join(&file);
        let expected = std::fs::read_to_string(beside("jsonl")).unwrap();
        let ours = digest(&path);
        let legacy = file.starts_with("legacy");
        assert_eq!(ours.len(), expected.lines().count(), "{}", file.display());
        for (ours, expected) in ours.iter().zip(expected.lines()) {
            let parse = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
            let same = if legacy { contains(&parse(ours), &parse(expected)) } else { ours == expected };
            assert!(same, "{}\nexpected {expected}\nfound    {ours}", file.display());
            assert!(!ours.contains("\"undecoded\""), "{ours}");
        }
        if let Ok(header) = std::fs::read_to_string(beside("header.json")) {
            let ours = inspect(&path, &OpenOptions::default()).unwrap().json();
            assert!(contains(&ours, &serde_json::from_str(&header).unwrap()), "{}: {ours}", file.display());
        }
    }
}

#[test]
fn an_unknown_class_is_dumped_as_hex() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("loops");
    let options = trawl_hadoop::seq::WriterOptions::new(
        trawl_hadoop::class::TEXT,
        "org.apache.nutch.scoring.webgraph.Loops$LoopSet",
        [1; 16],
    );
    let mut writer = trawl_hadoop::seq::Writer::create(&path, options).unwrap();
    writer.append(b"\x01u", &[0, 0, 0, 1, 1, b'v']).unwrap();
    writer.finish().unwrap();
    let line: Value = serde_json::from_str(&digest(&path)[0]).unwrap();
    assert_eq!(line["value"], serde_json::json!({ "hex": "000000010176" }));
    assert!(line["undecoded"].as_str().unwrap().contains("Loops$LoopSet"));
}
