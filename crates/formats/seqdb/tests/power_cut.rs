//! Whatever the power cut: what the last sync acknowledged is there, nothing half-written is seen, and a check is clean
//! after a repair.
//!
//! The disk of these tests loses, keeps or tears every write that was not synced, sector by sector, as the formats assume.
//! A second kind of run tears at every byte, which they do not promise to survive: then nothing may panic or hang.

mod common;

use common::{cases, settings};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use trawl_io::fault::{FaultFs, Loss};
use trawl_seqdb::map::{self, MapFiles};
use trawl_seqdb::{Access, CreateHindex, CreateKvseq, Findings, Kvseq, Map, Result, Settings, silent};

/// Outcomes of a cut to look at: all lost, all kept, and torn by sectors.
fn losses(seeds: u64) -> impl Iterator<Item = Loss> {
    Loss::variants(seeds).map(|loss| match loss {
        Loss::Torn { seed, .. } => Loss::Torn { seed, unit: 512 },
        other => other,
    })
}

fn small(fs: &FaultFs) -> Settings {
    Settings { buffer_bytes: 700, sort_memory_bytes: 6 << 20, index_memory_bytes: 0, ..settings(fs) }
}

fn files() -> MapFiles {
    MapFiles::named(Path::new("/m"))
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Put { key: u8, len: usize },
    Remove { key: u8 },
    Flush,
    Sync,
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0u8..12, prop_oneof![0usize..40, 0usize..2000]).prop_map(|(key, len)| Op::Put { key, len }),
        2 => (0u8..12).prop_map(|key| Op::Remove { key }),
        1 => Just(Op::Flush),
        2 => Just(Op::Sync),
        1 => Just(Op::Reopen),
    ];
    proptest::collection::vec(op, 1..25)
}

/// What may be found of each key: the value at the last sync and everything since; `None` for absent.
#[derive(Default, Clone)]
struct Possible {
    synced: BTreeMap<u8, Vec<u8>>,
    since: BTreeMap<u8, Vec<Option<Vec<u8>>>>,
    now: BTreeMap<u8, Vec<u8>>,
    created: bool,
}

impl Possible {
    fn change(&mut self, key: u8, value: Option<Vec<u8>>) {
        self.since.entry(key).or_default().push(value.clone());
        match value {
            Some(value) => self.now.insert(key, value),
            None => self.now.remove(&key),
        };
    }

    fn synced(&mut self) {
        self.synced = self.now.clone();
        self.since.clear();
    }

    fn allows(&self, key: u8, found: Option<Vec<u8>>) -> bool {
        found == self.synced.get(&key).cloned() || self.since.get(&key).is_some_and(|values| values.contains(&found))
    }
}

fn value(key: u8, n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + n * 13 + usize::from(key)) as u8).collect()
}

fn work(fs: &FaultFs, ops: &[Op], state: &mut Possible) -> Result<()> {
    let settings = small(fs);
    let kvseq = CreateKvseq { sbsize: 512, fileincr: 1000, ..Default::default() };
    let hindex = CreateHindex { sbsize: 512, htsize: 3, ..Default::default() };
    let mut map = Map::create(&files(), &kvseq, &hindex, &settings)?;
    state.created = true;
    for (n, op) in ops.iter().enumerate() {
        match *op {
            Op::Put { key, len } => {
                let value = value(key, n, len);
                state.change(key, Some(value.clone()));
                map.put(&[key], &value)?;
            }
            Op::Remove { key } => {
                state.change(key, None);
                map.remove(&[key])?;
            }
            Op::Flush => map.flush()?,
            Op::Sync => {
                map.sync()?;
                state.synced();
            }
            Op::Reopen => {
                map.close()?;
                state.synced();
                map = Map::open(&files(), Access::Write, &settings)?;
            }
        }
    }
    map.close()?;
    state.synced();
    Ok(())
}

fn check(fs: &FaultFs, state: &Possible, context: &str) {
    let settings = small(fs);
    let there = [files().kvseq, files().hindex].map(|p| fs.files().contains_key(&p));
    if there != [true, true] {
        assert!(!state.created, "{context}: a file is gone");
        return;
    }
    // A reader that comes before any repair sees nothing half-written either.
    if let Ok(reader) = Kvseq::open(&files().kvseq, Access::Read, &settings) {
        let mut scan = reader.scan();
        while let Some(item) = scan.next_entry().unwrap_or_else(|e| panic!("{context}: {e}")) {
            let (key, found) = (item.key[0], item.value.unwrap().to_vec());
            // Entries that were replaced may still be seen in the sequence; each is one that was written.
            let written =
                state.allows(key, Some(found.clone())) || found == state.now.get(&key).cloned().unwrap_or_default();
            assert!(written, "{context}: key {key} has a value that nobody wrote");
        }
    }
    if Map::open(&files(), Access::Write, &settings).is_err() {
        map::repair(&files(), &settings, false, &silent).unwrap_or_else(|e| panic!("{context}: {e}"));
    }
    let mut findings = Findings::new();
    map::verify(&files(), &settings, &mut findings, &silent).unwrap();
    // Delete flags are written in place: their counter may be behind without any sign of it. A repair counts anew.
    if !findings.is_sound() {
        map::repair(&files(), &settings, false, &silent).unwrap_or_else(|e| panic!("{context}: {e}"));
        findings = Findings::new();
        map::verify(&files(), &settings, &mut findings, &silent).unwrap();
    }
    assert!(findings.is_sound() && findings.warnings() == 0, "{context}: {:?}", findings.list());
    let mut map = Map::open(&files(), Access::Write, &settings).unwrap();
    for key in 0..12u8 {
        let found = map.get(&[key]).unwrap();
        let len = found.as_ref().map(Vec::len);
        assert!(state.allows(key, found), "{context}: key {key} has a value of {len:?} bytes that it cannot have");
    }
    map.put(b"after", b"all").unwrap();
    map.close().unwrap();
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn a_map_survives_every_cut(ops in ops()) {
        for cut in 0.. {
            let disk = FaultFs::new();
            disk.cut_after(cut);
            let mut state = Possible::default();
            let done = work(&disk, &ops, &mut state).is_ok();
            for loss in losses(6) {
                check(&disk.reboot(loss), &state, &format!("cut {cut}, {loss:?}"));
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_cut_during_repair_loses_nothing_more() {
    let ops: Vec<Op> = (0..30u8)
        .map(|n| match n % 9 {
            3 => Op::Remove { key: n % 7 },
            5 => Op::Sync,
            _ => Op::Put { key: n % 7, len: usize::from(n) * 40 },
        })
        .collect();
    let mut outcomes = 0;
    for cut in (8..).step_by(3) {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let mut state = Possible::default();
        let done = work(&disk, &ops, &mut state).is_ok();
        if !state.created {
            continue;
        }
        for loss in losses(2) {
            for second in 0.. {
                let disk = disk.reboot(loss);
                disk.cut_after(second);
                let repaired = map::repair(&files(), &small(&disk), false, &silent).is_ok();
                for again in losses(2) {
                    check(&disk.reboot(again), &state, &format!("cut {cut}, {loss:?}, then {second}, {again:?}"));
                    outcomes += 1;
                }
                if repaired {
                    break;
                }
            }
        }
        if done {
            break;
        }
    }
    assert!(outcomes > 300, "{outcomes}");
}

#[test]
fn bytes_torn_anywhere_never_panic() {
    let ops: Vec<Op> =
        (0..20u8).map(|n| if n % 4 == 3 { Op::Sync } else { Op::Put { key: n % 5, len: 300 } }).collect();
    for cut in (6..80).step_by(2) {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let mut state = Possible::default();
        let _ = work(&disk, &ops, &mut state);
        for seed in 0..8 {
            let fs = disk.reboot(Loss::Torn { seed, unit: 1 });
            let _ = map::repair(&files(), &small(&fs), false, &silent);
            let _ = map::repair(&files(), &small(&fs), true, &silent);
            if let Ok(map) = Map::open(&files(), Access::Read, &small(&fs)) {
                (0..5).for_each(|key| drop(map.get(&[key])));
            }
        }
    }
}
