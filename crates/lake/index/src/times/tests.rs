use super::*;
use crate::Result;
use crate::counts::Count;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use trawl_model::UnixMillis;

fn count(rows: u64, times: Option<(i64, i64)>) -> Count {
    let times = times.map(|(first, last)| (UnixMillis(first), UnixMillis(last)));
    Count { rows, distinct: rows, exact: true, times, paths: Vec::new() }
}

fn write(slots: &[Vec<Count>]) -> Vec<u8> {
    let mut w = TimesWriter::new(Vec::new()).unwrap();
    slots.iter().for_each(|slot| w.push(slot).unwrap());
    w.finish().unwrap().0
}

/// What is read when only the rows are known.
fn read(file: &[u8], slots: &[Vec<Count>]) -> Result<Vec<Vec<Count>>> {
    let times = Times::open(Arc::new(Bytes::copy_from_slice(file)))?;
    assert_eq!(times.slots(), slots.len() as u64);
    let mut out = Vec::new();
    for (slot, counts) in (0u64..).zip(slots) {
        let mut known: Vec<Count> = counts.iter().map(|c| Count { times: None, ..c.clone() }).collect();
        times.fill(slot, &mut known)?;
        out.push(known);
    }
    Ok(out)
}

fn sample() -> Vec<Vec<Count>> {
    let second = |n: i64| 1_700_000_000_000 + n * 1000;
    let mut slots: Vec<Vec<Count>> = (0..200)
        .map(|n| (0..=n % 3).map(|i| count(i as u64 + 1, Some((second(n), second(n + i))))).collect())
        .collect();
    slots[5][0].times = None;
    slots[70][1] = count(9, Some((-1, second(0) + 1)));
    slots[128..192].iter_mut().flatten().for_each(|c| c.times = None);
    slots
}

#[test]
fn times_come_back() {
    let slots = sample();
    assert_eq!(read(&write(&slots), &slots).unwrap(), slots);
    assert_eq!(read(&write(&[]), &[]).unwrap(), Vec::<Vec<Count>>::new());
    let times = Times::open(Arc::new(Bytes::from(write(&slots)))).unwrap();
    assert!(times.fill(200, &mut []).is_err());
    assert!(times.fill(1, &mut [count(1, None)]).is_err(), "the slot has two");
}

#[test]
fn no_times_take_no_room() {
    let slots = vec![vec![count(3, None); 4]; 6400];
    let bytes = write(&slots).len() as f64 / slots.len() as f64;
    assert!(bytes < 0.14, "{bytes} bytes a slot");
}

#[test]
fn nonsense_is_refused() {
    for bad in [count(2, Some((2, 1))), count(1, Some((1, 2)))] {
        assert!(TimesWriter::new(Vec::new()).unwrap().push(&[bad]).is_err());
    }
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let slots = sample()[60..80].to_vec();
    let file = write(&slots);
    for cut in 0..file.len() {
        assert!(Times::open(Arc::new(Bytes::copy_from_slice(&file[..cut]))).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&f, &slots).is_err(), "bit {bit}");
    }
}

/// Right checksums over wrong bytes.
#[test]
fn hostile_bodies_do_not_panic() {
    let slots = sample()[60..80].to_vec();
    let file = write(&slots);
    let body = &file[..file.len() - 16 - 4];
    for at in 0..body.len() {
        for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
            let mut b = body.to_vec();
            b[at] = value;
            let mut w = crate::paged::PagedWriter::new(Vec::new(), "test");
            w.write(&b).unwrap();
            if let Ok(times) = Times::open(Arc::new(Bytes::from(w.finish().unwrap().0))) {
                for slot in 0..times.slots().min(20) {
                    let _ = times.fill(slot, &mut vec![count(2, None); 2]);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn round_trip(slots in prop::collection::vec(prop::collection::vec(
        (1u64..5, prop::option::of((-1i64 << 40..1 << 41, 0i64..1 << 40))), 0..4), 0..130)) {
        let pair = |(rows, times): (u64, Option<(i64, i64)>)| {
            count(rows, times.map(|(first, more)| (first, if rows > 1 { first + more } else { first })))
        };
        let slots: Vec<Vec<Count>> = slots.into_iter().map(|slot| slot.into_iter().map(pair).collect()).collect();
        prop_assert_eq!(read(&write(&slots), &slots).unwrap(), slots);
    }
}
