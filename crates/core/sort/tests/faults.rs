//! Failing disks, damaged files and dead processes.

use std::path::Path;
use trawl_io::fault::{Failure, Fault, FaultFs, Loss};
use trawl_io::{Advice, Fs, Mode, Op};
use trawl_sort::{Error, Result, Sorted, Sorter, clean_leftovers};

const RECORDS: u32 = 30_000;

fn push_all(disk: &FaultFs) -> Result<Sorter> {
    let mut sorter = Sorter::builder("/tmp").fs(disk.shared()).memory_bytes(3 << 19).max_fan_in(4).build()?;
    for n in 0..RECORDS {
        sorter.push(format!("key {:09}", n.wrapping_mul(2_654_435_761)).as_bytes(), &n.to_be_bytes().repeat(8))?;
    }
    Ok(sorter)
}

fn drain(mut sorted: Sorted) -> Result<u64> {
    let mut n = 0;
    let mut last = Vec::new();
    while let Some(record) = sorted.next_record()? {
        assert!(last.as_slice() <= record.key);
        last.clear();
        last.extend_from_slice(record.key);
        n += 1;
    }
    Ok(n)
}

fn sort(disk: &FaultFs) -> Result<u64> {
    drain(push_all(disk)?.finish()?)
}

fn disk() -> FaultFs {
    let disk = FaultFs::new();
    disk.create_dir(Path::new("/tmp")).unwrap();
    disk
}

#[test]
fn every_failing_operation_is_an_error_that_leaves_nothing() {
    let clean = disk();
    assert_eq!(sort(&clean).unwrap(), u64::from(RECORDS));
    assert!(clean.files().is_empty());
    let ops = clean.counts().ops;
    assert!(ops > 40, "{ops} operations");
    let mut failed = 0;
    // Every one of the first and last operations, and some between: they are all alike.
    for at in (0..ops).filter(|&n| n < 20 || n + 20 > ops || n % 11 == 0) {
        let disk = disk();
        disk.fail(Fault::new(if at % 2 == 0 { Failure::Io } else { Failure::NoSpace }).after(at).keeping(100));
        match sort(&disk) {
            Ok(n) => assert_eq!(n, u64::from(RECORDS), "operation {at} failed unnoticed"),
            Err(e) => {
                failed += 1;
                assert_eq!(e.advice(), Advice::Stop, "{e}");
                assert!(e.to_string().contains(" /tmp/trawl-sort-"), "the file is named: {e}");
            }
        }
        // If it was a removal that failed, the leftover is recognised.
        clean_leftovers(&disk, Path::new("/tmp")).unwrap();
        assert!(disk.files().is_empty(), "operation {at} left {:?}", disk.files().keys());
        assert!(disk.list(Path::new("/tmp")).unwrap().is_empty());
    }
    assert!(failed > 30, "{failed} of the faults were met");
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let disk = disk();
    disk.set_capacity(300_000);
    let err = sort(&disk).unwrap_err();
    assert!(err.to_string().contains("No space left"), "{err}");
    assert!(err.to_string().contains("/run-"), "{err}");
    assert!(disk.files().is_empty() && disk.list(Path::new("/tmp")).unwrap().is_empty());
}

#[test]
fn after_a_failure_every_call_fails() {
    let disk = disk();
    let mut sorter = Sorter::builder("/tmp").fs(disk.shared()).memory_bytes(2 << 20).build().unwrap();
    disk.fail(Fault::new(Failure::Io).on(Op::Write).after(3));
    let value = [7; 100];
    let mut met = None;
    for n in 0..200_000u32 {
        if let Err(e) = sorter.push(&n.to_be_bytes(), &value) {
            met = Some(e);
            break;
        }
    }
    assert!(matches!(met, Some(Error::Io(_))), "{met:?}");
    assert!(matches!(sorter.finish(), Err(Error::Failed)));
    assert!(disk.files().is_empty());
}

#[test]
fn failing_reads_are_errors() {
    let reads = {
        let disk = disk();
        sort(&disk).unwrap();
        disk.counts().reads
    };
    for at in (0..reads).step_by(29) {
        let disk = disk();
        disk.fail(Fault::new(Failure::Io).on(Op::Read).after(at));
        let err = sort(&disk).unwrap_err();
        assert!(err.to_string().contains("/run-") && err.to_string().contains("Input/output"), "{err}");
        assert!(disk.files().is_empty());
    }
}

#[test]
fn damage_to_a_run_is_found() {
    for at in 0..40 {
        let disk = disk();
        let sorter = push_all(&disk).unwrap();
        let files = disk.files();
        let (path, bytes) =
            files.iter().find(|(p, b)| p.to_str().unwrap().contains("/run-") && b.len() > 1000).unwrap();
        // The head byte by byte, then all over the file.
        let offset = if at < 20 { at } else { bytes.len() * (at - 19) / 22 };
        let file = disk.open(path, Mode::Write).unwrap();
        file.write_at(offset as u64, &[bytes[offset] ^ 0x40]).unwrap();
        let err = sorter.finish().and_then(drain).unwrap_err();
        assert!(err.to_string().starts_with(&format!("sort: {}@", path.display())), "byte {offset}: {err}");
        drop(file);
        assert!(disk.files().is_empty());
    }
}

#[test]
fn leftovers_of_the_dead_go_and_the_living_stay() {
    let disk = disk();
    let sorter = push_all(&disk).unwrap();
    let lock = disk.files().into_iter().find(|(p, _)| p.extension().is_some_and(|e| e == "lock")).unwrap();
    assert_eq!(lock.1, b"trawl sort");
    assert!(clean_leftovers(&disk, Path::new("/tmp")).unwrap().is_empty(), "its sorter lives");
    for loss in Loss::variants(50) {
        let found = disk.reboot(loss);
        if !found.exists(Path::new("/tmp")).unwrap() {
            continue;
        }
        drop(found.open(Path::new("/tmp/other"), Mode::CreateNew).unwrap());
        let removed = clean_leftovers(&found, Path::new("/tmp")).unwrap();
        assert!(removed.len() <= 1);
        if loss == Loss::None {
            assert_eq!(removed, [lock.0.with_extension("")]);
        }
        let left: Vec<_> = found.list(Path::new("/tmp")).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(left, ["other"], "{loss:?}");
    }
    assert_eq!(drain(sorter.finish().unwrap()).unwrap(), u64::from(RECORDS));
    assert!(disk.files().is_empty());
}

#[test]
fn a_sorter_dropped_early_cleans_up() {
    let disk = disk();
    drop(push_all(&disk).unwrap());
    assert!(disk.files().is_empty());
    let mut sorted = push_all(&disk).unwrap().finish().unwrap();
    sorted.next_record().unwrap();
    drop(sorted);
    assert!(disk.files().is_empty() && disk.list(Path::new("/tmp")).unwrap().is_empty());
}
