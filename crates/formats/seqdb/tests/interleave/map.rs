//! A kvseq with an index.

use crate::explore::{Named, explore_all};
use crate::look::{Look, Pairs};
use crate::tape::{Model, Recorder, Tape};
use crate::{gone, model, none, path, plain, put, value};
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_seqdb::{
    Access, BundleFiles, CreateHindex, CreateKvseq, Error, Map, MapFiles, Result, Settings, map, silent,
};

fn files() -> MapFiles {
    MapFiles::named(path("/m"))
}

fn bundled() -> BundleFiles {
    BundleFiles { kvseq: files().kvseq, indexes: vec![files().hindex], perm: None }
}

fn create(disk: &FaultFs, cellsz: u64, htsize: u64, entries: &[(&str, usize, usize)]) -> Model {
    let kvseq = CreateKvseq { sbsize: 256, fileincr: 64, ..Default::default() };
    let hindex = CreateHindex { sbsize: 256, htsize, cellsz, ..Default::default() };
    let mut map = Map::create(&files(), &kvseq, &hindex, &plain(disk)).unwrap();
    for (key, version, len) in entries {
        map.put(key.as_bytes(), &value(key, *version, *len)).unwrap();
    }
    map.close().unwrap();
    model(entries)
}

const FIRST: [(&str, usize, usize); 4] = [("a", 0, 10), ("b", 0, 40), ("c", 0, 10), ("d", 0, 300)];

/// Puts, new and old, removes, and flushes between.
fn changes(cellsz: u64, sync_between: bool) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, cellsz, 23, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    let mut map = tape.shown(|| Map::open(&files(), Access::Write, &settings).unwrap());
    tape.step(put("e", 0, 60), || map.put(b"e", &value("e", 0, 60)).unwrap());
    tape.step(put("a", 1, 50), || map.put(b"a", &value("a", 1, 50)).unwrap());
    tape.shown(|| map.flush().unwrap());
    tape.step(put("f", 0, 100), || map.put(b"f", &value("f", 0, 100)).unwrap());
    tape.step(gone("b"), || assert!(map.remove(b"b").unwrap()));
    if sync_between {
        tape.synced(|| map.sync().unwrap());
    } else {
        tape.shown(|| map.flush().unwrap());
    }
    tape.step(put("a", 2, 250), || map.put(b"a", &value("a", 2, 250)).unwrap());
    tape.step(put("b", 1, 20), || map.put(b"b", &value("b", 1, 20)).unwrap());
    tape.shown(|| map.flush().unwrap());
    tape.synced(|| map.close().unwrap());
    tape.end()
}

/// A short session in which one key is put again.
fn sessions_with(cellsz: u64) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, cellsz, 23, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    for version in 1..3 {
        let mut map = tape.shown(|| Map::open(&files(), Access::Write, &settings).unwrap());
        tape.step(put("a", version, 50), || map.put(b"a", &value("a", version, 50)).unwrap());
        tape.synced(|| map.close().unwrap());
    }
    tape.end()
}

pub fn sessions() -> Arc<Tape> {
    sessions_with(2)
}

/// So many keys that the table grows several times, one of them put again and again.
fn growth(cellsz: u64, entries: &[(&str, usize, usize)]) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, cellsz, 3, entries);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    let mut map = tape.shown(|| Map::open(&files(), Access::Write, &settings).unwrap());
    for n in 1..7usize {
        let key = n.to_string();
        tape.step(put(&key, 0, 20 * n), || map.put(key.as_bytes(), &value(&key, 0, 20 * n)).unwrap());
        tape.step(put("a", n, 10), || map.put(b"a", &value("a", n, 10)).unwrap());
        if n % 2 == 0 {
            tape.shown(|| map.flush().unwrap());
        }
        if n == 5 {
            tape.step(gone("2"), || assert!(map.remove(b"2").unwrap()));
        }
    }
    tape.synced(|| map.close().unwrap());
    tape.end()
}

/// Replaces, then compacts, then goes on.
fn compaction(cellsz: u64) -> Arc<Tape> {
    let disk = FaultFs::new();
    let mut first = create(&disk, cellsz, 23, &FIRST);
    let mut map = Map::open(&files(), Access::Write, &plain(&disk)).unwrap();
    map.put(b"a", &value("a", 1, 70)).unwrap();
    put("a", 1, 70)(&mut first);
    map.remove(b"b").unwrap();
    gone("b")(&mut first);
    map.close().unwrap();
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| map::compact(bundled(), &settings, &silent).unwrap());
    let mut map = tape.shown(|| Map::open(&files(), Access::Write, &settings).unwrap());
    tape.step(put("c", 1, 20), || map.put(b"c", &value("c", 1, 20)).unwrap());
    tape.synced(|| map.close().unwrap());
    tape.end()
}

fn rebuild() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, 1, 5, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| map::rebuild(bundled(), &settings, &silent).unwrap());
    tape.end()
}

/// A writer that died: what it had flushed is taken back.
fn died(disk: &FaultFs, cellsz: u64) -> Model {
    let first = create(disk, cellsz, 23, &FIRST);
    let mut map = Map::open(&files(), Access::Write, &plain(disk)).unwrap();
    map.put(b"a", &value("a", 1, 70)).unwrap();
    map.put(b"lost", &value("lost", 0, 30)).unwrap();
    map.flush().unwrap();
    drop(map);
    first
}

/// `repair` marks superseded entries deleted, a rollback does not.
fn repair(cellsz: u64, repair: bool) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = died(&disk, cellsz);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    // While somebody has the lock, what was flushed is seen again.
    tape.step(
        |model| {
            put("a", 1, 70)(model);
            put("lost", 0, 30)(model)
        },
        || (),
    );
    tape.whole(
        |model| {
            put("a", 0, 10)(model);
            gone("lost")(model)
        },
        || {
            if repair {
                map::repair(&files(), &settings, false, &silent).unwrap();
            } else {
                map::rollback(bundled(), &settings, false, &silent).unwrap();
            }
        },
    );
    let mut map = tape.shown(|| Map::open(&files(), Access::Write, &settings).unwrap());
    tape.step(put("a", 2, 20), || map.put(b"a", &value("a", 2, 20)).unwrap());
    tape.synced(|| map.close().unwrap());
    tape.end()
}

fn list(map: &Map) -> Result<Pairs> {
    let mut scan = map.kvseq().scan();
    let mut all = Vec::new();
    while let Some(item) = scan.next_entry()? {
        all.push((item.key.to_vec(), item.value.unwrap().to_vec()));
    }
    Ok(all)
}

fn open(settings: &Settings, look: &mut Look) -> Option<Map> {
    look.begin();
    Map::open(&files(), Access::Read, settings).map_err(|e| look.error("open", &e)).ok()
}

fn by_key(settings: &Settings, look: &mut Look) {
    let Some(map) = open(settings, look) else { return };
    look.keys().iter().for_each(|key| look.one(key, map.get(key)));
}

fn everything(settings: &Settings, look: &mut Look) {
    let Some(map) = open(settings, look) else { return };
    look.entries(list(&map));
}

fn kept(settings: &Settings, look: &mut Look) {
    let Some(mut map) = open(settings, look) else { return };
    look.one(b"a", map.get(b"a"));
    look.begin();
    if let Err(e) = map.refresh() {
        return look.error("refresh", &e);
    }
    look.keys().iter().for_each(|key| look.one(key, map.get(key)));
    look.entries(list(&map));
}

const READERS: [Named; 3] = [("by key", by_key), ("everything", everything), ("kept", kept)];

#[test]
fn beside_a_map() {
    let one = [("a", 0, 10)];
    let mut tapes = vec![("growth", growth(1, &one)), ("growth, hashes", growth(2, &one))];
    tapes.push(("growth from nothing", growth(2, &[])));
    tapes.extend([("changes", changes(1, true)), ("changes, hashes", changes(2, false))]);
    tapes.extend([("sessions", sessions_with(1)), ("sessions, hashes", sessions_with(2))]);
    explore_all("map", &tapes, &READERS, none);
}

#[test]
fn beside_the_compaction_of_a_map() {
    let tapes = [("compaction", compaction(1)), ("compaction, hashes", compaction(2)), ("rebuild", rebuild())];
    explore_all("map", &tapes, &READERS, none);
}

/// Before the repair has begun nobody believes the files.
#[test]
fn beside_the_repair_of_a_map() {
    let tapes = [("repair", repair(1, true)), ("rollback", repair(2, false))];
    explore_all("map", &tapes, &READERS, |e| matches!(e, Error::NeedsCheck { .. }));
}
