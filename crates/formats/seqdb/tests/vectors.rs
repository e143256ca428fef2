//! The format's test vectors, byte for byte, both directions.

mod common;

use common::{FILES, SYNCTIME, settings, vector};
use trawl_io::fault::FaultFs;
use trawl_seqdb::{
    Access, CreateFilesys, CreateHindex, CreateKvseq, CreatePerm, Filesys, Findings, FsPaths, Hindex, Kvseq, Perm,
    Purpose, Repr, WriteFlags, filesys, hindex, perm, silent,
};

#[test]
fn v1_kvseq() {
    let fs = FaultFs::new();
    let path = "/v1".as_ref();
    let create = CreateKvseq {
        sbsize: 256,
        purpose: Purpose::new("TEST").unwrap(),
        value: Repr::Int16,
        fileincr: 0,
        ..CreateKvseq::default()
    };
    let mut kv = create.create(path, &settings(&fs)).unwrap();
    assert_eq!(kv.add(b"apple", b"red").unwrap(), 256);
    assert_eq!(kv.add(b"pear", b"green").unwrap(), 268);
    assert_eq!(kv.add(b"fig", b"").unwrap(), 281);
    kv.delete(268).unwrap();
    kv.close().unwrap();
    assert_eq!(fs.files()[path], vector("v1.kvseq"));

    let fs = common::disk_with(&[("/v1", "v1.kvseq")]);
    let kv = Kvseq::open(path, Access::Write, &settings(&fs)).unwrap();
    assert_eq!((kv.entries(), kv.live_entries()), (Some(3), Some(2)));
    let mut scan = kv.scan().with_deleted();
    let mut seen = Vec::new();
    while let Some(item) = scan.next_entry().unwrap() {
        seen.push((item.ptr, item.deleted, item.key.to_vec(), item.value.unwrap().to_vec()));
    }
    let row = |ptr, deleted, key: &str, value: &str| (ptr, deleted, key.into(), value.into());
    assert_eq!(seen, [row(256, false, "apple", "red"), row(268, true, "pear", "green"), row(281, false, "fig", "")]);
    assert_eq!(FILES.len(), 7);
}

#[test]
fn v2_and_v3_hindex() {
    for (name, cellsz) in [("v2.hindex", 1), ("v3.hindex", 2)] {
        let fs = common::disk_with(&[("/v1", "v1.kvseq")]);
        let kv = Kvseq::open("/v1".as_ref(), Access::Read, &settings(&fs)).unwrap();
        let path = "/index".as_ref();
        let purpose = Purpose::new("TESTIDX").unwrap();
        let create = CreateHindex { sbsize: 256, purpose, htsize: 5, cellsz, ..CreateHindex::default() };
        let mut index = create.create(path, &settings(&fs)).unwrap();
        for (key, ptr) in [("apple", 256), ("pear", 268), ("fig", 281)] {
            index.insert(&kv, key.as_bytes(), ptr).unwrap();
        }
        assert_eq!(index.remove(&kv, b"pear").unwrap(), Some(268));
        index.close().unwrap();
        assert!(fs.files()[path] == vector(name), "{name}");

        let fs = common::disk_with(&[("/v1", "v1.kvseq"), ("/index", name)]);
        let index = Hindex::open(path, Access::Read, &settings(&fs)).unwrap();
        assert_eq!((index.htsize(), index.cellsz(), index.used_cells(), index.keys()), (5, cellsz, 3, 2));
        assert_eq!(index.find(&kv, b"apple").unwrap(), Some(256));
        assert_eq!(index.find(&kv, b"fig").unwrap(), Some(281));
        assert_eq!(index.find(&kv, b"pear").unwrap(), None);
        let mut findings = Findings::new();
        hindex::verify(path, &kv, &settings(&fs), &mut findings, &silent).unwrap();
        assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
    }
}

#[test]
fn v4_perm() {
    let fs = common::disk_with(&[("/v1", "v1.kvseq")]);
    let kv = Kvseq::open("/v1".as_ref(), Access::Read, &settings(&fs)).unwrap();
    let path = "/v4".as_ref();
    let create = CreatePerm { sbsize: 256, purpose: Purpose::new("TESTPRM").unwrap(), ..CreatePerm::default() };
    let mut perm = create.create(path, &settings(&fs)).unwrap();
    perm.add(&kv, 256).unwrap();
    perm.add(&kv, 281).unwrap();
    perm.group(&kv, None, &silent).unwrap();
    perm.close().unwrap();
    assert!(fs.files()[path] == vector("v4.perm"));

    let fs = common::disk_with(&[("/v4", "v4.perm")]);
    let perm = Perm::open(path, Access::Write, &settings(&fs)).unwrap();
    assert_eq!(perm.lookup(0).unwrap().map(|p| (p.ptr, p.hash)), Some((281, 0x04d8_b0d7_2264_ac23)));
    assert_eq!(perm.lookup(1).unwrap().map(|p| (p.ptr, p.hash)), Some((256, 0x1f38_70be_274f_6c49)));
    let mut findings = Findings::new();
    let found = perm::verify(path, &kv, &settings(&fs), &mut findings).unwrap();
    assert!(findings.is_sound() && found.grouped && found.pairs == 2);
}

#[test]
fn v5_to_v7_append_only_filesys() {
    let paths = FsPaths::new("/".as_ref(), "v").unwrap();
    let mut create = CreateFilesys::new(0x0123_4567_89ab_cdef);
    create.sbsize = 512;
    create.small_sbsize = 256;
    create.fileincr = 0;
    create.isz = 64;
    create.htsize = 3;
    create.append_only = Some(60);
    let named = [(paths.data(), "v5.data"), (paths.index(), "v6.idx"), (paths.time(), "v7.time")];
    // In one step, and by opening and writing.
    for one_step in [true, false] {
        let fs = FaultFs::new();
        let mut filesys = create.create(&paths, &settings(&fs)).unwrap();
        if one_step {
            filesys.put_file(b"a.txt", 'f', None, b"hello\n").unwrap();
        } else {
            let mut file = filesys.open_file_wr(b"a.txt", 'f', WriteFlags::default()).unwrap();
            filesys.append_file(&mut file, b"hel").unwrap();
            filesys.append_file(&mut file, b"lo\n").unwrap();
        }
        filesys.close().unwrap();
        for (path, name) in &named {
            assert!(fs.files()[path] == vector(name), "{name}");
        }
    }

    let fs = common::disk_with(&[("/v.data", "v5.data"), ("/v.idx", "v6.idx"), ("/v.time", "v7.time")]);
    let filesys = Filesys::open(&paths, Access::Read, &settings(&fs)).unwrap();
    assert!(filesys.is_append_only());
    let info = filesys.stat(b"a.txt").unwrap();
    assert_eq!((info.kind, info.size, info.mtime), ('f', 6, SYNCTIME));
    assert_eq!(filesys.read_all(b"a.txt").unwrap(), b"hello\n");
    assert_eq!(filesys.files_since(SYNCTIME).unwrap().next_file().unwrap().unwrap().name, b"a.txt");
    assert!(filesys.files_since(SYNCTIME + 1).unwrap().next_file().unwrap().is_none());
    let mut findings = Findings::new();
    filesys::verify(&paths, &settings(&fs), &mut findings, &silent).unwrap();
    assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
}
