//! What others do while a lake is verified.

#[path = "../../../../../lake/store/tests/doubles/mod.rs"]
mod doubles;

use super::*;
use clap::FromArgMatches;
use doubles::CountingStore;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use trawl_io::fault::{FaultFs, Loss, Stepped};
use trawl_io::{Fs, Op, RealFs};
use trawl_maintain::GcSettings;
use trawl_model::UnixMillis;
use trawl_store::{DirStore, layout};
use trawl_url::SuffixList;

fn trawl(args: &[&str]) -> Status {
    let args = ["trawl", "--quiet"].iter().chain(args);
    let matches = crate::cli::command().try_get_matches_from(args).unwrap();
    let cli = crate::cli::Cli::from_arg_matches(&matches).unwrap();
    crate::commands::run(cli, crate::cli::command()).unwrap()
}

/// A directory with a lake of `datasets` datasets of two commits each.
fn new_lake(datasets: usize) -> (tempfile::TempDir, String) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("lake").to_string_lossy().into_owned();
    for dataset in 0..datasets {
        for part in 0..2 {
            let file = temp.path().join(format!("{dataset}-{part}.txt"));
            std::fs::write(&file, format!("https://h{dataset}.org/{part}\nhttps://x.org/{part}\n")).unwrap();
            let name = format!("d{dataset}");
            let done = trawl(&["lake", "ingest", "--lake", &dir, "--dataset", &name, &file.to_string_lossy()]);
            assert_eq!(done, Status::Done);
        }
    }
    (temp, dir)
}

/// What verify says of the lake that began with `manifest`.
fn says(dir: &str, lake: &Lake, manifest: &Manifest) -> Status {
    let args = VerifyArgs { lake: LakeArg { lake: dir.into() }, index_only: false, max_read: None };
    verify(lake, manifest, &args, &mut Output::new(crate::output::Form::Json, true, false)).unwrap()
}

const COLLECT: [&str; 8] = ["gc", "--keep-versions", "1", "--keep-states", "1", "--grace", "0s", "--yes"];

#[test]
fn what_was_collected_meanwhile_is_no_fault_and_what_is_missed_is() {
    let short = "com\norg\n";
    let steps: [(&str, &[&[&str]]); 4] = [
        ("compact", &[&["compact", "--full"]]),
        ("drop", &[&["drop", "d0", "--yes"]]),
        ("list", &[&["rebuild", "--psl", "LIST"]]),
        ("deny", &[&["deny", "add", "--url", "https://h1.org/0"], &["purge", "--yes"]]),
    ];
    for (name, commands) in steps {
        let (temp, dir) = new_lake(2);
        let list = temp.path().join("list.dat").to_string_lossy().into_owned();
        std::fs::write(&list, short).unwrap();
        let lake = lake_dir::open(dir.as_ref()).unwrap();
        let began = lake.current().unwrap();
        for command in commands.iter().copied().chain([&COLLECT[..]]) {
            let mut args = vec!["lake"];
            args.extend(command.iter().map(|arg| if *arg == "LIST" { list.as_str() } else { arg }));
            args.extend(["--lake", &dir]);
            assert_eq!(trawl(&args), Status::Done, "{args:?}");
        }
        assert_eq!(says(&dir, &lake, &began), Status::Done, "{name}");
        // A file that the lake does need is missed, whichever manifest verify began with.
        let newest = lake.dataset_newest(2).unwrap().unwrap();
        lake.store().delete(&newest.files[0].path).unwrap();
        assert_eq!(says(&dir, &lake, &began), Status::Findings, "{name}");
    }
}

#[test]
fn a_segment_that_is_lost_is_missed() {
    let (_temp, dir) = new_lake(1);
    let lake = lake_dir::open(dir.as_ref()).unwrap();
    let began = lake.current().unwrap();
    trawl(&["lake", "deny", "add", "--lake", &dir, "--url", "https://nobody.org/"]);
    let segment = &began.current().unwrap().segments[0].id;
    lake.store().delete(&layout::segment_file(segment, "counts.bin").unwrap()).unwrap();
    assert_eq!(says(&dir, &lake, &began), Status::Findings);
}

#[test]
fn the_suffix_list_is_read_once_for_all_datasets() {
    let list = SuffixList::builtin().text().len() as u64;
    let bytes_read = |datasets| {
        let (_temp, dir) = new_lake(datasets);
        let store = Arc::new(CountingStore::new(Arc::new(DirStore::new(&dir))));
        let lake = Lake::open(store.clone()).unwrap();
        let manifest = lake.current().unwrap();
        store.take();
        assert_eq!(says(&dir, &lake, &manifest), Status::Done);
        store.take().bytes_read
    };
    let (one, four) = (bytes_read(1), bytes_read(4));
    assert!(one > 2 * list && four - one < list, "{list} a list, {one} for one dataset, {four} for four");
}

/// The lake in `dir`, on a disk of its own.
fn load(dir: &Path) -> FaultFs {
    fn copy(from: &Path, to: &Path, disk: &Arc<dyn Fs>) {
        disk.create_dir_all(to).unwrap();
        for entry in RealFs.list(from).unwrap() {
            let (from, to) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_dir {
                copy(&from, &to, disk);
            } else {
                trawl_io::publish(disk, &to, &RealFs.read(&from, 1 << 30).unwrap()).unwrap();
            }
        }
    }
    let fs = FaultFs::new();
    copy(dir, Path::new("lake"), &fs.shared());
    fs
}

/// Frames of a collection that spares nothing: one for everything that others can see.
fn film_of_gc(fs: &FaultFs, frames: &mut Vec<FaultFs>) {
    let (live, shots, changed) = (fs.clone(), Arc::new(Mutex::new(Vec::new())), Mutex::new(false));
    let taken = shots.clone();
    let stepped = Stepped::new(move |op, _| {
        if std::mem::replace(&mut *changed.lock().unwrap(), matches!(op, Op::Rename | Op::Remove)) {
            taken.lock().unwrap().push(live.reboot(Loss::None));
        }
        live.shared()
    });
    let lake = Lake::open(Arc::new(DirStore::with_fs(Arc::new(stepped), "lake"))).unwrap();
    let settings = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") };
    let now = UnixMillis(crate::system::now().0 + 1);
    trawl_maintain::collect(&lake, now, &settings).unwrap();
    frames.append(&mut shots.lock().unwrap());
    frames.push(fs.reboot(Loss::None));
}

#[test]
fn whoever_writes_and_collects_at_whichever_step_leaves_no_fault() {
    let (temp, dir) = new_lake(2);
    let list = temp.path().join("list.dat").to_string_lossy().into_owned();
    std::fs::write(&list, "com\norg\n").unwrap();
    let more = temp.path().join("more.txt").to_string_lossy().into_owned();
    std::fs::write(&more, "https://h1.org/more\n").unwrap();
    let commands: [&[&str]; 6] = [
        &["compact", "--full"],
        &["deny", "add", "--url", "https://h1.org/0"],
        &["purge", "--yes"],
        &["ingest", "--dataset", "d1", &more],
        &["rebuild", "--psl", &list],
        &["drop", "d0", "--yes"],
    ];
    let mut plain = vec![load(dir.as_ref())];
    let mut histories = Vec::new();
    for command in commands {
        let args: Vec<&str> = ["lake"].into_iter().chain(command.iter().copied()).chain(["--lake", &dir]).collect();
        assert_eq!(trawl(&args), Status::Done, "{args:?}");
        plain.push(load(dir.as_ref()));
        // One history for everybody who collects now: the next command does not know of it.
        let mut history = plain.clone();
        film_of_gc(&load(dir.as_ref()), &mut history);
        histories.push(history);
    }
    let run = |history: &[FaultFs], plan: &[(u64, usize)]| {
        let (count, plan, disks) = (AtomicU64::new(0), plan.to_vec(), history.to_vec());
        let stepped = Stepped::new(move |_, _| {
            let step = count.fetch_add(1, Ordering::Relaxed);
            disks[plan.iter().rev().find(|(from, _)| *from <= step).unwrap().1].shared()
        });
        let lake = Lake::open(Arc::new(DirStore::with_fs(Arc::new(stepped), "lake"))).unwrap();
        let manifest = lake.current().unwrap();
        says(&dir, &lake, &manifest)
    };
    let mut dice = 7u64;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    let rounds = std::env::var("LAKE_INTERLEAVE").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    for history in &histories {
        for _ in 0..rounds {
            let from = roll(history.len() as u64 - 1);
            let to = (from + 1 + roll(history.len() as u64 - 1 - from)) as usize;
            let plan = [(0, from as usize), (roll(200), to)];
            assert_eq!(run(history, &plan), Status::Done, "{plan:?} of {} frames", history.len());
        }
    }
}
