use super::*;
use crate::findings::Findings;
use crate::{Clock, CreateKvseq, Kvseq, h64, silent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;

fn settings(fs: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 6 << 20, ..Settings::new(clock, "test").on(fs.shared()) }
}

fn kv_path() -> PathBuf {
    "/m.kvseq".into()
}

fn path() -> PathBuf {
    "/m.hindex".into()
}

fn kvseq(fs: &FaultFs) -> Kvseq {
    CreateKvseq { sbsize: 256, fileincr: 0, ..Default::default() }.create(&kv_path(), &settings(fs)).unwrap()
}

fn table(fs: &FaultFs, htsize: u64, cellsz: u64) -> Hindex {
    CreateHindex { sbsize: 256, htsize, cellsz, ..Default::default() }.create(&path(), &settings(fs)).unwrap()
}

fn findings(fs: &FaultFs, kv: &Kvseq) -> Findings {
    let mut findings = Findings::new();
    verify(&path(), kv, &settings(fs), &mut findings, &silent).unwrap();
    findings
}

fn put_bytes(fs: &FaultFs, bytes: &[u8]) {
    let file = fs.open(&path(), Mode::Truncate).unwrap();
    file.write_at(0, bytes).unwrap();
}

#[test]
fn the_last_free_cell_is_kept() {
    for cellsz in [1, 2] {
        let fs = FaultFs::new();
        let (mut kv, mut index) = (kvseq(&fs), table(&fs, 4, cellsz));
        for n in 0..3u8 {
            let ptr = kv.add(&[n], b"").unwrap();
            index.insert(&kv, &[n], ptr).unwrap();
        }
        let ptr = kv.add(b"x", b"").unwrap();
        assert!(matches!(index.insert(&kv, b"x", ptr), Err(Error::TableFull { htsize: 4, .. })));
        assert!(matches!(index.insert(&kv, &[1], ptr), Err(Error::KeyExists { .. })));
        // A deleted cell on a key's path can be used again.
        assert!(index.remove(&kv, &[2]).unwrap().is_some());
        assert_eq!(index.remove(&kv, &[2]).unwrap(), None);
        assert_eq!((index.used_cells(), index.keys()), (3, 2));
        kv.delete(kv.first() + 2 * 11).unwrap();
        kv.delete(ptr).unwrap();
        let ptr = kv.add(&[2], b"again").unwrap();
        index.insert(&kv, &[2], ptr).unwrap();
        assert_eq!((index.used_cells(), index.keys()), (3, 3));
        assert_eq!(index.find(&kv, &[2]).unwrap(), Some(ptr));
        assert_eq!(index.find(&kv, b"x").unwrap(), None);
        kv.flush().unwrap();
        index.close().unwrap();
        assert!(findings(&fs, &kv).is_sound());
    }
}

#[test]
fn an_index_in_use_is_refused_until_rebuilt() {
    let fs = FaultFs::new();
    let (mut kv, mut index) = (kvseq(&fs), table(&fs, 11, 2));
    let ptr = kv.add(b"a", b"").unwrap();
    kv.checkpoint().unwrap();
    index.insert(&kv, b"a", ptr).unwrap();
    index.flush().unwrap();
    // Its writer lives: a reader may use it.
    assert_eq!(Hindex::open(&path(), Access::Read, &settings(&fs)).unwrap().find(&kv, b"a").unwrap(), Some(ptr));
    drop(index);
    for access in [Access::Read, Access::Write] {
        let refused = Hindex::open(&path(), access, &settings(&fs)).unwrap_err();
        assert!(matches!(refused, Error::NeedsCheck { .. }), "{refused}");
    }
    assert_eq!(findings(&fs, &kv).faults(), 1);
    let done = rebuild(&path(), &kv, None, None, &settings(&fs), &silent).unwrap();
    assert_eq!(done, Rebuilt { keys: 1, superseded: 0, htsize: 11 });
    assert!(findings(&fs, &kv).is_sound());
}

#[test]
fn a_rebuild_keeps_the_last_of_equal_keys() {
    let fs = FaultFs::new();
    let mut kv = kvseq(&fs);
    let mut last = BTreeMap::new();
    for n in 0..2000u32 {
        let key = (n % 700).to_be_bytes();
        last.insert(key.to_vec(), kv.add(&key, &n.to_be_bytes()).unwrap());
    }
    for (htsize, cellsz) in [(701, 1), (701, 2), (5000, 1), (5000, 2)] {
        let done = rebuild(&path(), &kv, Some(htsize), Some(cellsz), &settings(&fs), &silent).unwrap();
        assert_eq!(done, Rebuilt { keys: 700, superseded: 1300, htsize });
        let index = Hindex::open(&path(), Access::Read, &settings(&fs)).unwrap();
        for (key, ptr) in &last {
            assert_eq!(index.find(&kv, key).unwrap(), Some(*ptr));
        }
        assert_eq!(index.find(&kv, b"nobody").unwrap(), None);
        let found = findings(&fs, &kv);
        assert_eq!((found.faults(), found.warnings()), (0, 1), "{:?}", found.list());
    }
    let full = rebuild(&path(), &kv, Some(700), None, &settings(&fs), &silent).unwrap_err();
    assert!(matches!(full, Error::TableFull { .. }), "{full}");
    assert!(!fs.files().keys().any(|p| p.to_string_lossy().contains(".tmp-")), "{:?}", fs.files().keys());
}

/// Entries whose homes are all the last cells, so that the table wraps around.
#[test]
fn a_table_wraps_around() {
    let fs = FaultFs::new();
    let mut kv = kvseq(&fs);
    let mut found = 0;
    for n in 0u32.. {
        if h64(&n.to_be_bytes()) % 31 >= 29 {
            kv.add(&n.to_be_bytes(), b"").unwrap();
            found += 1;
            if found == 20 {
                break;
            }
        }
    }
    for cellsz in [1, 2] {
        rebuild(&path(), &kv, Some(31), Some(cellsz), &settings(&fs), &silent).unwrap();
        assert!(findings(&fs, &kv).is_sound(), "{:?}", findings(&fs, &kv).list());
        let mut index = Hindex::open(&path(), Access::Write, &settings(&fs)).unwrap();
        index.resize(100, cellsz, &kv).unwrap();
        index.resize(31, 3 - cellsz, &kv).unwrap();
        assert_eq!((index.keys(), index.cellsz()), (20, 3 - cellsz));
        index.close().unwrap();
        assert!(findings(&fs, &kv).is_sound(), "{:?}", findings(&fs, &kv).list());
    }
}

#[test]
fn small_memory_gives_the_same_table() {
    let tables = [16 * 4096, 1 << 30].map(|memory| {
        let fs = FaultFs::new();
        let settings = Settings { index_memory_bytes: memory, ..settings(&fs) };
        let mut kv = kvseq(&fs);
        let create = CreateHindex { sbsize: 256, htsize: 20_001, cellsz: 2, ..Default::default() };
        let mut index = create.create(&path(), &settings).unwrap();
        for n in 0..6000u32 {
            let ptr = kv.add(&n.to_be_bytes(), b"").unwrap();
            index.insert(&kv, &n.to_be_bytes(), ptr).unwrap();
            if n % 3 == 0 {
                index.remove(&kv, &(n / 2).to_be_bytes()).unwrap();
            }
        }
        index.close().unwrap();
        fs.files()[&path()].clone()
    });
    assert!(tables[0] == tables[1]);
}

#[test]
fn every_fault_is_found() {
    let fs = FaultFs::new();
    let (mut kv, mut index) = (kvseq(&fs), table(&fs, 31, 2));
    for n in 0..20u8 {
        let ptr = kv.add(&[n], b"value").unwrap();
        index.insert(&kv, &[n], ptr).unwrap();
    }
    index.remove(&kv, &[7]).unwrap();
    kv.delete(kv.first() + 7 * 16).unwrap();
    kv.checkpoint().unwrap();
    index.close().unwrap();
    let good = fs.files()[&path()].clone();
    assert!(findings(&fs, &kv).is_sound());
    let cell = |n: usize| 256 + 16 * n..256 + 16 * n + 16;
    let used: Vec<usize> = (0..31).filter(|n| good[cell(*n)][0] == 0 && good[cell(*n)][7] != 0).collect();
    let free = (0..31).find(|n| good[cell(*n)] == [0; 16]).unwrap();
    let broken = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        put_bytes(&fs, &bytes);
        findings(&fs, &kv).list().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let one = used[3];
    let expect = |text: String, word: &str| assert!(text.contains(word), "{word}: {text}");
    expect(broken(&|b| b[cell(one).start + 7] ^= 1), "the start of an entry");
    expect(broken(&|b| b[cell(one).start] = 0x40), "a pointer to an entry");
    expect(broken(&|b| b[cell(one).end - 1] ^= 1), "expected hash");
    expect(broken(&|b| b[cell(free).end - 1] = 1), "no hash in a cell without a key");
    expect(broken(&|b| b[cell(one)].fill(0)), "number of cells");
    let deleted = (kv.first() + 7 * 16).to_be_bytes();
    expect(broken(&|b| b[cell(one).start..cell(one).start + 8].copy_from_slice(&deleted)), "not deleted");
    let copy = good[cell(one)].to_vec();
    expect(broken(&|b| b[cell(free)].copy_from_slice(&copy)), "one cell for an entry");
    // A key moved past a free cell is not found by a search.
    let far = (0..31).rev().find(|n| good[cell(*n)] == [0; 16] && *n != free).unwrap();
    let moved = broken(&|b| {
        let lone = used.iter().find(|n| h64_of(&kv, &good[cell(**n)]) % 31 == **n as u64).unwrap();
        let bytes = b[cell(*lone)].to_vec();
        b[cell(*lone)].fill(0);
        b[cell(far)].copy_from_slice(&bytes);
    });
    expect(moved, "no free cell after the home");
    let all_deleted = broken(&|b| b[256..].chunks_mut(16).for_each(|c| c[..8].fill(0xff)));
    expect(all_deleted, "expected a free cell");
}

fn h64_of(kv: &Kvseq, cell: &[u8]) -> u64 {
    h64(&kv.key(u64::from_be_bytes(*cell.first_chunk().unwrap())).unwrap())
}

#[test]
fn hostile_tables_end_quickly() {
    let fs = FaultFs::new();
    let mut kv = kvseq(&fs);
    kv.add(b"a", b"").unwrap();
    table(&fs, 5, 2).close().unwrap();
    let good = fs.files()[&path()].clone();
    let at = good.windows(8).position(|w| w == b"HTSIZE\0\0").unwrap() + 8;
    for htsize in [0, 1, 6, 1u64 << 58, 1 << 60, (1 << 63) - 1, 1 << 63, u64::MAX] {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&htsize.to_be_bytes());
        put_bytes(&fs, &bytes);
        let error = Hindex::open(&path(), Access::Read, &settings(&fs)).unwrap_err();
        assert!(matches!(error, Error::BadSuperblock { .. }), "{htsize}: {error}");
    }
    // All cells deleted, and all cells pointing to one entry: a search ends after HTSIZE steps.
    for fill in [[0xff; 8], 256u64.to_be_bytes()] {
        let mut bytes = good.clone();
        for cell in bytes[256..].chunks_mut(16) {
            cell[..8].copy_from_slice(&fill);
            cell[8..].copy_from_slice(&h64(b"b").to_be_bytes());
        }
        put_bytes(&fs, &bytes);
        let mut index = Hindex::open(&path(), Access::Write, &settings(&fs)).unwrap();
        assert_eq!(index.find(&kv, b"b").unwrap(), None);
        let inserted = index.insert(&kv, b"b", 256);
        assert_eq!(inserted.is_err(), fill[0] == 0, "deleted cells can be used: {inserted:?}");
    }
}

#[test]
fn cut_and_flip_of_a_small_table() {
    let base = FaultFs::new();
    let (mut kv, mut index) = (kvseq(&base), table(&base, 5, 2));
    for key in [&b"apple"[..], b"pear", b"fig"] {
        let ptr = kv.add(key, b"").unwrap();
        index.insert(&kv, key, ptr).unwrap();
    }
    kv.flush().unwrap();
    index.close().unwrap();
    let good = base.files()[&path()].clone();
    let touch = |bytes: &[u8]| {
        let fs = FaultFs::new();
        put_bytes(&fs, bytes);
        let mut findings = Findings::new();
        verify(&path(), &kv, &settings(&fs), &mut findings, &silent).unwrap();
        if let Ok(index) = Hindex::open(&path(), Access::Read, &settings(&fs)) {
            for key in [&b"apple"[..], b"pear", b"fig", b"none"] {
                if let Ok(Some(ptr)) = index.find(&kv, key) {
                    assert_eq!(kv.key(ptr).unwrap(), key, "an index never gives a wrong answer");
                }
            }
        }
        findings
    };
    for cut in 0..good.len() {
        assert!(!touch(&good[..cut]).is_sound(), "{cut}");
    }
    for bit in 0..good.len() * 8 {
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        touch(&flipped);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn behaves_like_a_map(
        ops in proptest::collection::vec((0u8..6, 0u16..300), 0..600), cellsz in 1u64..=2, htsize in 2u64..40, memory in 0u64..200_000,
    ) {
        let fs = FaultFs::new();
        let settings = Settings { index_memory_bytes: memory, ..settings(&fs) };
        let mut kv = kvseq(&fs);
        let create = CreateHindex { sbsize: 256, htsize, cellsz, ..Default::default() };
        let mut index = create.create(&path(), &settings).unwrap();
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for (op, key) in ops {
            let key = key.to_be_bytes().to_vec();
            match op {
                0..=2 => {
                    index.make_room(&kv).unwrap();
                    let ptr = kv.add(&key, b"").unwrap();
                    let old = index.replace(&kv, &key, ptr).unwrap();
                    prop_assert_eq!(old, model.insert(key, ptr));
                    if let Some(old) = old {
                        kv.delete(old).unwrap();
                    }
                }
                3 => {
                    let old = index.remove(&kv, &key).unwrap();
                    prop_assert_eq!(old, model.remove(&key));
                    if let Some(old) = old {
                        kv.delete(old).unwrap();
                    }
                }
                4 => prop_assert_eq!(index.find(&kv, &key).unwrap(), model.get(&key).copied()),
                _ => index.checkpoint().unwrap(),
            }
            prop_assert_eq!(index.keys(), model.len() as u64);
        }
        for (key, ptr) in &model {
            prop_assert_eq!(index.find(&kv, key).unwrap(), Some(*ptr));
        }
        let mut listed = Vec::new();
        index.for_each(&mut |ptr, _| { listed.push(ptr); Ok(()) }).unwrap();
        listed.sort_unstable();
        let mut expected: Vec<u64> = model.values().copied().collect();
        expected.sort_unstable();
        prop_assert_eq!(listed, expected);
        index.close().unwrap();
        let found = findings(&fs, &kv);
        prop_assert!(found.is_sound() && found.warnings() == 0, "{:?}", found.list());
    }
}
