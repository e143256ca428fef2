//! Sorting against the standard library, in memory and through files.

use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, Mutex};
use trawl_io::Mode;
use trawl_io::fault::FaultFs;
use trawl_sort::{Builder, Compression, Error, Phase, Section, SectionWriter, Sorter};

type Pair = (Vec<u8>, Vec<u8>);

const SMALL: usize = 2 << 20;

fn on(disk: &FaultFs) -> Builder {
    Sorter::builder("/").fs(disk.shared()).memory_bytes(SMALL)
}

fn sorted_by(builder: Builder, pairs: &[Pair]) -> Vec<Pair> {
    let mut sorter = builder.build().unwrap();
    for (key, value) in pairs {
        sorter.push(key, value).unwrap();
    }
    let mut sorted = sorter.finish().unwrap();
    let mut out: Vec<Pair> = Vec::new();
    while let Some(record) = sorted.next_record().unwrap() {
        let before = out.last().map(|p| p.0.as_slice()).unwrap_or_default();
        let shared = before.iter().zip(record.key).take_while(|(a, b)| a == b).count();
        assert_eq!(record.shared, shared, "shared bytes are exact");
        out.push((record.key.to_vec(), record.value.to_vec()));
    }
    assert!(sorted.next_record().unwrap().is_none(), "the end stays the end");
    assert_eq!(sorted.stats().records, pairs.len() as u64);
    out
}

/// A small deterministic generator.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// URL-like keys with many equal ones, and the order of pushing as value.
fn urls(n: u32) -> Vec<Pair> {
    let mut dice = Dice(42);
    (0..n)
        .map(|i| {
            let (host, page) = (dice.next() % 500, dice.next() % 200);
            let deep = "/section".repeat((dice.next() % 6) as usize);
            (format!("https://www.example{host}.com{deep}/{page}").into_bytes(), i.to_be_bytes().to_vec())
        })
        .collect()
}

fn expect(pairs: &[Pair]) -> Vec<Pair> {
    let mut expected = pairs.to_vec();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    expected
}

#[test]
fn nothing_and_little() {
    let disk = FaultFs::new();
    assert!(sorted_by(on(&disk), &[]).is_empty());
    let one = [(b"k".to_vec(), b"v".to_vec())];
    assert_eq!(sorted_by(on(&disk), &one), one);
    let empty_key = [(b"a".to_vec(), vec![]), (vec![], b"1".to_vec()), (vec![], b"2".to_vec())];
    assert_eq!(sorted_by(on(&disk), &empty_key), expect(&empty_key));
    assert_eq!(disk.counts().ops, 0, "what fits in memory never touches the disk");
}

#[test]
fn what_fits_in_memory_stays_there() {
    let disk = FaultFs::new();
    let pairs = urls(8_000);
    assert!(sorted_by(on(&disk), &pairs) == expect(&pairs));
    assert_eq!(disk.counts().ops, 0);
}

#[test]
fn many_runs_are_merged_stably() {
    let pairs = urls(150_000);
    let expected = expect(&pairs);
    for compression in [Compression::None, Compression::Zstd(1), Compression::Zstd(-5)] {
        for threads in [1, 2, 3] {
            let disk = FaultFs::new();
            let builder = on(&disk).compression(compression).threads(threads);
            assert!(sorted_by(builder, &pairs) == expected, "{compression:?}, {threads} threads");
            assert!(disk.counts().writes > 10);
            assert!(disk.files().is_empty(), "temporary files are gone");
        }
    }
}

#[test]
fn several_passes_when_runs_are_many() {
    let pairs = urls(150_000);
    let expected = expect(&pairs);
    for fan_in in [2, 3, 7] {
        let disk = FaultFs::new();
        let builder = on(&disk).max_fan_in(fan_in);
        let mut sorter = builder.build().unwrap();
        pairs.iter().for_each(|(k, v)| sorter.push(k, v).unwrap());
        let mut sorted = sorter.finish().unwrap();
        let stats = sorted.stats();
        assert!(stats.runs > 10, "{stats:?}");
        let mut n = 0;
        while let Some(r) = sorted.next_record().unwrap() {
            assert!((r.key, r.value) == (&expected[n].0[..], &expected[n].1[..]), "fan-in {fan_in}, record {n}");
            n += 1;
        }
        assert_eq!(n, expected.len());
    }
}

#[test]
fn hard_keys() {
    // Zeros at the end, prefixes of each other, equal beyond any cached bytes, and large.
    let mut pairs = Vec::new();
    for i in 0..9000u32 {
        let n = (i * 7919 % 97) as usize;
        let value = i.to_be_bytes().to_vec();
        pairs.push((vec![0; n % 40], value.clone()));
        pairs.push(([vec![b'a'; 8 * (n % 5)], vec![0; n % 10]].concat(), value.clone()));
        pairs.push(([vec![b'x'; 300], vec![(n % 3) as u8; n % 4]].concat(), value.clone()));
        pairs.push((vec![255; n], value));
    }
    pairs.push((vec![b'x'; 100_000], vec![1; 20_000]));
    pairs.push((vec![b'x'; 100_001], vec![]));
    let disk = FaultFs::new();
    assert!(sorted_by(on(&disk), &pairs) == expect(&pairs));
    assert!(disk.counts().ops > 0);
}

#[test]
fn a_record_too_large_is_refused_and_harmless() {
    let disk = FaultFs::new();
    let mut sorter = on(&disk).build().unwrap();
    let limit = sorter.max_record_bytes();
    assert_eq!(limit, SMALL / 16);
    sorter.push(&vec![1; limit - 1], &[2]).unwrap();
    let err = sorter.push(&vec![1; limit], &[2]).unwrap_err();
    assert!(matches!(err, Error::RecordTooLarge { .. }));
    assert_eq!(
        err.to_string(),
        format!("sort: record of {} bytes, limit {limit} (a sixteenth of the memory budget)", limit + 1)
    );
    sorter.push(b"", b"").unwrap();
    assert_eq!(sorter.finish().unwrap().stats().records, 2);
    assert!(matches!(on(&disk).memory_bytes(1000).build(), Err(Error::BudgetTooSmall { .. })));
}

#[test]
fn large_records_only() {
    // Each nearly as large as allowed: the fan-in shrinks to what the budget holds.
    let disk = FaultFs::new();
    let limit = on(&disk).build().unwrap().max_record_bytes();
    let mut dice = Dice(7);
    let pairs: Vec<Pair> = (0..100)
        .map(|i| {
            let len = limit / 2 + (dice.next() as usize) % (limit / 2);
            let mut key: Vec<u8> = (0..len / 2).map(|_| dice.next() as u8).collect();
            key[0] = 7;
            (key, vec![i; len - len / 2])
        })
        .collect();
    assert!(sorted_by(on(&disk), &pairs) == expect(&pairs));
}

#[test]
fn progress_is_reported() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pairs = urls(300_000);
    let disk = FaultFs::new();
    let log = seen.clone();
    sorted_by(on(&disk).on_progress(move |p| log.lock().unwrap().push(p)), &pairs);
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|p| p.phase == Phase::Pushing && p.records > 10_000 && p.runs > 0 && p.spilled_bytes > 0));
    assert!(seen.iter().any(|p| p.phase == Phase::Reading && p.records == 1 << 18 && p.total == Some(300_000)));
}

#[test]
fn for_each_passes_the_callers_error_on() {
    let disk = FaultFs::new();
    let mut sorter = on(&disk).build().unwrap();
    sorter.push(b"b", b"").unwrap();
    sorter.push(b"a", b"").unwrap();
    let mut keys = Vec::new();
    let result: Result<(), Box<dyn std::error::Error>> = sorter.finish().unwrap().for_each(|r| {
        keys.push(r.key.to_vec());
        Err("enough".into())
    });
    assert_eq!(result.unwrap_err().to_string(), "enough");
    assert_eq!(keys, [b"a"]);
}

#[test]
fn real_files_work_too() {
    let dir = tempfile::tempdir().unwrap();
    let pairs = urls(100_000);
    let builder = Sorter::builder(dir.path()).memory_bytes(SMALL);
    assert!(sorted_by(builder, &pairs) == expect(&pairs));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(Path::new(dir.path()).exists());
}

/// Reads parts on threads of their own and puts them together.
fn sorted_in_parts(builder: Builder, pairs: &[Pair], parts: usize) -> Vec<Vec<Pair>> {
    let mut sorter = builder.build().unwrap();
    pairs.iter().for_each(|(k, v)| sorter.push(k, v).unwrap());
    let read = |mut part: trawl_sort::Sorted| {
        let mut out: Vec<Pair> = Vec::new();
        while let Some(r) = part.next_record().unwrap() {
            let before = out.last().map(|p| p.0.as_slice()).unwrap_or_default();
            assert_eq!(r.shared, before.iter().zip(r.key).take_while(|(a, b)| a == b).count());
            out.push((r.key.to_vec(), r.value.to_vec()));
        }
        out
    };
    let parts = sorter.finish_parts(parts).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || read(part))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn parts_are_disjoint_and_even() {
    for n in [0, 1, 8_000, 150_000] {
        let pairs = urls(n);
        let expected = expect(&pairs);
        for wanted in [1, 2, 3, 8] {
            let disk = FaultFs::new();
            let parts = sorted_in_parts(on(&disk), &pairs, wanted);
            assert!((1..=wanted).contains(&parts.len()));
            for (part, next) in parts.iter().zip(parts.iter().skip(1)) {
                assert!(part.last().unwrap().0 < next[0].0, "equal keys are in one part");
            }
            if n > 1000 {
                assert!(parts.len() >= wanted.min(3), "{} parts of {wanted}", parts.len());
                let share = expected.len() / parts.len();
                for part in &parts {
                    assert!((share / 2..share * 2).contains(&part.len()), "{} of {share}", part.len());
                }
            }
            assert!(parts.concat() == expected, "{n} records in {wanted} parts");
            assert!(disk.files().is_empty());
        }
    }
}

#[test]
fn parts_of_one_key_are_one_part() {
    let disk = FaultFs::new();
    let pairs: Vec<Pair> = (0..60_000u32).map(|i| (b"same".to_vec(), i.to_be_bytes().repeat(10))).collect();
    let parts = sorted_in_parts(on(&disk), &pairs, 4);
    assert!(parts.concat() == pairs);
    assert_eq!(parts.iter().filter(|p| !p.is_empty()).count(), 1);
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0u8..3, 0..30),
        prop::collection::vec(any::<u8>(), 0..12),
        (0usize..20, 0u8..3).prop_map(|(n, b)| [vec![b'p'; 24], vec![b; n]].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn equals_a_stable_sort(
        keys in prop::collection::vec(key(), 0..600),
        repeat in 1usize..60,
        fan_in in 2usize..9,
        threads in 1usize..4,
    ) {
        // Repeated so that small cases stay in memory and large ones spill.
        let pairs: Vec<Pair> = (0..repeat)
            .flat_map(|_| keys.iter())
            .enumerate()
            .map(|(i, k)| (k.clone(), i.to_le_bytes().repeat(1 + i % 20)))
            .collect();
        let disk = FaultFs::new();
        prop_assert!(sorted_by(on(&disk).max_fan_in(fan_in).threads(threads), &pairs) == expect(&pairs));
        prop_assert!(sorted_in_parts(on(&disk).max_fan_in(fan_in), &pairs, threads).concat() == expect(&pairs));
        prop_assert!(disk.files().is_empty());
    }
}

/// Writes pairs, sorted, as one section for each first letter of the key, and gives the bytes and sections.
fn sections_of(pairs: &[Pair], cut: usize) -> (Vec<u8>, Vec<Section>) {
    let mut writer = SectionWriter::new(Vec::new(), "run", Compression::Zstd(1)).unwrap();
    let (mut sections, mut before) = (Vec::new(), &[][..]);
    for (n, (key, value)) in pairs.iter().enumerate() {
        let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
        writer.push(key, value, shared).unwrap();
        before = key;
        if (n + 1) % cut == 0 {
            sections.push(writer.end_section().unwrap());
        }
    }
    sections.push(writer.end_section().unwrap());
    (writer.into_inner(), sections)
}

#[test]
fn sections_of_many_files_are_merged_within_any_budget() {
    let mut all = urls(40_000);
    // One record larger than a block.
    all.push((vec![b'x'; 90_000], b"large".to_vec()));
    let expected = {
        let mut expected = all.clone();
        expected.sort();
        expected
    };
    for (files, cut, memory) in [(1, 100_000, 2 << 20), (3, 5_000, 8 << 20), (40, 100, 2 << 20)] {
        let disk = FaultFs::new();
        let mut sections = Vec::new();
        for (n, part) in all.chunks(all.len().div_ceil(files)).enumerate() {
            let mut part = part.to_vec();
            part.sort();
            let (bytes, of_file) = sections_of(&part, cut);
            assert_eq!(of_file.iter().map(|s| s.len).sum::<u64>(), bytes.len() as u64);
            let file = disk.shared().open(Path::new(&format!("/f{n}")), Mode::Truncate).unwrap();
            file.write_at(0, &bytes).unwrap();
            let file: Arc<dyn trawl_io::File> = Arc::from(file);
            // Neighbours in order may be taken as one.
            let joined = of_file.iter().copied().reduce(|a, b| a.join(b).unwrap()).unwrap();
            if n % 2 == 0 {
                sections.push((file, joined));
            } else {
                sections.extend(of_file.into_iter().map(|section| (file.clone(), section)));
            }
        }
        let mut merged = on(&disk).memory_bytes(memory).merge(sections).unwrap();
        let mut out: Vec<Pair> = Vec::new();
        while let Some(record) = merged.next_record().unwrap() {
            out.push((record.key.to_vec(), record.value.to_vec()));
        }
        // Equal keys come in the order of their sections, which is not that of their values.
        out.sort();
        assert_eq!(merged.stats().records, all.len() as u64);
        assert!(out == expected, "{files} files, sections of {cut}, {memory} bytes");
    }
}

#[test]
fn a_section_that_claims_too_much_is_refused() {
    let disk = FaultFs::new();
    let file: Arc<dyn trawl_io::File> = Arc::from(disk.shared().open(Path::new("/f"), Mode::Truncate).unwrap());
    for section in [
        Section { start: 0, len: 10, records: 1, block: 1 << 40, key: 1 },
        Section { start: 0, len: 10, records: 1, block: 100, key: 1 << 40 },
        Section { start: 9, len: u64::MAX, records: 1, block: 100, key: 1 },
    ] {
        assert!(matches!(on(&disk).merge(vec![(file.clone(), section)]), Err(Error::Io(_))));
    }
    assert!(on(&disk).merge(Vec::new()).unwrap().next_record().unwrap().is_none());
}
