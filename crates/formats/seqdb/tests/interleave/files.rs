//! A filesys.

use crate::explore::{Named, explore_all};
use crate::look::{Look, Pairs};
use crate::tape::{Model, Recorder, Tape};
use crate::{gone, model, none, path, plain, put, value};
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_seqdb::{
    Access, CreateFilesys, Error, FileInfo, Filesys, FsPaths, Result, Settings, WriteFlags, filesys, silent,
};

fn paths() -> FsPaths {
    FsPaths::new(path("/"), "f").unwrap()
}

fn shape(cellsz: u64, htsize: u64) -> CreateFilesys {
    let sizes = CreateFilesys { sbsize: 512, small_sbsize: 256, fileincr: 64, isz: 16, ..CreateFilesys::new(7) };
    CreateFilesys { cellsz, htsize, ..sizes }
}

fn create(disk: &FaultFs, shape: &CreateFilesys, entries: &[(&str, usize, usize)]) -> Model {
    let mut fs = shape.create(&paths(), &plain(disk)).unwrap();
    for (key, version, len) in entries {
        fs.put_file(key.as_bytes(), 'f', None, &value(key, *version, *len)).unwrap();
    }
    fs.close().unwrap();
    model(entries)
}

fn open_to_write(tape: &mut Recorder) -> Filesys {
    let settings = tape.settings().clone();
    tape.shown(|| Filesys::open(&paths(), Access::Write, &settings).unwrap())
}

fn add(tape: &mut Recorder, fs: &mut Filesys, name: &str, version: usize, len: usize) {
    tape.step(put(name, version, len), || {
        fs.put_file(name.as_bytes(), 'f', None, &value(name, version, len)).unwrap();
    });
}

/// Makes a file longer, with something else behind it, so that the next part is another entry.
fn append(tape: &mut Recorder, fs: &mut Filesys, name: &str, to: usize) {
    tape.step(put(name, 0, to), || {
        let mut file = fs.open_file_wr(name.as_bytes(), 'f', WriteFlags::default()).unwrap();
        let old = usize::try_from(file.size()).unwrap();
        fs.append_file(&mut file, &value(name, 0, to)[old..]).unwrap();
    });
}

fn rename(tape: &mut Recorder, fs: &mut Filesys, old: &str, new: &str) {
    let change = |model: &mut Model| {
        let contents = model.remove(old.as_bytes()).unwrap();
        model.insert(new.as_bytes().to_vec(), contents);
    };
    tape.step(change, || fs.rename_file(old.as_bytes(), new.as_bytes()).unwrap());
}

fn delete(tape: &mut Recorder, fs: &mut Filesys, name: &str) {
    tape.step(gone(name), || fs.delete_file(name.as_bytes()).unwrap());
}

const FIRST: [(&str, usize, usize); 4] = [("a", 0, 10), ("b", 0, 30), ("c", 0, 200), ("d", 0, 12)];

/// New files, and one that goes and comes.
fn puts(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    add(&mut tape, &mut fs, "e", 0, 40);
    tape.shown(|| fs.flush().unwrap());
    delete(&mut tape, &mut fs, "b");
    let large = value("large", 0, 400);
    tape.step(put("large", 0, 400), || fs.put_file_from(b"large", 'f', None, &mut &large[..]).unwrap());
    tape.shown(|| fs.flush().unwrap());
    tape.synced(|| fs.close().unwrap());
    let mut fs = open_to_write(&mut tape);
    add(&mut tape, &mut fs, "b", 1, 40);
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

pub fn sessions() -> Arc<Tape> {
    puts(&shape(1, 23))
}

pub fn compacted() -> Arc<Tape> {
    compaction(&shape(2, 23))
}

/// A file gets so many parts that its inode is replaced, and again.
fn growth(shape: &CreateFilesys, sync_between: bool) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    for (n, to) in [25, 60, 130].into_iter().enumerate() {
        append(&mut tape, &mut fs, "a", to);
        add(&mut tape, &mut fs, &format!("{n}"), 0, 20);
        match sync_between {
            true => tape.synced(|| fs.sync().unwrap()),
            false => tape.shown(|| fs.flush().unwrap()),
        }
    }
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

/// The last file grows in place.
fn last(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    for to in [20, 90, 300] {
        append(&mut tape, &mut fs, "d", to);
        tape.shown(|| fs.flush().unwrap());
    }
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

/// Sizes and room change in the inode only.
fn sizes(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    let cut = |model: &mut Model| drop(model.insert(b"c".to_vec(), value("c", 0, 200)[..90].to_vec()));
    tape.step(cut, || {
        let mut file = fs.open_file_wr(b"c", 'f', WriteFlags::default()).unwrap();
        fs.truncate(&mut file, 90).unwrap();
    });
    tape.shown(|| fs.flush().unwrap());
    for name in [b"a", b"d"] {
        tape.shown(|| {
            let mut file = fs.open_file_wr(name, 'f', WriteFlags::default()).unwrap();
            fs.reserve(&mut file, 100).unwrap();
            fs.set_mtime(&mut file, 77).unwrap();
        });
    }
    append(&mut tape, &mut fs, "a", 70);
    append(&mut tape, &mut fs, "d", 170);
    tape.shown(|| fs.flush().unwrap());
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

/// Names that fit, and names that need a larger inode.
fn renames(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    rename(&mut tape, &mut fs, "a", "a2");
    tape.shown(|| fs.flush().unwrap());
    rename(&mut tape, &mut fs, "c", "a name that is too long for it");
    tape.shown(|| fs.flush().unwrap());
    rename(&mut tape, &mut fs, "a2", "a");
    add(&mut tape, &mut fs, "e", 0, 40);
    tape.synced(|| fs.sync().unwrap());
    rename(&mut tape, &mut fs, "a name that is too long for it", "c");
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

/// The index grows.
fn resize(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, &CreateFilesys { htsize: 3, ..shape.clone() }, &FIRST[..2]);
    let mut tape = Recorder::new(&disk, first);
    let mut fs = open_to_write(&mut tape);
    for n in 0..6 {
        add(&mut tape, &mut fs, &format!("{n}"), 0, 20);
        if n % 2 == 1 {
            tape.shown(|| fs.flush().unwrap());
        }
    }
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

/// A filesys of which a part is deleted.
fn holey(disk: &FaultFs, shape: &CreateFilesys) -> Model {
    let mut first = create(disk, shape, &FIRST);
    let mut fs = Filesys::open(&paths(), Access::Write, &plain(disk)).unwrap();
    fs.delete_file(b"b").unwrap();
    gone("b")(&mut first);
    fs.close().unwrap();
    first
}

fn compaction(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = holey(&disk, shape);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| filesys::compact(&paths(), &settings, None, 8, &silent).unwrap());
    let mut fs = open_to_write(&mut tape);
    if shape.append_only.is_none() {
        append(&mut tape, &mut fs, "a", 40);
    }
    add(&mut tape, &mut fs, "e", 0, 20);
    tape.synced(|| fs.close().unwrap());
    tape.end()
}

fn rebuild(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = holey(&disk, shape);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| filesys::rebuild_index(&paths(), &settings, Some(23), None, &silent).unwrap());
    tape.end()
}

/// A writer that died: what it had flushed is taken back.
fn repair(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, shape, &FIRST);
    let mut fs = Filesys::open(&paths(), Access::Write, &plain(&disk)).unwrap();
    // A file's inode was replaced: what leads to it leads past the end.
    let grown = if shape.append_only.is_none() { 40 } else { 10 };
    if grown > 10 {
        let mut file = fs.open_file_wr(b"a", 'f', WriteFlags::default()).unwrap();
        fs.append_file(&mut file, &value("a", 0, grown)[10..]).unwrap();
    }
    fs.put_file(b"lost", 'f', None, &value("lost", 0, 30)).unwrap();
    fs.flush().unwrap();
    drop(fs);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    let seen = |model: &mut Model| {
        put("a", 0, grown)(model);
        put("lost", 0, 30)(model);
    };
    tape.step(seen, || ());
    let back = |model: &mut Model| {
        put("a", 0, 10)(model);
        gone("lost")(model);
    };
    tape.whole(back, || filesys::repair(&paths(), &settings, false, &silent).unwrap());
    tape.end()
}

/// A repair of what is sound.
fn needless_repair(shape: &CreateFilesys) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = holey(&disk, shape);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.whole(|_| (), || filesys::repair(&paths(), &settings, false, &silent).unwrap());
    tape.end()
}

fn open(settings: &Settings, look: &mut Look) -> Option<Filesys> {
    look.begin();
    Filesys::open(&paths(), Access::Read, settings).map_err(|e| look.error("open", &e)).ok()
}

fn contents(fs: &Filesys, name: &[u8]) -> Result<Option<Vec<u8>>> {
    match fs.read_all(name) {
        Err(Error::FileNotFound { .. }) => Ok(None),
        found => found.map(Some),
    }
}

fn read_listed(fs: &Filesys, info: &FileInfo) -> Result<Vec<u8>> {
    let file = fs.open_listed(info)?;
    let mut contents = vec![0; usize::try_from(file.size()).unwrap()];
    let n = fs.read_file(&file, 0, &mut contents)?;
    assert_eq!(n, contents.len());
    Ok(contents)
}

/// Names and contents, as an export has them.
fn export(fs: &Filesys) -> Result<Pairs> {
    let mut files = fs.files();
    let mut all = Vec::new();
    while let Some(info) = files.next_file()? {
        let contents = read_listed(fs, &info)?;
        all.push((info.name, contents));
    }
    Ok(all)
}

/// A file that is renamed meanwhile is in an export, unless only the index knows which names there are.
fn judge(look: &mut Look, fs: &Filesys) {
    match fs.data().superblock().get("HAVEDUPS") {
        Some(1) => look.named(export(fs)),
        _ => look.all(export(fs)),
    }
}

/// As `fs stat` and `fs cat` do: a file that the index of a live writer does not have yet is looked for in the data.
fn look_up(fs: &Filesys, name: &[u8]) -> Result<Option<Vec<u8>>> {
    match fs.stat(name) {
        Err(Error::FileNotFound { .. }) => Ok(None),
        info => read_listed(fs, &info?).map(Some),
    }
}

fn by_name(settings: &Settings, look: &mut Look) {
    let Some(fs) = open(settings, look) else { return };
    look.keys().iter().for_each(|name| look.one(name, contents(&fs, name)));
}

fn by_name_or_data(settings: &Settings, look: &mut Look) {
    let Some(fs) = open(settings, look) else { return };
    look.keys().iter().for_each(|name| look.one(name, look_up(&fs, name)));
}

fn exported(settings: &Settings, look: &mut Look) {
    let Some(fs) = open(settings, look) else { return };
    judge(look, &fs);
}

/// What was created by the writer, as its time says.
fn since(settings: &Settings, look: &mut Look) {
    let Some(fs) = open(settings, look) else { return };
    let list = || {
        let mut files = fs.files_since(5)?;
        let mut all = Vec::new();
        while let Some(info) = files.next_file()? {
            let contents = read_listed(&fs, &info)?;
            all.push((info.name, contents));
        }
        Ok(all)
    };
    look.new_ones(list());
}

/// In the order of the index, which may be behind: what is there is right.
fn indexed(settings: &Settings, look: &mut Look) {
    let Some(fs) = open(settings, look) else { return };
    let mut all = Vec::new();
    let listed = fs.for_each_indexed(&mut |info| {
        let contents = read_listed(&fs, &info)?;
        all.push((info.name, contents));
        Ok(())
    });
    look.named(listed.map(|()| all));
}

fn kept(settings: &Settings, look: &mut Look) {
    let Some(mut fs) = open(settings, look) else { return };
    look.one(b"a", contents(&fs, b"a"));
    look.begin();
    if let Err(e) = fs.refresh() {
        return look.error("refresh", &e);
    }
    look.keys().iter().for_each(|name| look.one(name, contents(&fs, name)));
    judge(look, &fs);
}

const READERS: [Named; 5] = [
    ("by name", by_name),
    ("by name or data", by_name_or_data),
    ("export", exported),
    ("index", indexed),
    ("kept", kept),
];

#[test]
fn beside_a_filesys() {
    let (small, hashes) = (shape(1, 23), shape(2, 23));
    let tapes = [
        ("puts", puts(&small)),
        ("growth", growth(&small, false)),
        ("growth, synced", growth(&hashes, true)),
        ("the last file", last(&small)),
        ("sizes", sizes(&small)),
        ("renames", renames(&small)),
        ("renames, hashes", renames(&hashes)),
        ("resize", resize(&small)),
        ("resize, hashes", resize(&hashes)),
    ];
    explore_all("filesys", &tapes, &READERS, none);
}

#[test]
fn beside_an_append_only_filesys() {
    let shape = CreateFilesys { append_only: Some(0), ..shape(2, 23) };
    let tapes = [
        ("puts", puts(&shape)),
        ("resize", resize(&shape)),
        ("compaction", compaction(&shape)),
        ("needless repair", needless_repair(&shape)),
    ];
    explore_all("append-only filesys", &tapes, &READERS, none);
    explore_all("append-only filesys", &tapes, &[("since a time", since)], none);
}

#[test]
fn beside_a_filesys_whose_deletions_are_in_the_index() {
    let shape = CreateFilesys { have_dups: true, ..shape(2, 23) };
    let tapes = [
        ("puts", puts(&shape)),
        ("growth", growth(&shape, false)),
        ("renames", renames(&shape)),
        ("compaction", compaction(&shape)),
        ("rebuild", rebuild(&shape)),
    ];
    explore_all("filesys with duplicates", &tapes, &READERS, none);
}

#[test]
fn beside_the_compaction_of_a_filesys() {
    let tapes = [
        ("compaction", compaction(&shape(1, 23))),
        ("compaction, hashes", compaction(&shape(2, 23))),
        ("rebuild", rebuild(&shape(2, 7))),
        ("needless repair", needless_repair(&shape(2, 7))),
    ];
    explore_all("filesys", &tapes, &READERS, none);
}

/// Before the repair has begun nobody believes the files.
#[test]
fn beside_the_repair_of_a_filesys() {
    let ao = CreateFilesys { append_only: Some(0), ..shape(2, 23) };
    let tapes = [("repair", repair(&shape(1, 23))), ("repair of an append-only one", repair(&ao))];
    explore_all("filesys", &tapes, &READERS, |e| matches!(e, Error::NeedsCheck { .. }));
}
