//! The answer to a write gets lost, at every write of everything that changes a lake.
//!
//! Each act is done on a fresh copy of the lake and, if it says that it failed, done again, as its user would. Afterwards
//! the lake is as if no answer had been lost, and every file is there that a commit names.

use crate::doubles::{Lost, LostAnswers};
use crate::world::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_index::Compaction;
use trawl_ingest::Mode;
use trawl_io::fault::{FaultFs, Loss};
use trawl_store::manifest::DenyTarget;
use trawl_store::{DatasetInfo, Lake, layout};
use trawl_url::SuffixList;

const WAYS: [Lost; 4] = [Lost::Error, Lost::Timeout, Lost::Resent, Lost::Unreadable];

type Act<'a> = &'a dyn Fn(&Disk, &str) -> Outcome;

/// What must be the same. Numbers of commits, writers and times may differ; so may the id of a dataset that was withdrawn and
/// made again.
#[derive(Debug, PartialEq)]
struct Facts {
    answers: BTreeMap<String, String>,
    denied: Vec<DenyTarget>,
    /// Of each dataset that is not dropped, by its name.
    datasets: BTreeMap<String, Held>,
}

#[derive(Debug, PartialEq)]
struct Held {
    rows: Vec<String>,
    /// Lines of its rejects.
    rejects: Vec<String>,
}

fn facts(store: &Disk) -> Facts {
    let manifest = lake(store).unwrap().current().unwrap();
    let State { mut answers, mut rows } = state(store);
    let mut datasets = BTreeMap::new();
    for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
        let (id, name) = (dataset.id, &dataset.info.name);
        let numbered = format!("\"dataset_id\":{id},");
        answers.values_mut().for_each(|text| *text = text.replace(&numbered, &format!("\"dataset_id\":{name:?},")));
        let mut rejects = Vec::new();
        for file in store.list(&layout::rejects_dir(id)).unwrap() {
            let text = store.get(&file.path, 1 << 20).unwrap();
            rejects.extend(std::str::from_utf8(&text).unwrap().lines().map(str::to_owned));
        }
        rejects.sort();
        datasets.insert(name.clone(), Held { rows: rows.remove(&id).unwrap_or_default(), rejects });
    }
    Facts { answers, denied: denied(store), datasets }
}

/// What `trawl lake verify` looks at: no fault anywhere.
fn assert_sound(store: &Disk, what: &str) {
    let lake = lake(store).unwrap();
    let manifest = lake.current().unwrap();
    let mut faults = Vec::new();
    trawl_maintain::verify_states(&lake, &manifest, &mut |fault| faults.push(fault.to_string())).unwrap();
    let list = lake.suffix_list(&manifest).unwrap();
    let suffixes = SuffixList::parse(std::str::from_utf8(&list).unwrap()).unwrap();
    for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
        if let Some(newest) = lake.dataset_newest(dataset.id).unwrap() {
            let fault = &mut |fault: trawl_store::Fault| faults.push(fault.to_string());
            trawl_rows::verify_dataset(&**store, &newest, &suffixes, fault).unwrap();
        }
    }
    for version in &manifest.versions {
        for (dataset, number) in version.commits.iter() {
            let commit = lake.dataset_commit(*dataset, *number).unwrap();
            let commit = commit.unwrap_or_else(|| panic!("{what}: commit {number} of dataset {dataset} is gone"));
            let fault = &mut |fault: trawl_store::Fault| faults.push(fault.to_string());
            trawl_maintain::verify_files(&**store, &commit.files, fault).unwrap();
        }
        for segment in &version.segments {
            trawl_index::verify_segment(store, segment, &mut |fault| faults.push(fault.to_string())).unwrap();
        }
    }
    assert_eq!(faults, [""; 0], "{what}");
}

/// Loses the answers to the writes in `plan`; the act is repeated once for each.
fn lose(base: &FaultFs, act: Act<'_>, plan: &[(u64, Lost)], expected: &Facts) {
    let what = format!("{plan:?}");
    let store = disk(&base.reboot(Loss::None));
    let losing: Disk = Arc::new(LostAnswers::new(store.clone(), plan.iter().copied()));
    let mut told = Vec::new();
    while let Err(error) = act(&losing, &format!("r{}", told.len())) {
        told.push(error);
        assert!(told.len() <= plan.len(), "{what}: {told:#?}");
        // A collector may come before its user does, and take the writer for dead.
        if plan.iter().all(|(step, _)| step % 2 == 0) && lake(&store).is_ok() {
            collect(&store, &format!("g{}", told.len()), LATER).unwrap();
        }
    }
    let what = format!("{what}, after {told:?}");
    assert_sound(&store, &what);
    assert_eq!(&facts(&store), expected, "{what}");
    // Files of a commit whose fate was not known are nobody's once their writer is given up.
    collect(&store, "gc1", LATER).unwrap();
    collect(&store, "gc2", MUCH_LATER).unwrap();
    assert_eq!(&facts(&store), expected, "{what}: collected");
    assert_sound(&store, &what);
}

/// The lake after `act`, and how many writes that took.
fn done(base: &FaultFs, act: Act<'_>) -> (Facts, u64) {
    let store = disk(&base.reboot(Loss::None));
    let counting = Arc::new(LostAnswers::new(store.clone(), []));
    act(&(counting.clone() as Disk), "clean").unwrap();
    assert_sound(&store, "clean");
    (facts(&store), counting.writes())
}

fn lose_each(base: &FaultFs, act: Act<'_>) {
    let (expected, writes) = done(base, act);
    assert!(writes > 0, "it writes");
    for (step, way) in (0..writes).flat_map(|step| WAYS.map(|way| (step, way))) {
        lose(base, act, &[(step, way)], &expected);
    }
}

/// Two answers are lost; the second one may be one to the repeated act.
fn lose_two(base: &FaultFs, act: Act<'_>) {
    let (expected, writes) = done(base, act);
    for first in 0..writes {
        for second in first + 1..first + writes + 1 {
            // To a writer a timeout is an error like any other.
            for (one, two) in WAYS[1..].iter().flat_map(|one| WAYS[1..].iter().map(|two| (*one, *two))) {
                lose(base, act, &[(first, one), (second, two)], &expected);
            }
        }
    }
}

const NEW: [&str; 4] = ["http://new.com/1", "http://one.com/1", "http://one.com/7", "no url"];

/// As `trawl lake ingest` does it: makes the dataset, fills it, and publishes; a dataset that was made for nothing goes.
fn add(store: &Disk, writer: &str, name: &str, mode: Mode) -> Outcome {
    let text = |error: trawl_store::Error| error.to_string();
    let lake = lake(store)?;
    let committed = lake
        .commit(NOW, writer, |manifest| {
            let is_new = manifest.dataset_named(name).is_none();
            Ok((manifest.register(NOW, DatasetInfo::named(name))?, is_new))
        })
        .map_err(text)?;
    let (id, is_new) = committed.value;
    // A replacement that is repeated rejects the same again.
    let urls = if mode == Mode::Replace { &NEW[..3] } else { &NEW };
    let taken = ingest(store, writer, id, mode, "day 2", urls);
    if taken.is_err() && is_new {
        let _ = lake.withdraw_dataset(NOW, writer, id);
    }
    taken?;
    lake.reinstate_dataset(NOW, writer, committed.manifest.dataset(id).unwrap()).map_err(text)?;
    publish(store, &format!("p{writer}"))
}

/// As `trawl lake ingest` does it where there is no lake yet.
fn make_and_add(store: &Disk, writer: &str) -> Outcome {
    if store.list(layout::MANIFESTS).unwrap().is_empty() {
        match Lake::init(store.clone(), NOW, writer, b"com\norg\n") {
            Err(trawl_store::Error::AlreadyALake { .. }) => {}
            made => drop(made.map_err(|e| e.to_string())?),
        }
    }
    add(store, writer, "first", Mode::Append)
}

#[test]
fn ingest_into_a_new_lake() {
    lose_each(&FaultFs::new(), &make_and_add);
}

#[test]
fn ingest_into_a_new_dataset() {
    lose_each(&base(), &|store, writer| add(store, writer, "new", Mode::Append));
}

#[test]
fn ingest_into_a_dataset() {
    lose_each(&base(), &|store, writer| add(store, writer, "a", Mode::Append));
}

#[test]
fn ingest_in_the_place_of_what_there_is() {
    lose_each(&base(), &|store, writer| add(store, writer, "b", Mode::Replace));
}

#[test]
fn two_answers_to_an_ingest() {
    lose_two(&base(), &|store, writer| ingest(store, writer, 1, Mode::Append, "day 2", &NEW));
}

#[test]
fn publish_that_merges_segments() {
    let fs = base();
    let store = disk(&fs);
    for n in 0..5 {
        let (writer, url) = (format!("m{n}"), format!("http://more.com/{n}"));
        ingest(&store, &writer, 2, Mode::Append, &writer, &[&url]).unwrap();
        if n < 4 {
            publish(&store, &format!("p{writer}")).unwrap();
        }
    }
    lose_each(&fs.reboot(Loss::None), &publish);
}

#[test]
fn compaction() {
    lose_each(&base(), &|store, writer| {
        compact_files(store, writer, 1)?;
        publish(store, &format!("p{writer}"))?;
        compact(store, &format!("c{writer}"))
    });
}

/// Takes the rows out of the files and their names out of the index, as `trawl lake purge` and `drop` do.
fn masked(store: &Disk, writer: &str) -> Outcome {
    publish(store, &format!("p{writer}"))?;
    while compact_how(store, &format!("c{writer}"), Compaction::Masked)? {}
    Ok(())
}

#[test]
fn purge_of_rows_and_rejects() {
    let fs = base();
    let bad = ["http://all.org/bad2", "bad", "worse"];
    ingest(&disk(&fs), "w6", 2, Mode::Append, "rejected", &bad).unwrap();
    lose_each(&fs.reboot(Loss::None), &|store, writer| {
        purge(store, writer, 2, "bad")?;
        purge_rejects(store, writer, 2, "\"bad\"")?;
        masked(store, writer)
    });
}

#[test]
fn drop_of_a_dataset() {
    lose_each(&base(), &|store, writer| {
        drop_dataset(store, writer, 1)?;
        masked(store, writer)
    });
}

#[test]
fn two_answers_to_a_drop() {
    lose_two(&base(), &|store, writer| drop_dataset(store, writer, 1));
}

#[test]
fn denials() {
    let (url, deny_it) =
        ("http://all.org/bad", |store: &Disk, writer: &str| deny(store, writer, "http://all.org/bad", true));
    let fs = base();
    lose_each(&fs, &deny_it);
    lose_two(&fs, &deny_it);
    deny(&disk(&fs), "w6", url, true).unwrap();
    let (fs, allow) = (fs.reboot(Loss::None), |store: &Disk, writer: &str| deny(store, writer, url, false));
    lose_each(&fs, &allow);
    lose_two(&fs, &allow);
}

#[test]
fn change_of_a_dataset() {
    let rename = |store: &Disk, writer: &str| {
        let renamed = lake(store)?.set_dataset(NOW, writer, 1, |info| info.name = "renamed".into());
        renamed.map(|_| ()).map_err(|e| e.to_string())
    };
    lose_each(&base(), &rename);
    lose_two(&base(), &rename);
}

#[test]
fn rebuild_of_the_index() {
    lose_each(&base(), &rebuild);
}

#[test]
fn rebuild_under_another_list() {
    lose_each(&base(), &|store, writer| rebuild_under(store, writer, "com\norg\nall.org\n"));
}

/// As `trawl lake rebuild` does it after `index/` was lost, with a deny list.
#[test]
fn rebuild_of_a_lost_index() {
    let fs = base();
    let store = disk(&fs);
    deny(&store, "w6", "http://all.org/bad", true).unwrap();
    for object in store.list("index").unwrap() {
        store.delete(&object.path).unwrap();
    }
    lose_each(&fs.reboot(Loss::None), &|store, writer| {
        if store.list(layout::MANIFESTS).unwrap().is_empty() {
            let remains = trawl_maintain::remains(&**store).map_err(|e| e.to_string())?;
            let restored = trawl_maintain::restore(store.clone(), NOW, writer, b"com\norg\n", &remains);
            restored.map_err(|e| e.to_string())?;
        }
        rebuild(store, &format!("b{writer}"))
    });
}

#[test]
fn collection() {
    lose_each(&base(), &|store, writer| collect(store, writer, LATER));
}
