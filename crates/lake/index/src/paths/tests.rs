use super::*;
use crate::Caches;
use crate::counts::Count;
use bytes::Bytes;
use std::sync::Arc;

fn slot(n: u64) -> Vec<Count> {
    let paths = |i: u64| if n < 100 { 0 } else { (n + i) % 4 };
    let count = |i| Count {
        rows: 9,
        distinct: 9,
        exact: true,
        times: None,
        paths: (0..paths(i)).map(|p| (format!("/path{p}/"), n + p)).collect(),
    };
    (0..1 + n % 3).map(count).collect()
}

fn write(slots: u64) -> Vec<u8> {
    let mut writer = PathsWriter::new(Vec::new()).unwrap();
    (0..slots).for_each(|n| writer.push(&slot(n)).unwrap());
    writer.finish().unwrap().0
}

fn open(bytes: &[u8]) -> crate::Result<Paths> {
    Paths::open(Arc::new(Bytes::copy_from_slice(bytes)), Arc::new(Caches::new(1 << 20)))
}

fn bare(n: u64) -> Vec<Count> {
    slot(n).into_iter().map(|c| Count { paths: Vec::new(), ..c }).collect()
}

#[test]
fn paths_come_back() {
    for slots in [0, 1, 63, 64, 65, 300] {
        let paths = open(&write(slots)).unwrap();
        assert_eq!(paths.slots(), slots);
        // Twice: from the file, then from the cache.
        for n in (0..slots).chain(0..slots) {
            let mut counts = bare(n);
            paths.fill(n, &mut counts).unwrap();
            assert_eq!(counts, slot(n));
        }
        assert!(paths.fill(slots, &mut []).is_err());
    }
}

#[test]
fn other_numbers_of_datasets_are_refused() {
    let paths = open(&write(200)).unwrap();
    assert!(paths.fill(150, &mut []).is_err());
    let mut many = vec![Count::default(); 9];
    assert!(paths.fill(150, &mut many).is_err());
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let file = write(200);
    for cut in 0..file.len() {
        assert!(open(&file[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..file.len() {
        let mut bad = file.clone();
        bad[at] ^= 1 << (at % 8);
        let found = open(&bad).and_then(|paths| (0..200).try_for_each(|n| paths.fill(n, &mut bare(n))));
        assert!(found.is_err(), "flip at {at}");
    }
}

#[test]
fn paths_too_long_or_too_many_are_refused() {
    let count = |paths| Count { rows: 1, distinct: 1, exact: true, times: None, paths };
    let mut writer = PathsWriter::new(Vec::new()).unwrap();
    assert!(writer.push(&[count(vec![("x".repeat(129), 1)])]).is_err());
    assert!(writer.push(&[count(vec![("/".into(), 1); 9])]).is_err());
}
