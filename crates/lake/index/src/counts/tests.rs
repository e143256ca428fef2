use super::*;
use crate::Result;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;

fn write(slots: &[Vec<Count>]) -> Vec<u8> {
    let mut w = CountsWriter::new(Vec::new()).unwrap();
    for slot in slots {
        w.push(slot).unwrap();
    }
    w.finish().unwrap().0
}

fn read(file: &[u8], datasets: &[usize]) -> Result<Vec<Vec<Count>>> {
    let counts = Counts::open(Arc::new(Bytes::copy_from_slice(file)))?;
    assert_eq!(counts.slots(), datasets.len() as u64);
    (0u64..).zip(datasets).map(|(slot, n)| counts.get(slot, *n)).collect()
}

fn count(rows: u64) -> Count {
    Count { rows, distinct: rows, exact: true, times: None, paths: Vec::new() }
}

fn sample() -> Vec<Vec<Count>> {
    let mut slots: Vec<Vec<Count>> = (1..200).map(|i| vec![count(i); (i % 4) as usize + 1]).collect();
    slots[3][0].distinct = 1;
    slots[70][0].exact = false;
    slots
}

fn sizes(slots: &[Vec<Count>]) -> Vec<usize> {
    slots.iter().map(Vec::len).collect()
}

#[test]
fn counts_come_back() {
    let slots = sample();
    let file = write(&slots);
    assert_eq!(read(&file, &sizes(&slots)).unwrap(), slots);
    let counts = Counts::open(Arc::new(Bytes::from(file))).unwrap();
    assert_eq!(counts.pairs(), slots.iter().map(|s| s.len() as u64).sum::<u64>());
    let all: Vec<_> = counts.blocks().collect::<Result<Vec<_>>>().unwrap().concat();
    assert_eq!(all, slots);
    assert!(counts.get(199, 1).is_err());
    assert!(counts.get(0, 1).is_err() && counts.get(0, 3).is_err(), "the slot has two");
    assert_eq!(read(&write(&[]), &[]).unwrap(), Vec::<Vec<Count>>::new());
}

#[test]
fn a_tail_pair_takes_two_bytes() {
    let slots = vec![vec![count(5)]; 64 * 100];
    let bytes = write(&slots).len() as f64 / slots.len() as f64;
    assert!(bytes < 2.25, "{bytes} bytes a pair");
}

#[test]
fn nonsense_is_refused() {
    let bad = [count(0), Count { distinct: 0, ..count(3) }, Count { distinct: 4, ..count(3) }];
    for count in bad {
        assert!(CountsWriter::new(Vec::new()).unwrap().push(&[count]).is_err());
    }
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let slots = sample()[120..].to_vec();
    let file = write(&slots);
    for cut in 0..file.len() {
        assert!(Counts::open(Arc::new(Bytes::copy_from_slice(&file[..cut]))).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&f, &sizes(&slots)).is_err(), "bit {bit}");
    }
}

/// Right checksums over wrong bytes.
#[test]
fn hostile_bodies_do_not_panic() {
    let slots = sample()[120..140].to_vec();
    let file = write(&slots);
    let body = &file[..file.len() - 16 - 4];
    for at in 0..body.len() {
        for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
            let mut b = body.to_vec();
            b[at] = value;
            let mut w = crate::paged::PagedWriter::new(Vec::new(), "test");
            w.write(&b).unwrap();
            if let Ok(counts) = Counts::open(Arc::new(Bytes::from(w.finish().unwrap().0))) {
                for slot in 0..counts.slots().min(20) {
                    let _ = counts.get(slot, 2);
                }
                let _: Vec<_> = counts.blocks().take(3).collect();
            }
        }
    }
}

proptest! {
    #[test]
    fn round_trip(slots in prop::collection::vec(prop::collection::vec(
        (1u64..1 << 50, any::<u64>(), any::<bool>()), 0..4), 0..130)) {
        let pair = |(rows, d, exact)| Count { rows, distinct: 1 + d % rows, exact, times: None, paths: Vec::new() };
        let slots: Vec<Vec<Count>> = slots.into_iter().map(|slot| slot.into_iter().map(pair).collect()).collect();
        prop_assert_eq!(read(&write(&slots), &sizes(&slots)).unwrap(), slots);
    }
}
