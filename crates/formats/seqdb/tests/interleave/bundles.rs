//! A kvseq with several indexes and a perm.

use crate::explore::{Named, explore_all};
use crate::look::{Look, Pairs};
use crate::tape::{Model, Recorder, Tape};
use crate::{gone, model, none, path, plain, put, value};
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_seqdb::{
    Access, BundleFiles, CreateHindex, CreateKvseq, CreatePerm, Error, Hindex, Kvseq, Map, Perm, Result, Settings, h64,
    map, silent,
};

fn files() -> BundleFiles {
    BundleFiles {
        kvseq: "/b.kvseq".into(),
        indexes: vec!["/b.one".into(), "/b.two".into()],
        perm: Some("/b.perm".into()),
    }
}

/// The kvseq with one of the indexes, or none.
fn part(index: Option<usize>) -> BundleFiles {
    let indexes = index.map(|n| files().indexes[n].clone()).into_iter().collect();
    BundleFiles { indexes, perm: None, ..files() }
}

const FIRST: [(&str, usize, usize); 4] = [("a", 0, 10), ("b", 0, 40), ("c", 0, 10), ("d", 0, 300)];

fn create(disk: &FaultFs, htsize: u64) -> Model {
    let settings = plain(disk);
    let kvseq = CreateKvseq { sbsize: 256, fileincr: 64, ..Default::default() };
    kvseq.create(&files().kvseq, &settings).unwrap().close().unwrap();
    for (index, cellsz) in files().indexes.iter().zip([1, 2]) {
        let hindex = CreateHindex { sbsize: 256, htsize, cellsz, ..Default::default() };
        hindex.create(index, &settings).unwrap().close().unwrap();
    }
    let perm = CreatePerm { sbsize: 256, ..CreatePerm::default() };
    perm.create(&files().perm.unwrap(), &settings).unwrap().close().unwrap();
    let mut bundle = Map::open(files(), Access::Write, &settings).unwrap();
    for (key, version, len) in FIRST {
        bundle.add(key.as_bytes(), &value(key, version, len)).unwrap();
    }
    bundle.close().unwrap();
    model(&FIRST)
}

fn open_to_write(tape: &mut Recorder) -> Map {
    let settings = tape.settings().clone();
    tape.shown(|| Map::open(files(), Access::Write, &settings).unwrap())
}

fn add(tape: &mut Recorder, bundle: &mut Map, key: &str, version: usize, len: usize) {
    tape.step(put(key, version, len), || bundle.add(key.as_bytes(), &value(key, version, len)).unwrap());
}

/// With few cells the indexes grow.
fn changes(htsize: u64) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, htsize);
    let mut tape = Recorder::new(&disk, first);
    let mut bundle = open_to_write(&mut tape);
    add(&mut tape, &mut bundle, "e", 0, 60);
    add(&mut tape, &mut bundle, "a", 1, 50);
    tape.shown(|| bundle.flush().unwrap());
    tape.step(gone("b"), || assert!(bundle.remove(b"b").unwrap()));
    add(&mut tape, &mut bundle, "f", 0, 100);
    add(&mut tape, &mut bundle, "a", 2, 200);
    tape.synced(|| bundle.sync().unwrap());
    add(&mut tape, &mut bundle, "b", 1, 10);
    add(&mut tape, &mut bundle, "c", 1, 10);
    tape.synced(|| bundle.close().unwrap());
    tape.end()
}

pub fn few_changes() -> Arc<Tape> {
    changes(23)
}

pub fn compaction() -> Arc<Tape> {
    let disk = FaultFs::new();
    let mut first = create(&disk, 23);
    let mut bundle = Map::open(files(), Access::Write, &plain(&disk)).unwrap();
    bundle.add(b"a", &value("a", 1, 70)).unwrap();
    put("a", 1, 70)(&mut first);
    bundle.remove(b"b").unwrap();
    gone("b")(&mut first);
    bundle.close().unwrap();
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| map::compact(files(), &settings, &silent).unwrap());
    let mut bundle = open_to_write(&mut tape);
    add(&mut tape, &mut bundle, "c", 1, 20);
    tape.synced(|| bundle.close().unwrap());
    tape.end()
}

fn rebuild() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, 5);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| map::rebuild(files(), &settings, &silent).unwrap());
    tape.end()
}

/// After a crash: back to the last sync.
fn rollback() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, 23);
    let mut bundle = Map::open(files(), Access::Write, &plain(&disk)).unwrap();
    bundle.add(b"a", &value("a", 1, 70)).unwrap();
    bundle.add(b"lost", &value("lost", 0, 30)).unwrap();
    bundle.flush().unwrap();
    drop(bundle);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    // While somebody has the lock, what was flushed is seen again.
    let seen = |model: &mut Model| {
        put("a", 1, 70)(model);
        put("lost", 0, 30)(model);
    };
    tape.step(seen, || ());
    let back = |model: &mut Model| {
        put("a", 0, 10)(model);
        gone("lost")(model);
    };
    tape.whole(back, || map::rollback(files(), &settings, false, &silent).unwrap());
    tape.end()
}

fn by_key(settings: &Settings, look: &mut Look, index: Option<usize>) {
    look.begin();
    let bundle = match Map::open(part(index), Access::Read, settings) {
        Err(e) => return look.error("open", &e),
        Ok(bundle) => bundle,
    };
    for key in look.keys() {
        look.one(&key, bundle.entry(&key).map(|found| found.map(|entry| entry.value)));
    }
}

fn by_first(settings: &Settings, look: &mut Look) {
    by_key(settings, look, Some(0));
}

fn by_second(settings: &Settings, look: &mut Look) {
    by_key(settings, look, Some(1));
}

fn by_none(settings: &Settings, look: &mut Look) {
    by_key(settings, look, None);
}

/// As `list PERM --container` has it: all pairs, and the entries they lead to.
fn by_perm(settings: &Settings, look: &mut Look) {
    look.begin();
    let perm = files().perm.unwrap();
    let opened = map::read_with(path("/b.kvseq"), settings, || Perm::open(&perm, Access::Read, settings));
    match opened {
        Err(e) => look.error("open", &e),
        Ok((kv, perm)) => look.listed(pairs(&kv, &perm)),
    }
}

fn pairs(kv: &Kvseq, perm: &Perm) -> Result<Pairs> {
    let mut all = Vec::new();
    perm.for_each(0, &mut |_, pair| {
        let entry = kv.get(pair.ptr)?;
        assert_eq!(perm.hash(&entry.key), pair.hash, "a pair of another entry");
        if !entry.deleted {
            all.push((entry.key, entry.value));
        }
        Ok(true)
    })?;
    Ok(all)
}

/// As `list HINDEX --container` has it.
fn by_cells(settings: &Settings, look: &mut Look) {
    look.begin();
    let index = &files().indexes[1];
    let opened = map::read_with(path("/b.kvseq"), settings, || Hindex::open(index, Access::Read, settings));
    let (kv, index) = match opened {
        Err(e) => return look.error("open", &e),
        Ok(opened) => opened,
    };
    let mut all = Vec::new();
    let listed = index.for_each(&mut |ptr, hash| {
        let entry = kv.get(ptr)?;
        assert_eq!(h64(&entry.key), hash, "a cell of another entry");
        all.push((entry.key, entry.value));
        Ok(())
    });
    look.all(listed.map(|()| all));
}

const READERS: [Named; 5] = [
    ("first index", by_first),
    ("second index", by_second),
    ("no index", by_none),
    ("cells", by_cells),
    ("perm", by_perm),
];

#[test]
fn beside_a_bundle() {
    explore_all("bundle", &[("changes", changes(23)), ("growth", changes(3))], &READERS, none);
}

#[test]
fn beside_the_compaction_of_a_bundle() {
    explore_all("bundle", &[("compaction", compaction()), ("rebuild", rebuild())], &READERS, none);
}

/// Before the way back has begun nobody believes the indexes. Who goes through pointers may come to one whose entry was
/// taken back since.
#[test]
fn beside_the_rollback_of_a_bundle() {
    let (keys, pointers) = READERS.split_at(3);
    let tapes = [("rollback", rollback())];
    explore_all("bundle", &tapes, keys, |e| matches!(e, Error::NeedsCheck { .. }));
    explore_all("bundle", &tapes, pointers, |e| matches!(e, Error::NeedsCheck { .. } | Error::BadPointer { .. }));
}
