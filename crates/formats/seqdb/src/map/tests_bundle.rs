//! A kvseq with several indexes and a perm.

use super::*;
use crate::{Clock, CreatePerm, Findings, hindex, kvseq, silent};
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;

#[test]
fn several_indexes_and_a_perm() {
    let disk = FaultFs::new();
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
    let files = BundleFiles {
        kvseq: "/b.kvseq".into(),
        indexes: vec!["/b.one".into(), "/b.two".into()],
        perm: Some("/b.perm".into()),
    };
    CreateKvseq { fileincr: 0, ..Default::default() }.create(&files.kvseq, &settings).unwrap().close().unwrap();
    for (path, cellsz) in files.indexes.iter().zip([1, 2]) {
        let create = CreateHindex { htsize: 3, cellsz, ..Default::default() };
        create.create(path, &settings).unwrap().close().unwrap();
    }
    CreatePerm::default().create(Path::new("/b.perm"), &settings).unwrap().close().unwrap();
    let mut bundle = Map::open(&files, Access::Write, &settings).unwrap();
    for n in 0..50u8 {
        bundle.add(&[n % 20], &[n]).unwrap();
    }
    assert!(bundle.remove(&[3]).unwrap() && !bundle.remove(&[3]).unwrap());
    assert_eq!(bundle.entry(&[5]).unwrap().unwrap().value, [45]);
    bundle.close().unwrap();
    let check = || {
        let kv = Kvseq::open(&files.kvseq, Access::Read, &settings).unwrap();
        let mut findings = Findings::new();
        kvseq::verify(&files.kvseq, &settings, &mut findings).unwrap();
        for path in &files.indexes {
            hindex::verify(path, &kv, &settings, &mut findings, &silent).unwrap();
        }
        let pairs = crate::perm::verify(Path::new("/b.perm"), &kv, &settings, &mut findings).unwrap().pairs;
        assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
        (kv.entries().unwrap(), kv.live_entries().unwrap(), pairs)
    };
    assert_eq!(check(), (50, 19, 50));
    let (old, new) = compact(&files, &settings, &silent).unwrap();
    assert!(new < old);
    assert_eq!(check(), (19, 19, 19));
    let mut bundle = Map::open(&files, Access::Write, &settings).unwrap();
    bundle.add(b"new", b"").unwrap();
    bundle.kv.flush().unwrap();
    drop(bundle);
    assert!(matches!(Map::open(&files, Access::Write, &settings), Err(Error::NeedsCheck { .. })));
    rollback(&files, &settings, false, &silent).unwrap();
    assert_eq!(check(), (19, 19, 19));
    // Without an index, all entries are read.
    let plain = BundleFiles { indexes: Vec::new(), perm: None, ..files };
    let bundle = Map::open(&plain, Access::Read, &settings).unwrap();
    assert_eq!(bundle.entry(&[5]).unwrap().unwrap().value, [45]);
    assert_eq!(bundle.entry(b"none").unwrap(), None);
}
/// A map of which half is deleted, whose values look like entries: an old pointer that leads into one would find a
/// key there, with a wrong value.
fn half_deleted(settings: &Settings) -> Result<BundleFiles> {
    let files = BundleFiles {
        kvseq: "/b.kvseq".into(),
        indexes: vec!["/b.one".into(), "/b.two".into()],
        perm: Some("/b.perm".into()),
    };
    let kvseq = CreateKvseq { fileincr: 0, value: crate::Repr::Int8, ..Default::default() };
    kvseq.create(&files.kvseq, settings)?.close()?;
    for (path, cellsz) in files.indexes.iter().zip([1, 2]) {
        CreateHindex { htsize: 101, cellsz, ..Default::default() }.create(path, settings)?.close()?;
    }
    CreatePerm::default().create(Path::new("/b.perm"), settings)?.close()?;
    let mut bundle = Map::open(&files, Access::Write, settings)?;
    for n in 0..30u8 {
        bundle.add(&[n], &value(n))?;
    }
    for n in (0..30).step_by(2) {
        bundle.remove(&[n])?;
    }
    bundle.close()?;
    Ok(files)
}

fn value(n: u8) -> Vec<u8> {
    // A flag, a key of one byte, a value of one byte.
    (0..n % 7 + 1).flat_map(|m| [0, 1, n ^ (2 * m), 1, b'?']).collect()
}

/// The disk as readers find it between any two writes of a compaction, or a way back, that lives.
#[test]
fn keys_are_there_between_any_two_writes() {
    type Change = fn(&BundleFiles, &Settings) -> Result<()>;
    let compacts: Change = |files, settings| compact(files, settings, &silent).map(|_| ());
    let rolls_back: Change = |files, settings| rollback(files, settings, false, &silent).map(|_| ());
    let rebuilds: Change = |files, settings| rebuild(files, settings, &silent);
    for change in [compacts, rolls_back, rebuilds] {
        for cut in 0.. {
            let disk = FaultFs::new();
            let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
            let files = half_deleted(&settings).unwrap();
            disk.cut_after(cut);
            let done = change(&files, &settings).is_ok();
            let disk = disk.reboot(trawl_io::fault::Loss::None);
            let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
            for first in 0..2 {
                let indexes = vec![files.indexes[first].clone()];
                let keyed = BundleFiles { indexes, perm: None, ..files.clone() };
                let bundle = Map::open_as(&keyed, Access::Read, &settings, true).unwrap();
                let pair = MapFiles { kvseq: files.kvseq.clone(), hindex: files.indexes[first].clone() };
                let map = Map::open_as(&(&pair).into(), Access::Read, &settings, true).unwrap();
                for n in 0..30 {
                    let wanted = (n % 2 == 1).then(|| value(n));
                    let found = bundle.entry(&[n]).unwrap().map(|entry| entry.value);
                    assert_eq!(found, wanted, "key {n} after {cut} writes");
                    assert_eq!(map.get(&[n]).unwrap(), wanted, "key {n} after {cut} writes, as a map");
                }
            }
            let whole = Map::open_as(&files, Access::Read, &settings, true);
            match whole {
                Ok(bundle) => {
                    let (kv, mut live) = (&bundle.kv, 0);
                    let look = &mut |_, pair: crate::perm::Pair| {
                        let entry = kv.get(pair.ptr)?;
                        assert_eq!(entry.value, value(entry.key[0]), "after {cut} writes");
                        live += usize::from(!entry.deleted);
                        Ok(true)
                    };
                    bundle.perm.as_ref().unwrap().for_each(0, look).unwrap();
                    assert_eq!(live, 15, "after {cut} writes");
                }
                Err(e) => assert!(matches!(e, Error::NeedsCheck { .. }), "{e}"),
            }
            if done {
                assert!(cut > 10, "{cut}");
                break;
            }
        }
    }
}
