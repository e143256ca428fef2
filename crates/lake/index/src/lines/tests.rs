use super::*;
use crate::cache::Caches;
use crate::{Error, Result};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use trawl_io::read_at::Counting;

fn write(lines: &[impl AsRef<str>], keys: Keys) -> Vec<u8> {
    let mut w = LinesWriter::new(Vec::new(), "test", keys, 3, 4096).unwrap();
    for line in lines {
        w.push(line.as_ref()).unwrap();
    }
    assert_eq!(w.lines(), lines.len() as u64);
    w.finish().unwrap().0
}

fn open(file: &[u8]) -> Result<Lines> {
    Lines::open(Arc::new(Bytes::copy_from_slice(file)), Arc::default())
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("name-{i:06}.example")).collect()
}

#[test]
fn by_number_and_by_content() {
    for n in [0, 1, 2, 3000] {
        let names = names(n);
        let lines = open(&write(&names, Keys::Sorted)).unwrap();
        assert_eq!(lines.len(), n as u64);
        for (i, name) in names.iter().enumerate() {
            assert_eq!(lines.line(i as u64).unwrap().as_deref(), Some(name.as_str()));
            assert_eq!(lines.find(name).unwrap(), Some(i as u64));
            assert_eq!(lines.find(&format!("{name}x")).unwrap(), None);
        }
        assert_eq!(lines.line(n as u64).unwrap(), None);
        assert_eq!(lines.line(u64::MAX).unwrap(), None);
        for stranger in ["", "a", "name-", "zzz"] {
            assert_eq!(lines.find(stranger).unwrap(), None);
        }
    }
}

#[test]
fn walking_starts_anywhere() {
    let names = names(1000);
    let lines = open(&write(&names, Keys::Sorted)).unwrap();
    for from in ["", "name-000000", "name-000499.example", "name-000500", "name-000999.f", "z"] {
        let mut seen = Vec::new();
        lines
            .walk_from(from, &mut |i, line| {
                seen.push((i, line.to_owned()));
                true
            })
            .unwrap();
        let expected: Vec<_> =
            names.iter().enumerate().filter(|(_, n)| n.as_str() >= from).map(|(i, n)| (i as u64, n.clone())).collect();
        assert_eq!(seen, expected, "{from}");
    }
    let mut count = 0;
    lines
        .walk_from("name-000100", &mut |_, _| {
            count += 1;
            count < 5
        })
        .unwrap();
    assert_eq!(count, 5);
}

#[test]
fn a_block_is_read_once_and_only_when_needed() {
    let source = Arc::new(Counting::new(Bytes::from(write(&names(20_000), Keys::Sorted))));
    let lines = Lines::open(source.clone(), Arc::new(Caches::new(1 << 20))).unwrap();
    source.take();
    lines.find("name-010000.example").unwrap();
    lines.find("name-010000.example").unwrap();
    lines.line(10_001).unwrap();
    assert_eq!(source.take().ranges, 1);
    assert!(lines.block_of("name-000500.example").is_some() && lines.block_of("a").is_none());
    assert_eq!(source.take().ranges, 0);
}

#[test]
fn two_files_do_not_share_blocks() {
    let caches: Arc<Caches> = Arc::default();
    let open = |text: &str| Lines::open(Arc::new(Bytes::from(write(&[text], Keys::None))), caches.clone()).unwrap();
    let (a, b) = (open("a"), open("b"));
    assert_eq!((a.line(0).unwrap().unwrap(), b.line(0).unwrap().unwrap()), ("a".into(), "b".into()));
}

#[test]
fn what_is_no_line_is_refused() {
    let push = |lines: &[&str], keys| {
        let mut w = LinesWriter::new(Vec::new(), "test", keys, 3, 4096).unwrap();
        lines.iter().try_for_each(|l| w.push(l).map(drop))
    };
    for lines in [&["b", "a"][..], &["a", "a"], &[""], &["a\nb"]] {
        assert!(matches!(push(lines, Keys::Sorted), Err(Error::Input { .. })), "{lines:?}");
    }
    assert!(push(&["b", "a", "a"], Keys::None).is_ok());
    assert!(push(&["x".repeat(MAX_LINE).as_str()], Keys::None).is_err());
    assert!(push(&["x".repeat(MAX_LINE - 1).as_str(), "y", "x".repeat(MAX_LINE - 1).as_str()], Keys::None).is_ok());
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let names = names(300);
    let file = write(&names, Keys::Sorted);
    let all = |file: &[u8]| -> Result<Vec<String>> {
        let lines = open(file)?;
        let mut all = Vec::new();
        lines.walk_from("", &mut |_, line| {
            all.push(line.to_owned());
            true
        })?;
        Ok(all)
    };
    assert_eq!(all(&file).unwrap(), names);
    for cut in 0..file.len() {
        assert!(all(&file[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = all(&f) {
            assert_eq!(found, names, "bit {bit}");
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_set(names in prop::collection::btree_set("[a-d]{1,6}", 0..400), probes in prop::collection::vec("[a-d]{0,6}", 20)) {
        let list: Vec<_> = names.iter().cloned().collect();
        let lines = open(&write(&list, Keys::Sorted)).unwrap();
        for probe in probes.iter().chain(&list) {
            let expected = list.binary_search(probe).ok().map(|i| i as u64);
            prop_assert_eq!(lines.find(probe).unwrap(), expected);
        }
        let model: BTreeSet<_> = names;
        prop_assert_eq!(lines.len(), model.len() as u64);
    }
}
