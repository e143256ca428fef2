use super::*;
use crate::findings::Findings;
use crate::{Clock, CreateKvseq, silent};
use proptest::prelude::*;
use std::path::PathBuf;
use trawl_io::fault::{FaultFs, Loss};
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;

fn settings(fs: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 4 << 20, buffer_bytes: 100, ..Settings::new(clock, "test").on(fs.shared()) }
}

fn path() -> PathBuf {
    "/p.perm".into()
}

fn kvseq(fs: &FaultFs) -> Kvseq {
    CreateKvseq { sbsize: 256, fileincr: 0, ..Default::default() }.create("/p.kvseq".as_ref(), &settings(fs)).unwrap()
}

fn create(htsize: i64) -> CreatePerm {
    CreatePerm { sbsize: 256, htsize, ..Default::default() }
}

fn pairs(perm: &Perm) -> Vec<Pair> {
    let mut all = Vec::new();
    perm.for_each(0, &mut |index, pair| {
        assert_eq!(perm.lookup(index).unwrap(), Some(pair));
        all.push(pair);
        Ok(true)
    })
    .unwrap();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn grouping_is_the_order_by_hash_key_and_pointer(keys in proptest::collection::vec(0u16..60, 0..300), htsize in 1i64..20) {
        let fs = FaultFs::new();
        let mut kv = kvseq(&fs);
        let mut perm = create(htsize).create(&path(), &settings(&fs)).unwrap();
        let mut expected = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let key = key.to_string();
            let ptr = kv.add(key.as_bytes(), b"").unwrap();
            if n % 10 == 9 {
                kv.delete(ptr).unwrap();
            } else {
                expected.push((h64(key.as_bytes()) % htsize as u64, key, ptr));
            }
        }
        perm.build(&kv).unwrap();
        expected.sort();
        perm.group(&kv, None, &silent).unwrap();
        let expected: Vec<Pair> = expected.into_iter().map(|(hash, _, ptr)| Pair { ptr, hash }).collect();
        prop_assert_eq!(pairs(&perm), expected);
        perm.close().unwrap();
        let mut findings = Findings::new();
        let counted = verify(&path(), &kv, &settings(&fs), &mut findings).unwrap();
        prop_assert!(findings.is_sound(), "{:?}", findings.list());
        prop_assert!(counted.grouped);
    }
}

#[test]
fn a_large_group_is_sorted_outside_memory() {
    let fs = FaultFs::new();
    let mut kv = kvseq(&fs);
    let mut perm = create(1).create(&path(), &settings(&fs)).unwrap();
    for n in 0..5000u32 {
        kv.add((n * 7919 % 997).to_string().as_bytes(), b"").unwrap();
    }
    perm.build(&kv).unwrap();
    perm.group(&kv, Some(Path::new("/")), &silent).unwrap();
    let keyed: Vec<_> = pairs(&perm).iter().map(|p| (kv.key(p.ptr).unwrap(), p.ptr)).collect();
    assert_eq!(keyed.len(), 5000);
    assert!(keyed.is_sorted());
}

#[test]
fn positions_and_limits() {
    let fs = FaultFs::new();
    let mut kv = kvseq(&fs);
    let mut perm = create(7).create(&path(), &settings(&fs)).unwrap();
    let ptrs: Vec<u64> = (0..30u8).map(|n| kv.add(&[n], b"").unwrap()).collect();
    for ptr in &ptrs {
        perm.add(&kv, *ptr).unwrap();
    }
    assert_eq!((perm.len(), perm.index_of(ptrs[17]).unwrap(), perm.index_of(3).unwrap()), (30, Some(17), None));
    assert_eq!(perm.lookup(30).unwrap(), None);
    assert!(matches!(perm.add(&kv, 1), Err(Error::BadPointer { .. })));
    perm.checkpoint().unwrap();
    perm.add(&kv, ptrs[0]).unwrap();
    perm.flush().unwrap();
    perm.rollback().unwrap();
    assert_eq!(perm.len(), 30);
    perm.close().unwrap();
    let mut reader = Perm::open(&path(), Access::Read, &settings(&fs)).unwrap();
    assert!(matches!(reader.add(&kv, ptrs[0]), Err(Error::ReadOnly { .. })));
}

#[test]
fn every_cut_keeps_what_was_synced() {
    for cut in 0.. {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let (mut synced, mut created) = (0, false);
        let mut work = || -> Result<()> {
            let mut perm = create(i64::MAX).create(&path(), &settings(&disk))?;
            created = true;
            for n in 0..40u64 {
                perm.add_key(&n.to_be_bytes(), 256 + n)?;
                if n % 9 == 8 {
                    perm.checkpoint()?;
                    synced = n + 1;
                }
            }
            perm.close()?;
            synced = 40;
            Ok(())
        };
        let done = work().is_ok();
        for loss in [Loss::All, Loss::None].into_iter().chain((0..6).map(|seed| Loss::Torn { seed, unit: 512 })) {
            let fs = disk.reboot(loss);
            if !fs.files().contains_key(&path()) {
                assert!(!created);
                continue;
            }
            if Perm::open(&path(), Access::Write, &settings(&fs)).is_err() {
                assert_eq!(repair(&path(), &settings(&fs)).unwrap(), synced, "cut {cut}, {loss:?}");
            }
            let perm = Perm::open(&path(), Access::Write, &settings(&fs)).unwrap();
            assert!(perm.len() >= synced, "cut {cut}, {loss:?}");
            for (n, pair) in pairs(&perm).into_iter().enumerate() {
                assert_eq!(pair, Pair { ptr: 256 + n as u64, hash: perm.hash(&(n as u64).to_be_bytes()) });
            }
        }
        if done {
            break;
        }
    }
}

#[test]
fn cut_and_flip_of_a_small_file() {
    let base = FaultFs::new();
    let mut kv = kvseq(&base);
    let mut perm = create(5).create(&path(), &settings(&base)).unwrap();
    for key in [&b"apple"[..], b"pear", b"fig"] {
        let ptr = kv.add(key, b"").unwrap();
        perm.add(&kv, ptr).unwrap();
    }
    kv.flush().unwrap();
    perm.close().unwrap();
    let good = base.files()[&path()].clone();
    let touch = |bytes: &[u8]| {
        let fs = FaultFs::new();
        let file = fs.open(&path(), Mode::Truncate).unwrap();
        file.write_at(0, bytes).unwrap();
        let mut findings = Findings::new();
        let _ = verify(&path(), &kv, &settings(&fs), &mut findings);
        if let Ok(mut perm) = Perm::open(&path(), Access::Write, &settings(&fs)) {
            pairs(&perm);
            let _ = perm.group(&kv, None, &silent);
        }
        let _ = repair(&path(), &settings(&fs));
        findings.is_sound()
    };
    assert!(touch(&good));
    for cut in 0..good.len() {
        assert!(!touch(&good[..cut]), "{cut}");
    }
    for bit in 0..good.len() * 8 {
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let sound = touch(&flipped);
        assert!(bit < 256 * 8 || !sound, "bit {bit} of a pair went unnoticed");
    }
}
