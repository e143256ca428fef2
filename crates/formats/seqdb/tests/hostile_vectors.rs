//! The vectors, cut at every byte, with every bit flipped, and with numbers no honest file has: every way of looking at
//! them and of repairing them ends, in bounded time and within bounded memory.
//!
//! The limit on memory is the system's: the work is done by a second process that may not have more.

mod common;

use common::{put, settings, vector};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use trawl_io::fault::FaultFs;
use trawl_seqdb::{
    Access, Filesys, Findings, FsPaths, Hindex, Kvseq, Map, MapFiles, Perm, Settings, Whole, inspect, silent,
};

const ROLE: &str = "SEQDB_TEST_HOSTILE";
/// Address space of the second process, in KiB: the program, its threads' stacks, and what the reader may take.
const LIMIT_KIB: u64 = 300 << 10;
/// For one damaged set of files; a debug build on a loaded machine needs a hundredth of it, or stands still for a while.
const ONE: Duration = Duration::from_secs(60);

/// Both sets of files: a map with a perm, and a filesys.
const MAP: [(&str, &str); 3] = [("/m.kvseq", "v1.kvseq"), ("/m.hindex", "v3.hindex"), ("/m.perm", "v4.perm")];
const PLAIN: [(&str, &str); 2] = [("/m.kvseq", "v1.kvseq"), ("/m.hindex", "v2.hindex")];
const FSYS: [(&str, &str); 3] = [("/f.data", "v5.data"), ("/f.idx", "v6.idx"), ("/f.time", "v7.time")];

/// Looks at a set of files in every way there is, then repairs and checks.
fn survive(set: &[(&str, &str)], at: &str, bytes: &[u8], what: &str) {
    let began = Instant::now();
    let disk = FaultFs::new();
    for (path, name) in set {
        put(&disk, path, if *path == at { bytes } else { common::FILES.iter().find(|f| f.0 == *name).unwrap().1 });
    }
    let settings = Settings { sort_memory_bytes: 6 << 20, chunk_bytes: 4096, ..settings(&disk) };
    let _ = inspect(at.as_ref(), &settings);
    for (path, _) in set {
        let path = Path::new(path);
        if let Ok(kv) = Kvseq::open(path, Access::Read, &settings) {
            let mut scan = kv.scan().with_deleted();
            while let Ok(Some(item)) = scan.next_entry() {
                let _ = kv.get(item.ptr);
            }
            let _ = kv.lookup(b"none");
        }
        if let Ok(index) = Hindex::open(path, Access::Read, &settings) {
            let _ = index.for_each(&mut |_, _| Ok(()));
        }
        if let Ok(perm) = Perm::open(path, Access::Read, &settings) {
            let _ = perm.for_each(0, &mut |_, _| Ok(true));
        }
    }
    let map = MapFiles::named(Path::new("/m"));
    if let Ok(map) = Map::open(&map, Access::Read, &settings) {
        for key in [&b"apple"[..], b"pear", b"fig", b"none", b""] {
            let _ = map.get(key);
        }
    }
    let paths = FsPaths::new(Path::new("/"), "f").unwrap();
    if let Ok(fs) = Filesys::open(&paths, Access::Read, &settings) {
        let _ = fs.read_all(b"a.txt");
        for files in [Ok(fs.files()), fs.files_since(0)].into_iter().flatten() {
            let mut files = files;
            while let Ok(Some(info)) = files.next_file() {
                let _ = fs.read_all(&info.name);
            }
        }
    }
    if let Ok(whole) = Whole::of(at.as_ref(), &settings) {
        let _ = whole.verify(&settings, &mut Findings::new(), &silent);
        for salvage in [false, true] {
            if whole.repair(&settings, salvage, &silent).is_ok() {
                let mut findings = Findings::new();
                whole.verify(&settings, &mut findings, &silent).unwrap_or_else(|e| panic!("{what}: {e}"));
            }
        }
    }
    assert!(began.elapsed() < ONE, "{what} takes {:?}", began.elapsed());
}

fn cut_and_flip(set: &[(&str, &str)]) {
    for (path, name) in set {
        let good = vector(name);
        for cut in 0..good.len() {
            survive(set, path, &good[..cut], &format!("{name} cut at {cut}"));
        }
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            survive(set, path, &bad, &format!("{name} with bit {bit} flipped"));
        }
    }
}

/// Every variable of every file, with every number that ends something or overflows something.
fn odd_numbers(set: &[(&str, &str)]) {
    let numbers =
        [0, 1, 7, 8, 63, 64, 255, 256, 257, 4095, 1 << 20, (16 << 20) + 8, 1 << 32, 1 << 58, 1 << 60, 1 << 62];
    let numbers = numbers.into_iter().chain([i64::MAX, i64::MAX - 7, -1, -8, i64::MIN]);
    for (path, name) in set {
        let good = vector(name);
        let slots = (8..256).step_by(16).take_while(|at| good[*at] != 0);
        for (slot, number) in slots.flat_map(|slot| numbers.clone().map(move |number| (slot, number))) {
            let mut bad = good.clone();
            bad[slot + 8..slot + 16].copy_from_slice(&number.to_be_bytes());
            let variable = String::from_utf8_lossy(&good[slot..slot + 8]).into_owned();
            survive(set, path, &bad, &format!("{name} with {variable} {number}"));
        }
    }
}

/// Lengths that leave the file, and tables without an end to a search.
fn lengths_and_tables() {
    let kvseq = vector("v1.kvseq");
    for (at, len) in [(257, 255), (264, 255), (265, 255), (269, 255), (274, 255)] {
        let mut bad = kvseq.clone();
        bad[at] = len;
        survive(&MAP, "/m.kvseq", &bad, &format!("a length of {len} at {at}"));
    }
    // Entries without a byte: there would be no end of them.
    let mut bad = kvseq.clone();
    for (slot, number) in [(120, 4i64), (136, 4), (152, 0)] {
        bad[slot + 8..slot + 16].copy_from_slice(&number.to_be_bytes());
    }
    survive(&MAP, "/m.kvseq", &bad, "entries of no bytes");
    let mut data = vector("v5.data");
    for len in [1u64 << 62, 1 << 63, u64::MAX, 88, 1 << 20] {
        data[0x215..0x21d].copy_from_slice(&len.to_be_bytes());
        survive(&FSYS, "/f.data", &data, &format!("an inode of {len} bytes"));
    }
    for (name, set) in [("v2.hindex", &PLAIN[..]), ("v3.hindex", &MAP[..])] {
        let good = vector(name);
        for cell in [u64::MAX, 256, 268, 281, 1 << 60, 257] {
            let mut bad = good.clone();
            bad[256..].chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&cell.to_be_bytes()));
            survive(set, "/m.hindex", &bad, &format!("{name} with all cells {cell:x}"));
        }
    }
    // A table of deleted cells only, large: every search goes all the way round, once.
    let mut idx = vector("v6.idx");
    let cells = 100_000u64;
    idx.truncate(256);
    idx.resize(256 + 16 * 100_000, 0xff);
    for (slot, number) in [(56, 256 + 16 * cells), (72, 256 + 16 * cells), (104, cells), (152, cells), (168, 0)] {
        let name = String::from_utf8_lossy(&idx[slot..slot + 8]).into_owned();
        assert!(["FILESIZE", "SYNCSIZE", "HTSIZE\0\0", "ENTRIES\0", "AENTRIES"].contains(&name.as_str()), "{name}");
        idx[slot + 8..slot + 16].copy_from_slice(&number.to_be_bytes());
    }
    survive(&FSYS, "/f.idx", &idx, "a hundred thousand deleted cells");
}

/// Not a test of its own: what the second process does.
#[test]
fn in_little_memory() {
    match std::env::var(ROLE).as_deref() {
        Ok("map") => cut_and_flip(&MAP),
        Ok("plain") => cut_and_flip(&PLAIN[1..].iter().chain(&PLAIN[..1]).copied().collect::<Vec<_>>()),
        Ok("filesys") => cut_and_flip(&FSYS),
        Ok("numbers") => [&MAP[..], &PLAIN, &FSYS].into_iter().for_each(odd_numbers),
        Ok("lengths") => lengths_and_tables(),
        Ok("greedy") => drop(std::hint::black_box(vec![1u8; 400 << 20])),
        _ => {}
    }
}

fn run(part: &str) -> std::process::Output {
    let script = format!("ulimit -v {LIMIT_KIB} && exec \"$0\" --exact in_little_memory --test-threads 1");
    let program = std::env::current_exe().unwrap();
    // Every arena of the allocator would reserve addresses that nobody uses.
    Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .envs([(ROLE, part), ("MALLOC_ARENA_MAX", "1")])
        .output()
        .unwrap()
}

fn passes(part: &str) {
    let output = run(part);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn the_limit_is_one() {
    assert!(!run("greedy").status.success(), "400 MiB fit into 300");
}

#[test]
fn map_cut_and_flipped() {
    passes("map");
}

#[test]
fn map_without_hashes_cut_and_flipped() {
    passes("plain");
}

#[test]
fn filesys_cut_and_flipped() {
    passes("filesys");
}

#[test]
fn numbers_no_honest_file_has() {
    passes("numbers");
}

#[test]
fn lengths_past_the_end_and_tables_without_end() {
    passes("lengths");
}
