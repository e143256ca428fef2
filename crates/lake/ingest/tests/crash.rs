//! The power goes at every step of an ingest: afterwards the dataset is as before or as after, whole.

mod common;

use common::{file, lake_on, settings, take, urls};
use std::sync::Arc;
use trawl_io::fault::{Failure, Fault, FaultFs, Loss};
use trawl_io::{Fs, Op};
use trawl_store::{DirStore, Lake};

const FIRST: &str = "http://a.com/1\nhttp://b.com/1\n";
const SECOND: &str = "http://a.com/2\nhttp://c.com/2\nnot a url:\n";
const BEFORE: [&str; 2] = ["http://a.com/1", "http://b.com/1"];
const AFTER: [&str; 4] = ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/2"];

fn open(fs: &Arc<dyn Fs>) -> Lake {
    Lake::open(Arc::new(DirStore::with_fs(fs.clone(), "lake"))).unwrap()
}

/// A disk with a lake that holds `FIRST`; sources and temporary files live on another.
fn base() -> FaultFs {
    let fs = FaultFs::new();
    let lake = lake_on(&fs.shared());
    let other = FaultFs::new().shared();
    take(&lake, vec![file(&other, "first.txt", FIRST)], &settings(&other, "w1")).unwrap();
    fs.reboot(Loss::None)
}

fn ingest_second(fs: &Arc<dyn Fs>, writer: &str) -> trawl_ingest::Result<Option<u64>> {
    let other = FaultFs::new().shared();
    let lake = Lake::open(Arc::new(DirStore::with_fs(fs.clone(), "lake")))?;
    let report = take(&lake, vec![file(&other, "second.txt", SECOND)], &settings(&other, writer))?;
    Ok(report.commit)
}

fn sorted_urls(lake: &Lake) -> Vec<String> {
    let mut found = urls(lake); // reads every file whole and checks its hash
    found.sort();
    found
}

fn torn(seed: u64, unit: usize) -> Loss {
    Loss::Torn { seed, unit }
}

#[test]
fn a_cut_at_any_step_leaves_the_old_state_or_the_new_one() {
    let base = base();
    let mut ends = [0; 2];
    for step in 0.. {
        let disk = base.reboot(Loss::None);
        disk.cut_after(step);
        let done = ingest_second(&disk.shared(), "w2");
        let finished = !disk.is_cut();
        for loss in [Loss::All, Loss::None, torn(step, 512), torn(step + 1000, 1)] {
            let after = disk.reboot(loss);
            let found = sorted_urls(&open(&after.shared()));
            let new = found == AFTER;
            assert!(new || found == BEFORE, "step {step}, {loss:?}: {found:?}");
            if matches!(done, Ok(Some(_))) {
                assert!(new, "step {step}, {loss:?}: reported as done and lost");
            }
            ends[usize::from(new)] += 1;
            // Whatever happened, the same ingest again ends in the same state.
            ingest_second(&after.shared(), "w3").unwrap();
            assert_eq!(sorted_urls(&open(&after.shared())), AFTER, "step {step}, {loss:?}: again");
        }
        if finished {
            done.unwrap();
            break;
        }
    }
    assert!(ends[0] > 20 && ends[1] > 3, "both states were seen: {ends:?}");
}

#[test]
fn a_failing_operation_leaves_the_old_state_or_the_new_one() {
    let base = base();
    for op in [Op::Create, Op::Write, Op::Sync, Op::SyncDir, Op::Rename, Op::CreateDir] {
        // A writer lives through some faults; after so many in a row that change nothing, none is left to fail.
        let (mut skip, mut unharmed) = (0, 0);
        while unharmed < 8 {
            let disk = base.reboot(Loss::None);
            disk.fail(Fault::new(Failure::NoSpace).on(op).after(skip));
            let done = ingest_second(&disk.shared(), "w2");
            disk.heal();
            if done.is_ok() {
                let cut = disk.reboot(Loss::All);
                assert_eq!(sorted_urls(&open(&cut.shared())), AFTER, "{op} after {skip}: reported as done and lost");
            }
            let found = sorted_urls(&open(&disk.shared()));
            assert!(found == AFTER || found == BEFORE, "{op} after {skip}: {found:?}");
            if done.is_ok() {
                assert_eq!(found, AFTER);
            }
            ingest_second(&disk.shared(), "w3").unwrap();
            assert_eq!(sorted_urls(&open(&disk.shared())), AFTER, "{op} after {skip}: again");
            skip += 1;
            unharmed = if done.is_ok() { unharmed + 1 } else { 0 };
        }
    }
}

#[test]
fn a_failed_ingest_removes_what_it_wrote() {
    let disk = base().reboot(Loss::None);
    let files = |fs: &Arc<dyn Fs>| {
        let store = open(fs).store().list("urls").unwrap();
        store.into_iter().map(|l| l.path).filter(|p| p.contains("-w2-") || p.contains("/w2.")).collect::<Vec<_>>()
    };
    // The rejects file is the last thing written before the commit.
    let renames = |n| Fault::new(Failure::Io).on(Op::Rename).after(n);
    disk.fail(renames(2));
    assert!(ingest_second(&disk.shared(), "w2").is_err());
    disk.heal();
    assert_eq!(files(&disk.shared()), Vec::<String>::new());
    assert!(open(&disk.shared()).heartbeats().unwrap().is_empty());
}
