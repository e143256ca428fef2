//! Lakes that have lost dataset commits which they serve.

mod common;

use common::{data_file, day, new_lake, part};
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_maintain::{GcSettings, LostCommits, accept_loss, collect, lost_commits, remains, restore};
use trawl_model::UnixMillis;
use trawl_store::{CommitMode, DirStore, Error, Lake, SegmentRef, Store, layout};

fn append(lake: &Lake, writer: &str, now: UnixMillis) -> trawl_store::Result<u64> {
    lake.store().put(&part(writer), b"rows")?;
    let file = data_file(part(writer), 4, writer);
    let (commit, _) = lake.commit_dataset(1, now, writer, |commit| {
        commit.mode = CommitMode::Append;
        commit.files.push(file.clone());
        Ok(true)
    })?;
    Ok(commit.sequence)
}

fn publish(lake: &Lake, segment: &str, commit: u64, now: UnixMillis) {
    lake.store().put(&layout::segment_file(segment, "segment.json").unwrap(), b"{}").unwrap();
    let segments = vec![SegmentRef { id: segment.into(), ..SegmentRef::default() }];
    lake.commit(now, "test", |m| Ok(m.publish(now, segments.clone(), BTreeMap::from([(1, commit)])))).unwrap();
}

/// Two files in two commits, each published.
fn two_commits() -> (Arc<DirStore>, Lake) {
    let (store, lake) = new_lake();
    for (number, writer) in [(1, "w1"), (2, "w2")] {
        assert_eq!(append(&lake, writer, day(number)).unwrap(), number as u64);
        publish(&lake, &format!("s{number}"), number as u64, day(number));
    }
    (store, lake)
}

fn lose(store: &DirStore, numbers: &[u64]) {
    for number in numbers {
        store.delete(&commit_path(*number)).unwrap();
    }
    // With it nothing would be lost: see `lost.rs` of trawl-query.
    store.delete(&layout::commit_copy(1)).unwrap();
}

fn commit_path(number: u64) -> String {
    layout::numbered(&layout::commits_dir(1), number)
}

#[test]
fn nobody_takes_the_number_of_a_lost_commit() {
    for lost in [&[2][..], &[1, 2]] {
        let (store, lake) = two_commits();
        lose(&store, lost);
        let left = 2 - lost.len() as u64;
        for lake in [&lake, &Lake::open(store.clone()).unwrap()] {
            let refused = append(lake, "w3", day(3)).unwrap_err();
            assert!(
                matches!(&refused, Error::Lost { dataset_id: 1, newest, path } if *newest == left && *path == commit_path(2))
            );
            assert!(refused.to_string().contains("restores it from the index"), "{refused}");
            assert!(matches!(lake.dataset_newest(1), Err(Error::Lost { .. })));
        }
        assert!(!store.exists(&commit_path(left + 1)).unwrap());
        // What is lost can be dropped, for good.
        lake.drop_dataset(day(3), "dropper", 1).unwrap();
        assert_eq!(lake.dataset_newest(1).unwrap().unwrap().sequence, 3);
        assert!(lake.current().unwrap().dataset(1).unwrap().dropped);
    }
}

#[test]
fn commits_that_are_collected_or_not_yet_published_are_not_lost() {
    let (store, lake) = two_commits();
    let now = day(10);
    append(&lake, "w3", now).unwrap();
    collect(&lake, now, &GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") })
        .unwrap();
    assert!(!store.exists(&commit_path(1)).unwrap());
    assert_eq!(lost_commits(&*store, &lake.current().unwrap()).unwrap(), []);
    assert_eq!(append(&lake, "w4", now).unwrap(), 4);
    // One in the middle, which nobody serves, is not missed either: later ones are whole without it.
    lose(&store, &[3]);
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().files.len(), 4);
    assert_eq!(append(&Lake::open(store).unwrap(), "w5", now).unwrap(), 5);
}

#[test]
fn a_collector_leaves_all_of_a_dataset_that_lost_a_served_commit() {
    let hard = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") };
    let two = GcSettings { keep_versions: 2, ..hard.clone() };
    // The newest, all, and one that only an older version serves.
    for (lost, settings) in [(&[2][..], &hard), (&[1, 2], &hard), (&[1, 2], &GcSettings::new("gc")), (&[1], &two)] {
        for dry_run in [true, false] {
            let (store, lake) = two_commits();
            store.put(&part("nobody"), b"rows").unwrap();
            lose(&store, lost);
            let report = collect(&lake, day(10), &GcSettings { dry_run, ..settings.clone() }).unwrap();
            assert_eq!(report.damaged.len(), 1, "{lost:?}: {report:?}");
            assert!(report.damaged[0].contains(&commit_path(*lost.last().unwrap())), "{report:?}");
            assert!(!report.gone.iter().any(|gone| gone.path.starts_with("urls/")), "{:?}", report.gone);
            for writer in ["w1", "w2", "nobody"] {
                assert!(store.exists(&part(writer)).unwrap(), "{writer}");
            }
        }
    }
    // As soon as no version needs it, it is no longer missed.
    let (store, lake) = two_commits();
    lose(&store, &[1]);
    store.put(&part("nobody"), b"rows").unwrap();
    let report = collect(&lake, day(10), &hard).unwrap();
    assert_eq!(report.damaged, [""; 0]);
    assert!(!store.exists(&part("nobody")).unwrap());
}

#[test]
fn a_loss_that_is_accepted_is_gone_on_from() {
    for gone in [None, Some("w1")] {
        let (store, lake) = two_commits();
        lose(&store, &[2]);
        gone.into_iter().for_each(|writer| store.delete(&part(writer)).unwrap());
        let lost = lost_commits(&*store, &lake.current().unwrap()).unwrap();
        assert_eq!(lost, [LostCommits { dataset_id: 1, newest: 1, served: 2 }]);
        let went_on = accept_loss(&lake, day(3), "a", &lost[0]).unwrap();
        assert_eq!((went_on.commit.sequence, went_on.commit.rows), (3, u64::from(gone.is_none())));
        assert_eq!(went_on.files_gone, u64::from(gone.is_some()));
        // Whoever does it again finds it done.
        assert_eq!(accept_loss(&lake, day(3), "b", &lost[0]).unwrap().commit.sequence, 3);
        assert_eq!(lost_commits(&*store, &lake.current().unwrap()).unwrap(), []);
        assert_eq!(append(&lake, "w3", day(4)).unwrap(), 4);
    }
}

#[test]
fn versions_that_serve_lost_commits_do_not_come_back_with_the_copy() {
    let (store, _lake) = two_commits();
    lose(&store, &[2]);
    for listed in store.list(layout::MANIFESTS).unwrap() {
        store.delete(&listed.path).unwrap();
    }
    let left = remains(&*store).unwrap();
    assert_eq!(lost_commits(&*store, left.manifest.as_ref().unwrap()).unwrap().len(), 1);
    let lake = restore(store, day(5), "n2", b"com\n", &left).unwrap();
    assert_eq!(lake.current().unwrap().live_commit(1), 1);
}
