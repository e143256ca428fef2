use super::*;
use crate::seq::{OpenOptions, Pack, Reader, Writer, WriterOptions};
use crate::{Codec, Decoder, Encode, class};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str) -> MapReader {
    MapReader::open(&fixtures().join("mapfiles").join(name), &OpenOptions::default()).unwrap()
}

fn text(s: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_text(s.as_bytes());
    out
}

fn string(bytes: &[u8]) -> String {
    Decoder::new(bytes).text("a Text").unwrap().to_string()
}

#[test]
fn lookups_answer_as_java_does() {
    for pack in ["none", "record", "block"] {
        let vectors = fixtures().join(format!("expected/vectors/lookup-mapfile-{pack}.jsonl"));
        let mut map = fixture(&format!("mapfile-{pack}"));
        let mut before = 0;
        for line in std::fs::read_to_string(vectors).unwrap().lines() {
            let v: Value = serde_json::from_str(line).unwrap();
            let key = text(v["key"].as_str().unwrap());
            let get = map.get(&key).unwrap().map(string);
            assert_eq!(get.as_deref(), v["get"].as_str(), "{v}");
            let closest = map.closest(&key).unwrap().map(|r| string(r.key));
            assert_eq!(closest.as_deref(), v["closest"].as_str(), "{v}");
            if let Some(wanted) = v.get("closestBefore") {
                let found = map.closest_before(&key).unwrap().map(|r| string(r.key));
                assert_eq!(found.as_deref(), wanted.as_str(), "{v}");
                before += 1;
            }
        }
        assert_eq!(before > 0, pack != "block");
    }
}

#[test]
fn every_key_of_every_map_is_found_and_no_other() {
    for name in ["mapfile-none", "mapfile-record", "mapfile-block", "mapfile-long-none", "setfile", "bloommapfile"] {
        let mut keys = Vec::new();
        let mut map = fixture(name);
        let scan = map.scan().unwrap();
        while let Some(r) = scan.next_record().unwrap() {
            keys.push((r.key.to_vec(), r.value.to_vec()));
        }
        for (n, (key, value)) in keys.iter().enumerate() {
            assert_eq!(map.get(key).unwrap(), Some(&value[..]), "{name}");
            assert_eq!(map.closest(key).unwrap().unwrap().key, key);
            assert_eq!(map.closest_before(key).unwrap().unwrap().key, key);
            let mut missing = key.clone();
            *missing.last_mut().unwrap() ^= 1;
            if keys.iter().all(|(k, _)| *k != missing) {
                assert_eq!(map.get(&missing).unwrap(), None, "{name} {n}");
            }
        }
    }
}

#[test]
fn of_equal_keys_the_first_counts() {
    let mut map = fixture("mapfile-interval16-dups");
    let mut firsts = std::collections::BTreeMap::new();
    let scan = map.scan().unwrap();
    while let Some(r) = scan.next_record().unwrap() {
        firsts.entry(r.key.to_vec()).or_insert(r.value.to_vec());
    }
    assert!(map.index().len() > 3);
    for (key, value) in &firsts {
        assert_eq!(map.get(key).unwrap(), Some(&value[..]));
    }
    let keys: Vec<_> = firsts.keys().cloned().collect();
    let mut range = map.range(&keys[3], Some(&keys[6])).unwrap();
    let mut seen = Vec::new();
    while let Some(r) = range.next_record().unwrap() {
        seen.push(r.key.to_vec());
    }
    assert_eq!(seen.len(), 9);
    assert!(seen.iter().all(|k| (&keys[3]..&keys[6]).contains(&k)));
}

#[test]
fn ranges_and_ends() {
    let mut map = fixture("mapfile-block");
    let mut keys = Vec::new();
    let scan = map.scan().unwrap();
    while let Some(r) = scan.next_record().unwrap() {
        keys.push(r.key.to_vec());
    }
    let mut count = |from: &[u8], to: Option<&[u8]>| {
        let mut range = map.range(from, to).unwrap();
        let mut n = 0;
        while range.next_record().unwrap().is_some() {
            n += 1;
        }
        assert!(range.next_record().unwrap().is_none());
        n
    };
    assert_eq!(count(&text(""), None), keys.len());
    assert_eq!(count(&keys[10], Some(&keys[200])), 190);
    assert_eq!(count(&keys[10], Some(&keys[10])), 0);
    assert_eq!(count(&text("zzz"), None), 0);
    assert!(map.closest(&text("zzz")).unwrap().is_none());
    assert_eq!(map.closest_before(&text("zzz")).unwrap().unwrap().key, keys.last().unwrap());
    assert!(map.closest_before(&text("")).unwrap().is_none());
    let mut empty = fixture("mapfile-empty");
    assert!(empty.get(&text("a")).unwrap().is_none() && empty.closest(&text("a")).unwrap().is_none());
}

#[test]
fn arrays_by_number() {
    for name in ["arrayfile", "arrayfile-block"] {
        let mut array = fixture(name);
        let expected = fixtures().join(format!("expected/mapfiles/{name}/data.jsonl"));
        for (n, line) in std::fs::read_to_string(expected).unwrap().lines().enumerate() {
            let v: Value = serde_json::from_str(line).unwrap();
            let found = array.get_element(n as i64).unwrap().map(string);
            assert_eq!(found.as_deref(), v["value"].as_str());
        }
        assert!(array.get_element(-1).unwrap().is_none() && array.get_element(1 << 40).unwrap().is_none());
    }
    assert!(fixture("mapfile-none").get_element(0).is_err());
}

/// A filter that lies, or is cut, makes lookups miss keys that are there.
#[test]
fn verify_checks_the_bloom_filter() {
    let temp = tempfile::tempdir().unwrap();
    for file in ["data", "index", "bloom"] {
        std::fs::copy(fixtures().join("mapfiles/bloommapfile").join(file), temp.path().join(file)).unwrap();
    }
    let told = || {
        let mut told = Vec::new();
        let options = OpenOptions::default();
        verify(temp.path(), &options, None, &mut |_, _, _| None, &mut |fault| told.push(fault)).unwrap();
        told.into_iter().map(|fault| format!("{}: {}", fault.file.file_name().unwrap().display(), fault.detail))
    };
    assert_eq!(told().count(), 0);
    let bloom = temp.path().join("bloom");
    let mut bytes = std::fs::read(&bloom).unwrap();
    bytes[60..].fill(0);
    std::fs::write(&bloom, &bytes).unwrap();
    let expected = "bloom: expected every key of data, found 300 keys missing: lookups do not find them";
    assert_eq!(told().collect::<Vec<_>>(), [expected]);
    std::fs::write(&bloom, &bytes[..30]).unwrap();
    assert!(told().all(|fault| fault.starts_with("bloom: ")) && told().count() == 1);
}

#[test]
fn the_bloom_filter_knows_its_keys_and_few_others() {
    let dir = fixtures().join("mapfiles/bloommapfile");
    let filter = BloomFilter::read(&dir, &OpenOptions::default()).unwrap().unwrap();
    let mut reader = Reader::open(&data_path(&dir)).unwrap();
    let mut known = 0;
    while let Some(r) = reader.next_record().unwrap() {
        assert!(filter.may_contain(r.key));
        known += 1;
    }
    assert!(known > 50);
    let strangers = (0..1000).filter(|n| filter.may_contain(&text(&format!("stranger-{n}")))).count();
    assert!(strangers < 50, "{strangers} of 1000 strangers pass");
}

fn written(pack: Pack, keys: usize) -> (Arc<dyn Fs>, std::path::PathBuf, OpenOptions) {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let dir = Path::new("/db/part-r-00000").to_owned();
    let data = WriterOptions::new(class::TEXT, class::INT, [7; 16]).pack(pack);
    let data = WriterOptions { fs: fs.clone(), block_bytes: 3000, ..data };
    let mut writer = MapWriter::create(&dir, MapWriterOptions::new(data, [8; 16])).unwrap();
    for n in 0..keys {
        writer.append(&text(&format!("k{n:06}")), &(n as i32).to_be_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let options = OpenOptions { fs: fs.clone(), ..OpenOptions::default() };
    (fs, dir, options)
}

fn faults(dir: &Path, options: &OpenOptions) -> Vec<String> {
    let mut faults = Vec::new();
    verify(dir, options, None, &mut |_, _, _| None, &mut |f| faults.push(f.detail)).unwrap();
    faults
}

#[test]
fn written_maps_are_found_in_and_their_index_can_be_made_anew() {
    for pack in [Pack::None, Pack::Record(Codec::Lz4), Pack::Block(Codec::Default)] {
        let (fs, dir, options) = written(pack, 1000);
        assert_eq!(faults(&dir, &options), [""; 0]);
        let mut map = MapReader::open(&dir, &options).unwrap();
        assert!(map.index().len() >= 4, "{pack:?} {}", map.index().len());
        for n in [0, 1, 127, 128, 129, 500, 999] {
            assert_eq!(map.get(&text(&format!("k{n:06}"))).unwrap(), Some(&i32::to_be_bytes(n)[..]));
        }
        assert_eq!(map.get(&text("k000500x")).unwrap(), None);
        let before = fs.read(&index_path(&dir), 1 << 20).unwrap();
        fs.remove_file(&index_path(&dir)).unwrap();
        let mut bare = MapReader::open(&dir, &options).unwrap();
        assert_eq!(bare.get(&text("k000999")).unwrap(), Some(&999i32.to_be_bytes()[..]), "without an index");
        assert_eq!(faults(&dir, &options), ["the index is missing; it can be rebuilt"]);
        rebuild_index(&dir, &options, DEFAULT_INTERVAL, [8; 16]).unwrap();
        assert_eq!(fs.read(&index_path(&dir), 1 << 20).unwrap(), before, "{pack:?}");
    }
}

/// Found by fuzzing: the check failed instead of reporting it.
#[test]
fn an_index_of_an_unknown_codec_is_a_fault() {
    let (fs, dir, options) = written(Pack::Block(Codec::Default), 300);
    let mut index = fs.read(&index_path(&dir), 1 << 20).unwrap();
    let at = index.windows(12).position(|part| part == b"DefaultCodec").unwrap();
    index[at + 11] = b'_';
    fs.open(&index_path(&dir), Mode::Write).unwrap().write_at(0, &index).unwrap();
    fs.remove_file(&crate::crc::sidecar(&index_path(&dir))).unwrap();
    let faults = faults(&dir, &options);
    assert!(faults.len() == 1 && faults[0].contains("DefaultCode_ is not supported"), "{faults:?}");
}

/// Replaces the index by one with these entries.
fn lie(dir: &Path, fs: &Arc<dyn Fs>, entries: &[(&str, i64)]) {
    let options = WriterOptions { fs: fs.clone(), ..WriterOptions::new(class::TEXT, class::LONG, [9; 16]) };
    let mut writer = Writer::create(&index_path(dir), options).unwrap();
    for (key, at) in entries {
        writer.append(&text(key), &at.to_be_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_lying_index_is_an_error_or_found_out_by_verify() {
    for pack in [Pack::None, Pack::Block(Codec::Default)] {
        let (fs, dir, options) = written(pack, 1000);
        for entries in [
            &[("k000000", 1 << 40)][..],
            &[("k000000", -5)],
            &[("k000000", 3)],
            &[("k000000", 200)],
            &[("k000100", 200), ("k000050", 300)],
            &[("a", i64::MAX)],
        ] {
            lie(&dir, &fs, entries);
            assert!(!faults(&dir, &options).is_empty(), "{pack:?} {entries:?}");
            // A lookup may fail or miss; it must not panic or run forever.
            let _ = MapReader::open(&dir, &options).and_then(|mut map| Ok(map.get(&text("k000500"))?.is_some()));
        }
    }
}

#[test]
fn an_index_of_many_short_keys_takes_no_more_memory_than_it_may() {
    let (fs, dir, mut options) = written(Pack::None, 1000);
    options.limits.index_bytes = 4096;
    assert!(MapReader::open(&dir, &options).is_ok());
    lie(&dir, &fs, &[("", 85); 1000]);
    let error = MapReader::open(&dir, &options).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("index"), "{error}");
}

#[test]
fn a_cut_index_is_used_as_far_as_it_goes() {
    let (fs, dir, options) = written(Pack::None, 1000);
    lie(&dir, &fs, &[("k000000", 85), ("k000128", 0)]);
    let path = index_path(&dir);
    let len = fs.metadata(&path).unwrap().len;
    fs.open(&path, trawl_io::Mode::Write).unwrap().set_len(len - 3).unwrap();
    fs.remove_file(&crate::crc::sidecar(&path)).unwrap();
    let mut map = MapReader::open(&dir, &options).unwrap();
    assert_eq!(map.index().len(), 1);
    assert!(map.get(&text("k000999")).unwrap().is_some());
}

#[test]
fn unsorted_keys_are_refused_by_the_writer_and_listed_by_verify() {
    let (fs, dir, options) = written(Pack::None, 10);
    let data = WriterOptions { fs: fs.clone(), ..WriterOptions::new(class::TEXT, class::INT, [7; 16]) };
    let mut writer = MapWriter::create(Path::new("/x"), MapWriterOptions::new(data.clone(), [8; 16])).unwrap();
    writer.append(&text("b"), &[0; 4]).unwrap();
    writer.append(&text("b"), &[0; 4]).unwrap();
    let error = writer.append(&text("a"), &[0; 4]).unwrap_err();
    assert_eq!(error.to_string(), "/x: record 2: its key is below the one before: \\u{1}a");
    let mut writer = Writer::create(&data_path(&dir), data).unwrap();
    for key in ["b", "a", "c", "b"] {
        writer.append(&text(key), &[0; 4]).unwrap();
    }
    writer.finish().unwrap();
    let found = faults(&dir, &options);
    assert_eq!(found.iter().filter(|f| f.contains("not below the one before")).count(), 2, "{found:?}");
    assert!(rebuild_index(&dir, &options, 128, [1; 16]).unwrap_err().to_string().contains("must be sorted first"));
}

/// An index whose keys are not where it says would make lookups miss records that are there.
#[test]
fn an_index_that_leads_elsewhere_is_told() {
    for pack in [Pack::None, Pack::Record(Codec::Lz4), Pack::Block(Codec::Default)] {
        let (fs, dir, options) = written(pack, 1000);
        let mut entries = Vec::new();
        let mut reader = options.open(&index_path(&dir)).unwrap();
        while let Some(r) = reader.next_record().unwrap() {
            entries.push((r.key.to_vec(), r.value.to_vec()));
        }
        assert!(entries.len() >= 4, "{pack:?}");
        fs.remove_file(&index_path(&dir)).unwrap();
        let mut lying = Writer::create(
            &index_path(&dir),
            WriterOptions { fs: fs.clone(), ..WriterOptions::new(class::TEXT, class::LONG, [8; 16]) },
        )
        .unwrap();
        for n in 0..entries.len() - 1 {
            lying.append(&entries[n].0, &entries[n + 1].1).unwrap();
        }
        lying.finish().unwrap();
        let mut map = MapReader::open(&dir, &options).unwrap();
        let mut told = 0;
        for n in 0..1000 {
            match map.get(&text(&format!("k{n:06}"))) {
                Ok(found) => assert_eq!(found, Some(&i32::to_be_bytes(n)[..]), "{pack:?} {n}"),
                Err(error) => {
                    assert!(error.is_damage() && error.offset().is_some(), "{error}");
                    assert!(error.to_string().contains("data@") && error.to_string().contains("rebuild"), "{error}");
                    told += 1;
                }
            }
        }
        assert!(told > 500, "{pack:?}: {told}");
    }
}
