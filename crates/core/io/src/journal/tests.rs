use super::*;
use crate::fault::{Failure, Fault, FaultFs, Loss};
use crate::{Advice, Error, Fs, Mode, Op, RealFs, Result};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/j";

fn path() -> &'static Path {
    Path::new(PATH)
}

fn create(disk: &FaultFs) -> Journal {
    Journal::create(&disk.shared(), path(), b"tag", Options::default()).unwrap()
}

fn lenient() -> Options {
    Options { lenient: true, ..Options::default() }
}

fn recover(fs: &Arc<dyn Fs>, options: Options) -> Result<(Journal, Recovery, Vec<Vec<u8>>)> {
    let mut seen = Vec::new();
    let (journal, recovery) = Journal::recover(fs, path(), options, &mut |_, batch| {
        seen.extend(batch.records().map(<[u8]>::to_vec));
        Ok(())
    })?;
    Ok((journal, recovery, seen))
}

/// A disk with a synced journal file of these bytes.
fn disk_with(bytes: &[u8]) -> FaultFs {
    let disk = FaultFs::new();
    disk.open(path(), Mode::Truncate).unwrap().write_at(0, bytes).unwrap();
    disk.reboot(Loss::None)
}

/// Five batches, each synced before the next, and where each begins.
fn sample() -> (Vec<u8>, Vec<u64>, Vec<Vec<u8>>) {
    let disk = FaultFs::new();
    let journal = create(&disk);
    let records: Vec<Vec<u8>> = (1..=5u8).map(|n| vec![n; usize::from(n) * 3]).collect();
    let mut offsets: Vec<u64> = records.iter().map(|r| journal.commit([&r[..]]).unwrap().offset).collect();
    offsets.push(journal.end().end);
    (disk.files()[path()].clone(), offsets, records)
}

#[test]
fn real_files_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let journal = Journal::create(&fs, &path, b"tag", Options::default()).unwrap();
    journal.commit([&b"a"[..], b"", b"ccc"]).unwrap();
    journal.commit([&b"d"[..]]).unwrap();
    let taken = Journal::create(&fs, &path, b"", Options::default()).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    drop(journal);
    let mut seen = Vec::new();
    let (journal, recovery) = Journal::recover(&fs, &path, Options::default(), &mut |_, batch| {
        seen.push(batch.records().map(<[u8]>::to_vec).collect::<Vec<_>>());
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [vec![b"a".to_vec(), b"".to_vec(), b"ccc".to_vec()], vec![b"d".to_vec()]]);
    assert_eq!((recovery.batches, recovery.tail, recovery.cut_bytes()), (2, Tail::Clean, 0));
    assert_eq!(journal.header(), Header { generation: 1, tag: b"tag".to_vec() });
}

#[test]
fn the_bytes_do_not_move() {
    let disk = FaultFs::new();
    let journal = create(&disk);
    journal.commit([&b"hi"[..], b""]).unwrap();
    journal.commit([&b"x"[..]]).unwrap();
    let golden: &[u8] = &[
        b'T', b'R', b'W', b'L', b'J', b'N', b'L', b'\n', // magic
        1, 0, 3, 0, // version, tag length
        1, 0, 0, 0, 0, 0, 0, 0, // generation
        b't', b'a', b'g', // tag
        0xb9, 0x16, 0x09, 0x28, // crc of the header
        4, 0, 0, 0, 27, 0, 0, 0, 0, 0, 0, 0, 0x2c, 0x39, 0x25, 0x80, 2, b'h', b'i', 0, // frame at 27
        2, 0, 0, 0, 47, 0, 0, 0, 0, 0, 0, 0, 0x68, 0xc3, 0xbf, 0x93, 1, b'x', // frame at 47
    ];
    assert_eq!(disk.files()[path()], golden);
}

#[test]
fn cut_at_every_byte() {
    let (bytes, offsets, records) = sample();
    for cut in 0..=bytes.len() {
        let disk = disk_with(&bytes[..cut]);
        let found = recover(&disk.shared(), Options::default());
        if (cut as u64) < offsets[0] {
            assert!(matches!(found, Err(Error::Short { .. })), "cut {cut}");
            assert_eq!(disk.files()[path()], bytes[..cut], "an error changes nothing");
            continue;
        }
        let (_, recovery, seen) = found.unwrap();
        let whole = offsets.iter().rposition(|&o| o <= cut as u64).unwrap();
        assert_eq!(seen, records[..whole], "cut {cut}");
        assert_eq!(recovery.cut_bytes(), cut as u64 - offsets[whole]);
        match recovery.tail {
            Tail::Clean => assert_eq!(cut as u64, offsets[whole]),
            Tail::Torn { offset, why, .. } => {
                assert_eq!(offset, offsets[whole]);
                assert_eq!(why == Tear::ShortHead, cut as u64 - offset < 16);
            }
        }
        assert_eq!(disk.files()[path()].len() as u64, offsets[whole], "the tail is cut off");
    }
}

#[test]
fn flip_every_bit() {
    let (bytes, offsets, records) = sample();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let at = (bit / 8) as u64;
        let strict = recover(&disk_with(&flipped).shared(), Options::default());
        let relaxed = recover(&disk_with(&flipped).shared(), lenient());
        let Some(hit) = offsets.iter().rposition(|&o| o <= at) else {
            assert!(strict.is_err() && relaxed.is_err(), "bit {bit}: a wrong header is never believed");
            continue;
        };
        if hit == records.len() - 1 {
            // Nothing after the last frame can say that it was synced.
            let (_, recovery, seen) = strict.unwrap();
            assert_eq!(seen, records[..hit], "bit {bit}");
            assert!(recovery.cut_bytes() > 0);
            continue;
        }
        match strict {
            Err(Error::Corrupt { offset, .. }) => assert_eq!(offset, offsets[hit], "bit {bit}"),
            other => panic!("bit {bit}: damage before synced frames must be an error, not {other:?}"),
        }
        let (journal, recovery, seen) = relaxed.unwrap();
        let others: Vec<_> = (0..records.len()).filter(|&i| i != hit).map(|i| records[i].clone()).collect();
        assert_eq!(seen, others, "bit {bit}");
        assert_eq!(recovery.gaps.len(), 1);
        assert_eq!((recovery.gaps[0].offset, recovery.gaps[0].bytes), (offsets[hit], offsets[hit + 1] - offsets[hit]));
        assert_eq!(journal.header().generation, 2, "the gap is gone from the rewritten file");
    }
}

#[test]
fn a_strict_error_changes_nothing_and_a_lenient_rewrite_is_whole() {
    let (mut bytes, offsets, records) = sample();
    bytes[offsets[1] as usize + 20] ^= 1;
    let disk = disk_with(&bytes);
    assert!(recover(&disk.shared(), Options::default()).is_err());
    assert_eq!(disk.files()[path()], bytes);
    let (journal, ..) = recover(&disk.shared(), lenient()).unwrap();
    journal.commit([&b"new"[..]]).unwrap();
    drop(journal);
    let (_, recovery, seen) = recover(&disk.reboot(Loss::All).shared(), Options::default()).unwrap();
    assert_eq!(recovery.tail, Tail::Clean);
    assert_eq!(seen, [&records[0], &records[2], &records[3], &records[4], &b"new".to_vec()].map(Vec::clone));
}

#[test]
fn reading_never_writes() {
    let (bytes, ..) = sample();
    let disk = disk_with(&bytes[..bytes.len() - 1]);
    let fs = disk.shared();
    let reader = JournalReader::open(&*fs, path(), &Options::default()).unwrap();
    assert_eq!(reader.filter(|b| b.is_ok()).count(), 4);
    assert_eq!(disk.counts().ops, 0);
    assert_eq!(disk.files()[path()].len(), bytes.len() - 1);
}

#[test]
fn what_recovery_showed_is_durable() {
    // A killed process wrote and did not sync: the system still has the bytes, the disk may not.
    let (bytes, _, records) = sample();
    let disk = FaultFs::new();
    disk.open(path(), Mode::Truncate).unwrap().write_at(0, &bytes).unwrap();
    let (.., seen) = recover(&disk.shared(), Options::default()).unwrap();
    assert_eq!(seen, records);
    let (.., seen) = recover(&disk.reboot(Loss::All).shared(), Options::default()).unwrap();
    assert_eq!(seen, records);
}

#[test]
fn rotation_carries_over_what_the_checkpoint_lacks() {
    let disk = FaultFs::new();
    let journal = create(&disk);
    let old = journal.commit([&b"1"[..]]).unwrap();
    let covered = journal.commit([&b"2"[..]]).unwrap();
    journal.commit([&b"3"[..]]).unwrap();
    let waiting = journal.submit([&b"4"[..]]).unwrap();
    journal.rotate(covered, b"checkpoint 2").unwrap();
    journal.wait(waiting).unwrap();
    journal.wait(old).unwrap();
    let last = journal.commit([&b"5"[..]]).unwrap();
    assert!(old < covered && covered < last);
    let fs = disk.reboot(Loss::All).shared();
    let (journal, recovery, seen) = recover(&fs, Options::default()).unwrap();
    assert_eq!(seen, [b"3", b"4", b"5"]);
    assert_eq!(recovery.header, Header { generation: 2, tag: b"checkpoint 2".to_vec() });
    // A position of the first generation covers nothing of the second.
    journal.rotate(covered, b"again").unwrap();
    assert_eq!(recover(&fs, Options::default()).unwrap().2.len(), 3);
    let beyond = Position { generation: 9, offset: 0, end: 0 };
    assert!(matches!(journal.rotate(beyond, b""), Err(Error::Refused { .. })));
    journal.rotate(journal.end(), b"all").unwrap();
    assert!(recover(&fs, Options::default()).unwrap().2.is_empty());
}

#[test]
fn a_failed_sync_ends_the_journal() {
    let disk = FaultFs::new();
    let journal = create(&disk);
    journal.commit([&b"kept"[..]]).unwrap();
    disk.fail(Fault::new(Failure::Io).on(Op::Sync));
    let first = journal.commit([&b"lost"[..]]).unwrap_err();
    assert_eq!(first.to_string(), "cannot sync /j: Input/output error (os error 5)");
    // The system would now accept a sync; believing it would acknowledge what is not on the disk.
    let then = journal.commit([&b"late"[..]]).unwrap_err();
    assert!(then.to_string().contains("journal failed earlier"), "{then}");
    assert_eq!(then.advice(), Advice::Stop);
    assert!(journal.sync().is_err());
    assert!(journal.rotate(journal.end(), b"").is_err());
    let (.., seen) = recover(&disk.reboot(Loss::All).shared(), Options::default()).unwrap();
    assert_eq!(seen, [b"kept"]);
}

#[test]
fn a_full_disk_is_reported_and_recovered_from() {
    let disk = FaultFs::new();
    let journal = create(&disk);
    journal.commit([&b"kept"[..]]).unwrap();
    disk.fail(Fault::new(Failure::NoSpace).on(Op::Write).keeping(5));
    let err = journal.commit([&b"too much"[..]]).unwrap_err();
    assert_eq!((err.kind(), err.advice()), (ErrorKind::StorageFull, Advice::Stop));
    let (journal, recovery, seen) = recover(&disk.reboot(Loss::None).shared(), Options::default()).unwrap();
    assert_eq!((seen.len(), recovery.cut_bytes()), (1, 5));
    journal.commit([&b"fits"[..]]).unwrap();
}

#[test]
fn what_cannot_be_written_is_refused_and_harmless() {
    let disk = FaultFs::new();
    let options = Options { max_batch_bytes: 10, ..Options::default() };
    let journal = Journal::create(&disk.shared(), path(), b"", options).unwrap();
    assert!(matches!(journal.commit([]), Err(Error::Refused { .. })), "an empty batch says nothing");
    let err = journal.commit([&[0; 10][..]]).unwrap_err();
    assert_eq!(err.to_string(), "/j: journal batch of 11 bytes, must be 1 to 10");
    journal.commit([&[0; 9][..]]).unwrap();
    let long = Journal::create(&disk.shared(), Path::new("/k"), &[0; 1025], Options::default());
    assert!(matches!(long, Err(Error::Refused { .. })));
    assert_eq!(disk.files().len(), 1, "no temporary file is left");
    let tight = Options { max_batch_bytes: 9, ..Options::default() };
    assert!(matches!(recover(&disk.shared(), tight), Err(Error::OverLimit { claimed: 10, limit: 9, .. })));
}

#[test]
fn the_queue_is_bounded() {
    let disk = FaultFs::new();
    let options = Options { queue_bytes: 100, ..Options::default() };
    let journal = Journal::create(&disk.shared(), path(), b"", options).unwrap();
    let before = disk.counts().syncs;
    for _ in 0..100 {
        journal.submit([&[7; 30][..]]).unwrap();
    }
    let during = disk.counts().syncs - before;
    assert!((33..=50).contains(&during), "two or three frames fit: {during} syncs for 100 batches");
    journal.submit([&[7; 3000][..]]).unwrap();
    journal.sync().unwrap();
    assert_eq!(recover(&disk.shared(), Options::default()).unwrap().2.len(), 101);
}

#[test]
fn a_hostile_file_costs_bounded_work() {
    // Heads whose payload reaches to the end of the file, packed so that each would cost one pass over it.
    let (bytes, offsets, _) = sample();
    let mut hostile = bytes[..offsets[0] as usize].to_vec();
    let total = 4usize << 20;
    hostile.push(0xff);
    while hostile.len() < total {
        let len = u32::try_from(total + 64 - hostile.len()).unwrap();
        hostile.extend_from_slice(&len.to_le_bytes());
        hostile.extend_from_slice(&offsets[0].to_le_bytes());
        hostile.extend_from_slice(&[0; 4]);
    }
    hostile.resize(total + 128, 0);
    let err = recover(&disk_with(&hostile).shared(), Options::default()).unwrap_err();
    assert!(matches!(err, Error::Corrupt { .. }), "{err}");
}

proptest::proptest! {
    #[test]
    fn garbage_after_good_frames_never_panics_and_never_hides_them(
        garbage in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        whole in 0usize..=5,
    ) {
        let (bytes, offsets, records) = sample();
        let mut file = bytes[..offsets[whole] as usize].to_vec();
        file.extend_from_slice(&garbage);
        let (_, recovery, seen) = recover(&disk_with(&file).shared(), lenient()).unwrap();
        assert_eq!(seen, records[..whole]);
        assert_eq!(recovery.cut_bytes(), garbage.len() as u64);
    }
}
