//! What others do while a lake is verified.

use super::*;
use clap::FromArgMatches;
use std::sync::Arc;
use trawl_store::{CountingStore, DirStore};

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
    let args = VerifyArgs { lake: LakeArg { lake: dir.into() }, index_only: false };
    verify(lake, manifest, &args, &mut Output::new(true, true)).unwrap()
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
