//! A kvseq alone.

use crate::explore::{Named, explore_all};
use crate::look::{Look, Pairs};
use crate::tape::{Model, Recorder, Tape};
use crate::{gone, model, none, path, plain, put, value};
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_seqdb::{Access, CreateKvseq, Kvseq, Result, Settings, kvseq, silent};

const FILE: &str = "/a.kvseq";

fn create(disk: &FaultFs, entries: &[(&str, usize, usize)]) -> Model {
    let mut kv =
        CreateKvseq { sbsize: 256, fileincr: 64, ..Default::default() }.create(path(FILE), &plain(disk)).unwrap();
    for (key, version, len) in entries {
        kv.add(key.as_bytes(), &value(key, *version, *len)).unwrap();
    }
    kv.close().unwrap();
    model(entries)
}

/// Appends, deletes, makes the last value longer, syncs.
pub fn changes() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, &[("a", 0, 10), ("b", 0, 40), ("big", 0, 5000), ("c", 0, 10)]);
    let mut tape = Recorder::new(&disk, first);
    let mut kv = Kvseq::open(path(FILE), Access::Write, tape.settings()).unwrap();
    tape.step(put("d", 0, 60), || kv.add(b"d", &value("d", 0, 60)).unwrap());
    tape.step(put("e", 0, 100), || kv.add(b"e", &value("e", 0, 100)).unwrap());
    tape.shown(|| kv.flush().unwrap());
    let b = kv.lookup(b"b").unwrap().unwrap();
    tape.step(gone("b"), || kv.delete(b).unwrap());
    let ptr = tape.step(put("f", 0, 20), || kv.add(b"f", &value("f", 0, 20)).unwrap());
    tape.shown(|| kv.flush().unwrap());
    for len in [90, 300] {
        let old = kv.value_len(ptr).unwrap() as usize;
        tape.step(put("f", 0, len), || kv.extend_last_value(ptr, &value("f", 0, len)[old..]).unwrap());
        tape.shown(|| kv.flush().unwrap());
    }
    tape.synced(|| kv.checkpoint().unwrap());
    tape.step(put("g", 0, 10), || kv.add(b"g", &value("g", 0, 10)).unwrap());
    tape.shown(|| kv.flush().unwrap());
    tape.synced(|| kv.close().unwrap());
    tape.end()
}

pub fn compaction() -> Arc<Tape> {
    let disk = FaultFs::new();
    let mut first = create(&disk, &[("x", 0, 100), ("a", 0, 10), ("y", 0, 10), ("b", 0, 200)]);
    let mut kv = Kvseq::open(path(FILE), Access::Write, &plain(&disk)).unwrap();
    for key in ["x", "y"] {
        let ptr = kv.lookup(key.as_bytes()).unwrap().unwrap();
        kv.delete(ptr).unwrap();
        gone(key)(&mut first);
    }
    kv.close().unwrap();
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| kvseq::compact(path(FILE), &settings, &silent).unwrap());
    let mut kv = tape.shown(|| Kvseq::open(path(FILE), Access::Write, &settings).unwrap());
    tape.step(put("c", 0, 10), || kv.add(b"c", &value("c", 0, 10)).unwrap());
    tape.synced(|| kv.close().unwrap());
    tape.end()
}

/// After a crash: back to the last sync.
fn rollback() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, &[("a", 0, 10), ("b", 0, 40)]);
    let mut kv = Kvseq::open(path(FILE), Access::Write, &plain(&disk)).unwrap();
    kv.extend_last_value(kv.lookup(b"b").unwrap().unwrap(), &value("b", 0, 90)[40..]).unwrap();
    kv.add(b"lost", &value("lost", 0, 30)).unwrap();
    kv.flush().unwrap();
    drop(kv);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    // While somebody has the lock, what was flushed is seen again.
    tape.step(
        |model| {
            put("b", 0, 90)(model);
            put("lost", 0, 30)(model);
        },
        || (),
    );
    tape.whole(
        |model| {
            put("b", 0, 40)(model);
            gone("lost")(model);
        },
        || kvseq::repair(path(FILE), &settings, false).unwrap(),
    );
    tape.end()
}

fn get(kv: &Kvseq, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(ptr) = kv.lookup(key)? else { return Ok(None) };
    Ok(Some(kv.get(ptr)?.value))
}

fn list(kv: &Kvseq) -> Result<Pairs> {
    let mut scan = kv.scan();
    let mut all = Vec::new();
    while let Some(item) = scan.next_entry()? {
        all.push((item.key.to_vec(), item.value.unwrap().to_vec()));
    }
    Ok(all)
}

fn open(settings: &Settings, look: &mut Look) -> Option<Kvseq> {
    look.begin();
    Kvseq::open(path(FILE), Access::Read, settings).map_err(|e| look.error("open", &e)).ok()
}

fn by_key(settings: &Settings, look: &mut Look) {
    let Some(kv) = open(settings, look) else { return };
    look.keys().iter().for_each(|key| look.one(key, get(&kv, key)));
}

fn everything(settings: &Settings, look: &mut Look) {
    let Some(kv) = open(settings, look) else { return };
    look.all(list(&kv));
    look.all(list(&kv));
}

fn kept(settings: &Settings, look: &mut Look) {
    let Some(mut kv) = open(settings, look) else { return };
    look.all(list(&kv));
    look.begin();
    if let Err(e) = kv.refresh() {
        return look.error("refresh", &e);
    }
    look.all(list(&kv));
    look.keys().iter().for_each(|key| look.one(key, get(&kv, key)));
}

#[test]
fn beside_a_kvseq() {
    let tapes = [("changes", changes()), ("compaction", compaction()), ("rollback", rollback())];
    let readers: [Named; 3] = [("by key", by_key), ("everything", everything), ("kept", kept)];
    explore_all("kvseq", &tapes, &readers, none);
}
