//! The same for every kind of record.

use super::*;
use crate::counts::Counts;
use crate::paths::Paths;
use crate::times::Times;
use crate::{Caches, Result};
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use trawl_model::UnixMillis;

fn write<R: Record>(slots: &[Vec<Count>]) -> Vec<u8> {
    let mut w = SlotWriter::<R, _>::new(Vec::new()).unwrap();
    slots.chunks(BLOCK_SLOTS).for_each(|block| w.block(block).unwrap());
    w.finish().unwrap()
}

fn open<R: Record>(file: &[u8]) -> Result<SlotReader<R>> {
    SlotReader::open(Arc::new(Bytes::copy_from_slice(file)), Arc::new(Caches::new(1 << 20)))
}

/// What a file has of a count, where only the rest is known.
trait Part: Record {
    fn without(count: &Count) -> Count;
}

impl Part for Counts {
    fn without(count: &Count) -> Count {
        Count { rows: 0, distinct: 0, exact: false, ..count.clone() }
    }
}

impl Part for Times {
    fn without(count: &Count) -> Count {
        Count { times: None, ..count.clone() }
    }
}

impl Part for Paths {
    fn without(count: &Count) -> Count {
        Count { paths: Vec::new(), ..count.clone() }
    }
}

/// Every slot, filled in by the file.
fn read<R: Part>(file: &[u8], slots: &[Vec<Count>]) -> Result<Vec<Vec<Count>>> {
    let records = open::<R>(file)?;
    assert_eq!(records.slots(), slots.len() as u64);
    let one = |(slot, counts): (u64, &Vec<Count>)| {
        let mut known: Vec<Count> = counts.iter().map(R::without).collect();
        records.fill(slot, &mut known)?;
        Ok(known)
    };
    // Twice: from the file, then perhaps from the cache.
    let first = (0u64..).zip(slots).map(one).collect::<Result<Vec<_>>>()?;
    assert_eq!(first, (0u64..).zip(slots).map(one).collect::<Result<Vec<_>>>()?);
    Ok(first)
}

fn count(rows: u64) -> Count {
    Count { rows, distinct: rows, exact: true, times: None, paths: Vec::new() }
}

/// Slots of one to three datasets; in one block nothing has a time or a path.
fn sample() -> Vec<Vec<Count>> {
    let second = |n: u64| UnixMillis(1_700_000_000_000 + n as i64 * 1000);
    let pair = |n: u64, i: u64| Count {
        times: Some((second(n), second(n + i))),
        paths: (0..(n + i) % 4).map(|p| (format!("/path{p}/"), n + p)).collect(),
        ..count(i + 1)
    };
    let mut slots: Vec<Vec<Count>> = (0..200).map(|n| (0..=n % 3).map(|i| pair(n, i)).collect()).collect();
    slots[5][0].times = None;
    slots[70][1] = Count { distinct: 4, exact: false, times: Some((UnixMillis(-1), second(0))), ..count(9) };
    slots[128..192].iter_mut().flatten().for_each(|c| (c.times, c.paths) = (None, Vec::new()));
    slots
}

fn come_back<R: Part>() {
    for slots in [&sample()[..], &sample()[..1], &sample()[..64], &sample()[..65], &[]] {
        assert_eq!(read::<R>(&write::<R>(slots), slots).unwrap(), slots, "{}", R::FILE);
    }
    let records = open::<R>(&write::<R>(&sample())).unwrap();
    assert!(records.fill(200, &mut []).is_err());
    for wrong in [1, 3] {
        assert!(records.fill(4, &mut vec![count(2); wrong]).is_err(), "{}: the slot has two", R::FILE);
    }
}

#[test]
fn records_come_back() {
    come_back::<Counts>();
    come_back::<Times>();
    come_back::<Paths>();
}

fn every_cut_and_every_flip<R: Part>() {
    let slots = sample()[60..80].to_vec();
    let file = write::<R>(&slots);
    for cut in 0..file.len() {
        assert!(open::<R>(&file[..cut]).is_err(), "{} cut at {cut}", R::FILE);
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(read::<R>(&f, &slots).is_err(), "{} bit {bit}", R::FILE);
    }
}

#[test]
fn every_cut_and_every_flip_is_found() {
    every_cut_and_every_flip::<Counts>();
    every_cut_and_every_flip::<Times>();
    every_cut_and_every_flip::<Paths>();
}

/// Right checksums over wrong bytes.
fn hostile_bodies<R: Part>() {
    let file = write::<R>(&sample()[60..80]);
    let body = &file[..file.len() - 16 - 4];
    for at in 0..body.len() {
        for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
            let mut b = body.to_vec();
            b[at] = value;
            let mut w = crate::paged::PagedWriter::new(Vec::new(), "test");
            w.write(&b).unwrap();
            if let Ok(records) = open::<R>(&w.finish().unwrap()) {
                for slot in 0..records.slots().min(20) {
                    let _ = records.fill(slot, &mut vec![count(2); 2]);
                }
            }
        }
    }
}

#[test]
fn hostile_bodies_do_not_panic() {
    hostile_bodies::<Counts>();
    hostile_bodies::<Times>();
    hostile_bodies::<Paths>();
}

fn refuses<R: Record>(count: Count) {
    assert!(SlotWriter::<R, _>::new(Vec::new()).unwrap().block(&[vec![count]]).is_err(), "{}", R::FILE);
}

#[test]
fn nonsense_is_refused() {
    refuses::<Counts>(count(0));
    refuses::<Counts>(Count { distinct: 0, ..count(3) });
    refuses::<Counts>(Count { distinct: 4, ..count(3) });
    refuses::<Times>(Count { times: Some((UnixMillis(2), UnixMillis(1))), ..count(2) });
    refuses::<Times>(Count { times: Some((UnixMillis(1), UnixMillis(2))), ..count(1) });
    refuses::<Paths>(Count { paths: vec![("x".repeat(129), 1)], ..count(1) });
    refuses::<Paths>(Count { paths: vec![("/".into(), 1); 9], ..count(1) });
}

#[test]
fn what_says_little_takes_little_room() {
    let bytes = |file: Vec<u8>| file.len() as f64 / 6400.0;
    let slots = vec![vec![count(5)]; 6400];
    assert!(bytes(write::<Counts>(&slots)) < 2.25, "a tail pair takes two bytes");
    let slots = vec![vec![count(3); 4]; 6400];
    assert!(bytes(write::<Times>(&slots)) < 0.14, "no times take no room");
    assert!(bytes(write::<Paths>(&slots)) < 0.14, "no paths take no room");
}

fn any_count() -> impl Strategy<Value = Count> {
    let times = prop::option::of((-1i64 << 40..1 << 41, 0i64..1 << 40));
    let paths = prop::collection::vec(("/[a-zé]{0,9}/", any::<u64>()), 0..9);
    (prop_oneof![1u64..5, 1u64..1 << 50], any::<u64>(), any::<bool>(), times, paths).prop_map(
        |(rows, distinct, exact, times, paths)| {
            let last = |(first, more): (i64, i64)| if rows > 1 { first + more } else { first };
            let times = times.map(|times| (UnixMillis(times.0), UnixMillis(last(times))));
            Count { rows, distinct: 1 + distinct % rows, exact, times, paths }
        },
    )
}

proptest! {
    #[test]
    fn round_trip(slots in prop::collection::vec(prop::collection::vec(any_count(), 0..4), 0..130)) {
        prop_assert_eq!(&read::<Counts>(&write::<Counts>(&slots), &slots).unwrap(), &slots);
        prop_assert_eq!(&read::<Times>(&write::<Times>(&slots), &slots).unwrap(), &slots);
        prop_assert_eq!(&read::<Paths>(&write::<Paths>(&slots), &slots).unwrap(), &slots);
    }
}
