use super::*;
use crate::WarcReader;
use crate::tests_common::{captures, creation, sink};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_io::read_at::FileReader;
use trawl_io::{ReadAt, RealFs};
use trawl_model::{CaptureSink, Clock, UnixMillis};

fn wacz(dir: &Path) -> (std::path::PathBuf, Vec<u8>, WaczSummary) {
    let mut sink = sink(dir);
    for capture in captures() {
        sink.write(capture).unwrap();
    }
    let warc = dir.join(&sink.finish().unwrap().files[0].0);
    let mut creation = creation(Arc::new(RealFs), dir);
    creation.about.title = Some("a test".into());
    creation.clock = Clock::fixed(UnixMillis(1_782_262_923_000));
    let path = dir.join("a.wacz");
    let summary = write_wacz(&creation, &path, std::slice::from_ref(&warc), &mut |_| {}).unwrap();
    (path, std::fs::read(warc).unwrap(), summary)
}

fn open(path: &Path) -> Wacz {
    Wacz::open(Arc::new(FileReader::open(path).unwrap())).unwrap()
}

#[test]
fn what_is_packed_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, warc, summary) = wacz(dir.path());
    assert_eq!((summary.files, summary.captures, summary.pages), (1, 7, 5));
    let mut reader = WarcReader::builder().over(Arc::new(bytes::Bytes::from(warc.clone())));
    let mut records = 0;
    while reader.next_record().unwrap().is_some() {
        records += 1;
    }
    assert!(records > summary.captures);
    assert_eq!(summary.records, records);
    assert_eq!(summary.bytes, std::fs::metadata(&path).unwrap().len());
    let wacz = open(&path);
    let entry = wacz.warc_entries().next().unwrap();
    assert_eq!(entry.name, "archive/trawl-run7-00000.warc.gz");
    let packed = wacz.zip().stored(entry).unwrap();
    assert_eq!(packed.read_range(0..packed.len()).unwrap(), warc);
    let lines: Vec<_> = wacz.lookup(b"example,host0)/page/0?q=1 ").unwrap().map(Result::unwrap).collect();
    let line = crate::cdxj::CdxjLine::parse(&lines[0]).unwrap();
    let place = line.place().unwrap();
    let mut reader = WarcReader::builder().over_from(wacz.warc(&place.file).unwrap(), place.offset);
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.header().target_uri().unwrap(), "http://host0.example/page/0?q=1");
    assert_eq!(record.finish().unwrap().length, place.length);
    assert_eq!(wacz.lookup(b"").unwrap().count(), 7);
    assert_eq!(wacz.datapackage().unwrap()["resources"].as_array().unwrap().len(), 4);
    let mut findings = Vec::new();
    assert_eq!(wacz.verify(&mut |f| findings.push(f)).unwrap(), 5);
    assert_eq!(findings, []);
}

/// Validators refuse a package whose resources have other names: those of Heritrix and Common Crawl have capital letters.
#[test]
fn resources_have_names_that_a_data_package_accepts() {
    let dir = tempfile::tempdir().unwrap();
    let (_, warc, _) = wacz(dir.path());
    let files = ["WEB-2024 (1).warc.gz", "web-2024 (1).warc.gz", "bücher.warc.gz"].map(|name| dir.path().join(name));
    files.iter().for_each(|file| std::fs::write(file, &warc).unwrap());
    let path = dir.path().join("b.wacz");
    write_wacz(&creation(Arc::new(RealFs), dir.path()), &path, &files, &mut |_| {}).unwrap();
    let package = open(&path).datapackage().unwrap();
    let listed = package["resources"].as_array().unwrap();
    let all = |key: &str| -> Vec<_> { listed.iter().take(3).map(|one| one[key].as_str().unwrap()).collect() };
    assert_eq!(all("name"), ["web-2024--1-.warc.gz", "web-2024--1-.warc.gz-2", "b-cher.warc.gz"]);
    assert_eq!(all("path"), files.each_ref().map(|file| format!("archive/{}", file.file_name().unwrap().display())));
}

/// A package from which no archive can be read is not an empty one, and an archive beside `archive/` is one all the same.
#[test]
fn archives_that_lie_elsewhere_do_not_vanish() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = wacz(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let renamed = |from: &str, to: &str| {
        let mut bytes = bytes.clone();
        let places: Vec<_> = memchr::memmem::find_iter(&bytes, from.as_bytes()).collect();
        places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
        Wacz::open(Arc::new(bytes::Bytes::from(bytes))).unwrap()
    };
    assert_eq!(open(&path).warcs().unwrap().len(), 1);
    assert_eq!(renamed("archive/trawl", "another/trawl").warcs().unwrap().len(), 1);
    assert_eq!(renamed(".warc.gz", ".wrac.gz").warcs().unwrap().len(), 1);
    let none = renamed("archive/trawl-run7-00000.warc.gz", "another/trawl-run7-00000.wrac.gz");
    assert!(none.warcs().err().unwrap().to_string().contains("expected WARC files in a WACZ file, found none"));
}

#[test]
fn bytes_of_nothing_and_an_index_of_absent_archives_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = wacz(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let kinds = |bytes: Vec<u8>| {
        let mut found = Vec::new();
        let wacz = Wacz::open(Arc::new(bytes::Bytes::from(bytes))).unwrap();
        // A package whose datapackage.json cannot be read ends the check; what was found before counts.
        let _ = wacz.verify(&mut |f| found.push((f.kind, f.detail)));
        found
    };
    assert_eq!(kinds(bytes.clone()), []);
    // Between the last entry and the directory.
    let end = bytes.len() - 22;
    let directory = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap());
    let mut gap = bytes.clone();
    gap[end + 16..end + 20].copy_from_slice(&(directory + 5).to_le_bytes());
    gap.splice(directory as usize..directory as usize, *b"extra");
    assert_eq!(kinds(gap).iter().map(|found| found.0).collect::<Vec<_>>(), ["wacz-gap"]);
    // Behind the end, where a comment would be.
    assert_eq!(kinds([&bytes[..], b"extra"].concat())[0].0, "wacz-gap");
    let mut renamed = bytes.clone();
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, b"archive/trawl-run7-00000").collect();
    places.into_iter().for_each(|at| renamed[at + 23] = b'1');
    let found = kinds(renamed);
    let missing = |(kind, detail): &(&str, String)| *kind == "wacz-missing" && detail.contains("is in the index");
    assert!(found.iter().any(missing), "{found:?}");
}

#[test]
fn every_flipped_bit_of_a_file_is_found_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ..) = wacz(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let faults = |bytes: Vec<u8>| {
        let mut count = 0;
        let wacz = match Wacz::open(Arc::new(bytes::Bytes::from(bytes))) {
            Ok(wacz) => wacz,
            Err(_) => return 1,
        };
        let _ = wacz.lookup(b"").map(|lines| lines.take(100).count());
        wacz.verify(&mut |_| count += 1).map_or(1, |_| count)
    };
    assert_eq!(faults(bytes.clone()), 0);
    for at in (40..bytes.len()).step_by(97) {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        // A few bits (times, permissions, version numbers) say nothing that matters.
        let matters = memchr::memmem::rfind(&bytes[..at], b"PK").is_none_or(|pk| at - pk >= 46);
        assert!(faults(bad) > 0 || !matters, "bit in byte {at}");
    }
    for cut in (0..bytes.len()).step_by(61) {
        assert!(Wacz::open(Arc::new(bytes::Bytes::copy_from_slice(&bytes[..cut]))).is_err(), "cut at {cut}");
    }
}

#[test]
fn sizes_and_offsets_past_four_gigabytes_have_room() {
    let far = (5u64 << 30) + 1;
    for (size, header) in [(3, far), (far, 7), (far, far), (3, 7), (u64::from(u32::MAX), 7)] {
        let entry = zip_write::Written { name: "archive/a".into(), size, crc: 9, header, sha256: String::new() };
        let bytes = [zip_write::central_entry(&entry), b"rest".to_vec()].concat();
        let (found, rest) = zip::parse_entry(&bytes).unwrap();
        let wanted = ZipEntry { name: "archive/a".into(), method: 0, crc: 9, stored: size, size, header };
        assert_eq!((found, rest), (wanted, &b"rest"[..]));
    }
}

#[test]
fn entries_are_found_by_name_and_of_two_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.zip");
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
    let mut zip = super::zip_write::ZipWriter::create(&fs, &path).unwrap();
    for (name, bytes) in [("b", "1"), ("c", "2"), ("a", "3"), ("b", "4"), ("a/b", "5")] {
        zip.add_bytes(name, bytes.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    let wacz = open(&path);
    let read = |name: &str| wacz.zip().entry(name).map(|entry| wacz.zip().read(entry, 10).unwrap());
    for (name, bytes) in [("a", "3"), ("a/b", "5"), ("b", "1"), ("c", "2")] {
        assert_eq!(read(name).as_deref(), Some(bytes.as_bytes()), "{name}");
    }
    assert!(["", "aa", "d", "B"].iter().all(|name| read(name).is_none()));
}

/// Hashing it each time would let a small package take hours.
#[test]
fn a_file_that_is_listed_twice_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("often.wacz");
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
    let mut zip = super::zip_write::ZipWriter::create(&fs, &path).unwrap();
    zip.add_bytes("archive/a.warc", b"").unwrap();
    let package = serde_json::json!({ "resources": vec![serde_json::json!({ "path": "archive/a.warc" }); 3] });
    zip.add_bytes("datapackage.json", package.to_string().as_bytes()).unwrap();
    zip.finish().unwrap();
    let mut kinds = Vec::new();
    open(&path).verify(&mut |finding| kinds.push(finding.kind)).unwrap();
    assert_eq!(kinds.iter().filter(|kind| **kind == "wacz-listed-twice").count(), 2, "{kinds:?}");
}

/// An archive that the package lists and does not hold, or of which it holds nothing, is named: its captures are missing.
#[test]
fn archives_that_are_listed_and_not_there_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gone.wacz");
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
    let mut zip = super::zip_write::ZipWriter::create(&fs, &path).unwrap();
    zip.add_bytes("archive/a.warc", b"WARC/1.0\r\n").unwrap();
    zip.add_bytes("archive/empty.warc", b"").unwrap();
    let paths = ["archive/a.warc", "archive/x.warc.gz", "pages/pages.jsonl", "other/y.WARC.GZ"];
    let resources: Vec<_> = paths.iter().map(|path| serde_json::json!({ "path": path })).collect();
    let package = serde_json::json!({ "resources": resources }).to_string();
    zip.add_bytes("datapackage.json", package.as_bytes()).unwrap();
    zip.finish().unwrap();
    assert_eq!(open(&path).missing(), ["archive/x.warc.gz", "other/y.WARC.GZ", "archive/empty.warc"]);
}

/// A ZIP file with one deflated entry.
fn deflated(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    let data = encoder.finish().unwrap();
    let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    // From the version to the length of the name, which both headers have.
    let mut both = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
    both.extend(crc32fast::hash(bytes).to_le_bytes());
    both.extend([number(data.len()), number(bytes.len()), number(name.len())].concat());
    let local = [&b"PK\x03\x04"[..], &both[..], name.as_bytes(), &data].concat();
    let central = [&b"PK\x01\x02\x14\0"[..], &both[..], &[0u8; 14][..], name.as_bytes()].concat();
    let end =
        [b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &number(central.len())[..], &number(local.len()), &[0u8; 2][..]].concat();
    [local, central, end].concat()
}

#[test]
fn an_archive_that_was_compressed_again_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (_, warc, _) = wacz(dir.path());
    let zip = deflated("archive/a.warc.gz", &warc);
    let packed = Wacz::open(Arc::new(bytes::Bytes::from(zip))).unwrap();
    let (name, file) = packed.warcs().unwrap().remove(0);
    assert_eq!((name.as_str(), file.name(), file.len()), ("archive/a.warc.gz", Path::new(&name), warc.len() as u64));
    assert_eq!(file.read_range(0..file.len()).unwrap(), warc);
    let entry = packed.warc_entries().next().unwrap();
    assert_eq!(packed.archive(entry).unwrap().read_range(0..file.len()).unwrap(), warc);
}

/// A WACZ file may have several indexes: lines of each must lead somewhere.
#[test]
fn every_index_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        |file: &str| format!("example,h)/ 20260624010203 {{\"filename\": \"{file}\", \"offset\": 0, \"length\": 0}}\n");
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(RealFs);
    let path = dir.path().join("two.wacz");
    let mut zip = zip_write::ZipWriter::create(&fs, &path).unwrap();
    zip.add_bytes("archive/a.warc", b"").unwrap();
    zip.add_bytes("indexes/1.cdxj", line("a.warc").as_bytes()).unwrap();
    zip.add_bytes("indexes/2.cdxj", line("gone.warc").as_bytes()).unwrap();
    zip.add_bytes("datapackage.json", b"{}").unwrap();
    zip.finish().unwrap();
    let mut found = Vec::new();
    open(&path).verify(&mut |f| found.push(f.detail)).unwrap();
    assert!(found.iter().any(|detail| detail == "gone.warc is in the index but not in the file"), "{found:?}");
}

/// Who writes a ZIP file as a stream puts lengths behind the data, of 4 or 8 bytes each, with a mark or without.
#[test]
fn lengths_behind_the_data_belong_to_an_entry() {
    let data = b"abc";
    let crc = crc32fast::hash(data).to_le_bytes();
    let narrow = [3u32.to_le_bytes(); 2].concat();
    let wide = [3u64.to_le_bytes(); 2].concat();
    for lengths in [narrow, wide] {
        for mark in [&b"PK\x07\x08"[..], b""] {
            let name = b"a";
            let fixed = |sizes: [u32; 2]| {
                let mut out = [20u16, 8, 0, 0, 0].map(u16::to_le_bytes).concat();
                out.extend(if sizes[0] == 0 { [0; 4] } else { crc });
                out.extend(sizes.map(u32::to_le_bytes).concat());
                out.extend([1u16, 0].map(u16::to_le_bytes).concat());
                out
            };
            let local = [&b"PK\x03\x04"[..], &fixed([0, 0])[..], name, data, mark, &crc, &lengths].concat();
            let central = [&b"PK\x01\x02\x14\0"[..], &fixed([3, 3])[..], &[0; 14], name].concat();
            let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
            end.extend([central.len(), local.len()].map(|n| u32::try_from(n).unwrap().to_le_bytes()).concat());
            end.extend([0; 2]);
            let file = bytes::Bytes::from([local.clone(), central, end].concat());
            let zip = zip::ZipArchive::open(Arc::new(file)).unwrap();
            let (range, found) = zip.extents().unwrap().remove(0);
            assert_eq!((range, &*found), (0..local.len() as u64, "a"), "{lengths:?} {mark:?}");
        }
    }
}
