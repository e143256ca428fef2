//! Files as the first release wrote them: they must still read, and today's bytes must be the same.
//!
//! Compressed bytes may change with the zstd library, so `.zst` files are compared decompressed; the stored ones must read
//! all the same. After a wanted change of a format, with a new version number, run with `TRAWL_BLESS=1` and commit.

use crate::counts::{Count, Counts};
use crate::lines::{Keys, Lines, LinesWriter};
use crate::membership::{Membership, MembershipWriter};
use crate::mphf::{Candidate, DictionaryHashes, Mphf, MphfWriter};
use crate::pages::{Pages, PagesWriter};
use crate::paths::Paths;
use crate::postings::{Run, Shard, ShardWriter};
use crate::slots::{BLOCK_SLOTS, Record, SlotReader, SlotWriter};
use crate::times::Times;
use crate::{Caches, Scratch};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_model::UnixMillis;

/// The stored bytes, after comparing them with what is written today.
fn golden(name: &str, today: &[u8]) -> Arc<Bytes> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TRAWL_BLESS").is_some() {
        std::fs::write(&path, today).unwrap();
    }
    let stored = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let plain = |bytes: &[u8]| match name.ends_with(".zst") {
        true => zstd::stream::decode_all(bytes).unwrap(),
        false => bytes.to_vec(),
    };
    assert!(plain(&stored) == plain(today), "{name}: the bytes have changed");
    Arc::new(stored.into())
}

/// The stored bytes of a form that is no longer written.
fn stored(name: &str) -> Arc<Bytes> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    Arc::new(std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).into())
}

/// The stored bytes of a file with compressed parts inside.
fn golden_frames(name: &str, today: &[u8]) -> Arc<Bytes> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TRAWL_BLESS").is_some() {
        std::fs::write(&path, today).unwrap();
    }
    Arc::new(std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).into())
}

fn names() -> Vec<String> {
    (0..600).map(|n| format!("name{:04}.example", n * 3)).collect()
}

#[test]
fn dictionary_and_perfect_hash() {
    let mut lines = LinesWriter::new(Vec::new(), "domains.txt.zst", Keys::Sorted, 9, 4096).unwrap();
    let mut mphf = MphfWriter::new(Vec::new()).unwrap();
    for name in names() {
        let begins = lines.push(&name).unwrap();
        mphf.push(&name, begins).unwrap();
    }
    let text = golden("domains-v1.txt.zst", &lines.finish().unwrap().0);
    // The hashes of the dictionary would change with the zstd library: any will do here.
    let bytes = mphf.finish(DictionaryHashes { file: 1, table: 2 }).unwrap();
    let lines = Lines::open(text, Arc::new(Caches::default())).unwrap();
    let mphf = Mphf::open(golden("domains-v1.mphf", &bytes)).unwrap();
    assert_eq!((lines.len(), mphf.names(), mphf.searched_chunks()), (600, 600, 0));
    assert_eq!(mphf.dictionary(), DictionaryHashes { file: 1, table: 2 });
    for (slot, name) in (0u64..).zip(names()) {
        assert_eq!(lines.find(&name).unwrap(), Some(slot));
        let block = lines.block_of(&name).unwrap();
        let line = u32::try_from(slot - lines.block_lines(block).start).unwrap();
        assert_eq!(mphf.get(&name, block).unwrap(), Candidate::Line(line));
    }
}

#[test]
fn membership() {
    let sets: Vec<Vec<u32>> = (0..100).map(|n| (0..=n % 5).map(|i| i * 70_000 + n % 3).collect()).collect();
    let mut writer = MembershipWriter::new(&Scratch::new(std::env::temp_dir(), 1 << 20));
    sets.iter().for_each(|set| writer.push(set).unwrap());
    let file = golden("domain_to_datasets-v1.roar", &writer.finish(Vec::new()).unwrap());
    let membership = Membership::open(file).unwrap();
    let read: Vec<_> = (0..membership.slots()).map(|slot| membership.datasets(slot).unwrap()).collect();
    assert_eq!(read, sets);
}

#[test]
fn counts_times_and_paths() {
    let count = |n: u64| Count {
        rows: n * n + 2,
        distinct: n + 1,
        exact: !n.is_multiple_of(7),
        times: n.is_multiple_of(3).then(|| (UnixMillis(n as i64 * 1000 - 5000), UnixMillis(n as i64 * 2000))),
        paths: (0..n % 4).map(|i| (format!("/path{i}/"), n - i)).collect(),
    };
    let slots: Vec<Vec<Count>> = (0..100).map(|n| (0..=n % 3).map(|i| count(n + i)).collect()).collect();
    let caches = || Arc::new(Caches::default());
    let counts = SlotReader::<Counts>::open(golden("counts-v1.bin", &written::<Counts>(&slots)), caches()).unwrap();
    let times = SlotReader::<Times>::open(golden("times-v1.bin", &written::<Times>(&slots)), caches()).unwrap();
    // Its blocks are compressed, so today's bytes may be others; the stored ones must read.
    let file = golden_frames("paths-v1.bin", &written::<Paths>(&slots));
    let paths = SlotReader::<Paths>::open(file, caches()).unwrap();
    for (slot, expected) in (0u64..).zip(&slots) {
        let mut read = vec![Count::default(); expected.len()];
        counts.fill(slot, &mut read).unwrap();
        times.fill(slot, &mut read).unwrap();
        paths.fill(slot, &mut read).unwrap();
        assert_eq!(read, *expected);
    }
}

fn written<R: Record>(slots: &[Vec<Count>]) -> Vec<u8> {
    let mut writer = SlotWriter::<R, _>::new(Vec::new()).unwrap();
    slots.chunks(BLOCK_SLOTS).for_each(|block| writer.block(block).unwrap());
    writer.finish().unwrap()
}

#[test]
fn postings() {
    let runs = |slot: u64, dataset: u32| -> Vec<Run> {
        let run = |i: u32| Run { file_id: i * 2, row_group: dataset + i, first_row: slot * 10, row_count: slot + 1 };
        (0..=dataset % 3).map(run).collect()
    };
    let pairs: Vec<(u64, u32)> = (0..700).flat_map(|slot| [(slot * 4 + 1, 7), (slot * 4 + 1, 1000)]).collect();
    let mut writer = ShardWriter::new(Vec::new(), &Scratch::new(std::env::temp_dir(), 1 << 20)).unwrap();
    pairs.iter().for_each(|(slot, dataset)| writer.push(*slot, *dataset, &runs(*slot, *dataset)).unwrap());
    let (idx, dat) = writer.finish(Vec::new()).unwrap();
    let today = (golden("postings-v3.idx.zst", &idx), golden("postings-v3.dat.zst", &dat));
    for (idx, dat) in [today, (stored("postings-v2.idx.zst"), stored("postings-v2.dat.zst"))] {
        let shard = Shard::open(idx, dat, Arc::new(Caches::default())).unwrap();
        for (slot, dataset) in &pairs {
            assert_eq!(shard.runs(*slot, *dataset).unwrap(), Some(runs(*slot, *dataset)));
        }
    }
}

#[test]
fn pages() {
    let files: Vec<Vec<Vec<u8>>> =
        (0..9u8).map(|f| (0..f % 4).map(|g| vec![f * 16 + g; usize::from(f) * 9]).collect()).collect();
    let mut writer = PagesWriter::new(Vec::new()).unwrap();
    files.iter().for_each(|file| writer.push(file).unwrap());
    let pages = Pages::open(golden("pages-v1.bin", &writer.finish().unwrap())).unwrap();
    for (file, groups) in (0u32..).zip(&files) {
        let wanted: Vec<_> = (0..pages.groups_of(file).unwrap()).map(|group| (file, group)).collect();
        assert_eq!(pages.tables(&wanted).unwrap(), *groups);
    }
}
