//! Every fixture decodes to the content that real Hadoop code printed for it, byte for byte.

use serde_json::Value;
use std::path::{Path, PathBuf};
use trawl_hadoop::class::HadoopClasses;
use trawl_hadoop::json::{self, Detail};
use trawl_hadoop::seq::{self, OpenOptions, Reader};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every SequenceFile below `dir`, with its path relative to the fixtures.
fn sequence_files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "expected" {
            sequence_files(&path, out);
        } else if path.is_file() && !name.starts_with('.') && name != "bloom" {
            out.push(path.strip_prefix(fixtures()).unwrap().to_owned());
        }
    }
}

fn digest(path: &Path) -> String {
    let mut reader = Reader::open(path).unwrap();
    let header = reader.header().clone();
    let (key_class, value_class) = (header.key_class(), header.value_class());
    let mut out = String::new();
    let mut i = 0;
    while let Some(record) = reader.next_record().unwrap() {
        let mut line = serde_json::Map::new();
        line.insert("i".into(), i.into());
        if header.compression != seq::Compression::Block {
            line.insert("pos".into(), record.at.offset.into());
        }
        line.insert("key".into(), json::whole(&key_class, record.key, Detail::Digest, &HadoopClasses));
        line.insert("value".into(), json::whole(&value_class, record.value, Detail::Digest, &HadoopClasses));
        line.insert("key_len".into(), record.key.len().into());
        line.insert("value_len".into(), record.value.len().into());
        line.insert("value_crc32".into(), format!("{:08x}", crc32fast::hash(record.value)).into());
        out += &format!("{}\n", Value::from(line));
        i += 1;
    }
    out
}

#[test]
fn every_file_has_its_expected_records_and_header() {
    let mut files = Vec::new();
    sequence_files(&fixtures(), &mut files);
    assert_eq!(files.len(), 30 + 11 + 20);
    for file in files {
        let expected = fixtures().join("expected").join(&file);
        let beside = |suffix: &str| PathBuf::from(format!("{}.{suffix}", expected.display()));
        let path = fixtures().join(&file);
        let mut records = std::fs::read_to_string(beside("jsonl")).unwrap();
        let mut ours = digest(&path);
        if file.ends_with("v6-record-zstd.seq") {
            // Its expectation was made without positions.
            let without = |line: &str| {
                let mut value: Value = serde_json::from_str(line).unwrap();
                value.as_object_mut().unwrap().shift_remove("pos");
                format!("{value}\n")
            };
            (records, ours) = (records.lines().map(without).collect(), ours.lines().map(without).collect());
        }
        assert!(records.trim_end() == ours.trim_end(), "{}: {}", file.display(), first_difference(&records, &ours));
        let Ok(header) = std::fs::read_to_string(beside("header.json")) else { continue };
        let header: Value = serde_json::from_str(&header).unwrap();
        let ours = seq::inspect(&path, &OpenOptions::default()).unwrap().json();
        assert_eq!(header, ours, "{}", file.display());
    }
}

fn first_difference(a: &str, b: &str) -> String {
    let pair = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    pair.map_or_else(|| "another number of lines".into(), |(a, b)| format!("\nexpected {a}\nfound    {b}"))
}

#[test]
fn every_file_verifies_and_splits_into_its_records() {
    let mut files = Vec::new();
    sequence_files(&fixtures(), &mut files);
    for file in files {
        let path = fixtures().join(file);
        let mut faults = Vec::new();
        let options = OpenOptions::default();
        let records = seq::verify(&path, &options, None, &mut |_, _, _| None, &mut |fault| faults.push(fault)).unwrap();
        assert_eq!(faults, []);
        let mut whole = Vec::new();
        let mut reader = Reader::open(&path).unwrap();
        while let Some(r) = reader.next_record().unwrap() {
            whole.push((r.at, r.key.to_vec(), r.value.to_vec()));
        }
        assert_eq!(whole.len() as u64, records);
        for size in [1, 7, 100, 1999, 1 << 20] {
            if size < 100 && reader.file_len() > 3000 {
                continue;
            }
            let mut parts = Vec::new();
            let mut start = 0;
            while start < reader.file_len() {
                let mut part = Reader::open(&path).unwrap();
                part.split(seq::Span { start, end: start + size }).unwrap();
                while let Some(r) = part.next_record().unwrap() {
                    parts.push((r.at, r.key.to_vec(), r.value.to_vec()));
                }
                start += size;
            }
            assert!(parts == whole, "{}: splits of {size} bytes", path.display());
        }
    }
}

#[test]
fn an_uncompressed_file_is_written_as_java_wrote_it() {
    // Hadoop 3.5 with the interval its file was made with; the marker is the file's own.
    let dir = tempfile::tempdir().unwrap();
    for (file, interval) in
        [("text-text.none.seq", 2000), ("utf8-double.none.seq", 2000), ("text-map.none.seq", 102_400)]
    {
        let path = fixtures().join("seqfiles").join(file);
        let mut reader = Reader::open(&path).unwrap();
        let header = reader.header().clone();
        let mut options =
            seq::WriterOptions::new(&header.stored_key_class, &header.stored_value_class, header.marker.unwrap());
        options.metadata = header.metadata.clone();
        options.escape_interval = interval;
        let copy = dir.path().join(file);
        let mut writer = seq::Writer::create(&copy, options).unwrap();
        while let Some(r) = reader.next_record().unwrap() {
            writer.append(r.key, r.value).unwrap();
        }
        writer.finish().unwrap();
        assert!(std::fs::read(&copy).unwrap() == std::fs::read(&path).unwrap(), "{file}");
        let crc = |path: &Path| std::fs::read(trawl_hadoop::crc::sidecar(path)).unwrap();
        assert_eq!(crc(&copy), crc(&path), "{file}");
    }
}
