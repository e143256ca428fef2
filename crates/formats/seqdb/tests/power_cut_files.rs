//! The same for a filesys: whatever the power cut, files that were synced are there, no half-written new file is seen,
//! and a check is clean after a repair. What was changed in place since the last sync is exempt, as the format cannot
//! promise it; so are deletions that only the index knows of.

mod common;

use common::{cases, settings};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trawl_io::fault::{FaultFs, Loss};
use trawl_seqdb::{
    Access, CreateFilesys, Filesys, Findings, FsPaths, Result, Settings, SyncPolicy, WriteFlags, filesys, silent,
};

#[derive(Debug, Clone, Copy)]
enum Op {
    Put { name: u8, len: usize },
    Append { name: u8, len: usize },
    Delete { name: u8 },
    Rename { name: u8, to: u8 },
    Flush,
    Sync,
    Reopen,
    Compact,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let name = || 0u8..8;
    let len = || prop_oneof![0usize..60, 0usize..1500];
    let op = prop_oneof![
        6 => (name(), len()).prop_map(|(name, len)| Op::Put { name, len }),
        4 => (name(), len()).prop_map(|(name, len)| Op::Append { name, len }),
        2 => name().prop_map(|name| Op::Delete { name }),
        1 => (name(), name()).prop_map(|(name, to)| Op::Rename { name, to }),
        1 => Just(Op::Flush),
        2 => Just(Op::Sync),
        1 => Just(Op::Reopen),
        1 => Just(Op::Compact),
    ];
    proptest::collection::vec(op, 1..14)
}

#[derive(Debug, Clone, Copy)]
struct Variant {
    append_only: bool,
    have_dups: bool,
    sync: SyncPolicy,
}

#[derive(Default, Debug)]
struct State {
    created: bool,
    now: BTreeMap<u8, Vec<u8>>,
    synced: BTreeMap<u8, Vec<u8>>,
    /// Contents since the last sync; `None`: not there.
    since: BTreeMap<u8, Vec<Option<Vec<u8>>>>,
    /// Names whose file was changed in place since, and those that were appended to.
    in_place: BTreeSet<u8>,
    appended: BTreeSet<u8>,
}

impl State {
    fn set(&mut self, name: u8, contents: Option<Vec<u8>>) {
        self.since.entry(name).or_default().push(contents.clone());
        match contents {
            Some(contents) => self.now.insert(name, contents),
            None => self.now.remove(&name),
        };
    }

    fn sync(&mut self) {
        self.synced = self.now.clone();
        self.since.clear();
        self.in_place.clear();
        self.appended.clear();
    }
}

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "f").unwrap()
}

fn small(disk: &FaultFs, variant: Variant) -> Settings {
    Settings { buffer_bytes: 900, sort_memory_bytes: 6 << 20, sync: variant.sync, ..settings(disk) }
}

fn name(n: u8) -> Vec<u8> {
    vec![b'a' + n; 1 + usize::from(n % 3) * 20]
}

fn piece(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 5 + n * 11 + 1) as u8).collect()
}

fn work(disk: &FaultFs, variant: Variant, ops: &[Op], state: &mut State) -> Result<()> {
    let settings = small(disk, variant);
    let create = CreateFilesys {
        sbsize: 512,
        small_sbsize: 512,
        fileincr: 1000,
        isz: 32,
        htsize: 3,
        have_dups: variant.have_dups,
        append_only: variant.append_only.then_some(5),
        ..CreateFilesys::new(7)
    };
    let mut fs = create.create(&paths(), &settings)?;
    state.created = true;
    for (n, op) in ops.iter().enumerate() {
        match *op {
            Op::Put { name: file, len } if !state.now.contains_key(&file) => {
                let contents = piece(n, len);
                state.set(file, Some(contents.clone()));
                fs.put_file(&name(file), 'f', None, &contents)?;
            }
            // An append-only filesys takes new files only, which are then written in pieces.
            Op::Append { name: file, len } if !variant.append_only || !state.now.contains_key(&file) => {
                let old = state.now.get(&file).cloned().unwrap_or_default();
                if state.synced.contains_key(&file) {
                    state.appended.insert(file);
                }
                let mut handle = fs.open_file_wr(&name(file), 'f', WriteFlags::default());
                if handle.is_ok() {
                    state.set(file, Some(old.clone()));
                }
                let handle = handle.as_mut().map_err(|e| std::mem::replace(e, refused()))?;
                let mut contents = old;
                for part in piece(n, len).chunks(400) {
                    contents.extend_from_slice(part);
                    state.set(file, Some(contents.clone()));
                    fs.append_file(handle, part)?;
                }
            }
            Op::Delete { name: file } if state.now.contains_key(&file) => {
                state.set(file, None);
                fs.delete_file(&name(file))?;
            }
            Op::Rename { name: file, to }
                if !variant.append_only && state.now.contains_key(&file) && !state.now.contains_key(&to) =>
            {
                state.in_place.extend([file, to]);
                let contents = state.now.get(&file).cloned();
                state.set(file, None);
                state.set(to, contents);
                fs.rename_file(&name(file), &name(to))?;
            }
            Op::Put { .. } | Op::Append { .. } | Op::Delete { .. } | Op::Rename { .. } => {}
            Op::Flush => fs.flush()?,
            Op::Sync => {
                fs.sync()?;
                state.sync();
            }
            Op::Reopen => {
                fs.close()?;
                state.sync();
                fs = Filesys::open(&paths(), Access::Write, &settings)?;
            }
            Op::Compact => {
                fs.close()?;
                state.sync();
                filesys::compact(&paths(), &settings, None, 1000 + n as i64, &silent)?;
                fs = Filesys::open(&paths(), Access::Write, &settings)?;
            }
        }
    }
    fs.close()?;
    state.sync();
    Ok(())
}

fn refused() -> trawl_seqdb::Error {
    trawl_seqdb::Error::Poisoned("".into())
}

/// `killed`: the power stayed on, so that nothing of what the writer did is torn.
fn check(disk: &FaultFs, variant: Variant, state: &State, killed: bool, context: &str) {
    let settings = small(disk, variant);
    if !disk.files().contains_key(&paths().data()) {
        assert!(!state.created, "{context}: the data file is gone");
        return;
    }
    let verify = || {
        let mut findings = Findings::new();
        filesys::verify(&paths(), &settings, &mut findings, &silent).unwrap_or_else(|e| panic!("{context}: {e}"));
        findings
    };
    // A compaction that did not come to its end may leave files, and nothing else to repair.
    let left = disk.files().keys().any(|path| path.to_string_lossy().contains(".new."));
    if left || Filesys::open(&paths(), Access::Write, &settings).is_err() {
        filesys::repair(&paths(), &settings, false, &silent).unwrap_or_else(|e| panic!("{context}: {e}"));
    }
    let findings = verify();
    assert!(findings.is_sound() && findings.warnings() == 0, "{context}: {:?}", findings.list());
    let mut fs = Filesys::open(&paths(), Access::Write, &settings).unwrap();
    for file in 0..8u8 {
        let found = match fs.read_all(&name(file)) {
            Ok(contents) => Some(contents),
            Err(trawl_seqdb::Error::FileNotFound { .. }) => None,
            Err(e) => panic!("{context}: {e}"),
        };
        if state.in_place.contains(&file) {
            continue;
        }
        let synced = state.synced.get(&file).cloned();
        if state.appended.contains(&file) {
            // Its inode was written to: its size may be torn. But it is there, unless it was deleted as well.
            let gone = state.since.get(&file).is_some_and(|all| all.contains(&None));
            assert!(found.is_some() || gone, "{context}: file {file} is gone");
            if let (true, false, Some(synced), Some(found)) = (killed, gone, &synced, &found) {
                let lens = (found.len(), synced.len());
                assert!(found.starts_with(synced), "{context}: file {file} lost synced bytes: {lens:?}");
            }
            continue;
        }
        if variant.have_dups && synced.is_none() {
            continue;
        }
        let allowed = found == synced || state.since.get(&file).is_some_and(|all| all.contains(&found));
        let len = found.as_ref().map(Vec::len);
        assert!(allowed, "{context}: file {file} has {len:?} bytes that it cannot have; {:?}", synced.map(|s| s.len()));
    }
    fs.put_file(b"after", 'f', None, b"all").unwrap();
    fs.close().unwrap();
    assert!(verify().is_sound(), "{context}");
}

proptest! {
    #![proptest_config(cases(30))]
    #[test]
    fn a_filesys_survives_every_cut(ops in ops(), append_only: bool, have_dups in prop::bool::weighted(0.2), data_only: bool) {
        let sync = if data_only { SyncPolicy::Data } else { SyncPolicy::Full };
        let variant = Variant { append_only, have_dups, sync };
        for cut in 0.. {
            let disk = FaultFs::new();
            disk.cut_after(cut);
            let mut state = State::default();
            let done = work(&disk, variant, &ops, &mut state).is_ok();
            for loss in [Loss::All, Loss::None].into_iter().chain((0..6).map(|seed| Loss::Torn { seed, unit: 512 })) {
                check(&disk.reboot(loss), variant, &state, loss == Loss::None, &format!("cut {cut}, {loss:?}"));
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_half_deleted_file_is_there_or_gone() {
    let variant = Variant { append_only: false, have_dups: false, sync: SyncPolicy::Full };
    let ops: Vec<Op> = (0..4u8)
        .map(|name| Op::Put { name, len: 1500 })
        .chain([Op::Append { name: 0, len: 1500 }, Op::Sync, Op::Delete { name: 0 }, Op::Delete { name: 2 }, Op::Flush])
        .collect();
    for cut in 40.. {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let mut state = State::default();
        let done = work(&disk, variant, &ops, &mut state).is_ok();
        for seed in 0..60 {
            check(&disk.reboot(Loss::Torn { seed, unit: 512 }), variant, &state, false, &format!("cut {cut}, {seed}"));
        }
        if done {
            break;
        }
    }
}

/// A name that needs a larger inode: both inodes are there for a moment, and neither may become a second file.
#[test]
fn a_renamed_file_has_one_name() {
    let variant = Variant { append_only: false, have_dups: false, sync: SyncPolicy::Full };
    for len in [0, 700] {
        let ops = [Op::Put { name: 0, len }, Op::Sync, Op::Rename { name: 0, to: 2 }, Op::Sync];
        for cut in 0.. {
            let disk = FaultFs::new();
            disk.cut_after(cut);
            let mut state = State::default();
            let done = work(&disk, variant, &ops, &mut state).is_ok();
            for seed in 0..30 {
                let disk = disk.reboot(Loss::Torn { seed, unit: 512 });
                let context = format!("{len} bytes, cut {cut}, {seed}");
                check(&disk, variant, &state, false, &context);
                if !state.synced.is_empty() {
                    let fs = Filesys::open(&paths(), Access::Read, &small(&disk, variant)).unwrap();
                    let found = [0, 2].map(|n| fs.contains(&name(n)).unwrap());
                    assert_ne!(found[0], found[1], "{context}");
                }
            }
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_cut_during_repair_loses_nothing_more() {
    let variant = Variant { append_only: true, have_dups: false, sync: SyncPolicy::Full };
    let ops: Vec<Op> = (0..14u8)
        .map(|n| match n % 6 {
            2 => Op::Sync,
            4 => Op::Delete { name: n % 5 },
            _ => Op::Put { name: n % 8, len: usize::from(n) * 60 },
        })
        .collect();
    let mut outcomes = 0;
    for cut in (20..).step_by(5) {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let mut state = State::default();
        let done = work(&disk, variant, &ops, &mut state).is_ok();
        if state.created {
            for second in 0.. {
                let disk = disk.reboot(Loss::Torn { seed: cut, unit: 512 });
                disk.cut_after(second);
                let repaired = filesys::repair(&paths(), &small(&disk, variant), false, &silent).is_ok();
                for again in [Loss::All, Loss::None, Loss::Torn { seed: second, unit: 512 }] {
                    check(&disk.reboot(again), variant, &state, false, &format!("cut {cut}, then {second}, {again:?}"));
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
