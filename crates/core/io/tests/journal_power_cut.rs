//! Whatever the power cut: what the journal acknowledged is there, what it did not is absent or whole.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use trawl_io::fault::{FaultFs, Loss};
use trawl_io::journal::{JournalReader, Options, Position};
use trawl_io::{Fs, Journal, Result};

const PATH: &str = "/journal";

type BatchRecords = Vec<Vec<u8>>;

/// The n-th batch: one to three records, some shorter than a sector and some of many.
fn batch(n: usize) -> BatchRecords {
    let sizes = [3, 700, 0, 5000, 40, 511];
    (0..1 + n % 3).map(|i| (0..sizes[(n + i) % sizes.len()]).map(|b| (b * 7 + n * 31 + i) as u8).collect()).collect()
}

fn slices(batch: &BatchRecords) -> impl Iterator<Item = &[u8]> {
    batch.iter().map(Vec::as_slice)
}

/// Rotations put into the tag how many batches the (imagined) checkpoint covers.
fn covered(tag: &[u8]) -> usize {
    std::str::from_utf8(tag).unwrap().parse().unwrap()
}

#[derive(Default)]
struct Progress {
    created: bool,
    submitted: usize,
    acknowledged: usize,
}

/// Writes batches alone and in groups, rotating twice, until done or until the power goes.
fn work(fs: &Arc<dyn Fs>, progress: &mut Progress) -> Result<()> {
    let journal = Journal::create(fs, Path::new(PATH), b"0", Options::default())?;
    progress.created = true;
    let mut positions = Vec::new();
    for n in 0..14 {
        progress.submitted = n + 1;
        let position = journal.submit(slices(&batch(n)))?;
        positions.push(position);
        // Groups of one, two and three.
        if matches!(n, 0 | 1 | 3 | 6 | 7 | 9 | 12 | 13) {
            journal.wait(position)?;
            progress.acknowledged = n + 1;
        }
        if n == 7 || n == 10 {
            let keep = n - 2;
            journal.rotate(positions[keep - 1], keep.to_string().as_bytes())?;
            progress.acknowledged = n + 1;
            positions = reread(fs, keep);
        }
    }
    Ok(())
}

/// Positions of all batches after a rotation, the covered ones as placeholders.
fn reread(fs: &Arc<dyn Fs>, keep: usize) -> Vec<Position> {
    let mut reader = JournalReader::open(&**fs, Path::new(PATH), &Options::default()).unwrap();
    let generation = reader.header().generation;
    let mut positions = vec![Position { generation: 0, offset: 0, end: 0 }; keep];
    while let Some(b) = reader.next_batch().unwrap() {
        positions.push(Position { generation, offset: b.offset(), end: b.end() });
    }
    positions
}

/// Recovers and checks; returns how many batches are there in all.
fn check(fs: &Arc<dyn Fs>, progress: &Progress, context: &str) -> Option<(Journal, usize)> {
    if !fs.exists(Path::new(PATH)).unwrap() {
        assert!(!progress.created, "{context}: the journal is gone");
        return None;
    }
    let mut found: Vec<BatchRecords> = Vec::new();
    let (journal, recovery) = Journal::recover(fs, Path::new(PATH), Options::default(), &mut |_, b| {
        found.push(b.records().map(<[u8]>::to_vec).collect());
        Ok(())
    })
    .unwrap_or_else(|e| panic!("{context}: {e}"));
    let before = covered(&recovery.header.tag);
    for (i, records) in found.iter().enumerate() {
        assert!(*records == batch(before + i), "{context}: batch {} is not what was written", before + i);
    }
    let total = before + found.len();
    assert!(total >= progress.acknowledged, "{context}: {total} of {} acknowledged", progress.acknowledged);
    assert!(total <= progress.submitted, "{context}: {total} of {} submitted", progress.submitted);
    Some((journal, total))
}

fn run_until(cut: u64) -> (FaultFs, Progress, bool) {
    let disk = FaultFs::new();
    disk.cut_after(cut);
    let mut progress = Progress::default();
    let result = work(&disk.shared(), &mut progress);
    (disk, progress, result.is_ok())
}

#[test]
fn every_cut_keeps_what_was_acknowledged() {
    let (mut outcomes, mut torn) = (0, 0);
    for cut in 0.. {
        let (disk, progress, done) = run_until(cut);
        for loss in Loss::variants(60) {
            let context = format!("cut {cut}, {loss:?}");
            let fs = disk.reboot(loss).shared();
            let Some((journal, total)) = check(&fs, &progress, &context) else { continue };
            outcomes += 1;
            torn += usize::from(total < progress.submitted);
            // The recovered journal takes new batches, and they too survive.
            if total < 14 {
                journal.commit(slices(&batch(total))).unwrap();
                let more = Progress { created: true, submitted: total + 1, acknowledged: total + 1 };
                drop(journal);
                check(&fs, &more, &format!("{context}, again"));
            }
        }
        if done {
            assert!(cut > 30, "the work takes {cut} operations");
            break;
        }
    }
    assert!(outcomes > 1000 && torn > 100, "{outcomes} outcomes, {torn} of them lost something");
}

#[test]
fn a_cut_during_recovery_loses_nothing_more() {
    for cut in 0.. {
        let (disk, progress, done) = run_until(cut);
        for loss in Loss::variants(4) {
            for second in 0.. {
                let disk = disk.reboot(loss);
                disk.cut_after(second);
                let recovered =
                    Journal::recover(&disk.shared(), Path::new(PATH), Options::default(), &mut |_, _| Ok(()));
                for again in Loss::variants(4) {
                    check(&disk.reboot(again).shared(), &progress, &format!("cut {cut}, {second}, {again:?}"));
                }
                if !disk.is_cut() {
                    assert_eq!(recovered.is_ok(), disk.shared().exists(Path::new(PATH)).unwrap());
                    break;
                }
            }
        }
        if done {
            break;
        }
    }
}

#[test]
fn group_commit_of_many_threads_survives_every_cut() {
    const THREADS: u8 = 4;
    const EACH: u8 = 8;
    for cut in 4.. {
        let disk = FaultFs::new();
        let fs = disk.shared();
        disk.cut_after(cut);
        let Ok(journal) = Journal::create(&fs, Path::new(PATH), b"0", Options::default()) else { continue };
        let acknowledged = Mutex::new(Vec::new());
        let barrier = Barrier::new(usize::from(THREADS));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (journal, acknowledged, barrier) = (&journal, &acknowledged, &barrier);
                scope.spawn(move || {
                    for n in 0..EACH {
                        let record = vec![thread * 16 + n; 1 + 97 * usize::from(n)];
                        let submitted = journal.submit([&record[..]]);
                        // All have handed in before any waits, so that one sync can serve four.
                        barrier.wait();
                        if submitted.and_then(|position| journal.wait(position)).is_ok() {
                            acknowledged.lock().unwrap().push(record);
                        }
                    }
                });
            }
        });
        let acknowledged = acknowledged.into_inner().unwrap();
        for loss in Loss::variants(20) {
            let mut found = Vec::new();
            Journal::recover(&disk.reboot(loss).shared(), Path::new(PATH), Options::default(), &mut |_, b| {
                found.extend(b.records().map(<[u8]>::to_vec));
                Ok(())
            })
            .unwrap();
            for record in &acknowledged {
                assert!(found.contains(record), "cut {cut}, {loss:?}: an acknowledged record is gone");
            }
            for thread in 0..THREADS {
                let mine: Vec<_> = found.iter().filter(|r| r[0] / 16 == thread).collect();
                for (n, record) in mine.iter().enumerate() {
                    let expected = vec![thread * 16 + n as u8; 1 + 97 * n];
                    assert!(**record == expected, "cut {cut}, {loss:?}: thread {thread} out of order or torn");
                }
            }
        }
        if acknowledged.len() == usize::from(THREADS * EACH) {
            let counts = disk.counts();
            assert_eq!(counts.syncs, 1 + u64::from(EACH), "one for the header, one a round: {counts:?}");
            break;
        }
    }
}
