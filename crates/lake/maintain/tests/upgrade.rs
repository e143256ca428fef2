//! Lakes of earlier programs are refused by name, and upgraded.

mod common;

use common::{data_file, day, part};
use std::sync::Arc;
use trawl_maintain::upgrade;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{CommitMode, DatasetInfo, Error, Lake, MemStore, Store, deny_record, layout};

fn rewrite(store: &dyn Store, path: &str, change: impl Fn(&mut serde_json::Map<String, serde_json::Value>)) {
    let mut value: serde_json::Value = serde_json::from_slice(&store.get(path, 1 << 20).unwrap()).unwrap();
    let object = value.as_object_mut().unwrap();
    object.remove("checksum");
    change(object);
    store.put(path, value.to_string().as_bytes()).unwrap();
}

/// A lake as programs made it that kept commits, rejects and denials below `urls/`.
fn old_lake() -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let lake = Lake::init(store.clone(), day(0), "n", b"com\n").unwrap();
    lake.register_dataset(day(0), "test", &DatasetInfo::named("d")).unwrap();
    store.put(&part("w1"), b"rows").unwrap();
    let file = data_file(part("w1"), 4, "k");
    lake.commit_dataset(1, day(1), "w1", |commit| {
        commit.mode = CommitMode::Append;
        commit.files.push(file.clone());
        Ok(true)
    })
    .unwrap();
    store.put(&layout::rejects(1, "w1").unwrap(), b"{}\n").unwrap();
    let deny = Deny { target: DenyTarget::Domain("a.com".into()), since: day(0).to_string(), reason: None };
    lake.commit(day(2), "w2", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
    for object in store.list("datasets").unwrap() {
        let old = match object.path.split('/').collect::<Vec<_>>().as_slice() {
            ["datasets", "deny", name] => Some(format!("urls/_deny/{name}")),
            ["datasets", id, kind @ ("commits" | "rejects"), name] => {
                Some(format!("urls/dataset_id={id}/_{kind}/{name}"))
            }
            _ => None,
        };
        old.into_iter().for_each(|old| store.put(&old, &store.get(&object.path, 1 << 20).unwrap()).unwrap());
        store.delete(&object.path).unwrap();
    }
    for path in store.list("index").unwrap().into_iter().map(|object| object.path).filter(|p| p.ends_with(".json")) {
        rewrite(&*store, &path, |manifest| drop(manifest.insert("format".into(), 2.into())));
    }
    store
}

#[test]
fn a_lake_of_an_earlier_program_is_refused_by_name_and_upgraded() {
    let store = old_lake();
    let refused = Lake::open(store.clone()).unwrap_err();
    assert!(
        matches!(refused, Error::OldLayout { .. }) && refused.to_string().contains("trawl lake upgrade"),
        "{refused}"
    );

    let done = upgrade(&store, day(3), "up").unwrap();
    assert_eq!((done.was_old, done.moved), (true, 3));
    let lake = Lake::open(store.clone()).unwrap();
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!((commit.sequence, commit.files.len(), &commit.files[0].path), (1, 1, &part("w1")));
    assert_eq!(lake.current().unwrap().deny.len(), 1);
    assert_eq!(deny_record(&*store).unwrap().unwrap().deny, lake.current().unwrap().deny);
    let urls: Vec<_> = store.list("urls").unwrap().into_iter().map(|object| object.path).collect();
    assert_eq!(urls, [part("w1")], "nothing but Parquet files is left there");
    for path in [layout::commit_copy(1), layout::rejects(1, "w1").unwrap()] {
        assert!(store.exists(&path).unwrap(), "{path}");
    }
    let list = lake.current().unwrap().suffix_list.clone().unwrap();
    assert!(store.exists(&layout::suffix_list_copy(&list.hash).unwrap()).unwrap());

    // Once more, or after an interruption that left some of the old files.
    let again = upgrade(&store, day(4), "up2").unwrap();
    assert_eq!((again.was_old, again.moved), (false, 0));
    store.put("urls/dataset_id=1/_commits/0000000001.json", &commit.to_json()).unwrap();
    assert_eq!(upgrade(&store, day(5), "up3").unwrap().moved, 1);
    assert_eq!(Lake::open(store).unwrap().dataset_newest(1).unwrap().unwrap(), commit);
}
