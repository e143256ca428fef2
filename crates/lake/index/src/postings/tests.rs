use super::*;
use crate::cache::Caches;
use crate::scratch::Scratch;
use crate::{Error, Result};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_io::read_at::Counting;

type Pairs = BTreeMap<(u64, u32), Vec<Run>>;

fn run(file_id: u32, row_group: u32, first_row: u64, row_count: u64) -> Run {
    Run { file_id, row_group, first_row, row_count }
}

fn scratch() -> Scratch {
    Scratch::new(std::env::temp_dir(), 1 << 20)
}

fn write(pairs: &Pairs) -> [Vec<u8>; 2] {
    let mut w = ShardWriter::new(Vec::new(), &scratch()).unwrap();
    for ((slot, dataset), runs) in pairs {
        w.push(*slot, *dataset, runs).unwrap();
    }
    let (idx, dat) = w.finish(Vec::new()).unwrap();
    [idx, dat]
}

fn open([idx, dat]: &[Vec<u8>; 2]) -> Result<Shard> {
    Shard::open(Arc::new(Bytes::from(idx.clone())), Arc::new(Bytes::from(dat.clone())), Arc::default())
}

fn read(files: &[Vec<u8>; 2]) -> Result<Pairs> {
    let shard = open(files)?;
    shard.check_headers()?;
    let mut pairs = Pairs::new();
    for entries in shard.all_entries() {
        for entry in entries? {
            pairs.insert((entry.slot, entry.dataset_id), shard.payload(&entry)?);
        }
    }
    assert_eq!(pairs.len() as u64, shard.entries());
    Ok(pairs)
}

/// No Parquet row group is so long: such a run is an error for who reads its rows, not an empty range.
#[test]
fn rows_beyond_every_row_group_are_none() {
    assert_eq!(run(0, 0, 7, 5).rows(), Some(7..12));
    assert_eq!(run(0, 0, 7, u64::from(u32::MAX) - 7).rows(), Some(7..u32::MAX));
    for (first_row, row_count) in [(7, u64::from(u32::MAX) - 6), (1 << 40, 2), (u64::MAX, 1), (1, u64::MAX)] {
        assert_eq!(run(0, 0, first_row, row_count).rows(), None, "{first_row} {row_count}");
    }
}

/// Slots of shard 1 of 2, two datasets on every third, and pairs with many runs: one amid others, one last.
fn sample(slots: u64) -> Pairs {
    let mut pairs = Pairs::new();
    for slot in (1..2 * slots).step_by(2) {
        pairs.insert((slot, 7), vec![run(3, 0, slot * 10, 5)]);
        if slot % 3 == 0 {
            pairs.insert((slot, 9), vec![run(0, 1, slot, 1), run(0, 2, 0, 100), run(4, 0, 1 << 40, 2)]);
        }
    }
    pairs.insert((203, 20), (0..3000).map(|i| run(i / 10, i % 10, 0, 1000)).collect());
    pairs.insert((u64::MAX, u32::MAX), (0..3000).map(|i| run(i / 10, i % 10, 0, 1000)).collect());
    pairs
}

#[test]
fn runs_come_back() {
    let pairs = sample(4000);
    let files = write(&pairs);
    assert_eq!(read(&files).unwrap(), pairs);
    let shard = open(&files).unwrap();
    for ((slot, dataset), runs) in &pairs {
        assert_eq!(shard.runs(*slot, *dataset).unwrap().as_ref(), Some(runs));
        assert_eq!(shard.runs(*slot, dataset - 1).unwrap(), None);
        assert_eq!(shard.runs(slot - 1, *dataset).unwrap(), None);
    }
    let empty = write(&Pairs::new());
    assert_eq!(read(&empty).unwrap(), Pairs::new());
    assert_eq!(open(&empty).unwrap().runs(0, 1).unwrap(), None);
}

/// The drawing, byte by byte, from the decompressed files.
#[test]
fn the_drawing_holds() {
    let pairs = Pairs::from([
        ((5, 17), vec![run(1, 2, 300, 4)]),
        ((6, 3), vec![run(0, 0, 0, 1), run(0, 3, 9, 1)]),
        ((6, 17), vec![run(1, 2, 304, 7), run(1, 3, 0, 1)]),
        ((7, 3), vec![run(0, 3, 310, 2)]),
        ((7, 17), vec![run(1, 2, 0, 1)]),
    ]);
    let [idx, dat] = write(&pairs).map(|f| zstd::stream::decode_all(&f[..]).unwrap());
    assert_eq!(&idx[..8], b"PDX1\x03\0\0\0");
    assert_eq!(idx[8..24], [5u64.to_le_bytes(), 8u64.to_le_bytes()].concat());
    let entry = |slot: u64, dataset: u32, at: u64, len: u32| {
        [&slot.to_le_bytes()[..], &dataset.to_le_bytes(), &at.to_le_bytes(), &len.to_le_bytes()].concat()
    };
    assert_eq!(idx[24..48], entry(5, 17, 8, 6));
    assert_eq!(idx[48..72], entry(6, 3, 14, 9));
    assert_eq!(&dat[..8], b"PDD1\x03\0\0\0");
    // Alone; two runs alone; no row after the first; 300 after the second; a row group that came before it already.
    let payloads = [
        &[2, 1, 2, 0xac, 2, 4][..],
        &[4, 0, 0, 0, 1, 0, 3, 9, 1],
        &[5, 0, 7, 0, 1, 0, 1],
        &[3, 0xac, 2, 2],
        &[2, 1, 2, 0, 1],
    ];
    assert_eq!(dat[8..], payloads.concat());
}

#[test]
fn rows_that_follow_one_another_take_few_bytes() {
    let pairs: Pairs =
        (0..10_000u64).flat_map(|slot| (1..9).map(move |d| ((slot, d), vec![run(d, 0, slot * 50, 50)]))).collect();
    let files = write(&pairs);
    assert_eq!(read(&files).unwrap(), pairs);
    let plain = zstd::stream::decode_all(&files[1][..]).unwrap();
    assert!(plain.len() < pairs.len() * 4, "{} bytes", plain.len());
}

#[test]
fn a_lookup_is_one_round_of_reads() {
    let pairs: Pairs = (0..100_000).map(|slot| ((slot, 1), vec![run(0, 0, slot * 3, 3)])).collect();
    let [idx, dat] = write(&pairs);
    let (idx, dat) = (Arc::new(Counting::new(Bytes::from(idx))), Arc::new(Counting::new(Bytes::from(dat))));
    let shard = Shard::open(idx.clone(), dat.clone(), Arc::new(Caches::new(1 << 20))).unwrap();
    assert_eq!((idx.take().rounds, dat.take().rounds), (1, 1));
    assert_eq!(shard.runs(77_777, 1).unwrap(), Some(vec![run(0, 0, 233_331, 3)]));
    let (i, d) = (idx.take(), dat.take());
    assert_eq!((i.rounds, d.rounds), (1, 1), "both asked for before either is decoded");
    assert!(i.bytes + d.bytes < 40_000, "{} bytes", i.bytes + d.bytes);
    shard.runs(77_778, 1).unwrap();
    assert_eq!((idx.take().rounds, dat.take().rounds), (0, 0));
}

#[test]
fn wrong_orders_are_refused() {
    let push = |pairs: &[(u64, u32, &[Run])]| {
        let mut w = ShardWriter::new(Vec::new(), &scratch()).unwrap();
        pairs.iter().try_for_each(|(slot, dataset, runs)| w.push(*slot, *dataset, runs))
    };
    let one = [run(0, 0, 0, 1)];
    for bad in [
        &[(1, 1, &one[..]), (1, 1, &one)][..],
        &[(2, 1, &one), (1, 9, &one)],
        &[(1, 1, &[])],
        &[(1, 1, &[run(0, 0, 0, 0)])],
        &[(1, 1, &[run(0, 0, u64::MAX, 1)])],
        &[(1, 1, &[run(0, 1, 0, 1), run(0, 1, 5, 1)])],
        &[(1, 1, &[run(1, 0, 0, 1), run(0, 1, 5, 1)])],
    ] {
        assert!(matches!(push(bad), Err(Error::Input { .. })), "{bad:?}");
    }
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let pairs: Pairs = (0..30).map(|i| ((i, 1), vec![run(0, 0, i * 2, 2)])).collect();
    let files = write(&pairs);
    for which in 0..2 {
        for cut in 0..files[which].len() {
            let mut f = files.clone();
            f[which].truncate(cut);
            assert!(read(&f).is_err(), "file {which} cut at {cut}");
        }
        for bit in 0..files[which].len() * 8 {
            let mut f = files.clone();
            f[which][bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = read(&f) {
                assert_eq!(found, pairs, "file {which} bit {bit}");
            }
        }
    }
}

#[test]
fn shards_scale() {
    assert_eq!([0, 1, 1 << 20, (1 << 20) + 1, 1 << 30, 1 << 40].map(shards_for), [1, 1, 1, 2, 1024, 1024]);
}

proptest! {
    #[test]
    fn payloads_round_trip(steps in prop::collection::vec((0u32..3, 0u32..1000, 0u64..1 << 40, 1u64..1 << 20), 1..50)) {
        let mut runs: Vec<Run> = Vec::new();
        for (file, group, first, count) in steps {
            let next = match runs.last() {
                None => run(file, group, first, count),
                Some(b) if file == 0 => run(b.file_id, b.row_group + group + 1, first, count),
                Some(b) => run(b.file_id + file, group, first, count),
            };
            runs.push(next);
        }
        let mut bytes = Vec::new();
        payload::encode(&runs, &mut bytes).unwrap();
        prop_assert_eq!(payload::decode(&bytes).unwrap(), runs.clone());
        let (mut put, mut taken) = (payload::Ends::default(), payload::Ends::default());
        for dataset in [1, 2, 1, 1] {
            bytes.clear();
            payload::encode_near(&runs, dataset, &mut put, &mut bytes).unwrap();
            prop_assert_eq!(payload::decode_near(&bytes, dataset, &mut taken).unwrap(), runs.clone());
        }
    }

    #[test]
    fn payload_noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = trawl_io::crc::crc32c(&noise).to_le_bytes().to_vec();
        bytes.extend_from_slice(&noise);
        for runs in [payload::decode(&bytes), payload::decode_near(&noise, 1, &mut payload::Ends::default())].into_iter().flatten() {
            prop_assert!(runs.windows(2).all(|w| (w[0].file_id, w[0].row_group) < (w[1].file_id, w[1].row_group)));
        }
    }
}
