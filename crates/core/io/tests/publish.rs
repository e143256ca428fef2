//! A published file is old or new, never half; of racing creators exactly one wins.

use std::path::Path;
use std::sync::{Arc, Barrier};
use trawl_io::fault::{Failure, Fault, FaultFs, Loss};
use trawl_io::{AtomicFile, Fs, Mode, Outcome, RealFs, is_temp_name, publish, publish_new, remove_leftovers};

fn contents(seed: u8) -> Vec<u8> {
    (0..300_000u32).map(|i| (i as u8).wrapping_mul(seed)).collect()
}

#[test]
fn every_cut_leaves_old_or_new() {
    let path = Path::new("/dir/file");
    let (old, new) = (contents(3), contents(5));
    for cut in 0.. {
        let disk = FaultFs::new();
        let fs = disk.shared();
        trawl_io::create_dir_all_synced(&*fs, Path::new("/dir")).unwrap();
        publish(&fs, path, &old).unwrap();
        disk.cut_after(cut);
        let result = publish(&fs, path, &new);
        for loss in Loss::variants(40) {
            let after = disk.reboot(loss).shared();
            let found = after.read(path, u64::MAX).unwrap();
            assert!(found == new || (result.is_err() && found == old), "cut {cut}, {loss:?}: half a file");
            remove_leftovers(&*after, Path::new("/dir")).unwrap();
            assert_eq!(after.list(Path::new("/dir")).unwrap().len(), 1);
        }
        if result.is_ok() {
            assert!(cut >= 5, "create, two writes, sync, rename and sync of the directory: {cut}");
            break;
        }
    }
}

#[test]
fn every_cut_leaves_nothing_or_the_whole_new_file() {
    let path = Path::new("/7.json");
    let new = contents(5);
    for cut in 0.. {
        let disk = FaultFs::new();
        let fs = disk.shared();
        disk.cut_after(cut);
        let result = publish_new(&fs, path, &new);
        for loss in Loss::variants(40) {
            let after = disk.reboot(loss).shared();
            match after.read(path, u64::MAX) {
                Ok(found) => assert!(found == new, "cut {cut}, {loss:?}: half a file"),
                Err(e) => assert!(e.is_not_found() && result.is_err(), "cut {cut}, {loss:?}: {e}"),
            }
        }
        if result.is_ok() {
            break;
        }
    }
}

#[test]
fn what_a_loser_saw_survives() {
    // The winner renamed and lost power before its own directory sync; a loser on the same disk has seen the file.
    let disk = FaultFs::new();
    let fs = disk.shared();
    disk.fail(Fault::new(Failure::Io).on(trawl_io::Op::SyncDir));
    assert!(publish_new(&fs, Path::new("/1"), b"winner").is_err());
    // The failed sync dropped the name change from what later syncs cover, so only the contents are compared here.
    assert_eq!(publish_new(&fs, Path::new("/1"), b"loser").unwrap(), Outcome::Lost);
    assert_eq!(fs.read(Path::new("/1"), 99).unwrap(), b"winner");
    assert_eq!(disk.counts().dir_syncs, 2, "the loser syncs too");
}

#[test]
fn each_failure_leaves_the_old_file_and_no_temporary_one() {
    for fault in 0..6 {
        let disk = FaultFs::new();
        let fs = disk.shared();
        publish(&fs, Path::new("/f"), b"old").unwrap();
        disk.fail(Fault::new(Failure::NoSpace).after(fault).keeping(1));
        let result = publish(&fs, Path::new("/f"), &contents(3));
        let names: Vec<_> = fs.list(Path::new("/")).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["f"], "fault {fault}");
        let found = fs.read(Path::new("/f"), u64::MAX).unwrap();
        assert!(if found == b"old" { result.is_err() } else { found == contents(3) }, "fault {fault}");
    }
}

#[test]
fn racing_creators_have_exactly_one_winner() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 150;
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let barrier = Barrier::new(THREADS);
    let wins: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (fs, barrier, dir) = (&fs, &barrier, dir.path());
                scope.spawn(move || {
                    let mut wins = Vec::new();
                    for round in 0..ROUNDS {
                        let path = dir.join(format!("{round}.json"));
                        let text = format!("{thread} ").repeat(1000);
                        barrier.wait();
                        if publish_new(fs, &path, text.as_bytes()).unwrap() == Outcome::Won {
                            wins.push(round);
                        }
                    }
                    wins
                })
            })
            .collect();
        racers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    for round in 0..ROUNDS {
        let winners: Vec<_> = (0..THREADS).filter(|&t| wins[t].contains(&round)).collect();
        assert_eq!(winners.len(), 1, "round {round}: winners {winners:?}");
        let text = std::fs::read_to_string(dir.path().join(format!("{round}.json"))).unwrap();
        assert_eq!(text, format!("{} ", winners[0]).repeat(1000), "round {round}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), ROUNDS, "no temporary file is left");
}

#[test]
fn leftovers_of_the_dead_go_and_the_living_stay() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let mut living = AtomicFile::create(&fs, &dir.path().join("living")).unwrap();
    living.put(b"still writing").unwrap();
    // As a killed process leaves it: there, and locked by nobody.
    let dead = dir.path().join(".tmp-1-0-dead");
    std::fs::write(&dead, b"half").unwrap();
    std::fs::write(dir.path().join("tmp-file"), b"a user's").unwrap();
    assert!(is_temp_name(living.temp_path().file_name().unwrap()));
    assert_eq!(remove_leftovers(&*fs, dir.path()).unwrap(), [dead]);
    living.publish().unwrap();
    assert_eq!(fs.read(&dir.path().join("living"), 99).unwrap(), b"still writing");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn long_names_and_bare_names_work() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let long = dir.path().join("é".repeat(127));
    publish(&fs, &long, b"x").unwrap();
    assert_eq!(fs.read(&long, 9).unwrap(), b"x");
    let disk = FaultFs::new().shared();
    publish(&disk, Path::new("bare"), b"y").unwrap();
    assert_eq!(disk.open(Path::new("bare"), Mode::Read).unwrap().len().unwrap(), 1);
    assert!(publish(&fs, Path::new("/"), b"").is_err());
}
