//! Answers of the store that get lost: who won is what the object says, and nothing is removed on the word of an answer.

mod common;
mod doubles;

use common::{data_file, day, new_lake, part};
use doubles::{Lost, LostAnswers};
use std::collections::BTreeSet;
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_store::{AtWork, Created, DatasetCommit, DatasetInfo, DirStore, Error, Lake, Result, Store, layout};

const WAYS: [Lost; 4] = [Lost::Error, Lost::Timeout, Lost::Resent, Lost::Unreadable];

/// The same lake, where the answers to these writes are lost.
fn losing(store: &Arc<DirStore>, faults: impl IntoIterator<Item = (u64, Lost)>) -> (Arc<LostAnswers>, Lake) {
    let losing = Arc::new(LostAnswers::new(store.clone(), faults));
    (losing.clone(), Lake::open(losing).unwrap())
}

#[test]
fn every_write_is_done_and_told_as_planned() {
    let inner = Arc::new(DirStore::with_fs(FaultFs::new().shared(), "lake"));
    let store = LostAnswers::new(inner, (0..8).zip([WAYS, WAYS].concat()).chain([(8, Lost::Resent), (9, Lost::Error)]));
    for way in WAYS {
        let path = format!("a/{way:?}");
        match store.create(&path, b"1") {
            Ok(told) => assert_eq!((told, way), (Created::Exists, Lost::Resent)),
            Err(error) => assert_eq!(error.to_string().contains("timed out"), way == Lost::Timeout, "{error}"),
        }
        assert_eq!(store.get(&path, 9).is_err(), way == Lost::Unreadable);
        assert_eq!(store.get(&path, 9).unwrap(), "1");
    }
    for way in WAYS {
        assert_eq!(store.put("b", format!("{way:?}").as_bytes()).is_ok(), way == Lost::Resent);
        assert_eq!(store.get("b", 99).unwrap(), format!("{way:?}"));
    }
    let mut upload = store.upload("c").unwrap();
    upload.write_all(b"2").unwrap();
    upload.finish().unwrap();
    assert!(store.delete("c").is_err() && !store.exists("c").unwrap());
    assert_eq!(store.create("d", b"").unwrap(), Created::New);
    assert_eq!((store.create("d", b"").unwrap(), store.writes()), (Created::Exists, 12));
}

#[test]
fn a_lake_is_made_and_a_dataset_registered_once() {
    for (step, way) in (0..7).flat_map(|step| WAYS.map(|way| (step, way))) {
        let store = Arc::new(DirStore::with_fs(FaultFs::new().shared(), "lake"));
        let losing: Arc<dyn Store> = Arc::new(LostAnswers::new(store.clone(), [(step, way)]));
        match Lake::init(losing.clone(), day(0), "n", b"com\n") {
            // Deleting the probe and writing copies are no commits; what cannot be read back is nobody's.
            Err(error) => assert!([2, 4, 6].contains(&step) || way == Lost::Unreadable, "{step}, {way:?}: {error}"),
            Ok(_) => assert!(way != Lost::Unreadable && ([2, 4, 6].contains(&step) <= (way == Lost::Resent))),
        }
        if store.list(layout::MANIFESTS).unwrap().is_empty() {
            Lake::init(losing, day(0), "again", b"com\n").unwrap();
        }
        let lake = Lake::open(store).unwrap();
        assert_eq!(
            (lake.current().unwrap().sequence, lake.suffix_list(&lake.current().unwrap()).unwrap()),
            (1, "com\n".into())
        );
    }
    for way in WAYS {
        let (store, _) = new_lake();
        let (_, lake) = losing(&store, [(0, way)]);
        let register = |writer| lake.register_dataset(day(1), writer, &DatasetInfo::named("e"));
        match register("w1") {
            Err(error) => assert!(matches!(error, Error::Unsettled { .. }) && way == Lost::Unreadable, "{error}"),
            Ok(id) => assert_eq!((id, way == Lost::Unreadable), (2, false)),
        }
        assert_eq!((register("w2").unwrap(), lake.current().unwrap().sequence), (2, 3));
        assert_eq!(lake.current().unwrap().writer, "w1");
        let copy = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();
        assert_eq!(copy, store.get(&layout::numbered(layout::MANIFESTS, 3), 1 << 20).unwrap(), "{way:?}");
    }
}

/// Every create of everybody says that the object exists.
#[test]
fn racing_writers_that_never_hear_that_they_won() {
    let (store, _) = new_lake();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let store = store.clone();
            scope.spawn(move || {
                let (_, lake) = losing(&store, (0..1000).map(|step| (step, Lost::Resent)));
                for n in 0..5 {
                    let writer = format!("w{writer}-{n}");
                    let (commit, made) =
                        lake.commit_dataset(1, day(1), &writer, |commit| add(commit, &writer)).unwrap();
                    assert!(made && commit.writer == writer);
                    lake.register_dataset(day(1), &writer, &DatasetInfo::named(format!("d{n}"))).unwrap();
                }
            });
        }
    });
    let lake = Lake::open(store).unwrap();
    let newest = lake.dataset_newest(1).unwrap().unwrap();
    let paths: BTreeSet<_> = newest.files.iter().map(|file| &file.path).collect();
    assert_eq!((newest.sequence, newest.files.len(), paths.len()), (30, 30, 30));
    let manifest = lake.current().unwrap();
    assert_eq!((manifest.sequence, manifest.datasets.len(), manifest.next_dataset_id), (7, 6, 7));
}

fn add(commit: &mut DatasetCommit, writer: &str) -> Result<bool> {
    commit.files.push(data_file(part(writer), 1, writer));
    Ok(true)
}

/// What is left of a writer whose commit ended so: its file, and its heartbeat.
fn left_by(faults: &[(u64, Lost)], commit: impl Fn(&Lake) -> Result<Option<()>>) -> (bool, bool) {
    let (store, _) = new_lake();
    // The heartbeat and the file are the first two writes.
    let (_, lake) = losing(&store, faults.iter().copied());
    let clock = || day(1);
    let at_work = AtWork::start(&lake, &clock, "w", "ingest", layout::dataset_dir(1)).unwrap();
    lake.store().put(&part("w"), b"x").unwrap();
    lake.store().put(&part("w-2"), b"another's").unwrap();
    let _ = at_work.commit(|| commit(&lake));
    drop(at_work);
    assert!(store.exists(&part("w-2")).unwrap());
    (store.exists(&part("w")).unwrap(), !Lake::open(store).unwrap().heartbeats().unwrap().is_empty())
}

#[test]
fn files_go_only_if_it_is_known_that_no_commit_names_them() {
    let names = |lake: &Lake| lake.commit_dataset(1, day(1), "w", |commit| add(commit, "w")).map(|_| Some(()));
    for way in [Lost::Error, Lost::Timeout, Lost::Resent] {
        assert_eq!(left_by(&[(3, way)], names), (true, false), "{way:?}: it is the writer's own");
    }
    assert_eq!(left_by(&[(3, Lost::Unreadable)], names), (true, true), "nobody knows");
    assert_eq!(left_by(&[], |_| Ok(None)), (false, false), "nothing to commit any more");
    let refused = |lake: &Lake| lake.commit_dataset(1, day(1), "w", |_| refuse()).map(|_| Some(()));
    assert_eq!(left_by(&[], refused), (false, false), "refused");
    // Another writer comes first, and then the change does not fit any more.
    let beaten = |lake: &Lake| {
        let mut first = true;
        let committed = lake.commit_dataset(1, day(1), "w", |commit| {
            if std::mem::take(&mut first) {
                lake.commit_dataset(1, day(1), "other", |commit| add(commit, "w-2"))?;
                add(commit, "w")
            } else {
                refuse()
            }
        });
        committed.map(|_| Some(()))
    };
    // The other's commit and its copy are the fourth and fifth write.
    for faults in [&[][..], &[(5, Lost::Error)], &[(5, Lost::Timeout)], &[(5, Lost::Resent)]] {
        assert_eq!(left_by(faults, beaten), (false, false), "beaten, {faults:?}");
    }
    assert_eq!(left_by(&[(5, Lost::Unreadable)], beaten), (true, true), "beaten, and nobody knows");
}

fn refuse<T>() -> Result<T> {
    Err(Error::Refused { reason: "no".into() })
}

/// Another writer makes the very same commit at the same moment: only the id tells them apart.
#[test]
fn an_equal_commit_of_another_writer_is_not_ones_own() {
    let (store, _) = new_lake();
    let (_, lake) = losing(&store, [(1, Lost::Resent)]);
    let mut rounds = 0;
    let (commit, made) = lake
        .commit_dataset(1, day(1), "w1", |commit| {
            rounds += 1;
            if rounds == 1 {
                lake.commit_dataset(1, day(1), "w2", |commit| add(commit, "same"))?;
            }
            if commit.files.is_empty() { add(commit, "same") } else { Ok(false) }
        })
        .unwrap();
    assert_eq!((rounds, made, commit.sequence, commit.writer.as_str(), commit.files.len()), (2, false, 1, "w2", 1));
}
