//! What is denied is not taken in.

mod common;

use common::{NOW, file, new_lake, settings, take, urls};
use trawl_ingest::{Error, Mode, Stage, ingest};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Error as StoreError, Lake};

fn deny(lake: &Lake, targets: &[DenyTarget]) {
    let deny = |target: &DenyTarget| Deny { target: target.clone(), since: NOW.to_string(), reason: None };
    lake.commit(NOW, "test", |manifest| {
        manifest.deny.extend(targets.iter().map(deny));
        Ok(())
    })
    .unwrap();
}

const TEXT: &str = "https://zap.org/1\nhttps://a.b.zap.org/2\nhttps://bigzap.org/3\nHTTPS://u.com:443/x?b=1&a=2#f\n\
                    https://u.com/y\nhttps://p.com/q?z=1&k=2&a=0\nhttps://p.com/q?k=3\nhttps://zap.org:99999/\n\
                    https://keep.org:99999/\nmailto:me@ZAP.org\nhttps://k.org/\tsoon\nhttps://zap.org/\tsoon\n";

fn everything() -> [DenyTarget; 3] {
    [
        DenyTarget::Domain("zap.org".into()),
        DenyTarget::Url("https://u.com/x?a=2&b=1".into()),
        DenyTarget::Prefix("https://p.com/q?k=2".into()),
    ]
}

#[test]
fn denied_rows_and_rejects_are_counted_and_leave_nothing() {
    let (fs, lake) = new_lake();
    deny(&lake, &everything());
    for (mode, writer) in [(Mode::Append, "w1"), (Mode::Replace, "w2")] {
        let settings = trawl_ingest::IngestSettings { mode, ..settings(&fs, writer) };
        let report = take(&lake, vec![file(&fs, "list.txt", TEXT)], &settings).unwrap();
        assert_eq!((report.rows, report.denied, report.rejected, report.denied_since), (4, 7, 1, 0));
        assert_eq!(urls(&lake), ["https://bigzap.org/3", "https://k.org/", "https://p.com/q?k=3", "https://u.com/y"]);
        let rejects = lake.store().get(&report.rejects_file.unwrap(), 1 << 20).unwrap();
        let rejects = String::from_utf8(rejects.to_vec()).unwrap();
        assert!(!rejects.to_lowercase().contains("zap.org"), "{rejects}");
        assert_eq!(rejects.lines().count(), 1);
    }
}

#[test]
fn a_source_of_nothing_but_denied_rows_is_taken_once() {
    let (fs, lake) = new_lake();
    deny(&lake, &everything());
    let list = || vec![file(&fs, "list.txt", "https://zap.org/1\n")];
    let report = take(&lake, list(), &settings(&fs, "w1")).unwrap();
    assert_eq!((report.rows, report.denied, report.files, report.rejects_file), (0, 1, 0, None));
    assert_eq!(take(&lake, list(), &settings(&fs, "w2")).unwrap().skipped.len(), 1);
}

#[test]
fn a_denied_dataset_takes_nothing() {
    let (fs, lake) = new_lake();
    deny(&lake, &[DenyTarget::Dataset(1)]);
    let refused = take(&lake, vec![file(&fs, "list.txt", TEXT)], &settings(&fs, "w1")).unwrap_err();
    assert!(matches!(refused, Error::Store(StoreError::Refused { .. })), "{refused}");
    assert!(lake.dataset_newest(1).unwrap().is_none());
    assert!(lake.heartbeats().unwrap().is_empty());
}

#[test]
fn entries_that_come_meanwhile_are_told() {
    for (targets, told) in [
        (vec![DenyTarget::Domain("zap.org".into()), DenyTarget::Url("https://nowhere.test/".into())], Some(2)),
        (vec![DenyTarget::Domain("aaa.aa".into())], Some(0)),
        (vec![DenyTarget::Dataset(2)], Some(0)),
        (vec![DenyTarget::Dataset(1)], None),
    ] {
        let (fs, lake) = new_lake();
        deny(&lake, &[DenyTarget::Domain("k.org".into())]);
        let meanwhile = |progress: trawl_ingest::Progress| {
            if progress.stage == Stage::Committing {
                deny(&lake, &targets);
            }
        };
        let list = [file(&fs, "list.txt", TEXT)];
        let done = ingest(&lake, 1, &list, &settings(&fs, "w1"), &|| NOW, &meanwhile);
        assert_eq!(done.ok().map(|report| report.denied_since), told, "{targets:?}");
        assert_eq!(urls(&lake).is_empty(), told.is_none());
    }
}
