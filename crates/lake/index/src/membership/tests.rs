use super::*;
use crate::Result;
use crate::scratch::Scratch;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;

fn write(sets: &[Vec<u32>]) -> Vec<u8> {
    let mut w = MembershipWriter::new(&Scratch::new(std::env::temp_dir(), 1 << 20));
    for set in sets {
        w.push(set).unwrap();
    }
    w.finish(Vec::new()).unwrap()
}

fn read(file: &[u8]) -> Result<Vec<Vec<u32>>> {
    let m = Membership::open(Arc::new(Bytes::copy_from_slice(file)))?;
    (0..m.slots()).map(|slot| m.datasets(slot)).collect()
}

#[test]
fn sets_come_back() {
    let many: Vec<u32> = (0..20_000).map(|i| i * 3).collect();
    let sets = vec![vec![1], vec![1, 2, 1 << 31], vec![1], many, vec![u32::MAX], vec![1]];
    let file = write(&sets);
    assert_eq!(read(&file).unwrap(), sets);
    let m = Membership::open(Arc::new(Bytes::from(file))).unwrap();
    assert!(m.datasets(6).is_err());
    assert_eq!(read(&write(&[])).unwrap(), Vec::<Vec<u32>>::new());
}

#[test]
fn identical_bitmaps_are_stored_once() {
    let one = write(&[vec![7, 9]]).len();
    let many = write(&vec![vec![7, 9]; 100]).len();
    assert_eq!(many - one, 99 * ENTRY as usize);
}

/// The drawing, byte by byte, as a reader in another language would go about it.
#[test]
fn the_seeds_drawing_holds() {
    let file = write(&[vec![3], vec![17], vec![3]]);
    let u64_at = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!((&file[..4], u32_at(4), u64_at(8)), (&b"DTDR"[..], 1, 3));
    let index = u64_at(16);
    let set = |slot: usize| {
        let (start, len) = (u64_at(index + slot * 12), u32_at(index + slot * 12 + 8));
        roaring::RoaringBitmap::deserialize_from(&file[start..start + len]).unwrap().into_iter().collect::<Vec<_>>()
    };
    assert_eq!([set(0), set(1), set(2)], [[3], [17], [3]]);
    assert_eq!(u64_at(index), u64_at(index + 24), "slots 0 and 2 share a bitmap");
}

#[test]
fn bad_sets_are_refused() {
    let mut w = MembershipWriter::new(&Scratch::new(std::env::temp_dir(), 1 << 20));
    assert!(w.push(&[]).is_err() && w.push(&[2, 1]).is_err() && w.push(&[1, 1]).is_err());
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let file = write(&[vec![1], vec![1, 2], vec![9]]);
    for cut in 0..file.len() {
        assert!(read(&file[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&f).is_err(), "bit {bit}");
    }
}

/// Right checksums over wrong numbers.
#[test]
fn hostile_bodies_are_refused_or_read_without_panic() {
    let file = write(&[vec![1], vec![1, 2], vec![9]]);
    let body = &file[..file.len() - 16 - 4];
    for at in 0..body.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut b = body.to_vec();
            b[at] = value;
            let mut w = crate::paged::PagedWriter::new(Vec::new(), "test");
            w.write(&b).unwrap();
            let _ = read(&w.finish().unwrap());
        }
    }
}

proptest! {
    #[test]
    fn round_trip(sets in prop::collection::vec(prop::collection::btree_set(0u32..40, 1..6), 0..50)) {
        let sets: Vec<Vec<u32>> = sets.into_iter().map(|s| s.into_iter().collect()).collect();
        prop_assert_eq!(read(&write(&sets)).unwrap(), sets);
    }
}
