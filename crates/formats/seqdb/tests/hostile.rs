//! Files made to do harm: an error in bounded time and memory, never a wrong answer.

mod common;

use common::{put, settings};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, CreateFilesys, CreateKvseq, CreatePages, Error, Filesys, Findings, Form, FsPaths, Kvseq, Pages, Settings,
    filesys, h64, kvseq, pages, silent,
};

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "f").unwrap()
}

/// A filesys with two files: `a` of two parts, `b` of one.
fn good() -> FaultFs {
    let disk = FaultFs::new();
    let create = CreateFilesys { sbsize: 512, small_sbsize: 512, fileincr: 0, isz: 64, ..CreateFilesys::new(7) };
    let mut fs = create.create(&paths(), &settings(&disk)).unwrap();
    fs.put_file(b"a", 'f', None, b"first part").unwrap();
    fs.put_file(b"b", 'f', None, b"other file").unwrap();
    let mut a = fs.open_file_wr(b"a", 'f', Default::default()).unwrap();
    fs.append_file(&mut a, b", second part").unwrap();
    drop(a);
    fs.close().unwrap();
    disk
}

/// Offset of the value of the first inode: the inode of `a`.
const INODE: usize = 512 + 29;

fn changed(at: usize, bytes: &[u8]) -> FaultFs {
    let disk = good();
    let mut data = disk.files()[&paths().data()].clone();
    data[at..at + bytes.len()].copy_from_slice(bytes);
    put(&disk, "/f.data", &data);
    disk
}

/// Reads everything, checks, repairs and checks again; all of it quickly.
fn survives(disk: &FaultFs, what: &str) {
    let began = Instant::now();
    let settings = Settings { sort_memory_bytes: 6 << 20, ..settings(disk) };
    let mut findings = Findings::new();
    filesys::verify(&paths(), &settings, &mut findings, &silent).unwrap();
    assert!(!findings.is_sound(), "{what} goes unnoticed");
    if let Ok(fs) = Filesys::open(&paths(), Access::Read, &settings) {
        for name in [b"a", b"b"] {
            if let Ok(contents) = fs.read_all(name) {
                assert!(contents.len() < 1000, "{what}");
            }
        }
        let mut files = fs.files();
        while let Ok(Some(info)) = files.next_file() {
            assert!(fs.open_listed(&info).map_or(0, |file| file.size()) < 1000, "{what}");
        }
    }
    filesys::repair(&paths(), &settings, true, &silent).unwrap();
    let mut findings = Findings::new();
    filesys::verify(&paths(), &settings, &mut findings, &silent).unwrap();
    assert!(findings.is_sound() && findings.warnings() == 0, "{what}: {:?}", findings.list());
    assert!(began.elapsed() < Duration::from_secs(60), "{what} takes {:?}", began.elapsed());
}

#[test]
fn pointers_that_go_in_circles() {
    let first = good().files()[&paths().data()][INODE + 23..INODE + 31].to_vec();
    survives(&changed(INODE + 31, &first), "a part named twice");
    survives(&changed(INODE + 23, &512u64.to_be_bytes()), "an inode as its own data");
    survives(&changed(INODE + 3, &u32::MAX.to_be_bytes()), "four billion pointers");
    survives(&changed(INODE + 23, &(1u64 << 60).to_be_bytes()), "a pointer far out");
    survives(&changed(INODE + 23, &513u64.to_be_bytes()), "a pointer into an entry");
    survives(&changed(INODE + 15, &(1u64 << 62).to_be_bytes()), "an endless file");
    survives(&changed(INODE + 15, &u64::MAX.to_be_bytes()), "a negative size");
}

#[test]
fn entries_that_overlap() {
    // A whole inode inside the contents of a file, which a cell of the index points to.
    let disk = good();
    let settings = Settings { sort_memory_bytes: 6 << 20, ..settings(&disk) };
    let mut fake = disk.files()[&paths().data()][512..512 + 29 + 23 + 64].to_vec();
    let end = fake.len();
    fake[end - 1] = b'x';
    fake[13..21].copy_from_slice(&h64(b"x").to_be_bytes());
    let mut fs = Filesys::open(&paths(), Access::Write, &settings).unwrap();
    fs.put_file(b"carrier", 'f', None, &fake).unwrap();
    let htsize = fs.index().htsize();
    fs.close().unwrap();
    let data = disk.files()[&paths().data()].clone();
    let at = data.windows(fake.len()).position(|w| w == fake).unwrap() as u64;
    let mut index = disk.files()[&paths().index()].clone();
    let mut cell = 512 + 16 * usize::try_from(h64(b"x") % htsize).unwrap();
    while index[cell..cell + 8] != [0; 8] {
        cell += 16;
    }
    index[cell..cell + 8].copy_from_slice(&at.to_be_bytes());
    index[cell + 8..cell + 16].copy_from_slice(&h64(b"x").to_be_bytes());
    put(&disk, "/f.idx", &index);
    survives(&disk, "an inode inside a file");
    let fs = Filesys::open(&paths(), Access::Read, &settings).unwrap();
    assert!(matches!(fs.read_all(b"x"), Err(Error::FileNotFound { .. })), "the rebuilt index does not know it");
}

/// Found by fuzzing: a repair gave the index by URL a number that the data file did not have.
#[test]
fn a_data_file_without_generation_is_repaired() {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let paths = FsPaths::new(Path::new("/"), "p").unwrap();
    let mut pages = CreatePages::new(5).create(&paths, &settings).unwrap();
    pages.append(b"http://e.com/", UnixMillis(1), Form::Plain, b"WARC/1.1").unwrap();
    pages.close().unwrap();
    let mut data = disk.files()[&paths.data()].clone();
    let at = data.windows(8).position(|w| w == b"FSGEN\0\0\0").unwrap();
    data[at..at + 8].copy_from_slice(b"USERVAR\0");
    put(&disk, "/p.data", &data);
    let check = |expected: bool| {
        let mut findings = Findings::new();
        pages::verify(&paths, &settings, &mut findings, &silent).unwrap();
        assert_eq!(findings.is_sound(), expected, "{:?}", findings.list());
    };
    check(false);
    pages::repair(&paths, &settings, false, &silent).unwrap();
    check(true);
    assert!(Pages::open(&paths, Access::Read, &settings).unwrap().newest(b"http://e.com/").unwrap().is_some());
}

/// Found by fuzzing: a file without FILESIZE ends where the system says, so a repair has to cut it there.
#[test]
fn a_kvseq_without_filesize_is_repaired() {
    // Nothing, half a key, and a value that is cut to what is there.
    for (tail, live) in [(&b""[..], 2), (b"\0\xff", 2), (b"\0\x01k\xff\xffv", 3)] {
        let mut bytes = common::vector("v1.kvseq");
        let at = bytes.windows(8).position(|w| w == b"FILESIZE").unwrap();
        bytes[at..at + 8].copy_from_slice(b"USERVAR\0");
        bytes.extend_from_slice(tail);
        let disk = FaultFs::new();
        put(&disk, "/k", &bytes);
        let settings = settings(&disk);
        let check = || {
            let mut findings = Findings::new();
            kvseq::verify(Path::new("/k"), &settings, &mut findings).unwrap();
            findings.is_sound()
        };
        assert_eq!(check(), tail.is_empty());
        kvseq::repair(Path::new("/k"), &settings, true).unwrap();
        assert!(check(), "{tail:?}");
        assert_eq!(Kvseq::open(Path::new("/k"), Access::Read, &settings).unwrap().live_entries(), Some(live));
    }
}

/// An index without free cells, large, of a filesys whose files are alive if the index says so: a search for each file
/// would cost the square of the size.
#[test]
fn a_table_without_free_cells_is_not_searched_for_every_file() {
    for free in [0, 1] {
        let disk = FaultFs::new();
        let settings = Settings { sort_memory_bytes: 6 << 20, ..settings(&disk) };
        let create = CreateFilesys { htsize: 2_000_001, isz: 16, have_dups: true, ..CreateFilesys::new(7) };
        let mut fs = create.create(&paths(), &settings).unwrap();
        for n in 0..20_000u32 {
            fs.put_file(&n.to_be_bytes(), 'f', None, b"").unwrap();
        }
        fs.close().unwrap();
        let mut index = disk.files()[&paths().index()].clone();
        let start = index.len() - 16 * 2_000_001;
        index[start + 16 * free..].chunks_exact_mut(16).for_each(|cell| {
            cell[..8].fill(0xff);
            cell[8..].fill(0);
        });
        put(&disk, "/f.idx", &index);
        survives(&disk, &format!("a table with {free} free cells"));
        let fs = Filesys::open(&paths(), Access::Read, &settings).unwrap();
        assert_eq!(fs.stats().files, 20_000, "deleted files, if there were any, are back");
    }
}

#[test]
fn a_huge_sparse_file_costs_nothing_to_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.kvseq");
    let settings = Settings { fs: Arc::new(trawl_io::RealFs), ..settings(&FaultFs::new()) };
    let mut kv = CreateKvseq { fileincr: 0, ..Default::default() }.create(&path, &settings).unwrap();
    let ptr = kv.add(b"key", b"value").unwrap();
    kv.close().unwrap();
    let superblock = std::fs::read(&path).unwrap();
    // 8 TiB, almost all of it one value.
    let size = 8u64 << 40;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    if file.set_len(size).is_err() {
        // Not every file system can hold such a file; then there is nothing to fear either.
        return;
    }
    let value_len = size - ptr - 13;
    file.write_all_at(&value_len.to_be_bytes(), ptr + 5).unwrap();
    for name in [b"FILESIZE", b"SYNCSIZE"] {
        let slot = superblock.windows(8).position(|w| w == name).unwrap() + 8;
        file.write_all_at(&size.to_be_bytes(), slot as u64).unwrap();
    }
    let kv = Kvseq::open(&path, Access::Read, &settings).unwrap();
    assert_eq!(kv.value_len(ptr).unwrap(), value_len);
    assert!(matches!(kv.get(ptr), Err(Error::TooLong { what: "value", .. })));
    let mut scan = kv.scan();
    let item = scan.next_entry().unwrap().unwrap();
    assert!(item.value.is_none() && item.value_len == value_len);
    assert!(scan.next_entry().unwrap().is_none());
    let mut findings = Findings::new();
    trawl_seqdb::kvseq::verify(&path, &settings, &mut findings).unwrap();
    assert!(findings.is_sound(), "{:?}", findings.list());
}
