use super::*;
use crate::{Codec, Encode, Error, Limits, class};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode, ReadAt};

const MARKER: Marker = *b"\x01marker of tests";

fn packs() -> Vec<Pack> {
    let with = |codec| [Pack::Record(codec), Pack::Block(codec)];
    std::iter::once(Pack::None).chain(Codec::ALL.into_iter().flat_map(with)).collect()
}

fn options(fs: &Arc<dyn Fs>, pack: Pack) -> WriterOptions {
    let options = WriterOptions::new(class::TEXT, class::BYTES, MARKER).pack(pack);
    WriterOptions { fs: fs.clone(), escape_interval: 100, block_bytes: 200, ..options }
}

fn reading(fs: &Arc<dyn Fs>) -> OpenOptions {
    OpenOptions { fs: fs.clone(), ..OpenOptions::default() }
}

fn text(s: &str) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_text(s.as_bytes());
    out
}

/// Twenty records with values of 0 to 57 bytes.
fn records() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..20usize).map(|n| (text(&format!("key-{n:03}")), vec![n as u8; n * 3])).collect()
}

fn write(fs: &Arc<dyn Fs>, pack: Pack, records: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let path = Path::new("/f.seq");
    let mut writer = Writer::create(path, options(fs, pack)).unwrap();
    for (key, value) in records {
        writer.append(key, value).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!(written.records, records.len() as u64);
    let bytes = fs.read(path, 1 << 30).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    bytes
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn read_all(bytes: &[u8]) -> Result<Pairs, Error> {
    let file: Arc<dyn ReadAt> = Arc::new(bytes::Bytes::copy_from_slice(bytes));
    let limits = Limits { stored_bytes: 1 << 20, unpacked_bytes: 1 << 20, index_bytes: 1 << 20 };
    let mut reader = OpenOptions { limits, ..OpenOptions::default() }.over(file)?;
    let mut out = Vec::new();
    while let Some(r) = reader.next_record()? {
        out.push((r.key.to_vec(), r.value.to_vec()));
    }
    Ok(out)
}

#[test]
fn every_pack_comes_back() {
    for pack in packs() {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let bytes = write(&fs, pack, &records());
        assert_eq!(read_all(&bytes).unwrap(), records(), "{pack:?}");
        let mut reader = reading(&fs).open(Path::new("/f.seq")).unwrap();
        // Keys alone, without unpacking a value.
        let mut keys = 0;
        while reader.advance().unwrap() {
            assert_eq!(reader.key(), records()[keys].0);
            keys += 1;
        }
        assert_eq!(keys, 20);
        assert!(read_all(&write(&fs, pack, &[])).unwrap().is_empty(), "{pack:?}");
    }
}

#[test]
fn every_cut_is_an_error_or_the_records_before_it() {
    for pack in packs() {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let bytes = write(&fs, pack, &records());
        let mut whole = 0;
        for cut in 0..bytes.len() {
            if let Ok(read) = read_all(&bytes[..cut]) {
                assert_eq!(read, records()[..read.len()], "{pack:?} cut at {cut}");
                whole += 1;
            }
        }
        // Only between records, and behind an escape, can a file end without anyone noticing.
        assert!(whole <= 2 * 21 + 1, "{pack:?}: {whole} cuts went unnoticed");
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_a_value() {
    for pack in packs() {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let records: Vec<_> = records().into_iter().take(8).collect();
        let bytes = write(&fs, pack, &records);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Err(e) = read_all(&flipped) {
                let text = e.to_string();
                assert!(text.starts_with("(memory)@") || text.contains("not supported"), "{text}");
            }
        }
    }
}

#[test]
fn with_a_sidecar_every_flipped_bit_is_an_error() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let bytes = write(&fs, Pack::None, &records());
    let path = Path::new("/f.seq");
    for at in 0..bytes.len() {
        let file = fs.open(path, Mode::Write).unwrap();
        file.write_at(at as u64, &[bytes[at] ^ 0x10]).unwrap();
        let read = reading(&fs).open(path).and_then(|mut r| {
            while r.next_record()?.is_some() {}
            Ok(())
        });
        assert!(read.unwrap_err().to_string().contains("the checksum of the .crc file"));
        file.write_at(at as u64, &bytes[at..=at]).unwrap();
    }
}

/// A checked read of a damaged chunk fails however often it is tried: whoever passes over damage must come to the end, and
/// must not lose records that do not touch the chunk.
#[test]
fn with_a_sidecar_damage_is_passed_over_once() {
    for pack in [Pack::None, Pack::Record(Codec::Default), Pack::Block(Codec::Default)] {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let records: Vec<_> = (0..600usize).map(|n| (text(&format!("key-{n:04}")), vec![n as u8; 40])).collect();
        let bytes = write(&fs, pack, &records);
        let path = Path::new("/f.seq");
        let end = reading(&fs).open(path).unwrap().header().end as usize;
        for at in (end.next_multiple_of(512)..bytes.len()).step_by(331) {
            let file = fs.open(path, Mode::Write).unwrap();
            file.write_at(at as u64, &[!bytes[at]]).unwrap();
            let mut reader = reading(&fs).open(path).unwrap();
            let (mut read, mut faults) = (0, 0);
            loop {
                match reader.next_record() {
                    Ok(Some(_)) => read += 1,
                    Ok(None) => break,
                    Err(e) => {
                        assert!(e.is_damage(), "{e}");
                        faults += 1;
                        assert!(faults < 30, "{pack:?} {at}: {e}");
                        let lost = reader.resync().unwrap();
                        assert!(lost.end > lost.start, "{pack:?} {at}");
                    }
                }
            }
            // A chunk of 512 bytes, and what lies between it and the next marker, 100 bytes on.
            assert!(faults > 0 && read >= 600 - 60, "{pack:?} {at}: {read} records, {faults} faults");
            file.write_at(at as u64, &bytes[at..=at]).unwrap();
        }
    }
}

#[test]
fn lengths_are_claims() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let bytes = write(&fs, Pack::None, &records()[..1]);
    let start = bytes.len() - text("key-000").len() - 8;
    for (lengths, expected) in [
        ([i32::MAX, 8], "record claims 2147483647 bytes, limit 1048576"),
        ([1000, 8], "expected a record (1008 bytes), found 16 bytes before the end of the file"),
        ([8, 9], "expected a key within its record, found a key of 9 bytes in a record of 8"),
        ([-2, 8], "expected lengths of a record, found -2 and 8"),
        ([8, -1], "expected lengths of a record"),
        ([-1, 0], "expected a sync escape (20 bytes)"),
    ] {
        let mut bad = bytes.clone();
        bad[start..start + 4].copy_from_slice(&lengths[0].to_be_bytes());
        bad[start + 4..start + 8].copy_from_slice(&lengths[1].to_be_bytes());
        let error = read_all(&bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("(memory)@{start}: ")) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_block_cannot_claim_more_than_it_has() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let bytes = write(&fs, Pack::Block(Codec::Default), &records()[..3]);
    let header = Header::decode(&bytes).unwrap().end as usize;
    let count = header + 20;
    assert_eq!(bytes[count], 3);
    for (at, value, expected) in [
        (count, 0u8, "a block with records"),
        (count, 100, "100 key lengths"),
        (count, 2, "key lengths for 2 records, found 1 bytes more"),
        (count, 4, "4 key lengths"),
        (count, 0xff, "a block with records"),
        (count + 1, 0xff, "a length of key lengths"),
        (count + 1, 100, "100 bytes of key lengths"),
        (header, 0, "a sync escape (-1)"),
        (header + 5, 0xaa, "the sync marker of the header"),
    ] {
        let mut bad = bytes.clone();
        bad[at] = value;
        let error = read_all(&bad).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // A stored length of 2^31 and more.
    let mut bad = bytes[..=count].to_vec();
    bad.put_vlong(1 << 31);
    bad.extend([0; 100]);
    assert!(read_all(&bad).unwrap_err().to_string().contains("key lengths claims 2147483648 bytes, limit 1048576"));
}

#[test]
fn a_zlib_bomb_stops_at_the_limit() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let bomb = vec![(text("k"), vec![0; 20 << 20])];
    for pack in [Pack::Record(Codec::Default), Pack::Block(Codec::Default), Pack::Block(Codec::Zstd)] {
        let bytes = write(&fs, pack, &bomb);
        assert!(bytes.len() < 1 << 20);
        let error = read_all(&bytes).unwrap_err().to_string();
        assert!(error.contains("more than the limit of 1048576 bytes"), "{error}");
    }
}

#[test]
fn damage_loses_records_up_to_the_next_marker_only() {
    for pack in [Pack::None, Pack::Block(Codec::Default)] {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let bytes = write(&fs, pack, &records());
        let mut reader = reading(&fs).open(Path::new("/f.seq")).unwrap();
        let mut starts = Vec::new();
        while let Some(r) = reader.next_record().unwrap() {
            starts.push(r.at.offset as usize);
        }
        let first = reader.find_marker(0).unwrap().unwrap();
        let second = reader.find_marker(first + 1).unwrap().unwrap() as usize;
        let lost_from = starts.iter().position(|at| *at > 200).unwrap();
        // Garbage where a record's lengths, or a block's, would be.
        let mut bad = bytes.clone();
        let at = starts[lost_from] + if pack == Pack::None { 0 } else { 20 };
        bad[at..at + 6].fill(0xee);
        let file: Arc<dyn ReadAt> = Arc::new(bytes::Bytes::from(bad));
        let mut reader = OpenOptions::default().over(file).unwrap();
        let mut read = 0;
        let mut gaps = Vec::new();
        loop {
            match reader.next_record() {
                Ok(Some(_)) => read += 1,
                Ok(None) => break,
                Err(e) => {
                    assert!(e.is_damage(), "{e}");
                    assert_eq!(reader.next_record().unwrap_err().to_string(), e.to_string(), "it stays where it is");
                    gaps.push(reader.resync().unwrap());
                }
            }
        }
        let behind = starts.iter().filter(|at| **at as u64 >= gaps[0].end).count();
        assert_eq!(gaps.len(), 1, "{pack:?} {gaps:?}");
        assert_eq!(read, lost_from + behind, "{pack:?} {gaps:?}");
        assert!(behind > 0 && second > 0);
    }
}

#[test]
fn a_damaged_value_costs_its_record_only() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let mut bytes = write(&fs, Pack::Record(Codec::Gzip), &records());
    let value = bytes.windows(3).rposition(|w| w == [0x1f, 0x8b, 8]).unwrap();
    bytes[value] = 0;
    let file: Arc<dyn ReadAt> = Arc::new(bytes::Bytes::from(bytes));
    let mut reader = OpenOptions::default().over(file).unwrap();
    let mut bad = Vec::new();
    for n in 0..20 {
        if reader.next_record().is_err() {
            bad.push(n);
            let lost = reader.resync().unwrap();
            assert!((lost.start..lost.end).contains(&(value as u64)));
        }
    }
    assert_eq!(bad, [19]);
    assert!(reader.next_record().unwrap().is_none());
}

#[test]
fn a_page_that_contains_the_marker_starts_no_record() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let mut value = vec![b'x'; 300];
    value.extend(MARKER);
    value.extend(vec![b'y'; 300]);
    let records: Vec<_> = (0..5).map(|n| (text(&format!("k{n}")), value.clone())).collect();
    let bytes = write(&fs, Pack::None, &records);
    let mut seen = 0;
    for start in (0..bytes.len() as u64).step_by(100) {
        let mut reader = reading(&fs).open(Path::new("/f.seq")).unwrap();
        reader.split(Span { start, end: start + 100 }).unwrap();
        while reader.next_record().unwrap().is_some() {
            seen += 1;
        }
    }
    assert_eq!(seen, 5);
}

#[test]
fn verify_lists_every_fault() {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    let mut unsorted = records();
    unsorted.swap(2, 3);
    let bytes = write(&fs, Pack::None, &unsorted);
    let path = Path::new("/f.seq");
    let check = |fs: &Arc<dyn Fs>| {
        let mut faults = Vec::new();
        let order = crate::order::Order::of_class(class::TEXT);
        let n = verify(path, &reading(fs), order, &mut |_, _, _| None, &mut |f| faults.push(f)).unwrap();
        (n, faults)
    };
    let (n, faults) = check(&fs);
    assert_eq!((n, faults.len()), (20, 1), "{faults:?}");
    assert!(faults[0].detail.contains("a key not below the one before"));
    // Two places of damage in one file, each in a chunk of its own.
    let file = fs.open(path, Mode::Write).unwrap();
    file.write_at(400, &[0xee; 8]).unwrap();
    file.write_at(bytes.len() as u64 - 5, &[0xee]).unwrap();
    let (n, faults) = check(&fs);
    let details: Vec<_> = faults.iter().map(|f| (f.offset, f.detail.as_str())).collect();
    assert!(n > 10, "{n} {details:?}");
    assert_eq!(faults.iter().filter(|f| f.detail.contains(".crc file")).count(), 2, "{details:?}");
    assert!(faults.iter().any(|f| f.detail.contains("bytes of records are lost")), "{details:?}");
}

#[test]
fn sorts_more_than_memory_and_keeps_equal_keys_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let marker = MARKER;
    let input = dir.path().join("in.seq");
    let mut writer = Writer::create(&input, WriterOptions::new(class::LONG, class::BYTES, marker)).unwrap();
    for n in 0..50_000i64 {
        let key = (n * 7919) % 1009 - 500;
        writer.append(&key.to_be_bytes(), &n.to_be_bytes().repeat(20)).unwrap();
    }
    writer.finish().unwrap();
    let output = dir.path().join("out.seq");
    let settings = SortSettings { memory_bytes: 2 << 20, temp_dir: dir.path().into(), threads: 1 };
    let target = WriterOptions::new(class::LONG, class::BYTES, marker).pack(Pack::Block(Codec::Default));
    let written = sort(&[input], &OpenOptions::default(), &output, target, None, &settings).unwrap();
    assert_eq!(written.records, 50_000);
    let mut reader = Reader::open(&output).unwrap();
    let mut last = (i64::MIN, i64::MIN);
    while let Some(r) = reader.next_record().unwrap() {
        let key = i64::from_be_bytes(r.key.try_into().unwrap());
        let n = i64::from_be_bytes(r.value[..8].try_into().unwrap());
        assert!((key, n) > last);
        last = (key, n);
    }
}

#[test]
fn nothing_appears_before_finish() {
    let disk = FaultFs::new();
    let fs: Arc<dyn Fs> = disk.shared();
    let mut writer = Writer::create(Path::new("/f.seq"), options(&fs, Pack::None)).unwrap();
    writer.append(b"\x01k", b"v").unwrap();
    drop(writer);
    assert_eq!(fs.list(Path::new("/")).unwrap(), []);
    assert!(Writer::create(Path::new("/f.seq"), WriterOptions { version: 5, ..options(&fs, Pack::None) }).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn round_trip(
        records in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..200)),
            0..60,
        ),
        pack in 0..15usize,
        interval in 1..500u64,
        split in 50..2000u64,
    ) {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let path = Path::new("/f.seq");
        let options = WriterOptions { escape_interval: interval, ..options(&fs, packs()[pack]) };
        let mut writer = Writer::create(path, options).unwrap();
        for (n, (key, value)) in records.iter().enumerate() {
            if n % 7 == 3 {
                writer.sync_point().unwrap();
            }
            writer.append(key, value).unwrap();
        }
        let len = writer.finish().unwrap().bytes;
        let mut read = Vec::new();
        for start in (0..len).step_by(usize::try_from(split).unwrap()) {
            let mut reader = reading(&fs).open(path).unwrap();
            reader.split(Span { start, end: start + split }).unwrap();
            while let Some(r) = reader.next_record().unwrap() {
                read.push((r.key.to_vec(), r.value.to_vec()));
            }
        }
        prop_assert_eq!(read, records);
    }
}
