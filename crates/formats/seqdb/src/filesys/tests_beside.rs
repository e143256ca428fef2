//! Tests of readers beside a writer: two handles on the same files.

use super::*;
use crate::Clock;
use std::io::Read;
use std::path::Path;
use trawl_io::fault::{FaultFs, Loss};
use trawl_model::UnixMillis;

fn settings(disk: &FaultFs) -> Settings {
    Settings { buffer_bytes: 4000, ..Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared()) }
}

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "docs").unwrap()
}

fn create(disk: &FaultFs, append_only: Option<i64>) -> Filesys {
    let create = CreateFilesys { isz: 32, htsize: 101, append_only, ..CreateFilesys::new(7) };
    create.create(&paths(), &settings(disk)).unwrap()
}

fn reader(disk: &FaultFs) -> Filesys {
    Filesys::open_as(&paths(), Access::Read, &settings(disk), true).unwrap()
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}

/// Every file of an iteration can be read, and by its name if the index has it: it is a beginning of what is written to it.
fn look(fs: &Filesys) -> Vec<(String, usize)> {
    let mut files = fs.files();
    let mut found = Vec::new();
    while let Some(info) = files.next_file().unwrap() {
        let listed = fs.read_handle(&fs.open_listed(&info).unwrap()).unwrap();
        assert!(listed.len() as u64 >= info.size && listed == bytes(listed.len()), "{info:?} is torn");
        match fs.read_all(&info.name) {
            Ok(named) => assert!(named == bytes(named.len()), "{info:?} is torn by name"),
            Err(e) => assert!(matches!(e, Error::FileNotFound { .. }), "{e}"),
        }
        found.push((String::from_utf8(info.name).unwrap(), listed.len()));
    }
    found
}

#[test]
fn a_growing_file_is_whole_at_every_step() {
    for (step, between) in [(100, false), (100, true), (3000, false), (3000, true), (9000, true)] {
        let disk = FaultFs::new();
        let mut fs = create(&disk, None);
        fs.put_file(b"one", 'f', None, &bytes(4)).unwrap();
        fs.flush().unwrap();
        let old = reader(&disk);
        let mut file = fs.open_file_wr(b"one", 'f', WriteFlags::default()).unwrap();
        let mut least = 4;
        for n in 0..60 {
            let all = bytes(usize::try_from(file.size()).unwrap() + step);
            fs.append_file(&mut file, &all[all.len() - step..]).unwrap();
            if between {
                // Something else lies between the parts of the file, which gets many, and larger inodes.
                fs.put_file(format!("other {n}").as_bytes(), 'f', None, &bytes(n)).unwrap();
            }
            for (fs, fresh) in [(&old, false), (&reader(&disk), true)] {
                let found = look(fs);
                let sizes: Vec<_> = found.iter().filter(|(name, _)| name == "one").map(|(_, size)| *size).collect();
                // An old view may end before a larger inode; by name the file is there.
                assert!(!fresh || sizes.last().is_some_and(|size| *size >= least), "step {n}: {sizes:?} of {least}");
                let size = fs.read_all(b"one").unwrap().len();
                assert!(size >= least, "step {n}: {size} of {least}");
                least = size;
            }
            // What the writer itself sees is all of it.
            assert!(fs.read_all(b"other 0").is_ok() == between);
            assert_eq!(fs.stat(b"one").unwrap().size, file.size());
        }
        assert!(least > 4, "nothing arrived");
        drop(file);
        let size = fs.stat(b"one").unwrap().size;
        fs.close().unwrap();
        assert_eq!(old.read_all(b"one").unwrap().len() as u64, size);
        let mut findings = crate::findings::Findings::new();
        verify(&paths(), &settings(&disk), &mut findings, &crate::silent).unwrap();
        assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
    }
}

/// Grows, renames, replaces and deletes; `known` is what readers can count on.
fn busy(disk: &FaultFs, known: &mut usize) -> Result<()> {
    let create = CreateFilesys { isz: 32, htsize: 5, ..CreateFilesys::new(7) };
    let mut fs = create.create(&paths(), &settings(disk))?;
    fs.put_file(b"one", 'f', None, &bytes(4))?;
    fs.flush()?;
    *known = 4;
    for n in 0..14 {
        let all = bytes(4 + (n + 1) * 700);
        let mut file = fs.open_file_wr(b"one", 'f', WriteFlags::default())?;
        fs.append_file(&mut file, &all[all.len() - 700..])?;
        drop(file);
        let name = format!("other {n}").into_bytes();
        fs.put_file(&name, 'f', None, &bytes(n * 300))?;
        match n % 4 {
            0 => fs.rename_file(&name, format!("{n} with a name for which the inode is too small").as_bytes())?,
            1 => fs.delete_file(&name)?,
            2 => fs.flush()?,
            _ => fs.sync()?,
        }
        if n % 4 > 1 {
            *known = all.len();
        }
    }
    fs.close()
}

/// The disk as readers find it between any two writes of a writer that lives.
#[test]
fn files_are_whole_between_any_two_writes() {
    for cut in 0.. {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let mut known = 0;
        let done = busy(&disk, &mut known).is_ok();
        let disk = disk.reboot(Loss::None);
        if known > 0 {
            let found = look(&reader(&disk));
            let sizes: Vec<_> = found.iter().filter(|(name, _)| name == "one").map(|(_, size)| *size).collect();
            assert!(matches!(sizes[..], [size] if size >= known), "after {cut} writes: {sizes:?} of {known}");
            let size = reader(&disk).read_all(b"one").unwrap().len();
            assert!(size >= known, "after {cut} writes: {size} of {known}");
        }
        if done {
            assert!(cut > 100, "{cut}");
            break;
        }
    }
}

/// Hands out its bytes in parts, and looks at the filesys from beside before each.
struct Watched<'a> {
    disk: &'a FaultFs,
    left: &'a [u8],
    fails: bool,
    seen: usize,
}

impl Read for Watched<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.seen = self.seen.max(look(&reader(self.disk)).len());
        if self.left.len() < 20_000 && self.fails {
            return Err(std::io::Error::other("broken off"));
        }
        let n = buf.len().min(self.left.len()).min(1500);
        buf[..n].copy_from_slice(&self.left[..n]);
        self.left = &self.left[n..];
        Ok(n)
    }
}

#[test]
fn a_new_file_is_not_there_before_it_is_whole() {
    for append_only in [None, Some(60)] {
        let disk = FaultFs::new();
        let mut fs = create(&disk, append_only);
        fs.put_file(b"first", 'f', None, &bytes(10)).unwrap();
        fs.flush().unwrap();
        let all = bytes(50_000);
        let before = fs.stats();
        let mut source = Watched { disk: &disk, left: &all, fails: true, seen: 0 };
        assert!(fs.put_file_from(b"large", 'f', None, &mut source).is_err());
        assert_eq!((source.seen, look(&reader(&disk)).len()), (1, 1));
        assert_eq!((fs.stats().total_bytes, fs.stats().used_bytes), (before.total_bytes, before.used_bytes));

        let mut source = Watched { disk: &disk, left: &all, fails: false, seen: 0 };
        assert_eq!(fs.put_file_from(b"large", 'f', None, &mut source).unwrap(), 50_000);
        assert_eq!(source.seen, 1, "a file was seen before it was whole");
        assert_eq!(look(&reader(&disk)).last().unwrap(), &("large".into(), 50_000));
        assert_eq!(fs.put_file_from(b"empty", 'f', None, &mut std::io::empty()).unwrap(), 0);
        fs.close().unwrap();
        let mut findings = crate::findings::Findings::new();
        let counted = verify(&paths(), &settings(&disk), &mut findings, &crate::silent).unwrap();
        assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
        assert_eq!(counted.files, 3);
    }
}

/// Lets a file have so many parts that its inode is replaced.
fn outgrow(fs: &mut Filesys, name: &[u8]) {
    let before = fs.stat(name).unwrap().ptr;
    for n in 0..6 {
        let mut file = fs.open_file_wr(name, 'f', WriteFlags::default()).unwrap();
        let all = bytes(usize::try_from(file.size()).unwrap() + 200);
        fs.append_file(&mut file, &all[all.len() - 200..]).unwrap();
        drop(file);
        fs.put_file(format!("between {n}").as_bytes(), 'f', None, &bytes(5000)).unwrap();
    }
    assert_ne!(fs.stat(name).unwrap().ptr, before);
}

#[test]
fn a_file_whose_inode_moves_is_listed_once() {
    for have_dups in [false, true] {
        for (begun, synced) in [(false, false), (false, true), (true, false), (true, true)] {
            let disk = FaultFs::new();
            let create = CreateFilesys { isz: 32, htsize: 101, have_dups, ..CreateFilesys::new(7) };
            let mut fs = create.create(&paths(), &settings(&disk)).unwrap();
            for name in ["first", "one", "two", "last"] {
                fs.put_file(name.as_bytes(), 'f', None, &bytes(10)).unwrap();
            }
            // Moved before anybody looks, and durably.
            outgrow(&mut fs, b"two");
            (0..6).for_each(|n| fs.delete_file(format!("between {n}").as_bytes()).unwrap());
            fs.sync().unwrap();
            let early = reader(&disk);
            let listing = early.files();
            outgrow(&mut fs, b"one");
            if synced { fs.sync() } else { fs.flush() }.unwrap();
            let late = reader(&disk);
            let mut files = if begun { listing } else { late.files() };
            let mut found = Vec::new();
            while let Some(info) = files.next_file().unwrap() {
                found.push(String::from_utf8(info.name).unwrap());
            }
            found.retain(|name| !name.starts_with("between"));
            found.sort_unstable();
            let context = format!("dups {have_dups}, begun {begun}, synced {synced}");
            assert_eq!(found, ["first", "last", "one", "two"], "{context}");
        }
    }
}

#[test]
fn a_reader_that_keeps_its_files_follows_a_compaction() {
    let disk = FaultFs::new();
    let mut fs = create(&disk, None);
    fs.put_file(b"gone", 'f', None, &bytes(3000)).unwrap();
    fs.put_file(b"one", 'f', None, &bytes(10)).unwrap();
    fs.delete_file(b"gone").unwrap();
    fs.close().unwrap();
    let mut old = reader(&disk);
    compact(&paths(), &settings(&disk), None, 8, &crate::silent).unwrap();
    assert_eq!(old.read_all(b"one").unwrap(), bytes(10), "what is open stays as it was");
    old.refresh().unwrap();
    assert_eq!(old.read_all(b"one").unwrap(), bytes(10));
    assert!(old.stats().total_bytes < 3000);
}
