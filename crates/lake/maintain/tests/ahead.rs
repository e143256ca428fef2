//! Lakes that have lost their newest manifests, while the copy or the record of the deny list tells of them.

use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_maintain::{remains, restore, verify_states};
use trawl_model::UnixMillis;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{DatasetInfo, DirStore, Error, Lake, Manifest, Store, deny_record, layout};

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

fn new_lake() -> (Arc<DirStore>, Lake) {
    let store = Arc::new(DirStore::with_fs(FaultFs::new().shared(), "lake"));
    let lake = Lake::init(store.clone(), NOW, "n", b"com\n").unwrap();
    (store, lake)
}

fn deny(lake: &Lake, domain: &str) -> trawl_store::Result<Arc<Manifest>> {
    let target = DenyTarget::Domain(domain.into());
    let entry = Deny { target, since: NOW.to_string(), reason: None };
    let committed = lake.commit(NOW, "test", |manifest| {
        manifest.deny.push(entry.clone());
        Ok(())
    })?;
    Ok(committed.manifest)
}

fn denied(lake: &Lake) -> Vec<String> {
    let name = |deny: &Deny| match &deny.target {
        DenyTarget::Domain(domain) => domain.clone(),
        other => panic!("{other:?}"),
    };
    lake.current().unwrap().deny.iter().map(name).collect()
}

fn numbered(number: u64) -> String {
    layout::numbered(layout::MANIFESTS, number)
}

fn faults(lake: &Lake, manifest: &Manifest) -> Vec<String> {
    let mut found = Vec::new();
    verify_states(lake, manifest, &mut |fault| found.push(fault.to_string())).unwrap();
    found
}

/// Manifests 1 to 4, two domains denied by the last two.
fn two_denied() -> (Arc<DirStore>, Lake) {
    let (store, lake) = new_lake();
    lake.register_dataset(NOW, "test", &DatasetInfo::named("d")).unwrap();
    for domain in ["a.com", "b.com"] {
        deny(&lake, domain).unwrap();
    }
    assert_eq!(lake.current().unwrap().sequence, 4);
    (store, lake)
}

#[test]
fn a_copy_that_is_ahead_counts() {
    for lost in [&[4][..], &[3, 4]] {
        let (store, lake) = two_denied();
        // One who has the lake open and has not looked since.
        let late = Lake::open(store.clone()).unwrap();
        lost.iter().for_each(|number| store.delete(&numbered(*number)).unwrap());
        for lake in [&lake, &Lake::open(store.clone()).unwrap()] {
            assert_eq!((lake.current().unwrap().sequence, denied(lake)), (4, vec!["a.com".into(), "b.com".into()]));
            let found = faults(lake, &lake.current().unwrap());
            assert!(found.len() == 1 && found[0].contains(&numbered(4)), "{found:?}");
        }
        let fresh = Lake::open(store.clone()).unwrap();
        fresh.register_dataset(NOW, "test", &DatasetInfo::named("e")).unwrap();
        for lake in [lake, fresh, late, Lake::open(store.clone()).unwrap()] {
            assert_eq!((lake.current().unwrap().sequence, denied(&lake).len()), (5, 2));
            assert_eq!(faults(&lake, &lake.current().unwrap()), [""; 0]);
        }
        for number in 1..=5 {
            let bytes = store.get(&numbered(number), 1 << 20).unwrap();
            assert_eq!(Manifest::parse(&numbered(number), &bytes).unwrap().sequence, number);
        }
    }
}

#[test]
fn one_who_saw_only_what_came_before_the_lost_ones_follows() {
    let (store, lake) = new_lake();
    let early = Lake::open(store.clone()).unwrap();
    deny(&lake, "a.com").unwrap();
    deny(&lake, "b.com").unwrap();
    store.delete(&numbered(2)).unwrap();
    store.delete(&numbered(3)).unwrap();
    early.register_dataset(NOW, "test", &DatasetInfo::named("d")).unwrap();
    assert_eq!((early.current().unwrap().sequence, denied(&early).len()), (4, 2));
}

#[test]
fn without_any_numbered_manifest_the_copy_is_for_a_rebuild() {
    let (store, _lake) = two_denied();
    (1..=4).for_each(|number| store.delete(&numbered(number)).unwrap());
    assert!(matches!(Lake::open(store.clone()), Err(Error::NotALake { .. })));
    assert_eq!(remains(&*store).unwrap().manifest.unwrap().sequence, 4);
}

#[test]
fn a_copy_far_ahead_is_read_and_not_written_after() {
    let (store, lake) = two_denied();
    let far = Manifest { sequence: 2_000_000_000, ..(*lake.current().unwrap()).clone() };
    store.put(layout::MANIFEST_COPY, &far.to_json()).unwrap();
    let lake = Lake::open(store).unwrap();
    assert_eq!(denied(&lake).len(), 2);
    let refused = deny(&lake, "c.com").unwrap_err().to_string();
    assert!(refused.contains("index/manifests") && refused.contains("rebuild"), "{refused}");
}

/// The newest manifests and the copy are gone.
fn lose(store: &DirStore, numbers: &[u64]) {
    numbers.iter().for_each(|number| store.delete(&numbered(*number)).unwrap());
    store.delete(layout::MANIFEST_COPY).unwrap();
}

#[test]
fn a_list_that_is_recorded_is_not_forgotten() {
    for lost in [&[4][..], &[3, 4]] {
        let (store, _lake) = two_denied();
        lose(&store, lost);
        let lake = Lake::open(store.clone()).unwrap();
        let refused = deny(&lake, "c.com").unwrap_err().to_string();
        assert!(refused.contains(&numbered(4)) && refused.contains("rebuild"), "{refused}");
        let found = faults(&lake, &lake.current().unwrap());
        assert!(found.iter().any(|fault| fault.contains("datasets/deny/0000000002.json")), "{found:?}");

        assert_eq!(lake.recover_deny(NOW, "test").unwrap(), Some(2));
        assert_eq!((lake.current().unwrap().sequence, denied(&lake).len()), (4, 2));
        assert_eq!(faults(&lake, &lake.current().unwrap()), [""; 0]);
        assert_eq!(lake.recover_deny(NOW, "test").unwrap(), None);
        deny(&lake, "c.com").unwrap();
        assert_eq!(deny_record(&*store).unwrap().unwrap().deny.len(), 3);
        assert_eq!(Lake::open(store.clone()).unwrap().current().unwrap().sequence, 5);
    }
}

#[test]
fn what_is_left_of_the_list_stays_denied_when_its_record_is_taken() {
    let (store, lake) = new_lake();
    deny(&lake, "a.com").unwrap();
    let with = lake.current().unwrap().deny.clone();
    let clear = |manifest: &mut Manifest| {
        manifest.deny.clear();
        Ok(())
    };
    lake.commit(NOW, "test", clear).unwrap();
    deny(&lake, "b.com").unwrap();
    lose(&store, &[3, 4]);
    let lake = Lake::open(store.clone()).unwrap();
    assert_eq!(lake.current().unwrap().deny, with);
    assert_eq!(lake.recover_deny(NOW, "test").unwrap(), Some(2));
    assert_eq!(denied(&lake), ["b.com", "a.com"]);
    assert_eq!(deny_record(&*store).unwrap().unwrap().deny, lake.current().unwrap().deny);
}

#[test]
fn a_restored_lake_goes_on_after_the_manifest_that_the_record_names() {
    let (store, _lake) = two_denied();
    lose(&store, &[3, 4]);
    store.put(&numbered(2), b"{ damaged").unwrap();
    let left = remains(&*store).unwrap();
    let lake = restore(store.clone(), NOW, "n2", b"com\n", &left).unwrap();
    assert_eq!((lake.current().unwrap().sequence, denied(&lake).len()), (5, 2));
    deny(&lake, "c.com").unwrap();
    assert_eq!(deny_record(&*store).unwrap().unwrap().deny.len(), 3);
    assert!((3..=6).all(|number| store.exists(&numbered(number)).unwrap()));
}

#[test]
fn what_lags_behind_a_writer_at_work_is_no_fault() {
    let (store, lake) = two_denied();
    let began = lake.current().unwrap();
    // The copy may be behind, by any number.
    for number in 1..=4 {
        store.put(layout::MANIFEST_COPY, &store.get(&numbered(number), 1 << 20).unwrap()).unwrap();
        assert_eq!(faults(&lake, &began), [""; 0]);
    }
    let other = Manifest { next_dataset_id: 77, ..(*began).clone() };
    store.put(layout::MANIFEST_COPY, &other.to_json()).unwrap();
    assert!(faults(&lake, &began)[0].contains("another manifest of number 4"));
    store.put(layout::MANIFEST_COPY, &began.to_json()).unwrap();
    // A list is recorded after its manifest; asked again for that manifest, a later record will do.
    let record = layout::numbered(layout::DENY, 2);
    store.delete(&record).unwrap();
    assert!(faults(&lake, &began)[0].contains("datasets/deny"));
    deny(&lake, "c.com").unwrap();
    let newer = lake.current().unwrap();
    assert_eq!(faults(&lake, &began), [""; 0]);
    assert_eq!(faults(&lake, &newer), [""; 0]);
}
