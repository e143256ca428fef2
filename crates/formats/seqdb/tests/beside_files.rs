//! A process that changes a filesys in every way, and readers beside it: they never fail, never see a part of anything,
//! and never miss a file that is always there.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, Clock, CreateFilesys, Error, FileInfo, Filesys, FsPaths, Result, Settings, WriteFlags, filesys, h64, silent,
};

const ROLE: &str = "SEQDB_TEST_CHANGER";
/// Seconds to look for, if not the usual few.
const SECONDS: &str = "SEQDB_TEST_SECONDS";

fn settings() -> Settings {
    let holder = trawl_io::describe_holder("the changer", "now");
    Settings { buffer_bytes: 3000, ..Settings::new(Clock::fixed(UnixMillis(0)), holder) }
}

fn paths(dir: &Path) -> FsPaths {
    FsPaths::new(dir, "f").unwrap()
}

/// One record of a file: who owns it, which one it is, how long, a checksum, and bytes.
fn record(place: u8, id: u64, nth: u64, len: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..len).map(|i| (i as u64 * 31 + id * 7 + nth) as u8).collect();
    let numbers = [u64::from(place), id, nth, len as u64, h64(&body)];
    numbers.iter().flat_map(|n| n.to_be_bytes()).chain(body).collect()
}

/// The place and id of a file whose contents are whole records in order; after a repair the last may be cut.
fn parse(mut contents: &[u8], repaired: bool) -> std::result::Result<(u8, u64, u64), String> {
    let mut owner = None;
    let mut nth = 0;
    while !contents.is_empty() {
        let length = contents.get(24..32).map(|len| u64::from_be_bytes(len.try_into().unwrap()) as usize);
        if repaired && length.is_none_or(|len| contents.len() < 40 + len) {
            break;
        }
        let (numbers, rest) = contents.split_at_checked(40).ok_or("half a head")?;
        let number = |i: usize| u64::from_be_bytes(numbers[i * 8..][..8].try_into().unwrap());
        let (body, rest) = rest.split_at_checked(number(3) as usize).ok_or("half a body")?;
        let whole = number(4) == h64(body) && number(2) == nth;
        if !whole || *owner.get_or_insert((number(0), number(1))) != (number(0), number(1)) {
            return Err(format!("a broken record {nth}"));
        }
        (contents, nth) = (rest, nth + 1);
    }
    let (place, id) = owner.ok_or("no record")?;
    Ok((place as u8, id, nth))
}

/// A file has one of three names, of which the last needs a larger inode.
fn name(place: u8, which: u64) -> Vec<u8> {
    match which % 3 {
        0 => format!("{place}"),
        1 => format!("{place} once"),
        _ => format!("{place} {}", "x".repeat(60)),
    }
    .into_bytes()
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
}

#[derive(Default, Clone)]
struct Stored {
    name: Vec<u8>,
    id: u64,
    records: u64,
}

/// Not a test of its own: what the other process does.
#[test]
fn changer() {
    let Ok(dir) = std::env::var(ROLE) else { return };
    let paths = paths(Path::new(&dir));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()));
    let mut files: Vec<Option<Stored>> = vec![None; 12];
    let mut id = 0;
    let mut forever = 1;
    for session in 0u64.. {
        let mut fs = Filesys::open(&paths, Access::Write, &settings()).unwrap();
        for _ in 0..dice.roll(60) {
            change(&mut fs, &mut dice, &mut files, &mut id).unwrap();
            if dice.roll(4) == 0 {
                let mut file = fs.open_file_wr(b"0", 'f', WriteFlags::default()).unwrap();
                fs.append_file(&mut file, &record(0, 0, forever, dice.roll(900) as usize)).unwrap();
                forever += 1;
            }
            match dice.roll(12) {
                0 => fs.flush().unwrap(),
                1 => fs.sync().unwrap(),
                _ => {}
            }
        }
        fs.close().unwrap();
        if session % 8 == 7 {
            filesys::compact(&paths, &settings(), None, session as i64 + 10, &silent).unwrap();
        }
    }
}

/// Changes one of the files, except the first.
fn change(fs: &mut Filesys, dice: &mut Dice, files: &mut [Option<Stored>], id: &mut u64) -> Result<()> {
    let place = 1 + dice.roll(files.len() as u64 - 1);
    let slot = &mut files[place as usize];
    let place = place as u8;
    let len = match dice.roll(4) {
        0 => dice.roll(20_000),
        _ => dice.roll(600),
    } as usize;
    match (slot.take(), dice.roll(6)) {
        (None, how) => {
            *id += 1;
            let stored = Stored { name: name(place, how), id: *id, records: 1 };
            let contents = record(place, *id, 0, len);
            if how % 2 == 0 {
                fs.put_file(&stored.name, 'f', None, &contents)?;
            } else {
                fs.put_file_from(&stored.name, 'f', None, &mut &contents[..])?;
            }
            *slot = Some(stored);
        }
        (Some(stored), 0) => fs.delete_file(&stored.name)?,
        (Some(mut stored), 1) => {
            let other = name(place, dice.roll(3));
            if other != stored.name {
                fs.rename_file(&stored.name, &other)?;
                stored.name = other;
            }
            *slot = Some(stored);
        }
        (Some(mut stored), _) => {
            let mut file = fs.open_file_wr(&stored.name, 'f', WriteFlags::default())?;
            fs.append_file(&mut file, &record(place, stored.id, stored.records, len))?;
            stored.records += 1;
            *slot = Some(stored);
        }
    }
    Ok(())
}

/// What one look saw.
#[derive(Default)]
struct Seen {
    files: u64,
    /// Records of the file that is always there.
    forever: u64,
}

fn place_of(name: &[u8]) -> u8 {
    let digits = name.split(|b| *b == b' ').next().unwrap();
    std::str::from_utf8(digits).unwrap().parse().unwrap()
}

/// Reads a file that was listed.
fn read(fs: &Filesys, info: &FileInfo, repaired: bool) -> (u8, u64, u64) {
    let file = fs.open_listed(info).unwrap_or_else(|e| panic!("{info:?}: {e}"));
    let mut contents = vec![0; usize::try_from(file.size()).unwrap()];
    let n = fs.read_file(&file, 0, &mut contents).unwrap_or_else(|e| panic!("{info:?}: {e}"));
    let parsed = parse(&contents[..n], repaired).unwrap_or_else(|e| panic!("{info:?} has {e} in {n} bytes"));
    assert_eq!(parsed.0, place_of(&info.name), "{info:?} has another's contents");
    parsed
}

fn look(fs: &Filesys, repaired: bool) -> Seen {
    let mut seen = Seen::default();
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut files = fs.files();
    while let Some(info) = files.next_file().unwrap() {
        let (_, id, records) = read(fs, &info, repaired);
        assert!(ids.insert(id), "{info:?} is listed twice");
        assert!(names.insert(info.name.clone()), "{info:?} is listed twice by name");
        seen.files += 1;
        if id == 0 {
            seen.forever = records;
        }
    }
    assert!(seen.forever > 0, "the file that is always there is not");
    fs.for_each_indexed(&mut |info| {
        read(fs, &info, repaired);
        Ok(())
    })
    .unwrap();
    for place in 0..12 {
        for which in 0..3 {
            match fs.stat(&name(place, which)) {
                Ok(info) => drop(read(fs, &info, repaired)),
                Err(Error::FileNotFound { .. }) => assert!(place > 0 || which > 0, "not found by its name"),
                Err(e) => panic!("{e}"),
            }
        }
    }
    seen
}

struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn readers_beside_a_changer() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let create = CreateFilesys { isz: 32, htsize: 5, ..CreateFilesys::new(7) };
    let mut fs = create.create(&paths(dir), &settings()).unwrap();
    fs.put_file(b"0", 'f', None, &record(0, 0, 0, 10)).unwrap();
    fs.close().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "changer"]).env(ROLE, dir).stdout(Stdio::null());
    let mut other = Other(command.spawn().unwrap());
    let seconds = std::env::var(SECONDS).ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    // That long, and however long it takes to have seen something.
    let until = Instant::now() + Duration::from_secs(seconds);
    let last_moment = until + Duration::from_secs(120);
    let watch = |fresh: bool| {
        let mut fs = Filesys::open(&paths(dir), Access::Read, &settings()).unwrap();
        let (mut looks, mut files, mut most) = (0u64, 0, 0);
        while Instant::now() < until || (looks <= 3 || files <= looks || most < 20) && Instant::now() < last_moment {
            if fresh {
                fs = Filesys::open(&paths(dir), Access::Read, &settings()).unwrap();
            } else {
                fs.refresh().unwrap();
            }
            let seen = look(&fs, false);
            assert!(seen.forever >= most, "a file became shorter: {most} records, then {}", seen.forever);
            most = seen.forever;
            files += seen.files;
            looks += 1;
        }
        (looks, files, most)
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let watchers: Vec<_> = [true, true, false].map(|fresh| scope.spawn(move || watch(fresh))).into();
        watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect()
    });
    assert!(other.0.try_wait().unwrap().is_none(), "the changer failed");
    for (looks, files, most) in found {
        assert!(looks > 3 && files > looks && most >= 20, "{looks} looks, {files} files, {most} records");
    }
    drop(other);
    // Killed wherever it was: what was synced is there. What was appended since is cut where the data ends.
    let repaired = match Filesys::open(&paths(dir), Access::Write, &settings()) {
        Ok(fs) => fs.close().map(|()| false).unwrap(),
        Err(_) => filesys::repair(&paths(dir), &settings(), false, &silent).map(|_| true).unwrap(),
    };
    look(&Filesys::open(&paths(dir), Access::Read, &settings()).unwrap(), repaired);
}
