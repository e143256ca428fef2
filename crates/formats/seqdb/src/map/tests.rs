use super::*;
use crate::findings::Findings;
use crate::{Clock, Error, SyncPolicy, silent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use trawl_io::fault::{FaultFs, Loss};
use trawl_model::UnixMillis;

fn settings(fs: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 6 << 20, buffer_bytes: 256, ..Settings::new(clock, "test").on(fs.shared()) }
}

fn files() -> MapFiles {
    MapFiles::named(Path::new("/m"))
}

fn create(fs: &FaultFs, htsize: u64) -> Map {
    let kvseq = CreateKvseq { sbsize: 512, fileincr: 0, ..Default::default() };
    let hindex = CreateHindex { sbsize: 512, htsize, ..Default::default() };
    Map::create(&files(), &kvseq, &hindex, &settings(fs)).unwrap()
}

fn sound(fs: &FaultFs) {
    let mut findings = Findings::new();
    verify(&files(), &settings(fs), &mut findings, &silent).unwrap();
    assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
}

#[test]
fn replaced_values_are_marked_once_the_new_ones_are_durable() {
    let fs = FaultFs::new();
    let mut map = create(&fs, 11);
    map.put(b"a", b"1").unwrap();
    map.sync().unwrap();
    map.put(b"a", b"2").unwrap();
    map.put(b"a", b"3").unwrap();
    map.flush().unwrap();
    let first = map.kvseq().first();
    assert!(!map.kvseq().is_deleted(first).unwrap(), "the synced value is not given up yet");
    let mut seen = Vec::new();
    let mut scan = map.kvseq().scan();
    while let Some(item) = scan.next_entry().unwrap() {
        seen.push(item.value.unwrap().to_vec());
    }
    assert_eq!(seen, [b"1", b"3"]);
    map.sync().unwrap();
    assert!(map.kvseq().is_deleted(first).unwrap());
    map.close().unwrap();
    sound(&fs);
}

#[test]
fn a_small_table_grows() {
    let fs = FaultFs::new();
    let mut map = create(&fs, 2);
    for n in 0..3000u32 {
        map.put(&n.to_be_bytes(), &[7; 10]).unwrap();
    }
    for n in (0..3000u32).step_by(2) {
        assert!(map.remove(&n.to_be_bytes()).unwrap());
    }
    map.put(&2u32.to_be_bytes(), b"x").unwrap();
    assert_eq!(map.len(), 1501);
    map.close().unwrap();
    sound(&fs);
    let map = Map::open(&files(), Access::Read, &Settings { buffer_index: true, ..settings(&fs) }).unwrap();
    assert_eq!(map.get(&2u32.to_be_bytes()).unwrap().unwrap(), b"x");
    assert_eq!(map.get(&4u32.to_be_bytes()).unwrap(), None);
}

#[test]
fn readers_follow_the_writer() {
    let fs = FaultFs::new();
    let mut map = create(&fs, 3);
    map.put(b"0", b"zero").unwrap();
    map.flush().unwrap();
    let mut reader = Map::open(&files(), Access::Read, &settings(&fs)).unwrap();
    for n in 1..500u32 {
        map.put(n.to_string().as_bytes(), b"x").unwrap();
        if n % 50 == 0 {
            assert_eq!(reader.get(b"0").unwrap().unwrap(), b"zero", "the file it has open still answers");
            map.flush().unwrap();
            reader.refresh().unwrap();
            assert_eq!(reader.get(n.to_string().as_bytes()).unwrap().unwrap(), b"x");
        }
    }
}

#[test]
fn what_a_dead_writer_leaves_is_refused_then_repaired() {
    let fs = FaultFs::new();
    let mut map = create(&fs, 11);
    map.put(b"a", b"1").unwrap();
    map.sync().unwrap();
    map.put(b"a", b"2").unwrap();
    map.put(b"b", b"1").unwrap();
    map.flush().unwrap();
    drop(map);
    assert!(matches!(Map::open(&files(), Access::Write, &settings(&fs)), Err(Error::NeedsCheck { .. })));
    let done = repair(&files(), &settings(&fs), false, &silent).unwrap();
    assert_eq!((done.kvseq.entries, done.hindex.keys), (1, 1));
    let map = Map::open(&files(), Access::Write, &settings(&fs)).unwrap();
    assert_eq!(map.get(b"a").unwrap().unwrap(), b"1");
    assert_eq!(map.get(b"b").unwrap(), None);
    let beside = verify(&files(), &settings(&fs), &mut Findings::new(), &silent);
    assert!(matches!(beside, Err(Error::LockFailed(_))), "{beside:?}");
    map.close().unwrap();
    sound(&fs);
}

#[test]
fn the_index_waits_if_only_data_is_synced() {
    let counts = [SyncPolicy::Full, SyncPolicy::Data, SyncPolicy::Off].map(|sync| {
        let fs = FaultFs::new();
        create(&fs, 1021).close().unwrap();
        let mut map = Map::open(&files(), Access::Write, &Settings { sync, ..settings(&fs) }).unwrap();
        let before = fs.counts().syncs;
        for n in 0..5u8 {
            map.put(&[n], b"").unwrap();
            map.sync().unwrap();
        }
        let while_open = fs.counts().syncs - before;
        map.close().unwrap();
        sound(&fs);
        while_open
    });
    // Data two a sync; the index one to begin and two to end, or one to begin in all.
    assert_eq!(counts, [5 * 5, 5 * 2 + 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn behaves_like_a_map(ops in proptest::collection::vec((0u8..10, 0u8..60, 0usize..200), 0..300)) {
        let fs = FaultFs::new();
        let mut map = create(&fs, 5);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (op, key, len) in ops {
            let key = vec![key; usize::from(key % 5)];
            match op {
                0..=4 => {
                    let value = vec![len as u8; len];
                    map.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
                5..=6 => prop_assert_eq!(map.remove(&key).unwrap(), model.remove(&key).is_some()),
                7 => prop_assert_eq!(map.get(&key).unwrap(), model.get(&key).cloned()),
                8 => map.sync().unwrap(),
                _ => {
                    map.close().unwrap();
                    map = Map::open(&files(), Access::Write, &settings(&fs)).unwrap();
                }
            }
            prop_assert_eq!(map.len(), model.len() as u64);
        }
        for (key, value) in &model {
            let found = map.get(key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
        map.close().unwrap();
        sound(&fs);
    }
}

#[test]
fn what_cannot_be_marked_deleted_is_not_removed() {
    let fs = FaultFs::new();
    let kvseq = CreateKvseq { delflag: false, ..Default::default() };
    let mut map = Map::create(&files(), &kvseq, &CreateHindex::default(), &settings(&fs)).unwrap();
    map.put(b"a", b"1").unwrap();
    assert!(matches!(map.remove(b"a"), Err(Error::NoDelflag { .. })));
    assert_eq!(map.get(b"a").unwrap().unwrap(), b"1");
    map.close().unwrap();
    sound(&fs);
}

fn reader(fs: &FaultFs) -> Map {
    Map::open_as(&(&files()).into(), Access::Read, &settings(fs), true).unwrap()
}

/// Little or much is gathered before it is written; the cells fit into memory, or do not.
fn shapes(fs: &FaultFs) -> [(Settings, u64); 3] {
    let large = Settings { buffer_bytes: 100_000, ..settings(fs) };
    let poor = Settings { index_memory_bytes: 0, ..large.clone() };
    [(settings(fs), 3), (large, 3), (poor, 9001)]
}

/// Puts and replaces; `known` is up to where readers can count on it.
fn busy(settings: &Settings, htsize: u64, known: &mut Option<u8>) -> Result<()> {
    let hindex = CreateHindex { sbsize: 512, htsize, ..Default::default() };
    let mut map = Map::create(&files(), &CreateKvseq { sbsize: 512, ..Default::default() }, &hindex, settings)?;
    for n in 0..12u8 {
        map.put(b"always", &[n; 100])?;
        for k in 0..4 {
            map.put(&[n, k], &[n; 150])?;
        }
        if n % 3 > 0 {
            if n % 3 == 1 { map.flush() } else { map.sync() }?;
            *known = Some(n);
        }
    }
    map.close()
}

#[test]
fn pairs_are_whole_between_any_two_writes() {
    for shape in 0..3 {
        for cut in 0.. {
            let fs = FaultFs::new();
            fs.cut_after(cut);
            let mut known = None;
            let (settings, htsize) = &shapes(&fs)[shape];
            let done = busy(settings, *htsize, &mut known).is_ok();
            if let Some(known) = known {
                let map = reader(&fs.reboot(Loss::None));
                let context = format!("shape {shape}, after {cut} writes");
                let always = map.get(b"always").unwrap();
                assert!(always.is_some_and(|v| v[0] >= known && v == [v[0]; 100]), "{context}");
                for n in 0..12 {
                    let found = map.get(&[n, 3]).unwrap();
                    assert!(found == Some(vec![n; 150]) || found.is_none() && n > known, "{context}, {n}");
                }
                let mut scan = map.kvseq().scan();
                while let Some(item) = scan.next_entry().unwrap() {
                    assert!(item.value.unwrap().windows(2).all(|pair| pair[0] == pair[1]), "{context}");
                }
            }
            if done {
                assert!(cut > 40, "{cut}");
                break;
            }
        }
    }
}

#[test]
fn a_writer_has_both_files() {
    let fs = FaultFs::new();
    let map = create(&fs, 11);
    let refused = Hindex::open(&files().hindex, Access::Write, &settings(&fs)).unwrap_err();
    assert!(matches!(refused, Error::LockFailed(_)), "{refused}");
    let refused = Kvseq::open(&files().kvseq, Access::Write, &settings(&fs)).unwrap_err();
    assert!(matches!(refused, Error::LockFailed(_)), "{refused}");
    map.close().unwrap();
    Hindex::open(&files().hindex, Access::Write, &settings(&fs)).unwrap();
}

#[test]
fn an_index_newer_than_the_end_that_was_seen() {
    let fs = FaultFs::new();
    let mut map = create(&fs, 11);
    map.put(b"always", b"old").unwrap();
    map.flush().unwrap();
    let reader = reader(&fs);
    map.put(b"always", b"new").unwrap();
    map.flush().unwrap();
    assert_eq!(reader.get(b"always").unwrap().unwrap(), b"new");
}
