use super::*;
use crate::{AtomicFile, Hint, publish, remove_tree};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

fn p(s: &str) -> &Path {
    Path::new(s)
}

fn write(fs: &FaultFs, path: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = fs.open(p(path), Mode::Truncate).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

#[test]
fn contents_need_a_sync_and_names_need_another() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", b"one");
    assert!(fs.reboot(Loss::All).files().is_empty());
    a.sync_data().unwrap();
    assert!(fs.reboot(Loss::All).files().is_empty(), "a synced file without a synced name is lost");
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(fs.reboot(Loss::All).files()[p("/a")], b"one");
    a.write_at(1, b"NETWO").unwrap();
    assert_eq!(fs.reboot(Loss::All).files()[p("/a")], b"one");
    assert_eq!(fs.reboot(Loss::None).files()[p("/a")], b"oNETWO");
    write(&fs, "/b", b"unsynced");
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(fs.reboot(Loss::All).files()[p("/b")], b"", "a synced name of an unsynced file is empty");
}

#[test]
fn renames_and_removals_need_a_sync() {
    let fs = FaultFs::new();
    for name in ["/a", "/b"] {
        write(&fs, name, name.as_bytes()).sync_data().unwrap();
    }
    fs.sync_dir(p("/")).unwrap();
    fs.rename(p("/a"), p("/c")).unwrap();
    fs.remove_file(p("/b")).unwrap();
    let names = |fs: FaultFs| fs.files().keys().map(|k| k.display().to_string()).collect::<Vec<_>>();
    assert_eq!(names(fs.clone()), ["/c"]);
    assert_eq!(names(fs.reboot(Loss::All)), ["/a", "/b"]);
    fs.sync_dir(p("/")).unwrap();
    assert_eq!(names(fs.reboot(Loss::All)), ["/c"]);
}

/// A test that reboots often must not copy every file that was ever there.
#[test]
fn what_no_directory_names_is_not_carried_over() {
    let fs = FaultFs::new();
    for name in ["/kept", "/removed"] {
        write(&fs, name, &[7; 1000]).sync_data().unwrap();
    }
    fs.sync_dir(p("/")).unwrap();
    fs.remove_file(p("/removed")).unwrap();
    let bytes =
        |fs: &FaultFs| (0..9).filter_map(|node| fs.lock().contents(node).map(|bytes| bytes.len())).sum::<usize>();
    assert_eq!(bytes(&fs.reboot(Loss::All)), 2000, "its name may still be there");
    assert_eq!(bytes(&fs.reboot(Loss::None)), 1000);
    fs.sync_dir(p("/")).unwrap();
    for loss in Loss::variants(4) {
        assert_eq!(bytes(&fs.reboot(loss)), 1000);
    }
}

#[test]
fn the_cut_operation_is_under_way_and_nothing_works_after_it() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", b"old");
    a.sync_data().unwrap();
    fs.sync_dir(p("/")).unwrap();
    fs.cut_after(1);
    a.write_at(0, b"NEW").unwrap();
    let err = a.sync_data().unwrap_err();
    assert_eq!(err.to_string(), "cannot sync /a: power cut");
    assert!(fs.is_cut());
    assert!(a.read_at(0, &mut [0; 3]).is_err());
    assert!(fs.open(p("/a"), Mode::Read).is_err());
    assert!(fs.list(p("/")).is_err());
    assert_eq!(fs.reboot(Loss::All).files()[p("/a")], b"old");
    assert_eq!(fs.reboot(Loss::None).files()[p("/a")], b"NEW");
    let ops = fs.counts().ops;
    assert!(a.write_at(0, b"x").is_err());
    assert_eq!(fs.counts().ops, ops);
}

#[test]
fn torn_writes_differ_by_seed_and_respect_units() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", &[b'o'; 4096]);
    a.sync_data().unwrap();
    fs.sync_dir(p("/")).unwrap();
    a.write_at(0, &[b'n'; 4096]).unwrap();
    a.write_at(4096, &[b'x'; 1000]).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let loss = Loss::Torn { seed, unit: 512 };
        let files = fs.reboot(loss).files();
        let contents = &files[p("/a")];
        assert_eq!(*contents, fs.reboot(loss).files()[p("/a")], "the seed decides");
        for sector in contents[..4096].chunks(512) {
            assert!(sector == [b'o'; 512] || sector == [b'n'; 512]);
        }
        seen.insert(contents.clone());
    }
    assert!(seen.len() > 20, "{} different outcomes", seen.len());
    assert!(seen.iter().any(|c| c.len() == 4096) && seen.iter().any(|c| c.len() == 5096));
    assert!(seen.iter().any(|c| c.len() == 5096 && c[4096..].iter().any(|&b| b != b'x')), "length without data");
}

#[test]
fn a_failed_sync_loses_what_it_should_have_kept() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", b"one");
    a.sync_data().unwrap();
    fs.sync_dir(p("/")).unwrap();
    a.write_at(0, b"two").unwrap();
    fs.fail(Fault::new(Failure::Io).on(Op::Sync));
    assert!(a.sync_data().is_err());
    a.sync_data().unwrap();
    assert_eq!(fs.files()[p("/a")], b"two");
    assert_eq!(fs.reboot(Loss::All).files()[p("/a")], b"one");
}

#[test]
fn faults_hit_the_operation_asked_for() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", b"");
    fs.fail(Fault::new(Failure::NoSpace).on(Op::Write).after(1).keeping(2));
    a.write_at(0, b"abc").unwrap();
    let err = a.write_at(3, b"def").unwrap_err();
    assert_eq!((err.kind(), err.advice()), (ErrorKind::StorageFull, crate::Advice::Stop));
    assert_eq!(err.to_string(), "cannot write /a@3: No space left on device (os error 28)");
    assert_eq!(fs.files()[p("/a")], b"abcde");
    a.write_at(3, b"def").unwrap();
    fs.fail(Fault::new(Failure::Io).on(Op::Read).forever());
    for _ in 0..3 {
        assert!(a.read_at(0, &mut [0; 1]).is_err());
    }
    fs.heal();
    a.read_exact_at(0, &mut [0; 6]).unwrap();
    fs.fail(Fault::new(Failure::Io));
    assert!(fs.rename(p("/a"), p("/b")).is_err());
    assert!(fs.exists(p("/a")).unwrap());
}

#[test]
fn capacity_fills_up_and_frees() {
    let fs = FaultFs::new();
    fs.set_capacity(10);
    let a = write(&fs, "/a", b"12345678");
    let b = fs.open(p("/b"), Mode::CreateNew).unwrap();
    assert_eq!(b.write_at(0, b"abc").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(fs.files()[p("/b")], b"ab");
    a.write_at(0, b"overwrite".get(..8).unwrap()).unwrap();
    fs.remove_file(p("/a")).unwrap();
    assert!(b.write_at(0, b"abc").is_err(), "an open removed file still takes room");
    drop(a);
    b.write_at(0, b"abc").unwrap();
}

#[test]
fn counts_tell_what_was_done() {
    let fs = FaultFs::new();
    let a = write(&fs, "/a", b"abc");
    a.sync_data().unwrap();
    fs.sync_dir(p("/")).unwrap();
    a.read_exact_at(0, &mut [0; 2]).unwrap();
    let expected = Counts { ops: 4, reads: 1, writes: 1, syncs: 1, dir_syncs: 1, bytes_read: 2, bytes_written: 3 };
    assert_eq!(fs.counts(), expected);
}

/// One suite for the real and the faulty file system.
fn conforms(fs: &Arc<dyn Fs>, root: &Path) {
    let kind = |r: Result<()>| r.unwrap_err().kind();
    let (a, b) = (root.join("a"), root.join("b"));
    assert!(!fs.exists(&a).unwrap());
    assert_eq!(fs.open(&a, Mode::Read).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fs.open(&root.join("no/a"), Mode::CreateNew).unwrap_err().kind(), ErrorKind::NotFound);
    let file = fs.open(&a, Mode::CreateNew).unwrap();
    assert_eq!(fs.open(&a, Mode::CreateNew).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(file.is_empty().unwrap());
    assert_eq!(file.append(b"hello").unwrap(), 0);
    assert_eq!(file.append(b" world").unwrap(), 5);
    assert_eq!(fs.read(&a, 11).unwrap(), b"hello world");
    assert!(matches!(fs.read(&a, 10), Err(crate::Error::OverLimit { claimed: 11, limit: 10, .. })));
    file.write_at(13, b"!").unwrap();
    file.set_len(15).unwrap();
    assert_eq!(fs.read(&a, 99).unwrap(), b"hello world\0\0!\0");
    file.set_len(2).unwrap();
    assert_eq!(file.read_at(2, &mut [0; 4]).unwrap(), 0);
    assert!(matches!(file.read_exact_at(1, &mut [0; 4]), Err(crate::Error::Short { wanted: 4, found: 1, .. })));
    file.sync_data().unwrap();
    assert!(fs.open(&a, Mode::Read).unwrap().write_at(0, b"x").is_err());
    assert!(file.try_lock().unwrap() && file.try_lock().unwrap());
    let other = fs.open(&a, Mode::Write).unwrap();
    assert!(!other.try_lock().unwrap());
    file.unlock().unwrap();
    assert!(other.try_lock().unwrap());
    drop(other);
    assert!(file.try_lock().unwrap());
    let (one, two) = (fs.open(&a, Mode::Read).unwrap(), fs.open(&a, Mode::Read).unwrap());
    assert!(!one.try_lock_shared().unwrap());
    file.unlock().unwrap();
    assert!(one.try_lock_shared().unwrap() && two.try_lock_shared().unwrap());
    assert!(!file.try_lock().unwrap());
    drop(one);
    assert!(!file.try_lock().unwrap());
    drop(two);
    assert!(file.try_lock().unwrap());

    let before = file.len().unwrap();
    for hint in [Hint::Sequential, Hint::Random, Hint::Done] {
        file.advise(0..before, hint).unwrap();
        file.advise(7..7, hint).unwrap();
    }
    file.allocate(before + 5000).unwrap();
    file.allocate(1).unwrap();
    assert_eq!(file.len().unwrap(), before + 5000);
    let mut room = [1; 5000];
    file.read_exact_at(before, &mut room).unwrap();
    assert_eq!(room, [0; 5000]);
    file.set_len(before).unwrap();

    drop(fs.open(&b, Mode::OpenOrCreate).unwrap());
    assert_eq!(kind(fs.rename_new(&a, &b)), ErrorKind::AlreadyExists);
    fs.rename(&a, &b).unwrap();
    assert_eq!(fs.metadata(&b).unwrap().id, file.metadata().unwrap().id);
    assert_eq!(kind(fs.rename(&a, &b)), ErrorKind::NotFound);
    fs.rename_new(&b, &a).unwrap();
    fs.remove_file(&a).unwrap();
    assert_eq!(kind(fs.remove_file(&a)), ErrorKind::NotFound);
    assert_eq!(file.read_at(0, &mut [0; 4]).unwrap(), 2, "an open file outlives its name");

    let deep = root.join("x/y/z");
    fs.create_dir_all(&deep).unwrap();
    fs.create_dir_all(&deep).unwrap();
    assert_eq!(kind(fs.create_dir(&deep)), ErrorKind::AlreadyExists);
    assert_eq!(kind(fs.remove_dir(&root.join("x"))), ErrorKind::DirectoryNotEmpty);
    drop(fs.open(&deep.join("f"), Mode::CreateNew).unwrap());
    let listed: Vec<_> = fs.list(&root.join("x")).unwrap();
    assert_eq!(listed, [Entry { name: "y".into(), is_dir: true }]);
    assert_eq!(fs.open(&deep, Mode::Write).unwrap_err().kind(), ErrorKind::IsADirectory);
    fs.sync_dir(&deep).unwrap();
    remove_tree(&**fs, &root.join("x")).unwrap();
    remove_tree(&**fs, &root.join("x")).unwrap();
    assert!(fs.list(root).unwrap().is_empty());
    publish(fs, &a, b"done").unwrap();
    drop(AtomicFile::create(fs, &b).unwrap());
    assert_eq!(fs.list(root).unwrap(), [Entry { name: "a".into(), is_dir: false }]);
}

#[test]
fn both_file_systems_conform() {
    let dir = tempfile::tempdir().unwrap();
    conforms(&(Arc::new(crate::RealFs) as Arc<dyn Fs>), dir.path());
    conforms(&FaultFs::new().shared(), p("/"));
    let (disk, steps) = (FaultFs::new(), Arc::new(AtomicU64::new(0)));
    let counter = steps.clone();
    let stepped = Stepped::new(move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        disk.shared()
    });
    conforms(&(Arc::new(stepped) as Arc<dyn Fs>), p("/"));
    assert!(steps.load(Ordering::Relaxed) > 50);
}

#[test]
fn what_is_open_stays_when_time_passes() {
    let (before, after) = (FaultFs::new(), FaultFs::new());
    for (disk, text) in [(&before, b"old"), (&after, b"new")] {
        publish(&disk.shared(), p("a"), text).unwrap();
    }
    let later = Arc::new(AtomicU64::new(0));
    let now = later.clone();
    let stepped = Stepped::new(move |_, _| [&before, &after][now.load(Ordering::Relaxed) as usize].shared());
    let open = stepped.open(p("a"), Mode::Read).unwrap();
    later.store(1, Ordering::Relaxed);
    let mut bytes = [0; 3];
    open.read_exact_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes, stepped.read(p("a"), 9).unwrap().as_slice()), (b"old", &b"new"[..]));
}
