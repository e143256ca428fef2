use super::*;
use crate::Result;
use bytes::Bytes;
use std::sync::Arc;

fn files() -> Vec<Vec<Vec<u8>>> {
    (0..20u8)
        .map(|file| (0..file % 4).map(|group| vec![file * 10 + group; usize::from(file) * 30 + 1]).collect())
        .collect()
}

fn write(files: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut w = PagesWriter::new(Vec::new()).unwrap();
    for file in files {
        w.push(file).unwrap();
    }
    w.finish().unwrap()
}

fn read(file: &[u8]) -> Result<Vec<Vec<Vec<u8>>>> {
    let pages = Pages::open(Arc::new(Bytes::copy_from_slice(file)))?;
    let one = |file| {
        let wanted: Vec<_> = (0..pages.groups_of(file)?).map(|group| (file, group)).collect();
        Ok(pages.tables(&wanted)?.iter().map(|b| b.to_vec()).collect())
    };
    (0..pages.files()).map(one).collect()
}

#[test]
fn tables_come_back() {
    let file = write(&files());
    assert_eq!(read(&file).unwrap(), files());
    let pages = Pages::open(Arc::new(Bytes::from(file))).unwrap();
    assert_eq!(pages.files(), 20);
    let got = pages.tables(&[(19, 2), (1, 0)]).unwrap();
    assert_eq!((&got[0][..], &got[1][..]), (&files()[19][2][..], &files()[1][0][..]));
    for bad in [(0, 0), (1, 1), (19, 3), (20, 0), (u32::MAX, u32::MAX)] {
        assert!(pages.tables(&[bad]).is_err(), "{bad:?}");
    }
    assert_eq!(read(&write(&[])).unwrap(), Vec::<Vec<Vec<u8>>>::new());
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let file = write(&files()[..5]);
    for cut in 0..file.len() {
        assert!(read(&file[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&f).is_err(), "bit {bit}");
    }
}

#[test]
fn hostile_bodies_do_not_panic() {
    let file = write(&files()[..5]);
    let body = &file[..file.len() - 16 - 4];
    for at in (0..8).chain(body.len() - 100..body.len()) {
        for value in [0, 1, 0x7f, 0xff] {
            let mut b = body.to_vec();
            b[at] = value;
            let mut w = crate::paged::PagedWriter::new(Vec::new(), "test");
            w.write(&b).unwrap();
            let _ = read(&w.finish().unwrap());
        }
    }
}
