use super::*;
use crate::findings::Findings;
use crate::{Clock, silent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;

fn settings(fs: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 6 << 20, buffer_bytes: 300, ..Settings::new(clock, "test").on(fs.shared()) }
}

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "docs").unwrap()
}

fn small() -> CreateFilesys {
    CreateFilesys { sbsize: 512, small_sbsize: 512, fileincr: 0, isz: 32, htsize: 5, ..CreateFilesys::new(77) }
}

fn check(fs: &FaultFs) -> (FsFindings, Findings) {
    let mut findings = Findings::new();
    let counted = verify(&paths(), &settings(fs), &mut findings, &silent).unwrap();
    (counted, findings)
}

fn sound(fs: &FaultFs) -> FsFindings {
    let (counted, findings) = check(fs);
    assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
    counted
}

fn listed(fs: &Filesys) -> Vec<String> {
    let mut files = fs.files();
    let mut names = Vec::new();
    while let Some(file) = files.next_file().unwrap() {
        names.push(String::from_utf8(file.name).unwrap());
    }
    names
}

#[test]
fn sizes_are_those_of_the_genuine_superblock() {
    // ISZ 512: inodes of 564 bytes, data entries of 29 bytes and their contents; 198823 and 198822 of them add up.
    let disk = FaultFs::new();
    let create = CreateFilesys { isz: 512, ..small() };
    let mut fs = create.create(&paths(), &settings(&disk)).unwrap();
    fs.put_file(b"empty", 'f', None, b"").unwrap();
    assert_eq!((fs.itot, fs.dtot, fs.data.end()), (564, 0, 512 + 564));
    fs.put_file(b"full", 'f', None, &[1; 1000]).unwrap();
    assert_eq!((fs.itot, fs.dtot, fs.data.end()), (1128, 1000, 512 + 1128 + 29 + 1000));
    let (inodes, entries) = (198_823, 198_822);
    assert_eq!(inodes * 564, 112_136_172);
    assert_eq!(4096 + 112_136_172 + 254_377_116 + 29 * entries, 372_283_222);
    fs.close().unwrap();
    sound(&disk);
}

#[test]
fn parts_are_read_and_written_anywhere() {
    let disk = FaultFs::new();
    let mut fs = small().create(&paths(), &settings(&disk)).unwrap();
    let mut a = fs.open_file_wr(b"a", 'f', WriteFlags::default()).unwrap();
    let mut b = fs.open_file_wr(b"b", 'x', WriteFlags::default()).unwrap();
    let (mut model_a, mut model_b) = (Vec::new(), Vec::new());
    // Growing in turns: neither is ever the last for long, so both get many parts and larger inodes.
    for n in 0..40u8 {
        fs.append_file(&mut a, &[n; 50]).unwrap();
        model_a.extend([n; 50]);
        fs.append_file(&mut b, &[n; 30]).unwrap();
        model_b.extend([n; 30]);
    }
    assert!(a.extents.len() > 3 && a.inode.area > 32, "{} parts, area {}", a.extents.len(), a.inode.area);
    fs.write_file(&mut a, 45, &[99; 200]).unwrap();
    model_a[45..245].fill(99);
    fs.write_file(&mut b, 2000, b"far").unwrap();
    model_b.resize(2000, 0);
    model_b.extend(b"far");
    fs.truncate(&mut a, 100).unwrap();
    model_a.truncate(100);
    fs.truncate(&mut a, 300).unwrap();
    model_a.resize(300, 0);
    fs.reserve(&mut b, 9000).unwrap();
    assert!(b.capacity() >= 9000 && b.size() == 2003);
    let mut buf = [0; 77];
    assert_eq!(fs.read_file(&a, 250, &mut buf).unwrap(), 50);
    assert_eq!(buf[..50], model_a[250..]);
    assert_eq!(fs.read_file(&a, 300, &mut buf).unwrap(), 0);
    drop((a, b));
    fs.close().unwrap();
    assert_eq!(sound(&disk).bytes, 300 + 2003);
    let fs = Filesys::open(&paths(), Access::Read, &settings(&disk)).unwrap();
    assert_eq!(fs.read_all(b"a").unwrap(), model_a);
    assert_eq!(fs.read_all(b"b").unwrap(), model_b);
}

#[test]
fn a_file_is_open_once_for_writing() {
    let disk = FaultFs::new();
    let mut fs = small().create(&paths(), &settings(&disk)).unwrap();
    fs.put_file(b"a", 'f', None, b"x").unwrap();
    let one = fs.open_file(b"a", "").unwrap();
    let two = fs.open_file(b"a", "fc").unwrap();
    assert!(matches!(fs.open_file_wr(b"a", 'f', WriteFlags::default()), Err(Error::AlreadyOpen { .. })));
    assert!(matches!(fs.delete_file(b"a"), Err(Error::AlreadyOpen { .. })));
    drop(one);
    assert!(fs.open_file_wr(b"a", 'f', WriteFlags::default()).is_err());
    drop(two);
    let mut writer = fs.open_file_wr(b"a", 'f', WriteFlags::default()).unwrap();
    assert!(matches!(fs.open_file(b"a", ""), Err(Error::AlreadyOpen { .. })));
    // A parked filesys gives back its lock; handles stay good.
    let parked = fs.dispose().unwrap();
    Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap().close().unwrap();
    let mut fs = parked.resume().unwrap();
    fs.append_file(&mut writer, b"y").unwrap();
    drop(writer);
    assert_eq!(fs.read_all(b"a").unwrap(), b"xy");
    let excl = WriteFlags { excl: true, mtime: None };
    assert!(matches!(fs.open_file_wr(b"a", 'f', excl), Err(Error::FileExists { .. })));
    assert!(matches!(fs.open_file_wr(b"a", 'c', WriteFlags::default()), Err(Error::TypeMismatch { .. })));
    assert!(matches!(fs.open_file(b"a", "cx"), Err(Error::TypeMismatch { found: 'f', .. })));
    assert!(matches!(fs.open_file(b"b", ""), Err(Error::FileNotFound { .. })));
    assert!(matches!(fs.put_file(b"", 'f', None, b""), Err(Error::TooShort { .. })));
    assert!(matches!(fs.put_file(&[7; 65536], 'f', None, b""), Err(Error::TooLong { .. })));
    fs.put_file(&[7; 65535], 'f', None, b"long name").unwrap();
    assert_eq!(fs.read_all(&[7; 65535]).unwrap(), b"long name");
}

#[test]
fn names_change_in_place_or_by_a_larger_inode() {
    let disk = FaultFs::new();
    let mut fs = small().create(&paths(), &settings(&disk)).unwrap();
    fs.put_file(b"a", 'c', Some(5), b"contents").unwrap();
    fs.put_file(b"other", 'f', None, b"").unwrap();
    fs.rename_file(b"a", b"somewhat longer").unwrap();
    assert!(matches!(fs.rename_file(b"a", b"b"), Err(Error::FileNotFound { .. })));
    assert!(matches!(fs.rename_file(b"other", b"somewhat longer"), Err(Error::FileExists { .. })));
    let entries = fs.data.entries();
    let long = [b'n'; 100];
    fs.rename_file(b"somewhat longer", &long).unwrap();
    assert_eq!(fs.data.entries(), entries.map(|n| n + 1), "a new inode");
    let FileInfo { name, kind, size, mtime, .. } = fs.stat(&long).unwrap();
    assert_eq!((&name[..], kind, size, mtime), (&long[..], 'c', 8, 5));
    fs.rename_file(&long, b"a").unwrap();
    assert_eq!(fs.read_all(b"a").unwrap(), b"contents");
    assert_eq!(listed(&fs), ["other", "a"]);
    fs.close().unwrap();
    assert_eq!(sound(&disk).files, 2);
}

#[test]
fn deleted_files_are_gone_in_both_or_only_in_the_index() {
    for have_dups in [false, true] {
        let disk = FaultFs::new();
        let mut fs = CreateFilesys { have_dups, ..small() }.create(&paths(), &settings(&disk)).unwrap();
        for name in ["a", "b", "c"] {
            fs.put_file(name.as_bytes(), 'f', None, &[1; 100]).unwrap();
        }
        fs.delete_file(b"b").unwrap();
        assert!(matches!(fs.delete_file(b"b"), Err(Error::FileNotFound { .. })));
        fs.put_file(b"b", 'f', None, b"new").unwrap();
        assert_eq!(listed(&fs), ["a", "c", "b"]);
        fs.delete_file(b"a").unwrap();
        let live = fs.data.live_entries().unwrap();
        assert_eq!(live, if have_dups { 8 } else { 4 }, "flags only where deletions are flagged");
        let stats = fs.stats();
        assert_eq!((stats.files, stats.deleted_cells), (2, stats.used_cells - 2));
        assert_eq!(stats.used_bytes, 2 * (29 + 23 + 32) + 100 + 3);
        assert_eq!(stats.total_bytes, stats.used_bytes + stats.dead_bytes);
        fs.close().unwrap();
        sound(&disk);
        let done = compact(&paths(), &settings(&disk), None, 99, &silent).unwrap();
        assert!(done.files == 2 && done.new_bytes < done.old_bytes);
        sound(&disk);
        let fs = Filesys::open(&paths(), Access::Read, &settings(&disk)).unwrap();
        assert_eq!(listed(&fs), ["c", "b"]);
        assert_eq!(fs.data.superblock().get("FSGEN"), Some(99));
        // With the index goes the knowledge of what was deleted.
        drop(fs);
        let mut fs = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap();
        fs.delete_file(b"c").unwrap();
        fs.close().unwrap();
        disk.shared().remove_file(&paths().index()).unwrap();
        let gone = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap_err();
        assert!(matches!(gone, Error::NeedsCheck { .. }), "{gone}");
        let done = repair(&paths(), &settings(&disk), false, &silent).unwrap();
        assert_eq!((done.resurrected, done.files), (have_dups, if have_dups { 2 } else { 1 }));
        sound(&disk);
    }
}

#[test]
fn a_name_only_in_the_data_file_comes_back_with_a_rebuild() {
    let disk = FaultFs::new();
    let mut fs = small().create(&paths(), &settings(&disk)).unwrap();
    fs.put_file(b"a", 'f', None, b"1").unwrap();
    fs.delete_name_from_index(b"a").unwrap();
    assert!(!fs.contains(b"a").unwrap());
    fs.close().unwrap();
    assert_eq!(check(&disk).1.warnings(), 1);
    let done = rebuild_index(&paths(), &settings(&disk), Some(101), Some(1), &silent).unwrap();
    assert_eq!(done.files, 1);
    sound(&disk);
    let fs = Filesys::open(&paths(), Access::Read, &settings(&disk)).unwrap();
    assert_eq!((fs.read_all(b"a").unwrap(), fs.index.htsize(), fs.index.cellsz()), (b"1".to_vec(), 101, 1));
}

fn ticking(fs: &FaultFs) -> (Settings, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(1000));
    let clock = now.clone();
    let clock = Clock::new(move || UnixMillis(clock.load(Ordering::Relaxed) * 1000));
    (Settings { clock, ..settings(fs) }, now)
}

#[test]
fn an_append_only_filesys_keeps_to_its_rules() {
    let disk = FaultFs::new();
    let (settings, now) = ticking(&disk);
    let mut fs = CreateFilesys { append_only: Some(10), ..small() }.create(&paths(), &settings).unwrap();
    let mut a = fs.open_file_wr(b"a", 'f', WriteFlags::default()).unwrap();
    fs.append_file(&mut a, &[1; 100]).unwrap();
    fs.append_file(&mut a, &[2; 500]).unwrap();
    assert_eq!(a.extents.len(), 1, "grown in place");
    let restricted = |r: Result<()>| assert!(matches!(r, Err(Error::AppendOnlyRestriction { .. })), "{r:?}");
    restricted(fs.truncate(&mut a, 3));
    restricted(fs.set_mtime(&mut a, 3));
    fs.reserve(&mut a, 10_000).unwrap();
    assert_eq!(a.capacity(), 600);
    now.store(1005, Ordering::Relaxed);
    let mut b = fs.open_file_wr(b"b", 'f', WriteFlags::default()).unwrap();
    restricted(fs.append_file(&mut a, b"x"));
    drop(a);
    restricted(fs.open_file_wr(b"a", 'f', WriteFlags::default()).map(drop));
    fs.append_file(&mut b, b"b").unwrap();
    drop(b);
    let early = WriteFlags { excl: false, mtime: Some(1004) };
    restricted(fs.open_file_wr(b"c", 'f', early).map(drop));
    now.store(900, Ordering::Relaxed);
    fs.put_file(b"c", 'f', None, b"c").unwrap();
    assert_eq!(fs.stat(b"c").unwrap().mtime, 1005, "time never goes back");
    fs.rename_file(b"c", b"cc").unwrap();
    restricted(fs.rename_file(b"cc", &[b'c'; 40]));
    fs.delete_file(b"a").unwrap();
    fs.close().unwrap();
    assert_eq!(sound(&disk).files, 2);
    // The time of the last file is found again.
    let mut fs = Filesys::open(&paths(), Access::Write, &settings).unwrap();
    fs.put_file(b"d", 'f', None, b"").unwrap();
    assert_eq!(fs.stat(b"d").unwrap().mtime, 1005);
}

#[test]
fn files_are_found_from_a_time_on() {
    let disk = FaultFs::new();
    let (settings, now) = ticking(&disk);
    let mut fs = CreateFilesys { append_only: Some(10), ..small() }.create(&paths(), &settings).unwrap();
    for n in 0..200i64 {
        now.store(1000 + n * 3, Ordering::Relaxed);
        fs.put_file(n.to_string().as_bytes(), 'f', None, &[0; 400]).unwrap();
    }
    for n in (0..200).step_by(7) {
        fs.delete_file(n.to_string().as_bytes()).unwrap();
    }
    fs.sync().unwrap();
    let marks = fs.time.as_ref().unwrap().marks();
    assert_eq!(marks, 50, "every 12 seconds");
    for t in [0, 999, 1000, 1001, 1300, 1301, 1302, 1597, 1598, 5000] {
        let mut files = fs.files_since(t).unwrap();
        let mut found = Vec::new();
        while let Some(file) = files.next_file().unwrap() {
            found.push(String::from_utf8(file.name).unwrap().parse::<i64>().unwrap());
        }
        let expected: Vec<i64> = (0..200).filter(|n| n % 7 != 0 && 1000 + n * 3 >= t).collect();
        assert_eq!(found, expected, "{t}");
    }
    let before = disk.counts().bytes_read;
    assert!(fs.files_since(1590).unwrap().next_file().unwrap().is_some());
    assert!(disk.counts().bytes_read - before < 20_000, "it starts near the place");
    fs.close().unwrap();
    sound(&disk);
    disk.shared().remove_file(&paths().time()).unwrap();
    repair(&paths(), &settings, false, &silent).unwrap();
    sound(&disk);
}

#[test]
fn a_base_is_a_directory_of_filesys() {
    let disk = FaultFs::new();
    let mut base = Base::open(Path::new("/"), &settings(&disk)).unwrap();
    for name in ["b", "a"] {
        base.create_filesys(name, &small()).unwrap().close().unwrap();
    }
    let exists = base.create_filesys("a", &small()).unwrap_err();
    assert!(matches!(exists, Error::FilesysExists { .. }), "{exists}");
    assert!(matches!(base.filesys("c", Access::Read), Err(Error::FilesysNotFound { .. })));
    assert_eq!(base.names().unwrap(), ["a", "b"]);
    for name in ["", ".a", "a/b", "a\0", "a.new", &"x".repeat(201)] {
        assert!(matches!(base.paths(name), Err(Error::BadName { .. })), "{name:?}");
    }
    assert!(base.lock().is_err(), "there is no lock file");
    base.create_lock().unwrap();
    base.lock().unwrap();
    let paths = base.paths("a").unwrap();
    let busy = repair(&paths, &settings(&disk), false, &silent).unwrap_err();
    assert!(matches!(busy, Error::LockFailed(_)), "{busy}");
    drop(base);
    repair(&paths, &settings(&disk), false, &silent).unwrap();
    let writer = Filesys::open(&paths, Access::Write, &settings(&disk)).unwrap();
    let second = Filesys::open(&paths, Access::Write, &settings(&disk)).unwrap_err();
    assert_eq!(second.to_string(), "/a.lock: held by test");
    let mut findings = Findings::new();
    assert!(verify(&paths, &settings(&disk), &mut findings, &silent).is_err());
    writer.close().unwrap();
    assert!(disk.files()[&paths.lock()].is_empty());
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let disk = FaultFs::new();
    small().create(&paths(), &settings(&disk)).unwrap().close().unwrap();
    let other = FsPaths::new(Path::new("/"), "other").unwrap();
    let mut fs = CreateFilesys { fsgen: 78, ..small() }.create(&other, &settings(&disk)).unwrap();
    fs.put_file(b"x", 'f', None, b"y").unwrap();
    fs.close().unwrap();
    disk.shared().rename(&other.index(), &paths().index()).unwrap();
    let mixed = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap_err();
    assert!(matches!(mixed, Error::GenerationMismatch { expected: 77, found: 78, .. }), "{mixed}");
    assert!(check(&disk).1.faults() >= 2);
    repair(&paths(), &settings(&disk), false, &silent).unwrap();
    assert_eq!(sound(&disk).files, 0);
}

#[derive(Debug, Clone)]
enum Op {
    Put(u8, usize),
    Write(u8, usize, usize),
    Truncate(u8, usize),
    Reserve(u8, usize),
    Delete(u8),
    Rename(u8, u8),
    Sync,
    Reopen,
    Compact,
    Crash,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0u8..12, 0usize..700).prop_map(|(n, len)| Op::Put(n, len)),
        6 => (0u8..12, 0usize..900, 0usize..300).prop_map(|(n, at, len)| Op::Write(n, at, len)),
        1 => (0u8..12, 0usize..900).prop_map(|(n, len)| Op::Truncate(n, len)),
        1 => (0u8..12, 0usize..3000).prop_map(|(n, len)| Op::Reserve(n, len)),
        3 => (0u8..12).prop_map(Op::Delete),
        2 => (0u8..12, 0u8..12).prop_map(|(a, b)| Op::Rename(a, b)),
        1 => Just(Op::Sync),
        1 => Just(Op::Reopen),
        1 => Just(Op::Compact),
        1 => Just(Op::Crash),
    ];
    proptest::collection::vec(op, 0..60)
}

fn name(n: u8) -> Vec<u8> {
    vec![b'a' + n; usize::from(n % 4) * 30 + 1]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn behaves_like_a_map_of_files(ops in ops(), have_dups: bool, cellsz in 1u64..=2) {
        let disk = FaultFs::new();
        let mut fs = CreateFilesys { have_dups, cellsz, ..small() }.create(&paths(), &settings(&disk)).unwrap();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for op in ops {
            match op {
                Op::Put(n, len) => {
                    let contents = vec![n; len];
                    let done = fs.put_file(&name(n), 'f', None, &contents);
                    prop_assert_eq!(done.is_err(), model.contains_key(&name(n)));
                    model.entry(name(n)).or_insert(contents);
                }
                Op::Write(n, at, len) => {
                    let mut file = fs.open_file_wr(&name(n), 'f', WriteFlags::default()).unwrap();
                    fs.write_file(&mut file, at as u64, &vec![n ^ 0x55; len]).unwrap();
                    let contents = model.entry(name(n)).or_default();
                    contents.resize(contents.len().max(at + len), 0);
                    contents[at..at + len].fill(n ^ 0x55);
                }
                Op::Truncate(n, len) if model.contains_key(&name(n)) => {
                    let mut file = fs.open_file_wr(&name(n), 'f', WriteFlags::default()).unwrap();
                    fs.truncate(&mut file, len as u64).unwrap();
                    model.get_mut(&name(n)).unwrap().resize(len, 0);
                }
                Op::Reserve(n, len) if model.contains_key(&name(n)) => {
                    let mut file = fs.open_file_wr(&name(n), 'f', WriteFlags::default()).unwrap();
                    fs.reserve(&mut file, len as u64).unwrap();
                    prop_assert!(file.capacity() >= len as u64);
                }
                Op::Truncate(..) | Op::Reserve(..) => {}
                Op::Delete(n) => prop_assert_eq!(fs.delete_file(&name(n)).is_ok(), model.remove(&name(n)).is_some()),
                Op::Rename(a, b) => {
                    let possible = model.contains_key(&name(a)) && !model.contains_key(&name(b));
                    prop_assert_eq!(fs.rename_file(&name(a), &name(b)).is_ok(), possible);
                    if possible {
                        let contents = model.remove(&name(a)).unwrap();
                        model.insert(name(b), contents);
                    }
                }
                Op::Sync => fs.sync().unwrap(),
                Op::Reopen => {
                    fs.close().unwrap();
                    fs = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap();
                }
                Op::Compact => {
                    fs.close().unwrap();
                    compact(&paths(), &settings(&disk), None, 1234, &silent).unwrap();
                    fs = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap();
                }
                // The process dies right after a sync: a repair has nothing to take back.
                Op::Crash => {
                    fs.sync().unwrap();
                    fs.begin().unwrap();
                    drop(fs);
                    if have_dups {
                        // Deletions would be forgotten: rebuild with the index as it is.
                        crate::Hindex::open_anyway(&paths().index(), Access::Write, &settings(&disk)).unwrap().close().unwrap();
                    }
                    let done = repair(&paths(), &settings(&disk), false, &silent).unwrap();
                    prop_assert!(!done.resurrected && done.cut_files == 0 && done.superseded == 0 && done.orphans == 0, "{done:?}");
                    fs = Filesys::open(&paths(), Access::Write, &settings(&disk)).unwrap();
                }
            }
            prop_assert_eq!(fs.stats().files, model.len() as u64);
        }
        for (name, contents) in &model {
            prop_assert_eq!(&fs.read_all(name).unwrap(), contents);
        }
        let mut names = Vec::new();
        fs.for_each_indexed(&mut |info| { names.push(info.name); Ok(()) }).unwrap();
        names.sort();
        prop_assert_eq!(&names, &model.keys().cloned().collect::<Vec<_>>());
        let mut in_order = listed(&fs);
        in_order.sort();
        prop_assert_eq!(in_order.into_iter().map(String::into_bytes).collect::<Vec<_>>(), names);
        fs.close().unwrap();
        let (counted, findings) = check(&disk);
        prop_assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
        prop_assert_eq!(counted.bytes, model.values().map(|c| c.len() as u64).sum::<u64>());
    }
}

#[test]
fn cut_and_flip_of_every_file() {
    let base = FaultFs::new();
    let mut fs = CreateFilesys { append_only: Some(1), ..small() }.create(&paths(), &settings(&base)).unwrap();
    fs.put_file(b"a.txt", 'f', None, b"hello\n").unwrap();
    fs.put_file(b"b", 'c', None, b"").unwrap();
    fs.delete_file(b"b").unwrap();
    fs.close().unwrap();
    let good = base.files();
    let touch = |path: &Path, bytes: &[u8]| {
        let disk = FaultFs::new();
        for (other, contents) in &good {
            let file = trawl_io::Fs::open(&disk, other, trawl_io::Mode::Truncate).unwrap();
            file.write_at(0, if other == path { bytes } else { contents }).unwrap();
        }
        let mut findings = Findings::new();
        let _ = verify(&paths(), &settings(&disk), &mut findings, &silent);
        if let Ok(fs) = Filesys::open(&paths(), Access::Read, &settings(&disk)) {
            let _ = fs.read_all(b"a.txt");
            let _ = fs.read_all(b"b");
            let mut files = fs.files_since(5).unwrap();
            while let Ok(Some(_)) = files.next_file() {}
        }
        if repair(&paths(), &settings(&disk), true, &silent).is_ok() {
            let (_, after) = check(&disk);
            let own = after.list().iter().filter(|f| !f.expected.contains("mtime") && !f.expected.contains("mark"));
            assert_eq!(own.count(), 0, "{:?}", after.list());
        }
        findings.is_sound()
    };
    for path in [paths().data(), paths().index(), paths().time()] {
        let bytes = &good[&path];
        assert!(touch(&path, bytes));
        for cut in 0..bytes.len() {
            assert!(!touch(&path, &bytes[..cut]), "{} cut to {cut}", path.display());
        }
        for bit in (0..bytes.len() * 8).filter(|bit| bit % 8 != 2 || *bit > 4096) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            touch(&path, &flipped);
        }
    }
}
