//! What compactions leave behind, and what they must not: remains, a full disk, variables of users.

use std::path::{Path, PathBuf};
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, BundleFiles, Clock, CreateFilesys, CreateHindex, CreateKvseq, CreatePages, CreatePerm, Filesys, Findings,
    Form, FsPaths, Kvseq, Map, MapFiles, Pages, Settings, Whole, filesys, inspect, kvseq, map, pages, set_variables,
    silent,
};

fn settings(disk: &FaultFs) -> Settings {
    Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared())
}

fn named(name: &str) -> FsPaths {
    FsPaths::new(Path::new("/"), name).unwrap()
}

fn warnings(whole: &Whole, settings: &Settings) -> u64 {
    let mut findings = Findings::new();
    whole.verify(settings, &mut findings, &silent).unwrap();
    assert!(findings.is_sound(), "{:?}", findings.list());
    findings.warnings()
}

#[test]
fn a_check_finds_what_a_killed_compaction_left_and_a_repair_removes_it() {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let mut fs = CreateFilesys::new(1).create(&named("t"), &settings).unwrap();
    fs.put_file(b"a", 'f', None, b"1").unwrap();
    fs.close().unwrap();
    let files = MapFiles::named(Path::new("/m"));
    let mut pairs = Map::create(&files, &CreateKvseq::default(), &CreateHindex::default(), &settings).unwrap();
    pairs.put(b"a", b"1").unwrap();
    pairs.close().unwrap();
    CreateKvseq::default().create(Path::new("/k"), &settings).unwrap().close().unwrap();
    let before = disk.files().len();
    let remains = ["/t.new.data", "/t.new.idx", "/m.kvseq.new", "/m.hindex.new", "/k.new"];
    for path in remains {
        disk.open(Path::new(path), Mode::OpenOrCreate).unwrap().write_at(0, b"half of it").unwrap();
    }
    for (path, expected) in [("/t", 2), ("/m.kvseq", 2), ("/k", 1)] {
        let whole = Whole::of(Path::new(path), &settings).unwrap();
        assert_eq!(warnings(&whole, &settings), expected, "{path}");
        whole.repair(&settings, false, &silent).unwrap();
        assert_eq!(warnings(&whole, &settings), 0, "{path}");
    }
    assert_eq!(disk.files().len(), before);
}

#[test]
fn a_compaction_without_space_leaves_the_disk_as_it_was() {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let mut fs = CreateFilesys { fileincr: 0, ..CreateFilesys::new(1) }.create(&named("t"), &settings).unwrap();
    fs.put_file(b"a", 'f', None, &[7; 100_000]).unwrap();
    fs.close().unwrap();
    let files = BundleFiles { kvseq: "/b".into(), indexes: vec!["/b.idx".into()], perm: Some("/b.perm".into()) };
    let kvseq = CreateKvseq { fileincr: 0, ..Default::default() };
    let mut kv = kvseq.create(&files.kvseq, &settings).unwrap();
    kv.add(b"a", &[7; 100_000]).unwrap();
    kv.close().unwrap();
    CreateHindex::default().create(&files.indexes[0], &settings).unwrap().close().unwrap();
    CreatePerm::default().create(Path::new("/b.perm"), &settings).unwrap().close().unwrap();
    map::rebuild(&files, &settings, &silent).unwrap();
    let names = || disk.files().into_keys().filter(|path| !path.ends_with("lock")).collect::<Vec<PathBuf>>();
    let before = names();
    let used = disk.files().values().map(|bytes| bytes.len() as u64).sum::<u64>();
    for spare in (0..=120_000).step_by(1000) {
        disk.set_capacity(used + spare);
        if spare < 90_000 {
            filesys::compact(&named("t"), &settings, None, 2, &silent).unwrap_err();
            map::compact(&files, &settings, &silent).unwrap_err();
        }
        let left: Vec<PathBuf> = names().into_iter().filter(|name| !before.contains(name)).collect();
        assert!(left.iter().all(|name| name.extension().is_some_and(|end| end == "lock")), "{spare}: {left:?}");
    }
}

/// Room in advance is a favour: a file that fits is stored where a whole step does not.
#[test]
fn a_file_that_fits_is_stored_on_a_disk_that_is_nearly_full() {
    let disk = FaultFs::new();
    let settings = Settings { buffer_bytes: 64 << 10, ..settings(&disk) };
    let create = CreateFilesys { fileincr: 1 << 20, ..CreateFilesys::new(1) };
    let mut fs = create.create(&named("t"), &settings).unwrap();
    fs.put_file(b"small", 'f', None, b"1").unwrap();
    fs.sync().unwrap();
    let used = disk.files().values().map(|bytes| bytes.len() as u64).sum::<u64>();
    disk.set_capacity(used + (600 << 10));
    fs.put_file(b"fits", 'f', None, &[1; 1500 << 10]).unwrap();
    assert!(fs.put_file(b"does not", 'f', None, &[2; 2 << 20]).is_err());
    fs.close().unwrap();
    let fs = Filesys::open(&named("t"), Access::Write, &settings).unwrap();
    assert_eq!(fs.read_all(b"fits").unwrap().len(), 1500 << 10);
    drop(fs);
    assert_eq!(warnings(&Whole::of(Path::new("/t"), &settings).unwrap(), &settings), 0);
}

#[test]
fn variables_of_users_stay() {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let mut pages = CreatePages::new(1).create(&named("c"), &settings).unwrap();
    pages.append(b"http://a/", UnixMillis(1), Form::Plain, b"event").unwrap();
    pages.close().unwrap();
    let files = BundleFiles { kvseq: "/b".into(), indexes: vec!["/b.idx".into()], perm: Some("/b.perm".into()) };
    CreateKvseq::default().create(&files.kvseq, &settings).unwrap().close().unwrap();
    CreateHindex::default().create(&files.indexes[0], &settings).unwrap().close().unwrap();
    CreatePerm::default().create(Path::new("/b.perm"), &settings).unwrap().close().unwrap();
    let all = ["/c.data", "/c.idx", "/c.time", "/c.urls", "/b", "/b.idx", "/b.perm"];
    for path in all {
        set_variables(Path::new(path), &[("MYVAR".into(), 7)], &settings).unwrap();
    }
    let check = |when: &str| {
        for path in all {
            let seen = inspect(Path::new(path), &settings).unwrap();
            let found = seen.variables.iter().find(|variable| variable.name == "MYVAR").map(|variable| &variable.value);
            assert!(found.is_some_and(|value| value.to_string() == "7"), "{path} after {when}: {found:?}");
        }
    };
    pages::compact(&named("c"), &settings, 2, &silent).unwrap();
    map::compact(&files, &settings, &silent).unwrap();
    check("compact");
    pages::repair(&named("c"), &settings, false, &silent).unwrap();
    map::rollback(&files, &settings, false, &silent).unwrap();
    check("repair");
    filesys::rebuild_index(&named("c"), &settings, None, None, &silent).unwrap();
    map::rebuild(&files, &settings, &silent).unwrap();
    check("rebuild");
    assert!(Pages::open(&named("c"), Access::Read, &settings).unwrap().newest(b"http://a/").unwrap().is_some());
}

/// Files of others may have a full superblock, and need not count.
#[test]
fn a_compaction_adds_no_variables() {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let path = Path::new("/k");
    let mut kv = CreateKvseq { fileincr: 0, ..Default::default() }.create(path, &settings).unwrap();
    let gone = kv.add(b"a", b"1").unwrap();
    kv.add(b"b", b"2").unwrap();
    kv.delete(gone).unwrap();
    kv.close().unwrap();
    let mut bytes = disk.files()[path].clone();
    for (name, other) in [(b"AENTRIES", b"USER0\0\0\0"), (b"SYNCTIME", b"USER1\0\0\0")] {
        let at = bytes.windows(8).position(|w| w == name).unwrap();
        bytes[at..at + 8].copy_from_slice(other);
    }
    disk.open(path, Mode::Truncate).unwrap().write_at(0, &bytes).unwrap();
    let names = || -> Vec<String> {
        inspect(path, &settings).unwrap().variables.iter().map(|variable| variable.name.to_string()).collect()
    };
    let before = names();
    kvseq::compact(path, &settings, &silent).unwrap();
    assert_eq!(names(), before);
    assert_eq!(warnings(&Whole::of(path, &settings).unwrap(), &settings), 0);
    assert_eq!(Kvseq::open(path, Access::Read, &settings).unwrap().entries(), Some(1));
}
