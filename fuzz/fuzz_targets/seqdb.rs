//! Container files over raw bytes: no panic, no hang, and a repair that succeeds leaves no fault for a check to find.
//!
//! The first byte chooses which file the bytes are: one of a map, a perm, or one of a container of captures. The other
//! files are good. Its top bit chooses a repair that salvages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, Clock, CreateHindex, CreateKvseq, CreatePages, CreatePerm, Findings, Form, FsPaths, Kvseq, Map, MapFiles,
    Pages, Settings, Severity, Whole, silent,
};

fn settings(disk: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 6 << 20, chunk_bytes: 4096, ..Settings::new(clock, "fuzz").on(disk.shared()) }
}

fn captures() -> FsPaths {
    FsPaths::new(Path::new("/"), "pages").expect("a legal name")
}

/// Good files of every kind, by name.
static GOOD: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let disk = FaultFs::new();
    let settings = settings(&disk);
    let files = MapFiles::named(Path::new("/map"));
    let kvseq = CreateKvseq { sbsize: 256, fileincr: 0, ..Default::default() };
    let hindex = CreateHindex { sbsize: 256, htsize: 7, ..Default::default() };
    let mut map = Map::create(&files, &kvseq, &hindex, &settings).expect("a map");
    for n in 0..4u8 {
        map.put(&[n], &[n; 20]).expect("room");
    }
    map.close().expect("closed");
    let kv = Kvseq::open(&files.kvseq, Access::Read, &settings).expect("a kvseq");
    let perm = CreatePerm { sbsize: 256, ..Default::default() };
    let mut perm = perm.create(Path::new("/map.perm"), &settings).expect("a perm");
    perm.build(&kv).expect("room");
    perm.close().expect("closed");
    let pages = CreatePages { expected: 3, isz: 32, ..CreatePages::new(5) };
    let mut pages = pages.create(&captures(), &settings).expect("pages");
    for n in 0..3i64 {
        pages.append(b"http://e.com/", UnixMillis(n), Form::Plain, b"WARC/1.1").expect("room");
    }
    pages.close().expect("closed");
    disk.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e != "lock")).collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let disk = FaultFs::new();
    let chosen = &GOOD[usize::from(choice & 0x7f) % GOOD.len()].0;
    for (path, good) in GOOD.iter() {
        let file = disk.open(path, Mode::Truncate).expect("a disk");
        file.write_at(0, if path == chosen { bytes } else { good }).expect("a disk");
    }
    let settings = settings(&disk);
    let Ok(whole) = Whole::of(chosen, &settings) else { return };
    let _ = whole.verify(&settings, &mut Findings::new(), &silent);
    if let Ok(kv) = Kvseq::open(chosen, Access::Read, &settings) {
        let mut scan = kv.scan().with_deleted();
        while let Ok(Some(item)) = scan.next_entry() {
            let _ = kv.get(item.ptr);
        }
    }
    if let Ok(map) = Map::open(&MapFiles::named(Path::new("/map")), Access::Read, &settings) {
        for n in 0..5u8 {
            let _ = map.get(&[n]);
        }
    }
    if let Ok(pages) = Pages::open(&captures(), Access::Read, &settings) {
        let _ = pages.newest(b"http://e.com/");
        let mut scan = pages.scan();
        while let Ok(Some(_)) = scan.next_page() {}
    }
    if whole.repair(&settings, choice & 0x80 != 0, &silent).is_ok() {
        let mut findings = Findings::new();
        whole.verify(&settings, &mut findings, &silent).expect("what was repaired can be checked");
        // Times of inodes and pairs of a perm are taken as they are, and of equal keys without delete flags one has no
        // cell, which is a warning; everything else is set right.
        let ours = findings.list().iter().filter(|f| {
            let times = f.expected.contains("mtime") || f.expected.contains("mark");
            f.severity == Severity::Fault && !times && f.path.extension().is_some_and(|e| e != "perm")
        });
        assert_eq!(ours.count(), 0, "{:?}", findings.list());
    }
});
