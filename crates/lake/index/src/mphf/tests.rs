use super::*;
use crate::Result;
use bytes::Bytes;
use std::sync::Arc;

const HASHES: DictionaryHashes = DictionaryHashes { file: 1, table: 2 };

/// Names in blocks of `block` names, chunks of `chunk`.
fn write(names: &[String], block: usize, chunk: u32, hash: NameHash) -> Vec<u8> {
    let mut w = MphfWriter::with(Vec::new(), hash, chunk).unwrap();
    for (i, name) in names.iter().enumerate() {
        w.push(name, i % block == 0).unwrap();
    }
    w.finish(HASHES).unwrap()
}

fn open(file: &[u8], hash: NameHash) -> Result<Mphf> {
    Mphf::open_with(Arc::new(Bytes::copy_from_slice(file)), hash)
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("host{i:07}.example")).collect()
}

fn check(mphf: &Mphf, names: &[String], block: usize) {
    for (i, name) in names.iter().enumerate() {
        assert_eq!(mphf.get(name, i / block).unwrap(), Candidate::Line((i % block) as u32), "{name}");
    }
}

#[test]
fn every_name_finds_its_line() {
    for n in [0, 1, 2, 3, 7, 50, 1000, 20_000] {
        let names = names(n);
        let mphf = open(&write(&names, 100, 3000, name_hash), name_hash).unwrap();
        assert_eq!((mphf.names(), mphf.searched_chunks(), mphf.dictionary()), (n as u64, 0, HASHES));
        check(&mphf, &names, 100);
    }
}

#[test]
fn strangers_are_turned_away() {
    let names = names(20_000);
    let mphf = open(&write(&names, 1000, 1 << 18, name_hash), name_hash).unwrap();
    let passed = (0..200_000)
        .filter(|i| mphf.get(&format!("stranger{i}.example"), i % 20).unwrap() != Candidate::Stranger)
        .count();
    // Expected three of 200,000 at 2^-16; and no block past the last has any name.
    assert!(passed < 15, "{passed} strangers passed");
    assert_eq!(mphf.get("host0000000.example", 20).unwrap(), Candidate::Stranger);
    assert_eq!(mphf.get("host0000000.example", usize::MAX).unwrap(), Candidate::Stranger);
}

#[test]
fn a_large_chunk_is_compact() {
    let names = names(200_000);
    let file = write(&names, 1000, 1 << 18, name_hash);
    let bits = file.len() as f64 * 8.0 / names.len() as f64;
    assert!(bits < 29.5, "{bits} bits a name");
    check(&open(&file, name_hash).unwrap(), &names, 1000);
}

/// All names that end alike have one hash, whatever the seed.
fn colliding(name: &[u8], seed: u64) -> u128 {
    if name.starts_with(b"host00") { 42 } else { name_hash(name, seed) }
}

/// Names collide under the first seed only.
fn colliding_once(name: &[u8], seed: u64) -> u128 {
    if seed == 0 { 42 } else { name_hash(name, seed) }
}

#[test]
fn equal_hashes_do_not_stop_a_build() {
    let names = names(5000);
    let mphf = open(&write(&names, 100, 1000, colliding), colliding).unwrap();
    assert_eq!(mphf.searched_chunks(), 5, "every chunk has two names with one hash");
    assert_eq!(mphf.get(&names[1], 0).unwrap(), Candidate::Unknown);
    let mphf = open(&write(&names, 100, 1000, colliding_once), colliding_once).unwrap();
    assert_eq!(mphf.searched_chunks(), 0);
    check(&mphf, &names, 100);
}

/// The low half is the same for all names, as if 64-bit hashes collided.
fn half_colliding(name: &[u8], seed: u64) -> u128 {
    name_hash(name, seed) & !u128::from(u64::MAX)
}

#[test]
fn equal_halves_do_not_stop_a_build() {
    let names = names(300);
    let mphf = open(&write(&names, 100, 1000, half_colliding), half_colliding).unwrap();
    for (i, name) in names.iter().enumerate() {
        let found = mphf.get(name, i / 100).unwrap();
        assert!(found == Candidate::Unknown || found == Candidate::Line((i % 100) as u32));
    }
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let names = names(60);
    let file = write(&names, 20, 40, name_hash);
    let all = |file: &[u8]| -> Result<()> {
        let mphf = open(file, name_hash)?;
        for (i, name) in names.iter().enumerate() {
            mphf.get(name, i / 20)?;
        }
        Ok(())
    };
    all(&file).unwrap();
    for cut in 0..file.len() {
        assert!(all(&file[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(all(&f).is_err(), "bit {bit}");
    }
}

/// A file whose checksums are right but whose numbers are hostile must be refused, not believed.
#[test]
fn hostile_tables_are_refused() {
    let names = names(60);
    let file = write(&names, 20, 40, name_hash);
    let footer = file.len() - FOOTER;
    let table = footer - 2 * ENTRY;
    let mut refused = 0;
    for field in (table..footer + 32).step_by(4) {
        for value in [0u32, 1, 0xff, u32::MAX, 1 << 31] {
            let mut f = file.clone();
            f[field..field + 4].copy_from_slice(&value.to_le_bytes());
            let crc = trawl_io::crc::crc32c_of(&[&f[..HEADER], &f[table..footer + 32]]);
            f[footer + 32..footer + 36].copy_from_slice(&crc.to_le_bytes());
            match open(&f, name_hash) {
                Ok(mphf) => names.iter().for_each(|n| drop(mphf.get(n, 1))),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn same_names_same_bytes() {
    let names = names(500);
    assert_eq!(write(&names, 100, 200, name_hash), write(&names, 100, 200, name_hash));
}
