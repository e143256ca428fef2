use super::*;
use crate::Result;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use trawl_io::read_at::Counting;

fn write(body: &[u8]) -> Vec<u8> {
    let mut w = PagedWriter::new(Vec::new(), "test");
    for piece in body.chunks(777) {
        w.write(piece).unwrap();
    }
    w.finish().unwrap()
}

fn open(file: &[u8]) -> Result<PagedReader> {
    PagedReader::open(Arc::new(Bytes::copy_from_slice(file)))
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn every_range_comes_back() {
    for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 3 * PAGE + 5] {
        let body = noise(len);
        let r = open(&write(&body)).unwrap();
        assert_eq!(r.len(), len as u64);
        for (a, b) in [(0, len), (len / 2, len), (0, len / 3), (len / 3, len / 2), (len, len)] {
            assert_eq!(r.read(a as u64..b as u64).unwrap(), body[a..b], "{len}: {a}..{b}");
        }
        assert!(r.read(0..len as u64 + 1).is_err());
    }
}

#[test]
fn reads_are_few() {
    let body = noise(400 * PAGE);
    let source = Arc::new(Counting::new(Bytes::from(write(&body))));
    let r = PagedReader::open(source.clone()).unwrap();
    assert_eq!(source.take().rounds, 1);
    let got = r.read_many(&[5..10, 5000..5001, 40_000..60_000]).unwrap();
    assert_eq!(got, [&body[5..10], &body[5000..5001], &body[40_000..60_000]]);
    let reads = source.take();
    assert_eq!((reads.rounds, reads.ranges, reads.bytes), (1, 3, 8 * PAGE as u64));
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let body = noise(PAGE + 100);
    let file = write(&body);
    for cut in 0..file.len() {
        let read = open(&file[..cut]).and_then(|r| r.read(0..r.len()));
        assert!(read.is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&f).and_then(|r| r.read(0..body.len() as u64)).is_err(), "bit {bit}");
    }
}

#[test]
fn all_faults_are_listed() {
    let mut file = write(&noise(5 * PAGE));
    file[10] ^= 1;
    file[4 * PAGE + 10] ^= 1;
    let mut faults = Vec::new();
    open(&file).unwrap().check_all(&mut |e| faults.push(e.to_string()));
    assert_eq!(faults.len(), 2);
    assert!(faults[1].starts_with("(memory)@16384: expected a page"), "{}", faults[1]);
}

proptest! {
    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(open(&noise).is_err());
    }
}
