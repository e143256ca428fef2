use super::*;
use crate::findings::Findings;
use crate::{Clock, SyncPolicy};
use proptest::prelude::*;
use std::path::PathBuf;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;

fn settings(fs: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { buffer_bytes: 64, chunk_bytes: 0, ..Settings::new(clock, "test").on(fs.shared()) }
}

fn file() -> PathBuf {
    "/f".into()
}

fn small() -> CreateKvseq {
    CreateKvseq { sbsize: 256, fileincr: 0, ..Default::default() }
}

fn bytes(fs: &FaultFs) -> Vec<u8> {
    fs.files()[&file()].clone()
}

fn put_bytes(fs: &FaultFs, bytes: &[u8]) {
    let f = fs.open(&file(), Mode::Truncate).unwrap();
    f.write_at(0, bytes).unwrap();
}

fn all(kv: &Kvseq) -> Vec<(u64, bool, Vec<u8>, Vec<u8>)> {
    let mut scan = kv.scan().with_deleted();
    let mut out = Vec::new();
    while let Some(item) = scan.next_entry().unwrap() {
        out.push((item.ptr, item.deleted, item.key.to_vec(), item.value.unwrap().to_vec()));
    }
    out
}

fn sound(fs: &FaultFs) -> KvFindings {
    let mut findings = Findings::new();
    let counted = verify(&file(), &settings(fs), &mut findings).unwrap();
    assert!(findings.is_sound(), "{:?}", findings.list());
    counted
}

#[test]
fn aligned_entries_of_fixed_and_limited_length() {
    let fs = FaultFs::new();
    let create = CreateKvseq { align: 16, delflag: false, key: Repr::Lim8(5), value: Repr::Fixed(2), ..small() };
    let mut kv = create.create(&file(), &settings(&fs)).unwrap();
    assert_eq!(kv.add(b"fig", b"F1").unwrap(), 256);
    assert_eq!(kv.add(b"apple", b"A2").unwrap(), 272);
    assert_eq!(kv.end(), 280);
    assert!(matches!(kv.delete(256), Err(Error::NoDelflag { .. })));
    kv.close().unwrap();
    assert_eq!(bytes(&fs)[256..], *b"\x03fig\0\0F1\0\0\0\0\0\0\0\0\x05appleA2");
    sound(&fs);
    let mut touched = bytes(&fs);
    touched[270] = 1;
    put_bytes(&fs, &touched);
    let mut findings = Findings::new();
    verify(&file(), &settings(&fs), &mut findings).unwrap();
    assert_eq!((findings.faults(), findings.warnings()), (0, 1));
}

#[test]
fn every_class_holds_its_longest_string_and_no_longer() {
    for (repr, max) in [
        (Repr::Int8, 255),
        (Repr::Int16, 65535),
        (Repr::Fixed(0), 0),
        (Repr::Fixed(255), 255),
        (Repr::Lim8(1), 1),
        (Repr::Lim8(255), 255),
    ] {
        let fs = FaultFs::new();
        let create = CreateKvseq { key: repr, value: repr, ..small() };
        let mut kv = create.create(&file(), &settings(&fs)).unwrap();
        let longest = vec![7; max];
        let ptr = kv.add(&longest, &longest).unwrap();
        let too_long = vec![7; max + 1];
        assert!(matches!(kv.add(&too_long, &longest), Err(Error::TooLong { what: "key", .. })), "{repr}");
        assert!(matches!(kv.add(&longest, &too_long), Err(Error::TooLong { what: "value", .. })), "{repr}");
        if !matches!(repr, Repr::Fixed(1..)) {
            let ptr = kv.add(b"", b"").unwrap();
            assert_eq!(kv.get(ptr).unwrap().value, b"");
        }
        assert_eq!(kv.get(ptr).unwrap(), KvEntry { ptr, deleted: false, key: longest.clone(), value: longest });
        kv.close().unwrap();
        sound(&fs);
    }
}

#[test]
fn strings_keep_their_length_unless_room_was_reserved() {
    let fs = FaultFs::new();
    let mut kv = CreateKvseq { value: Repr::Lim8(6), ..small() }.create(&file(), &settings(&fs)).unwrap();
    let ptr = kv.add(b"key", b"abc").unwrap();
    kv.set_value(ptr, b"abcdef").unwrap();
    kv.set_value(ptr, b"x").unwrap();
    kv.set_key(ptr, b"KEY").unwrap();
    assert!(matches!(kv.set_key(ptr, b"long"), Err(Error::LengthChange { old: 3, new: 4, .. })));
    assert!(matches!(kv.set_value(ptr, b"abcdefg"), Err(Error::LengthChange { .. })));
    assert!(matches!(kv.write_value(ptr, 1, b"y"), Err(Error::LengthChange { .. })));
    kv.write_value(ptr, 0, b"z").unwrap();
    kv.close().unwrap();
    let kv = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
    assert_eq!(all(&kv), [(256, false, b"KEY".to_vec(), b"z".to_vec())]);
    assert_eq!(bytes(&fs)[256..], *b"\0\x03KEY\x01z\0\0\0\0\0");
}

#[test]
fn pointers_of_the_caller_are_checked() {
    let fs = FaultFs::new();
    let mut kv = CreateKvseq { align: 8, ..small() }.create(&file(), &settings(&fs)).unwrap();
    kv.add(b"a", b"1").unwrap();
    for ptr in [0, 255, 257, 264 + 8, 1 << 40, u64::MAX] {
        assert!(matches!(kv.get(ptr), Err(Error::BadPointer { .. })), "{ptr}");
    }
    let mut reader = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
    assert!(matches!(reader.add(b"b", b""), Err(Error::ReadOnly { .. })));
    assert_eq!(reader.end(), 256, "not flushed");
    kv.flush().unwrap();
    assert!(reader.refresh().unwrap() && reader.end() > 256);
    assert_eq!(reader.get(256).unwrap().key, b"a");
}

#[test]
fn a_value_grows_only_at_the_end_and_readers_see_a_whole_one() {
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    let first = kv.add(b"a", b"1").unwrap();
    let last = kv.add(b"b", b"").unwrap();
    assert!(matches!(kv.extend_last_value(first, b"x"), Err(Error::LengthChange { .. })));
    kv.flush().unwrap();
    let mut expected = Vec::new();
    let reader = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
    for n in 0..200u8 {
        let piece = vec![n; usize::from(n) % 90];
        kv.extend_last_value(last, &piece).unwrap();
        expected.extend(piece);
        assert_eq!(kv.get(last).unwrap().value, expected, "{n}");
        // The prefix may be ahead of FILESIZE as this reader knows it.
        assert_eq!(reader.get(last).unwrap().value, b"");
        if n % 7 == 0 {
            kv.flush().unwrap();
            let fresh = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
            assert_eq!(fresh.get(last).unwrap().value, expected);
        }
    }
    kv.add(b"c", b"2").unwrap();
    assert!(kv.extend_last_value(last, b"x").is_err());
    kv.close().unwrap();
    assert_eq!(sound(&fs), KvFindings { entries: 3, live: 3, clean: true });
}

#[test]
fn rollback_returns_to_the_checkpoint_and_cuts_a_grown_value() {
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    kv.add(b"a", b"1").unwrap();
    let grown = kv.add(b"b", b"22").unwrap();
    kv.checkpoint().unwrap();
    let before = all(&kv);
    kv.extend_last_value(grown, &[9; 500]).unwrap();
    kv.add(b"c", &[3; 300]).unwrap();
    kv.flush().unwrap();
    let done = kv.rollback().unwrap();
    assert_eq!((done.clamped, done.entries, done.live), (Some(grown), 2, 2));
    assert_eq!(all(&kv), before);
    kv.add(b"d", b"4").unwrap();
    kv.close().unwrap();
    assert_eq!(sound(&fs).entries, 3);
}

#[test]
fn cut_at_every_byte_after_a_checkpoint() {
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    kv.add(b"apple", b"red").unwrap();
    kv.add(b"pear", b"green").unwrap();
    kv.checkpoint().unwrap();
    let before = all(&kv);
    let synced = kv.end();
    kv.extend_last_value(kv.scan().with_deleted().chunk_last(), b" or yellow").unwrap();
    kv.add(b"fig", b"violet").unwrap();
    kv.flush().unwrap();
    drop(kv);
    let whole = bytes(&fs);
    for cut in usize::try_from(synced).unwrap()..=whole.len() {
        let fs = FaultFs::new();
        put_bytes(&fs, &whole[..cut]);
        assert!(Kvseq::open(&file(), Access::Write, &settings(&fs)).is_err(), "{cut}");
        let reader = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
        assert_eq!(all(&reader), before, "{cut}: only what was synced is seen");
        repair(&file(), &settings(&fs), false).unwrap();
        sound(&fs);
        let kv = Kvseq::open(&file(), Access::Write, &settings(&fs)).unwrap();
        assert_eq!(all(&kv), before, "{cut}");
    }
    // With salvage, whatever is whole stays.
    repair(&file(), &settings(&fs), true).unwrap();
    assert_eq!(sound(&fs).entries, 3);
}

impl Scan<'_> {
    /// Pointer of the last entry.
    fn chunk_last(mut self) -> u64 {
        let mut last = 0;
        while let Some(item) = self.next_entry().unwrap() {
            last = item.ptr;
        }
        last
    }
}

#[test]
fn a_full_disk_takes_nothing_back() {
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    fs.set_capacity(2000);
    let mut stored = 0;
    let error = loop {
        match kv.add(&[stored; 3], &[stored; 70]) {
            Ok(_) => stored += 1,
            Err(e) => break e,
        }
    };
    assert!(matches!(error, Error::Io(_)), "{error}");
    assert_eq!(all(&kv).len(), usize::from(stored));
    fs.set_capacity(1 << 20);
    kv.add(b"end", b"").unwrap();
    kv.close().unwrap();
    assert_eq!(sound(&fs).entries, u64::from(stored) + 1);
}

#[test]
fn a_key_that_no_scan_would_read_is_refused() {
    let fs = FaultFs::new();
    let settings = Settings { max_key_bytes: 300, ..settings(&fs) };
    let mut kv = CreateKvseq { key: Repr::Int32, ..small() }.create(&file(), &settings).unwrap();
    kv.add(&[1; 300], b"").unwrap();
    assert!(matches!(kv.add(&[1; 301], b""), Err(Error::TooLong { what: "key", len: 301, limit: 300, .. })));
    kv.add(b"after", b"").unwrap();
    assert_eq!(all(&kv).len(), 2);
}

/// A value that claims to be longer than the file was not made longer if it is not the last.
#[test]
fn a_broken_length_does_not_swallow_what_follows() {
    for broken in 0..3 {
        let fs = FaultFs::new();
        let mut kv = small().create(&file(), &settings(&fs)).unwrap();
        let entries: Vec<u64> = (0..3).map(|n| kv.add(&[b'k', n], b"value").unwrap()).collect();
        kv.close().unwrap();
        let mut damaged = bytes(&fs);
        // Flag, length of the key, key, then eight bytes of length.
        damaged[usize::try_from(entries[broken]).unwrap() + 1 + 1 + 2 + 7] = 200;
        put_bytes(&fs, &damaged);
        let repaired = repair(&file(), &settings(&fs), false);
        if broken == 2 {
            assert_eq!(repaired.unwrap().clamped, Some(entries[2]));
            continue;
        }
        assert!(matches!(repaired, Err(Error::CorruptEntry { .. })), "{repaired:?}");
        assert_eq!(bytes(&fs), damaged, "nothing was changed");
        let salvaged = repair(&file(), &settings(&fs), true).unwrap();
        assert_eq!((salvaged.clamped, salvaged.entries), (None, broken as u64));
    }
}

#[test]
fn a_failed_sync_is_final() {
    use trawl_io::fault::{Failure, Fault};
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    kv.add(b"a", b"1").unwrap();
    fs.fail(Fault::new(Failure::Io).on(trawl_io::Op::Sync));
    assert!(matches!(kv.checkpoint(), Err(Error::Io(_))));
    assert!(matches!(kv.checkpoint(), Err(Error::Poisoned { .. })));
    drop(kv);
    repair(&file(), &settings(&fs), false).unwrap();
    assert_eq!(sound(&fs).entries, 0);
}

#[test]
fn syncs_follow_the_policy() {
    let count = |policy, every| {
        let fs = FaultFs::new();
        let settings = Settings { sync: policy, sync_every: every, ..settings(&fs) };
        let mut kv = small().create(&file(), &settings).unwrap();
        let before = fs.counts().syncs;
        for n in 0..640u32 {
            kv.add(&n.to_be_bytes(), b"").unwrap();
        }
        kv.close().unwrap();
        fs.counts().syncs - before
    };
    assert_eq!(count(SyncPolicy::Full, -1), 2, "data, then the declaration");
    assert_eq!(count(SyncPolicy::Off, -1), 0);
    assert_eq!(count(SyncPolicy::Full, 0), 20, "every 64 entries at most");
}

#[test]
fn a_second_writer_is_told_who_has_it() {
    let fs = FaultFs::new();
    let kv = small().create(&file(), &settings(&fs)).unwrap();
    let second = Kvseq::open(&file(), Access::Write, &settings(&fs)).unwrap_err();
    assert_eq!(second.to_string(), "/f.lock: held by test");
    assert_eq!(second.advice(), trawl_io::Advice::Retry);
    kv.close().unwrap();
    Kvseq::open(&file(), Access::Write, &settings(&fs)).unwrap().close().unwrap();
    assert_eq!(fs.files().len(), 1, "no lock file stays");
}

#[test]
fn room_is_reserved_in_steps() {
    let fs = FaultFs::new();
    let mut kv = CreateKvseq { fileincr: 1000, ..small() }.create(&file(), &settings(&fs)).unwrap();
    for n in 0..30u8 {
        kv.add(&[n], &[n; 40]).unwrap();
    }
    kv.close().unwrap();
    assert_eq!(bytes(&fs).len(), 2000);
    assert_eq!(sound(&fs).entries, 30);
}

#[test]
fn compaction_drops_what_is_deleted() {
    let fs = FaultFs::new();
    let mut kv = small().create(&file(), &settings(&fs)).unwrap();
    kv.set_variable("MINE", 42).unwrap();
    let ptrs: Vec<u64> = (0..50u8).map(|n| kv.add(&[n], &[n; 30]).unwrap()).collect();
    for ptr in ptrs.iter().step_by(2) {
        kv.delete(*ptr).unwrap();
    }
    kv.close().unwrap();
    let (old, new) = compact(&file(), &settings(&fs), &crate::silent).unwrap();
    assert_eq!(old - new, 25 * (1 + 1 + 1 + 8 + 30));
    assert_eq!(sound(&fs), KvFindings { entries: 25, live: 25, clean: true });
    let kv = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
    assert_eq!(kv.superblock().get("MINE"), Some(42));
    assert!(all(&kv).iter().all(|(_, _, key, _)| key[0] % 2 == 1));
    assert_eq!(fs.files().len(), 1);
}

#[test]
fn hostile_lengths_reserve_nothing() {
    let fs = FaultFs::new();
    let mut kv = CreateKvseq { key: Repr::Int64, ..small() }.create(&file(), &settings(&fs)).unwrap();
    kv.add(b"key", b"value").unwrap();
    kv.close().unwrap();
    let good = bytes(&fs);
    for len in [1u64 << 60, (1 << 63) - 1, 1 << 63, u64::MAX, 1000] {
        for at in [257, 268] {
            let mut bad = good.clone();
            bad[at..at + 8].copy_from_slice(&len.to_be_bytes());
            put_bytes(&fs, &bad);
            let kv = Kvseq::open(&file(), Access::Read, &settings(&fs)).unwrap();
            assert!(matches!(kv.get(256), Err(Error::TornEntry { .. } | Error::CorruptEntry { .. })), "{len} at {at}");
            assert!(kv.scan().next_entry().is_err());
            let mut findings = Findings::new();
            verify(&file(), &settings(&fs), &mut findings).unwrap();
            assert_eq!(findings.faults(), 1, "{:?}", findings.list());
        }
    }
}

fn touch_everything(fs: &FaultFs) {
    let settings = settings(fs);
    let mut findings = Findings::new();
    let _ = verify(&file(), &settings, &mut findings);
    if let Ok(kv) = Kvseq::open(&file(), Access::Read, &settings) {
        let mut scan = kv.scan().with_deleted();
        while let Ok(Some(item)) = scan.next_entry() {
            let _ = kv.get(item.ptr);
        }
    }
    if repair(&file(), &settings, true).is_ok() {
        sound(fs);
    }
}

#[test]
fn cut_and_flip_of_a_small_file() {
    let fs = FaultFs::new();
    let mut kv = CreateKvseq { align: 4, key: Repr::Lim8(9), ..small() }.create(&file(), &settings(&fs)).unwrap();
    for (key, value) in [(&b"apple"[..], &b"red"[..]), (b"", b""), (b"pear", b"green")] {
        kv.add(key, value).unwrap();
    }
    kv.close().unwrap();
    let good = bytes(&fs);
    for cut in 0..good.len() {
        let fs = FaultFs::new();
        put_bytes(&fs, &good[..cut]);
        assert!(Kvseq::open(&file(), Access::Read, &settings(&fs)).is_err(), "{cut}");
        touch_everything(&fs);
    }
    for bit in 0..good.len() * 8 {
        let fs = FaultFs::new();
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        put_bytes(&fs, &flipped);
        touch_everything(&fs);
    }
}

fn any_repr() -> impl Strategy<Value = Repr> {
    prop_oneof![
        Just(Repr::Int8),
        Just(Repr::Int16),
        Just(Repr::Int32),
        Just(Repr::Int64),
        (0..=20u8).prop_map(Repr::Fixed),
        (1..=20u8).prop_map(Repr::Lim8),
    ]
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        key in any_repr(), value in any_repr(), delflag: bool, align in 0u64..20, chunk in 0usize..5000,
        pairs in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..21), proptest::collection::vec(any::<u8>(), 0..21), any::<bool>()), 0..40),
    ) {
        let fs = FaultFs::new();
        let settings = Settings { chunk_bytes: chunk, ..settings(&fs) };
        let mut kv = CreateKvseq { key, value, delflag, align, ..small() }.create(&file(), &settings).unwrap();
        let mut expected = Vec::new();
        for (k, v, delete) in pairs {
            if key.holds(k.len() as u64) && value.holds(v.len() as u64) {
                let ptr = kv.add(&k, &v).unwrap();
                prop_assert_eq!(ptr % align.max(1), 0);
                if delete && delflag {
                    kv.delete(ptr).unwrap();
                    kv.delete(ptr).unwrap();
                }
                expected.push((ptr, delete && delflag, k, v));
            }
        }
        prop_assert_eq!(&all(&kv), &expected);
        kv.close().unwrap();
        let kv = Kvseq::open(&file(), Access::Read, &settings).unwrap();
        prop_assert_eq!(&all(&kv), &expected);
        for (ptr, deleted, key, value) in expected {
            prop_assert_eq!(kv.get(ptr).unwrap(), KvEntry { ptr, deleted, key, value });
        }
        sound(&fs);
    }
}
